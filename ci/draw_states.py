"""Draws docs/recovery-states.md from the controller's transition table; `--check` fails when the file has drifted.

python ci/draw_states.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.resilience.control import machine

TARGET = Path(__file__).resolve().parent.parent / "docs" / "recovery-states.md"


def drawing() -> str:
    """Return the document: the rules of the machine, a diagram, and the whole table."""
    assert machine.__doc__ is not None
    title, _, rules = machine.__doc__.partition("\n\n")
    lines = [
        "# Recovery states of the reference stack",
        "",
        "Drawn by `python ci/draw_states.py` from `harness/resilience/control/machine.py`; do not edit.",
        "",
        title,
        "",
        "```text",
        rules.rstrip(),
        "```",
        "",
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {machine.State.STARTING}",
    ]
    for state, row in machine.TRANSITIONS.items():
        for event, (_, targets) in row.items():
            lines += [f"    {state} --> {target}: {event.__name__}" for target in targets if target is not state]
    lines += [f"    {end} --> [*]" for end in (machine.State.FINISHED, machine.State.STOPPED)]
    lines += ["```", "", "| state | event | handler | may lead to |", "|---|---|---|---|"]
    for state, row in machine.TRANSITIONS.items():
        for event, (handler, targets) in row.items():
            lines.append(f"| {state} | {event.__name__} | `{handler}` | {', '.join(targets)} |")
    lines += ["", "An event that a state does not list is ignored there: it speaks of an older time.", ""]
    return "\n".join(lines)


def main() -> int:
    """Write the file, or compare."""
    text = drawing()
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text() == text:
            return 0
        print(f"{TARGET.name} has drifted from the transition table: run python ci/draw_states.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
