"""Files of other tools as plain rows: ``task_id input output error variant reference``, whatever the tool calls them.

A tool is an entry of :data:`FORMATS`: what users call its files, whether a row has its shape, and a function from rows
to plain rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pairscale.core.columns import picked
from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError
from pairscale.core.notices import notice
from pairscale.evaluate.formats.messages import (
    are_messages,
    asked_in,
    conversation,
    error_of,
    first_of,
    object_at,
    parsed,
    reply_in,
)
from pairscale.evaluate.suite import as_words, is_missing

Row: TypeAlias = Mapping[str, Any]
Plain: TypeAlias = tuple[Row, dict[str, Any]]
"""A row as it stands in the file, in which the user's columns are looked up, and the same as a plain row."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is known by its shape: what users call it, whether a row has its shape, and its plain rows."""

    name: str
    fits: Callable[[Row], bool]
    plain: Callable[[Sequence[Row], str], Iterator[Plain]]


# Chat messages and batches

_IDS = ("task_id", "custom_id", "ID", "id", "question_id", "example_id", "sample_id")
_BATCH_ENDS = {"succeeded", "errored", "canceled", "expired"}


def is_chat(row: Row) -> bool:
    """Whether a row holds messages, at the top or in a request."""
    return are_messages(_messages(row))


def _messages(row: Row) -> Any:
    """The messages of a row, or of the request in it."""
    holders = (row, *(object_at(row, name) for name in ("request", "body", "params")))
    return next((messages for holder in holders if (messages := parsed(holder.get("messages")))), None)


def task_of_messages(row: Row) -> dict[str, Any]:
    """A chat row as a task of a suite."""
    return {"task_id": first_of(row, *_IDS), "input": conversation(_messages(row))[0]}


def _chat(rows: Sequence[Row], path: str) -> Iterator[Plain]:
    talks = [conversation(_messages(row)) for row in rows]
    replies = [first_of(row, "response", "output", "completion", "answer") for row in rows]
    if all(reply is None and answer is None for reply, (_, answer) in zip(replies, talks, strict=True)):
        raise FileFormatError(
            f"{path} holds messages without an answer of the assistant: requests, not answers; it can be a suite "
            "(suite=)"
        )
    for row, reply, (task, _) in zip(rows, replies, talks, strict=True):
        yield (
            row,
            {
                "task_id": first_of(row, *_IDS),
                "input": task if reply is None else _messages(row),
                "output": _messages(row) if reply is None else parsed(reply),
                "error": row.get("error"),
                "variant": first_of(row, "model", "generator", "model_id"),
            },
        )


def _is_batch(row: Row) -> bool:
    ended = object_at(row, "result").get("type") in _BATCH_ENDS
    return "custom_id" in row and (ended or {"response", "error"} <= row.keys())


def _batch(rows: Sequence[Row], path: str) -> Iterator[Plain]:  # noqa: ARG001 - as all of them are called
    for row in rows:
        result = object_at(row, "result")
        response = object_at(row, "response")
        reply = result.get("message") or response.get("body")
        error = first_of(row, "error") or result.get("error")
        status = response.get("status_code", 200)
        if error is None and result.get("type", "succeeded") != "succeeded":
            error = f"the request {result['type']}"
        elif error is None and status != 200:
            error = f"status {status}: {as_words(reply)[:300]}"
        yield row, {"task_id": row["custom_id"], "output": None if error else reply, "error": error}


# Exports of tools


def _is_promptfoo(row: Row) -> bool:
    return {"vars", "provider"} <= row.keys() and bool({"promptIdx", "testIdx", "promptId"} & row.keys())


def _promptfoo(rows: Sequence[Row], path: str) -> Iterator[Plain]:  # noqa: ARG001
    """Each provider with each prompt is a variant, and a test is known by its variables."""
    prompts = [as_words(first_of(object_at(row, "prompt"), "label", "raw")) for row in rows]
    providers = [as_words(first_of(object_at(row, "provider"), "id") or row["provider"]) for row in rows]
    for row, prompt, provider in zip(rows, prompts, providers, strict=True):
        names = [provider] if len(set(providers)) > 1 or len(set(prompts)) == 1 else []
        names += [prompt] if len(set(prompts)) > 1 else []
        response = object_at(row, "response")
        error = response.get("error")
        if not response.get("output"):  # elsewhere, the row's error is an assertion that the answer did not meet
            error = error or row.get("error")
        variables = object_at(row, "vars")
        task = asked_in(variables) if len(variables) == 1 else as_words(variables)
        yield row, {"input": task, "output": response.get("output"), "error": error, "variant": " / ".join(names)}


