"""Exports of promptfoo, Langfuse and LangSmith, and answers of the benchmarks AlpacaEval and MT-bench."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.evaluate.formats.answers import (
    Answer,
    AskedTask,
    answer_of,
    first_of,
    object_at,
    parsed,
    seconds_between,
)
from pairscale.evaluate.formats.messages import asked_in, joined_turns, reply_in
from pairscale.evaluate.suite import as_words, id_of, is_missing

__all__ = [
    "is_alpaca",
    "is_langfuse",
    "is_langsmith",
    "is_mt_answer",
    "is_mt_question",
    "is_promptfoo",
    "mt_questions",
    "read_alpaca",
    "read_langfuse",
    "read_langsmith",
    "read_mt_answers",
    "read_promptfoo",
]

Row = Mapping[str, Any]


# promptfoo


def is_promptfoo(row: Row) -> bool:
    """Whether a row is a result of ``promptfoo eval``."""
    return {"vars", "provider"} <= row.keys() and bool({"promptIdx", "testIdx", "promptId"} & row.keys())


def read_promptfoo(rows: Sequence[Row], path: str) -> Iterator[Answer]:
    """The answers of promptfoo; each provider with each prompt is a variant, and a test is known by its variables."""
    names = [(_provider(row), _prompt(row)) for row in rows]
    many_providers = len({provider for provider, _ in names}) > 1
    many_prompts = len({prompt for _, prompt in names}) > 1
    for number, (row, (provider, prompt)) in enumerate(zip(rows, names, strict=True), start=1):
        response = object_at(row, "response")
        text, failure = reply_in(response.get("output"))
        error = response.get("error")
        # The row's own error may be an assertion that the answer did not meet.
        if not error and (row.get("failureReason") == 2 or text is None):
            error = row.get("error") or failure
        variant = provider
        if many_prompts:
            variant = f"{provider} / {prompt}" if many_providers else prompt
        variables = object_at(row, "vars")
        question = asked_in(variables)
        if len(variables) > 1:  # all of them are the task
            question = AskedTask(as_words(variables), question.asked)
        elif not variables:
            question = asked_in(object_at(row, "prompt").get("raw"))
        yield answer_of(
            row,
            f"{path}, result {number}",
            text,
            as_words(error) if error else None,
            question=question,
            variant=variant,
            tokens=object_at(response, "tokenUsage").get("total"),
            cost=row.get("cost") or None,
            duration_ms=row.get("latencyMs"),
        )


def _provider(row: Row) -> str:
    provider = row["provider"]
    return as_words(provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider)


def _prompt(row: Row) -> str:
    return as_words(first_of(object_at(row, "prompt"), "label", "raw") or row.get("promptIdx"))


# LangSmith


def is_langsmith(row: Row) -> bool:
    """Whether a row is a run of LangSmith."""
    return {"run_type", "inputs", "outputs"} <= row.keys()


def read_langsmith(rows: Sequence[Row], path: str) -> Iterator[Answer]:
    """The answers of runs; parts of other runs are left out, and the example of a dataset is the task."""
    tops = [row for row in rows if is_missing(row.get("parent_run_id"))]
    for row in tops or rows:
        text, failure = reply_in(parsed(row["outputs"]))
        yield answer_of(
            row,
            f"{path}, run {row.get('id')}",
            text,
            as_words(row.get("error")).strip() or failure,
            question=asked_in(parsed(row["inputs"])),
            task_id=row.get("reference_example_id"),
            variant=first_of(row, "session_name", "project_name", "session_id"),
            tokens=row.get("total_tokens"),
            cost=row.get("total_cost"),
            duration_ms=_milliseconds(row.get("start_time"), row.get("end_time")),
        )


# Langfuse

_OBSERVATIONS = {
    "GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
}  # fmt: skip
_TRACE_MARKS = {"sessionId", "userId", "htmlPath", "totalCost", "bookmarked", "observations", "projectId", "release"}


def is_langfuse(row: Row) -> bool:
    """Whether a row is a trace or an observation of Langfuse."""
    if {"id", "timestamp", "input", "output"} <= row.keys():
        return len(_TRACE_MARKS & row.keys()) >= 2
    return {"traceId", "startTime"} <= row.keys() and row.get("type") in _OBSERVATIONS


def read_langfuse(rows: Sequence[Row], path: str) -> Iterator[Answer]:
    """The answers of traces, or of the observations that belong to no other."""
    tops = [row for row in rows if is_missing(row.get("parentObservationId")) and row.get("type") != "EVENT"]
    if not tops:
        raise FileFormatError(f"{path} has observations of Langfuse that all belong to others; export traces")
    for row in tops:
        text, failure = reply_in(parsed(row.get("output")))
        seconds = first_of(row, "latency")
        duration = _milliseconds(row.get("startTime"), row.get("endTime"))
        if isinstance(seconds, int | float):
            duration = seconds * 1000
        items = {**object_at(row, "metadata"), **row}
        yield answer_of(
            row,
            f"{path}, {'observation' if 'traceId' in row else 'trace'} {row.get('id')}",
            text,
            _langfuse_error(row) or failure,
            question=asked_in(parsed(row.get("input"))),
            task_id=first_of(items, "datasetItemId", "dataset_item_id"),
            variant=first_of(row, "datasetRunName", "release"),
            tokens=first_of(object_at(row, "usageDetails", "usage"), "total") or row.get("totalTokens"),
            cost=first_of(row, "totalCost", "calculatedTotalCost"),
            duration_ms=duration,
        )


def _langfuse_error(row: Row) -> str | None:
    """The error of a row, or of the last observation at the top of a trace that has one."""
    inner = parsed(row.get("observations"))
    observations = [one for one in inner if isinstance(one, Mapping)] if isinstance(inner, list) else []
    tops = [one for one in observations if is_missing(one.get("parentObservationId"))]
    errors = [as_words(one.get("statusMessage")) for one in (row, *tops) if one.get("level") == "ERROR"]
    return (errors[-1] or "the level is ERROR") if errors else None


def _milliseconds(start: Any, end: Any) -> float | None:
    seconds = seconds_between(start, end)
    return None if seconds is None else seconds * 1000


# AlpacaEval


def is_alpaca(row: Row) -> bool:
    """Whether a row is of AlpacaEval's ``model_outputs.json``."""
    return {"instruction", "output", "generator"} <= row.keys()


