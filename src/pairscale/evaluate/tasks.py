"""What the variants are asked, what they answered, and which answers belong together."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import fingerprint, text_hash
from pairscale.core.tables import Values, listed
from pairscale.judges.base import require_figure
from pairscale.judges.function import words_of
from pairscale.store.database import scrub_surrogates

Row: TypeAlias = Mapping[str, Any]
"""A row of a file, or any other record as JSON has it."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do, the same for every variant.

    Attributes:
        inputs: what the variants are given; ``inputs["input"]`` is the text of the task.
        task_id: its name, unique in a suite; a suite fills in ``task-0000``, ``task-0001`` and so on.
        reference_outputs: what a good answer is, where that is known: a text, or a mapping.
        tags: kinds that the task is of, for figures by kind.
        metadata: anything else.

    Example:
        >>> Task({"input": "What's the capital of France?"}, "task-1").input
        "What's the capital of France?"
    """

    inputs: Mapping[str, Any]
    task_id: str = ""
    reference_outputs: Any = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not isinstance(self.inputs, Mapping):
            raise InputError(f"inputs must be a mapping such as {{'input': '…'}}, not {type(self.inputs).__name__}")
        _make_storable(self)

    @property
    def input(self) -> str:
        """The text of the task; empty when it is not known."""
        return as_words(self.inputs.get("input"))

    @property
    def digest(self) -> str:
        """A digest of what a variant is given: an answer belongs to it."""
        return fingerprint([self.task_id, self.inputs, self.metadata])

    def to_dict(self) -> Values:
        """The task as JSON has it."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True, repr=False)
class Suite(ReprMixin):
    """Tasks in their order, each under a name of its own; make one with :meth:`from_list` or from a file.

    Attributes:
        tasks: the tasks.
        name: what the suite is called.
        source: where it came from.

    Example:
        >>> suite = Suite.from_list(["Two plus two?", {"input": "Three plus three?", "tags": ["easy"]}])
        >>> [task.task_id for task in suite], suite.tasks[1].tags
        (['task-0000', 'task-0001'], ('easy',))
    """

    tasks: tuple[Task, ...]
    name: str = "suite"
    source: str | None = None

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError(f"{self.source or self.name} has no tasks")
        ids = Counter(id_key(task.task_id) for task in self.tasks)
        wrong = [name for name, times in ids.items() if times > 1 or not name]
        if wrong:
            raise InputError(f"{self.source or self.name}: task_id {listed(wrong)} is empty or not unique")

    def __str__(self) -> str:
        return f"{self.name}, {plural(len(self.tasks), 'task')}"

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @classmethod
    def from_list(
        cls, tasks: Iterable[Task | Row | str | Any], *, name: str = "suite", source: str | None = None
    ) -> Suite:
        """A suite of tasks, mappings or plain texts.

        Args:
            tasks: a mapping has the fields of :class:`Task`, or ``input`` in the place of ``inputs``, and
                ``reference`` in that of ``reference_outputs``; whatever else it has goes to ``metadata``.
            name: what the suite is called.
            source: where it came from.

        Raises:
            InputError: when a task has no ``input``, or two have the same ``task_id``.
        """
        read = []
        for number, given in enumerate(tasks, start=1):
            where = f"{source or name}, task {number}"
            if isinstance(given, Task):
                task = given
            elif isinstance(given, str):
                task = Task({"input": given})
            elif isinstance(given, Mapping):
                task = _from_mapping(given, where)
            else:  # a task of AG2
                task = _from_mapping({one.name: getattr(given, one.name, None) for one in fields(Task)}, where)
            if is_missing(task.inputs.get("input")):
                advice = _NAME_COLUMNS if source else ""
                raise InputError(f"{where} has no 'input', the text that the variants are given{advice}")
            read.append(task if task.task_id else replace(task, task_id=f"task-{number - 1:04d}"))
        return cls(tuple(read), name, source)

    @classmethod
    @checked
    def from_file(
        cls,
        path: FilePath,
        *,
        name: str | None = None,
        id_col: str | None = None,
        input_col: str | None = None,
        encoding: str | None = None,
    ) -> Suite:
        """A suite from a file: a table, questions of MT-bench, or chat messages; see :meth:`from_list`.

        It has ``input``, and where they are there ``task_id``, ``reference`` and ``tags`` (a list, or one text with
        semicolons); other columns go to ``metadata``.

        Args:
            path: the file.
            name: what the suite is called; by default as the file.
            id_col: the column of the tasks' names, or its path in JSON, where it is not ``task_id``.
            input_col: the column of the tasks, likewise, where it is not ``input``.
            encoding: of a text file that is not UTF-8.

        Raises:
            InputError: that names the file and the row.
        """
        from pairscale.evaluate.formats.reading import named_columns  # it reads with the parts of this

        suite = as_suite(path, named_columns(id_col, input_col), encoding)
        return suite if name is None else replace(suite, name=name)

    from_jsonl = from_file
    from_csv = from_file


