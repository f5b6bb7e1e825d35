"""Recorded answers from a file or a folder, in whatever format: recognised by shape, said aloud, or refused."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.columns import picked
from pairscale.core.errors import FileFormatError, InputError, PairscaleError
from pairscale.core.files import TABLE_SUFFIXES, read_json, read_rows
from pairscale.core.notices import notice, plural
from pairscale.core.options import checked
from pairscale.core.tables import Table, first_line, listed, to_frame
from pairscale.evaluate.formats import chat, exports, inspect_logs, spans
from pairscale.evaluate.formats.answers import Answer, Unfinished, first_of
from pairscale.evaluate.formats.plain import VARIANT_NAMES, read_plain
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import OUTPUT_NAMES, InMemoryTraceSource, TraceRef, TraceSource

__all__ = [
    "ANSWER_SUFFIXES",
    "PLAIN",
    "AnswerFile",
    "Columns",
    "RecordedAnswers",
    "asked_of",
    "is_table",
    "name_of",
    "of_variant",
    "read_answers",
    "read_both_outputs",
    "read_outputs",
    "read_quietly",
    "read_tasks",
    "recorded",
    "source_at",
    "unfinished_of",
]

ANSWER_SUFFIXES = (*TABLE_SUFFIXES, ".eval")
"""The endings of files that hold answers."""

PLAIN = "plain rows"
"""The format of a file that is of no tool in particular."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Format:
    """A format that is known by its shape: what users call it, whether a row has its shape, and the answers in rows."""

    name: str
    fits: Callable[[Row], bool]
    read: Callable[[Sequence[Row], str], Iterable[Answer]]


_INSPECT = "inspect_ai log"
_FORMATS = (
    _Format(_INSPECT, inspect_logs.is_inspect_log, inspect_logs.read_inspect_log),
    _Format("OpenTelemetry spans (OTLP JSON)", spans.is_otlp, spans.read_otlp),
    _Format("AG2 traces", spans.is_ag2, spans.read_ag2),
    _Format("OpenTelemetry or OpenInference spans", spans.is_span, spans.read_spans),
    _Format("promptfoo results", exports.is_promptfoo, exports.read_promptfoo),
    _Format("LangSmith runs", exports.is_langsmith, exports.read_langsmith),
    _Format("Langfuse export", exports.is_langfuse, exports.read_langfuse),
    _Format("MT-bench answers", exports.is_mt_answer, exports.read_mt_answers),
    _Format("AlpacaEval model_outputs.json", exports.is_alpaca, exports.read_alpaca),
    _Format("batch results", chat.is_batch, chat.read_batch),
    _Format("chat messages", chat.is_chat, chat.read_chat),
)
"""The first that all rows of a file fit is taken."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns or JSON paths that the user named; None for those that pairscale finds.

    Attributes:
        id_col: of the tasks' names.
        input_col: of the tasks.
        output_col: of the answers.
    """

    id_col: str | None = None
    input_col: str | None = None
    output_col: str | None = None

    def given(self) -> dict[str, str]:
        """By our name, those that were named."""
        pairs = {"task_id": self.id_col, "input": self.input_col, "output": self.output_col}
        return {ours: theirs for ours, theirs in pairs.items() if theirs is not None}


class RecordedAnswers(InMemoryTraceSource):
    """The answers of a file, as a source.

    Args:
        answers: the answers.

    Attributes:
        unfinished: the logs among its files that ended too early.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__((answer.task_id, answer.trace) for answer in answers)
        self._answers = tuple(answers)
        self.unfinished = tuple(dict.fromkeys(one.unfinished for one in answers if one.unfinished is not None))

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, in the order of the file."""
        for at, answer in enumerate(self._answers):
            known = {"where": answer.where.rpartition(", ")[2]}
            asked = asked_of(answer)
            if asked:
                known["input"] = asked
            yield TraceRef(str(at), answer.task_id or None, known)


def asked_of(answer: Answer) -> str:
    """What an answer without a name is paired by."""
    return answer.asked if answer.asked is not None else as_words(answer.trace.metadata.get("input"))


