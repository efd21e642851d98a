from __future__ import annotations

import io
from pathlib import Path

from harness.display import Display, LiveDisplay, PlainDisplay, display_on


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def show(display: Display) -> None:
    with display as progress:
        progress.started("mine 1/2", steps=20)
        progress.phase("starting 3 agents")
        for number in range(1, 21):
            progress.step(number)
        progress.event("kill rank 2: injected \x1b[2J[red]", 1.5)
        progress.ended("PASS", "It \x1b[31m recovered [bold]", Path("runs/mine"))
        progress.ended("ERROR", "no disk", None)


def test_plain_lines() -> None:
    stream = io.StringIO()
    display = display_on(stream)
    assert isinstance(display, PlainDisplay)
    show(display)
    assert stream.getvalue().splitlines() == [
        "mine 1/2: 20 steps",
        "  starting 3 agents",
        "  step 4 of 20",
        "  step 8 of 20",
        "  step 12 of 20",
        "  step 16 of 20",
        "  step 20 of 20",
        "     1.500 s  kill rank 2: injected \\x1b[2J[red]",
        "PASS: It \\x1b[31m recovered [bold] (report: runs/mine)",
        "ERROR: no disk (no report could be written)",
    ]


def test_the_live_display_keeps_the_text_of_a_run_from_acting() -> None:
    stream = Terminal()
    display = display_on(stream)
    assert isinstance(display, LiveDisplay)
    show(display)
    said = stream.getvalue()
    assert "kill rank 2: injected \\x1b[2J[red]" in said
    assert "PASS: It \\x1b[31m recovered [bold]" in said
    assert "\x1b[2J" not in said
