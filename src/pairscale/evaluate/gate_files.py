"""The files of a gate: its baseline, a Markdown summary for a pull request, and JUnit XML for a test report."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import replacing
from pairscale.core.options import require_path
from pairscale.core.provenance import Provenance, fingerprint, utc_now
from pairscale.evaluate.result import write_document
from pairscale.evaluate.tasks import InMemoryTraceSource, Trace, TraceRef, TraceSource, name_of_input
from pairscale.evaluate.wording import STATES, asked_words, failures_words, percent, share_words
from pairscale.runtime import run_sync

if TYPE_CHECKING:
    from pairscale.evaluate.gate import GateResult

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


def write_reports(found: GateResult, *, summary: object | None, junit: object | None) -> None:
    """Write what was asked for: a Markdown summary, JUnit XML.

    Raises:
        FileFormatError: a file cannot be written.
    """
    for path, write in ((summary, gate_markdown), (junit, gate_junit)):
        if path is not None:
            with replacing(Path(str(path))) as temporary:
                temporary.write_text(write(found), "utf-8")


# Markdown


def gate_markdown(gate: GateResult) -> str:
    """The result of a gate for a pull request.

    Names and tasks come from files, so everything that Markdown or HTML would take for more than a letter is escaped.
    """
    lines = [f"### pairscale gate: {STATES[gate.exit_code]}", ""]
    if gate.problem is not None or not gate.criteria:
        return "\n".join([*lines, _escaped(_capital(f"{gate}.")), ""])
    run = gate.result
    b = _escaped("B" if run is None else run.variant_b)
    lines += [f"| criterion | verdict | wins of {b} | true share | cases |", "| --- | --- | ---: | ---: | ---: |"]
    for one in gate.criteria:
        mark = "**" if one.failed or one.verdict == "untested" else ""
        ends = f"{percent(one.lower)} to {percent(one.upper)}"
        figures = f"{mark}{one.verdict}{mark} | {percent(one.rate)} | {ends} | {one.n:,}"
        lines.append(f"| {_escaped(one.key)} | {figures} |")
    lines += [f"\n{_escaped(_capital(one.sentence))}. {_escaped(_capital(one.advice))}." for one in gate.criteria]
    how = "all cases, looked at once" if gate.fixed else "stops when it is decided"
    facts = [f"fails if {', '.join(gate.fail_if)}", f"margin {share_words(gate.margin)}", how]
    facts += [asked_words(run), failures_words(run, gate.criteria[0].key)] if run is not None else []
    return "\n".join([*lines, f"\n<sub>{' · '.join(_escaped(fact) for fact in facts if fact)}</sub>", ""])


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
    names = [one.key for one in gate.criteria] or ["gate"]
    problems: list[tuple[str, str, str] | None] = [None for _ in names]
    if gate.problem is not None:
        problems = [("error", "could-not-run", gate.problem) for _ in names]
    else:
        for at, one in enumerate(gate.criteria):
            if one.failed or one.verdict == "untested":
                lost = "".join(f"\nlost: {task}" for task in one.lost)
                text = f"{one.sentence}\n{_capital(one.advice)}.{lost}"
                problems[at] = ("failure" if one.failed else "error", one.verdict, text)
    kinds = [problem[0] for problem in problems if problem is not None]
    counts = {"tests": len(names), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    suites = ET.Element("testsuites")
    about = {"name": "pairscale gate", "id": "0", "package": "pairscale", "hostname": "localhost", "time": "0"}
    counted = {name: str(n) for name, n in counts.items()}
    suite = ET.SubElement(suites, "testsuite", {**about, "timestamp": utc_now()[:19], **counted})
    ET.SubElement(suite, "properties")
    for name, problem in zip(names, problems, strict=True):
        case = ET.SubElement(suite, "testcase", {"name": _xml(name), "classname": "pairscale.gate", "time": "0"})
        if problem is not None:
            kind, why, text = problem
            ET.SubElement(case, kind, {"message": _xml(text.partition("\n")[0]), "type": why}).text = _xml(text)
    ET.SubElement(suite, "system-out").text = _xml(str(gate))
    ET.SubElement(suite, "system-err")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


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


def record_baseline(source: TraceSource, path: str | os.PathLike[str], *, source_name: object, name: str) -> Baseline:
    """Record the answers of A in a JSON file, in place of what it held.

    Args:
        source: the answers.
        path: the file.
        source_name: where they came from, in a word.
        name: what A is called.

    Raises:
        FileFormatError: the file cannot be written.
        InputError: an answer has neither a name nor a text of its task.
    """

    async def load() -> list[tuple[str, Trace]]:
        return [(_name(ref), await source.load(ref)) async for ref in source.list()]

    answers = run_sync(load)
    rows = json.loads(json.dumps([{"task_id": task, **trace.to_dict()} for task, trace in answers], default=str))
    digest = fingerprint(rows, _HEX)
    provenance = asdict(Provenance("gate", {"name": name, "source": str(source_name)}, inputs={"answers": digest}))
    document = {"kind": _KIND, "version": _VERSION, "provenance": provenance, "sha256": digest, "answers": rows}
    write_document(document, Path(path))
    return Baseline(tuple(answers), provenance, digest)


def _name(ref: TraceRef) -> str:
    if ref.task_id is not None:
        return ref.task_id
    asked = ref.metadata.get("input")
    if not isinstance(asked, str) or not asked.strip():
        raise InputError(f"trace {ref.trace_id} has no task_id and no input, by which answers are paired")
    return name_of_input(asked)


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
        if (found["kind"], found["version"]) != (_KIND, _VERSION):
            raise ValueError(found["kind"])
        rows = [dict(row) for row in found["answers"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{path} is not a baseline of a gate ({error}); name another file, or {again}") from None
    if fingerprint(rows, _HEX) != found.get("sha256"):
        raise FileFormatError(
            f"{path} was changed after it was recorded: its SHA-256 does not fit its answers; {again}"
        )
    answers = [(str(row.pop("task_id")), Trace.from_dict(row, str(path))) for row in rows]
    return Baseline(tuple(answers), found.get("provenance") or {}, found["sha256"])
