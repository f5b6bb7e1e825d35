"""Nothing is sent that the rules forbid, whatever is asked of whatever model; and what may be known of models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairscale.core.errors import InputError
from pairscale.providers.base import LLMRequest
from pairscale.providers.catalog import LEVELS, PROVIDERS, capabilities, provider_named

MODELS = {
    "openai": ["gpt-4.1", "gpt-4o-mini", "gpt-3.5-turbo", "gpt-5", "gpt-5-mini-2025-08-07", "gpt-5.1", "gpt-5.2-pro",
               "gpt-5.4", "gpt-5.6-sol", "gpt-6-astra", "o3", "o1-mini", "gpt-5.1-codex", "ft:gpt-4.1:me", "brand-new"],
    "anthropic": ["claude-3-5-sonnet-20241022", "claude-3-7-sonnet-latest", "claude-opus-4-20250514",
                  "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5",
                  "claude-mythos-preview", "brand-new"],
    "gemini": ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-lite",
               "gemini-3-pro-preview", "gemini-3-flash-preview", "gemini-3.1-pro-preview", "gemini-flash-latest",
               "gemma-3-27b-it", "brand-new"],
    "together": ["deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.1",
                 "openai/gpt-oss-20b",
                 "Qwen/Qwen3-235B-A22B-Instruct-2507-tput", "moonshotai/Kimi-K2-Thinking", "zai-org/GLM-4.6",
                 "new/one"],
    "ollama": ["mistral-small3.2:24b", "qwen3:32b", "qwen2.5:7b", "gpt-oss:20b", "deepseek-r1:8b", "brand-new"],
    "deepseek": ["deepseek-v4-pro", "deepseek-flash"],
    "xai": ["grok-4.7", "grok-4.3", "grok-4.20-non-reasoning", "grok-4.20-reasoning", "grok-3-mini", "grok-3"],
    "mistral": ["mistral-small-latest", "magistral-medium-latest", "mistral-large-2512"],
    "groq": ["qwen/qwen3-32b", "openai/gpt-oss-20b", "llama-3.3-70b-versatile"],
    "openrouter": ["anthropic/claude-opus-5.5", "anthropic/claude-sonnet-5.5", "openai/gpt-6-sol", "brand-new"],
    "azure": ["gpt-5.1", "my-deployment"],
    "bedrock": ["openai.gpt-oss-120b-1:0", "global.openai.gpt-6-sol", "qwen.qwen3-32b-v1:0"],
    "vertex": ["google/gemini-3.8-flash", "google/gemini-2.5-flash", "xai/grok-4.1-fast-reasoning"],
    "vllm": ["Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.1", "openai/gpt-oss-20b", "brand-new"],
    "sglang": ["Qwen/Qwen3-8B", "zai-org/GLM-4.6", "brand-new"],
    "lmstudio": ["qwen3-8b", "brand-new"],
    "compatible": ["openai/gpt-5.1", "o3", "gpt-oss-120b", "Qwen/Qwen3-8B", "llama-4", "brand-new"],
}  # fmt: skip

some = st.none
REQUESTS = st.fixed_dictionaries(
    {
        "system": some() | st.just("Be fair."),
        "reasoning": some() | st.sampled_from([*LEVELS, "enabled"]),
        "include_thoughts": some() | st.booleans(),
        "thinking_budget": some() | st.sampled_from([-1, 0, 1, 128, 1023, 1024, 2047, 2048, 30_000, 100_000]),
        "temperature": some() | st.sampled_from([0, 0.0, 0.3, 1, 1.0, 1.7]),
        "top_p": some() | st.sampled_from([0.5, 0.95, 1.0]),
        "top_k": some() | st.just(5),
        "max_tokens": some() | st.sampled_from([1, 768, 1024, 1025, 4096]),
        "service_tier": some() | st.just("flex"),
        "seed": some() | st.just(7),
        "logprobs": some() | st.sampled_from([0, 5, 20]),
        "choices": some() | st.just(("SAMPLE_1", "SAMPLE_2")),
        "endpoint": some() | st.sampled_from(["chat.completions", "responses"]),
        "num_ctx": some() | st.just(2048),
    }
)
# Most draws of all fields at once are refused; a few fields at a time reach the bodies.
FEW = st.lists(st.sampled_from(["system", "reasoning", "include_thoughts", "thinking_budget", "temperature", "top_p",
                                "top_k", "max_tokens", "service_tier", "seed", "logprobs", "choices", "endpoint",
                                "num_ctx"]), max_size=4, unique=True)  # fmt: skip


def asked(provider: str, model: str, fields: Mapping[str, Any], few: list[str]) -> LLMRequest:
    chosen = {name: fields[name] for name in few}
    return LLMRequest(model=model, prompt="p", **chosen)


def on(effort: Any) -> bool:
    return effort is not None and effort != "none"


def openai_rules(request: LLMRequest, body: dict[str, Any], endpoint: str) -> None:
    able = capabilities("openai", request.model)
    effort = body.get("reasoning_effort") or body.get("reasoning", {}).get("effort")
    samplers = {"temperature", "top_p", "logprobs", "top_logprobs", "include"} & set(body)
    if able.family != "unknown" and (on(effort) or (able.thinks_unasked and effort is None)):
        assert not samplers
    assert effort is None or able.thinking != "none"
    assert effort is None or effort in able.levels
    assert not {"top_k", "max_tokens", "thinking", "num_ctx", "system"} & set(body)
    if endpoint == "responses":
        assert not {"messages", "seed", "response_format", "max_completion_tokens", "reasoning_effort"} & set(body)
        assert "summary" not in body.get("reasoning", {}) or on(effort)
    else:
        assert not {"input", "instructions", "reasoning", "text", "max_output_tokens", "include"} & set(body)
        assert "top_logprobs" not in body or body["logprobs"] is True
    if request.endpoint:
        assert endpoint == request.endpoint


def anthropic_rules(request: LLMRequest, body: dict[str, Any]) -> None:
    able = capabilities("anthropic", request.model)
    thinking, output = body.get("thinking", {}), body.get("output_config", {})
    kind = thinking.get("type")
    assert body["max_tokens"] >= 1
    if kind == "enabled":
        assert able.budget is not None
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
        assert body.get("temperature", 1) == 1
        assert "effort" not in output
    else:
        assert "budget_tokens" not in thinking
    if kind in {"enabled", "adaptive"}:
        assert body.get("temperature", 1) == 1
        assert "top_k" not in body
        assert body.get("top_p", 1) >= 0.95
        assert "tool_choice" not in body
    if able.temperature == "never":
        assert not {"temperature", "top_p", "top_k"} & set(body)
    if able.one_sampler:
        assert not {"temperature", "top_p"} <= set(body)
    assert kind != "adaptive" or able.thinking == "adaptive"
    assert kind != "disabled" or able.family in {"claude-5", "claude-haiku-5.5"}
    assert (kind == "between_tools") == (able.family == "claude-sonnet-5.5" and request.reasoning == "none")
    assert not {"logprobs", "seed", "top_logprobs", "response_format", "endpoint"} & set(body)
    assert 0 <= body.get("temperature", 0) <= 1


def gemini_rules(request: LLMRequest, body: dict[str, Any]) -> None:
    able = capabilities("gemini", request.model)
    config = body.get("generationConfig", {})
    thinking = config.get("thinkingConfig", {})
    assert not {"thinkingLevel", "thinkingBudget"} <= set(thinking)
    if "thinkingLevel" in thinking:
        assert able.thinking == "level"
        assert thinking["thinkingLevel"].lower() in able.levels
    if "thinkingBudget" in thinking:
        assert able.thinking in {"budget", "any"}
        least, most = able.budget or (0, 1_000_000)
        assert thinking["thinkingBudget"] in {-1, 0} or least <= thinking["thinkingBudget"] <= most
        assert thinking["thinkingBudget"] != 0 or "none" in able.levels
    if able.thinking == "none":
        assert not thinking
    assert ("responseJsonSchema" in config) == ("responseMimeType" in config) == (request.choices is not None)
    assert "logprobs" not in config or config["responseLogprobs"] is True
    assert "model" not in body


def open_rules(provider: str, request: LLMRequest, body: dict[str, Any]) -> None:
    able = capabilities(provider, request.model)
    if provider in {"together", "ollama"}:
        assert not {"service_tier", "thinking", "max_completion_tokens"} & set(body)
    if able.thinking in {"none", "fixed"}:
        assert not {"reasoning", "reasoning_effort", "think", "thinking", "chat_template_kwargs"} & set(body)
    if able.thinking == "effort" and provider not in {"together", "ollama"}:
        effort = body.get("reasoning_effort") or body.get("reasoning", {}).get("effort")
        assert effort is None or effort in able.levels
    if provider == "together":
        assert not {"reasoning", "reasoning_effort"} <= set(body)
    if provider == "ollama":
        assert body["stream"] is False
        assert not {"temperature", "num_ctx", "top_p", "top_k", "seed", "max_tokens"} & set(body)
        if request.temperature is None:
            qwen = able.family.startswith("qwen3") and bool(body.get("think"))
            assert body["options"]["temperature"] == (0.6 if qwen else 0)


@pytest.mark.slow_except("openai", "anthropic")
@pytest.mark.parametrize("provider", list(PROVIDERS))
@settings(max_examples=120)
@given(data=st.data(), fields=REQUESTS, few=FEW)
def test_nothing_is_sent_that_the_rules_forbid(provider, data, fields, few):
    model = data.draw(st.sampled_from(MODELS[provider]))
    request = asked(provider, model, fields, few)
    ours = provider_named(provider)
    try:
        call = ours.call(request)
    except InputError:
        assert request != LLMRequest(model=model, prompt="p")  # nothing asked is always allowed
        return
    body: dict[str, Any] = json.loads(json.dumps(call.body))
    assert json.dumps(ours.call(request).body) == json.dumps(call.body)
    assert not [name for name, value in body.items() if value is None]
    match provider:
        case "openai":
            openai_rules(request, body, call.endpoint)
        case "anthropic":
            anthropic_rules(request, body)
        case "gemini":
            gemini_rules(request, body)
        case _:
            open_rules(provider, request, body)


def paths(body: Mapping[str, Any], above: str = "") -> list[str]:
    """The dotted names of everything in a body."""
    found = []
    for name, value in body.items():
        found.append(above + name)
        if isinstance(value, Mapping):
            found += paths(value, f"{above}{name}.")
    return found


@pytest.mark.parametrize(
    ("provider", "fields", "words"),
    [
        ("openai", {"model": "gpt-5.1", "reasoning": "high", "temperature": 0}, "no temperature while it reasons"),
        ("openai", {"model": "gpt-5", "temperature": 1}, "takes no temperature"),
        ("openai", {"model": "gpt-5.1", "reasoning": "minimal"}, "takes none, low, medium, high"),
        ("openai", {"model": "o3", "reasoning": "none"}, "always thinks"),
        ("openai", {"model": "gpt-6.1-sol", "reasoning": "none"}, "always thinks; it takes low, medium"),
        ("openai", {"model": "gpt-6-astra", "temperature": 0}, "takes no temperature"),
        ("gemini", {"model": "gemini-3.8-flash", "reasoning": "minimal"}, "takes low, medium, high"),
        ("openai", {"model": "gpt-4.1", "reasoning": "low"}, "does not reason"),
        ("openai", {"model": "gpt-5", "logprobs": 3}, "no log-probabilities"),
        ("openai", {"model": "gpt-3.5-turbo", "choices": ("A",)}, "no structured output"),
        ("openai", {"model": "gpt-4.1", "top_k": 3}, "OpenAI takes no top_k"),
        ("openai", {"model": "gpt-4.1", "endpoint": "verdicts"}, "no endpoint 'verdicts'"),
        ("openai", {"model": "gpt-4.1", "reasoning": "hard"}, "reasoning must be 'none', .* or 'enabled', not 'hard'"),
        ("openai", {"model": "gpt-4.1", "logprobs": 21}, "logprobs must be a whole number from 0 to 20, not 21"),
        ("openai", {"model": "gpt-4.1", "max_tokens": 0}, "max_tokens must be a whole number of 1 or more, not 0"),
        ("anthropic", {"model": "claude-sonnet-4-5", "reasoning": "enabled", "temperature": 0}, "temperature but 1"),
        ("anthropic", {"model": "claude-sonnet-4-5", "thinking_budget": 512}, "1024 is the least"),
        ("anthropic", {"model": "claude-sonnet-4-5", "thinking_budget": 2048}, "smaller than max_tokens, 2048"),
        ("anthropic", {"model": "claude-sonnet-4-5", "reasoning": "enabled", "max_tokens": 1024}, "smaller than max"),
        ("anthropic", {"model": "claude-opus-4-8", "thinking_budget": 2048}, "takes no thinking_budget"),
        ("anthropic", {"model": "claude-opus-4-8", "temperature": 0}, "takes no temperature"),
        ("anthropic", {"model": "claude-opus-5-5", "reasoning": "none"}, "always thinks"),
        ("anthropic", {"model": "claude-fable-5", "reasoning": "none"}, "always thinks"),
        ("anthropic", {"model": "claude-sonnet-5-5", "store": True}, "takes no store"),
        ("gemini", {"model": "gemini-3.8-flash", "store": True}, "takes no store"),
        ("deepseek", {"model": "deepseek-v4-pro", "reasoning": "medium"}, "takes none, low, high, max"),
        ("deepseek", {"model": "deepseek-v4-pro", "temperature": 0.5}, "no temperature while it reasons"),
        ("xai", {"model": "grok-4.7", "reasoning": "none"}, "always thinks"),
        ("xai", {"model": "grok-4.20-non-reasoning", "reasoning": "low"}, "does not reason"),
        ("openai", {"model": "gpt-4.1", "store": "yes"}, "store must be True or False"),
        ("anthropic", {"model": "claude-sonnet-4-5", "logprobs": 1}, "Anthropic takes no logprobs"),
        ("anthropic", {"model": "claude-3-7-sonnet-latest", "reasoning": "low", "choices": ("A",)}, "while it thinks"),
        ("gemini", {"model": "gemini-3-pro-preview", "reasoning": "minimal"}, "takes low, high"),
        ("gemini", {"model": "gemini-3-pro-preview", "thinking_budget": 128}, "a level and no thinking_budget"),
        ("gemini", {"model": "gemini-2.5-pro", "thinking_budget": 0}, "from 128 to 32768"),
        ("gemini", {"model": "gemini-2.5-flash", "thinking_budget": 9, "reasoning": "low"}, "the same thing"),
        ("together", {"model": "deepseek-ai/DeepSeek-R1", "reasoning": "none"}, "always thinks"),
        ("together", {"model": "m", "service_tier": "flex"}, "takes no service_tier"),
        ("ollama", {"model": "gemma3:27b", "reasoning": "enabled"}, "does not reason"),
    ],
)
def test_what_is_forbidden_says_why(provider, fields, words):
    with pytest.raises(InputError, match=words):
        provider_named(provider).call(LLMRequest(prompt="p", **fields))
