"""Replies and errors of every provider, as they come, and as the official SDKs understand them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.strategies import golden

from pairscale.providers.base import LLMRequest, Reply, TokenLogprob, Usage
from pairscale.providers.catalog import provider_named
from pairscale.providers.wire import split_thoughts

TAG = "<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>"


def read(provider: str, body: Any, model: str = "m", **fields: Any) -> Reply:
    ours = provider_named(provider)
    return ours.reply(ours.call(LLMRequest(model=model, prompt="p", **fields)), body)


# --- OpenAI ---------------------------------------------------------------------------------------------------------


def chat(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}, "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-4.1-2025-04-14",
        "choices": [choice | more],
        "usage": {
            "prompt_tokens": 90,
            "completion_tokens": 9,
            "total_tokens": 99,
            "prompt_tokens_details": {"cached_tokens": 32},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }


def test_chat_reply_is_what_the_sdk_reads():
    from openai.types.chat import ChatCompletion

    logprobs = [
        {
            "token": "SAMPLE_1",
            "logprob": -0.1,
            "bytes": None,
            "top_logprobs": [
                {"token": "SAMPLE_1", "logprob": -0.1, "bytes": None},
                {"token": "SAMPLE_2", "logprob": -2.5, "bytes": None},
            ],
        }
    ]
    body = chat({"content": TAG, "refusal": None}, logprobs={"content": logprobs, "refusal": None})
    sdk = ChatCompletion.model_validate(body)
    reply = read("openai", body, "gpt-4.1", logprobs=2)
    assert reply.text == sdk.choices[0].message.content == TAG
    assert (reply.model, reply.object_type, reply.stop_reason) == (sdk.model, "chat.completion", "stop")
    assert reply.usage == Usage(90, 9, 99, 32, 5)
    first = sdk.choices[0].logprobs.content[0]
    assert reply.logprobs == (
        TokenLogprob(first.token, first.logprob, tuple((o.token, o.logprob) for o in first.top_logprobs)),
    )
    assert reply.thoughts is None
    assert reply.raw is body


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000.0,
        "model": "gpt-5.1-2025-11-13",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 12},
        },
    } | more


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def test_response_is_what_the_sdk_reads():
    from openai.types.responses import Response

    logprob = {"token": "A", "logprob": -0.5, "bytes": [65], "top_logprobs": []}
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
    }
    body = response(thought, said({"type": "output_text", "text": TAG, "annotations": [], "logprobs": [logprob]}))
    sdk = Response.model_validate(body)
    reply = read("openai", body, "gpt-5.1", reasoning="low")
    assert reply.text == sdk.output_text == TAG
    assert reply.thoughts == "one\n\ntwo"
    assert (reply.model, reply.object_type, reply.stop_reason) == ("gpt-5.1-2025-11-13", "response", "stop")
    assert reply.usage == Usage(100, 20, 120, 64, 12, 0)
    assert reply.logprobs == (TokenLogprob("A", -0.5),)


# --- Together, compatible -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "unopened", "expected"),
    [
        ("plain", False, (None, "plain")),
        ("  <think>a</think> b ", False, ("a", "b")),
        ("<think></think>b", False, (None, "b")),
        ("<think>cut off", False, ("cut off", "")),
        ("a</think>b", True, ("a", "b")),
        ("a</think>b", False, (None, "a</think>b")),
        ("the essay says <think>x</think>", True, ("the essay says <think>x", "")),
        ("the essay says <think>x</think>", False, (None, "the essay says <think>x</think>")),
    ],
)
def test_think_blocks(content, unopened, expected):
    assert split_thoughts(content, unopened) == expected


# --- Anthropic ------------------------------------------------------------------------------------------------------


def message(*content: dict[str, Any], stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 50,
            "output_tokens": 30,
            "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 3,
            "output_tokens_details": {"thinking_tokens": 20},
        },
    } | more


def test_anthropic_message_is_what_the_sdk_reads():
    from anthropic.types import Message

    body = message(
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "thinking", "thinking": "b", "signature": "s"},
        {"type": "text", "text": "x ", "citations": None},
        {"type": "text", "text": TAG, "citations": None},
    )
    sdk = Message.model_validate(body)
    reply = read("anthropic", body, "claude-opus-4-8")
    assert reply.text == "".join(block.text for block in sdk.content if block.type == "text")
    assert (reply.thoughts, reply.model, reply.object_type) == ("a\n\nb", sdk.model, "message")
    assert reply.usage == Usage(60, 30, 90, 7, 20, 3)
    assert reply.stop_reason == "stop"


# --- Gemini ---------------------------------------------------------------------------------------------------------


def content(*parts: dict[str, Any], finish: str = "STOP", **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, **more}],
        "usageMetadata": {
            "promptTokenCount": 70,
            "candidatesTokenCount": 8,
            "thoughtsTokenCount": 22,
            "totalTokenCount": 100,
            "cachedContentTokenCount": 16,
        },
        "modelVersion": "gemini-3-flash-preview",
    }


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in the SDK itself, when it is compiled
def test_gemini_reply_is_what_the_sdk_reads():
    from google.genai.types import GenerateContentResponse

    result = {
        "chosenCandidates": [{"token": "SAMPLE_1", "logProbability": -0.25}],
        "topCandidates": [
            {"candidates": [{"token": "SAMPLE_1", "logProbability": -0.25}, {"token": "B", "logProbability": -3.0}]}
        ],
    }
    body = content(
        {"text": "my thoughts", "thought": True}, {"text": TAG, "thoughtSignature": "c2ln"}, logprobsResult=result
    )
    sdk = GenerateContentResponse.model_validate(body)
    reply = read("gemini", body, "gemini-3-flash-preview")
    assert reply.text == sdk.text == TAG
    assert (reply.thoughts, reply.object_type, reply.stop_reason) == ("my thoughts", "generateContent", "stop")
    assert reply.model == sdk.model_version
    assert reply.usage == Usage(70, 30, 100, 16, 22)
    alternatives = (("SAMPLE_1", -0.25), ("B", -3.0))
    assert reply.logprobs == (TokenLogprob("SAMPLE_1", -0.25, alternatives),)


# --- Ollama ---------------------------------------------------------------------------------------------------------


def test_ollama_reply_is_what_the_sdk_reads():
    from ollama import GenerateResponse

    body = {
        "model": "qwen3:32b",
        "created_at": "2026-11-15T10:00:00Z",
        "response": TAG,
        "thinking": "hm",
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 40,
        "eval_count": 12,
        "logprobs": [{"token": "S", "logprob": -0.1, "top_logprobs": [{"token": "S", "logprob": -0.1}]}],
    }
    sdk = GenerateResponse(**body)
    reply = read("ollama", body, "qwen3:32b", reasoning="enabled")
    assert (reply.text, reply.thoughts, reply.model) == (sdk.response, sdk.thinking, sdk.model)
    assert (reply.object_type, reply.stop_reason) == ("ollama.generate", "stop")
    assert reply.usage == Usage(40, 12, 52)
    assert reply.logprobs == (TokenLogprob("S", -0.1, (("S", -0.1),)),)


# --- what is none ---------------------------------------------------------------------------------------------------


def test_replies_of_the_manual():
    """Every succeeded line of the golden files: the same text, the same thoughts but for how they are joined."""
    for provider, model in {"openai": "gpt-4.1", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-3-pro"}.items():
        file = golden(f"parse_{provider}_batch_output")
        lines = file["input"]["lines"] if isinstance(file["input"], dict) else file["input"]
        seen = 0
        rows = (row for row in file["output"]["value"])
        for line, row in zip((line for line in lines if line), rows, strict=False):
            if row["status_code"] != 200 or row["content"] is None:
                continue
            found = json.loads(line)
            body = (
                found["response"]["body"]
                if provider == "openai"
                else found["result"]["message" if provider == "anthropic" else "response"]
            )
            endpoint = "responses" if body.get("object") == "response" else None
            reply = read(provider, body, model, endpoint=endpoint)
            assert reply.text == row["content"]
            assert (reply.thoughts or "").split() == (row["thoughts"] or "").split()
            assert (reply.model, reply.usage.prompt) == (row["model"], row["prompt_tokens"])
            seen += 1
        assert seen >= 5


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "status", "body", "message", "code"),
    [
        ("openai", 429, {"error": {"message": "Quota.", "type": "insufficient_quota", "code": "insufficient_quota"}},
         "Quota.", "insufficient_quota"),
        ("openai", 401, {"error": {"message": "Wrong key", "type": "invalid_request_error", "code": None}},
         "Wrong key", "invalid_request_error"),
        ("anthropic", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         "Overloaded", "overloaded_error"),
        ("anthropic", 400, {"type": "error", "error": {"type": "error", "error": {
            "type": "invalid_request_error", "message": "deep"}}}, "deep", "invalid_request_error"),
        ("gemini", 404, {"error": {"code": 404, "message": "no such model", "status": "NOT_FOUND"}},
         "no such model", "NOT_FOUND"),
        ("ollama", 404, {"error": "model 'x' not found"}, "model 'x' not found", None),
        ("together", 503, "upstream down", "upstream down", None),
        ("compatible", 500, "", "HTTP 500 without a message", None),
        ("compatible", 400, {"message": "flat", "type": "BadRequestError", "code": 400}, "flat", "BadRequestError"),
    ],
)  # fmt: skip
def test_errors_in_their_shapes(provider, status, body, message, code):
    problem = provider_named(provider).problem(status, body)
    assert (problem.message, problem.code, problem.parameter) == (message, code, None)
