"""The wire formats of the simulated providers: how each asks, how each answers, and how each says no."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairscale.testing._judging import Said

_REFUSAL = "I cannot help with that."


class ReadRequest(NamedTuple):
    """What a request asks for, in the format of any provider.

    Attributes:
        prompt: the user's message.
        model: the model's name.
        structured: the field of the JSON object that was asked for, or None.
        logprobs: how many alternatives of each token are wanted; 0 for none.
        thoughts: whether the thoughts are to be shown.
        max_tokens: the longest answer, or None.
    """

    prompt: str
    model: str
    structured: str | None
    logprobs: int
    thoughts: bool
    max_tokens: int | None


def read_request(kind: str, body: Mapping[str, Any], model: str = "") -> ReadRequest:
    """Read a request.

    Args:
        kind: ``chat``, ``responses``, ``decisions``, ``messages``, ``gemini``, ``ollama-chat`` or ``ollama-generate``.
        body: its JSON document.
        model: the model's name when it stands in the address.
    """
    return _READERS[kind](body, model)


def _messages(body: Mapping[str, Any]) -> str:
    users = [message for message in body.get("messages", []) if message.get("role") == "user"]
    return _joined(users[-1]["content"]) if users else ""


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def _field(schema: Any) -> str | None:
    """The first field of a JSON schema, wherever in the request it stands."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("properties"), Mapping):
            return next(iter(schema["properties"]), None)
        for value in schema.values():
            if (found := _field(value)) is not None:
                return found
    if isinstance(schema, list):
        return next((found for item in schema if (found := _field(item)) is not None), None)
    return None


def _chat(body: Mapping[str, Any], _: str) -> ReadRequest:
    wanted = int(body.get("top_logprobs") or 5) if body.get("logprobs") else 0
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    return ReadRequest(_messages(body), body["model"], _field(body.get("response_format")), wanted, False, limit)


def _responses(body: Mapping[str, Any], _: str) -> ReadRequest:
    given = body["input"]
    prompt = given if isinstance(given, str) else _joined(given[-1]["content"])
    wanted = int(body.get("top_logprobs") or 5) if "message.output_text.logprobs" in (body.get("include") or []) else 0
    shows = bool((body.get("reasoning") or {}).get("summary"))
    return ReadRequest(prompt, body["model"], _field(body.get("text")), wanted, shows, body.get("max_output_tokens"))


def _anthropic(body: Mapping[str, Any], _: str) -> ReadRequest:
    structured = _field(body.get("output_config")) or _field(body.get("output_format")) or _field(body.get("tools"))
    thinks = (body.get("thinking") or {}).get("type") in {"enabled", "adaptive"}
    return ReadRequest(_messages(body), body["model"], structured, 0, thinks, body.get("max_tokens"))


def _gemini(body: Mapping[str, Any], model: str) -> ReadRequest:
    config = body.get("generationConfig") or {}
    parts = body["contents"][-1]["parts"]
    structured = _field(config.get("responseJsonSchema")) or _field(config.get("responseSchema"))
    wanted = int(config.get("logprobs") or 5) if config.get("responseLogprobs") else 0
    thinking = config.get("thinkingConfig") or {}
    shows = bool(thinking.get("includeThoughts") or thinking.get("include_thoughts"))  # the SDK sends the second
    return ReadRequest(_joined(parts), model, structured, wanted, shows, config.get("maxOutputTokens"))


def _ollama(body: Mapping[str, Any], _: str) -> ReadRequest:
    prompt = body.get("prompt") or _messages(body)
    wanted = int(body.get("top_logprobs") or 5) if body.get("logprobs") else 0
    limit = (body.get("options") or {}).get("num_predict")
    return ReadRequest(prompt, body["model"], _field(body.get("format")), wanted, bool(body.get("think")), limit)


def _decisions(body: Mapping[str, Any], _: str) -> ReadRequest:
    given = body["input"]
    prompt = given if isinstance(given, str) else _joined(given[-1]["content"])
    return ReadRequest(prompt, body["model"], str(body["questions"][0].get("name") or "choice"), 0, False, None)


_READERS = {
    "chat": _chat,
    "decisions": _decisions,
    "responses": _responses,
    "messages": _anthropic,
    "gemini": _gemini,
    "ollama-chat": _ollama,
    "ollama-generate": _ollama,
}