@checked
def read_outputs(
    path: str | os.PathLike[str] | Table,
    *,
    id_col: str | None = None,
    input_col: str | None = None,
    output_col: str | None = None,
    variant: str | None = None,
    encoding: str | None = None,
) -> InMemoryTraceSource:
    """Recorded outputs as a source: a table of your own (jsonl, json, csv, …), or a file of another tool.

    Files of inspect_ai (``.eval`` and ``.json``), OpenTelemetry and OpenInference (spans in JSON), AG2, promptfoo,
    Langfuse, LangSmith, MT-bench and AlpacaEval, chat messages and results of batches are recognised by their shape,
    and a line says which it is. Other files have a row per answer with ``task_id`` (or ``ID``) and ``output`` (or
    ``response``, ``answer``, ``text``). ``tokens``, ``cost``, ``duration_ms``, ``exception`` and ``events`` are taken
    where they are there; the rest goes to ``metadata``, and an ``input`` or a ``reference`` in it is used where no
    suite says what the task is. Without ``task_id``, answers are paired by ``input``.

    Args:
        path: the file, or a table: a list of dicts, or a pandas, Polars or Arrow table.
        id_col: the column of the tasks' names, or its path in JSON, where it is not ``task_id``.
        input_col: the column of the tasks, likewise, where it is not ``input``.
        output_col: the column of the answers, likewise, where it is not ``output``.
        variant: whose answers, where a file holds those of several.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: that names the file and the row.

    Example:
        >>> import json
        >>> _ = Path("answers.jsonl").write_text(json.dumps({"task_id": "t1", "output": "Rome."}), "utf-8")
        >>> len(read_outputs("answers.jsonl"))
        1
    """
    found = read_answers(path, Columns(id_col, input_col, output_col), encoding=encoding)
    return RecordedAnswers(of_variant(found, variant, name_of(path)))


def is_table(given: Any) -> bool:
    """Whether it is a table in memory: a list of dicts, or a pandas, Polars or Arrow table."""
    if isinstance(given, list | tuple):
        return bool(given) and all(isinstance(row, Mapping) for row in given)
    return isinstance(given, pl.LazyFrame) or hasattr(given, "iloc") or hasattr(given, "__arrow_c_stream__")


def recorded(given: Any) -> TraceSource | None:
    """Answers in memory as a source: a table, a mapping from task to answer, or a source; None of anything else."""
    if is_table(given):
        return read_outputs(given)
    if isinstance(given, Mapping):
        return InMemoryTraceSource(given)
    source: TraceSource = given
    return source if all(callable(getattr(given, method, None)) for method in ("list", "load")) else None


def unfinished_of(source: Any) -> tuple[Unfinished, ...]:
    """The logs of a source, or of the variant that answers from it, that ended too early."""
    return getattr(source, "unfinished", ())


