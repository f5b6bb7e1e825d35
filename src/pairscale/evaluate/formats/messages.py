"""Chat messages and replies of every provider and framework: what was asked, and what was answered.

The words of a message are its text parts; images are shown by their kind. What a system prompt says belongs to the
variant, not to the task, so judges do not see it. A conversation with several turns of the user is compared whole: the
task is what came before the first answer, the answer is the rest, with the speaker of each turn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pairscale.core.errors import InputError
from pairscale.evaluate.suite import as_words, is_missing

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
