"""junit.xml: one suite a repeat, one case an SLO, and one case for the drill itself.

A check without a verdict is an error, not a skip: a build must not turn green on a drill that showed nothing.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from harness.judge.figures import Value
from harness.report import formats
from harness.report.model import Check, Repeat, Report, VerdictWord
from harness.report.values import to_json_number

# XML 1.0 has no way to write these, not even as a reference.
_IMPOSSIBLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Return the report as JUnit XML."""
    root = ET.Element("testsuites", name=_text(f"rankdrill {report.scenario}"))
    for repeat in report.repeats:
        _suite(root, report, repeat)
    if report.verdict not in [repeat.verdict for repeat in report.repeats]:
        # The run itself failed: no repeat says so.
        suite = ET.SubElement(root, "testsuite", name=_text(report.scenario), timestamp=_stamp(report))
        case = ET.SubElement(suite, "testcase", classname=_text(report.scenario), name="run", time="0")
        _outcome(case, report.verdict, report.headline, "\n".join(report.reasons))
        _count(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _stamp(report: Report) -> str:
    # The schema's timestamp has no zone; it is UTC.
    return _text(report.started_at).removesuffix("Z").removesuffix("+00:00")


def _suite(root: ET.Element, report: Report, repeat: Repeat) -> None:
    name = report.scenario if len(report.repeats) == 1 else f"{report.scenario} repeat {repeat.number}"
    time = f"{repeat.duration_s:.3f}"
    suite = ET.SubElement(root, "testsuite", name=_text(name), timestamp=_stamp(report), time=time)
    properties = ET.SubElement(suite, "properties")
    for key, value in {"seed": repeat.seed, "verdict": repeat.verdict, **repeat.figures}.items():
        if value is not None:
            ET.SubElement(properties, "property", name=_text(key), value=_text(_property(value)))
    drill = ET.SubElement(suite, "testcase", classname=_text(report.scenario), name="drill", time=time)
    # Missed SLOs are cases of their own; the drill's case says whether the drill could be judged at all.
    valid = repeat.verdict in {"PASS", "FAIL"} and not (repeat.verdict == "FAIL" and _no_check_failed(repeat))
    _outcome(drill, "PASS" if valid else repeat.verdict, "; ".join(repeat.reasons), "\n".join(repeat.reasons))
    for check in repeat.checks:
        _case(suite, report, check)
    _count(suite)


def _property(value: Value | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(to_json_number(value) if isinstance(value, float) else value)


def _no_check_failed(repeat: Repeat) -> bool:
    return all(check.verdict != "FAIL" for check in repeat.checks)


def _case(suite: ET.Element, report: Report, check: Check) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(report.scenario), name=_text(check.slo), time="0")
    body = f"measured {formats.figure(check.slo, check.value)}, limit {check.limit}\n{check.reason}"
    _outcome(case, check.verdict, check.reason, body)


def _outcome(case: ET.Element, verdict: VerdictWord, message: str, body: str) -> None:
    if verdict == "PASS":
        return
    tag = "failure" if verdict == "FAIL" else "error"
    element = ET.SubElement(case, tag, type=verdict, message=_text(formats.line(message, 500)))
    element.text = _text(body)


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", "0")


def _text(text: str) -> str:
    return _IMPOSSIBLE.sub("\ufffd", formats.visible(text, 20_000))
