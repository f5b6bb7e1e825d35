"""Every provider over real HTTP, against the simulator: answers, and everything that goes wrong."""

import asyncio
import logging
import math
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.testing import Behaviour, Faults, ProviderSimulator

KEY = "sk-simulated-0123456789abcdef"
GOOD, BAD = "It rains, so we stay at home and read.", "Rain."
PAIR = ps.JudgePair({"ID": "a", "text": GOOD}, {"ID": "b", "text": BAD}, "a:b#1")
PAIRS = [{"ID1": "a", "text1": GOOD, "ID2": "b", "text2": BAD}]
QUALITY = {GOOD: 2.0, BAD: 0.5}
PRICE = {"input": 1.0, "output": 4.0}

# Of each provider: the model, settings that it is asked with, the path, and what it calls its replies.
CASES = {
    "openai": ("gpt-4.1", {}, "/v1/chat/completions", "chat.completion"),
    "openai-responses": ("gpt-5.1", {"reasoning": "low"}, "/v1/responses", "response"),
    "anthropic": ("claude-sonnet-4-5", {}, "/v1/messages", "message"),
    "gemini": ("gemini-3-pro-preview", {}, "/v1beta/models/gemini-3-pro-preview:generateContent", "generateContent"),
    "together": ("deepseek-ai/DeepSeek-V3", {}, "/v1/chat/completions", "chat.completion"),
    "ollama": ("qwen3:32b", {}, "/api/generate", "ollama.generate"),
    "compatible": ("my-model", {}, "/v1/chat/completions", "chat.completion"),
}
EVERY = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "pairscale")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture(autouse=True)
def quick(fast_limits):
    pass


def provider(case: str) -> str:
    return case.partition("-")[0]


def judge_of(server: ProviderSimulator, case: str, model: str | None = None, **settings) -> ps.LLMJudge:
    name, usual = CASES[case][0], CASES[case][1]
    roots = {"anthropic": "", "gemini": "", "ollama": ""}
    given = {"base_url": server.url + roots.get(provider(case), "/v1"), "api_key": KEY, "price": PRICE}
    judge = ps.make_judge(f"{provider(case)}:{model or name}", judge_args=given | usual | settings)
    assert isinstance(judge, ps.LLMJudge)
    return judge


def ask(judge: ps.LLMJudge, pair: ps.JudgePair = PAIR) -> ps.Verdict:
    async def asked() -> ps.Verdict:
        try:
            return await judge.compare(pair)
        finally:
            await judge.aclose()

    return asyncio.run(asked())


def submit(judge: ps.LLMJudge, pairs=PAIRS, **options) -> ps.SubmitResult:
    return ps.submit_pairs(pairs, judge, **({"progress": False, "retry_wait": 0.001} | options))


def simulator(behaviour: dict | None = None, faults: dict | None = None, **more) -> ProviderSimulator:
    return ProviderSimulator(Behaviour(**({"quality": QUALITY} | (behaviour or {}))), Faults(**(faults or {})), **more)


def expected_tokens(judge: ps.LLMJudge, said: str, thoughts: str = "") -> tuple[int, int]:
    def count(text: str) -> int:
        return max(1, math.ceil(len(text.encode()) / 4))

    return count(judge.request(PAIR).prompt), count(said) + (count(thoughts) if thoughts else 0)


# What the model says


@EVERY
def test_success(case):
    with simulator({"sharpness": 20}) as server:
        judge, start = judge_of(server, case), time.perf_counter()
        verdict = ask(judge)
        journal = list(server.journal)
    assert (verdict.outcome, verdict.winner_pos, verdict.error_code) == (ps.Outcome.WIN, 1, None)
    assert verdict.content == "<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>"
    assert verdict.model == CASES[case][0]
    assert verdict.object_type == CASES[case][3]
    assert verdict.status_code == 200
    assert verdict.thoughts is None
    assert [entry.path for entry in journal] == [CASES[case][2]]
    thinks = case in {"gemini", "openai-responses"}
    prompt, completion = expected_tokens(judge, verdict.content, server.behaviour.thoughts if thinks else "")
    assert (verdict.prompt_tokens, verdict.completion_tokens) == (prompt, completion)
    assert verdict.total_tokens == prompt + completion
    assert verdict.cost == pytest.approx((prompt * 1.0 + completion * 4.0) / 1e6)
    assert 0 < verdict.latency_s < time.perf_counter() - start
    assert verdict.raw_response
    assert not {"messages", "input", "contents", "prompt"} & set(verdict.request)


FAILURES = {
    # what is simulated: the code; and where a provider has its own way of saying it
    "refusal": ("refusal", {"gemini": "content_filter"}),
    "filtered": ("content_filter", {"anthropic": "refusal", "ollama": "empty_answer"}),
    "empty": ("empty_answer", {}),
    "truncated": ("truncated", {}),
    "malformed": ("parse_error", {}),
    "echo": ("parse_error", {}),
}


