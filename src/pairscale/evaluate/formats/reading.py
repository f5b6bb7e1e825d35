"""Recorded answers from a file or a folder, in whatever format: recognised by shape, said aloud, or refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from pairscale.core.errors import FileFormatError, InputError, PairscaleError, UnsureColumnError
from pairscale.core.files import TABLE_SUFFIXES, read_json, read_rows, replacing
from pairscale.core.notices import notice, plural, without_notices
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import text_hash
from pairscale.core.tables import Table, Values, first_line, listed, to_frame
from pairscale.evaluate.formats.tools import (
    FORMATS,
    Rows,
    asked_in,
    at,
    error_of,
    first_of,
    is_chat,
    joined_turns,
    read_inspect_archive,
    reply_in,
    task_of_messages,
)
from pairscale.evaluate.tasks import (
    InMemoryTraceSource,
    Row,
    Trace,
    TraceSource,
    as_words,
    id_of,
    is_missing,
)

ANSWER_SUFFIXES = (*TABLE_SUFFIXES, ".eval")
"""The endings of files that hold answers."""

_IDS = ("id", "case_id", "question_id", "example_id", "sample_id", "custom_id", "uid", "qid", "prompt_id")
OUTPUT_NAMES = ("output", "response", "answer", "text")
"""What the answer is called in a table, the first of them before the others."""
_OUTPUTS = ("completion", "prediction", "model_output", "generated_text", "generation")
_COLUMNS = {
    "task_id": (("task_id",), ("ID",), _IDS),
    "input": (("input",), ("instruction", "prompt", "question", "query", "task")),
    "output": (("output",), OUTPUT_NAMES, _OUTPUTS),
}
"""By our name, the names that a column may have, by kinds: a name of the first kind is taken before others."""
_VARIANTS = ("variant", "generator", "model", "model_id")


RowSource: TypeAlias = "FilePath | Table"
"""A file, or a table in memory."""
Columns: TypeAlias = Mapping[str, str]
"""By our name, the columns or JSON paths that the user named."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a file.

    Attributes:
        trace: the answer, or why there is none; the task is in its metadata as ``input``.
        task_id: the name of the task, the same in every recording of it; empty when the file has none.
        variant: who answered, where a file may hold the answers of several.
    """

    trace: Trace
    task_id: str = ""
    variant: str | None = None


def variants_of(answers: Iterable[Answer]) -> tuple[str, ...]:
    """Who answered, where a task has the answers of several; else none."""
    pairs = {(answer.task_id or answer.trace.metadata.get("input"), answer.variant): None for answer in answers}
    tasks = {task for task, variant in pairs if variant is not None}
    variants = [variant for _, variant in pairs if variant is not None]
    return () if len(tasks) == len(variants) else tuple(dict.fromkeys(variants))


def source_of(answers: Iterable[Answer]) -> InMemoryTraceSource:
    """Answers as a source."""
    return InMemoryTraceSource((answer.task_id or None, answer.trace) for answer in answers)


@checked
def read_outputs(
    path: FilePath | Table,
    *,
    id_col: str | None = None,
    input_col: str | None = None,
    output_col: str | None = None,
    variant: str | None = None,
    encoding: str | None = None,
) -> InMemoryTraceSource:
    """Recorded outputs as a source: a table of your own (jsonl, json, csv, …), or a file of another tool.

    Files of inspect_ai (``.eval`` and ``.json``), OpenTelemetry and OpenInference (spans in JSON), AG2, promptfoo,
    Langfuse, LangSmith, MT-bench and AlpacaEval, and chat messages are recognised by their shape, and a line says which
    it is. Other files have a row per answer with ``task_id`` (or ``ID``) and ``output`` (or ``response``, ``answer``,
    ``text``). ``tokens``, ``cost``, ``duration_ms``, ``exception`` and ``events`` are taken where they are there; the
    rest goes to ``metadata``, and an ``input`` or a ``reference`` in it is used where no suite says what the task is.
    Without ``task_id``, answers are paired by ``input``.

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
    answers = read_answers(path, named_columns(id_col, input_col, output_col), encoding)
    return source_of(of_variant(answers, variant, name_of(path)))


def named_columns(id_col: str | None, input_col: str | None, output_col: str | None = None) -> dict[str, str]:
    """By our name, the columns or JSON paths that the user named."""
    named = {"task_id": id_col, "input": input_col, "output": output_col}
    return {ours: theirs for ours, theirs in named.items() if theirs is not None}


def is_path(given: Any) -> bool:
    """Whether it is the path of a file or a folder."""
    return isinstance(given, str | os.PathLike)


def is_table(given: Any) -> bool:
    """Whether it is a table in memory: a list of dicts, or a pandas, Polars or Arrow table."""
    if isinstance(given, list | tuple):
        return _are_rows(list(given))
    return isinstance(given, pl.LazyFrame) or hasattr(given, "iloc") or hasattr(given, "__arrow_c_stream__")


def name_of(given: Any) -> str:
    """What messages call a file or a table."""
    return str(given) if is_path(given) else "the table"


