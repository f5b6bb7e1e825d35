"""The files of a gate: its baseline, a Markdown summary for a pull request, and JUnit XML for a test report."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import replacing
from pairscale.core.options import require_path
from pairscale.core.provenance import Provenance, fingerprint, utc_now
from pairscale.core.tables import listed
from pairscale.evaluate.matching import name_of_input
from pairscale.evaluate.result import write_document
from pairscale.evaluate.suite import as_words, id_key, input_key
from pairscale.evaluate.traces import InMemoryTraceSource, Trace, TraceRef, TraceSource
from pairscale.evaluate.wording import STATES, VERDICT_WORDS, asked_words, percent, share_words

if TYPE_CHECKING:
    from pairscale.evaluate.gate import GateCriterion, GateResult

__all__ = [
    "Baseline",
    "gate_junit",
    "gate_markdown",
    "load_answers",
    "read_baseline",
    "require_file",
    "require_same_answers",
    "require_same_inputs",
    "step_summary_file",
    "write_baseline",
    "write_reports",
]

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]#!|<>&~$])|^(?:(\d+)([.)])|([-+=]))")


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
            f"`step_summary=` needs the variable {_STEP_SUMMARY}, which GitHub sets; elsewhere give `summary=`",
            "step_summary",
        )
    return Path(path)


def write_reports(found: GateResult, *, summary: object | None, step_summary: bool, junit: object | None) -> None:
    """Write what was asked for: a Markdown summary, the summary of a GitHub step, JUnit XML.

    Raises:
        FileFormatError: a file cannot be written.
    """
    if summary is not None:
        _write(gate_markdown(found), Path(str(summary)))
    if junit is not None:
        _write(gate_junit(found), Path(str(junit)))
    if step_summary:
        path = step_summary_file()
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(gate_markdown(found))
        except OSError as error:
            raise FileFormatError(f"{path} cannot be written: {error.strerror}") from None


def _write(text: str, path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")


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
    """A text that Markdown shows as it is."""
    return _MARKDOWN.sub(
        lambda found: f"{found[2] or ''}\\{found[1] or found[3] or found[4]}", _xml(" ".join(text.split()))
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# JUnit


def gate_junit(gate: GateResult) -> str:
    """The result of a gate as JUnit XML: one test case per criterion.

    A verdict that the gate fails on is a ``failure``, and ``untested`` is an ``error``; a gate that could not run is an
    ``error`` in every test case.
    """
    seconds = 0.0 if gate.result is None else gate.result.duration_ms / 1000
    names = [one.key for one in gate.criteria] or ["gate"]
    suites = ET.Element("testsuites")
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": "pairscale gate",
            "id": "0",
            "package": "pairscale",
            "timestamp": utc_now()[:19],
            "hostname": "localhost",
            "tests": str(len(names)),
            "time": f"{seconds:.3f}",
        },
    )
    ET.SubElement(suite, "properties")
    counts = {"failure": 0, "error": 0}
    for number, name in enumerate(names):
        each = {"name": _xml(name), "classname": "pairscale.gate", "time": f"{seconds / len(names):.3f}"}
        case = ET.SubElement(suite, "testcase", each)
        kind = None
        if gate.problem is not None:
            kind, why, text = "error", "could-not-run", gate.problem
        elif gate.criteria:
            kind, why, text = _failure(gate.criteria[number])
        if kind is not None:
            counts[kind] += 1
            ET.SubElement(case, kind, {"message": _xml(text.partition("\n")[0]), "type": why}).text = _xml(text)
    suite.attrib |= {"failures": str(counts["failure"]), "errors": str(counts["error"])}
    ET.SubElement(suite, "system-out").text = _xml(str(gate))
    ET.SubElement(suite, "system-err")
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _failure(one: GateCriterion) -> tuple[str | None, str, str]:
    """Whether a test case failed or has an error, its type, and the words of it."""
    kind = None
    if one.failed:
        kind = "failure"
    elif one.verdict == "untested":
        kind = "error"
    lost = "".join(f"\nlost: {task}" for task in one.lost)
    return kind, VERDICT_WORDS[one.verdict], f"{one.sentence}\n{_capital(one.advice)}.{lost}"


def _xml(text: str) -> str:
    """A text without what XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


# The baseline

_KIND = "pairscale baseline"
_VERSION = 1
_HEX = 64


@dataclass(frozen=True, slots=True)
class Baseline:
    """Recorded answers of A.

    Attributes:
        answers: by task, in their order; a task may have several.
        provenance: when, by which version and from which file they were recorded.
        digest: SHA-256 over the answers.
    """

    answers: tuple[tuple[str, Trace], ...]
    provenance: Mapping[str, Any]
    digest: str

    @property
    def source(self) -> InMemoryTraceSource:
        """The answers as a source."""
        return InMemoryTraceSource(self.answers)

    def __str__(self) -> str:
        settings = self.provenance.get("settings") or {}
        day = str(self.provenance.get("created_at"))[:10]
        return f"{len(self.answers):,} answers of {settings.get('name')}, recorded {day} from {settings.get('source')}"


