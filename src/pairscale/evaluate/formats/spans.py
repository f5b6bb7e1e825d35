"""Spans of OpenTelemetry as traces: OTLP JSON, spans as the SDK and AG2 write them, tables of Phoenix.

The spans of one trace become one answer. Two dialects are understood, also mixed: ``gen_ai.*`` of
OpenTelemetry (with AG2's ``ag2.span.type``), and OpenInference (``openinference.span.kind``, ``input.value``,
``output.value``, ``llm.output_messages.N``). The root span says the task, the answer and the error where it does; else
the last call of a model says the answer, and the first one the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
)
from pairscale.evaluate.formats.chat import completions
from pairscale.evaluate.formats.messages import are_messages, conversation
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import Trace

__all__ = ["is_ag2", "is_otlp", "is_sdk_spans", "read_ag2", "read_otlp", "read_sdk_spans"]

_TASK_IDS = ("ag2.eval.task_id", "eval.task_id", "task_id", "task.id")
_MOST_DEPTH = 50
_INDEXED = re.compile(r"^(.*?)\.(\d+)\.(.+)$")


@dataclass(frozen=True, slots=True)
class _Span:
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: float
    end: float
    attributes: Mapping[str, Any]
    error: str | None
    events: Sequence[tuple[str, Mapping[str, Any]]]

    @property
    def kind(self) -> str:
        """``llm``, ``tool``, ``agent`` or another kind of either dialect."""
        found = first_of(self.attributes, "ag2.span.type", "openinference.span.kind", "gen_ai.operation.name")
        kind = str(found or "").lower()
        has_words = any(name.startswith(("gen_ai.output.messages", "gen_ai.completion")) for name in self.attributes)
        return "llm" if kind in _CALLS or (not kind and has_words) else _KINDS.get(kind, kind)


_CALLS = {"llm", "chat", "text_completion", "generate_content"}
_KINDS = {"invoke_agent": "agent", "create_agent": "agent", "execute_tool": "tool"}


# The shapes


def is_otlp(document: FileContent) -> bool:
    """Whether it is OTLP in JSON: one document, or one per line, as the collector's file exporter writes them."""
    rows = rows_of(document)
    return bool(rows) and all(isinstance(first_of(row, "resourceSpans", "batches"), list) for row in rows)


def is_ag2(document: FileContent) -> bool:
    """Whether it is a trace as AG2 saves it, or several of them."""
    rows = rows_of(document)
    return bool(rows) and all(
        "trace_id" in row and isinstance(row.get("spans"), list) and all(map(_is_span, row["spans"])) for row in rows
    )


def is_sdk_spans(document: FileContent) -> bool:
    """Whether the rows are spans with attributes, as ``ReadableSpan.to_json`` and Phoenix write them."""
    rows = rows_of(document)
    return bool(rows) and all(_is_span(row) and _trace_id(row) for row in rows)


def _is_span(row: Any) -> bool:
    if not isinstance(row, Mapping) or "name" not in row:
        return False
    return isinstance(parsed(row.get("attributes")), Mapping) or any(name.startswith("attributes.") for name in row)


def _trace_id(row: Mapping[str, Any]) -> str:
    context = parsed(row.get("context"))
    found = first_of(context, "trace_id", "traceId") if isinstance(context, Mapping) else None
    return str(found or first_of(row, "context.trace_id", "trace_id", "traceId") or "")


# The answers


def read_otlp(document: FileContent) -> list[Answer]:
    """The answers of OTLP documents."""
    spans = []
    for row in rows_of(document):
        for batch in first_of(row, "resourceSpans", "batches"):
            if not isinstance(batch, Mapping):
                raise FileFormatError(f"{document.path}: resourceSpans must hold objects")
            resource = _attributes((batch.get("resource") or {}).get("attributes"))
            for scope in first_of(batch, "scopeSpans", "instrumentationLibrarySpans") or []:
                spans += [_from_otlp(span, resource) for span in scope.get("spans") or []]
    return list(_answers(spans, document.path))


