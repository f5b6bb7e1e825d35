"""What a variant did: its answer and how it came about, and where such records lie."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import read_rows, replacing
from pairscale.core.provenance import text_hash
from pairscale.core.tables import listed
from pairscale.evaluate.suite import as_words, id_of, is_missing, storable
from pairscale.judges.base import require_figure
from pairscale.judges.function import words_of

__all__ = [
    "DirectoryTraceSource",
    "InMemoryTraceSource",
    "Trace",
    "TraceRef",
    "TraceSource",
    "read_answer_rows",
    "read_both_outputs",
    "read_outputs",
    "save_trace",
    "source_at",
]

_OUTPUTS = ("output", "response", "answer", "text")
_FIGURES: dict[str, type[int] | type[float]] = {"tokens": int, "cost": float, "duration_ms": float}


@dataclass(frozen=True, slots=True)
class Trace:
    """What a variant made of a task.

    Attributes:
        output: its answer.
        events: what happened on the way, in order: mappings with ``type`` (and ``name``), or objects of any kind.
        tokens: how many it took, where that is known.
        cost: in US dollars, where it is known.
        duration_ms: how long it took.
        exception: what it raised, in words; then there is no answer.
        metadata: anything else; a judge sees it as columns of the answer. An ``error`` in it is a failure.

    Example:
        >>> trace = Trace("Paris.", events=({"type": "tool_call", "name": "search"}, {"type": "message"}))
        >>> len(trace.events_of("tool_call", name="search"))
        1
    """

    output: str = ""
    events: tuple[Any, ...] = ()
    tokens: int | None = None
    cost: float | None = None
    duration_ms: float | None = None
    exception: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not isinstance(self.output, str):
            raise InputError(f"the output of a trace is a text, not {type(self.output).__name__}")
        raised: Any = self.exception
        if isinstance(raised, BaseException):
            object.__setattr__(self, "exception", words_of(raised))
        for name in ("output", "events", "exception", "metadata"):
            object.__setattr__(self, name, storable(getattr(self, name)))
        for name, kind in _FIGURES.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, require_figure(value, f"the {name} of a trace", kind))

    @property
    def failure(self) -> str | None:
        """Why this is no answer: an exception, an error, or an empty output; None when it is one.

        Example:
            >>> Trace("Paris.").failure, Trace("  ").failure, Trace(exception="TimeoutError").failure
            (None, 'the output is empty', 'TimeoutError')
        """
        if self.exception is not None and self.exception.strip():
            return self.exception
        error = self.metadata.get("error")
        if error is True or (isinstance(error, str) and error.strip()) or (isinstance(error, Mapping | list) and error):
            return f"error: {as_words(error)}"
        if not any(letter.isprintable() and not letter.isspace() for letter in self.output):
            return "the output is empty"
        return None

    def events_of(self, kind: type | str, name: str | None = None) -> tuple[Any, ...]:
        """The events of a kind: a class, or what ``type`` says; only those called ``name`` when it is given."""
        found = [event for event in self.events if _is_kind(event, kind)]
        return tuple(event for event in found if name is None or _field(event, "name") == name)

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON has it."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**plain, "events": [_plain(event) for event in self.events], "metadata": dict(self.metadata)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], where: str = "a trace") -> Trace:
        """A trace from a mapping: ``output`` (also called ``response``, ``answer`` or ``text``) and the other fields;
        what else it holds goes to ``metadata``. Without an output and an exception, nothing was answered.
        """  # noqa: D205 - the fields belong together
        rest = dict(row)
        given = [name for name in _OUTPUTS if name in rest]
        if not given:
            raise InputError(f"{where} has no 'output', the variant's answer")
        output = rest.pop(given[0])
        exception = rest.pop("exception", None)
        exception = None if is_missing(exception) else exception
        if is_missing(output) and exception is None:
            exception = "no output was recorded"
        figures = {name: _figure(rest.pop(name, None), kind, f"{where}: {name}") for name, kind in _FIGURES.items()}
        events, metadata = rest.pop("events", None) or (), rest.pop("metadata", None) or {}
        if isinstance(events, str) or not isinstance(events, Sequence) or not isinstance(metadata, Mapping):
            raise InputError(f"{where}: events must be a list, and metadata a mapping")
        return cls(
            as_words(output),
            tuple(events),
            exception=None if exception is None else as_words(exception),
            metadata={**rest, **metadata},
            **figures,
        )


def _figure(value: Any, kind: type[int] | type[float], what: str) -> Any:
    """A figure of a file, where it may stand as text; NaN is how some tables say that there is none."""
    if is_missing(value):
        return None
    try:
        return require_figure(float(value) if isinstance(value, str) else value, what, kind)
    except ValueError:  # a text that is no number; refused as it stands
        return require_figure(value, what, kind)


def _is_kind(event: Any, kind: type | str) -> bool:
    if isinstance(kind, type):
        return isinstance(event, kind)
    return _field(event, "type") == kind or type(event).__name__ == kind


def _field(event: Any, name: str) -> Any:
    return event.get(name) if isinstance(event, Mapping) else getattr(event, name, None)


def _plain(event: Any) -> Any:
    """An event as JSON can hold it."""
    if isinstance(event, Mapping):
        return dict(event)
    if is_dataclass(event) and not isinstance(event, type):
        return {"type": type(event).__name__, **asdict(event)}
    if event is None or isinstance(event, str | int | float | list):
        return event
    return {"type": type(event).__name__, "text": str(event)}


@dataclass(frozen=True, slots=True)
class TraceRef:
    """Where a trace is, and which task it belongs to.

    Attributes:
        trace_id: its name in the source.
        task_id: the task; None when the source does not know.
        metadata: anything else.
    """

    trace_id: str
    task_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@runtime_checkable
class TraceSource(Protocol):
    """Anything that holds traces: it lists what it has, and gives out one after the other.

    Several traces of a task are repeats; the first of A is compared with the first of B, and so on.
    """

    def list(self) -> AsyncIterator[TraceRef]:
        """What there is, in a fixed order."""
        ...

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        ...


class InMemoryTraceSource:
    """Traces that are there already.

    Args:
        traces: by task: a mapping from ``task_id`` to a :class:`Trace` or a text, or such pairs, of which several may
            have the same task.

    Example:
        >>> source = InMemoryTraceSource({"task-1": "Paris.", "task-2": Trace("Rome.", cost=0.01)})
        >>> len(source)
        2
    """

    def __init__(self, traces: Mapping[str, Trace | str] | Iterable[tuple[str, Trace | str]]) -> None:
        pairs = traces.items() if isinstance(traces, Mapping) else traces
        self._traces = [
            (str(storable(task_id)), Trace(given) if isinstance(given, str) else given) for task_id, given in pairs
        ]

    def __len__(self) -> int:
        return len(self._traces)

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, as it was given."""
        for at, (task_id, _) in enumerate(self._traces):
            yield TraceRef(str(at), task_id)

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        return self._traces[int(ref.trace_id)][1]


