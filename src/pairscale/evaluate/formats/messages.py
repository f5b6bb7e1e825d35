"""Chat messages and replies of every provider and framework: what was asked, and what was answered.

The words of a message are its text parts; images are shown by their kind. What a system prompt says belongs to the
variant, not to the task, so judges do not see it. A conversation with several turns of the user is compared whole: the
task is what came before the first answer, the answer is the rest, with the speaker of each turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pairscale.evaluate.formats.answers import AskedTask, first_of, object_at, parsed, plain_number
from pairscale.evaluate.suite import as_words, is_missing

__all__ = [
    "Reply",
    "are_messages",
    "asked_in",
    "conversation",
    "error_of",
    "joined_turns",
    "replies_in",
    "reply_in",
    "usage_of",
    "words_of_content",
]

_SPEAKERS = {
    **dict.fromkeys(("user", "human", "HumanMessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "gpt", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "developer", "SystemMessage"), "system"),
    **dict.fromkeys(("tool", "function", "ToolMessage", "FunctionMessage"), "tool"),
}
_CONTENTS = ("content", "contents", "parts", "text", "value")
_NOT_SAID = {
    "reasoning", "thinking", "redacted_thinking", "thought", "tool_call", "tool_use", "function_call", "tool_calls",
}  # fmt: skip
_TASK_KEYS = ("input", "question", "query", "prompt", "instruction", "text")
_ANSWER_KEYS = ("output", "answer", "response", "result", "text", "content", "completion")
_PARTS = {"text": "text", "output_text": "text", "refusal": "refusal"}

Reply: TypeAlias = tuple[str | None, str | None]
"""What was answered, and why that is no answer; both are None where nothing was recorded."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was asked and answered.

    Attributes:
        question: what was asked.
        output: the answer; None when the assistant said nothing.
    """

    question: AskedTask
    output: str | None


# Messages


def are_messages(value: Any) -> bool:
    """Whether a value is a list of chat messages, with a speaker each.

    Example:
        >>> are_messages([{"role": "user", "content": "Hello"}]), are_messages([{"text": "Hello"}])
        (True, False)
    """
    return isinstance(value, list) and bool(value) and all(_speaker(message) is not None for message in value)


def conversation(messages: Sequence[Any], *, is_question: bool = False) -> Conversation:
    """What a list of messages asks and answers.

    Args:
        messages: the messages.
        is_question: all of them are what was asked, and the answer stands elsewhere.

    Example:
        >>> talk = conversation([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital?"},
        ...                      {"role": "assistant", "content": "Paris."}])
        >>> talk.question, talk.output
        (AskedTask(input='Capital?', asked='Capital?', system='Be brief.'), 'Paris.')
    """
    turns = [(str(_speaker(message)), _words(message)) for message in messages]
    system = "\n\n".join(words for who, words in turns if who == "system" and words)
    turns = [(who, words) for who, words in turns if who != "system"]
    start = len(turns)
    if not is_question:
        start = next((at for at, (who, _) in enumerate(turns) if who == "assistant"), start)
    rest = turns[start:]
    output = None
    if any(who == "user" for who, _ in rest):
        if any(who == "assistant" and words.strip() for who, words in rest):
            output = _transcript(rest)
    elif rest:  # calls of tools and their results stand before the last words, which are the answer
        output = rest[-1][1] if rest[-1][0] == "assistant" else ""
    asked = "\n\n".join(words for who, words in turns if who == "user")
    return Conversation(AskedTask(_transcript(turns[:start]), asked, system), output)


def joined_turns(turns: Sequence[str]) -> str:
    """The answers of several turns as one text; a single one as it is.

    Example:
        >>> print(joined_turns(["Paris.", "It was."]))
        [turn 1]
        Paris.
        <BLANKLINE>
        [turn 2]
        It was.
    """
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"[turn {number}]\n{words}" for number, words in enumerate(turns, start=1))


def words_of_content(content: Any) -> str:
    r"""The words of a message's content: a text, or parts of it; thoughts and calls are left out, other parts named.

    Example:
        >>> words_of_content([{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "…"}}])
        'See:\n[image_url]'
    """
    if isinstance(content, list):
        return "\n".join(filter(None, map(words_of_content, content)))
    if not isinstance(content, Mapping):
        return as_words(content)
    kind = content.get("type")
    if kind in _NOT_SAID:
        return ""
    held = first_of(content, "text", "content", "refusal", "parts", "message_content")
    if held is not None:
        return words_of_content(held)
    return f"[{kind}]" if isinstance(kind, str) else as_words(content)


def _speaker(message: Any) -> str | None:
    """``user``, ``assistant``, ``system`` or ``tool``; None for what is no message."""
    if not isinstance(message, Mapping):
        return None
    inner = _unwrapped(message)
    if not any(name in inner for name in (*_CONTENTS, "tool_calls")):
        return None
    return _SPEAKERS.get(str(inner.get("role", inner.get("type", inner.get("from")))))


def _words(message: Mapping[str, Any]) -> str:
    return words_of_content(first_of(_unwrapped(message), *_CONTENTS))


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message itself, where LangChain has written its constructor around it, or OpenInference its name."""
    inner = object_at(message, "message")
    if inner:
        return inner
    if message.get("type") == "constructor":
        names = message.get("id")
        return {**object_at(message, "kwargs"), "role": names[-1] if isinstance(names, list) and names else None}
    return message


