"""What we send is what the official SDKs send for the same intent, recorded on loopback; and what the manual sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.strategies import golden

from pairscale.errors import InputError
from pairscale.providers.base import LLMRequest
from pairscale.providers.registry import provider_named

PROMPT = 'Which is better?\n1: "a" \u2028 é 日本\n2: </b>'
PAIR = ("SAMPLE_1", "SAMPLE_2")
SCHEMA = {
    "type": "object",
    "properties": {"better_sample": {"type": "string", "enum": ["SAMPLE_1", "SAMPLE_2"]}},
    "required": ["better_sample"],
    "additionalProperties": False,
}


class Recorder:
    """A server that remembers the last request and answers with a minimal reply."""

    def __init__(self) -> None:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                recorder.path, recorder.body = self.path, json.loads(content)
                recorder.headers = {name.lower(): value for name, value in self.headers.items()}
                data = json.dumps(REPLIES[self.path.rsplit("/", 1)[-1].split(":")[-1]]).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


REPLIES: dict[str, Any] = {
    "completions": {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []},
    "responses": {"id": "1", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "completed"},
    "messages": {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [],
                 "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
    "generateContent": {"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}}]},
    "generate": {"model": "m", "response": "x", "done": True},
}  # fmt: skip


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.close()


# --- OpenAI ---------------------------------------------------------------------------------------------------------

USER = [{"role": "user", "content": PROMPT}]
TOLD = [{"role": "system", "content": "Be fair."}, *USER]
FORMAT = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True}}
TEXT = {"format": {"type": "json_schema", "name": "verdict", "schema": SCHEMA, "strict": True}}

CHAT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "gpt-4.1"}, {"messages": USER, "temperature": 0}),
    ({"model": "gpt-4o-mini", "system": "Be fair.", "temperature": 0.7, "top_p": 0.9, "seed": 3},
     {"messages": TOLD, "temperature": 0.7, "top_p": 0.9, "seed": 3}),
    ({"model": "gpt-4.1", "max_tokens": 50, "service_tier": "flex", "logprobs": 5},
     {"messages": USER, "temperature": 0, "max_completion_tokens": 50, "service_tier": "flex", "logprobs": True,
      "top_logprobs": 5}),
    ({"model": "gpt-4.1", "logprobs": 0}, {"messages": USER, "temperature": 0, "logprobs": True}),
    ({"model": "gpt-4.1", "choices": PAIR}, {"messages": USER, "temperature": 0, "response_format": FORMAT}),
    ({"model": "gpt-4.1", "include_thoughts": True}, {"messages": USER, "temperature": 0}),
    ({"model": "gpt-5.1"}, {"messages": USER, "temperature": 0}),
    ({"model": "gpt-5.1", "reasoning": "none"}, {"messages": USER, "reasoning_effort": "none", "temperature": 0}),
    ({"model": "gpt-5.1", "reasoning": "low", "endpoint": "chat.completions"},
     {"messages": USER, "reasoning_effort": "low"}),
    ({"model": "gpt-5"}, {"messages": USER}),
    ({"model": "gpt-5-mini", "reasoning": "none"}, {"messages": USER, "reasoning_effort": "minimal"}),
    ({"model": "gpt-6-sol", "reasoning": "none", "choices": PAIR},
     {"messages": USER, "reasoning_effort": "none", "temperature": 0, "response_format": FORMAT}),
    ({"model": "gpt-6-sol"}, {"messages": USER}),
    ({"model": "o3", "max_tokens": 900}, {"messages": USER, "max_completion_tokens": 900}),
    ({"model": "a-new-one", "reasoning": "max", "endpoint": "chat.completions"},
     {"messages": USER, "reasoning_effort": "max"}),
    ({"model": "gpt-4.1", "extra": {"verbosity": "low", "temperature": 0.1}},
     {"messages": USER, "temperature": 0.1, "verbosity": "low"}),
]  # fmt: skip

RESPONSES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "gpt-4.1", "endpoint": "responses"}, {"temperature": 0}),
    ({"model": "gpt-4.1", "endpoint": "responses", "system": "Be fair.", "logprobs": 3, "max_tokens": 64},
     {"instructions": "Be fair.", "temperature": 0, "include": ["message.output_text.logprobs"], "top_logprobs": 3,
      "max_output_tokens": 64}),
    ({"model": "gpt-5.1", "reasoning": "low"}, {"reasoning": {"effort": "low"}}),
    ({"model": "gpt-5.1", "include_thoughts": True}, {"reasoning": {"effort": "low", "summary": "auto"}}),
    ({"model": "gpt-5.2-2025-12-11", "reasoning": "high", "include_thoughts": True, "service_tier": "flex"},
     {"reasoning": {"effort": "high", "summary": "auto"}, "service_tier": "flex"}),
    ({"model": "gpt-5.1", "reasoning": "none", "endpoint": "responses", "top_p": 0.5},
     {"reasoning": {"effort": "none"}, "temperature": 0, "top_p": 0.5}),
    ({"model": "gpt-5-nano", "reasoning": "enabled", "choices": PAIR}, {"reasoning": {"effort": "low"}, "text": TEXT}),
    ({"model": "gpt-5-pro"}, {}),
    ({"model": "gpt-5.2-pro", "reasoning": "xhigh"}, {"reasoning": {"effort": "xhigh"}}),
    ({"model": "o4-mini", "reasoning": "low"}, {"reasoning": {"effort": "low"}}),
    ({"model": "gpt-6.1-terra", "reasoning": "max", "choices": PAIR}, {"reasoning": {"effort": "max"}, "text": TEXT}),
]  # fmt: skip


def sent(recorder: Recorder, provider: Any, fields: dict[str, Any], prefix: str = "") -> None:
    """Compare what the SDK has just sent with what we would send, body and path and way of naming the key."""
    request = LLMRequest(**{"prompt": PROMPT} | fields)
    call = provider.call(request)
    assert call == provider.call(request)
    assert json.loads(json.dumps(call.body)) == recorder.body
    assert prefix + call.path == recorder.path
    assert call.method == "POST"
    for name, value in provider.auth("k").items():
        assert recorder.headers[name.lower()] == value


@pytest.fixture(scope="module")
def openai(recorder: Recorder) -> Iterator[Any]:
    from openai import OpenAI

    with OpenAI(api_key="k", base_url=f"{recorder.url}/v1", max_retries=0) as client:
        yield client


@pytest.mark.parametrize(("fields", "theirs"), CHAT)
def test_openai_chat(recorder, openai, fields, theirs):
    openai.chat.completions.create(model=fields["model"], **theirs)
    sent(recorder, provider_named("openai"), fields, "/v1")
    assert provider_named("openai").call(LLMRequest(prompt="", **fields)).endpoint == "chat.completions"


@pytest.mark.parametrize(("fields", "theirs"), RESPONSES)
def test_openai_responses(recorder, openai, fields, theirs):
    openai.responses.create(model=fields["model"], input=PROMPT, **theirs)
    sent(recorder, provider_named("openai"), fields, "/v1")
    assert provider_named("openai").call(LLMRequest(prompt="", **fields)).endpoint == "responses"


def test_openai_organisation_and_project_of_the_environment(recorder, monkeypatch):
    from openai import OpenAI

    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    with OpenAI(api_key="k", base_url=f"{recorder.url}/v1", max_retries=0) as client:
        client.chat.completions.create(model="gpt-4.1", messages=USER, temperature=0)
    assert {"OpenAI-Organization", "OpenAI-Project"} <= set(provider_named("openai").auth("k"))
    sent(recorder, provider_named("openai"), {"model": "gpt-4.1"}, "/v1")


COMPATIBLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "my-model", "max_tokens": 9}, {"messages": USER, "temperature": 0, "max_tokens": 9}),
    ({"model": "meta-llama/Llama-4", "system": "Be fair.", "choices": PAIR, "logprobs": 2, "top_k": 5, "seed": 1},
     {"messages": TOLD, "temperature": 0, "seed": 1, "logprobs": True, "top_logprobs": 2, "response_format": FORMAT,
      "extra_body": {"top_k": 5}}),
    ({"model": "openai/gpt-oss-120b", "reasoning": "high"}, {"messages": USER, "reasoning_effort": "high"}),
    ({"model": "openai/gpt-5"}, {"messages": USER}),
    ({"model": "what-is-this", "reasoning": "enabled", "service_tier": "flex"},
     {"messages": USER, "reasoning_effort": "low", "service_tier": "flex"}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "theirs"), COMPATIBLE)
def test_compatible(recorder, openai, fields, theirs):
    openai.chat.completions.create(model=fields["model"], **theirs)
    sent(recorder, provider_named("compatible"), fields, "/v1")


# --- Anthropic ------------------------------------------------------------------------------------------------------

SAID = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
BUDGET = {"type": "enabled", "budget_tokens": 1024}
TOOL = {"tools": [{"name": "verdict", "description": "Give your verdict.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "verdict"}}  # fmt: skip

MESSAGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "claude-sonnet-4-5"}, {"max_tokens": 768, "extra_body": {"temperature": 0}}),
    ({"model": "claude-haiku-4-5", "system": "Be fair.", "temperature": 0.3, "top_k": 5, "max_tokens": 100},
     {"max_tokens": 100, "system": "Be fair.", "extra_body": {"temperature": 0.3, "top_k": 5}}),
    ({"model": "claude-opus-4-5", "top_p": 0.9}, {"max_tokens": 768, "extra_body": {"top_p": 0.9}}),
    ({"model": "claude-sonnet-4-5", "reasoning": "enabled"},
     {"max_tokens": 2048, "thinking": BUDGET, "extra_body": {"temperature": 1}}),
    ({"model": "claude-sonnet-4-5", "include_thoughts": True, "reasoning": "none"},
     {"max_tokens": 2048, "thinking": BUDGET, "extra_body": {"temperature": 1}}),
    ({"model": "claude-sonnet-4-5", "reasoning": "medium"},
     {"max_tokens": 5120, "thinking": {"type": "enabled", "budget_tokens": 4096}, "extra_body": {"temperature": 1}}),
    ({"model": "claude-sonnet-4-5", "thinking_budget": 3000, "max_tokens": 4096, "top_p": 0.95},
     {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 3000}, "extra_body": {"top_p": 0.95}}),
    ({"model": "claude-sonnet-4-5", "choices": PAIR},
     {"max_tokens": 768, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
      "extra_body": {"temperature": 0}}),
    ({"model": "claude-3-5-haiku-20241022", "choices": PAIR},
     {"max_tokens": 768, "extra_body": {"temperature": 0}} | TOOL),
    ({"model": "claude-opus-4-6", "reasoning": "low"},
     {"max_tokens": 4096, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
    ({"model": "claude-opus-4-6", "thinking_budget": 1024, "temperature": 1},
     {"max_tokens": 2048, "thinking": BUDGET}),
    ({"model": "claude-opus-4-6"}, {"max_tokens": 768, "extra_body": {"temperature": 0}}),
    ({"model": "claude-opus-4-8"}, {"max_tokens": 768}),
    ({"model": "claude-opus-4-8", "reasoning": "none", "service_tier": "standard_only"},
     {"max_tokens": 768, "service_tier": "standard_only"}),
    ({"model": "claude-opus-4-7", "reasoning": "xhigh", "include_thoughts": True, "choices": PAIR},
     {"max_tokens": 16384, "thinking": {"type": "adaptive", "display": "summarized"},
      "output_config": {"effort": "xhigh", "format": {"type": "json_schema", "schema": SCHEMA}}}),
    ({"model": "claude-sonnet-5"}, {"max_tokens": 16384}),
    ({"model": "claude-sonnet-5", "reasoning": "none"}, {"max_tokens": 768, "thinking": {"type": "disabled"}}),
    ({"model": "claude-opus-5-5", "reasoning": "low", "include_thoughts": False},
     {"max_tokens": 4096, "thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "low"}}),
    ({"model": "claude-haiku-5-5", "include_thoughts": True, "extra": {"metadata": {"user_id": "u"}}},
     {"max_tokens": 16384, "thinking": {"type": "adaptive", "display": "summarized"}, "metadata": {"user_id": "u"}}),
]  # fmt: skip


@pytest.fixture(scope="module")
def anthropic(recorder: Recorder) -> Iterator[Any]:
    from anthropic import Anthropic

    with Anthropic(api_key="k", base_url=recorder.url, max_retries=0) as client:
        yield client


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning", "ignore:Using Claude with")
@pytest.mark.parametrize(("fields", "theirs"), MESSAGES)
def test_anthropic(recorder, anthropic, fields, theirs):
    anthropic.messages.create(model=fields["model"], messages=SAID, **theirs)
    ours = provider_named("anthropic", version="2026-10-21", key_header="bearer")
    sent(recorder, ours, fields)
    assert (
        recorder.headers["anthropic-version"] == ours.call(LLMRequest(prompt="", **fields)).headers["anthropic-version"]
    )


def test_anthropic_by_default_speaks_the_version_of_the_manual():
    ours = provider_named("anthropic")
    assert ours.auth("k") == {"x-api-key": "k"}
    call = ours.call(LLMRequest(model="claude-opus-4-8", prompt="p"))
    assert call.headers == {"anthropic-version": "2023-06-01"}


# --- Gemini ---------------------------------------------------------------------------------------------------------

FREE: dict[str, Any] = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
CONTENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "gemini-3-pro-preview"}, {"thinking_config": {"include_thoughts": False, "thinking_level": "LOW"}}),
    ({"model": "gemini-3-flash-preview", "reasoning": "minimal", "include_thoughts": True},
     {"thinking_config": {"include_thoughts": True, "thinking_level": "MINIMAL"}}),
    ({"model": "gemini-3-flash-preview", "reasoning": "none"},
     {"thinking_config": {"include_thoughts": False, "thinking_level": "MINIMAL"}}),
    ({"model": "gemini-3.1-pro-preview", "reasoning": "medium", "system": "Be fair.", "choices": PAIR},
     {"thinking_config": {"include_thoughts": False, "thinking_level": "MEDIUM"}, "system_instruction": "Be fair.",
      **FREE}),
    ({"model": "gemini-3-pro-preview", "reasoning": "high", "temperature": 0, "top_p": 0.9, "top_k": 10,
      "max_tokens": 500, "seed": 4, "service_tier": "flex"},
     {"thinking_config": {"include_thoughts": False, "thinking_level": "HIGH"}, "temperature": 0, "top_p": 0.9,
      "top_k": 10, "max_output_tokens": 500, "seed": 4, "service_tier": "flex"}),
    ({"model": "gemini-2.5-flash"}, {}),
    ({"model": "gemini-2.5-flash", "reasoning": "none", "logprobs": 5},
     {"thinking_config": {"include_thoughts": False, "thinking_budget": 0}, "temperature": 0,
      "response_logprobs": True, "logprobs": 5}),
    ({"model": "gemini-2.5-pro", "thinking_budget": 128, "include_thoughts": True},
     {"thinking_config": {"include_thoughts": True, "thinking_budget": 128}}),
    ({"model": "gemini-2.5-pro", "reasoning": "enabled"},
     {"thinking_config": {"include_thoughts": False, "thinking_budget": -1}}),
    ({"model": "gemini-2.5-flash-lite", "include_thoughts": False},
     {"thinking_config": {"include_thoughts": False}, "temperature": 0}),
    ({"model": "gemini-2.5-flash-lite", "include_thoughts": True},
     {"thinking_config": {"include_thoughts": True, "thinking_budget": -1}}),
    ({"model": "gemini-2.5-pro", "reasoning": "none"},
     {"thinking_config": {"include_thoughts": False, "thinking_budget": 512}}),
    ({"model": "gemini-2.0-flash", "choices": PAIR}, {"temperature": 0, **FREE}),
    ({"model": "gemma-3-27b-it"}, {"temperature": 0}),
]  # fmt: skip


def camel(name: str) -> str:
    """The SDK writes the keys of ``thinkingConfig`` with underscores; the API takes both, and documents this one."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


