from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import StoreError, UsageError
from harness.report import schema_doc
from harness.report.environment import collect
from harness.report.folder import read, render_folder, save
from harness.store import RunFolder
from tests.report.report_samples import Shape, report_of

ROOT = Path(__file__).parents[2]


def test_a_report_is_saved_in_every_format_and_read_again(tmp_path: Path) -> None:
    report = report_of(Shape())
    save(report, RunFolder(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["junit.xml", "report.html", "report.json", "report.md"]
    assert read(tmp_path) == report


def test_a_finished_run_is_rendered_again(tmp_path: Path) -> None:
    save(report_of(Shape()), RunFolder(tmp_path))
    page = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    (tmp_path / "junit.xml").write_text("old")
    assert render_folder(tmp_path).startswith("PASS  kill-one-rank")
    assert (tmp_path / "report.html").read_bytes() == page
    assert (tmp_path / "junit.xml").read_text() != "old"


def test_when_the_disk_fills_up_the_numbers_are_there_first(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StoreError):
        save(report_of(Shape()), RunFolder(tmp_path))
    assert read(tmp_path).verdict == "PASS"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "holds no report.json: name the folder of a finished run"),
        ("{", "is no report of schema version 1"),
        ("{}", "is no report of schema version 1: scenario: Field required"),
        ('{"schema_version": 2}', "schema version 1: schema_version: Input should be 1"),
    ],
)
def test_what_is_no_report_is_refused_in_words(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "report.json").write_text(content)
    with pytest.raises(UsageError, match=words):
        read(tmp_path)


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read(tmp_path)


def test_the_documented_schema_is_the_model() -> None:
    said = (ROOT / "docs/report-schema.md").read_text(encoding="utf-8")
    assert said == schema_doc.text(), "run: python -m harness.report.schema_doc docs/report-schema.md"


def test_every_key_of_the_schema_is_explained() -> None:
    assert "|  |" not in schema_doc.text()


def test_the_environment_is_read_without_naming_the_host() -> None:
    import platform

    environment = collect()
    assert environment.cores >= 1
    assert len(environment.load_average) == 3
    assert len(environment.host) == 12
    assert platform.node() not in environment.model_dump_json()
