"""A report as a set of files, and a finished run's folder rendered again."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from harness.errors import UsageError
from harness.report import html, junit, markdown, text
from harness.report.model import SCHEMA_VERSION, Report
from harness.store import RunFolder

JSON_NAME = "report.json"
HTML_NAME = "report.html"


def companions(report: Report) -> dict[str, str]:
    """Return the files that are made from report.json, by name."""
    return {
        HTML_NAME: html.render(report),
        "report.md": markdown.render(report),
        "junit.xml": junit.render(report),
    }


def save(report: Report, folder: RunFolder) -> None:
    """Write a report in every format. Raises StoreError."""
    # One by one: when the disk fills up half-way, the numbers are there and the rest can be made later.
    folder.write(JSON_NAME, report.to_json())
    for name, content in companions(report).items():
        folder.write(name, content)


def read(folder: Path) -> Report:
    """Return the report in a folder. Raises UsageError where there is none or it is not ours."""
    path = folder / JSON_NAME
    try:
        return Report.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        hint = "name the folder of a finished run (runs/<scenario>/<time>)"
        raise UsageError(f"{folder} holds no {JSON_NAME}: {hint}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(
            f"{path} is no report of schema version {SCHEMA_VERSION}: {where}: {first['msg']} "
            f"({error.error_count()} problems in all)"
        ) from None


def render_folder(folder: Path) -> str:
    """Write the report of a finished run again in every format; return its summary for a terminal.

    Raises UsageError where there is no report, StoreError where it cannot be written.
    """
    report = read(folder)
    target = RunFolder(folder)
    for name, content in companions(report).items():
        target.write(name, content)
    return text.as_text(report, folder)