def _langsmith(rows: Sequence[Row], path: str) -> Iterator[Plain]:  # noqa: ARG001
    for row in rows:
        if is_missing(row.get("parent_run_id")):  # others are parts of a run
            yield (
                row,
                {
                    "task_id": row.get("reference_example_id"),
                    "input": parsed(row["inputs"]),
                    "output": parsed(row["outputs"]),
                    "error": row.get("error"),
                    "variant": first_of(row, "session_name", "session_id"),
                },
            )


def _is_langfuse(row: Row) -> bool:
    is_trace = {"id", "timestamp", "input", "output"} <= row.keys() and {"sessionId", "userId"} <= row.keys()
    return is_trace or {"traceId", "startTime", "type"} <= row.keys()


def _langfuse(rows: Sequence[Row], path: str) -> Iterator[Plain]:
    tops = [row for row in rows if is_missing(row.get("parentObservationId")) and row.get("type") != "EVENT"]
    if not tops:
        raise FileFormatError(f"{path} has observations of Langfuse that all belong to others; export traces")
    for row in tops:
        observations = parsed(row.get("observations"))
        parts = [row, *(one for one in observations or () if isinstance(one, Mapping))]
        errors = [one.get("statusMessage") or "the level is ERROR" for one in parts if one.get("level") == "ERROR"]
        yield (
            row,
            {
                "task_id": first_of({**object_at(row, "metadata"), **row}, "datasetItemId", "dataset_item_id"),
                "input": parsed(row.get("input")),
                "output": parsed(row.get("output")),
                "error": errors[-1] if errors else None,
                "variant": first_of(row, "datasetRunName", "release"),
            },
        )


def _alpaca(rows: Sequence[Row], path: str) -> Iterator[Plain]:  # noqa: ARG001
    """They have no names, and are paired by the instruction."""
    for row in rows:
        rest = {name: value for name, value in row.items() if name not in {"instruction", "input"}}
        yield row, {**rest, "input": row["instruction"], "variant": row["generator"]}


def _is_mt_answer(row: Row) -> bool:
    choices = row.get("choices")
    if "question_id" not in row or not isinstance(choices, list) or not choices:
        return False
    return all(isinstance(choice, Mapping) and isinstance(choice.get("turns"), list) for choice in choices)


def is_mt_question(row: Row) -> bool:
    """Whether a row is of MT-bench's ``question.jsonl``."""
    return "question_id" in row and isinstance(row.get("turns"), list)


def joined_turns(turns: Sequence[Any]) -> str:
    """The answers of several turns as one text; a single one as it is."""
    words = [as_words(turn.get("content") if isinstance(turn, Mapping) else turn) for turn in turns]
    if len(words) == 1:
        return words[0]
    return "\n\n".join(f"[turn {number}]\n{turn}" for number, turn in enumerate(words, start=1))


def _mt_bench(rows: Sequence[Row], path: str) -> Iterator[Plain]:  # noqa: ARG001
    """All turns of a choice are one answer, and several choices are repeats."""
    for row in rows:
        for choice in row["choices"]:
            text = joined_turns(choice["turns"])
            error = "a turn is $ERROR$" if "$ERROR$" in text else None
            fields = {"task_id": row["question_id"], "output": text, "error": error}
            yield row, {**fields, "variant": first_of(row, "model_id", "model")}


# Logs of inspect_ai

_MOST_SAMPLE = 256 * 2**20


def _is_inspect_log(row: Row) -> bool:
    return isinstance(row.get("eval"), Mapping) and {"version", "status"} <= row.keys()