def reply_body(kind: str, asked: ReadRequest, said: Said, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """An answer in the provider's format.

    Args:
        kind: as in :func:`read_request`.
        asked: the question.
        said: the answer.
        number: of the request, for ids.
        body: the request.
    """
    return _WRITERS[kind](asked, said, number, body)


def _tokens(text: str) -> int:
    return max(1, math.ceil(len(text.encode()) / 4))


def _pieces(asked: ReadRequest, said: Said) -> list[tuple[str, float, list[tuple[str, float]]]]:
    """The answer as tokens with log-probabilities; the choice is a token of its own, with both alternatives."""
    if not asked.logprobs or said.p_first is None:
        return []
    before, _, after = said.text.partition(f"SAMPLE_{said.choice}")
    p = min(max(said.p_first, 1e-12), 1 - 1e-12)
    both = sorted([("1", math.log(p)), ("2", math.log(1 - p))], key=lambda pair: -pair[1])
    chosen = dict(both)[str(said.choice)]
    sure = [(text, -1e-4, [(text, -1e-4)]) for text in (before, "SAMPLE", "_") if text]
    return [*sure, (str(said.choice), chosen, both[: asked.logprobs]), (after, -1e-4, [(after, -1e-4)])]


def _openai_logprobs(asked: ReadRequest, said: Said) -> list[dict[str, Any]]:
    return [
        {"token": token, "logprob": logprob, "bytes": list(token.encode())}
        | {"top_logprobs": [{"token": t, "logprob": lp, "bytes": list(t.encode())} for t, lp in top]}
        for token, logprob, top in _pieces(asked, said)
    ]


def _write_chat(asked: ReadRequest, said: Said, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    refused = said.kind == "refusal"
    text = f"<think>\n{said.thoughts}\n</think>\n\n{said.text}" if "DeepSeek-R1" in asked.model else said.text
    message = {"role": "assistant", "content": None if refused else text, "refusal": _REFUSAL if refused else None}
    finish = {"length": "length", "content_filter": "content_filter"}.get(said.kind, "stop")
    pieces = _openai_logprobs(asked, said)
    prompt, completion = _tokens(asked.prompt), _tokens(text)
    return {
        "id": f"chatcmpl-{number:08d}",
        "object": "chat.completion",
        "created": 1_700_000_000 + number,
        "model": asked.model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": finish}
            | {"logprobs": {"content": pieces, "refusal": None} if pieces else None}
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "service_tier": body.get("service_tier", "default"),
    }


def _write_decisions(asked: ReadRequest, said: Said, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """A choice per question, with the probability of each; a refusal when there is none."""
    del number
    answers: list[dict[str, Any]] = []
    for question in body["questions"]:
        values = [one["value"] for one in question.get("choices", [])]
        named = {"name": question.get("name")}
        if said.p_first is None or len(values) != 2:
            answers.append({"type": "refusal", **named})
            continue
        shares = (said.p_first, 1 - said.p_first)
        at = 0 if shares[0] >= shares[1] else 1
        each = [{"value": value, "probability": share} for value, share in zip(values, shares, strict=True)]
        answers.append(
            {"type": "choice", **named, "choice": values[at], "confidence": shares[at], "probabilities": each}
        )
    prompt = _tokens(asked.prompt)
    return {
        "answers": answers,
        "model": asked.model,
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + 1,
        },
    }


def _write_responses(asked: ReadRequest, said: Said, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    if said.kind == "refusal":
        part: dict[str, Any] = {"type": "refusal", "refusal": _REFUSAL}
    else:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        part["logprobs"] = _openai_logprobs(asked, said)
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(said.kind)
    summary = [{"type": "summary_text", "text": said.thoughts}] if asked.thoughts and said.thoughts else []
    prompt, completion, thought = _tokens(asked.prompt), _tokens(said.text), _tokens(said.thoughts)
    return {
        "id": f"resp_{number:08d}",
        "object": "response",
        "created_at": 1_700_000_000 + number,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": asked.model,
        "output": [
            {"type": "reasoning", "id": f"rs_{number:08d}", "summary": summary},
            {
                "type": "message",
                "id": f"msg_{number:08d}",
                "role": "assistant",
                "status": "incomplete" if reason else "completed",
                "content": [part],
            },
        ],
        "parallel_tool_calls": True,
        "temperature": body.get("temperature"),
        "tool_choice": "auto",
        "tools": [],
        "top_p": body.get("top_p"),
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": completion + thought,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": prompt + completion + thought,
        },
    }


def _write_anthropic(asked: ReadRequest, said: Said, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if asked.thoughts and said.thoughts:
        content.append({"type": "thinking", "thinking": said.thoughts, "signature": f"sig{number}"})
    reason = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}.get(said.kind, "end_turn")
    if body.get("tools") and said.choice:
        call = {"type": "tool_use", "id": f"toolu_{number:08d}", "name": body["tools"][0]["name"]}
        content.append(call | {"input": json.loads(said.text)})
        reason = "tool_use"
    elif said.text:
        content.append({"type": "text", "text": said.text})
    thought = _tokens(said.thoughts) if asked.thoughts and said.thoughts else 0
    return {
        "id": f"msg_{number:08d}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": _tokens(asked.prompt),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": _tokens(said.text) + thought,
        },
    }


def _write_gemini(asked: ReadRequest, said: Said, number: int, _body: Mapping[str, Any]) -> dict[str, Any]:
    prompt, completion = _tokens(asked.prompt), _tokens(said.text)
    thought = _tokens(said.thoughts)
    usage = {"promptTokenCount": prompt, "totalTokenCount": prompt + completion + thought}
    answer: dict[str, Any] = {"usageMetadata": usage, "modelVersion": asked.model, "responseId": f"r{number}"}
    if said.kind == "refusal":
        return answer | {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    parts = [{"text": said.thoughts, "thought": True}] if asked.thoughts and said.thoughts else []
    parts += [{"text": said.text}] if said.text else []
    finish = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}.get(said.kind, "STOP")
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    if pieces := _pieces(asked, said):
        candidate["logprobsResult"] = {
            "chosenCandidates": [{"token": token, "logProbability": logprob} for token, logprob, _ in pieces],
            "topCandidates": [
                {"candidates": [{"token": t, "logProbability": lp} for t, lp in top]} for _, _, top in pieces
            ],
        }
    usage |= {"candidatesTokenCount": completion, "thoughtsTokenCount": thought}
    return answer | {"candidates": [candidate]}


def _write_ollama(asked: ReadRequest, said: Said, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    thinking = {"thinking": said.thoughts} if asked.thoughts and said.thoughts else {}
    text = _REFUSAL if said.kind == "refusal" else said.text
    if "messages" not in body:
        answer: dict[str, Any] = {"response": text, **thinking}
    else:
        answer = {"message": {"role": "assistant", "content": text, **thinking}}
    if pieces := _openai_logprobs(asked, said):
        answer["logprobs"] = pieces
    return {
        "model": asked.model,
        "created_at": "2026-01-01T00:00:00Z",
        **answer,
        "done": True,
        "done_reason": "length" if said.kind == "length" else "stop",
        "total_duration": 1_000_000 + number,
        "load_duration": 1000,
        "prompt_eval_count": _tokens(asked.prompt),
        "prompt_eval_duration": 1000,
        "eval_count": _tokens(text),
        "eval_duration": 1000,
    }


_WRITERS = {
    "chat": _write_chat,
    "decisions": _write_decisions,
    "responses": _write_responses,
    "messages": _write_anthropic,
    "gemini": _write_gemini,
    "ollama-chat": _write_ollama,
    "ollama-generate": _write_ollama,
}


def error_body(kind: str, status: int, message: str, parameter: str | None = None) -> dict[str, Any]:
    """An error in the provider's format."""
    if kind == "messages":
        types = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
        types |= {429: "rate_limit_error", 529: "overloaded_error"}
        error = {"type": types.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": "req_simulated"}
    if kind == "gemini":
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}
    if kind.startswith("ollama"):
        return {"error": message}
    types = {400: "invalid_request_error", 401: "invalid_request_error", 429: "rate_limit_exceeded"}
    code = {400: "unsupported_parameter" if parameter else None, 401: "invalid_api_key", 404: "model_not_found"}
    kind_of = types.get(status, "server_error")
    return {"error": {"message": message, "type": kind_of, "param": parameter, "code": code.get(status, kind_of)}}
