"""What renderers make of a report: nothing of a run's text acts, and nothing comes from outside."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from harness.observe.observation import Claim, Observation, ObserverLost
from harness.report import formats, html, junit, markdown, text
from harness.report.folder import companions
from harness.report.model import Report
from tests.report.report_samples import START_S, Shape, report_of

HOSTILE = (
    "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(1)>\"'`&amp;]]>--> "
    "\x1b[31mred\x07\r\x00\x85 \u202eoverride\u2066 \u05e9\u05dc\u05d5\u05dd "
    "[link](http://evil.example) | cell |\n# heading\n"
    "@everyone www.evil.example {{ 7*7 }} {% raw %} [bold]markup[/bold]"
)
VOID = {"meta", "br", "link", "img", "input", "hr"}


def hostile_report() -> Report:
    """Text of a run wherever a run's text can go."""
    seen: list[Observation] = [
        ObserverLost(START_S + 8, HOSTILE),
        Claim(START_S + 8.1, START_S + 8, HOSTILE, 1, 2, HOSTILE, 0, True, HOSTILE),
    ]
    words: dict[str, Any] = dict.fromkeys(("claim", "why", "workload", "stack", "launch", "file"), HOSTILE)
    lists = {name: [HOSTILE, "ok"] for name in ("certifies", "not_", "tags", "backend")}
    report = report_of(Shape(), more=seen, **{**words, **lists})
    repeat = report.repeats[0]
    faults = [repeat.faults[0].model_copy(update={"kind": HOSTILE, "target": HOSTILE, "proof": HOSTILE, "id": HOSTILE})]
    drawing = repeat.timeline
    members = [member.model_copy(update={"name": HOSTILE, "exit": HOSTILE}) for member in drawing.members]
    marks = [mark.model_copy(update={"text": HOSTILE}) for mark in drawing.marks]
    drawing = drawing.model_copy(update={"members": members, "marks": marks, "ended": HOSTILE})
    repeat = repeat.model_copy(update={"faults": faults, "timeline": drawing})
    changes = {"scenario": HOSTILE, "replay": HOSTILE, "headline": HOSTILE, "repeats": [repeat]}
    slos = [slo.model_copy(update={"slo": HOSTILE, "reason": HOSTILE, "limit": HOSTILE}) for slo in report.slos]
    return report.model_copy(update={**changes, "slos": slos, "reasons": [HOSTILE, "another"]})