@pytest.fixture(scope="module", params=["v1beta", "v1"])
def gemini(recorder: Recorder, request: pytest.FixtureRequest) -> Iterator[tuple[Any, str]]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=recorder.url, api_version=request.param)
    client = genai.Client(api_key="k", http_options=options)
    yield client, request.param
    client.close()


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in the SDK itself, when it is compiled
@pytest.mark.parametrize(("fields", "theirs"), CONTENT)
def test_gemini(recorder, gemini, fields, theirs):
    from google.genai import types

    client, version = gemini
    config = types.GenerateContentConfig(**theirs)
    client.models.generate_content(model=fields["model"], contents=PROMPT, config=config)
    settings = recorder.body.get("generationConfig", {})
    if "thinkingConfig" in settings:
        settings["thinkingConfig"] = {camel(name): value for name, value in settings["thinkingConfig"].items()}
    if not settings:
        recorder.body.pop("generationConfig", None)  # the SDK sends an empty one
    sent(recorder, provider_named("gemini", api_version=version), fields)


# --- Together -------------------------------------------------------------------------------------------------------

TOGETHER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "deepseek-ai/DeepSeek-R1"}, {"messages": USER, "temperature": 0.6}),
    ({"model": "deepseek-ai/DeepSeek-R1", "reasoning": "enabled", "temperature": 0.2},
     {"messages": USER, "temperature": 0.2}),
    ({"model": "deepseek-ai/DeepSeek-V3", "max_tokens": 70, "seed": 2, "top_k": 3, "top_p": 0.5},
     {"messages": USER, "temperature": 0, "max_tokens": 70, "seed": 2, "top_k": 3, "top_p": 0.5}),
    ({"model": "moonshotai/Kimi-K2-Instruct-0905", "choices": PAIR},
     {"messages": USER, "temperature": 0, "response_format": FORMAT}),
    ({"model": "Qwen/Qwen3-235B-A22B-Instruct-2507-tput", "logprobs": 4, "system": "Be fair."},
     {"messages": TOLD, "temperature": 0, "logprobs": 4}),
    ({"model": "Qwen/Qwen3-235B-A22B-Thinking-2507"}, {"messages": USER, "temperature": 0.6}),
    ({"model": "deepseek-ai/DeepSeek-V3.1", "reasoning": "enabled"},
     {"messages": USER, "temperature": 0, "reasoning": {"enabled": True}}),
    ({"model": "zai-org/GLM-4.6", "reasoning": "none"},
     {"messages": USER, "temperature": 0, "reasoning": {"enabled": False}}),
    ({"model": "openai/gpt-oss-20b", "reasoning": "low"},
     {"messages": USER, "temperature": 0, "reasoning_effort": "low"}),
    ({"model": "meta-llama/Llama-3.3-70B-Instruct-Turbo", "extra": {"min_p": 0.1}},
     {"messages": USER, "temperature": 0, "min_p": 0.1}),
]  # fmt: skip