def holds_rows(given: Any) -> bool:
    """Whether it is a file or a table, and no folder."""
    return is_table(given) or (is_path(given) and not Path(given).is_dir())


def recorded(given: Any) -> TraceSource | None:
    """Recorded answers as a source: a file, a folder, a table, or a mapping; None of anything else."""
    if holds_rows(given):
        return read_outputs(given)
    if is_path(given):
        return DirectoryTraceSource(given)
    if isinstance(given, Mapping):
        return InMemoryTraceSource(given)
    source: TraceSource = given
    return source if isinstance(given, TraceSource) else None


class DirectoryTraceSource(InMemoryTraceSource):
    """Traces in a folder, in one file each or many: as :func:`save_trace` writes them, AG2, or another tool.

    Args:
        folder: the folder.

    Raises:
        FileFormatError: when there is no such folder, or no file of answers in it.
    """

    @checked
    def __init__(self, folder: FilePath) -> None:
        paths = Path(folder).iterdir() if Path(folder).is_dir() else ()
        files = sorted(file for file in paths if file.suffix.lower() in ANSWER_SUFFIXES)
        if not files:
            raise FileFormatError(f"{folder} is not a folder with files of answers ({', '.join(ANSWER_SUFFIXES)})")
        with without_notices():
            answers = [answer for file in files for answer in read_answers(file)]
        super().__init__((answer.task_id or None, answer.trace) for answer in of_variant(answers, None, str(folder)))


@checked
def save_trace(trace: Trace, folder: FilePath, *, task_id: str, trace_id: str | None = None) -> Path:
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
    target.mkdir(parents=True, exist_ok=True)
    # Names of tasks may hold anything; those of files may not.
    path = target / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', name)[:80].lstrip('.')}-{text_hash(name)[:8]}.json"
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({"task_id": task_id, **trace.to_dict()}, indent=1, default=str), "utf-8")
    return path


# Files


def read_answers(path: RowSource, named: Columns | None = None, encoding: str | None = None) -> list[Answer]:
    """The answers of a file of any format, or of a table; a notice names the format of another tool.

    Args:
        path: the file, or a table in memory.
        named: by our name, the columns that the user named.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: it cannot be read, may mean several things, or lacks what was named.
    """
    named = named or {}
    file = name_of(path)
    rows = _rows(path, named.values(), encoding)
    form = next((form for form in FORMATS if all(map(form.fits, rows))), None)
    if form is None:
        plain = [(row, _plain_row(row, named, f"{file}, row {number}")) for number, row in enumerate(rows, start=1)]
    else:
        try:
            plain = list(form.plain(rows, file))
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, PairscaleError):
                raise
            raise FileFormatError(
                f"{file} looks like {form.name}, but a part of it is not as that tool writes it: {first_line(error)}"
            ) from None
    _require_columns([row for row, _ in plain], named.values(), file)
    answers = []
    for number, (row, fields) in enumerate(plain, start=1):
        chosen = {ours: at(row, theirs) for ours, theirs in named.items()}
        answers.append(_answer({**fields, **chosen}, f"{file}, row {number}"))
    if form is not None:
        failed = sum(answer.trace.failure is not None for answer in answers)
        failures = f", {plural(failed, 'failure')} among them" if failed else ""
        notice(f"read {plural(len(answers), 'answer')} from {file}: {form.name}{failures}")
    return answers


def _answer(fields: Values, where: str) -> Answer:
    """An answer from a plain row."""
    task_id = id_of(fields.pop("task_id", None))
    variant = first_of(fields, *_VARIANTS)
    fields.pop("variant", None)
    output = fields.pop("output", None)
    if isinstance(output, str) and output.strip() in {"NaN", "nan"}:
        output = None  # how tables and str() spell a missing value
    try:
        fields["output"], failure = reply_in(output)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    failure = error_of(fields.pop("error", None)) or failure
    if failure is not None and is_missing(fields.get("exception")):
        fields["exception"] = failure
    fields["input"] = asked_in(fields.get("input"))
    known = {name: value for name, value in fields.items() if value is not None or name == "output"}
    return Answer(Trace.from_dict(known, where), task_id, None if variant is None else as_words(variant))


def _plain_row(row: Row, named: Columns, where: str) -> Values:
    """A row of the user's own, its columns under our names."""
    plain = {name: value for name, value in row.items() if name not in named.values() and name != "trace_id"}
    for ours, kinds in _COLUMNS.items():
        column = None if ours in named else _only_column(plain, kinds, ours, where)
        if column is not None:
            plain[ours] = plain.pop(column)
    names = {*plain, *named}
    if "output" not in names:
        lacking = "'output', the variant's answer: name its column (`output_col=`)"
    elif not {"task_id", "input"} & names:
        lacking = "task_id and no input, by which answers are paired: name the column (`id_col=` or `input_col=`)"
    else:
        return plain
    raise InputError(f"{where} has no {lacking}; it has {listed(list(row), 20)}")


