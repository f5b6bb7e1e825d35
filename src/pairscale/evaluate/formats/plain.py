"""Answers in rows of the user's own: which column is which, by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairscale.core.errors import InputError, UnsureColumnError
from pairscale.core.tables import listed
from pairscale.evaluate.formats.answers import Answer, first_of
from pairscale.evaluate.formats.messages import asked_in, replies_in
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import OUTPUT_NAMES, Trace

__all__ = ["VARIANT_NAMES", "read_plain"]

_IDS = ("task_id", "ID")
_OTHER_IDS = ("id", "case_id", "question_id", "example_id", "sample_id", "custom_id", "uid", "qid", "prompt_id")
_OTHER_OUTPUTS = ("completion", "prediction", "model_output", "generated_text", "generation")
_INPUTS = ("instruction", "prompt", "question", "query", "task")

VARIANT_NAMES = ("generator", "model", "model_id", "variant")
"""What the column is called that says whose answer a row holds, the first of them before the others."""


def read_plain(rows: Sequence[Mapping[str, Any]], path: str, *, has_output: bool = False) -> list[Answer]:
    """The answers of rows, by the names of their columns.

    Args:
        rows: the rows; what the user named stands under ``task_id``, ``input`` and ``output``.
        path: the file, for messages.
        has_output: whether the user named the column of the answers.

    Raises:
        InputError: a row has no answer, or several columns may hold it.
    """
    return [_answer(dict(row), f"{path}, row {number}", has_output) for number, row in enumerate(rows, start=1)]


def _answer(row: dict[str, Any], where: str, has_output: bool) -> Answer:
    raw = dict(row)
    row.pop("trace_id", None)
    task_id = _task_id(row, where)
    output = "output" if has_output else _output_column(raw, where)
    value = row.pop(output)
    inputs = ["input"] if "input" in row else [name for name in _INPUTS if name in row]
    if len(inputs) == 1:
        asked = row.pop(inputs[0])
        row["input"] = asked_in(asked).input if isinstance(asked, list | Mapping) else asked
    if isinstance(value, str) and value.strip() in {"NaN", "nan"}:
        value = None  # how tables and str() spell a missing value
    replies = replies_in(value) or [(value, None)]
    if len(replies) > 1:
        raise InputError(
            f"{where}: {output} holds {len(replies)} answers; name one of them (`output_col=`), as in choices[0].text"
        )
    text, failure = replies[0]
    if failure is not None and is_missing(row.get("exception")):
        row["exception"] = failure
    variant = first_of(row, *VARIANT_NAMES)
    trace = Trace.from_dict({**row, "output": text}, where)
    return Answer(trace, task_id, None, None if variant is None else as_words(variant), raw, where)


def _task_id(row: dict[str, Any], where: str) -> str:
    for name in _IDS:
        task_id = id_of(row.pop(name, None), where)
        if task_id:
            return task_id
    others = [name for name in _OTHER_IDS if not is_missing(row.get(name))]
    if len(others) > 1 and not any(name in row for name in ("input", *_INPUTS)):
        raise UnsureColumnError(
            f"{where}: the task may be named by {listed(others)}; name the column (`id_col=`)", "id_col", others
        )
    return id_of(row.pop(others[0]), where) if len(others) == 1 else ""


def _output_column(row: Mapping[str, Any], where: str) -> str:
    """The column of the answer: ``output``, else the only one with a name of the first or of the second kind."""
    for names in (("output",), OUTPUT_NAMES, _OTHER_OUTPUTS):
        columns = [name for name in names if name in row]
        if len(columns) > 1:
            raise UnsureColumnError(
                f"{where}: the answer may be in {listed(columns)}; name the column (output_col=)", "output_col", columns
            )
        if columns:
            return columns[0]
    raise InputError(
        f"{where} has no 'output', the variant's answer; it has {listed(list(row), 20)}: name the column "
        "(`output_col=`)"
    )
