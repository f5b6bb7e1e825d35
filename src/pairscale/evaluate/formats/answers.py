"""One recorded answer, whatever the tool that recorded it, and the parts that all formats share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pairscale.evaluate.suite import id_of, is_missing
from pairscale.evaluate.traces import Trace

__all__ = [
    "Answer",
    "AskedTask",
    "Unfinished",
    "answer_of",
    "first_of",
    "object_at",
    "parsed",
    "plain_number",
    "seconds_between",
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
class AskedTask:
    """What a variant was asked.

    Attributes:
        input: the task, as judges see it; None when it was not recorded.
        asked: all turns of the user, by which answers without a name are paired; None when ``input`` is all.
        system: the system prompt, which belongs to the variant.
    """

    input: str | None = None
    asked: str | None = None
    system: str = ""


def answer_of(
    row: Mapping[str, Any],
    where: str,
    text: str | None,
    failure: str | None = None,
    *,
    question: AskedTask | None = None,
    task_id: Any = None,
    variant: Any = None,
    tokens: Any = None,
    metadata: Mapping[str, Any] | None = None,
    **figures: Any,
) -> Answer:
    """An answer from what a tool recorded; figures that are no numbers are left out.

    Args:
        row: the answer as it stands in the file.
        where: the file and the place in it.
        text: the answer; None when there is none.
        failure: why it is no answer.
        question: what was asked.
        task_id: the name of the task.
        variant: who answered.
        tokens: how many it took; 0 stands for unknown.
        metadata: what else is known.
        figures: ``cost`` and ``duration_ms``; and ``events``, which stay as they are.
    """
    known = dict(metadata or {})
    asked = question or AskedTask()
    if asked.input is not None:
        known["input"] = asked.input
    if asked.system:
        known["system"] = asked.system
    if text is None and failure is None:
        failure = "no output was recorded"
    count = plain_number(tokens)
    trace = Trace(
        text or "",
        figures.get("events", ()),
        tokens=int(count) if count else None,
        cost=plain_number(figures.get("cost")),
        duration_ms=plain_number(figures.get("duration_ms")),
        exception=failure,
        metadata=known,
    )
    return Answer(trace, id_of(task_id, where), asked.asked, None if variant is None else str(variant), row, where)


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


def object_at(row: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The first object under one of these names, also where it is JSON in a cell; an empty one when there is none."""
    found = (parsed(row.get(name)) for name in names)
    return next((value for value in found if isinstance(value, Mapping)), {})


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
    """Seconds between two times in ISO 8601; None where one of them is none."""
    from datetime import datetime

    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