def _only_column(row: Row, kinds: Sequence[Sequence[str]], ours: str, where: str) -> str | None:
    """The only column with a name of the first kind of which there is one; None when there is none."""
    for names in kinds:
        columns = [name for name in names if name in row]
        if len(columns) > 1 and ours != "input":
            option = f"{ours.removeprefix('task_')}_col"
            raise UnsureColumnError(
                f"{where}: it may be {listed(columns)}; name the column (`{option}=`)", option, columns
            )
        if len(columns) == 1:
            return columns[0]
    return None


def read_both_outputs(
    path: RowSource, columns: Sequence[Any], named: Columns, encoding: str | None = None
) -> list[InMemoryTraceSource]:
    """The answers of A and of B from one table; a row without a name of its own is known by its number.

    Args:
        path: the file, or a table in memory.
        columns: of A's and of B's answers, or their paths in JSON.
        named: by our name, the columns that the user named.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: that names the file, the row or the column.
    """
    rows = _rows(path, (*named.values(), *columns), encoding)
    _require_columns(rows, columns, name_of(path))
    left_out = {*columns, *OUTPUT_NAMES}
    sources = []
    for column in columns:
        answers = []
        for number, row in enumerate(rows, start=1):
            shared = {name: value for name, value in row.items() if name not in left_out and not is_missing(value)}
            task_id = first_of(row, "ID") or f"row-{number:04d}"
            answers.append({"task_id": task_id, **shared, "output": at(row, column)})
        sources.append(source_of(read_answers(answers, named)))
    return sources


def read_tasks(path: RowSource, named: Columns | None = None, encoding: str | None = None) -> list[Values]:
    """The tasks of a file, as rows for a suite: a table, questions of MT-bench, or chat messages.

    Args:
        path: the file, or a table in memory.
        named: by our name, the columns that the user named.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: it cannot be read, or lacks what was named.
    """
    named = named or {}
    rows = _rows(path, named.values(), encoding)
    if not named and all("question_id" in row and isinstance(row.get("turns"), list) for row in rows):
        return [_mt_task(row) for row in rows]
    if not named and all(map(is_chat, rows)):
        return [task_of_messages(row) for row in rows]
    _require_columns(rows, named.values(), name_of(path))
    tasks = []
    for row in rows:
        task = {name: value for name, value in row.items() if name not in named.values()}
        tasks.append(task | {ours: at(row, theirs) for ours, theirs in named.items()})
    return tasks


def _mt_task(row: Row) -> Values:
    reference = row.get("reference")
    return {
        "task_id": row["question_id"],
        "input": joined_turns(row["turns"]),
        "reference": joined_turns(reference) if isinstance(reference, list) else None,
        "tags": row.get("category"),
    }


def _rows(path: RowSource, wanted: Iterable[str], encoding: str | None) -> Rows:
    """The rows of a file or of a table in memory.

    Raises:
        FileFormatError: it has none.
    """
    if isinstance(path, list | tuple):
        return [dict(row) for row in path]
    if is_table(path):
        return to_frame(path).to_dicts()
    suffix = Path(path).suffix.lower()
    if suffix not in ANSWER_SUFFIXES:
        raise FileFormatError(f"{path}: a file of answers must end in {listed(sorted(ANSWER_SUFFIXES), 20)}")
    if suffix == ".eval":
        return [read_inspect_archive(Path(path))]
    if suffix == ".json":
        return _rows_in(read_json(path, encoding=encoding), str(path))
    text = ("task_id", "input", "reference", "reference_outputs", "tags", *OUTPUT_NAMES, *wanted)
    return _rows_in(read_rows(path, text=text, encoding=encoding), str(path))


def _rows_in(content: Any, path: str) -> list[Row]:
    """The rows of JSON: a list of objects, the only list in one, a row alone, or answers by the name of the task."""
    if isinstance(content, Mapping):
        inner = content["results"] if isinstance(content.get("results"), Mapping) else content
        lists = [inner[name] for name in ("results", "data") if _are_rows(inner.get(name))]
        lists = lists or [value for value in content.values() if _are_rows(value)]
        if any(form.fits(content) for form in FORMATS) or any(name in content for name in OUTPUT_NAMES):
            content = [content]
        elif len(lists) == 1:
            content = lists[0]
        elif all(isinstance(value, str) for value in content.values()):
            content = [{"task_id": name, "output": value} for name, value in content.items()]
    if not _are_rows(content):
        raise FileFormatError(f"{path} must hold JSON objects, one a row, or be a file of a tool that pairscale knows")
    return list(content)


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _require_columns(rows: Rows, wanted: Iterable[str], path: str) -> None:
    for name in wanted:
        if all(is_missing(at(row, name)) for row in rows):
            columns = list(dict.fromkeys(key for row in rows for key in row))
            raise InputError(f"{path}: no column {name!r}; it has {listed(columns, 20)}")


def of_variant(answers: list[Answer], variant: str | None, path: str) -> list[Answer]:
    """The answers of one variant of a file.

    Raises:
        InputError: there are several, and none of them was named.
    """
    own = [answer for answer in answers if answer.variant == variant is not None]
    variants = variants_of(answers)
    if variants and not own:
        raise InputError(
            f"{path} holds the answers of {listed(variants, 20)}; name one of them (variant=, or name_a= and name_b=)"
        )
    return own or answers