def _inspect(rows: Sequence[Row], path: str) -> Iterator[Plain]:
    for log in rows:
        samples = log.get("samples") or ()
        if not samples:
            raise FileFormatError(f"{path} is a log of inspect_ai without samples; log them (log_samples=True)")
        if log.get("status") != "success":
            notice(f"{path} has the status {log.get('status')}: tasks that it did not reach are missing")
        for sample in sorted(samples, key=lambda sample: sample.get("epoch") or 0):  # epochs are repeats
            output = object_at(sample, "output")
            yield (
                sample,
                {
                    "task_id": sample["id"],
                    "input": sample.get("input"),
                    "output": output.get("completion") or output,
                    "error": error_of(sample.get("error")) or output.get("error"),
                    "variant": log["eval"].get("model"),
                    "reference": sample.get("target") or None,
                },
            )


def read_inspect_archive(path: Path) -> dict[str, Any]:
    """A ``.eval`` log, a zip file with one part per sample, as the document that its ``.json`` twin holds.

    Raises:
        FileFormatError: it is no such log, or expands to too much.
    """
    try:
        parts = Parts(path)
        names = parts.names()
        header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if header is None:
            raise FileFormatError(f"{path} is a zip file without header.json, and no log of inspect_ai")
        log = json.loads(parts.read(header, _MOST_SAMPLE))
        samples = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
        read = [json.loads(parts.read(name, _MOST_SAMPLE)) for name in samples]
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    except (Unreadable, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None
    # A run that was killed has no header, and so no status.
    return {"version": 2, "status": "started", **log, "samples": read}


# Spans of OpenTelemetry: OTLP JSON, spans as the SDK and AG2 write them, tables of Phoenix.
#
# The spans of one trace become one answer. Two dialects are understood, also mixed: ``gen_ai.*`` of OpenTelemetry (with
# AG2's ``ag2.span.type``), and OpenInference (``openinference.span.kind``, ``output.value``). The root span says the
# task, the answer and the error where it does; else the last call of a model says the answer, and the first the task.

_TASK_IDS = ("ag2.eval.task_id", "eval.task_id", "task_id", "task.id")
_KINDS = ("ag2.span.type", "openinference.span.kind", "gen_ai.operation.name")
_CALLS = {"", "llm", "chat", "text_completion", "generate_content"}
_SAID = {
    "input": ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "input.value"),
    "output": ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "output.value"),
}
"""Where a span may say what was asked and answered, the first of them before the others."""


def _is_otlp(row: Row) -> bool:
    return isinstance(first_of(row, "resourceSpans", "batches"), list)  # Tempo says batches


def _otlp(rows: Sequence[Row], path: str) -> Iterator[Plain]:
    spans: list[Row] = []
    for row in rows:
        for batch in first_of(row, "resourceSpans", "batches"):
            for scope in batch["scopeSpans"]:
                spans += [{**span, "attributes": _otlp_values(span.get("attributes"))} for span in scope["spans"]]
    return _spans(spans, path)


def _otlp_values(attributes: Any) -> dict[str, Any]:
    """Attributes of OTLP, ``{"key": "…", "value": {"stringValue": "…"}}`` and its like; lists are not needed."""
    return {one["key"]: next(iter((one.get("value") or {}).values()), None) for one in attributes or ()}


def _is_ag2(row: Row) -> bool:
    spans = row.get("spans")
    return "trace_id" in row and isinstance(spans, list) and all(isinstance(span, Mapping) for span in spans)


def _ag2(rows: Sequence[Row], path: str) -> Iterator[Plain]:
    for row in rows:
        fields: dict[str, Any] = {"error": "the trace has no spans"}
        if row["spans"]:
            ((_, fields),) = _spans([{**span, "trace_id": row["trace_id"]} for span in row["spans"]], path)
        yield {**row, **object_at(row, "metadata")}, {**fields, "task_id": row.get("task_id") or fields.get("task_id")}


def _is_span(row: Row) -> bool:
    return "name" in row and _trace_id(_nested(row)) is not None and any(name.startswith("attributes") for name in row)


def _trace_id(span: Row) -> Any:
    return first_of({**span, **object_at(span, "context")}, "trace_id", "traceId")