SuiteLike: TypeAlias = "Suite | FilePath | Iterable[Task | Mapping[str, Any] | str]"
"""A suite, a file of tasks, a list of tasks, or a suite of AG2."""


def as_suite(suite: SuiteLike | Any, named: Mapping[str, str] | None = None, encoding: str | None = None) -> Suite:
    """A suite of what a run is given: a :class:`Suite`, a file, a table, a list of tasks, or a suite of AG2.

    Args:
        suite: the suite; one of another library is known by its tasks, which have ``inputs`` and ``task_id``.
        named: of a file or a table, by our name, the columns that the user named.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: it is none of these.

    Example:
        >>> len(as_suite(["Two plus two?", "Three plus three?"]))
        2
    """
    from pairscale.evaluate.formats.reading import is_path, is_table, name_of, read_tasks  # it reads with parts of this

    if isinstance(suite, Suite):
        return suite
    if named and "output" in named:
        raise InputError("`output_col=` belongs to files of answers; a suite has none")
    if is_path(suite):
        rows = read_tasks(suite, named, encoding)
        return Suite.from_list(rows, name=Path(str(suite)).stem, source=str(suite))
    if is_table(suite):
        return Suite.from_list(read_tasks(suite, named), source=name_of(suite))
    tasks = getattr(suite, "tasks", suite)
    if isinstance(tasks, Iterable) and not isinstance(tasks, Mapping):
        return Suite.from_list(tasks)
    raise InputError(
        f"a suite is a file, a Suite or a list of tasks, not {type(suite).__name__}: Suite.from_list([…]) makes one"
    )


_NAME_COLUMNS = (
    "; name its column with `input_col=` (and columns with answers of both variants with `a_col=` and `b_col=`)"
)


def _from_mapping(row: Row, where: str) -> Task:
    rest = {name: value for name, value in row.items() if not is_missing(value)}
    inputs = rest.pop("inputs", None) or {"input": rest.pop("input", None)}
    plain = rest.pop("reference", None)
    reference = rest.pop("reference_outputs", plain)
    tags = rest.pop("tags", ())
    if isinstance(tags, str):
        tags = tags.split(";")
    if not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"{where}: tags must be a list of texts, or one text with semicolons, not {tags!r:.60}")
    named = dict.fromkeys(tag.strip() for tag in tags if tag.strip())
    task_id = id_of(rest.pop("task_id", None))
    more = rest.pop("metadata", {})
    metadata = {**rest, **(more if isinstance(more, Mapping) else {"metadata": more})}
    return Task(inputs, task_id, reference, tuple(named), metadata)


def id_of(value: Any) -> str:
    """A name as text: 7 and 7.0 are ``7``; empty when there is none."""
    if is_missing(value) or not str(value).strip():
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def id_key(task_id: str) -> str:
    r"""What two spellings of a name have in common: an accented letter may be one character or two, blanks around it.

    Example:
        >>> id_key("e\u0301tude ") == id_key("\u00e9tude")
        True
    """
    return unicodedata.normalize("NFC", task_id).strip()


def input_key(given: str) -> str:
    """What the same task has in common in two recordings: its words, without blanks around them."""
    return unicodedata.normalize("NFC", given).strip().replace("\r\n", "\n")


def _make_storable(record: Any) -> None:
    """Have the fields of a frozen record be such that every file takes them."""
    for one in fields(record):
        value = getattr(record, one.name)
        clean = scrub_surrogates(value)
        object.__setattr__(record, one.name, tuple(clean) if isinstance(value, tuple) else clean)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas has for them."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _NO_VALUES


_NO_VALUES = {"NAType", "NaTType"}


