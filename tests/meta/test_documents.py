"""What the documents promise is there, and what is there is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaos.fault import KINDS
from harness.judge.measure import FIGURES
from harness.scenario import load
from tests.meta.sources import ROOT

DOCUMENTS = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]))
SCENARIOS = tuple(sorted((ROOT / "scenarios").glob("*.yaml")))
COMMAND = re.compile(r"`[^`]*\b(rankdrill|bash ci|pytest|python)\b[^`]*`|```")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def sections(text: str) -> list[str]:
    """Split a document at its headings, those inside code blocks not counted."""
    plain = re.sub(
        r"^```.*?^```", lambda block: block.group().replace("\n#", "\n "), text, flags=re.MULTILINE | re.DOTALL
    )
    return re.split(r"^(?=#+ )", plain, flags=re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_kind_is_documented(kind: str) -> None:
    text = (ROOT / "docs/faults.md").read_text()
    section = next((part for part in sections(text) if part.startswith(f"## {kind}\n")), None)
    assert section is not None, f"docs/faults.md has no section '## {kind}'"
    missing = [word for word in ("Mechanism.", "Proof.", "Undo.", "What it cannot do.") if f"**{word}**" not in section]
    missing += [param.name for param in KINDS[kind].params if f"| `{param.name}` |" not in section]
    assert not missing, f"docs/faults.md, {kind}: {missing}"


def test_no_fault_is_documented_that_does_not_exist() -> None:
    text = (ROOT / "docs/faults.md").read_text()
    documented = {part.split("\n")[0].removeprefix("## ") for part in sections(text) if "**Mechanism.**" in part}
    assert documented == set(KINDS)


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_documented(figure: str) -> None:
    assert f"`{figure}`" in (ROOT / "docs/figures.md").read_text(), f"docs/figures.md does not explain `{figure}`"


def test_there_are_scenarios() -> None:
    assert "kill-one-rank" in {path.stem for path in SCENARIOS}


@pytest.mark.parametrize("path", SCENARIOS, ids=named)
def test_every_scenario_loads(path: Path) -> None:
    scenario = load(path)
    assert scenario.scenario == path.stem, "a scenario is named like its file"


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing, missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_what_was_measured_names_its_command(path: Path) -> None:
    """A number without the command that prints it cannot be checked, and is wrong after the next change."""
    unproven = [
        section.split("\n")[0]
        for section in sections(path.read_text())
        if re.search(r"\bmeasured\b[^.\n]*\d", section, flags=re.IGNORECASE) and not COMMAND.search(section)
    ]
    assert not unproven, unproven


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_files_that_documents_name_exist(path: Path) -> None:
    """Paths in backticks below the project's own folders."""
    paths = re.findall(r"`((?:chaos|harness|scenarios|tests|ci|docs)/[\w./-]*[\w/])`", path.read_text())
    missing = sorted({target for target in paths if not (ROOT / target).exists()})
    assert not missing, missing