def read_ag2(document: FileContent) -> list[Answer]:
    """The answers of traces that AG2 saved."""
    found = []
    for number, row in enumerate(rows_of(document), start=1):
        name = f"{document.path}, trace {number}"
        spans = [_from_plain(span, str(row["trace_id"])) for span in row["spans"]]
        extra = row.get("metadata")
        if not spans:
            known = Trace(exception="the trace has no spans")
            found.append(Answer(known, id_of(row.get("task_id"), name), row=row, where=name))
            continue
        for answer in _answers(spans, name):
            task_id = id_of(row.get("task_id"), name) or answer.task_id
            kept = {**answer.row, **(extra if isinstance(extra, Mapping) else {})}
            found.append(Answer(answer.trace, task_id, answer.asked, answer.variant, kept, name))
    return found


def read_sdk_spans(document: FileContent) -> list[Answer]:
    """The answers of spans that stand in rows."""
    return list(_answers([_from_plain(row, "") for row in rows_of(document)], document.path))


def _answers(spans: Sequence[_Span], path: str) -> Iterator[Answer]:
    traces: dict[str, list[_Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    if not any(span.error or _output(span) is not None for span in spans):
        raise FileFormatError(
            f"{path} has {len(spans):,} spans, and none says what was answered: pairscale reads the attributes of "
            "OpenTelemetry (gen_ai.output.messages) and OpenInference (output.value); turn on the recording of contents"
        )
    for trace_id, own in traces.items():
        yield _answer(trace_id, sorted(own, key=lambda span: (span.start, span.end)), path)


def _answer(trace_id: str, spans: Sequence[_Span], path: str) -> Answer:
    ids = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in ids]
    root = roots[0] if len(roots) == 1 else None
    calls = [span for span in spans if span.kind == "llm"]
    last = max(calls, key=lambda span: span.end) if calls else None
    sides = [span for span in (root, calls[0] if calls else None) if span is not None]
    given = next((told for span in sides if (told := _input(span)) is not None), (None, None, ""))
    ends = [span for span in (root, last) if span is not None]
    output = next((found for span in ends if (found := _output(span)) is not None), None)
    failed = [one for one in (root, *(roots if root is None else ()), last) if one is not None and one.error]
    exception = failed[0].error if failed else None if output is not None else "no output was recorded"
    attributes = {name: value for span in (last, root) if span is not None for name, value in span.attributes.items()}
    known: dict[str, Any] = {} if given[0] is None else {"input": given[0]}
    trace = Trace(
        output or "",
        events=tuple(_event(span) for span in spans),
        tokens=_tokens(spans),
        duration_ms=_duration(root, spans),
        exception=exception,
        metadata={**known, **({"system": given[2]} if given[2] else {})},
    )
    row = {**attributes, "trace_id": trace_id, "name": (root or spans[0]).name}
    where = f"{path}, trace {trace_id}"
    named = [first_of(span.attributes, *_TASK_IDS) for span in ([root] if root else spans)]
    task_id = next((name for one in named if (name := id_of(one, where))), "")
    return Answer(trace, task_id, given[1], row=row, where=where)


def _input(span: _Span) -> tuple[str | None, str | None, str] | None:
    """The task that a span says, all turns of the user, and the system prompt."""
    found = _spoken(span, "input")
    if found is None:
        return None
    if isinstance(found, Mapping) and are_messages(found.get("messages")):
        found = found["messages"]
    if are_messages(found):
        talk = conversation(found, "")
        return talk.input, talk.asked, talk.system
    words = _single(found)
    return words, words, ""


def _output(span: _Span) -> str | None:
    found = _spoken(span, "output")
    if found is None:
        return None
    if isinstance(found, Mapping) and are_messages(found.get("messages")):
        found = found["messages"]
    if are_messages(found):
        return conversation(found).output
    if isinstance(found, Mapping) and {"choices", "candidates", "output_text"} & set(found):
        return completions(found)[0][0]
    return _single(found)


def _single(value: Any) -> str:
    """A value in words; of an object with one field, as frameworks wrap a text, the field."""
    if isinstance(value, Mapping) and len(value) == 1:
        return as_words(next(iter(value.values())))
    return as_words(value)


def _spoken(span: _Span, side: str) -> Any:  # noqa: PLR0911 - one for each way
    """What a span says of its input or output, in any of the ways there are."""
    own = span.attributes
    if (found := own.get(f"gen_ai.{side}.messages")) is not None:
        return parsed(found)
    if messages := _listed(own, f"llm.{side}_messages"):
        return [one.get("message", one) for one in messages]
    old = "prompt" if side == "input" else "completion"
    if messages := _listed(own, f"gen_ai.{old}"):
        return messages
    if (found := own.get(f"{side}.value")) is not None:
        return parsed(found)
    for name, held in span.events:
        if (found := held.get(f"gen_ai.{side}.messages", held.get(f"gen_ai.{old}"))) is not None:
            return parsed(found)
        if side == "output" and name == "gen_ai.choice":
            return parsed(first_of(held, "message", "gen_ai.event.content", "content"))
    if side == "input":
        said = [(name, held) for name, held in span.events if name in _SAID]
        return [{"role": _SAID[name], "content": held.get("content", "")} for name, held in said] or None
    return None


_SAID = {
    "gen_ai.user.message": "user",
    "gen_ai.system.message": "system",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _listed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """What stands in attributes such as ``llm.input_messages.0.message.content``, as a list."""
    whole = parsed(attributes.get(prefix))
    if isinstance(whole, list):
        return [one for one in whole if isinstance(one, dict)]
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        place = _INDEXED.match(name) if name.startswith(f"{prefix}.") else None
        if place is not None and place[1] == prefix:
            _put(found.setdefault(int(place[2]), {}), place[3], value)
    return [found[at] for at in sorted(found)]


def _put(target: dict[str, Any], path: str, value: Any) -> None:
    """Put a value where a dotted path says; the parts of a content become a list of them."""
    steps = path.split(".")
    if len(steps) > _MOST_DEPTH:
        return
    if "contents" in steps:  # message.contents.0.message_content.text
        at = steps.index("contents")
        holder = _inner(target, steps[:at])
        if steps[-1] == "text" and isinstance(holder, dict):
            holder.setdefault("content", [])
            if isinstance(holder["content"], list):
                holder["content"].append({"type": "text", "text": value})
        return
    holder = _inner(target, steps[:-1])
    if isinstance(holder, dict):
        holder[steps[-1]] = value


def _inner(target: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        target = target.setdefault(step, {}) if isinstance(target, dict) else None
    return target


def _tokens(spans: Sequence[_Span]) -> int | None:
    """Tokens of all calls; AG2's records of usage hold those of the calls, too."""
    counted = [span for span in spans if span.attributes.get("ag2.span.type") == "usage"]
    counted = counted or [span for span in spans if span.kind == "llm"]
    names = (
        ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    )
    found = [plain_number(first_of(span.attributes, *side)) for span in counted for side in names]
    known = [one for one in found if one is not None]
    return int(sum(known)) if known else None


def _duration(root: _Span | None, spans: Sequence[_Span]) -> float | None:
    start, end = (root.start, root.end) if root else (min(one.start for one in spans), max(one.end for one in spans))
    return round((end - start) * 1000, 3) if 0 < start <= end else None


def _event(span: _Span) -> dict[str, Any]:
    """A span as an event of the trace."""
    named = first_of(span.attributes, "gen_ai.tool.name", "tool.name") if span.kind == "tool" else None
    said = {"output": output} if (output := _output(span)) is not None else {}
    called = first_of(span.attributes, "gen_ai.tool.call.arguments", "tool.parameters")
    result = first_of(span.attributes, "gen_ai.tool.call.result")
    more = {"arguments": called, "result": result, "error": span.error}
    kept = {name: as_words(value) for name, value in more.items() if value is not None}
    return {"type": span.kind or "span", "name": str(named or span.name), **said, **kept}


# One span


def _from_otlp(span: Any, resource: Mapping[str, Any]) -> _Span:
    if not isinstance(span, Mapping):
        raise FileFormatError("a span in OTLP must be an object")
    status = span.get("status") or {}
    events = [
        (str(one.get("name")), _attributes(one.get("attributes")))
        for one in span.get("events") or []
        if isinstance(one, Mapping)
    ]
    attributes = {
        **{name: value for name, value in resource.items() if name in _TASK_IDS},
        **_attributes(span.get("attributes")),
    }
    failed = status.get("code") in {2, "2", "STATUS_CODE_ERROR", "ERROR"}
    return _Span(
        str(span.get("traceId", "")),
        str(span.get("spanId", "")),
        str(span.get("parentSpanId") or ""),
        str(span.get("name", "")),
        _nanoseconds(span.get("startTimeUnixNano")),
        _nanoseconds(span.get("endTimeUnixNano")),
        attributes,
        _error(status.get("message"), events) if failed else None,
        events,
    )


def _from_plain(row: Mapping[str, Any], trace_id: str) -> _Span:
    context = parsed(row.get("context"))
    context = context if isinstance(context, Mapping) else {}
    own = parsed(row.get("attributes"))
    # Phoenix has a column per attribute, and those that belong together in one of them
    flat = {name.removeprefix("attributes."): row[name] for name in row if name.startswith("attributes.")}
    attributes = _flat(own if isinstance(own, Mapping) else {name: parsed(one) for name, one in flat.items()})
    status = row.get("status", row.get("status_code"))
    code = status.get("status_code", status.get("code")) if isinstance(status, Mapping) else status
    said = status.get("description") if isinstance(status, Mapping) else row.get("status_message")
    told = parsed(row.get("events"))
    events = [
        (str(one.get("name")), _flat(one.get("attributes") or {}))
        for one in (told if isinstance(told, list) else [])
        if isinstance(one, Mapping)
    ]
    start, end = row.get("start_ns"), row.get("end_ns")
    if start is None:
        took = seconds_between(str(row.get("start_time")), str(row.get("end_time")))
        begun = seconds_between("1970-01-01T00:00:00+00:00", str(row.get("start_time")))
        times = (begun or 0.0, (begun or 0.0) + (took or 0.0))
    else:
        times = (_nanoseconds(start), _nanoseconds(end))
    return _Span(
        trace_id or _trace_id(row),
        str(first_of(context, "span_id", "spanId") or first_of(row, "context.span_id", "span_id", "spanId") or ""),
        str(first_of(row, "parent_id", "parentId", "parentSpanId") or ""),
        str(row.get("name", "")),
        *times,
        attributes,
        _error(said, events) if str(code).upper().endswith("ERROR") else None,
        events,
    )


def _flat(attributes: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Attributes by their dotted names; Phoenix nests some of them."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping) and depth < _MOST_DEPTH:
            found |= _flat(value, f"{prefix}{name}.", depth + 1)
        elif not is_missing(value):
            found[f"{prefix}{name}"] = value
    return found


def _attributes(given: Any) -> dict[str, Any]:
    if not isinstance(given, list):
        return {}
    pairs = [one for one in given if isinstance(one, Mapping) and "key" in one]
    return {str(one["key"]): _value(one.get("value"), 0) for one in pairs}


def _value(value: Any, depth: int) -> Any:
    """A value of OTLP: ``{"stringValue": "…"}`` and its like."""
    if not isinstance(value, Mapping) or depth > _MOST_DEPTH:
        return value
    if "intValue" in value:
        number = plain_number(value["intValue"])
        return None if number is None else int(number)
    if isinstance(held := value.get("arrayValue"), Mapping):
        return [_value(one, depth + 1) for one in held.get("values") or []]
    if isinstance(held := value.get("kvlistValue"), Mapping):
        inner = [one for one in held.get("values") or [] if isinstance(one, Mapping) and "key" in one]
        return {str(one["key"]): _value(one.get("value"), depth + 1) for one in inner}
    return next(iter(value.values()), None)


def _nanoseconds(value: Any) -> float:
    return (plain_number(value) or 0.0) / 1e9


def _error(said: Any, events: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """What went wrong: the recorded exception, else the status."""
    for name, held in events:
        if name == "exception":
            kind, words = held.get("exception.type"), held.get("exception.message")
            return ": ".join(str(part) for part in (kind, words) if part) or "an exception"
    return str(said) if said else "the span has the status ERROR"
