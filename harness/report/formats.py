"""How numbers and names read, the same in every renderer; and text of a run made harmless to look at."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata

from harness import terminal
from harness.judge.figures import Value
from harness.report.model import Slo

NOT_APPLICABLE = "n/a"
NEVER = "never"
SHOWN_CAP_CHARS = 2_000

_TITLES = {
    "suspect_s": "first suspicion",
    "detect_s": "detection",
    "reaction_s": "first reaction",
    "swap_s": "swap",
    "restore_s": "restore",
    "first_step_s": "first step",
    "recover_s": "recovery",
    "caught_up_s": "caught up",
    "pause_s": "longest pause",
    "lost_steps": "steps lost",
    "redone_steps": "steps redone",
    "samples_skipped": "samples skipped",
    "samples_repeated": "samples repeated",
    "bystanders_restarted": "bystanders restarted",
    "bystanders_rolled_back": "bystanders rolled back",
    "false_alarms": "false alarms",
    "wrong_blame": "wrong blame",
    "goodput": "goodput",
    "utilization": "utilization",
    "weights_equal": "weights equal",
    "weights": "final weights",
    "steady_after_heal": "steady after the heal",
    "training_complete": "training complete",
}


def title(figure: str) -> str:
    """Return a figure's name in words."""
    return _TITLES.get(figure, figure.removesuffix("_s").replace("_", " "))


def is_seconds(figure: str) -> bool:
    """Return whether a figure is a time: names carry units."""
    return figure.endswith("_s") or figure == "steady_after_heal"


def is_share(figure: str) -> bool:
    """Return whether a figure is a share of 1, shown in per cent."""
    return figure in {"goodput", "utilization"} or figure.startswith("badput")


def seconds(value_s: float) -> str:
    """Return a duration with three significant digits: "31.2 ms", "1.12 s", "never"."""
    if math.isnan(value_s):
        return "undefined"
    if math.isinf(value_s):
        return NEVER
    size = abs(value_s)
    if size < 0.9995e-6:
        return "0 s"
    if size < 0.9995:
        return f"{_three_digits(value_s * 1e3)} ms"
    if size < 600:
        return f"{_three_digits(value_s)} s"
    return f"{value_s / 60:,.1f} min"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    places = 3 if size < 0.9995 else 2 if size < 9.995 else 1
    return f"{value:.{places}f}".rstrip("0").rstrip(".")


def clock(value_s: float) -> str:
    """Return a moment of a run in seconds: "12.345 s"."""
    return f"{value_s:.3f} s" if math.isfinite(value_s) else NEVER


def moment(iso_utc: str) -> str:
    """Return a UTC moment of ISO 8601 to the second, as people read it; other text as it is."""
    try:
        moment = dt.datetime.fromisoformat(iso_utc)
    except ValueError:
        return line(iso_utc, 40)
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def figure(name: str, value: Value) -> str:
    """Return a figure's value with its unit."""
    if value is None:
        return NOT_APPLICABLE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_seconds(name):
        return seconds(value)
    if not math.isfinite(value):
        return "∞"
    if name.startswith("weights"):
        return "yes" if value == 1 else "no" if value == 0 else f"{100 * value:.0f} % equal"
    if is_share(name):
        return f"{100 * value:.1f}".removesuffix(".0") + " %"
    return f"{value:,}" if isinstance(value, int) or value != int(value) else f"{int(value):,}"


def limit(slo: Slo) -> str:
    """Return a limit with its sign: "≤ 200 ms"."""
    if slo.limit_value is None:
        return slo.limit
    sign = {"max": "≤", "min": "≥", "equal": "="}[slo.op]
    text = f"{sign} {figure(slo.slo, slo.limit_value)}"
    return f"{text} ({slo.limit.removeprefix(slo.op).strip()})" if "step" in slo.limit and is_seconds(slo.slo) else text


def visible(text: str, cap_chars: int = SHOWN_CAP_CHARS) -> str:
    """Return text of a run with controls and direction marks shown as escapes, cut at `cap_chars`."""
    # Cut first: a text of gigabytes must not be walked through only to be thrown away.
    shown = terminal.visible(text[:cap_chars].replace("\r\n", "\n").expandtabs(4), keep_newlines=True)
    return f"{shown}… ({len(text) - cap_chars:,} more characters)" if len(text) > cap_chars else shown


def line(text: str, cap_chars: int = 200) -> str:
    """Return text of a run as one line."""
    return " ".join(visible(text, cap_chars).split())


def width_cells(text: str) -> int:
    """Return how many cells of a terminal (or average digits of a label) `text` takes."""
    standing = (char for char in text if not unicodedata.combining(char))
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in standing)


def clip(text: str, cells: int) -> str:
    """Return one line of `text` cut to `cells` with an ellipsis."""
    flat = line(text, max(cells * 4, 40))
    if width_cells(flat) <= cells:
        return flat
    kept = ""
    for char in flat:
        if width_cells(kept + char) > cells - 1:
            break
        kept += char
    return f"{kept}…"


def count(number: int, word: str) -> str:
    """Return "1 step", "2 steps"."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
