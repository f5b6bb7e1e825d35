"""The simulator is a fair stand-in: the official SDKs work against it unchanged, and its figures are what it says."""

import json
import math
import warnings

import pytest

import pairscale as ps
from pairscale.testing import Behaviour, Faults, ProviderSimulator


def sdk(name):
    """An SDK, imported where a test uses it: at the head of this file it would cost seconds whatever tests are run."""
    with warnings.catch_warnings():  # of the SDKs' own imports
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


KEY = "sk-simulated-0123456789abcdef"
GOOD, BAD = "It rains, so we stay at home and read.", "Rain."
TRAIT = ps.trait_description("overall_quality")
PROMPT = ps.build_prompt(ps.get_prompt_template(), TRAIT.name, TRAIT.description, GOOD, BAD)
ONE = "<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>"
SCHEMA = {
    "type": "object",
    "properties": {"better_sample": {"type": "string", "enum": ["SAMPLE_1", "SAMPLE_2"]}},
    "required": ["better_sample"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server():
    with ProviderSimulator(Behaviour(quality={GOOD: 9.0, BAD: 0.0}, thoughts="The first has a reason.")) as running:
        yield running


def of_openai(server):
    return sdk("openai").OpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0)


def of_anthropic(server):
    return sdk("anthropic").Anthropic(api_key=KEY, base_url=server.url, max_retries=0)


def of_gemini(server, version="v1beta"):
    options = sdk("google.genai").types.HttpOptions(base_url=server.url, api_version=version)
    return sdk("google.genai").Client(api_key=KEY, http_options=options)


def of_together(server):
    return sdk("together").Together(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0)


def of_ollama(server):
    return sdk("ollama").Client(host=server.url)


# Answers


@pytest.mark.slow
def test_openai_chat(server):
    with of_openai(server) as client:
        reply = client.chat.completions.create(
            model="gpt-4.1", messages=[{"role": "user", "content": PROMPT}], logprobs=True, top_logprobs=2
        )
        assert reply.choices[0].message.content == ONE
        assert reply.choices[0].finish_reason == "stop"
        assert reply.usage.prompt_tokens == math.ceil(len(PROMPT.encode()) / 4)
        pieces = reply.choices[0].logprobs.content
        assert "".join(piece.token for piece in pieces) == ONE
        chosen = next(piece for piece in pieces if piece.token == "1")
        assert sum(math.exp(other.logprob) for other in chosen.top_logprobs) == pytest.approx(1)
        structured = client.chat.completions.create(
            model="gpt-4.1",
            messages=[{"role": "user", "content": PROMPT}],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
            },
        )
        assert json.loads(structured.choices[0].message.content) == {"better_sample": "SAMPLE_1"}


@pytest.mark.slow
def test_openai_responses(server):
    with of_openai(server) as client:
        reply = client.responses.create(
            model="gpt-5.1", input=PROMPT, reasoning={"effort": "low", "summary": "auto"}, max_output_tokens=500
        )
        assert reply.output_text == ONE
        assert reply.status == "completed"
        assert reply.output[0].summary[0].text == "The first has a reason."
        assert reply.usage.output_tokens_details.reasoning_tokens > 0
        structured = client.responses.create(
            model="gpt-5.1",
            input=[{"role": "user", "content": PROMPT}],
            text={"format": {"type": "json_schema", "name": "verdict", "schema": SCHEMA, "strict": True}},
        )
        assert json.loads(structured.output_text) == {"better_sample": "SAMPLE_1"}


@pytest.mark.slow
def test_anthropic(server):
    with of_anthropic(server) as client:
        asked = {"model": "claude-opus-4-5", "max_tokens": 2048, "messages": [{"role": "user", "content": PROMPT}]}
        reply = client.messages.create(**asked)
        assert [block.text for block in reply.content] == [ONE]
        assert reply.stop_reason == "end_turn"
        assert reply.usage.input_tokens == math.ceil(len(PROMPT.encode()) / 4)
        thinking = client.messages.create(**asked, thinking={"type": "enabled", "budget_tokens": 1024})
        assert [block.type for block in thinking.content] == ["thinking", "text"]
        assert thinking.content[0].thinking == "The first has a reason."
        tool = {"name": "verdict", "input_schema": SCHEMA}
        forced = client.messages.create(**asked, tools=[tool], tool_choice={"type": "tool", "name": "verdict"})
        assert forced.content[0].input == {"better_sample": "SAMPLE_1"}
        assert forced.stop_reason == "tool_use"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_gemini(server, version):
    types = sdk("google.genai").types
    with of_gemini(server, version) as client:
        thoughts = types.ThinkingConfig(include_thoughts=True)
        config = types.GenerateContentConfig(response_logprobs=True, logprobs=2, thinking_config=thoughts)
        reply = client.models.generate_content(model="gemini-3-pro-preview", contents=PROMPT, config=config)
        assert reply.text == ONE
        assert reply.candidates[0].content.parts[0].thought
        assert reply.candidates[0].finish_reason.name == "STOP"
        assert reply.usage_metadata.prompt_token_count == math.ceil(len(PROMPT.encode()) / 4)
        assert len(reply.candidates[0].logprobs_result.chosen_candidates) > 3
        config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=SCHEMA)
        structured = client.models.generate_content(model="gemini-3-pro-preview", contents=PROMPT, config=config)
        assert json.loads(structured.text) == {"better_sample": "SAMPLE_1"}
    assert server.journal[-1].path.startswith(f"/{version}/models/")


