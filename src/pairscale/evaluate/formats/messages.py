"""Chat messages of every provider and framework: their words, and what was asked and answered.

The words of a message are its text parts; images and calls of tools are shown by their kind. What a system prompt says
belongs to the variant, not to the task, so judges do not see it. A conversation with several turns of the user is
compared whole: the task is what came before the first answer, the answer is the rest, with the speaker of each turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pairscale.evaluate.formats.answers import parsed
from pairscale.evaluate.suite import as_words, is_missing

__all__ = ["Conversation", "are_messages", "conversation", "joined_turns", "words_of_content"]

_USERS = {"user", "human", "HumanMessage", "HumanMessageChunk"}
_MODELS = {"assistant", "ai", "model", "AIMessage", "AIMessageChunk"}
_SYSTEMS = {"system", "developer", "SystemMessage"}
_TOOLS = {"tool", "function", "ToolMessage", "FunctionMessage"}
_THOUGHTS = {"reasoning", "thinking", "redacted_thinking", "thought"}
_CALLS = {"tool_call", "tool_use", "function_call", "toolCall", "tool_calls"}


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was asked and answered.

    Attributes:
        input: the task, as judges see it.
        output: the answer; None when the assistant said nothing.
        asked: all turns of the user.
        system: the system prompt.
        turns: how many turns the user has.
    """

    input: str
    output: str | None
    asked: str
    system: str = ""
    turns: int = 1


def are_messages(value: Any) -> bool:
    """Whether a value is a list of chat messages, with a speaker each.

    Example:
        >>> are_messages([{"role": "user", "content": "Hello"}]), are_messages([{"text": "Hello"}])
        (True, False)
    """
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) > 0
        and all(isinstance(one, Mapping) and _speaker(one) is not None for one in value)
    )


def conversation(messages: Sequence[Mapping[str, Any]], answer: str | None = None) -> Conversation:
    """What a list of messages asks and answers.

    Args:
        messages: the messages.
        answer: the answer, where it stands apart from them; all messages are then what was given.

    Example:
        >>> conversation([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital?"},
        ...               {"role": "assistant", "content": "Paris."}])
        Conversation(input='Capital?', output='Paris.', asked='Capital?', system='Be brief.', turns=1)
    """
    said = [(str(_speaker(one)), _words(one)) for one in messages]
    system = "\n\n".join(words for who, words in said if who == "system" and words)
    talk = [(who, words) for who, words in said if who != "system"]
    users = [words for who, words in talk if who == "user"]
    if answer is not None:
        given = talk
        output: str | None = answer
    else:
        start = next((at for at, (who, _) in enumerate(talk) if who == "assistant"), len(talk))
        given, rest = talk[:start], talk[start:]
        is_talk = any(who == "user" for who, _ in rest)
        spoken = [words for who, words in rest if who == "assistant" and words.strip()]
        if is_talk:
            output = _transcript(rest) if spoken else None
        else:  # one turn: calls of tools and their results stand before the last words, which are the answer
            output = None if not rest else rest[-1][1] if rest[-1][0] == "assistant" else ""
    return Conversation(_transcript(given), output, "\n\n".join(users), system, max(len(users), 1))


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
    r"""The words of a message's content: a text, or parts of it; thoughts are left out, other parts named.

    Example:
        >>> words_of_content([{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "…"}}])
        'See:\n[image_url]'
    """
    if is_missing(content):
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _part(content)
    if isinstance(content, Sequence):
        return "\n".join(words for part in content if (words := words_of_content(part)))
    return as_words(content)


def _part(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind in _THOUGHTS or kind in _CALLS:
        return ""
    for name in ("text", "content", "refusal", "output_text", "value"):
        found = part.get(name)
        if isinstance(found, str):
            return found
        if isinstance(found, Mapping | list):
            return words_of_content(found)
    if "parts" in part:
        return words_of_content(part["parts"])
    return f"[{kind}]" if isinstance(kind, str) else as_words(part)


def _speaker(message: Mapping[str, Any]) -> str | None:
    """``user``, ``assistant``, ``system`` or ``tool``; None for what is no message."""
    inner = _unwrapped(message)
    said = inner.get("role", inner.get("type", inner.get("from")))
    if not isinstance(said, str) or not {"content", "parts", "text", "value", "tool_calls"} & set(inner):
        return None
    for who, names in (("user", _USERS), ("assistant", _MODELS | {"gpt"}), ("system", _SYSTEMS), ("tool", _TOOLS)):
        if said in names:
            return who
    return None


def _words(message: Mapping[str, Any]) -> str:
    inner = _unwrapped(message)
    return words_of_content(
        next((inner[name] for name in ("content", "parts", "text", "value") if name in inner), None)
    )


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message itself, where LangChain has written its constructor around it, or OpenInference its name."""
    inner = message.get("message")
    if isinstance(inner, Mapping):
        return _unwrapped(inner)
    if message.get("type") == "constructor" and isinstance(message.get("kwargs"), Mapping):
        names = parsed(message.get("id"))
        kind = names[-1] if isinstance(names, list) and names else None
        return {"role": kind, **{name: value for name, value in message["kwargs"].items() if name != "role"}}
    return message


def _transcript(said: Sequence[tuple[str, str]]) -> str:
    """Turns as a text: one of the user alone as it stands, several with who said them."""
    shown = [(who, words) for who, words in said if words.strip()]
    if all(who == "user" for who, _ in shown):
        return "\n\n".join(words for _, words in shown)
    return "\n\n".join(f"[{who}]\n{words}" for who, words in shown)