def as_words(value: Any) -> str:
    """What a person reads where a value stands: a text as it is, nothing for a missing one, anything else as JSON."""
    if is_missing(value):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# What a variant did, and where such records lie


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
        exception: what it raised, as a text; then there is no answer.
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
        _make_storable(self)
        for name, kind in _FIGURES.items():
            value = getattr(self, name)
            if value is not None:
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
        is_error = error.strip() if isinstance(error, str) else error is True or isinstance(error, Mapping | list)
        if error and is_error:
            return f"error: {as_words(error)}"
        if not any(letter.isprintable() and not letter.isspace() for letter in self.output):
            return "the output is empty"
        return None

    def events_of(self, kind: type | str, name: str | None = None) -> tuple[Any, ...]:
        """The events of a kind: a class, or what ``type`` says; only those called ``name`` when it is given.

        AG2's comparators take the answer from the last event of its class ``ModelResponse``. Where no event is one, the
        output stands for it.
        """
        kind_name = kind if isinstance(kind, str) else kind.__name__
        events = tuple(
            event
            for event in self.events
            if kind_name in (_field(event, "type"), *(base.__name__ for base in type(event).__mro__))
            and (name is None or _field(event, "name") == name)
        )
        if not events and name is None and kind_name == _ANSWER and self.output:
            return (SimpleNamespace(content=self.output),)
        return events

    def to_dict(self) -> Values:
        """The trace as JSON has it."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**plain, "events": [_plain(event) for event in self.events]}

    @classmethod
    def from_dict(cls, row: Row, where: str = "a trace") -> Trace:
        """A trace from a mapping: ``output`` and the other fields; what else it holds goes to ``metadata``.

        Without an output and an exception, nothing was answered.
        """
        rest = dict(row)
        if "output" not in rest:
            raise InputError(f"{where} has no 'output', the variant's answer")
        output = rest.pop("output")
        exception = rest.pop("exception", None)
        if is_missing(exception):
            exception = "no output was recorded" if is_missing(output) else None
        figures: Values = {}
        for name, kind in _FIGURES.items():
            figure = rest.pop(name, None)
            if isinstance(figure, str):  # as it stands in a file
                with suppress(ValueError):  # a text that is no number is refused as it is
                    figure = float(figure)
            figures[name] = None if is_missing(figure) else require_figure(figure, f"{where}: {name}", kind)
        events = rest.pop("events", None) or ()
        metadata = rest.pop("metadata", None) or {}
        if not isinstance(events, list | tuple) or not isinstance(metadata, Mapping):
            raise InputError(f"{where}: events must be a list, and metadata a mapping")
        words = None if exception is None else as_words(exception)
        return cls(as_words(output), tuple(events), exception=words, metadata={**rest, **metadata}, **figures)


_ANSWER = "ModelResponse"


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
    replies = [event for event in given.events if type(event).__name__ == _ANSWER]
    output = as_words(getattr(replies[-1], "content", None)) if replies else ""
    duration = getattr(given, "duration_ms", None)
    return Trace(output, tuple(given.events), duration_ms=duration, exception=given.exception)


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
        self._traces: list[tuple[str | None, Trace]] = []
        for task, given in pairs:
            name = getattr(task, "task_id", task)
            trace = as_trace(given, f"task {task!r:.60}")
            self._traces.append((None if is_missing(name) else str(scrub_surrogates(name)), trace))

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


# Which answer of A belongs to which answer of B: by the names of the tasks, else by what was asked


Groups: TypeAlias = dict[str, list[TraceRef]]

_SHORT = 40
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A task that could not be compared, because one side has no answer to it.

    Attributes:
        task_id: the task.
        repeat: which answer, from 1.
        missing: who lacks it: ``a``, ``b``, ``both``, or ``suite`` for answers to a task that the suite does not have.
    """

    task_id: str
    repeat: int
    missing: str


@dataclass(frozen=True, slots=True)
class Match:
    """The answers of A and of B to one task.

    Attributes:
        name: the task's.
        task: the task, where a suite has it.
        a: A's answers, in their order.
        b: B's.
    """

    name: str
    task: Task | None
    a: Sequence[TraceRef]
    b: Sequence[TraceRef]


def name_of_input(given: str) -> str:
    """A name for a task that has none: how it begins, and a digest.

    Example:
        >>> name_of_input("How do I boil an egg?")
        'How do I boil an egg? #c7853475'
    """
    words = " ".join(given.split())
    start = words if len(words) <= _SHORT else f"{words[:_SHORT].rstrip()}…"
    return f"{start} #{text_hash(input_key(given))[:8]}"


