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
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.notices import notice
from pairscale.evaluate.tasks import as_words, is_missing

# Chat messages and replies of every provider and framework: what was asked, and what was answered


_SPEAKERS = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "gpt"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_CONTENTS = ("content", "parts", "text", "value")
_NOT_SAID = {"reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use", "function_call", "tool_calls"}
_TASK_KEYS = ("input", "question", "query", "prompt", "instruction", "text")
_ANSWER_KEYS = ("output", "answer", "response", "result", "text", "content", "completion")
_PARTS = {"text": "text", "output_text": "text", "refusal": "refusal"}

Reply: TypeAlias = tuple[str | None, str | None]
"""What was answered, and why that is no answer; both are None where nothing was recorded."""


def first_of(row: Mapping[str, Any], *names: str) -> Any:
    """The first of these that a row has a value for; None when it has none."""
    return next((row[name] for name in names if not is_missing(row.get(name))), None)


def object_at(row: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The first object under one of these names, also where it is JSON in a cell; an empty one when there is none."""
    values = (parsed(row.get(name)) for name in names)
    return next((value for value in values if isinstance(value, Mapping)), {})


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


def are_messages(value: Any) -> bool:
    """Whether a value is a list of chat messages, with a speaker each.

    Example:
        >>> are_messages([{"role": "user", "content": "Hello"}]), are_messages([{"text": "Hello"}])
        (True, False)
    """
    return isinstance(value, list) and bool(value) and all(_turn(message) is not None for message in value)


def conversation(messages: Sequence[Any]) -> Reply:
    """The task and the answer in a list of messages; the answer is None when the assistant said nothing.

    Example:
        >>> conversation([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital?"},
        ...               {"role": "assistant", "content": "Paris."}])
        ('Capital?', 'Paris.')
    """
    turns = _turns(messages)
    start = next((at for at, (who, _) in enumerate(turns) if who == "assistant"), len(turns))
    rest = turns[start:]
    answer = None
    if any(who == "user" for who, _ in rest):
        answer = _transcript(rest)
    elif rest:  # calls of tools and their results stand before the last words, which are the answer
        answer = rest[-1][1] if rest[-1][0] == "assistant" else ""
    return _transcript(turns[:start]), answer


def words_of(content: Any) -> str:
    r"""The words of a message's content: a text, or parts of it; thoughts and calls are left out, other parts named.

    Example:
        >>> words_of([{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "…"}}])
        'See:\n[image_url]'
    """
    if isinstance(content, list):
        return "\n".join(filter(None, map(words_of, content)))
    if not isinstance(content, Mapping):
        return as_words(content)
    kind = content.get("type")
    if kind in _NOT_SAID:
        return ""
    held = first_of(content, *_CONTENTS, "refusal")
    if held is not None:
        return words_of(held)
    return f"[{kind}]" if isinstance(kind, str) else as_words(content)


def _turn(message: Any) -> tuple[str, str] | None:
    """Who says what in a message; None for what is no message. LangChain and OpenInference wrap them."""
    if not isinstance(message, Mapping):
        return None
    inner = object_at(message, "message", "kwargs") or message
    who = _SPEAKERS.get(str(first_of(inner, "role", "type", "from")))
    if who is None or not any(name in inner for name in (*_CONTENTS, "tool_calls")):
        return None
    return who, words_of(first_of(inner, *_CONTENTS))


def _turns(messages: Sequence[Any]) -> list[tuple[str, str]]:
    turns = [turn for message in messages if (turn := _turn(message)) is not None]
    return [(who, words) for who, words in turns if who != "system"]


def _transcript(turns: Sequence[tuple[str, str]]) -> str:
    """Turns as a text: those of the user alone as they stand, others with who said them."""
    told = [(who, words) for who, words in turns if words.strip()]
    if all(who == "user" for who, _ in told):
        return "\n\n".join(words for _, words in told)
    return "\n\n".join(f"[{who}]\n{words}" for who, words in told)


def _messages_in(value: Any) -> list[Any] | None:
    """Messages in a value: itself, or what stands under ``messages``; LangChain nests lists of them."""
    held = value
    if isinstance(value, Mapping):
        held = parsed(value["messages"]) if "messages" in value else [value]
    if isinstance(held, list) and len(held) == 1 and isinstance(held[0], list):
        held = held[0]
    return held if are_messages(held) else None


def asked_in(value: Any) -> str | None:
    """The task in an input of any shape: messages, an object around a text, or a text; None where there is none.

    Example:
        >>> asked_in({"question": "Capital?", "top_k": 3})
        'Capital?'
    """
    if is_missing(value):
        return None
    messages = _messages_in(value)
    if messages is not None:
        return _transcript(_turns(messages))
    if isinstance(value, Mapping):
        texts = [value[name] for name in _TASK_KEYS if isinstance(value.get(name), str)]
        if len(value) == 1:
            texts = list(value.values())
        if len(texts) == 1:
            return as_words(texts[0])
    return as_words(value)


def reply_in(value: Any) -> Reply:
    """The answer in an output of any shape: a text, messages, parts of one, or a provider's reply.

    Example:
        >>> reply_in({"choices": [{"message": {"role": "assistant", "content": "Paris."}, "finish_reason": "stop"}]})
        ('Paris.', None)
        >>> reply_in({"city": "Paris"})
        ('{"city": "Paris"}', None)
    """
    if is_missing(value) or value == {}:
        return None, None
    messages = _messages_in(value)
    if messages is not None:
        return _said(conversation(messages)[1], messages[-1])
    if _is_part(value) or (isinstance(value, list) and value and all(map(_is_part, value))):
        return words_of(value), None
    if isinstance(value, Mapping):
        return _reply_of_object(value)
    return as_words(value), None


def _reply_of_object(value: Mapping[str, Any]) -> Reply:
    choices = first_of(value, "choices", "candidates")
    if isinstance(choices, list) and choices and all(isinstance(choice, Mapping) for choice in choices):
        if len(choices) > 1:
            raise InputError(
                f"the output holds {len(choices)} answers; name one of them (`output_col=`), as in choices[0].text"
            )
        return _choice(choices[0])
    if value.get("object") == "response":
        return words_of([item for item in value.get("output") or () if item.get("type") == "message"]), None
    generations = value.get("generations")  # of LangChain: a list for each prompt
    if isinstance(generations, list) and generations:
        return words_of(generations[0]), None
    known = [name for name in _ANSWER_KEYS if name in value]
    return reply_in(value[known[0]]) if len(known) == 1 else (as_words(value), None)


def error_of(error: Any) -> str | None:
    """What an error of a provider says; None when there is none."""
    if is_missing(error) or not error:
        return None
    if not isinstance(error, Mapping):
        return as_words(error)
    return str(first_of(object_at(error, "error") or error, "message") or as_words(error))


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(_PARTS.get(str(value.get("type")), "")), str)


def _choice(choice: Mapping[str, Any]) -> Reply:
    message = first_of(choice, "message", "content", "text")
    reason = first_of(choice, "finish_reason", "finishReason")
    words = words_of(first_of(message, *_CONTENTS) if isinstance(message, Mapping) else message)
    if reason in {"content_filter", "SAFETY"} and not words.strip():
        return "", f"the provider withheld the answer ({reason})"
    return _said(words, message)


def _said(output: str | None, message: Any) -> Reply:
    """An answer, and why it is none, where that is known: the model refused, or it said nothing."""
    refusal = message.get("refusal") if isinstance(message, Mapping) else None
    if refusal and not (output or "").strip():
        return "", f"refusal: {refusal}"
    return (output, None) if output is not None else ("", "the assistant did not answer")


# The formats of tools


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