def name_of(given: Any) -> str:
    """What messages call a file or a table."""
    return str(given) if isinstance(given, str | os.PathLike) else "the table"


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The answers of a file.

    Attributes:
        answers: the answers, of all variants.
        format: what it was recognised as.
    """

    answers: tuple[Answer, ...]
    format: str

    @property
    def variants(self) -> tuple[str, ...]:
        """Who answered, where a task has the answers of several; else none."""
        pairs = dict.fromkeys((answer.task_id or asked_of(answer), answer.variant) for answer in self.answers)
        known = [(task, variant) for task, variant in pairs if variant is not None]
        if len({task for task, _ in known}) == len(known):
            return ()
        return tuple(dict.fromkeys(variant for _, variant in known))


def read_answers(
    path: str | os.PathLike[str] | Table, columns: Columns | None = None, *, encoding: str | None = None
) -> AnswerFile:
    """The answers of a file of any format, which is said where it is one of another tool, or of a table.

    Args:
        path: the file, or a table in memory.
        columns: what the user named.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: it cannot be read, may mean several things, or lacks what was named.
    """
    found = read_quietly(path, columns, encoding)
    if found.format != PLAIN:
        _tell_read(found, name_of(path))
    return found


def _tell_read(found: AnswerFile, path: str) -> None:
    failed = sum(answer.trace.failure is not None for answer in found.answers)
    failures = f"; {failed:,} of them {'is a failure' if failed == 1 else 'are failures'}" if failed else ""
    notice(f"read {plural(len(found.answers), 'answer')} from {path}: {found.format}{failures}")


def of_variant(found: AnswerFile, variant: str | None, path: str) -> tuple[Answer, ...]:
    """The answers of one variant of a file.

    Raises:
        InputError: there are several, and none of them was named.
    """
    own = tuple(answer for answer in found.answers if answer.variant == variant is not None)
    if own:
        return own
    if found.variants:
        raise InputError(
            f"{path} holds the answers of {listed(found.variants, 20)}; name one of them (variant=, or name_a= "
            "and name_b=)"
        )
    return found.answers


def read_both_outputs(
    path: str | os.PathLike[str] | Table,
    a_col: str,
    b_col: str,
    names: tuple[str, str],
    *,
    id_col: str | None = None,
    input_col: str | None = None,
    encoding: str | None = None,
) -> tuple[InMemoryTraceSource, InMemoryTraceSource]:
    """The answers of A and of B from one table; a row without a task of its own is known by its number.

    Where another column says whose answer each is (``generator_2`` beside ``output_2``), only the rows of the two that
    ``names`` says are taken, in either order; they have to be named where a column holds the answers of several.

    Args:
        path: the file, or a table in memory.
        a_col: the column of A's answers, or its path in JSON.
        b_col: that of B's.
        names: what A and B are called.
        id_col: the column of the tasks' names.
        input_col: the column of the tasks.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: that names the file, the row or the column.
    """
    named = Columns(id_col, input_col).given()
    rows = _plain_rows(_content(path, (*named.values(), a_col, b_col), encoding), name_of(path))
    _require_columns(rows, (*named.values(), a_col, b_col), name_of(path))
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    others = {a_col, b_col, *OUTPUT_NAMES}
    for number, row, columns in _sided(rows, (a_col, b_col), names, name_of(path)):
        known = _with_ours(row, named)
        shared = {name: value for name, value in known.items() if name not in others}
        if not first_of(shared, "task_id", "ID"):
            shared["task_id"] = f"row-{number:04d}"
        for side, column in zip(sides, columns, strict=True):
            side.append({**shared, "output": _picked(row, column)})
    a, b = (RecordedAnswers(read_plain(side, name_of(path), has_output=True)) for side in sides)
    return a, b


def read_tasks(
    path: str | os.PathLike[str] | Table, columns: Columns | None = None, *, encoding: str | None = None
) -> list[dict[str, Any]]:
    """The tasks of a file, as rows for a suite: a table, questions of MT-bench, or chat messages.

    Args:
        path: the file, or a table in memory.
        columns: what the user named.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: it cannot be read, or lacks what was named.
    """
    named = (columns or Columns()).given()
    content = _content(path, tuple(named.values()), encoding)
    rows = _rows(content)
    if rows and not named and all(map(exports.is_mt_question, rows)):
        return exports.mt_questions(rows, name_of(path))
    if rows and not named and all(map(chat.is_chat, rows)):
        return chat.requests_of(rows, name_of(path))
    plain = _plain_rows(content, name_of(path))
    _require_columns(plain, tuple(named.values()), name_of(path))
    return [_with_ours(row, named) for row in plain]


def source_at(path: str | os.PathLike[str]) -> TraceSource:
    """Recorded answers at a path: a folder of traces, or a file of any format that :func:`read_outputs` reads.

    Raises:
        InputError: it is neither.
    """
    folder = Path(path)
    if not folder.is_dir():
        return read_outputs(path)
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in ANSWER_SUFFIXES)
    if not files:
        raise FileFormatError(f"{path} is a folder without files of answers ({', '.join(ANSWER_SUFFIXES)})")
    read = [read_quietly(file) for file in files]
    formats = ", ".join(dict.fromkeys(one.format for one in read))
    found = AnswerFile(tuple(answer for one in read for answer in one.answers), formats)
    if formats != PLAIN:
        _tell_read(found, str(path))
    return RecordedAnswers(of_variant(found, None, str(path)))


# Files


def read_quietly(
    path: str | os.PathLike[str] | Table, columns: Columns | None = None, encoding: str | None = None
) -> AnswerFile:
    """The same as :func:`read_answers`, without a word on what the file was recognised as."""
    named = (columns or Columns()).given()
    file = name_of(path)
    if not is_table(path) and Path(path).suffix.lower() == ".eval":
        format_name = _INSPECT
        answers = _read_as(_INSPECT, lambda: inspect_logs.read_inspect_archive(Path(path)), file)
    else:
        content = _content(path, tuple(named.values()), encoding)
        rows = _rows(content)
        found = next((one for one in _FORMATS if rows and all(map(one.fits, rows))), None)
        is_own_table = "output" in named and any(not is_missing(_picked(row, named["output"])) for row in rows)
        if found is None or is_own_table:
            return _plain(_plain_rows(content, file), named, file)
        format_name = found.name
        answers = _read_as(format_name, lambda: found.read(rows, file), file)
    for theirs in named.values():
        _require_value([answer.row for answer in answers], theirs, file)
    return AnswerFile(tuple(_renamed(answer, named) for answer in answers), format_name)


def _read_as(name: str, read: Callable[[], Iterable[Answer]], path: str) -> list[Answer]:
    """The answers that a reader finds; what it cannot make sense of is refused with the name of the file."""
    try:
        return list(read())
    except PairscaleError:
        raise
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{path} looks like {name}, but a part of it is not as that tool writes it: {first_line(error)}"
        ) from None


def _content(path: str | os.PathLike[str] | Table, wanted: Sequence[str], encoding: str | None) -> Any:
    """What a file or a table holds: of JSON what it says, else a list of rows."""
    if isinstance(path, list | tuple):
        return [dict(row) for row in path]
    if is_table(path):
        return to_frame(path).to_dicts()
    suffix = Path(path).suffix.lower()
    if suffix not in ANSWER_SUFFIXES:
        raise FileFormatError(f"{path}: a file of answers must end in {listed(sorted(ANSWER_SUFFIXES), 20)}")
    if suffix == ".json":
        return read_json(path, encoding=encoding)
    text = ("task_id", "input", "reference", "reference_outputs", "tags", *OUTPUT_NAMES, *wanted)
    return read_rows(path, text=text, encoding=encoding)


def _rows(content: Any) -> list[Row]:
    """The rows in which formats are looked for: a list of objects, one object, or what promptfoo or an API wraps."""
    if isinstance(content, Mapping):
        results = content.get("results")
        wrapped = results.get("results") if isinstance(results, Mapping) else content.get("data")
        content = wrapped if isinstance(wrapped, list) else [content]
    is_rows = isinstance(content, list) and all(isinstance(row, Mapping) for row in content)
    return content if is_rows else []


def _plain_rows(content: Any, path: str) -> list[dict[str, Any]]:
    """The rows of a user's own file: a list of objects, the only list of objects in one, one row, or answers by id.

    Raises:
        FileFormatError: it is none of these.
    """
    if isinstance(content, Mapping):
        lists = [name for name, value in content.items() if value and isinstance(value, list) and _rows(value)]
        if any(name in content for name in OUTPUT_NAMES):
            content = [content]
        elif len(lists) == 1:
            content = content[lists[0]]
        elif content and all(isinstance(value, str) for value in content.values()):
            content = [{"task_id": name, "output": value} for name, value in content.items()]
        else:
            raise FileFormatError(
                f"{path} must hold JSON objects, one a row, or be a file of a tool that pairscale knows; it is an "
                f"object with {listed(list(content), 12) or 'nothing'}"
            )
    if not isinstance(content, list) or not all(isinstance(row, Mapping) for row in content):
        raise FileFormatError(f"{path} must hold JSON objects, one a row")
    return [dict(row) for row in content]


def _plain(rows: Sequence[Row], named: Mapping[str, str], path: str) -> AnswerFile:
    _require_columns(rows, tuple(named.values()), path)
    answers = read_plain([_with_ours(row, named) for row in rows], path, has_output="output" in named)
    if not answers:
        raise FileFormatError(f"{path} has no answers")
    for answer in answers:
        if not answer.task_id and not asked_of(answer):
            raise InputError(
                f"{answer.where} has no task_id and no input, by which the answers of A and B are paired; it has "
                f"{listed(list(answer.row), 20)}: name the column (`id_col=` or `input_col=`)"
            )
    return AnswerFile(tuple(answers), PLAIN)


# Columns that the user named


def _picked(row: Row, column: str) -> Any:
    """A column by its name, or what stands at a path."""
    return row[column] if column in row else picked(row, column)


def _require_columns(rows: Sequence[Row], wanted: Sequence[str], path: str) -> None:
    for name in wanted:
        if not any(name in row for row in rows):
            _require_value(rows, name, path)


def _require_value(rows: Sequence[Row], name: str, path: str) -> None:
    if rows and all(is_missing(_picked(row, name)) for row in rows):
        columns = list(dict.fromkeys(key for row in rows for key in row))
        raise InputError(f"{path}: no column {name!r}; it has {listed(columns, 20)}")


def _with_ours(row: Row, named: Mapping[str, str]) -> dict[str, Any]:
    """A row with the columns that were named under our names."""
    kept = {name: value for name, value in row.items() if name not in named.values()}
    generator = _generator(row, named.get("output", ""))
    if generator is not None and first_of(kept, *VARIANT_NAMES) is None:
        kept["variant"] = generator
    return {**kept, **{ours: _picked(row, theirs) for ours, theirs in named.items()}}


def _renamed(answer: Answer, named: Mapping[str, str]) -> Answer:
    """An answer with what stands in its row where the user said."""
    values = {ours: _picked(answer.row, theirs) for ours, theirs in named.items()}
    if not is_missing(values.get("output")):
        answer = replace(answer, trace=replace(answer.trace, output=as_words(values["output"])))
    if "input" in values:
        metadata = {**answer.trace.metadata, "input": as_words(values["input"])}
        answer = replace(answer, trace=replace(answer.trace, metadata=metadata), asked=None)
    if "task_id" in values:
        answer = replace(answer, task_id=id_of(values["task_id"], answer.where))
    return answer


def _sided(
    rows: Sequence[Row], columns: tuple[str, str], names: tuple[str, str], path: str
) -> list[tuple[int, Row, tuple[str, str]]]:
    """The rows to compare with their numbers, each with the columns of the answers of A and of B.

    Raises:
        InputError: a column holds the answers of several, and the names say not whose to take.
    """
    turned = (columns[1], columns[0])
    generators = [(_generator(row, columns[0]), _generator(row, columns[1])) for row in rows]
    places = {names: columns, (names[1], names[0]): turned}
    numbered = list(enumerate(zip(rows, generators, strict=True), start=1))
    found = [(number, row, places[pair]) for number, (row, pair) in numbered if pair in places]
    n_turned = sum(taken is turned for _, _, taken in found)
    if n_turned:
        rows_are = "row has" if n_turned == 1 else "rows have"
        notice(
            f"{path}: {n_turned:,} {rows_are} the answer of {names[0]} in {columns[1]!r}, and it is taken from there"
        )
    if found:
        return found
    if any(len(set(side)) > 1 for side in zip(*generators, strict=True)):
        known = dict.fromkeys(name for pair in generators for name in pair if name is not None)
        raise InputError(
            f"{path} holds answers of {listed(list(known), 20)} in {columns[0]!r} and {columns[1]!r}; name two of them "
            "that were compared with each other (name_a= and name_b=)"
        )
    return [(number, row, columns) for number, (row, _) in numbered]


def _generator(row: Row, column: str) -> str | None:
    """Whose answer a column holds, where another column with the same ending says it: ``model_a``, ``generator_2``."""
    stem, _, side = column.rpartition("_")
    found = first_of(row, *(f"{name}_{side}" for name in VARIANT_NAMES)) if stem else None
    return None if found is None else as_words(found)
