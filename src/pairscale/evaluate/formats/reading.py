"""Recorded answers from a file or a folder, in whatever format: recognised by shape, said aloud, or refused."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.columns import picked
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import TABLE_SUFFIXES, read_json, read_rows
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.tables import Table, listed, to_frame
from pairscale.evaluate.folders import DirectoryTraceSource, is_trace_document
from pairscale.evaluate.formats import benchmarks, chat, exports, inspect_logs, spans
from pairscale.evaluate.formats.answers import Answer, FileContent, Format, Unfinished, first_of, read_as
from pairscale.evaluate.formats.plain import VARIANT_NAMES, plain_rows, read_plain
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import OUTPUT_NAMES, InMemoryTraceSource, TraceRef, TraceSource

__all__ = [
    "ANSWER_SUFFIXES",
    "PLAIN",
    "AnswerFile",
    "Columns",
    "RecordedAnswers",
    "is_table",
    "name_of",
    "of_variant",
    "read_answers",
    "read_both_outputs",
    "read_outputs",
    "read_tasks",
    "recorded",
    "source_at",
    "unfinished_of",
]

ANSWER_SUFFIXES = (*TABLE_SUFFIXES, ".eval")
"""The endings of files that hold answers."""

PLAIN = "plain rows"
"""The format of a file that is of no tool in particular."""

_FORMATS = (
    Format("inspect_ai log", inspect_logs.is_inspect_log, inspect_logs.read_inspect_log),
    Format("OpenTelemetry spans (OTLP JSON)", spans.is_otlp, spans.read_otlp),
    Format("AG2 traces", spans.is_ag2, spans.read_ag2),
    Format("OpenTelemetry or OpenInference spans", spans.is_sdk_spans, spans.read_sdk_spans),
    Format("promptfoo results", exports.is_promptfoo, exports.read_promptfoo),
    Format("LangSmith runs", exports.is_langsmith, exports.read_langsmith),
    Format("Langfuse export", exports.is_langfuse, exports.read_langfuse),
    Format("MT-bench answers", benchmarks.is_mt_answers, benchmarks.read_mt_answers),
    Format("AlpacaEval model_outputs.json", benchmarks.is_alpaca, benchmarks.read_alpaca),
    Format("batch results", chat.is_batch, chat.read_batch),
    Format("chat messages", chat.is_chat, chat.read_chat),
)


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
        format: what the file was recognised as.

    Attributes:
        unfinished: the logs among its files that ended too early.
    """

    def __init__(self, answers: Sequence[Answer], format: str = PLAIN) -> None:  # noqa: A002 - it is the format
        super().__init__((answer.task_id, answer.trace) for answer in answers)
        self._answers = tuple(answers)
        self.format = format
        self.unfinished = tuple(dict.fromkeys(one.unfinished for one in answers if one.unfinished is not None))

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, in the order of the file."""
        for at, answer in enumerate(self._answers):
            asked = answer.asked if answer.asked is not None else answer.trace.metadata.get("input")
            known = {"where": answer.where.rpartition(", ")[2]}
            if not is_missing(asked):
                known["input"] = as_words(asked)
            yield TraceRef(str(at), answer.task_id or None, known)


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
    columns = Columns(id_col, input_col, output_col)
    found = read_answers(path, columns, encoding=encoding)
    return RecordedAnswers(of_variant(found, variant, name_of(path)), found.format)


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
        variants: who answered, where a task has the answers of several; else none.
    """

    answers: tuple[Answer, ...]
    format: str
    variants: tuple[str, ...]


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
    named, file = (columns or Columns()).given(), name_of(path)
    if not is_table(path) and Path(path).suffix.lower() == ".eval":
        name = "inspect_ai log"
        answers = read_as(name, lambda: inspect_logs.read_inspect_archive(Path(path)), file)
    else:
        document = _document(path, tuple(named.values()), encoding)
        fits = [one for one in _FORMATS if one.fits(document)]
        if len(fits) > 1:
            raise FileFormatError(
                f"{file} may be {' or '.join(one.name for one in fits)}; write its answers as rows with task_id, input "
                "and output"
            )
        if fits and not _is_row_wise(document, named):
            name = fits[0].name
            answers = read_as(name, lambda: fits[0].read(document), file)
        else:
            return _plain(document, named, file)
    answers = [_renamed(answer, named) for answer in answers]
    _require_found(answers, named, file)
    _require_some(answers, file)
    notice(f"read {len(answers):,} answer{'s' * (len(answers) != 1)} from {file}: {name}{_failures(answers)}")
    return AnswerFile(tuple(answers), name, _variants(answers))


