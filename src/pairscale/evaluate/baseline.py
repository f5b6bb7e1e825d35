"""The baseline of a gate: the answers of A, recorded once with where they came from, and checked by a hash."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import replacing
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.tables import listed
from pairscale.evaluate.matching import name_of_input
from pairscale.evaluate.suite import as_words, id_key, input_key
from pairscale.evaluate.traces import InMemoryTraceSource, Trace, TraceRef, TraceSource

__all__ = ["Baseline", "loaded", "read_baseline", "require_same_answers", "require_same_inputs", "write_baseline"]

_KIND, _VERSION = "pairscale baseline", 1
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


async def loaded(source: TraceSource) -> list[tuple[str, Trace]]:
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
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{target.parent} cannot be made: {error.strerror}") from None
    with replacing(target) as temporary:
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
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
    fields = ({key: value for key, value in row.items() if key != "task_id"} for row in rows)
    answers = tuple(
        (str(row["task_id"]), Trace.from_dict(one, f"{path}, answer {number}"))
        for number, (row, one) in enumerate(zip(rows, fields, strict=True), start=1)
    )
    return Baseline(answers, found.get("provenance") or {}, found["sha256"])


def require_same_answers(baseline: Baseline, answers: list[tuple[str, Trace]], path: object) -> None:
    """Refuse answers of A that are not those of the baseline.

    Raises:
        InputError: that names the tasks.
    """
    known, given = (_outputs(list(one)) for one in (baseline.answers, answers))
    if apart := [task for task in {**known, **given} if known.get(task) != given.get(task)]:
        raise InputError(
            f"the answers of A are not those of the baseline {path}: {listed(apart, 5)}; leave A out to compare with "
            "the baseline, or give `update_baseline=True` to record A as it is now"
        )


def _outputs(answers: list[tuple[str, Trace]]) -> dict[str, list[tuple[str, str | None]]]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for task, trace in answers:
        found.setdefault(task, []).append((trace.output, trace.exception))
    return found


def require_same_inputs(a: list[tuple[str, Trace]], b: list[tuple[str, Trace]]) -> None:
    """Refuse answers to different questions under the same name.

    Raises:
        InputError: that names the tasks.
    """
    asked, apart = {id_key(task): key for task, trace in a if (key := _asked(trace))}, dict[str, None]()
    for task, trace in b:
        if (key := _asked(trace)) and asked.get(id_key(task), key) != key:
            apart[task] = None
    if apart:
        raise InputError(
            f"A and B answered different inputs under the same task_id: {listed(list(apart), 5)}; have both answer the "
            "same tasks, and record the baseline again if there is one"
        )


def _asked(trace: Trace) -> str:
    return input_key(as_words(trace.metadata.get("input")))