class DirectoryTraceSource:
    """Traces in a folder, one JSON file each, as :func:`save_trace` writes them.

    Args:
        folder: the folder.

    Raises:
        FileFormatError: when there is no such folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise FileFormatError(f"{folder} is not a folder of traces; save_trace writes one")

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, by the names of the files."""
        for path in sorted(self._folder.glob("*.json")):
            yield TraceRef(path.name, id_of(_document(path).get("task_id"), str(path)) or None)

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        path = self._folder / Path(ref.trace_id).name
        row = _document(path)
        return Trace.from_dict({name: row[name] for name in row if name not in _OF_THE_REF}, str(path))


_OF_THE_REF = {"task_id", "trace_id"}


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(path))
    except ValueError as error:
        raise FileFormatError(f"{path} is not a trace in JSON: {error}") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"{path} is not a trace; save_trace writes them")
    return found


def save_trace(trace: Trace, folder: str | os.PathLike[str], *, task_id: str, trace_id: str | None = None) -> Path:
    """Write a trace to a file of its own in a folder (made when it is missing), for :class:`DirectoryTraceSource`.

    Args:
        trace: the trace.
        folder: where to.
        task_id: the task that it belongs to.
        trace_id: its own name; by default that of the task, so that a second trace of a task takes its place.

    Example:
        >>> save_trace(Trace("Rome."), "traces", task_id="t1").name
        't1-628b49d9.json'
    """
    name = trace_id or task_id
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder} cannot be made: {error.strerror}") from None
    # Names of tasks may hold anything; those of files may not.
    path = target / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', name)[:80].lstrip('.')}-{text_hash(name)[:8]}.json"
    document = {"task_id": task_id, "trace_id": name, **trace.to_dict()}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1, default=str), "utf-8")
    return path


