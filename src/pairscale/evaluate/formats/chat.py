"""Chat logs: lines of ``messages``, pairs of request and response, and the results of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.evaluate.formats.answers import Answer, FileContent, first_of, parsed, plain_number, rows_of
from pairscale.evaluate.formats.messages import are_messages, conversation, words_of_content
from pairscale.evaluate.suite import as_words, id_of, is_missing
from pairscale.evaluate.traces import Trace

__all__ = ["completions", "is_batch", "is_chat", "is_reply", "read_batch", "read_chat", "requests_of"]

_IDS = ("task_id", "custom_id", "ID", "id", "question_id", "example_id", "sample_id")
_ANSWERS = ("response", "output", "completion", "answer", "choices")
_READ = {*_IDS, *_ANSWERS, "error", "messages", "input"}
_PLAIN = str | int | float
_BODIES = {"choices", "output", "content", "candidates", "output_text"}


def is_chat(document: FileContent) -> bool:
    """Whether all rows hold messages, at the top or in a request."""
    rows = rows_of(document)
    return bool(rows) and all(are_messages(_messages(row)) for row in rows)


def is_batch(document: FileContent) -> bool:
    """Whether all rows are results of a batch of OpenAI or Anthropic."""
    rows = rows_of(document)
    return bool(rows) and all("custom_id" in row and _is_result(row) for row in rows)


def requests_of(document: FileContent) -> list[dict[str, Any]]:
    """The tasks of chat rows, for a suite: ``task_id`` and ``input`` each."""
    return [
        {"task_id": id_of(first_of(row, *_IDS), document.path), "input": conversation(_messages(row)).input}
        for row in rows_of(document)
    ]


def read_chat(document: FileContent) -> list[Answer]:
    """The answers of chat rows.

    Raises:
        FileFormatError: there are requests only.
    """
    found = list(_chat(document))
    if not found:
        raise FileFormatError(
            f"{document.path} holds messages without an answer of the assistant: requests, not answers; it can be a "
            "suite (suite=)"
        )
    return found


def _chat(document: FileContent) -> Iterator[Answer]:
    rows = rows_of(document)
    talks = [conversation(_messages(row)) for row in rows]
    if all(talk.output is None and not _apart(row) for row, talk in zip(rows, talks, strict=True)):
        return
    for number, (row, talk) in enumerate(zip(rows, talks, strict=True), start=1):
        where = f"{document.path}, row {number}"
        task_id, apart = id_of(first_of(row, *_IDS), where), _apart(row)
        known = {name: value for name, value in row.items() if name not in _READ and isinstance(value, _PLAIN)}
        known |= {"input": talk.input, **({"system": talk.system} if talk.system else {})}
        variant = first_of(row, "model", "generator", "model_id")
        error = _error(row.get("error"))
        if apart:
            known["input"] = conversation(_messages(row), "").input
            texts = completions(_body(apart[0]))
        else:
            texts = [(talk.output or "", _unanswered(talk.output, _messages(row)))]
        tokens = _tokens(_body(apart[0])) if apart else _tokens(row)
        for text, failure in texts:
            trace = Trace(text, tokens=tokens, exception=error or failure, metadata=known)
            yield Answer(trace, task_id, talk.asked, None if variant is None else str(variant), row, where)


def read_batch(document: FileContent) -> list[Answer]:
    """The answers of a batch; a request that failed is a failure."""
    found = []
    for number, row in enumerate(rows_of(document), start=1):
        where = f"{document.path}, row {number}"
        result = row.get("result")
        if isinstance(result, Mapping):
            body, error = result.get("message"), _error(result.get("error"))
            if error is None and result.get("type") != "succeeded":
                error = f"the request {result.get('type')}"
        else:
            response = row.get("response")
            response = response if isinstance(response, Mapping) else {}
            body, error = response.get("body"), _error(row.get("error"))
            status = response.get("status_code", 200)
            if error is None and status != 200:
                error = f"status {status}: {as_words(body)[:300]}"
        for text, failure in completions(body) if error is None else [("", error)]:
            trace = Trace(text, tokens=_tokens(body), exception=failure)
            found.append(Answer(trace, id_of(row["custom_id"], where), row=row, where=where))
    return found


def completions(body: Any) -> list[tuple[str, str | None]]:  # noqa: PLR0911 - one for each kind of reply
    """The texts in a provider's reply, each with the reason why it is no answer, or None.

    Example:
        >>> completions({"choices": [{"message": {"role": "assistant", "content": "Paris."}, "finish_reason": "stop"}]})
        [('Paris.', None)]
    """
    body = parsed(body)
    if isinstance(body, str):
        return [(body, None)]
    if isinstance(body, Mapping) and (are_messages([body]) or _is_part(body)):
        body = [body]
    if are_messages(body):
        talk = conversation(body)
        return [(talk.output or "", _unanswered(talk.output, body))]
    if isinstance(body, list) and body and all(map(_is_part, body)):
        return [(words_of_content(body), None)]
    if not isinstance(body, Mapping):
        return [("", "no answer was recorded")]
    if error := _error(body.get("error")):
        return [("", error)]
    choices = body.get("choices", body.get("candidates"))
    if isinstance(choices, list) and choices and all(isinstance(one, Mapping) for one in choices):
        return [_choice(one) for one in choices]
    if isinstance(body.get("output_text"), str):
        return [(body["output_text"], None)]
    for name in ("output", "content", "message", "text"):
        if not is_missing(body.get(name)):
            said = [one for one in body[name] if _is_said(one)] if isinstance(body[name], list) else body[name]
            return [(words_of_content(said), None)]
    return [("", "no answer was recorded")]


def is_reply(value: Any) -> bool:
    """Whether a value is a provider's reply, a message, messages, or the parts of a message: not the words themselves.

    Anything else that is no text, such as a record that a variant was asked for, is an answer as it stands.

    Example:
        >>> is_reply([{"type": "text", "text": "Paris."}]), is_reply({"city": "Paris"}), is_reply(["Paris", "Rome"])
        (True, False, False)
    """
    if isinstance(value, Mapping):
        is_body = any(isinstance(value.get(name), list) for name in ("choices", "candidates"))
        return is_body or value.get("object") == "response" or are_messages([value]) or _is_part(value)
    return isinstance(value, list) and bool(value) and (are_messages(value) or all(map(_is_part, value)))


def _is_part(value: Any) -> bool:
    kinds = {"text": "text", "output_text": "text", "refusal": "refusal"}
    return isinstance(value, Mapping) and isinstance(value.get(kinds.get(str(value.get("type")), "")), str)


def _choice(choice: Mapping[str, Any]) -> tuple[str, str | None]:
    reason = choice.get("finish_reason", choice.get("finishReason"))
    message = choice.get("message", choice.get("content", choice.get("text")))
    text = words_of_content(message.get("content", message.get("parts")) if isinstance(message, Mapping) else message)
    if reason in {"content_filter", "SAFETY"} and not text.strip():
        return "", f"the provider withheld the answer ({reason})"
    return text, _unanswered(text, [message])


def _unanswered(output: str | None, messages: Any) -> str | None:
    """Why the last message is no answer, where that is known: the model refused, or it said nothing."""
    last = messages[-1] if messages else None
    refusal = last.get("refusal") if isinstance(last, Mapping) else None
    if isinstance(refusal, str) and refusal and not (output or "").strip():
        return f"refusal: {refusal}"
    return "the assistant did not answer" if output is None else None


def _is_said(part: Any) -> bool:
    """Whether a part of a reply is what the model said, and no thought or call of a tool."""
    return not isinstance(part, Mapping) or part.get("type", "message") in {"message", "text", "output_text"}


def _messages(row: Mapping[str, Any]) -> Any:
    for holder in (row, row.get("request"), row.get("body"), row.get("params"), row.get("input")):
        if isinstance(holder, Mapping) and (found := parsed(holder.get("messages"))):
            if isinstance(holder["messages"], list) or are_messages(found):
                return found
    return None


def _apart(row: Mapping[str, Any]) -> list[Any]:
    """The answer, where it stands beside the messages."""
    return [row[name] if name != "choices" else row for name in _ANSWERS if not is_missing(row.get(name))][:1]


def _body(answer: Any) -> Any:
    answer = parsed(answer)
    if isinstance(answer, Mapping) and isinstance(answer.get("body"), Mapping) and not _BODIES & set(answer):
        return answer["body"]
    return answer


def _tokens(body: Any) -> int | None:
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    total = plain_number(usage.get("total_tokens"))
    if total is not None:
        return int(total)
    parts = [plain_number(first_of(usage, *names)) for names in _USAGE]
    return int(sum(part or 0 for part in parts)) if any(part is not None for part in parts) else None


_USAGE = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))


def _error(error: Any) -> str | None:
    if is_missing(error) or error in ("", False, {}, []):
        return None
    inner = error.get("error", error) if isinstance(error, Mapping) else error
    said = inner.get("message") if isinstance(inner, Mapping) else None
    return str(said) if said else as_words(error)


def _is_result(row: Mapping[str, Any]) -> bool:
    result = row.get("result")
    return {"response", "error"} <= set(row) or (
        isinstance(result, Mapping) and result.get("type") in {"succeeded", "errored", "canceled", "expired"}
    )