def read_alpaca(rows: Sequence[Row], path: str) -> Iterator[Answer]:
    """The answers of AlpacaEval; they have no names, and are paired by the instruction."""
    for number, row in enumerate(rows, start=1):
        # Alpaca's data have an input beside the instruction
        task = "\n\n".join(filter(None, (as_words(row["instruction"]), as_words(row.get("input")))))
        text = None if is_missing(row["output"]) else as_words(row["output"])
        known = {name: row[name] for name in row if name not in {"instruction", "input", "output"}}
        yield answer_of(
            row,
            f"{path}, row {number}",
            text,
            question=AskedTask(task),
            variant=row["generator"],
            metadata=known,
        )


# MT-bench


def is_mt_answer(row: Row) -> bool:
    """Whether a row is of MT-bench's ``model_answer``."""
    choices = row.get("choices")
    if "question_id" not in row or not isinstance(choices, list) or not choices:
        return False
    return all(isinstance(choice, Mapping) and isinstance(choice.get("turns"), list) for choice in choices)


def read_mt_answers(rows: Sequence[Row], path: str) -> Iterator[Answer]:
    """The answers of MT-bench: all turns of a choice are one answer, and several choices are repeats."""
    for number, row in enumerate(rows, start=1):
        for choice in row["choices"]:
            turns = _turns(choice["turns"])
            failed = [f"turn {at}: {turn}" for at, turn in enumerate(turns, start=1) if turn.strip() == "$ERROR$"]
            yield answer_of(
                row,
                f"{path}, row {number}",
                joined_turns(turns) if any(turn.strip() for turn in turns) else "",
                failed[0] if failed else None,
                task_id=row["question_id"],
                variant=first_of(row, "model_id", "model"),
                metadata={"turns": len(turns)},
            )


def is_mt_question(row: Row) -> bool:
    """Whether a row is of MT-bench's ``question.jsonl``."""
    return "question_id" in row and isinstance(row.get("turns"), list)


def mt_questions(rows: Sequence[Row], path: str) -> list[dict[str, Any]]:
    """The questions of MT-bench as tasks."""
    tasks = []
    for row in rows:
        task: dict[str, Any] = {
            "task_id": id_of(row["question_id"], path),
            "input": joined_turns(_turns(row["turns"])) or None,
        }
        if row.get("reference"):
            task["reference"] = joined_turns(_turns(row["reference"]))
        if row.get("category"):
            task["tags"] = [str(row["category"])]
        tasks.append(task)
    return tasks


def _turns(turns: Any) -> list[str]:
    """Turns as texts; with Arena-Hard, each is an object with one."""
    if not isinstance(turns, list):
        return [as_words(turns)]
    return [as_words(turn.get("content") if isinstance(turn, Mapping) else turn) for turn in turns]
