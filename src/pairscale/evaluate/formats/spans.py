"""Spans of OpenTelemetry as traces: OTLP JSON, spans as the SDK and AG2 write them, tables of Phoenix.

The spans of one trace become one answer. Two dialects are understood, also mixed: ``gen_ai.*`` of
OpenTelemetry (with AG2's ``ag2.span.type``), and OpenInference (``openinference.span.kind``, ``input.value``,
``output.value``, ``llm.output_messages.N``). The root span says the task, the answer and the error where it does; else
the last call of a model says the answer, and the first one the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.evaluate.formats.answers import (
    Answer,
    AskedTask,
    answer_of,
    first_of,
    object_at,
    parsed,
    plain_number,
)
from pairscale.evaluate.formats.messages import asked_in, reply_in
from pairscale.evaluate.suite import as_words, id_of, is_missing

__all__ = ["is_ag2", "is_otlp", "is_span", "read_ag2", "read_otlp", "read_spans"]

_TASK_IDS = ("ag2.eval.task_id", "eval.task_id", "task_id", "task.id")
_CALLS = {"llm", "chat", "text_completion", "generate_content"}
_KINDS = {"invoke_agent": "agent", "create_agent": "agent", "execute_tool": "tool"}
_PLACES = {
    "input": ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "input.value"),
    "output": ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "output.value"),
}
"""Where a span may say what was asked and answered, the first of them before the others."""
_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Span:
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: float
    end: float
    attributes: Row
    error: str | None

    @property
    def kind(self) -> str:
        """``llm``, ``tool``, ``agent`` or another kind of either dialect."""
        found = first_of(self.attributes, "ag2.span.type", "openinference.span.kind", "gen_ai.operation.name")
        kind = str(found or "").lower()
        if kind in _CALLS or (not kind and self.value("output") is not None):
            return "llm"
        return _KINDS.get(kind, kind)

    def value(self, side: str) -> Any:
        """What the span says of its ``input`` or ``output``; None when it says nothing."""
        values = (_attribute(self.attributes, place) for place in _PLACES[side])
        return next((value for value in values if value is not None), None)

    @property
    def output(self) -> str | None:
        """The answer that it says."""
        return reply_in(self.value("output"))[0]


# The shapes


def is_otlp(row: Row) -> bool:
    """Whether it is OTLP in JSON: a document, or a line of the collector's file exporter; Tempo says ``batches``."""
    return isinstance(first_of(row, "resourceSpans", "batches"), list)


def is_ag2(row: Row) -> bool:
    """Whether it is a trace as AG2 saves it."""
    spans = row.get("spans")
    return "trace_id" in row and isinstance(spans, list) and all(isinstance(span, Mapping) for span in spans)


def is_span(row: Row) -> bool:
    """Whether it is a span with attributes, as ``ReadableSpan.to_json`` and Phoenix write it."""
    return "name" in row and _trace_id(row) is not None and bool(_attributes(row))


def _trace_id(row: Row) -> Any:
    return first_of({**row, **object_at(row, "context")}, "trace_id", "context.trace_id")


# The answers


def read_otlp(rows: Sequence[Row], path: str) -> list[Answer]:
    """The answers of OTLP documents."""
    spans = []
    for row in rows:
        for batch in first_of(row, "resourceSpans", "batches"):
            resource = _values(object_at(batch, "resource").get("attributes"))
            shared = {name: value for name, value in resource.items() if name in _TASK_IDS}
            for scope in batch["scopeSpans"]:
                spans += [_from_otlp(span, shared) for span in scope["spans"]]
    return _answers(spans, path)


def read_ag2(rows: Sequence[Row], path: str) -> list[Answer]:
    """The answers of traces that AG2 saved."""
    found = []
    for number, row in enumerate(rows, start=1):
        where = path if len(rows) == 1 else f"{path}, trace {number}"
        spans = [_span({**span, "trace_id": row["trace_id"]}) for span in row["spans"]]
        if spans:
            (answer,) = _answers(spans, where)
            known = {**answer.row, **object_at(row, "metadata")}
        else:
            answer = answer_of(row, where, None, "the trace has no spans")
            known = dict(row)
        task_id = id_of(row.get("task_id"), where) or answer.task_id
        found.append(replace(answer, task_id=task_id, row=known, where=where))
    return found


def read_spans(rows: Sequence[Row], path: str) -> list[Answer]:
    """The answers of spans that stand in rows."""
    return _answers([_span(row) for row in rows], path)


