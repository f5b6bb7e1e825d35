"""The files of a gate: a Markdown summary for a pull request, and JUnit XML for a test report."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import replacing
from pairscale.core.options import require_path
from pairscale.core.provenance import utc_now
from pairscale.evaluate.gate_wording import STATES, VERDICT_WORDS, percent, share_words
from pairscale.evaluate.wording import asked_words

if TYPE_CHECKING:
    from pairscale.evaluate.gate_result import GateCriterion, GateResult

__all__ = ["append_step_summary", "gate_junit", "gate_markdown", "require_file", "step_summary_file", "write_text"]

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]#!|<>&~$])|^(?:(\d+)([.)])|([-+=]))")
_LINKED = re.compile(r"[@#](?=\w)|:/(?=/)|:(?=[\w+\\-]+:)|\bwww(?=\.)", re.IGNORECASE)
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069]")  # the letters behind are shown in another order


def require_file(path: object, name: str) -> Path:
    """A file that can be written, refused before any work is done rather than after it.

    Raises:
        InputError: it cannot be written there.
    """
    found = require_path(path, name)
    if found.is_dir():
        raise InputError(f"{name} must be a file, not the folder {found}", name)
    folder = found.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"{name} must be a file in a folder that exists and can be written to, not {found}", name)
    return found


def step_summary_file() -> Path:
    """The file that GitHub shows as the summary of a step.

    Raises:
        InputError: this is no step of a GitHub workflow.
    """
    path = os.environ.get(_STEP_SUMMARY)
    if not path:
        raise InputError(
            f"`step_summary=` needs the variable {_STEP_SUMMARY}, which GitHub sets; elsewhere give `summary=`"
        )
    return Path(path)


def write_text(text: str, path: Path) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")


def append_step_summary(text: str) -> None:
    """Add a text to the summary of this step.

    Raises:
        FileFormatError: the file cannot be written.
    """
    path = step_summary_file()
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written: {error.strerror}") from None


# Markdown


def gate_markdown(gate: GateResult) -> str:
    """The result of a gate for a pull request.

    Names and tasks come from files, so everything that Markdown or HTML would take for more than a letter is escaped.
    """
    lines = [f"### pairscale gate: {STATES[gate.exit_code]}", ""]
    if gate.problem is not None:
        lines += [_escaped(f"{gate.problem}."), ""]
    if not gate.criteria:
        rest = [] if gate.problem is not None else [_escaped(_capital(f"{gate}.")), ""]
        return "\n".join([*lines, *rest])
    run = gate.result
    b = _escaped("B" if run is None else run.variant_b)
    lines += [f"| criterion | verdict | wins of {b} | true share | cases |", "| --- | --- | ---: | ---: | ---: |"]
    for one in gate.criteria:
        mark = "**" if one.failed or one.verdict == "untested" else ""
        ends = "" if one.lower is None else f"{percent(one.lower)} to {percent(one.upper)}"
        verdict = f"{mark}{one.verdict}{mark}"
        lines.append(f"| {_escaped(one.key)} | {verdict} | {percent(one.rate)} | {ends} | {one.n:,} |")
    lines.append("")
    for one in gate.criteria:
        head = f"**{_escaped(one.key)}**: " if len(gate.criteria) > 1 else ""
        lines += [f"{head}{_escaped(_capital(one.sentence))}. {_escaped(_capital(one.advice))}.", ""]
    lines += [f"<sub>{' · '.join(_escaped(part) for part in _facts(gate))}</sub>", ""]
    return "\n".join(lines)


def _facts(gate: GateResult) -> list[str]:
    how = "all cases, looked at once" if gate.fixed else "stops when it is decided"
    facts = [f"fails if {', '.join(gate.fail_if)}", f"margin {share_words(gate.margin)}", how]
    if gate.baseline is not None:
        facts.append(f"baseline: {gate.baseline}")
    run = gate.result
    if run is None:
        return facts
    if run.asked or run.cost:
        facts.append(f"{asked_words(run)}{f', ${run.cost:.4f}' if run.cost else ''}")
    if run.unasked:
        facts.append(f"{len(run.unasked):,} tasks not {'needed' if run.stopped == 'decided' else 'asked'}")
    one = gate.criteria[0]
    if one.unanswered:
        facts.append(f"{one.unanswered:,} cases without an answer of the judge")
    if one.failures_a or one.failures_b:
        facts.append(
            f"failures: {run.variant_a} {one.failures_a:,}, {run.variant_b} {one.failures_b:,} ({run.failures})"
        )
    return facts


def _escaped(text: str) -> str:
    """A text that Markdown shows as it is; what GitHub would make a mention, a link or an emoji of is broken up."""
    plain = _TURNED.sub("\N{REPLACEMENT CHARACTER}", _xml(" ".join(text.split())))
    escaped = _MARKDOWN.sub(lambda found: f"{found[2] or ''}\\{found[1] or found[3] or found[4]}", plain)
    return _LINKED.sub(r"\g<0><!-- -->", escaped)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# JUnit


def gate_junit(gate: GateResult) -> str:
    """The result of a gate as JUnit XML: one test case per criterion.

    A verdict that the gate fails on is a ``failure``, and ``untested`` is an ``error``; a gate that could not run is an
    ``error`` in every test case.
    """
    seconds = 0.0 if gate.result is None else gate.result.duration_ms / 1000
    cases = gate.criteria
    failed = 0 if gate.problem is not None else sum(one.failed for one in cases)
    untested = sum(one.verdict == "untested" for one in cases)
    errors = untested if gate.problem is None else max(1, len(cases))
    suites = ET.Element("testsuites")
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": "pairscale gate",
            "id": "0",
            "package": "pairscale",
            "timestamp": utc_now()[:19],
            "hostname": platform.node() or "localhost",
            "tests": str(max(len(cases), errors)),
            "failures": str(failed),
            "errors": str(errors),
            "time": f"{seconds:.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("fail_if", ",".join(gate.fail_if)),
        ("margin", f"{gate.margin:g}"),
        ("level", f"{gate.level:g}"),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": value})
    each = seconds / max(1, len(cases))
    for one in cases:
        _testcase(suite, one, gate.problem, each)
    if not cases and gate.problem is not None:
        case = ET.SubElement(suite, "testcase", {"name": "gate", "classname": "pairscale.gate", "time": "0.000"})
        ET.SubElement(case, "error", {"message": _xml(gate.problem), "type": "could-not-run"}).text = _xml(gate.problem)
    ET.SubElement(suite, "system-out").text = _xml(str(gate))
    ET.SubElement(suite, "system-err")
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=False).join(
        ['<?xml version="1.0" encoding="UTF-8"?>\n', "\n"]
    )


def _testcase(suite: ET.Element, one: GateCriterion, problem: str | None, seconds: float) -> None:
    named = {"name": _xml(one.key), "classname": "pairscale.gate", "time": f"{seconds:.3f}"}
    case = ET.SubElement(suite, "testcase", named)
    if problem is not None:
        ET.SubElement(case, "error", {"message": _xml(problem), "type": "could-not-run"}).text = _xml(problem)
    elif one.failed or one.verdict == "untested":
        words = f"{one.sentence}. {_capital(one.advice)}."
        lost = "".join(f"\nlost: {task}" for task in one.lost)
        said = {"message": _xml(one.sentence), "type": VERDICT_WORDS[one.verdict]}
        ET.SubElement(case, "failure" if one.failed else "error", said).text = _xml(f"{_capital(words)}{lost}")


def _xml(text: str) -> str:
    """A text without what XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