@pytest.mark.slow_except("*-openai", "*-anthropic")
@EVERY
@pytest.mark.parametrize("failure", FAILURES)
def test_no_answer(case, failure):
    code, others = FAILURES[failure]
    code = others.get(provider(case), code)
    with simulator({f"{failure}_rate": 1.0}) as server:
        verdict = ask(judge_of(server, case))
        assert verdict.error_code == code
        assert str(verdict.outcome) == ("abstention" if code in {"refusal", "content_filter"} else "error")
        assert verdict.failure == "question"
        assert verdict.error_message
        assert verdict.prompt_tokens > 100  # it is paid for all the same
        assert verdict.cost > 0
        done = submit(judge_of(server, case))
        assert server.served == 2  # and not asked again
    assert done.failed_pairs["error_code"].to_list() == [code]
    assert done.results.height == 0


# What goes wrong on the way


@EVERY
def test_an_unsupported_parameter_is_dropped_once_said_once_and_remembered(case, said):
    name, more = {
        "openai-responses": ("service_tier", {"service_tier": "flex"}),
        "gemini": ("thinkingConfig", {}),
        "compatible": ("temperature", {}),
    }.get(case, ("temperature", {}))
    with simulator(rejects={".*": [name]}) as server:
        judge = judge_of(server, case, **more)
        assert ask(judge).outcome is ps.Outcome.WIN
        assert [entry.status for entry in server.journal] == [400, 200]
        assert ask(judge).outcome is ps.Outcome.WIN
        assert [entry.status for entry in server.journal] == [400, 200, 200]
    assert len(said()) == 1
    assert f"{provider(case)}: {CASES[case][0]} does not take {name}" in said()[0]


def retry_forms():
    past = format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)
    return {"seconds": ("0", ""), "date": (past, ""), "milliseconds": ("60", "1"), "nothing": ("", "")}


@pytest.mark.slow_except("*-openai", "*-anthropic")
@EVERY
@pytest.mark.parametrize("form", retry_forms())
def test_429_once(case, form):
    seconds, milliseconds = retry_forms()[form]
    headers = {"retry-after-ms": milliseconds} if milliseconds else {}
    with simulator(faults={"script": [429], "retry_after": seconds}, headers=headers) as server:
        done = submit(judge_of(server, case))
        assert [entry.status for entry in server.journal] == [429, 200]
    assert done.results.height == 1
    assert done.failed_attempts.select("error_code", "attempt").rows() == [("rate_limited", 1)]
    assert done.asked == 2


def test_a_provider_that_is_down_is_left_alone_and_asked_again_when_it_is_back(said):
    texts = [{"ID": f"s{n}", "text": f"Text {n}"} for n in range(12)]
    with simulator(faults={"script": [503] * 14}) as server:
        done = submit(judge_of(server, "openai"), ps.make_pairs(texts), retries=30, retry_wait=0, concurrency=1)
        assert server.served == 66 + 14
    assert done.results.height == 66
    waits = [message.rpartition(" in ")[2] for message in said() if "trying again" in message]
    assert waits == ["5 s", "10 s", "20 s", "40 s", "60 s"]  # after ten in a row, and after each try that fails
    assert said()[-1] == "openai answers again"


def test_redirects_are_not_followed_with_the_key():
    from aiohttp import web

    async def scene() -> None:
        got = []

        async def elsewhere(request: web.Request) -> web.StreamResponse:
            got.append(request.path)
            raise web.HTTPTemporaryRedirect("http://127.0.0.1:9/v1/chat/completions")

        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", elsewhere)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        judge = ps.make_judge("openai:gpt-4.1", judge_args={"base_url": url, "api_key": KEY})
        try:
            verdict = await judge.compare(PAIR)
            assert verdict.failure == "question"
            assert "another address" in verdict.error_message
        finally:
            await judge.aclose()
            await runner.cleanup()
        assert len(got) == 1

    asyncio.run(scene())


# Where, and through what


def test_the_proxy_of_the_environment(message_snapshot, monkeypatch):
    with simulator({"sharpness": 20}) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "")
        judge = ps.make_judge(
            "openai:gpt-4.1", judge_args={"base_url": "http://provider.invalid/v1", "api_key": KEY, "price": PRICE}
        )
        assert ask(judge).winner_pos == 1
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(InputError) as refused:
        ps.make_judge("openai:gpt-4.1", judge_args={"base_url": "http://provider.invalid/v1", "api_key": KEY})
    message_snapshot(refused)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("localhost", "http://localhost:11434"),
        ("0.0.0.0:1234", "http://0.0.0.0:1234"),
        ("http://gpu/", "http://gpu:11434"),
        ("https://ollama.example/", "https://ollama.example"),
        ("http://[::1]", "http://[::1]:11434"),
    ],
)
def test_the_host_of_ollama(monkeypatch, host, url):
    monkeypatch.setenv("OLLAMA_HOST", host)
    judge = ps.make_judge("ollama:qwen3:8b")
    assert judge.preview(PAIR)[0] == f"{url}/api/generate"
