"""Files of other tools as plain rows: ``task_id input output error variant reference``, whatever the tool calls them.

A tool is an entry of :data:`FORMATS`: what users call its files, the shape that its rows have, where a row says what,
and, where its answers are not one a row, a function that makes them so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pairscale.core.columns import picked
from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.notices import notice
from pairscale.core.tables import Values
from pairscale.evaluate.tasks import Row, as_words, is_missing

# Chat messages and replies of every provider and framework: what was asked, and what was answered


_SPEAKERS = {
    "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "gpt": "assistant",
    "system": "system", "developer": "system",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_CONTENTS = ("content", "parts", "text", "value")
_NOT_SAID = {"reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use", "function_call", "tool_calls"}
_PARTS = {"text", "output_text", "refusal", *_NOT_SAID}
_TASK_KEYS = ("input", "question", "query", "prompt", "instruction", "text")
_ANSWER_KEYS = ("output", "answer", "response", "result", "text", "content", "completion")
_WITHHELD = {"content_filter", "SAFETY"}

Reply: TypeAlias = tuple[str | None, str | None]
"""What was answered, and why that is no answer; both are None where nothing was recorded."""


def at(row: Any, path: str) -> Any:
    """What a row says in a column of this name, or else at this path."""
    return row[path] if isinstance(row, Mapping) and path in row else picked(row, path)


def first_of(row: Any, *paths: str) -> Any:
    """What a row says at the first of these paths, one that is not empty before one that is; None without any."""
    values = [value for value in (at(row, path) for path in paths) if not is_missing(value)]
    return next((value for value in values if value not in ("", [], {})), values[0] if values else None)


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
    speakers = [speaker for speaker, _ in turns]
    start = speakers.index("assistant") if "assistant" in speakers else len(turns)
    task = _transcript(turns[:start])
    if start == len(turns):
        return task, None
    if "user" in speakers[start:]:
        return task, _transcript(turns[start:])
    # Calls of tools and their results stand before the last words, which are the answer.
    return task, turns[-1][1] if speakers[-1] == "assistant" else ""


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
    wrapped = first_of(message, "message", "kwargs")
    inner = wrapped if isinstance(wrapped, Mapping) else message
    speaker = _SPEAKERS.get(str(first_of(inner, "role", "type", "from")))
    if speaker is None or not any(name in inner for name in (*_CONTENTS, "tool_calls")):
        return None
    return speaker, words_of(first_of(inner, *_CONTENTS))


def _turns(messages: Sequence[Any]) -> list[tuple[str, str]]:
    return [turn for turn in map(_turn, messages) if turn is not None and turn[0] != "system"]


def _transcript(turns: Sequence[tuple[str, str]]) -> str:
    """Turns as a text: those of the user alone as they stand, others with their speakers."""
    spoken = [(speaker, words) for speaker, words in turns if words.strip()]
    if all(speaker == "user" for speaker, _ in spoken):
        return "\n\n".join(words for _, words in spoken)
    return "\n\n".join(f"[{speaker}]\n{words}" for speaker, words in spoken)


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
        answer = conversation(messages)[1]
        return _refused(messages[-1]) or (("", "the assistant did not answer") if answer is None else (answer, None))
    if isinstance(value, Mapping):
        return _reply_of_object(value)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        if {str(part.get("type")) for part in value} <= _PARTS:
            return words_of(value), None
    return as_words(value), None


def _reply_of_object(value: Row) -> Reply:
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
    failure = error_of(value.get("error"))
    if failure is not None:
        return "", failure
    answers = [value[name] for name in _ANSWER_KEYS if name in value]
    return reply_in(answers[0]) if len(answers) == 1 else (as_words(value), None)


def _choice(choice: Row) -> Reply:
    message = first_of(choice, "message", "content", "text")
    words = words_of(first_of(message, *_CONTENTS) if isinstance(message, Mapping) else message)
    reason = first_of(choice, "finish_reason", "finishReason")
    if reason in _WITHHELD and not words.strip():
        return "", f"the provider withheld the answer ({reason})"
    return _refused(message) or (words, None)


def _refused(message: Any) -> Reply | None:
    """The reply of a message that says nothing but why the model refuses."""
    refusal = message.get("refusal") if isinstance(message, Mapping) else None
    return ("", f"refusal: {refusal}") if refusal and not first_of(message, *_CONTENTS) else None


def error_of(error: Any) -> str | None:
    """What an error of a provider says; None when there is none."""
    if is_missing(error) or not error:
        return None
    return as_words(first_of(error, "error.message", "message") or error)


# The formats of tools


Rows: TypeAlias = Sequence[Row]
Plain: TypeAlias = tuple[Row, Values]
"""A row as it stands in the file, in which the user's columns are looked up, and the same as a plain row."""