@pytest.fixture(scope="module")
def together(recorder: Recorder) -> Iterator[Any]:
    from together import Together

    with Together(api_key="k", base_url=f"{recorder.url}/v1", max_retries=0) as client:
        yield client


@pytest.mark.parametrize(("fields", "theirs"), TOGETHER)
def test_together(recorder, together, fields, theirs):
    together.chat.completions.create(model=fields["model"], **theirs)
    sent(recorder, provider_named("together"), fields, "/v1")


# --- Ollama ---------------------------------------------------------------------------------------------------------

OLLAMA: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "mistral-small3.2:24b"}, {"options": {"num_ctx": 8192, "temperature": 0}}),
    ({"model": "gemma3:27b", "num_ctx": 4096, "max_tokens": 20, "seed": 1, "top_k": 3, "top_p": 0.9},
     {"options": {"num_ctx": 4096, "temperature": 0, "num_predict": 20, "seed": 1, "top_k": 3, "top_p": 0.9}}),
    ({"model": "qwen3:32b"}, {"think": False, "options": {"num_ctx": 8192, "temperature": 0}}),
    ({"model": "qwen3:32b", "reasoning": "enabled"}, {"think": True, "options": {"num_ctx": 8192, "temperature": 0.6}}),
    ({"model": "qwen3:32b", "include_thoughts": True},
     {"think": True, "options": {"num_ctx": 8192, "temperature": 0.6}}),
    ({"model": "deepseek-r1:8b", "reasoning": "enabled"},
     {"think": True, "options": {"num_ctx": 8192, "temperature": 0}}),
    ({"model": "gpt-oss:20b", "reasoning": "high"}, {"think": "high", "options": {"num_ctx": 8192, "temperature": 0}}),
    ({"model": "llama3.2", "system": "Be fair.", "choices": PAIR, "logprobs": 3, "extra": {"options": {"num_gpu": 0}}},
     {"system": "Be fair.", "format": SCHEMA, "logprobs": True, "top_logprobs": 3,
      "options": {"num_ctx": 8192, "temperature": 0, "num_gpu": 0}}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "theirs"), OLLAMA)
