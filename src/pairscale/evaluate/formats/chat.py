"""Chat logs: lines of ``messages``, with the answer among or beside them, and the results of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.evaluate.formats.answers import Answer, answer_of, first_of, object_at, parsed
from pairscale.evaluate.formats.messages import (
    Reply,
    are_messages,
    asked_in,
    conversation,
    error_of,
    replies_in,
    usage_of,
)
from pairscale.evaluate.suite import as_words, id_of

__all__ = ["is_batch", "is_chat", "read_batch", "read_chat", "requests_of"]

_IDS = ("task_id", "custom_id", "ID", "id", "question_id", "example_id", "sample_id")
_ANSWERS = ("response", "output", "completion", "answer", "choices")
_READ = {*_IDS, *_ANSWERS, "error", "messages"}
_ENDS = {"succeeded", "errored", "canceled", "expired"}


def is_chat(row: Mapping[str, Any]) -> bool:
    """Whether a row holds messages, at the top or in a request."""
    return are_messages(_messages(row))


def is_batch(row: Mapping[str, Any]) -> bool:
    """Whether a row is a result of a batch of OpenAI or Anthropic."""
    ended = object_at(row, "result").get("type") in _ENDS
    return "custom_id" in row and (ended or {"response", "error"} <= row.keys())


def requests_of(rows: Sequence[Mapping[str, Any]], path: str) -> list[dict[str, Any]]:
    """The tasks of chat rows, for a suite: ``task_id`` and ``input`` each."""
    return [
        {"task_id": id_of(first_of(row, *_IDS), path), "input": conversation(_messages(row)).question.input}
        for row in rows
    ]


def read_chat(rows: Sequence[Mapping[str, Any]], path: str) -> Iterator[Answer]:
    """The answers of chat rows.

    Raises:
        FileFormatError: there are requests only.
    """
    talks = [conversation(_messages(row)) for row in rows]
    besides = [first_of(row, *_ANSWERS) for row in rows]
    if all(value is None and talk.output is None for value, talk in zip(besides, talks, strict=True)):
        raise FileFormatError(
            f"{path} holds messages without an answer of the assistant: requests, not answers; it can be a suite "
            "(suite=)"
        )
    for number, (row, talk, beside) in enumerate(zip(rows, talks, besides, strict=True), start=1):
        messages = _messages(row)
        question = talk.question
        if beside is None:
            reply: Any = row
            replies = replies_in(messages) or []
        else:
            reply = row if "choices" in row else beside
            replies = _replies(reply)
            question = replace(asked_in(messages), asked=question.asked)
        known = {
            name: value for name, value in row.items() if name not in _READ and isinstance(value, str | int | float)
        }
        for text, failure in replies:
            yield answer_of(
                row,
                f"{path}, row {number}",
                text,
                error_of(row.get("error")) or failure,
                question=question,
                task_id=first_of(row, *_IDS),
                variant=first_of(row, "model", "generator", "model_id"),
                tokens=usage_of(reply),
                metadata=known,
            )


def read_batch(rows: Sequence[Mapping[str, Any]], path: str) -> Iterator[Answer]:
    """The answers of a batch; a request that failed is a failure."""
    for number, row in enumerate(rows, start=1):
        result = object_at(row, "result")
        response = object_at(row, "response")
        reply = result.get("message") or response.get("body")
        error = error_of(first_of(row, "error") or result.get("error"))
        status = response.get("status_code", 200)
        if error is None and result.get("type", "succeeded") != "succeeded":
            error = f"the request {result['type']}"
        elif error is None and status != 200:
            error = f"status {status}: {as_words(reply)[:300]}"
        replies = _replies(reply) if error is None else [("", error)]
        for text, failure in replies:
            where = f"{path}, row {number}"
            yield answer_of(row, where, text, failure, task_id=row["custom_id"], tokens=usage_of(reply))


def _replies(value: Any) -> list[Reply]:
    """The answers in a reply; a text stands for itself."""
    reply = parsed(value)
    if isinstance(reply, Mapping) and reply.get("error"):
        return [("", error_of(reply["error"]))]
    replies = replies_in(reply)
    if replies is not None:
        return replies
    return [(as_words(value), None) if value is not None else ("", "no answer was recorded")]


def _messages(row: Mapping[str, Any]) -> Any:
    """The messages of a row, or of the request in it."""
    holders = [row, *(object_at(row, name) for name in ("request", "body", "params"))]
    found = [parsed(holder.get("messages")) for holder in holders]
    return next((messages for messages in found if messages), None)
