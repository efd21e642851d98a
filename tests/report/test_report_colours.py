"""Whatever is written can be read: contrast by the web's own rule (WCAG AA, 4.5 to 1), in light and in dark."""

from __future__ import annotations

import re
from importlib import resources

import pytest

CSS = resources.files("harness.report").joinpath("templates/report.css").read_text(encoding="utf-8")


def palette(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


LIGHT = palette(CSS.partition("@media")[0])
DARK = palette(CSS.partition("@media screen and (prefers-color-scheme: dark)")[2].partition("* {")[0])
VERDICTS = ("pass", "fail", "inconclusive", "error")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *((ink, ground) for ink in ("text", "soft") for ground in ("card", "page", "code")),
    *((ink, "card") for ink in ("fault", "detected", "swapped", "restored", "first", "healed", *VERDICTS)),
    *((ink, f"{word}-bg") for word in VERDICTS for ink in ("text", "soft", word)),
    *((f"g{number}t", f"g{number}{shade}") for number in range(6) for shade in "eo"),
]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_everything_written_can_be_read(colours: dict[str, str]) -> None:
    weak = {pair: round(found, 2) for pair in PAIRS if (found := contrast(colours[pair[0]], colours[pair[1]])) < 4.5}
    assert not weak


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_neighbouring_steps_differ(colours: dict[str, str]) -> None:
    assert all(contrast(colours[f"g{number}e"], colours[f"g{number}o"]) > 1.15 for number in range(6))


def test_both_palettes_name_the_same_colours() -> None:
    assert set(LIGHT) == set(DARK)
