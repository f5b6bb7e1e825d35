"""Answers as benchmarks keep them: AlpacaEval's ``model_outputs.json`` and MT-bench's answers and questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.evaluate.formats.answers import Answer, FileContent, first_of, rows_of
from pairscale.evaluate.formats.messages import joined_turns
from pairscale.evaluate.suite import as_words, id_of
from pairscale.evaluate.traces import Trace

__all__ = [
    "is_alpaca",
    "is_mt_answers",
    "is_mt_questions",
    "mt_questions",
    "read_alpaca",
    "read_mt_answers",
]


def is_alpaca(document: FileContent) -> bool:
    """Whether it is AlpacaEval's ``model_outputs.json``."""
    rows = rows_of(document)
    return bool(rows) and all({"instruction", "output", "generator"} <= set(row) for row in rows)


def read_alpaca(document: FileContent) -> list[Answer]:
    """The answers of AlpacaEval; they have no names, and are paired by the instruction."""
    found = []
    for number, row in enumerate(rows_of(document), start=1):
        where = f"{document.path}, row {number}"
        task = as_words(row["instruction"])
        if extra := as_words(row.get("input")):  # Alpaca's data have an input beside the instruction
            task = f"{task}\n\n{extra}"
        known = {name: row[name] for name in row if name not in {"instruction", "input", "output"}}
        trace = Trace.from_dict({"output": row["output"], "metadata": {**known, "input": task}}, where)
        variant = as_words(row["generator"])
        found.append(Answer(trace, "", variant=variant, row=row, where=where))
    return found


def is_mt_answers(document: FileContent) -> bool:
    """Whether it is a file of MT-bench's ``model_answer``."""
    rows = rows_of(document)
    return bool(rows) and all("question_id" in row and _has_turns(row.get("choices")) for row in rows)


def _has_turns(choices: Any) -> bool:
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(one, Mapping) and isinstance(one.get("turns"), list) for one in choices)
    )


def read_mt_answers(document: FileContent) -> list[Answer]:
    """The answers of MT-bench: all turns of a choice are one answer, and several choices are repeats."""
    found = []
    for number, row in enumerate(rows_of(document), start=1):
        where = f"{document.path}, row {number}"
        for choice in row["choices"]:
            turns = [as_words(_turn(turn)) for turn in choice["turns"]]
            output = joined_turns(turns) if any(turn.strip() for turn in turns) else ""
            missing = [at for at, turn in enumerate(turns, start=1) if _is_error(turn)]
            trace = Trace(
                output,
                exception=f"turn {missing[0]}: {turns[missing[0] - 1]}" if missing else None,
                metadata={"turns": len(turns)},
            )
            variant = first_of(row, "model_id", "model")
            known = None if variant is None else str(variant)
            found.append(Answer(trace, id_of(row["question_id"], where), variant=known, row=row, where=where))
    return found


def _turn(turn: Any) -> Any:
    """A turn is a text, or with Arena-Hard an object with one."""
    return turn.get("content") if isinstance(turn, Mapping) else turn


def _is_error(turn: str) -> bool:
    """FastChat writes this where the provider did not answer."""
    return turn.strip() == "$ERROR$"


def is_mt_questions(document: FileContent) -> bool:
    """Whether it is MT-bench's ``question.jsonl``."""
    rows = rows_of(document)
    return bool(rows) and all("question_id" in row and isinstance(row.get("turns"), list) for row in rows)


def mt_questions(document: FileContent) -> list[dict[str, Any]]:
    """The questions of MT-bench as tasks.

    Raises:
        FileFormatError: a question has no turns.
    """
    tasks = []
    for number, row in enumerate(rows_of(document), start=1):
        where = f"{document.path}, row {number}"
        turns = [as_words(_turn(turn)) for turn in row["turns"]]
        if not turns:
            raise FileFormatError(f"{where} has no turns")
        task: dict[str, Any] = {"task_id": id_of(row["question_id"], where), "input": joined_turns(turns)}
        reference = row.get("reference")
        if isinstance(reference, list) and reference:
            task["reference"] = joined_turns([as_words(one) for one in reference])
        if row.get("category"):
            task["tags"] = [str(row["category"])]
        tasks.append(task)
    return tasks