def _answers(spans: Sequence[_Span], path: str) -> list[Answer]:
    if not any(span.error or span.output is not None for span in spans):
        raise FileFormatError(
            f"{path} has {len(spans):,} spans, and none says what was answered: pairscale reads the attributes of "
            "OpenTelemetry (gen_ai.output.messages) and OpenInference (output.value); turn on the recording of contents"
        )
    traces: dict[str, list[_Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        traces.setdefault(span.trace_id, []).append(span)
    order = dict.fromkeys(span.trace_id for span in spans)
    return [_answer(trace_id, traces[trace_id], path) for trace_id in order]


def _answer(trace_id: str, spans: Sequence[_Span], path: str) -> Answer:
    ids = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in ids]
    root = roots[:1] if len(roots) == 1 else []
    calls = [span for span in spans if span.kind == "llm"]
    last = [max(calls, key=lambda span: span.end)] if calls else []
    questions = [asked_in(span.value("input")) for span in (*root, *calls[:1])]
    outputs = [span.output for span in (*root, *last)]
    errors = [span.error for span in (*roots, *last) if span.error]
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    if root:
        start, end = root[0].start, root[0].end
    where = f"{path}, trace {trace_id}"
    names = [id_of(first_of(span.attributes, *_TASK_IDS), where) for span in root or spans]
    row = {name: value for span in (*last, *root) for name, value in span.attributes.items()}
    return answer_of(
        {**row, "trace_id": trace_id, "name": spans[0].name},
        where,
        next((output for output in outputs if output is not None), None),
        errors[0] if errors else None,
        question=next((question for question in questions if question.input is not None), AskedTask()),
        task_id=next(filter(None, names), None),
        tokens=_tokens(spans),
        duration_ms=round((end - start) * 1000, 3) if start else None,
        events=tuple(map(_event, spans)),
    )


def _tokens(spans: Sequence[_Span]) -> float:
    """Tokens of all calls; AG2's records of usage hold those of the calls, too."""
    usage = [span for span in spans if span.attributes.get("ag2.span.type") == "usage"]
    counted = usage or [span for span in spans if span.kind == "llm"]
    return sum(plain_number(first_of(span.attributes, *names)) or 0 for span in counted for names in _TOKENS)


def _event(span: _Span) -> dict[str, Any]:
    """A span as an event of the trace."""
    known = {
        "output": span.output,
        "arguments": first_of(span.attributes, "gen_ai.tool.call.arguments", "tool.parameters"),
        "result": span.attributes.get("gen_ai.tool.call.result"),
        "error": span.error,
    }
    name = first_of(span.attributes, "gen_ai.tool.name", "tool.name") or span.name
    told = {field: as_words(value) for field, value in known.items() if value is not None}
    return {"type": span.kind or "span", "name": str(name), **told}


# One span


def _span(row: Row) -> _Span:
    """A span as the SDK, AG2 or Phoenix writes it."""
    context = {name.removeprefix("context."): value for name, value in row.items() if name.startswith("context.")}
    context |= object_at(row, "context")
    status = object_at(row, "status") or {"status_code": first_of(row, "status", "status_code")}
    error = None
    if str(status.get("status_code")).upper().endswith("ERROR"):
        error = str(_exception(row) or first_of({**row, **status}, "description", "status_message") or _NO_WORDS)
    return _Span(
        str(_trace_id(row)),
        str(first_of({**row, **context}, "span_id") or ""),
        str(row.get("parent_id") or ""),
        str(row.get("name")),
        _seconds(first_of(row, "start_ns", "start_time")),
        _seconds(first_of(row, "end_ns", "end_time")),
        _attributes(row),
        error,
    )


_NO_WORDS = "the span has the status ERROR"


def _from_otlp(span: Row, shared: Row) -> _Span:
    status = object_at(span, "status")
    failed = status.get("code") in {2, "STATUS_CODE_ERROR"}
    return _span(
        {
            "trace_id": span["traceId"],
            "span_id": span["spanId"],
            "parent_id": span.get("parentSpanId"),
            "name": span.get("name"),
            "start_ns": plain_number(span.get("startTimeUnixNano")),
            "end_ns": plain_number(span.get("endTimeUnixNano")),
            "attributes": {**shared, **_values(span.get("attributes"))},
            "status": {"status_code": "ERROR" if failed else "OK", "description": status.get("message")},
            "events": [{**event, "attributes": _values(event.get("attributes"))} for event in span.get("events", ())],
        }
    )


def _exception(row: Row) -> str | None:
    """The exception that a span recorded."""
    events = parsed(row.get("events"))
    for event in events if isinstance(events, list) else ():
        if event.get("name") == "exception":
            held = object_at(event, "attributes")
            return ": ".join(str(held[part]) for part in ("exception.type", "exception.message") if held.get(part))
    return None


def _attributes(row: Row) -> dict[str, Any]:
    """The attributes of a span; a table of Phoenix has a column for each."""
    columns = {name.removeprefix("attributes."): row[name] for name in row if name.startswith("attributes.")}
    found = {**columns, **object_at(row, "attributes")}
    return {name: value for name, value in found.items() if not is_missing(value)}


def _attribute(attributes: Row, name: str) -> Any:
    """An attribute, also where it is spread over several, such as ``llm.input_messages.0.message.content``."""
    if name in attributes:
        value = parsed(attributes[name])
        return (
            [_nested(item) if isinstance(item, Mapping) else item for item in value]
            if isinstance(value, list)
            else value
        )
    spread = {key.removeprefix(f"{name}."): attributes[key] for key in attributes if key.startswith(f"{name}.")}
    return _nested(spread) if spread else None


def _nested(flat: Row) -> Any:
    """Values with dotted names as objects, and as lists where the names are numbers."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        head, dot, rest = name.partition(".")
        if dot:
            tree.setdefault(head, {})[rest] = value
        else:
            tree[head] = value
    tree = {name: _nested(value) if isinstance(value, dict) else value for name, value in tree.items()}
    if tree and all(name.isdecimal() for name in tree):
        return [tree[name] for name in sorted(tree, key=int)]
    return tree


def _values(attributes: Any) -> dict[str, Any]:
    return {one["key"]: _value(one.get("value")) for one in attributes or ()}


def _value(value: Any) -> Any:
    """A value of OTLP: ``{"stringValue": "…"}`` and its like."""
    if not isinstance(value, Mapping) or not value:
        return None
    ((kind, held),) = value.items()
    if kind == "intValue":
        return int(held)
    if kind == "arrayValue":
        return [_value(one) for one in held.get("values", ())]
    return _values(held.get("values")) if kind == "kvlistValue" else held


def _seconds(value: Any) -> float:
    """A time in seconds: from nanoseconds, or a text in ISO 8601; 0 for any other."""
    if isinstance(value, int | float):
        return value / 1e9
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return 0.0
