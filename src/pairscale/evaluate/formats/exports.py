"""Exports of promptfoo, Langfuse and LangSmith."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.evaluate.formats.answers import (
    Answer,
    FileContent,
    first_of,
    parsed,
    plain_number,
    rows_of,
    seconds_between,
    unsure,
)
from pairscale.evaluate.formats.chat import completions
from pairscale.evaluate.formats.messages import are_messages, conversation, words_of_content
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import Trace

__all__ = [
    "is_langfuse",
    "is_langsmith",
    "is_promptfoo",
    "read_langfuse",
    "read_langsmith",
    "read_promptfoo",
]

_TASK_KEYS = ("input", "question", "query", "prompt", "instruction", "text")
_PLACES = {"promptIdx", "testIdx", "promptId"}
_ANSWER_KEYS = ("output", "answer", "response", "result", "text", "content", "completion")


# promptfoo


def is_promptfoo(document: FileContent) -> bool:
    """Whether it is what ``promptfoo eval -o FILE.json`` writes, or ``-o FILE.jsonl``."""
    rows = _promptfoo_rows(document)
    return bool(rows) and all(
        isinstance(row, Mapping) and {"vars", "provider"} <= set(row) and _PLACES & set(row) for row in rows
    )


def _promptfoo_rows(document: FileContent) -> Sequence[Any]:
    content = document.content
    if isinstance(content, Mapping) and isinstance(content.get("results"), Mapping):
        found = content["results"].get("results")
        return found if isinstance(found, list) else ()
    return rows_of(document)


def read_promptfoo(document: FileContent) -> list[Answer]:
    """The answers of promptfoo; each provider with each prompt is a variant, and a test is known by its variables."""
    rows = _promptfoo_rows(document)
    several = len({_prompt_of(row) for row in rows}) > 1, len({_provider_of(row) for row in rows}) > 1
    found = []
    for number, row in enumerate(rows, start=1):
        where = f"{document.path}, result {number}"
        given, response = row["vars"], row.get("response")
        response = response if isinstance(response, Mapping) else {}
        task = (
            _wrapped(given) if isinstance(given, Mapping) and given else as_words((row.get("prompt") or {}).get("raw"))
        )
        output = parsed(response.get("output"))
        error = _promptfoo_error(row, response)
        usage = first_of(response, "tokenUsage") or row.get("tokenUsage")
        tokens = plain_number(usage.get("total")) if isinstance(usage, Mapping) else None
        trace = Trace(
            words_of_content(output) if are_messages(output) else as_words(output),
            tokens=None if not tokens else int(tokens),
            cost=plain_number(row.get("cost")) or None,
            duration_ms=plain_number(row.get("latencyMs")),
            exception=error or (None if output is not None else "no output was recorded"),
            metadata={"input": task},
        )
        parts = [name for name, is_one in ((_provider_of(row), several[1]), (_prompt_of(row), several[0])) if is_one]
        variant = " / ".join(parts) or _provider_of(row)
        found.append(Answer(trace, "", _asked(given), variant, row, where))
    return found


def _promptfoo_error(row: Mapping[str, Any], response: Mapping[str, Any]) -> str | None:
    """An error of the provider; ``error`` of a row may also be an assertion that the answer did not meet."""
    if response.get("error"):
        return as_words(response["error"])
    is_error = row.get("failureReason") == 2 or (is_missing(response.get("output")) and row.get("error"))
    return as_words(row.get("error") or "the provider failed") if is_error else None


def _provider_of(row: Mapping[str, Any]) -> str:
    provider = row["provider"]
    return as_words(first_of(provider, "label") or provider.get("id") if isinstance(provider, Mapping) else provider)


def _prompt_of(row: Mapping[str, Any]) -> str:
    prompt = row.get("prompt")
    label = first_of(prompt, "label", "raw") if isinstance(prompt, Mapping) else prompt
    return as_words(label or row.get("promptIdx"))


def _asked(given: Any) -> str:
    """What answers are paired by: the only field of an input, or all of them in a fixed order."""
    if not isinstance(given, Mapping) or len(given) == 1:
        return _wrapped(given) if isinstance(given, Mapping) else as_words(given)
    return as_words(dict(sorted(given.items(), key=lambda one: str(one[0]))))


def _wrapped(given: Mapping[str, Any]) -> str:
    return as_words(next(iter(given.values()))) if len(given) == 1 else as_words(given)


# LangSmith


def is_langsmith(document: FileContent) -> bool:
    """Whether the rows are runs of LangSmith."""
    rows = rows_of(document)
    return bool(rows) and all({"run_type", "inputs", "outputs"} <= set(row) for row in rows)


def read_langsmith(document: FileContent) -> list[Answer]:
    """The answers of runs; parts of other runs are left out, and the example of a dataset is the task."""
    rows = rows_of(document)
    tops = [row for row in rows if is_missing(row.get("parent_run_id"))]
    found = []
    for row in tops or rows:
        where = f"{document.path}, run {row.get('id')}"
        task, asked, system = _task(parsed(row["inputs"]))
        error = row.get("error")
        failure = None if is_missing(error) or not as_words(error).strip() else as_words(error)
        output = parsed(row["outputs"])
        text = None if is_missing(output) or output == {} else _text(output, where, quiet=failure is not None)
        took = seconds_between(row.get("start_time"), row.get("end_time"))
        tokens = plain_number(row.get("total_tokens"))
        trace = Trace(
            text or "",
            tokens=None if tokens is None else int(tokens),
            cost=plain_number(row.get("total_cost")),
            duration_ms=None if took is None else took * 1000,
            exception=failure or (None if text is not None else "no output was recorded"),
            metadata={"input": task, **({"system": system} if system else {})},
        )
        session = first_of(row, "session_name", "project_name", "session_id")
        variant = None if session is None else str(session)
        found.append(Answer(trace, id_of(row.get("reference_example_id"), where), asked, variant, row, where))
    return found


# Langfuse

_OBSERVATIONS = {
    "GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
}  # fmt: skip
_TRACE_MARKS = {"sessionId", "userId", "htmlPath", "totalCost", "bookmarked", "observations", "projectId", "release"}


def is_langfuse(document: FileContent) -> bool:
    """Whether the rows are traces or observations of Langfuse."""
    rows = _langfuse_rows(document)
    return bool(rows) and (all(map(_is_trace, rows)) or all(map(_is_observation, rows)))


def _langfuse_rows(document: FileContent) -> Sequence[Mapping[str, Any]]:
    content = document.content
    if isinstance(content, Mapping) and isinstance(content.get("data"), list):  # a page of the API
        return [row for row in content["data"] if isinstance(row, Mapping)]
    return rows_of(document)


def _is_trace(row: Mapping[str, Any]) -> bool:
    return {"id", "timestamp", "input", "output"} <= set(row) and len(_TRACE_MARKS & set(row)) >= 2


def _is_observation(row: Mapping[str, Any]) -> bool:
    return {"traceId", "startTime"} <= set(row) and row.get("type") in _OBSERVATIONS


def read_langfuse(document: FileContent) -> list[Answer]:
    """The answers of traces, or of the observations that belong to no other."""
    rows = _langfuse_rows(document)
    if all(map(_is_trace, rows)):
        return [_langfuse(row, f"{document.path}, trace {row['id']}", _trace_error(row)) for row in rows]
    tops = [row for row in rows if is_missing(row.get("parentObservationId")) and row.get("type") != "EVENT"]
    if not tops:
        raise FileFormatError(f"{document.path} has observations of Langfuse that all belong to others; export traces")
    return [_langfuse(row, f"{document.path}, observation {row.get('id')}", _level_error(row)) for row in tops]


def _langfuse(row: Mapping[str, Any], where: str, failure: str | None) -> Answer:
    task, asked, system = _task(parsed(row.get("input")))
    output = parsed(row.get("output"))
    text = None if is_missing(output) else _text(output, where, quiet=failure is not None)
    latency = plain_number(row.get("latency"))
    took = latency if latency is not None else seconds_between(row.get("startTime"), row.get("endTime"))
    usage = parsed(first_of(row, "usageDetails", "usage"))
    tokens = plain_number(usage.get("total")) if isinstance(usage, Mapping) else plain_number(row.get("totalTokens"))
    trace = Trace(
        text or "",
        tokens=None if tokens is None else int(tokens),
        cost=plain_number(first_of(row, "totalCost", "calculatedTotalCost")),
        duration_ms=None if took is None else took * 1000,
        exception=failure or (None if text is not None else "no output was recorded"),
        metadata={**({} if task is None else {"input": task}), **({"system": system} if system else {})},
    )
    item = first_of(row, "datasetItemId", "dataset_item_id")
    held = parsed(row.get("metadata"))
    item = first_of(held, "dataset_item_id", "datasetItemId") if item is None and isinstance(held, Mapping) else item
    release = first_of(row, "datasetRunName", "release")
    return Answer(trace, id_of(item, where), asked, None if release is None else str(release), row, where)


def _trace_error(row: Mapping[str, Any]) -> str | None:
    """The error of a trace: that of an observation at its top, where there are any and there is no output."""
    inner = parsed(row.get("observations"))
    tops = [
        one
        for one in (inner if isinstance(inner, list) else ())
        if isinstance(one, Mapping) and is_missing(one.get("parentObservationId"))
    ]
    found = [error for one in tops if (error := _level_error(one))]
    return found[-1] if found else _level_error(row)


def _level_error(row: Mapping[str, Any]) -> str | None:
    if row.get("level") != "ERROR":
        return None
    return as_words(row.get("statusMessage")) or "the level is ERROR"


# Inputs and outputs of any shape


def _task(given: Any) -> tuple[str | None, str | None, str]:
    """The task in an input of any shape, all turns of the user, and the system prompt."""
    if is_missing(given):
        return None, None, ""
    talk = _talk(given)
    if talk is not None:
        told = conversation(talk, "")
        return told.input, told.asked, told.system
    if isinstance(given, Mapping):
        known = [name for name in _TASK_KEYS if name in given]
        if len(known) == 1 and len(given) > 1 and isinstance(given[known[0]], str):
            return as_words(given[known[0]]), _asked(given), ""
        return _wrapped(given) if given else "", _asked(given), ""
    return as_words(given), as_words(given), ""


def _text(output: Any, where: str, *, quiet: bool) -> str:  # noqa: PLR0911 - one for each shape
    """The answer in an output of any shape.

    Raises:
        FileFormatError: several fields may be it.
    """
    talk = _talk(output)
    if talk is not None:
        return conversation(talk).output or ""
    if not isinstance(output, Mapping):
        return as_words(output)
    if are_messages([output]):
        return words_of_content(output.get("content"))
    if {"choices", "candidates", "output_text"} & set(output):
        return completions(output)[0][0]
    generations = output.get("generations")
    if isinstance(generations, list) and generations:
        first = generations[0][0] if isinstance(generations[0], list) and generations[0] else generations[0]
        if isinstance(first, Mapping):
            return as_words(first_of(first, "text")) or words_of_content(first.get("message"))
    known = [name for name in _ANSWER_KEYS if name in output]
    if len(output) == 1 or len(known) == 1:
        value = output[known[0]] if known else next(iter(output.values()))
        return _text(value, where, quiet=quiet) if isinstance(value, Mapping | list) else as_words(value)
    if quiet:  # there was an error besides
        return as_words(output)
    raise unsure(where, "the answer", list(output), "output_col")


def _talk(value: Any) -> Any:
    """Messages in a value: itself, or what stands under ``messages``; LangChain nests lists of them."""
    held = value.get("messages") if isinstance(value, Mapping) else value
    if isinstance(held, list) and len(held) == 1 and isinstance(held[0], list):
        held = held[0]
    return held if are_messages(held) else None
