"""Answers in rows of any shape: which column is which, by its name or as the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairscale.core.errors import FileFormatError, InputError, UnsureColumnError
from pairscale.core.tables import listed
from pairscale.evaluate.formats.answers import Answer, FileContent, first_of
from pairscale.evaluate.formats.chat import completions, is_reply
from pairscale.evaluate.formats.messages import are_messages, conversation
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import OUTPUT_NAMES, Trace

__all__ = ["INPUT_NAMES", "VARIANT_NAMES", "plain_rows", "read_plain"]

_IDS = ("task_id", "ID")
_OTHER_IDS = ("id", "case_id", "question_id", "example_id", "sample_id", "custom_id", "uid", "qid", "prompt_id")
_OTHER_OUTPUTS = ("completion", "prediction", "model_output", "generated_text", "generation")
INPUT_NAMES = ("input", "instruction", "prompt", "question", "query", "task")
"""What the column of the tasks is called, the first of them before the others."""

VARIANT_NAMES = ("generator", "model", "model_id", "variant")
"""What the column is called that says whose answer a row holds, likewise."""


def plain_rows(document: FileContent) -> list[dict[str, Any]]:
    """The rows of a document: a list of objects, the only list of objects in one, or an object by id.

    Raises:
        FileFormatError: it is none of these.
    """
    content = document.content
    if isinstance(content, Mapping):
        lists = [name for name, value in content.items() if _are_rows(value)]
        if len(lists) == 1:
            return [dict(row) for row in content[lists[0]]]
        if content and not lists and all(isinstance(value, str | Mapping) for value in content.values()):
            by_id = [
                {"task_id": name, **(value if isinstance(value, Mapping) else {"output": value})}
                for name, value in content.items()
            ]
            if all(isinstance(value, str) for value in content.values()) or _have_outputs(by_id):
                return by_id
        held = f"; {listed(lists)} are lists" if lists else ""
        raise FileFormatError(
            f"{document.path} must hold JSON objects, one a row, or be a file of a tool that pairscale knows; it is an "
            f"object with {listed(list(content), 12) or 'nothing'}{held}"
        )
    if not isinstance(content, list) or not all(isinstance(row, Mapping) for row in content):
        raise FileFormatError(f"{document.path} must hold JSON objects, one a row")
    return [dict(row) for row in content]


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _have_outputs(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(name in row for row in rows for name in (*OUTPUT_NAMES, *_OTHER_OUTPUTS))


def read_plain(rows: Sequence[dict[str, Any]], path: str, *, has_output: bool = False) -> list[Answer]:
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
    task_id = _task_id(row, where)
    output = _one_of(row, ("output",) if has_output else OUTPUT_NAMES, _OTHER_OUTPUTS, "output_col", where)
    if output is None:
        raise InputError(
            f"{where} has no 'output', the variant's answer; it has {listed(list(raw), 20)}: name the column "
            "(`output_col=`)"
        )
    given = _one_of(row, ("input",), INPUT_NAMES[1:], None, where)
    value = row.pop(output)
    if given is not None:
        asked = row.pop(given)
        row["input"] = conversation(asked, "").input if are_messages(asked) else asked
    if isinstance(value, str) and value.strip() in {"NaN", "nan"}:
        value = None  # how tables and str() spell a missing value
    if is_reply(value):
        value, row = _said(value, row, f"{where}: {output}")
    variant = first_of(row, *VARIANT_NAMES)
    kept = {name: one for name, one in row.items() if name not in OUTPUT_NAMES}
    others = {name: row[name] for name in OUTPUT_NAMES if name in row}
    trace = Trace.from_dict({**kept, "output": value}, where)
    if others:
        trace = Trace.from_dict({**trace.to_dict(), "metadata": {**others, **trace.metadata}}, where)
    return Answer(trace, task_id, None, None if variant is None else as_words(variant), raw, where)


def _said(reply: Any, row: dict[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    """What a message or a provider's reply says, and the row with the reason, where that is no answer."""
    texts = completions(reply)
    if len(texts) > 1:
        raise InputError(f"{where} holds {len(texts)} answers; name one of them (`output_col=`), as in choices[0].text")
    text, failure = texts[0]
    return text, row if failure is None or not is_missing(row.get("exception")) else {**row, "exception": failure}


def _task_id(row: dict[str, Any], where: str) -> str:
    for name in _IDS:
        if name in row and (found := id_of(row.pop(name), where)):
            return found
    others = [name for name in _OTHER_IDS if not is_missing(row.get(name))]
    if len(others) > 1 and not any(name in row for name in INPUT_NAMES):
        raise UnsureColumnError(
            f"{where}: the task may be named by {listed(others)}; name the column (`id_col=`)", "id_col", others
        )
    return id_of(row.pop(others[0]), where) if len(others) == 1 else ""


def _one_of(
    row: Mapping[str, Any], first: Sequence[str], others: Sequence[str], option: str | None, where: str
) -> str | None:
    """The column that holds something: the first name that is there, else the only other one."""
    for names in (first[:1], first[1:], others):
        there = [name for name in names if name in row]
        if len(there) > 1 and option is not None:
            raise UnsureColumnError(
                f"{where}: the answer may be in {listed(there)}; name the column ({option}=)", option, there
            )
        if there:
            return there[0] if len(there) == 1 else None
    return None
