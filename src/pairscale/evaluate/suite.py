"""What the variants are asked: tasks, and suites of them."""

from __future__ import annotations

import json
import math
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import plural
from pairscale.core.options import checked
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import listed
from pairscale.store.database import scrub_surrogates


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do, the same for every variant.

    Attributes:
        inputs: what the variants are given; ``inputs["input"]`` is the text of the task.
        task_id: its name, unique in a suite; a suite fills in ``task-0000``, ``task-0001`` and so on.
        reference_outputs: what a good answer is, where somebody knows: a text, or a mapping.
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
        for name in ("inputs", "task_id", "reference_outputs", "tags", "metadata"):
            object.__setattr__(self, name, storable(getattr(self, name)))

    @property
    def input(self) -> str:
        """The text of the task; empty when it is not known."""
        return as_words(self.inputs.get("input"))

    @property
    def digest(self) -> str:
        """A digest of what a variant is given: an answer belongs to it."""
        return fingerprint([self.task_id, self.inputs, self.metadata])

    def to_dict(self) -> dict[str, Any]:
        """The task as JSON has it."""
        return {
            "task_id": self.task_id,
            "inputs": dict(self.inputs),
            "reference_outputs": self.reference_outputs,
            "tags": list(self.tags),
            "metadata": dict(self.metadata),
        }


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
        cls, tasks: Iterable[Task | Mapping[str, Any] | str | Any], *, name: str = "suite", source: str | None = None
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
        where = source or name
        advice = _NAME_COLUMNS if source else ""
        read = [_task(given, f"{where}, task {number}", advice) for number, given in enumerate(tasks, start=1)]
        filled = [task if task.task_id else replace(task, task_id=f"task-{at:04d}") for at, task in enumerate(read)]
        return cls(tuple(filled), name, source)

    @classmethod
    @checked
    def from_file(
        cls,
        path: str | os.PathLike[str],
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
        from pairscale.evaluate.formats.reading import named_columns, read_tasks  # it reads with the parts of this

        rows = read_tasks(path, named_columns(id_col, input_col), encoding)
        return cls.from_list(rows, name=name or Path(path).stem, source=str(path))

    from_jsonl = from_file
    from_csv = from_file


SuiteLike: TypeAlias = "Suite | str | os.PathLike[str] | Iterable[Task | Mapping[str, Any] | str]"
"""A suite, a file of tasks, a list of tasks, or a suite of AG2."""


def as_suite(suite: SuiteLike | Any) -> Suite:
    """A suite of what a run is given: a :class:`Suite`, a file, a list of tasks, or a suite of AG2.

    Args:
        suite: the suite; one of another library is known by its tasks, which have ``inputs`` and ``task_id``.

    Raises:
        InputError: it is none of these.

    Example:
        >>> len(as_suite(["Two plus two?", "Three plus three?"]))
        2
    """
    if isinstance(suite, Suite):
        return suite
    if isinstance(suite, str | os.PathLike):
        return Suite.from_file(suite)
    tasks = getattr(suite, "tasks", suite)
    if isinstance(tasks, Iterable) and not isinstance(tasks, Mapping):
        return Suite.from_list(tasks)
    raise InputError(
        f"a suite is a file, a Suite or a list of tasks, not {type(suite).__name__}: Suite.from_list([…]) makes one"
    )


_NAME_COLUMNS = (
    "; name its column with `input_col=` (and columns with answers of both variants with `a_col=` and `b_col=`)"
)


def _task(given: Any, where: str, advice: str) -> Task:
    if isinstance(given, Task):
        task = given
    elif isinstance(given, str):
        task = Task({"input": given})
    elif isinstance(given, Mapping):
        task = _from_mapping(given, where)
    else:  # a task of AG2
        names = ("inputs", "task_id", "reference_outputs", "tags", "metadata")
        task = _from_mapping({name: getattr(given, name, None) for name in names}, where)
    if is_missing(task.inputs.get("input")):
        raise InputError(f"{where} has no 'input', the text that the variants are given{advice}")
    return task


def _from_mapping(row: Mapping[str, Any], where: str) -> Task:
    known = {name: value for name, value in row.items() if not is_missing(value)}
    inputs = known.pop("inputs", None) or {"input": known.pop("input", None)}
    plain = known.pop("reference", None)
    reference = known.pop("reference_outputs", plain)
    tags = known.pop("tags", ())
    if isinstance(tags, str):
        tags = tags.split(";")
    if not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"{where}: tags must be a list of texts, or one text with semicolons, not {tags!r:.60}")
    task_id = id_of(known.pop("task_id", None), where)
    more = known.pop("metadata", {})
    kept = {**known, **(more if isinstance(more, Mapping) else {"metadata": more})}
    return Task(inputs, task_id, reference, tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip())), kept)


def id_of(value: Any, where: str) -> str:
    """A name as text: 7 and 7.0 are ``7``; empty when there is none."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where}: task_id must be a text or a number, not {value!r:.60}")
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


def storable(value: Any) -> Any:
    """A value without halves of characters, which no file and no table takes; U+FFFD stands for them."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return scrub_surrogates(value)
        return value
    if isinstance(value, Mapping):
        return {storable(key): storable(inner) for key, inner in value.items()}
    if type(value) in {list, tuple}:
        return type(value)(storable(inner) for inner in value)
    return value


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas has for them."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _NO_VALUES


_NO_VALUES = {"NAType", "NaTType"}


def as_words(value: Any) -> str:
    """What a person reads where a value stands: a text as it is, nothing for a missing one, anything else as JSON."""
    if is_missing(value):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
