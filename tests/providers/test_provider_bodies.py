"""What we send is what the official SDKs send for the same intent, recorded on loopback; and what the manual sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.providers.differences import documented
from tests.providers.intents import (
    CHAT,
    COMPATIBLE,
    CONTENT,
    MESSAGES,
    OLLAMA,
    PROMPT,
    RESPONSES,
    SAID,
    SERVICES,
    TABLES,
    TOGETHER,
    USER,
)  # fmt: skip
from tests.providers.recorder import Recorder
from tests.strategies import golden

from pairscale.core.errors import InputError
from pairscale.providers.base import LLMRequest
from pairscale.providers.catalog import bundled, provider_named


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.close()


# --- OpenAI ---------------------------------------------------------------------------------------------------------


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
    openai.responses.create(model=fields["model"], input=PROMPT, **{"store": False} | theirs)
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


@pytest.mark.parametrize(("fields", "theirs"), COMPATIBLE)
def test_compatible(recorder, openai, fields, theirs):
    openai.chat.completions.create(model=fields["model"], **theirs)
    sent(recorder, provider_named("compatible"), fields, "/v1")


# --- Anthropic ------------------------------------------------------------------------------------------------------


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
    assert recorder.headers["anthropic-version"] == ours.auth("k")["anthropic-version"]


def test_anthropic_by_default_speaks_the_version_of_the_manual():
    assert provider_named("anthropic").auth("k") == {"x-api-key": "k", "anthropic-version": "2023-06-01"}


# --- Gemini ---------------------------------------------------------------------------------------------------------


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


@pytest.fixture(scope="module")
def together(recorder: Recorder) -> Iterator[Any]:
    from together import Together

    own = Together(api_key="k").base_url.path.rstrip("/")  # with /v1, or since version 3 without it
    with Together(api_key="k", base_url=f"{recorder.url}{own}", max_retries=0) as client:
        yield client


@pytest.mark.parametrize(("fields", "theirs"), TOGETHER)
def test_together(recorder, together, fields, theirs):
    together.chat.completions.create(model=fields["model"], **theirs)
    sent(recorder, provider_named("together"), fields, "/v1")


# --- Ollama ---------------------------------------------------------------------------------------------------------


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