def test_ollama(recorder, fields, theirs):
    from ollama import Client

    client = Client(host=recorder.url)
    client.generate(model=fields["model"], prompt=PROMPT, **theirs)
    client._client.close()
    ours = provider_named("ollama")
    request = LLMRequest(**{"prompt": PROMPT} | fields)
    assert json.loads(json.dumps(ours.call(request).body)) == recorder.body
    assert ours.call(request).path == recorder.path


# --- the manual -----------------------------------------------------------------------------------------------------

EFFORT_LOST = "the manual loses the effort on chat completions; they take reasoning_effort now"
REFUSED = "this model refuses a temperature, whatever its effort"
SAID_SO = "a temperature that is not taken is an error, never left out in silence"
DIFFERENCES: dict[tuple[str, str], str] = {
    ("openai", "gpt-5.1 chat.completions low"): EFFORT_LOST,
    ("openai", "gpt-5.3 responses low"): "the manual does not know that gpt-5.3 reasons; a temperature is refused then",
    ("openai", "gpt-5 responses"): REFUSED,
    ("openai", "gpt-5 chat.completions"): REFUSED,
    ("openai", "gpt-5-mini responses none 0.2"): SAID_SO,
    ("openai", "o4-mini responses low"): REFUSED,
    ("anthropic", "claude-sonnet-4-5 0.3 0.9 100"): "since 4.1 a temperature and top_p exclude each other",
    ("gemini", "gemini-2.5-flash low"): "Gemini 2.5 takes a budget, not a level",
    ("gemini", "gemini-2.5-flash minimal"): "Gemini 2.5 takes a budget, so that minimal is one, and no error",
    ("gemini", "gemini-3-pro-preview 128"): "a budget that is not taken is an error, never left out in silence",
}
NAMES = {
    "thinking_budget_tokens": "thinking_budget",
    "max_output_tokens": "max_tokens",
    "thinking_level": "reasoning",
}
IGNORED = {"request_id_prefix", "custom_id_prefix"}


