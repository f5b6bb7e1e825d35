"""What a variant did: its answer and how it came about, and where such records lie."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

from pairscale.core.errors import InputError
from pairscale.evaluate.suite import as_words, is_missing, storable
from pairscale.judges.base import require_figure
from pairscale.judges.function import words_of

OUTPUT_NAMES = ("output", "response", "answer", "text")
"""What the answer is called in a mapping, the first of them before the others."""

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
        """The events of a kind: a class, or what ``type`` says; only those called ``name`` when it is given.

        AG2's comparators take the answer from the last event of its class ``ModelResponse``. Where no event is one, the
        output stands for it.
        """
        found = [event for event in self.events if _is_kind(event, kind)]
        if not found and name is None and isinstance(kind, type) and kind.__name__ == _ANSWER and self.output:
            return (_Said(self.output),)
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
        given = [name for name in OUTPUT_NAMES if name in rest]
        if not given:
            raise InputError(f"{where} has no 'output', the variant's answer")
        output = rest.pop(given[0])
        exception = rest.pop("exception", None)
        if is_missing(exception):
            exception = "no output was recorded" if is_missing(output) else None
        figures = {name: _figure(rest.pop(name, None), kind, f"{where}: {name}") for name, kind in _FIGURES.items()}
        events = rest.pop("events", None) or ()
        metadata = rest.pop("metadata", None) or {}
        if not isinstance(events, list | tuple) or not isinstance(metadata, Mapping):
            raise InputError(f"{where}: events must be a list, and metadata a mapping")
        words = None if exception is None else as_words(exception)
        return cls(as_words(output), tuple(events), exception=words, metadata={**rest, **metadata}, **figures)


_ANSWER = "ModelResponse"


@dataclass(frozen=True, slots=True)
class _Said:
    """An answer in the form that AG2's comparators read."""

    content: str


def as_trace(given: Any, where: str = "the answer") -> Trace:
    """An answer of any kind as a trace: a text, a mapping, a missing value, or a trace of AG2.

    Args:
        given: the answer. An object with ``events`` and ``exception`` is a trace of AG2, whose answer is the content of
            its last ``ModelResponse``.
        where: it comes from, for messages.

    Raises:
        InputError: it is none of these.

    Example:
        >>> as_trace("Paris.").output, as_trace(float("nan")).failure
        ('Paris.', 'no output was recorded')
    """
    if isinstance(given, Trace):
        return given
    if is_missing(given):
        return Trace(exception="no output was recorded")
    if isinstance(given, str):
        return Trace(given)
    if isinstance(given, Mapping):
        return Trace.from_dict(given, where)
    if not hasattr(given, "events") or not hasattr(given, "exception"):
        raise InputError(f"{where}: give a text or a Trace, not {type(given).__name__}")
    said = [event for event in given.events if type(event).__name__ == _ANSWER]
    output = as_words(getattr(said[-1], "content", None)) if said else ""
    duration = getattr(given, "duration_ms", None)
    return Trace(output, tuple(given.events), duration_ms=duration, exception=given.exception)


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
    if event is None or isinstance(event, str | int | float | list | Mapping):
        return event
    fields_of = asdict(event) if is_dataclass(event) and not isinstance(event, type) else {"text": str(event)}
    return {"type": type(event).__name__, **fields_of}


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
            have the same task. None and NaN are answers that are missing. A :class:`TraceRef` may stand for its task;
            where it names none, answers are paired by the text of the task, or refused.

    Example:
        >>> source = InMemoryTraceSource({"task-1": "Paris.", "task-2": Trace("Rome.", cost=0.01)})
        >>> len(source)
        2
    """

    def __init__(self, traces: Mapping[str, Trace | str] | Iterable[tuple[str | TraceRef | None, Trace | str]]) -> None:
        pairs = traces.items() if isinstance(traces, Mapping) else traces
        self._traces = [(_task_id(task), as_trace(given, f"task {task!r:.60}")) for task, given in pairs]

    def __len__(self) -> int:
        return len(self._traces)

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, as it was given."""
        for at, (task_id, trace) in enumerate(self._traces):
            asked = trace.metadata.get("input")
            yield TraceRef(str(at), task_id, {} if asked is None else {"input": asked})

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        return self._traces[int(ref.trace_id)][1]


def _task_id(task: Any) -> str | None:
    """The name of a task; None where there is none."""
    name = getattr(task, "task_id", task)
    return None if is_missing(name) else str(storable(name))
