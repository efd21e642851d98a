from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_guide_quotes_the_code_as_it_is() -> None:
    guide = (ROOT / "docs/writing-an-injector.md").read_text()
    code = "".join((ROOT / "chaos/injectors" / name).read_text() for name in ("noop.py", "process.py"))
    quotes = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    assert quotes
    stale = [quote for quote in quotes if quote not in code]
    assert not stale, "\n".join(stale)
