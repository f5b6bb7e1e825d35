"""What we send is what the official SDKs send for the same intent, recorded on loopback; and what the manual sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.providers.differences import documented
from tests.providers.intents import (
    SERVICES,
    TABLES,
)  # fmt: skip
from tests.strategies import golden

from pairscale.core.errors import InputError
from pairscale.providers.base import LLMRequest
from pairscale.providers.catalog import bundled, provider_named

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
NAMES = {"thinking_budget_tokens": "thinking_budget", "max_output_tokens": "max_tokens", "thinking_level": "reasoning"}
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
            sent_body = dict(call.body)
            if call.endpoint == "responses":
                assert sent_body.pop("store") is False  # the manual leaves it to OpenAI, which keeps the answers
            same = sent_body == body and path in {None, call.path}
        if not same:
            differ.add((provider, label))
    assert differ == {key for key in DIFFERENCES if key[0] == provider}


def test_every_family_is_compared():
    known = {
        (provider, row.family)
        for row in bundled("providers").models
        for provider in ([row.provider] if isinstance(row.provider, str) else row.provider)
    }
    asked = [(table.split()[0], fields) for table, (_, _, rows) in TABLES.items() for fields, _ in rows]
    asked += [(service, fields) for service, fields, _ in SERVICES]
    tried = {(provider, provider_named(provider).capabilities(fields["model"]).family) for provider, fields in asked}
    assert known - tried == set()


def test_the_differences_from_the_sdks_are_documented():
    page = Path(__file__).parents[2] / "docs" / "validation.md"
    assert documented() in page.read_text("utf-8")
