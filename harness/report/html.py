"""report.html: one file that needs no other, readable without scripts, in light and dark and on paper."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.report import formats
from harness.report.model import Report
from harness.report.views import view


def render(report: Report) -> str:
    """Return the page. All text is escaped, and controls and direction marks in it are shown as escapes."""
    return _environment().get_template("report.html.j2").render(report=report, view=view(report))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["line"] = formats.line
    environment.filters["moment"] = formats.moment
    return environment


def _harmless(value: Any) -> Any:
    # Every expression of every template passes here; what is Markup already was made by a template.
    if isinstance(value, str) and not isinstance(value, Markup):
        return formats.visible(value)
    if isinstance(value, float):
        return f"{value:g}"
    return value