_IDS = ("task_id", "custom_id", "ID", "id", "question_id", "example_id", "sample_id")


_USUAL = {name: (name,) for name in ("task_id", "input", "output", "error")}


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is known by its shape.

    Attributes:
        name: what users call it.
        fits: whether a row has its shape.
        fields: by our name, the paths at which a row says it where it is called otherwise, the first before the others.
        rows: makes one row for each answer of the rows of a file, where they are not that.
        is_table: whether its other columns are used as those of a table of the user's own.
    """

    name: str
    fits: Callable[[Row], bool]
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Callable[[Rows, str], Iterable[Row]] | None = None
    is_table: bool = False

    def plain(self, rows: Rows, path: str) -> Iterator[Plain]:
        """The rows of a file as they stand there, each with the same as a plain row; a failure has no output."""
        for row in self.rows(rows, path) if self.rows else rows:
            plain = dict(row) if self.is_table else {}
            plain |= {ours: first_of(row, *paths) for ours, paths in (_USUAL | self.fields).items()}
            if error_of(plain["error"]) is not None:
                plain["output"] = None
            yield row, plain


def _having(*shape: str) -> Callable[[Row], bool]:
    """Whether a row has all of these: names that may be empty, paths that may not, and ``|`` between alternatives."""
    return lambda row: all(
        any(path in row or not is_missing(picked(row, path)) for path in alternatives.split("|"))
        for alternatives in shape
    )


def _without_json(rows: Iterable[Row]) -> list[Values]:
    """Rows of a table whose cells may be JSON."""
    return [{name: parsed(value) for name, value in row.items()} for row in rows]


# Chat messages


def is_chat(row: Row) -> bool:
    """Whether a row holds messages, at the top or in a request."""
    return are_messages(_messages(row))


def _messages(row: Row) -> Any:
    paths = ("messages", "request.messages", "body.messages", "params.messages")
    return parsed(first_of({name: parsed(value) for name, value in row.items()}, *paths))


def task_of_messages(row: Row) -> Values:
    """A chat row as a task of a suite."""
    return {"task_id": first_of(row, *_IDS), "input": conversation(_messages(row))[0]}


def _chat(rows: Rows, path: str) -> Iterator[Row]:
    is_answered = False
    for row in _without_json(rows):
        messages = _messages(row)
        task, answer = conversation(messages)
        reply = first_of(row, "response", "output", "completion", "answer")
        is_answered = is_answered or answer is not None or reply is not None
        yield {**row, "asked": task if reply is None else messages, "said": messages if reply is None else reply}
    if not is_answered:
        raise FileFormatError(
            f"{path} holds messages without an answer of the assistant: requests, not answers; it can be a suite "
            "(suite=)"
        )


# Exports of tools


def _promptfoo(rows: Rows, path: str) -> Iterator[Row]:  # noqa: ARG001
    """Each provider with each prompt is a variant, and a test is known by its variables."""
    prompts = [as_words(first_of(row, "prompt.label", "prompt.raw")) for row in rows]
    providers = [as_words(first_of(row, "provider.id", "provider")) for row in rows]
    several = [names for names in (providers, prompts) if len(set(names)) > 1]
    for row, *names in zip(rows, *(several or [providers]), strict=True):
        failure = picked(row, "response.error")
        if not picked(row, "response.output"):  # elsewhere, the row's error is an assertion that was not met
            failure = failure or row.get("error")
        yield {**row, "variant": " / ".join(names), "failure": failure, "task": as_words(row["vars"])}


def _langsmith(rows: Rows, path: str) -> Iterator[Row]:  # noqa: ARG001
    """Runs that are no parts of others."""
    return (row for row in _without_json(rows) if is_missing(row.get("parent_run_id")))


def _langfuse(rows: Rows, path: str) -> Iterator[Row]:
    tops = [row for row in rows if is_missing(row.get("parentObservationId")) and row.get("type") != "EVENT"]
    if not tops:
        raise FileFormatError(f"{path} has observations of Langfuse that all belong to others; export traces")
    for row in _without_json(tops):
        parts = [row, *(part for part in row.get("observations") or () if isinstance(part, Mapping))]
        errors = [part.get("statusMessage") or "the level is ERROR" for part in parts if part.get("level") == "ERROR"]
        yield {**row, "failure": errors[-1] if errors else None}


def joined_turns(turns: Sequence[Any]) -> str:
    """The answers of several turns as one text; a single one as it is."""
    words = [as_words(turn.get("content") if isinstance(turn, Mapping) else turn) for turn in turns]
    if len(words) == 1:
        return words[0]
    return "\n\n".join(f"[turn {number}]\n{turn}" for number, turn in enumerate(words, start=1))


def _mt_bench(rows: Rows, path: str) -> Iterator[Row]:  # noqa: ARG001
    """All turns of a choice are one answer, and several choices are repeats."""
    for row in rows:
        for choice in row["choices"]:
            text = joined_turns(choice["turns"])
            yield {**row, "text": text, "failure": "a turn is $ERROR$" if "$ERROR$" in text else None}


# Logs of inspect_ai

_MOST_SAMPLE = 256 * 2**20


def _inspect(rows: Rows, path: str) -> Iterator[Row]:
    for log in rows:
        samples = log.get("samples") or ()
        if not samples:
            raise FileFormatError(f"{path} is a log of inspect_ai without samples; log them (log_samples=True)")
        if log.get("status") != "success":
            notice(f"{path} has the status {log.get('status')}: tasks that it did not reach are missing")
        for sample in sorted(samples, key=lambda sample: sample.get("epoch") or 0):  # epochs are repeats
            yield {**sample, "eval": log["eval"]}


def read_inspect_archive(path: Path) -> Values:
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
    except (OSError, Unreadable, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
    # A run that was killed has no header, and so no status.
    return {"version": 2, "status": "started", **log, "samples": read}


# Spans of OpenTelemetry: OTLP JSON, spans as the SDK and AG2 write them, tables of Phoenix.
#
# The spans of one trace become one answer. Two dialects are understood, also mixed: ``gen_ai.*`` of OpenTelemetry (with
# AG2's ``ag2.span.type``), and OpenInference (``openinference.span.kind``, ``output.value``). The root span says the
# task, the answer and the error where it does; else the last call of a model says the answer, and the first the task.

_CALLS = {"", "llm", "chat", "text_completion", "generate_content"}
_TASK_IDS = ("ag2.eval.task_id", "eval.task_id", "task_id", "task.id")
_SPAN = {
    "trace": ("context.trace_id", "trace_id", "traceId"),
    "id": ("context.span_id", "span_id", "spanId"),
    "parent": ("parent_id", "parentSpanId"),
    "end": ("end_time", "end_ns", "endTimeUnixNano"),
    "code": ("status.status_code", "status.code", "status", "status_code"),
    "message": ("status.description", "status.message", "description", "status_message"),
}
"""By our name, where a span of any dialect says it."""
_ATTRIBUTES = {
    "kind": ("ag2.span.type", "openinference.span.kind", "gen_ai.operation.name"),
    "input": ("gen_ai.input.messages", "input.value"),
    "output": ("gen_ai.output.messages", "output.value"),
}
"""By our name, the attributes that say it."""


def _otlp(rows: Rows, path: str) -> Iterator[Row]:
    spans: list[Row] = []
    for row in rows:
        for batch in first_of(row, "resourceSpans", "batches"):
            for scope in batch["scopeSpans"]:
                spans += [{**span, "attributes": _otlp_values(span.get("attributes"))} for span in scope["spans"]]
    return _traces(spans, path)


def _otlp_values(attributes: Any) -> Values:
    """Attributes of OTLP, ``{"key": "…", "value": {"stringValue": "…"}}`` and its like; lists are not needed."""
    return {pair["key"]: next(iter((pair.get("value") or {}).values()), None) for pair in attributes or ()}


def _ag2(rows: Rows, path: str) -> Iterator[Row]:
    for row in rows:
        trace: Values = {"error": "the trace has no spans"}
        if row["spans"]:
            [trace] = _traces([{**span, "trace_id": row["trace_id"]} for span in row["spans"]], path)
        named = {"task_id": row.get("task_id") or trace.get("task_id")}
        yield {**(row.get("metadata") or {}), **trace, **row, **named}


def _is_span(row: Row) -> bool:
    return "name" in row and bool(_attributes(row)) and first_of(row, *_SPAN["trace"]) is not None


def _attributes(row: Row) -> Row:
    """The attributes of a span; in tables of Phoenix, each is a column."""
    held = row.get("attributes")
    if isinstance(held, Mapping):
        return held
    start = "attributes."
    return {name.removeprefix(start): value for name, value in row.items() if name.startswith(start)}


def _span(row: Row) -> Values:
    """A span of any dialect under our names."""
    attributes = _attributes(row)
    span = {ours: first_of(row, *names) for ours, names in _SPAN.items()}
    span |= {ours: parsed(first_of(attributes, *names)) for ours, names in _ATTRIBUTES.items()}
    code = str(span["code"]).upper()
    failed = code.endswith("ERROR") or code == "2"
    span["error"] = (span["message"] or "the span has the status ERROR") if failed else None
    if reply_in(span["output"])[0] is None:
        span["output"] = None
    return {**span, "attributes": attributes}


def _traces(rows: Rows, path: str) -> Iterator[Values]:
    """One row for each trace: its attributes, and what its spans say together."""
    spans = [_span(row) for row in rows]
    if all(span["output"] is None and span["error"] is None for span in spans):
        raise FileFormatError(
            f"{path} has {len(spans):,} spans, and none says what was answered: pairscale reads the attributes of "
            "OpenTelemetry (gen_ai.output.messages) and OpenInference (output.value); turn on the recording of contents"
        )
    traces: dict[str, list[Row]] = {}
    for span in sorted(spans, key=lambda span: str(span["end"])):
        traces.setdefault(str(span["trace"]), []).append(span)
    for trace_id in dict.fromkeys(str(span["trace"]) for span in spans):
        yield _trace(trace_id, traces[trace_id])


def _trace(trace_id: str, spans: Rows) -> Values:
    """What the spans of a trace say together."""
    ids = {span["id"] for span in spans}
    roots = [span for span in spans if span["parent"] not in ids]
    root = roots if len(roots) == 1 else []
    calls = [span for span in spans if str(span["kind"] or "").lower() in _CALLS and span["output"] is not None]

    def said(name: str, *tellers: Row) -> Any:
        return next((span[name] for span in tellers if span[name] is not None), None)

    attributes = {name: value for span in spans for name, value in span["attributes"].items()}
    return {
        **attributes,
        "trace_id": trace_id,
        "task_id": first_of(attributes, *_TASK_IDS),
        "input": said("input", *root, *calls[:1]),
        "output": said("output", *root, *calls[-1:]),
        "error": said("error", *roots, *calls[-1:]),
    }


FORMATS = (
    Format(
        "inspect_ai log",
        _having("eval.model|eval.dataset", "version", "status"),
        {
            "task_id": ("id",),
            "output": ("output.completion", "output"),
            "error": ("error", "output.error"),
            "variant": ("eval.model",),
            "reference": ("target",),
        },
        _inspect,
    ),
    Format("OpenTelemetry spans (OTLP JSON)", _having("resourceSpans[0]|batches[0]"), rows=_otlp),
    Format("AG2 traces", _having("trace_id", "spans"), rows=_ag2),
    Format("OpenTelemetry or OpenInference spans", _is_span, rows=_traces),
    Format(
        "promptfoo results",
        _having("vars", "provider", "promptIdx|testIdx|promptId"),
        {"input": ("task",), "output": ("response.output",), "error": ("failure",), "variant": ("variant",)},
        _promptfoo,
    ),
    Format(
        "LangSmith runs",
        _having("run_type", "inputs", "outputs"),
        {
            "task_id": ("reference_example_id",),
            "input": ("inputs",),
            "output": ("outputs",),
            "variant": ("session_name", "session_id"),
        },
        _langsmith,
    ),
    Format(
        "Langfuse export",
        _having("sessionId|traceId", "timestamp|startTime", "userId|type"),
        {
            "task_id": ("datasetItemId", "dataset_item_id", "metadata.datasetItemId", "metadata.dataset_item_id"),
            "error": ("failure",),
            "variant": ("datasetRunName", "release"),
        },
        _langfuse,
    ),
    Format(
        "MT-bench answers",
        _having("question_id", "choices[0].turns"),
        {
            "task_id": ("question_id",),
            "output": ("text",),
            "error": ("failure",),
            "variant": ("model_id", "model"),
        },
        _mt_bench,
    ),
    Format(
        "AlpacaEval model_outputs.json",
        _having("instruction", "output", "generator"),
        {"input": ("instruction",), "variant": ("generator",)},
        is_table=True,
    ),
    Format(
        "chat messages",
        is_chat,
        {
            "task_id": _IDS,
            "input": ("asked",),
            "output": ("said",),
            "variant": ("model", "generator", "model_id"),
        },
        _chat,
    ),
)
"""The first that all rows of a file fit is taken."""