async def load_answers(source: TraceSource) -> list[tuple[str, Trace]]:
    """All answers of a source with the names of their tasks; one that has none is named by its text.

    Raises:
        InputError: an answer has neither a name nor a text of its task.
    """
    return [(_name(ref), await source.load(ref)) async for ref in source.list()]


def _name(ref: TraceRef) -> str:
    if ref.task_id is not None:
        return ref.task_id
    if isinstance(asked := ref.metadata.get("input"), str) and asked.strip():
        return name_of_input(asked)
    where = ref.metadata.get("where") or f"trace {ref.trace_id}"
    raise InputError(f"{where} has no task_id and no input, by which answers are paired")


def write_baseline(
    answers: list[tuple[str, Trace]], path: str | os.PathLike[str], *, source: object, name: str
) -> Baseline:
    """Record the answers of A in a JSON file, in place of what it held.

    Args:
        answers: by task.
        path: the file.
        source: where they came from, in a word.
        name: what A is called.

    Raises:
        FileFormatError: the file cannot be written.
        InputError: there is no answer.
    """
    if not answers:
        raise InputError(f"there is no answer to record in {path}")
    rows = json.loads(json.dumps([{"task_id": task, **trace.to_dict()} for task, trace in answers], default=str))
    digest = fingerprint(rows, _HEX)
    provenance = asdict(Provenance("gate", {"name": name, "source": str(source)}, inputs={"answers": digest}))
    document = {"kind": _KIND, "version": _VERSION, "provenance": provenance, "sha256": digest, "answers": rows}
    write_document(document, Path(path))
    return Baseline(tuple(answers), provenance, digest)


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Read a baseline, and check that nothing in it was changed.

    Raises:
        FileFormatError: there is none, it is no baseline, or its answers are not those that were recorded.
    """
    again = "record it with `update_baseline=True`"
    if not Path(path).exists():
        raise FileFormatError(f"there is no baseline {path}; {again}")
    try:
        found = json.loads(read_bytes(path))
    except ValueError as error:
        raise FileFormatError(f"{path} is not a baseline in JSON ({error}); {again}") from None
    if not isinstance(found, dict) or found.get("kind") != _KIND or not isinstance(found.get("answers"), list):
        raise FileFormatError(f"{path} is not a baseline of a gate; name another file, or {again}")
    if found.get("version") != _VERSION:
        raise FileFormatError(f"{path} is a baseline of version {found.get('version')!r}, not {_VERSION}; {again}")
    rows = found["answers"]
    if fingerprint(rows, _HEX) != found.get("sha256"):
        raise FileFormatError(
            f"{path} was changed after it was recorded: its SHA-256 does not fit its answers; {again}"
        )
    answers = []
    for number, row in enumerate(rows, start=1):
        kept = {key: value for key, value in row.items() if key != "task_id"}
        answers.append((str(row["task_id"]), Trace.from_dict(kept, f"{path}, answer {number}")))
    return Baseline(tuple(answers), found.get("provenance") or {}, found["sha256"])


def require_same_answers(baseline: Baseline, answers: list[tuple[str, Trace]], path: object) -> None:
    """Refuse answers of A that are not those of the baseline.

    Raises:
        InputError: that names the tasks.
    """
    known = _outputs(baseline.answers)
    given = _outputs(answers)
    apart = [task for task in {**known, **given} if known.get(task) != given.get(task)]
    if apart:
        raise InputError(
            f"the answers of A are not those of the baseline {path}: {listed(apart, 5)}; leave A out to compare with "
            "the baseline, or give `update_baseline=True` to record A as it is now"
        )


def _outputs(answers: Iterable[tuple[str, Trace]]) -> dict[str, list[tuple[str, str | None]]]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for task, trace in answers:
        found.setdefault(task, []).append((trace.output, trace.exception))
    return found


def require_same_inputs(a: list[tuple[str, Trace]], b: list[tuple[str, Trace]]) -> None:
    """Refuse answers to different questions under the same name.

    Raises:
        InputError: that names the tasks.
    """
    asked = {id_key(task): _asked(trace) for task, trace in a}
    pairs = {task: (asked.get(id_key(task)), _asked(trace)) for task, trace in b}
    apart = [task for task, (one, other) in pairs.items() if one and other and one != other]
    if apart:
        raise InputError(
            f"A and B answered different inputs under the same task_id: {listed(apart, 5)}; have both answer the "
            "same tasks, and record the baseline again if there is one"
        )


def _asked(trace: Trace) -> str:
    return input_key(as_words(trace.metadata.get("input")))