def matched(
    refs_a: Sequence[TraceRef],
    refs_b: Sequence[TraceRef],
    tasks: Iterable[Task],
    names: tuple[str, str] = ("A", "B"),
    *,
    strict: bool = False,
) -> tuple[list[Match], list[Unmatched]]:
    """The answers of each task, and those that belong to none.

    Answers are matched by ``task_id``. Where a side names no task, or A and B share no name, they are matched by what
    was asked, and a notice says so.

    Args:
        refs_a: what A has.
        refs_b: what B has.
        tasks: those of a suite; none without one.
        names: of the variants.
        strict: whether to refuse answers to different questions under the same name; otherwise a notice names them.

    Raises:
        InputError: nothing can be matched.
    """
    suite = list(tasks)
    by_id = [grouped(refs, id_of_ref) for refs in (refs_a, refs_b)]
    by_input = [grouped(refs, input_of_ref) for refs in (refs_a, refs_b)]
    matches = []
    if suite:
        ids = {id_key(task.task_id) for task in suite}
        sides = [named if ids & named.keys() else asked for named, asked in zip(by_id, by_input, strict=True)]
        for task in suite:
            names_of_task = (id_key(task.task_id), input_key(task.input))
            a, b = (next((side[name] for name in names_of_task if name in side), []) for side in sides)
            matches.append(Match(task.task_id, task, a, b))
    else:
        groups_a, groups_b = _shared(by_id, by_input, names)
        for key in {**groups_a, **groups_b}:
            a = groups_a.get(key, [])
            b = groups_b.get(key, [])
            name = next((ref.task_id for ref in (*a, *b) if ref.task_id is not None), name_of_input(key))
            matches.append(Match(name, None, a, b))
    used = {id(ref) for match in matches for ref in (*match.a, *match.b)}
    left = {ref.task_id or f"trace {ref.trace_id}" for ref in (*refs_a, *refs_b) if id(ref) not in used}
    _tell_unusual(matches, names, strict=strict)
    return matches, [Unmatched(name, 1, "suite" if suite else "task_id") for name in sorted(left)]


def id_of_ref(ref: TraceRef) -> str | None:
    """What the name of a trace's task has in common in two recordings."""
    return None if ref.task_id is None else id_key(ref.task_id)


def input_of_ref(ref: TraceRef) -> str | None:
    """What the text of a trace's task has in common in two recordings."""
    asked = ref.metadata.get("input")
    return input_key(asked) if isinstance(asked, str) and asked.strip() else None


def grouped(refs: Sequence[TraceRef], key_of: Callable[[TraceRef], str | None]) -> Groups:
    """References by their key; those without are left out."""
    groups: Groups = {}
    for ref in refs:
        key = key_of(ref)
        if key is not None:
            groups.setdefault(key, []).append(ref)
    return groups


def _shared(by_id: list[Groups], by_input: list[Groups], names: tuple[str, str]) -> list[Groups]:
    """The groups by which A and B have tasks in common."""
    both = " and ".join(names)
    if by_id[0].keys() & by_id[1].keys():
        return by_id
    if by_input[0].keys() & by_input[1].keys():
        if by_id[0] or by_id[1]:
            notice(f"{both} share no task_id; answers are paired by the text of the task")
        return by_input
    ids = [f"{name} has {listed(sorted(own), 3) or 'no names'}" for name, own in zip(names, by_id, strict=True)]
    raise InputError(
        f"{both} have no task in common ({', '.join(ids)}); answers are paired by task_id, else by the text of the "
        "task: name the column of the names (`id_col=`), or of the text (`input_col=`)"
    )


def _tell_unusual(matches: Sequence[Match], names: tuple[str, str], *, strict: bool) -> None:
    """Say which tasks a side has more often, and where both were asked different things; a suite decides on those."""
    both = [match for match in matches if match.a and match.b]
    uneven = [match.name for match in both if len(match.a) != len(match.b)]
    if uneven:
        notice(f"tasks with more answers on one side, of which the rest have no partner: {listed(uneven, _SHOWN)}")
    different = [
        match.name for match in both if match.task is None and len(grouped([*match.a, *match.b], input_of_ref)) > 1
    ]
    if not different:
        return
    words = (
        f"{' and '.join(names)} were asked different things under the same name in {len(different):,} of "
        f"{len(matches):,} tasks ({listed(different, _SHOWN)})"
    )
    if strict:
        raise InputError(f"{words}; have both answer the same tasks, and record a baseline again if there is one")
    notice(f"{words}; judges are shown what {names[0]} was asked: check the names")