@pytest.mark.slow
def test_together(server):
    with of_together(server) as client:
        reply = client.chat.completions.create(
            model="deepseek-ai/DeepSeek-R1", messages=[{"role": "user", "content": PROMPT}]
        )
    assert reply.choices[0].message.content == f"<think>\nThe first has a reason.\n</think>\n\n{ONE}"
    assert reply.usage.total_tokens > 100


@pytest.mark.slow
def test_ollama():
    with ProviderSimulator(Behaviour(quality={GOOD: 9.0, BAD: 0.0}), models=["qwen3:32b", "gemma3:27b"]) as server:
        client = of_ollama(server)
        assert client.ps().models == []
        reply = client.generate("qwen3:32b", PROMPT, think=True)
        assert (reply.response, reply.done, reply.done_reason) == (ONE, True, "stop")
        assert reply.thinking == server.behaviour.thoughts
        reply = client.generate("gemma3:27b", PROMPT, format=SCHEMA)
        assert json.loads(reply.response) == {"better_sample": "SAMPLE_1"}
        assert reply.prompt_eval_count == math.ceil(len(PROMPT.encode()) / 4)
        assert [model.model for model in client.ps().models] == ["qwen3:32b", "gemma3:27b"]
        client.generate("qwen3:32b", keep_alive=0)
        assert [model.model for model in client.ps().models] == ["gemma3:27b"]
        with pytest.raises(sdk("ollama").ResponseError, match="not found") as raised:
            client.generate("unheard-of", PROMPT)
        assert raised.value.status_code == 404
        client._client.close()


# Errors are those of the SDK


def chat_with(client):
    return client.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": PROMPT}])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"keys": ["another"]}, "AuthenticationError"),
        ({"models": ["another"]}, "NotFoundError"),
        ({"faults": Faults(script=[429])}, "RateLimitError"),
        ({"faults": Faults(script=[500])}, "InternalServerError"),
        ({"rejects": {"gpt": ["messages"]}}, "BadRequestError"),
        ({"faults": Faults(script=["reset"])}, "APIConnectionError"),
    ],
)
def test_errors_of_the_sdks_of_openai_and_anthropic_and_together(settings, error):
    with ProviderSimulator(**settings) as server, of_openai(server) as client:
        with pytest.raises(getattr(sdk("openai"), error)) as raised:
            chat_with(client)
        if error == "BadRequestError":
            assert raised.value.param == "messages"
            assert raised.value.code == "unsupported_parameter"
    settings = {"rejects": {"claude": ["messages"]}} if "rejects" in settings else settings
    with ProviderSimulator(**settings) as server, of_anthropic(server) as client:
        with pytest.raises(getattr(sdk("anthropic"), error)):
            client.messages.create(
                model="claude-opus-4-5", max_tokens=9, messages=[{"role": "user", "content": PROMPT}]
            )
    if "rejects" not in settings:
        with ProviderSimulator(**settings) as server, of_together(server) as client:
            with pytest.raises(getattr(sdk("together"), error)):
                chat_with(client)


# It keeps no keys, and what it draws is what it says


@pytest.mark.slow
def test_the_journal_has_no_keys():
    with ProviderSimulator() as server:
        with of_openai(server) as client:
            chat_with(client)
        with of_anthropic(server) as client:
            client.messages.create(model="claude-opus-4-5", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        with of_gemini(server) as client:
            client.models.generate_content(model="gemini-3-pro-preview", contents=PROMPT)
        with of_together(server) as client:
            chat_with(client)
        ps.submit_llm_pairs(
            [{"ID1": "a", "text1": "x", "ID2": "b", "text2": "y"}],
            "gpt-4.1",
            api_key=KEY,
            base_url=f"{server.url}/v1",
            progress=False,
        )
        assert len(server.journal) == server.served == 5
        assert KEY not in repr(list(server.journal))
        assert KEY not in repr(server)
        assert [entry.number for entry in server.journal] == [1, 2, 3, 4, 5]