REPORTS: dict[str, Callable[[], Report]] = {
    "pass": lambda: report_of(Shape()),
    "pass of ten": lambda: report_of(*(Shape(seed=seed) for seed in range(10))),
    "fail": lambda: report_of(Shape(redo=4, dead_s=1.4, alarms=(9, 33))),
    "never again, one of two": lambda: report_of(Shape(), Shape(dead_s=None)),
    "inconclusive": lambda: report_of(Shape(), more=[ObserverLost(START_S + 8, "a probe file")]),
    "error": lambda: report_of(error="the disk is full"),
    "no fault": lambda: report_of(Shape(kill_rank=None)),
    "64 ranks": lambda: report_of(Shape(ranks=64, kill_rank=37, second_kill=(31, 5), spares=2)),
    "hostile": hostile_report,
}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, and every element and attribute is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend((name, value or "") for name, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(report: Report) -> Page:
    page = Page()
    page.feed(html.render(report))
    page.close()
    assert page.open == []
    return page


@pytest.fixture(params=REPORTS, scope="module")
def report(request: pytest.FixtureRequest) -> Report:
    return REPORTS[request.param]()


def test_the_page_loads_nothing_and_runs_nothing(report: Report) -> None:
    page = read(report)
    assert not {"script", "link", "img", "iframe", "object", "embed", "image", "use", "base", "form"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not {"src", "href", "xlink:href", "srcset", "action", "style"} & names
    assert not [name for name in names if name.startswith("on")]
    targets = [target for _, value in page.attributes for target in re.findall(r"url\((.*?)\)", value)]
    assert all(target.startswith("#hatch-") for target in targets)
    css = html.render(report).partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in css
    assert "@import" not in css
    policy = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_patterns_are_named_once(report: Report) -> None:
    names = [value for name, value in read(report).attributes if name == "id"]
    assert len(names) == len(set(names))


def test_the_page_says_what_was_measured(report: Report) -> None:
    words = " ".join(" ".join(read(report).words).split())
    for said in [report.verdict, *(formats.limit(slo) for slo in report.slos if slo.limit_value is not None)]:
        assert " ".join(formats.visible(said).split()) in words
    for name, stats in report.summary.items():
        assert formats.figure(name, stats.p50) in words


def test_no_control_nor_direction_mark_reaches_any_format(report: Report) -> None:
    everything = [*companions(report).values(), text.as_text(report, None)]
    for content in everything:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", content)


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(junit.render(report))  # noqa: S314  # it was written a moment ago, by us


def test_junit_is_xml_whose_counts_are_right(report: Report) -> None:
    root = parsed(report)
    assert root.tag == "testsuites"
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(suite.attrib["errors"]) == len(suite.findall("testcase/error"))
    red = root.findall(".//failure") + root.findall(".//error")
    assert bool(red) == (report.verdict != "PASS")
    assert {"PASS": set(), "FAIL": {"FAIL"}}.get(report.verdict, {report.verdict}) <= {
        one.attrib["type"] for one in red
    }


def test_junit_holds_the_figures_as_properties() -> None:
    root = parsed(report_of(Shape(dead_s=None)))
    found = {one.attrib["name"]: one.attrib["value"] for one in root.iter("property")}
    assert found["first_step_s"] == "inf"
    assert found["weights_equal"] == "false"
    assert found["verdict"] == "FAIL"
    assert float(found["detect_s"]) == pytest.approx(0.031)


def test_markdown_keeps_its_tables_whole(report: Report) -> None:
    rows = [line for line in markdown.render(report).split("\n") if line.startswith("|")]
    columns = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert set(columns) <= {8}


def test_markdown_shows_hostile_text_as_text() -> None:
    shown = markdown.render(hostile_report()).rpartition("## Run it again")[0]
    assert "<script" not in shown.replace("\\<script", "")
    assert not re.search(r"(?<!\\)\]\(", shown)
    assert not re.search(r"(?<!\\)@everyone", shown)
    assert "http://" not in shown
    assert "\n# heading" not in shown


def test_a_fence_is_longer_than_any_within() -> None:
    assert markdown.code("a ```` b") == "`````\na ```` b\n`````"


def test_plain_text_is_plain_and_the_same_everywhere(report: Report) -> None:
    shown = text.as_text(report, None)
    assert shown == text.as_text(report, None)
    assert shown.startswith(report.verdict)
    long = [line for line in shown.split("\n") if len(line) > text.PLAIN_WIDTH]
    assert all(
        line.startswith(("backend:", "report:", "again:", "  f0", HOSTILE[:8])) or HOSTILE[:8] in line for line in long
    )


class Stream(io.TextIOWrapper):
    """A stream of some encoding that may be a terminal."""

    def __init__(self, encoding: str, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def shown(self) -> str:
        self.seek(0)
        return self.read()


def test_a_pipe_gets_no_colours() -> None:
    stream = Stream("utf-8", terminal=False)
    text.print_summary(report_of(Shape()), None, stream)
    shown = stream.shown()
    assert "\x1b" not in shown
    assert "█" in shown


def test_a_terminal_without_unicode_gets_ascii() -> None:
    stream = Stream("ISO-8859-1", terminal=True)
    text.print_summary(report_of(Shape()), None, stream)
    text.print_summary(hostile_report(), None, stream)
    shown = stream.shown()
    assert shown.isascii()
    assert "<= 200 ms" in shown


def test_a_terminal_gets_colours_and_nothing_of_the_runs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Stream("utf-8", terminal=True)
    text.print_summary(hostile_report(), None, stream)
    shown = stream.shown()
    assert "\x1b[1;33mINCONCLUSIVE" in shown
    assert shown.count("\x1b") == len(re.findall("\x1b\\[[0-9;]+m", shown))
    assert "\\x1b[31mred" in shown


def test_the_summary_says_verdict_figures_fault_and_where_the_report_is() -> None:
    shown = text.as_text(report_of(Shape()), Path("runs/x y"))
    for said in (
        "PASS  kill-one-rank",
        "first_step_s          112 ms  ≤ 1 s",
        "f0 kill rank 2: injected at 6.3",
        "pid 4102 is gone",
        "1 first step of the whole world +112 ms",
        "report:  runs/x y/report.html",
        "again:   rankdrill run scenarios/kill-one-rank.yaml",
        "does not certify NCCL or RDMA",
    ):
        assert said in shown


def test_a_report_of_64_ranks_shows_few_rows_on_a_terminal() -> None:
    shown = text.as_text(report_of(Shape(ranks=64, kill_rank=37)), None)
    assert shown.count("\n  rank ") == 8
    assert "rank 37" in shown
    assert "… and 56 more ranks" in shown


def test_the_page_of_64_ranks_and_ten_repeats_stays_small() -> None:
    report = report_of(*(Shape(ranks=64, kill_rank=37, seed=seed, steps=40) for seed in range(10)))
    assert len(html.render(report)) < 2_000_000