def _transcript(turns: Sequence[tuple[str, str]]) -> str:
    """Turns as a text: those of the user alone as they stand, others with who said them."""
    shown = [(who, words) for who, words in turns if words.strip()]
    if all(who == "user" for who, _ in shown):
        return "\n\n".join(words for _, words in shown)
    return "\n\n".join(f"[{who}]\n{words}" for who, words in shown)


# Values of any shape


def asked_in(value: Any) -> AskedTask:
    """The question in an input of any shape: messages, an object around a text, or a text.

    Example:
        >>> asked_in({"question": "Capital?", "top_k": 3}).input
        'Capital?'
    """
    if is_missing(value):
        return AskedTask()
    messages = _messages_in(value)
    if messages is not None:
        return conversation(messages, is_question=True).question
    if not isinstance(value, Mapping):
        return AskedTask(as_words(value), as_words(value))
    if len(value) == 1:
        only = as_words(next(iter(value.values())))
        return AskedTask(only, only)
    asked = as_words(dict(sorted(value.items(), key=lambda item: str(item[0]))))
    texts = [value[name] for name in _TASK_KEYS if isinstance(value.get(name), str)]
    return AskedTask(texts[0] if len(texts) == 1 else as_words(value), asked)


def replies_in(value: Any) -> list[Reply] | None:  # noqa: PLR0911 - one for each shape
    """The answers in messages, in parts of a message or in a provider's reply; None for any other value.

    Example:
        >>> replies_in({"choices": [{"message": {"role": "assistant", "content": "Paris."}, "finish_reason": "stop"}]})
        [('Paris.', None)]
        >>> replies_in({"city": "Paris"}) is None
        True
    """
    messages = _messages_in([value] if isinstance(value, Mapping) and _speaker(value) else value)
    if messages is not None:
        return [_said(conversation(messages).output, messages[-1])]
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return [(words_of_content(value), None)]
    if not isinstance(value, Mapping):
        return None
    choices = first_of(value, "choices", "candidates")
    if isinstance(choices, list) and choices and all(isinstance(choice, Mapping) for choice in choices):
        return [_choice(choice) for choice in choices]
    if value.get("object") == "response":
        items = value.get("output") or ()
        return [(words_of_content([item for item in items if item.get("type") == "message"]), None)]
    generations = value.get("generations")  # of LangChain: a list for each prompt
    if isinstance(generations, list) and generations and isinstance(generations[0], list) and generations[0]:
        return [(words_of_content(first_of(generations[0][0], "text", "message")), None)]
    return [(words_of_content(value), None)] if _is_part(value) else None


def reply_in(value: Any) -> Reply:
    """The answer in an output of any shape; an object with a field that is called like an answer stands for that."""
    if is_missing(value) or value == {}:
        return None, None
    replies = replies_in(value)
    if replies is not None:
        return replies[0]
    if isinstance(value, Mapping):
        known = [name for name in _ANSWER_KEYS if name in value]
        if len(value) == 1:
            known = list(value)
        if len(known) == 1:
            return reply_in(value[known[0]])
    return as_words(value), None


def usage_of(reply: Any) -> float | None:
    """The tokens that a provider's reply says it took."""
    if not isinstance(reply, Mapping):
        return None
    usage = object_at(reply, "usage")
    total = plain_number(usage.get("total_tokens"))
    sides = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    return total or sum(plain_number(first_of(usage, *names)) or 0 for names in sides)


def error_of(error: Any) -> str | None:
    """What an error of a provider says; None when there is none."""
    if is_missing(error) or not error:
        return None
    if not isinstance(error, Mapping):
        return as_words(error)
    return str(first_of(object_at(error, "error") or error, "message") or as_words(error))


def _messages_in(value: Any) -> list[Any] | None:
    """Messages in a value: itself, or what stands under ``messages``; LangChain nests lists of them."""
    held = parsed(value.get("messages")) if isinstance(value, Mapping) else value
    if isinstance(held, list) and len(held) == 1 and isinstance(held[0], list):
        held = held[0]
    return held if are_messages(held) else None


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(_PARTS.get(str(value.get("type")), "")), str)


def _choice(choice: Mapping[str, Any]) -> Reply:
    reason = first_of(choice, "finish_reason", "finishReason")
    message = first_of(choice, "message", "content", "text")
    text = _words(message) if isinstance(message, Mapping) else as_words(message)
    if reason in {"content_filter", "SAFETY"} and not text.strip():
        return "", f"the provider withheld the answer ({reason})"
    return _said(text, message)


def _said(output: str | None, message: Any) -> Reply:
    """An answer, and why it is none, where that is known: the model refused, or it said nothing."""
    refusal = message.get("refusal") if isinstance(message, Mapping) else None
    if refusal and not (output or "").strip():
        return "", f"refusal: {refusal}"
    return (output, None) if output is not None else ("", "the assistant did not answer")