def read_outputs(
    path: str | os.PathLike[str],
    *,
    id_col: str | None = None,
    input_col: str | None = None,
    output_col: str | None = None,
) -> InMemoryTraceSource:
    """Recorded outputs as a source: a table (jsonl, csv, …) with ``task_id`` and ``output``.

    ``output`` may also be called ``response``, ``answer`` or ``text``, and ``task_id`` ``ID``. ``tokens``, ``cost``,
    ``duration_ms``, ``exception`` and ``events`` are taken where they are there; the rest goes to ``metadata``, and an
    ``input`` or a ``reference`` in it is used where no suite says what the task is.

    Args:
        path: the file.
        id_col: the column of the tasks' names, or its path in JSON, where it is not ``task_id``.
        input_col: the column of the tasks, likewise, where it is not ``input``.
        output_col: the column of the answers, likewise, where it is not ``output``.

    Raises:
        InputError: that names the file and the row.

    Example:
        >>> _ = Path("answers.jsonl").write_text(json.dumps({"task_id": "t1", "output": "Rome."}), "utf-8")
        >>> len(read_outputs("answers.jsonl"))
        1
    """
    given = {"task_id": id_col, "input": input_col, "output": output_col}
    return InMemoryTraceSource(_traces(read_answer_rows(path, given), str(path)))


def read_both_outputs(
    path: str | os.PathLike[str], a_col: str, b_col: str, *, id_col: str | None = None, input_col: str | None = None
) -> tuple[InMemoryTraceSource, InMemoryTraceSource]:
    """The answers of A and of B from one table; a row without a task of its own is known by its number.

    Args:
        path: the file.
        a_col: the column of A's answers, or its path in JSON.
        b_col: that of B's.
        id_col: the column of the tasks' names.
        input_col: the column of the tasks.

    Raises:
        InputError: that names the file, the row or the column.
    """
    rows = read_answer_rows(path, {"task_id": id_col, "input": input_col}, (a_col, b_col))
    for number, row in enumerate(rows, start=1):
        if not (row.get("task_id") or row.get("ID")):
            row["task_id"] = f"row-{number:04d}"
    others = {a_col, b_col, *_OUTPUTS}
    sides = [
        [{**{name: row[name] for name in row if name not in others}, "output": row.get(side)} for row in rows]
        for side in (a_col, b_col)
    ]
    a, b = (InMemoryTraceSource(_traces(side, str(path))) for side in sides)
    return a, b


def read_answer_rows(
    path: str | os.PathLike[str], given: Mapping[str, str | None], others: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rows of a file of answers or tasks, with the columns that the user named under the names that we have.

    Args:
        path: the file.
        given: by our name, the column or the path in JSON that holds it; None for our name itself.
        others: further columns, or paths, that must be there.

    Raises:
        InputError: no row has a column that was named.
    """
    wanted = [name for name in (*given.values(), *others) if name is not None]
    text = ("task_id", *_OUTPUTS, "input", "reference", "reference_outputs", "tags", *wanted)
    rows = read_rows(path, text=text, paths=wanted)
    there = {name: None for row in rows for name in row}
    for name in wanted:
        if rows and name not in there:
            raise InputError(f"{path}: no column {name!r}; it has {listed(list(there), 20)}")
    for ours, theirs in given.items():
        if theirs is not None and theirs != ours:
            rows = [{**{key: row[key] for key in row if key != theirs}, ours: row.get(theirs)} for row in rows]
    return rows


def _traces(rows: Sequence[dict[str, Any]], path: str) -> list[tuple[str, Trace]]:
    traces = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        has = f"; it has {listed(list(row), 20)}"
        task_id = id_of(row.pop("task_id", None), where) or id_of(row.pop("ID", None), where)
        if not task_id:
            raise InputError(
                f"{where} has no task_id, by which the answers of A and B are paired{has}: name the column (id_col=)"
            )
        if not any(name in row for name in _OUTPUTS):
            raise InputError(f"{where} has no 'output', the variant's answer{has}: name the column (output_col=)")
        traces.append((task_id, Trace.from_dict(row, where)))
    return traces


def source_at(path: str | os.PathLike[str]) -> TraceSource:
    """Recorded answers at a path: a folder of traces, or a table of outputs."""
    return DirectoryTraceSource(path) if Path(path).is_dir() else read_outputs(path)