def manual(provider: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The cases of the golden file: a label, the fields of our request, the result there."""
    found = golden(f"build_{provider}_batch_requests")["output"]
    return [
        (
            " ".join(str(value) for name, value in case["args"].items() if name not in IGNORED and value is not True),
            {NAMES.get(name, name): value for name, value in case["args"].items() if name not in IGNORED},
            case["result"],
        )
        for case in found
    ]


def theirs_of(provider: str, value: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The path and the body of a golden request, with level names as the API spells them."""
    if provider == "openai":
        return value["url"].removeprefix("/v1"), value["body"]
    body = value["params"] if provider == "anthropic" else json.loads(json.dumps(value["request"]))
    if provider == "gemini":
        thinking = body["generationConfig"]["thinkingConfig"]
        thinking["thinkingLevel"] = thinking["thinkingLevel"].upper()  # "Low" in the manual, LOW in the SDK
    return None, body


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_bodies_of_the_manual(provider):
    ours = provider_named(provider)
    prompt = "Trait Overall: Desc\n1:Text number 1\n2:Text number 2"
    differ = set()
    for label, fields, result in manual(provider):
        if "logprobs" in fields:
            fields["logprobs"] = 0  # TRUE in the manual: those of the answer's tokens alone
        if provider == "openai":
            fields.setdefault("endpoint", "chat.completions")
        make: Callable[[], Any] = lambda fields=fields: ours.call(LLMRequest(prompt=prompt, **fields))  # noqa: E731
        try:
            call = make()
        except InputError:
            same = "error" in result
        else:
            path, body = theirs_of(provider, result["value"][0]) if "value" in result else (None, None)
            same = call.body == body and path in {None, call.path}
        if not same:
            differ.add((provider, label))
    assert differ == {key for key in DIFFERENCES if key[0] == provider}
