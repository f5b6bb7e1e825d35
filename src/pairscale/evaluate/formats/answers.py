"""One recorded answer, whatever the tool that recorded it, and the parts that all formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from pairscale.core.errors import FileFormatError, PairscaleError
from pairscale.core.tables import first_line, listed
from pairscale.evaluate.suite import is_missing
from pairscale.evaluate.traces import Trace

__all__ = [
    "Answer",
    "FileContent",
    "Format",
    "Read",
    "Unfinished",
    "first_of",
    "parsed",
    "plain_number",
    "read_as",
    "rows_of",
    "seconds_between",
    "unsure",
]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A log that ended before every task of its run was answered.

    Attributes:
        words: which log, its status, and how many samples it has.
        never_reached: tasks of the run that it has no sample of, where it names them.
    """

    words: str
    never_reached: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a file.

    Attributes:
        trace: the answer, or why there is none; the task is in its metadata as ``input``.
        task_id: the name of the task, the same in every recording of it; empty when the file has none.
        asked: what answers without a name are paired by, where that is more than ``input``: all turns of the user.
        variant: who answered, where a file may hold the answers of several.
        row: the answer as it stands in the file, in which the user's columns and paths are looked up.
        where: the file and the place in it, for messages.
        unfinished: the log that it is from, if that ended too early.
    """

    trace: Trace
    task_id: str = ""
    asked: str | None = None
    variant: str | None = None
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: str = "the answer"
    unfinished: Unfinished | None = None


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a file holds, before its format is known.

    Attributes:
        content: what the JSON says; of a table or of JSON lines, a list of rows.
        path: the file, for messages.
        is_rows: whether it is a table or JSON lines, so that every element stands for itself.
    """

    content: Any
    path: str
    is_rows: bool


Read: TypeAlias = Callable[[FileContent], Sequence[Answer]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is known by its shape.

    Attributes:
        name: what users call it.
        fits: whether a document has its shape.
        read: the answers in one.
    """

    name: str
    fits: Callable[[FileContent], bool]
    read: Read


def read_as(name: str, read: Callable[[], Sequence[Answer]], path: str) -> list[Answer]:
    """The answers that a reader finds; what it cannot make sense of is refused with the name of the file.

    Args:
        name: the format that the file was recognised as.
        read: reads it.
        path: the file.

    Raises:
        FileFormatError: a part of it is not as the tool writes it.
    """
    try:
        return list(read())
    except PairscaleError:
        raise
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{path} looks like {name}, but a part of it is not as that tool writes it: {first_line(error)}"
        ) from None


def rows_of(document: FileContent) -> list[Mapping[str, Any]]:
    """The rows of a document if it is a list of objects, or the one object that it is; else none."""
    content = document.content
    found = content if isinstance(content, list) else [content]
    return list(found) if found and all(isinstance(row, Mapping) for row in found) else []


def parsed(value: Any) -> Any:
    """What a text says if it is a JSON object or list, as in cells of csv files; else the value itself.

    Example:
        >>> parsed('{"a": [1]}'), parsed("{not JSON}")
        ({'a': [1]}, '{not JSON}')
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def first_of(row: Mapping[str, Any], *names: str) -> Any:
    """The first of these that a row has a value for; None when it has none."""
    return next((row[name] for name in names if not is_missing(row.get(name))), None)


def plain_number(value: Any) -> float | None:
    """A figure of a foreign file; None for whatever is no number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def seconds_between(start: Any, end: Any) -> float | None:
    """Seconds between two times in ISO 8601; None where one of them is none, or they are in the wrong order."""
    try:
        took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
    return took if took >= 0 else None


def unsure(where: str, what: str, keys: Sequence[str], option: str) -> FileFormatError:
    """The error for a part of a file that may mean several things."""
    return FileFormatError(f"{where}: {what} could be any of {listed(list(keys), 20)}; name it ({option}=)")