def of_variant(found: AnswerFile, variant: str | None, path: str) -> tuple[Answer, ...]:
    """The answers of one variant of a file.

    Raises:
        InputError: there are several, and none of them was named.
    """
    if variant is not None and variant in {answer.variant for answer in found.answers}:
        return tuple(answer for answer in found.answers if answer.variant == variant)
    if found.variants:
        raise InputError(
            f"{path} holds the answers of {listed(list(found.variants), 20)}; name one of them (variant=, or name_a= "
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
    rows = plain_rows(_document(path, (*named.values(), a_col, b_col), encoding))
    rows = [_with_ours(row, named) for row in rows]
    _require_columns(rows, (a_col, b_col), name_of(path))
    for number, row in enumerate(rows, start=1):
        if not (row.get("task_id") or row.get("ID")):
            row["task_id"] = f"row-{number:04d}"
    taken = _sided(rows, (a_col, b_col), names, name_of(path))
    others = {a_col, b_col, *OUTPUT_NAMES}
    a, b = (
        [
            {**{name: row[name] for name in row if name not in others}, "output": _picked(row, of[at])}
            for row, of in taken
        ]
        for at in (0, 1)
    )
    return tuple(RecordedAnswers(read_plain(side, name_of(path), has_output=True)) for side in (a, b))  # type: ignore[return-value]


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
    document = _document(path, tuple(named.values()), encoding)
    if not named and benchmarks.is_mt_questions(document):
        return benchmarks.mt_questions(document)
    if not named and chat.is_chat(document):
        return chat.requests_of(document)
    rows = plain_rows(document)
    _require_columns(rows, tuple(named.values()), name_of(path))
    return [_with_ours(row, named) for row in rows]


def source_at(path: str | os.PathLike[str]) -> TraceSource:
    """Recorded answers at a path: a folder of traces, or a file of any format that :func:`read_outputs` reads.

    Raises:
        InputError: it is neither.
    """
    folder = Path(path)
    if not folder.is_dir():
        return read_outputs(path)
    files = sorted(one for one in folder.iterdir() if one.suffix.lower() in ANSWER_SUFFIXES)
    if not files or all(is_trace_document(one) for one in files if one.suffix.lower() == ".json"):
        if all(one.suffix.lower() == ".json" for one in files):
            return DirectoryTraceSource(folder)
    read = [read_answers(one) for one in files]
    answers = [answer for one in read for answer in one.answers]
    whole = AnswerFile(tuple(answers), ", ".join(dict.fromkeys(one.format for one in read)), _variants(answers))
    return RecordedAnswers(of_variant(whole, None, str(path)), whole.format)


# Files


def _document(path: str | os.PathLike[str] | Table, wanted: Sequence[str], encoding: str | None) -> FileContent:
    if is_table(path):
        rows = [dict(row) for row in path] if isinstance(path, list | tuple) else to_frame(path).to_dicts()
        return FileContent(rows, name_of(path), is_rows=True)
    suffix = Path(path).suffix.lower()
    if suffix not in ANSWER_SUFFIXES:
        raise FileFormatError(f"{path}: a file of answers must end in {listed(sorted(ANSWER_SUFFIXES), 20)}")
    if suffix == ".json":
        return FileContent(read_json(path, encoding=encoding), str(path), is_rows=False)
    text = ("task_id", "input", "reference", "reference_outputs", "tags", *OUTPUT_NAMES, *wanted)
    return FileContent(read_rows(path, text=text, encoding=encoding), str(path), is_rows=True)


def _is_row_wise(document: FileContent, named: Mapping[str, str]) -> bool:
    """Whether the user named what is a column of the rows, so that they are read by it."""
    if "output" not in named or not isinstance(document.content, list):
        return False
    return any(not is_missing(_picked(row, named["output"])) for row in document.content)


def _plain(document: FileContent, named: Mapping[str, str], path: str) -> AnswerFile:
    rows = plain_rows(document)
    _require_columns(rows, tuple(named.values()), path)
    answers = read_plain([_with_ours(row, named) for row in rows], path, has_output="output" in named)
    _require_some(answers, path)
    for answer in answers:
        if not answer.task_id and is_missing(answer.trace.metadata.get("input")):
            raise InputError(
                f"{answer.where} has no task_id and no input, by which the answers of A and B are paired; it has "
                f"{listed(list(answer.row), 20)}: name the column (`id_col=` or `input_col=`)"
            )
    nothing = sum(_is_nan(answer.row.get("output")) for answer in answers)
    if nothing:
        notice(f"{path}: {nothing:,} answer{'s are' if nothing != 1 else ' is'} NaN, which counts as no answer")
    return AnswerFile(tuple(answers), PLAIN, _variants(answers))


def _is_nan(value: Any) -> bool:
    return isinstance(value, str) and value.strip() in {"NaN", "nan"}


def _picked(row: Mapping[str, Any], column: str) -> Any:
    """A column by its name, or what stands at a path."""
    return row[column] if column in row else picked(row, column)


def _with_ours(row: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    """A row with the columns that were named under our names."""
    kept = {name: value for name, value in row.items() if name not in named.values()}
    if (generator := _generator(row, named.get("output", ""))) is not None and first_of(kept, *VARIANT_NAMES) is None:
        kept["variant"] = generator
    return {**kept, **{ours: _picked(row, theirs) for ours, theirs in named.items()}}


def _sided(
    rows: Sequence[dict[str, Any]], columns: tuple[str, str], names: tuple[str, str], path: str
) -> list[tuple[dict[str, Any], tuple[str, str]]]:
    """The rows to compare, each with the columns of the answers of A and of B.

    Raises:
        InputError: a column holds the answers of several, and the names say not whose to take.
    """
    of = [(_generator(row, columns[0]), _generator(row, columns[1])) for row in rows]
    found = [
        (row, columns if pair == names else columns[::-1])
        for row, pair in zip(rows, of, strict=True)
        if pair in (names, names[::-1])
    ]
    if swapped := sum(taken != columns for _, taken in found):
        rows_are = "row has" if swapped == 1 else "rows have"
        notice(f"{path}: {swapped:,} {rows_are} the answer of {names[0]} in {columns[1]!r}, and it is taken from there")
    if found:
        return found
    if any(len({pair[side] for pair in of}) > 1 for side in (0, 1)):
        there = list(dict.fromkeys(name for pair in of for name in pair if name is not None))
        raise InputError(
            f"{path} holds answers of {listed(there, 20)} in {columns[0]!r} and {columns[1]!r}; name two of them that "
            "were compared with each other (name_a= and name_b=)"
        )
    return [(row, columns) for row in rows]


def _generator(row: Mapping[str, Any], column: str) -> str | None:
    """Whose answer a column holds, where another column with the same ending says it: ``model_a``, ``generator_2``."""
    stem, mark, side = column.rpartition("_")
    if not mark or not stem:
        return None
    found = first_of(row, *(f"{name}_{side}" for name in VARIANT_NAMES))
    return None if found is None else as_words(found)


def _require_columns(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str], path: str | os.PathLike[str]) -> None:
    for name in wanted:
        if rows and all(name not in row and picked(row, name) is None for row in rows):
            there = list(dict.fromkeys(key for row in rows for key in row))
            raise InputError(f"{path}: no column {name!r}; it has {listed(there, 20)}")


# Answers


def _renamed(answer: Answer, named: Mapping[str, str]) -> Answer:
    """An answer with what stands in its row where the user said."""
    if not named:
        return answer
    trace, found = answer.trace, {ours: _picked(answer.row, theirs) for ours, theirs in named.items()}
    if not is_missing(found.get("output")):
        trace = replace(trace, output=as_words(found["output"]))
    if "input" in found:
        trace = replace(trace, metadata={**trace.metadata, "input": as_words(found["input"])})
    return replace(
        answer,
        trace=trace,
        task_id=id_of(found["task_id"], answer.where) if "task_id" in found else answer.task_id,
        asked=None if "input" in found else answer.asked,
    )


def _require_found(answers: Sequence[Answer], named: Mapping[str, str], path: str) -> None:
    for theirs in named.values():
        if answers and all(is_missing(_picked(answer.row, theirs)) for answer in answers):
            there = list(dict.fromkeys(key for answer in answers for key in answer.row))
            raise InputError(f"{path}: there is nothing at {theirs!r}; there are {listed(there, 20)}")


def _require_some(answers: Sequence[Answer], path: str) -> None:
    if not answers:
        raise FileFormatError(f"{path} has no answers")


def _variants(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Who answered, where one task has the answers of several."""
    by_task: dict[str, set[str]] = {}
    for answer in answers:
        if answer.variant is not None:
            task = answer.task_id or answer.asked or as_words(answer.trace.metadata.get("input"))
            by_task.setdefault(task, set()).add(answer.variant)
    if not any(len(names) > 1 for names in by_task.values()):
        return ()
    return tuple(dict.fromkeys(answer.variant for answer in answers if answer.variant is not None))


def _failures(answers: Sequence[Answer]) -> str:
    failed = sum(answer.trace.failure is not None for answer in answers)
    return f"; {failed:,} of them {'is a failure' if failed == 1 else 'are failures'}" if failed else ""
