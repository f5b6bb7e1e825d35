"""The wire formats of the simulated providers: how each asks, how each answers, and how each refuses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from pairscale.providers.base import Fields, JsonObject
from pairscale.testing._judging import SimulatedReply

_REFUSAL = "I cannot help with that."


class ReadRequest(NamedTuple):
    """What a request asks for, in the format of any provider.

    Attributes:
        prompt: the user's message.
        model: the model's name.
        structured: the field of the JSON object that was asked for, or None.
        logprobs: whether log-probabilities are wanted.
        thoughts: whether the thoughts are to be shown.
    """

    prompt: str
    model: str
    structured: str | None
    logprobs: bool
    thoughts: bool


def read_request(kind: str, body: JsonObject, model: str = "") -> ReadRequest:
    """Read a request.

    Args:
        kind: ``chat``, ``responses``, ``messages``, ``gemini`` or ``ollama``.
        body: its JSON document.
        model: the model's name when it is part of the address.
    """
    if kind == "gemini":
        content = body["contents"][-1]["parts"]
    elif kind == "ollama":
        content = body.get("prompt") or ""
    else:
        content = body["input"] if kind == "responses" else body["messages"]
        if not isinstance(content, str):
            content = [message["content"] for message in content if message["role"] == "user"][-1]
    prompt = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
    text = json.dumps(body)  # in which quotes of the prompt are escaped
    schema = _SCHEMA.search(text)
    return ReadRequest(
        prompt,
        model or body["model"],
        None if schema is None else schema[1],
        _LOGPROBS.search(text) is not None,
        _THOUGHTS.search(text) is not None,
    )


_SCHEMA = re.compile(r'"properties": \{"(\w+)"')
_LOGPROBS = re.compile(r'"(?:logprobs|responseLogprobs)": (?:true|[1-9])|"message\.output_text\.logprobs"')
_THOUGHTS = re.compile(
    r'"(?:includeThoughts|include_thoughts|think)": (?:true|"\w)|"summary": "\w|"type": "(?:enabled|adaptive)"'
)


def reply_body(kind: str, asked: ReadRequest, reply: SimulatedReply, number: int, body: JsonObject) -> Fields:
    """An answer in the provider's format.

    Args:
        kind: as in :func:`read_request`.
        asked: the question.
        reply: the answer.
        number: of the request, for ids.
        body: the request.
    """
    if not asked.thoughts and kind in {"messages", "ollama"}:
        reply = reply._replace(thoughts="")
    return _WRITERS[kind](asked, reply, number, body)


def _tokens(text: str) -> int:
    return max(1, math.ceil(len(text.encode()) / 4))


def _pieces(asked: ReadRequest, reply: SimulatedReply) -> list[tuple[str, float, list[tuple[str, float]]]]:
    """The answer as tokens with log-probabilities; the choice is a token of its own, with both alternatives."""
    if not asked.logprobs or reply.p_first is None or reply.choice is None:
        return []
    before, _, after = reply.text.partition(f"SAMPLE_{reply.choice}")
    p = min(max(reply.p_first, 1e-12), 1 - 1e-12)
    both = [("1", math.log(p)), ("2", math.log(1 - p))]
    head = [(text, -1e-4, [(text, -1e-4)]) for text in (before, "SAMPLE", "_")]
    return [*head, (*both[reply.choice - 1], both), (after, -1e-4, [(after, -1e-4)])]


def _openai_logprobs(asked: ReadRequest, reply: SimulatedReply) -> list[Fields]:
    names = ("token", "logprob")
    return [
        {"token": text, "logprob": logprob, "top_logprobs": [dict(zip(names, other, strict=True)) for other in top]}
        for text, logprob, top in _pieces(asked, reply)
    ]


def _write_chat(asked: ReadRequest, reply: SimulatedReply, number: int, body: JsonObject) -> Fields:
    text = f"<think>\n{reply.thoughts}\n</think>\n\n{reply.text}" if "DeepSeek-R1" in asked.model else reply.text
    message: Fields = {"role": "assistant", "content": text, "refusal": None}
    if reply.kind == "refusal":
        message |= {"content": None, "refusal": _REFUSAL}
    finish = reply.kind if reply.kind in {"length", "content_filter"} else "stop"
    pieces = _openai_logprobs(asked, reply)
    logprobs = {"content": pieces, "refusal": None} if pieces else None
    prompt = _tokens(asked.prompt)
    completion = _tokens(text)
    return {
        "id": f"chatcmpl-{number:08d}",
        "object": "chat.completion",
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "service_tier": body.get("service_tier", "default"),
    }


def _write_responses(asked: ReadRequest, reply: SimulatedReply, number: int, _: JsonObject) -> Fields:
    part: Fields = {"type": "refusal", "refusal": _REFUSAL}
    if reply.kind != "refusal":
        logprobs = _openai_logprobs(asked, reply)
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": logprobs}
    prompt = _tokens(asked.prompt)
    output = _tokens(reply.text)
    thoughts = _tokens(reply.thoughts)
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.kind)
    status = "incomplete" if reason else "completed"
    summary = [{"type": "summary_text", "text": reply.thoughts}] if asked.thoughts and reply.thoughts else []
    message = {"type": "message", "id": f"msg_{number:08d}", "role": "assistant", "status": status, "content": [part]}
    return {
        "id": f"resp_{number:08d}",
        "object": "response",
        "status": status,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": asked.model,
        "output": [{"type": "reasoning", "id": f"rs_{number:08d}", "summary": summary}, message],
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": output + thoughts,
            "output_tokens_details": {"reasoning_tokens": thoughts},
            "total_tokens": prompt + output + thoughts,
        },
    }


def _write_anthropic(asked: ReadRequest, reply: SimulatedReply, number: int, body: JsonObject) -> Fields:
    content: list[Fields] = []
    thought = 0
    if reply.thoughts:
        content.append({"type": "thinking", "thinking": reply.thoughts, "signature": f"sig{number}"})
        thought = _tokens(reply.thoughts)
    reason = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}.get(reply.kind, "end_turn")
    if body.get("tools") and reply.choice:
        name = body["tools"][0]["name"]
        content.append({"type": "tool_use", "id": f"toolu_{number:08d}", "name": name, "input": json.loads(reply.text)})
        reason = "tool_use"
    elif reply.text:
        content.append({"type": "text", "text": reply.text})
    return {
        "id": f"msg_{number:08d}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": reason,
        "usage": {
            "input_tokens": _tokens(asked.prompt),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": _tokens(reply.text) + thought,
        },
    }


def _write_gemini(asked: ReadRequest, reply: SimulatedReply, number: int, _: JsonObject) -> Fields:
    prompt = _tokens(asked.prompt)
    completion = _tokens(reply.text)
    thought = _tokens(reply.thoughts)
    usage = {"promptTokenCount": prompt, "totalTokenCount": prompt + completion + thought}
    document: Fields = {"usageMetadata": usage, "modelVersion": asked.model, "responseId": f"r{number}"}
    if reply.kind == "refusal":
        return document | {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    parts: list[Fields] = []
    if asked.thoughts and reply.thoughts:
        parts.append({"text": reply.thoughts, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    finish = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}.get(reply.kind, "STOP")
    candidate: Fields = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    pieces = _pieces(asked, reply)
    if pieces:

        def token(text: str, logprob: float) -> Fields:
            return {"token": text, "logProbability": logprob}

        candidate["logprobsResult"] = {
            "chosenCandidates": [token(text, logprob) for text, logprob, _ in pieces],
            "topCandidates": [{"candidates": [token(*other) for other in top]} for _, _, top in pieces],
        }
    usage |= {"candidatesTokenCount": completion, "thoughtsTokenCount": thought}
    return document | {"candidates": [candidate]}


def _write_ollama(asked: ReadRequest, reply: SimulatedReply, _: int, __: JsonObject) -> Fields:
    thinking = {"thinking": reply.thoughts} if reply.thoughts else {}
    text = _REFUSAL if reply.kind == "refusal" else reply.text
    return {
        "response": text,
        **thinking,
        "logprobs": _openai_logprobs(asked, reply) or None,
        "model": asked.model,
        "done": True,
        "done_reason": "length" if reply.kind == "length" else "stop",
        "prompt_eval_count": _tokens(asked.prompt),
        "eval_count": _tokens(text),
    }


_WRITERS = {
    "chat": _write_chat,
    "responses": _write_responses,
    "messages": _write_anthropic,
    "gemini": _write_gemini,
    "ollama": _write_ollama,
}


class RefusedError(Exception):
    """A request that is answered by an error: its status, the message, the field that is wrong, and headers."""

    def __init__(
        self, status: int, message: str, parameter: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.message = message
        self.parameter = parameter
        self.headers = headers

    def body(self, kind: str) -> Fields:
        """The error in the provider's format."""
        if kind == "messages":
            error = {"type": _ANTHROPIC_NAMES.get(self.status, "api_error"), "message": self.message}
            return {"type": "error", "error": error}
        if kind == "gemini":
            return {"error": {"code": self.status, "message": self.message}}
        if kind == "ollama":
            return {"error": self.message}
        code = "unsupported_parameter" if self.parameter else None
        return {"error": {"message": self.message, "param": self.parameter, "code": code}}


_ANTHROPIC_NAMES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