def _spans(rows: Sequence[Row], path: str) -> Iterator[Plain]:
    """One plain row for each trace."""
    spans = [_nested(row) for row in rows]
    if not any(_says(span, "output") is not None or _error(span) for span in spans):
        raise FileFormatError(
            f"{path} has {len(spans):,} spans, and none says what was answered: pairscale reads the attributes of "
            "OpenTelemetry (gen_ai.output.messages) and OpenInference (output.value); turn on the recording of contents"
        )
    traces: dict[str, list[Row]] = {}
    for span in spans:
        traces.setdefault(str(_trace_id(span)), []).append(span)
    for trace_id, own in traces.items():
        own.sort(key=lambda span: str(first_of(span, "end_time", "end_ns", "endTimeUnixNano")))
        ids = {_span_id(span) for span in own}
        roots = [span for span in own if first_of(span, "parent_id", "parentSpanId") not in ids]
        root = roots if len(roots) == 1 else []
        calls = [span for span in own if _kind(span) in _CALLS and _says(span, "output") is not None]
        answers = (_says(span, "output") for span in (*root, *calls[-1:]))
        tasks = (asked_in(_says(span, "input")) for span in (*root, *calls[:1]))
        errors = (_error(span) for span in (*roots, *calls[-1:]))
        attributes = {name: value for span in own for name, value in object_at(span, "attributes").items()}
        yield (
            {**attributes, "trace_id": trace_id},
            {
                "task_id": next((value for path in _TASK_IDS if (value := picked(attributes, path)) is not None), None),
                "input": next((task for task in tasks if task is not None), None),
                "output": next((answer for answer in answers if answer is not None), None),
                "error": next(filter(None, errors), None),
            },
        )


def _span_id(span: Row) -> Any:
    return first_of({**span, **object_at(span, "context")}, "span_id", "spanId")


def _says(span: Row, side: str) -> Any:
    """What a span says of its ``input`` or ``output``; None when it says nothing."""
    attributes = object_at(span, "attributes")
    values = (parsed(picked(attributes, place)) for place in _SAID[side])
    value = next((value for value in values if value is not None), None)
    return None if side == "output" and reply_in(value)[0] is None else value


def _kind(span: Row) -> str:
    kinds = (picked(object_at(span, "attributes"), name) for name in _KINDS)
    return str(next(filter(None, kinds), "")).lower()


def _error(span: Row) -> str | None:
    status = object_at(span, "status") or {"status_code": first_of(span, "status", "status_code")}
    code = str(first_of(status, "status_code", "code")).upper()
    if not code.endswith("ERROR") and code != "2":
        return None
    words = first_of({**span, **status}, "description", "message", "status_message")
    return str(words or "the span has the status ERROR")


def _nested(flat: Row) -> dict[str, Any]:
    """Values with dotted names as objects, and as lists where the names are numbers."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        head, dot, rest = name.partition(".")
        if not dot:
            tree.setdefault(head, value)
        elif isinstance(inner := tree.setdefault(head, {}), dict):
            inner[rest] = value
    for name, value in tree.items():
        if isinstance(value, Mapping):
            inner = _nested(value)
            numbered = inner and all(key.isdecimal() for key in inner)
            tree[name] = [inner[key] for key in sorted(inner, key=int)] if numbered else inner
    return tree


FORMATS = (
    Format("inspect_ai log", _is_inspect_log, _inspect),
    Format("OpenTelemetry spans (OTLP JSON)", _is_otlp, _otlp),
    Format("AG2 traces", _is_ag2, _ag2),
    Format("OpenTelemetry or OpenInference spans", _is_span, _spans),
    Format("promptfoo results", _is_promptfoo, _promptfoo),
    Format("LangSmith runs", lambda row: {"run_type", "inputs", "outputs"} <= row.keys(), _langsmith),
    Format("Langfuse export", _is_langfuse, _langfuse),
    Format("MT-bench answers", _is_mt_answer, _mt_bench),
    Format("AlpacaEval model_outputs.json", lambda row: {"instruction", "output", "generator"} <= row.keys(), _alpaca),
    Format("batch results", _is_batch, _batch),
    Format("chat messages", is_chat, _chat),
)
"""The first that all rows of a file fit is taken."""
