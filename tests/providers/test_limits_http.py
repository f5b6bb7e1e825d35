"""The rate limiter over real HTTP, by a clock that does not depend on how fast this machine is."""

import asyncio

import pytest

import pairscale as ps
from pairscale.providers.limits import RateLimiter
from pairscale.testing import Faults, ProviderSimulator

OPEN, ANSWER_S, RETRY_WAIT_S = 8, 0.1, 1.0
TEXTS = [{"ID": f"s{n}", "text": f"Text {n}"} for n in range(16)]


class Clock:
    """Each request takes its part of the time of an answer; otherwise time passes only when the limiter waits."""

    def __init__(self, server: ProviderSimulator) -> None:
        self.server, self.waited = server, 0.0

    def __call__(self) -> float:
        return self.waited + self.server.served * ANSWER_S / OPEN

    async def sleep(self, seconds: float) -> None:
        self.waited += seconds
        await asyncio.sleep(0)


def judged(monkeypatch, **faults) -> tuple[ProviderSimulator, float]:
    """Judge all 120 pairs of 16 texts; returns the server, and the seconds that the limiter waited."""
    with ProviderSimulator(faults=Faults(**faults)) as server:
        clock = Clock(server)
        monkeypatch.setitem(RateLimiter.__init__.__kwdefaults__, "clock", clock)
        monkeypatch.setitem(RateLimiter.__init__.__kwdefaults__, "sleep", clock.sleep)
        judge = ps.make_judge("openai:gpt-4.1", judge_args={"base_url": f"{server.url}/v1", "api_key": "none"})
        pairs = ps.make_pairs(TEXTS)
        done = ps.submit_pairs(pairs, judge, concurrency=OPEN, retries=30, retry_wait=0.001, progress=False)
    assert done.results.height == pairs.height == 120
    return server, clock.waited


def failures(server: ProviderSimulator) -> int:
    return sum(entry.status != 200 for entry in server.journal)


@pytest.mark.validate  # how questions meet refusals depends on how busy the machine is
def test_120_pairs_with_three_in_ten_refused_take_at_most_twice_as_long_as_with_server_errors(monkeypatch):
    errors, waited = judged(monkeypatch, server_error=0.3)
    assert failures(errors) > 30
    assert waited == 0.0  # errors say nothing about the rate
    usual = errors.served * ANSWER_S / OPEN + failures(errors) * RETRY_WAIT_S / OPEN  # a retry waits at least a second
    refusals, waited = judged(monkeypatch, rate_limited=0.3, retry_after="0")
    assert failures(refusals) > 30
    assert refusals.served * ANSWER_S / OPEN + waited <= 2 * usual + 2
    assert refusals.served <= 1.3 * errors.served


@pytest.mark.parametrize("share", [0.05, 0.08])
def test_few_refusals_make_nobody_wait(monkeypatch, share):
    _, waited = judged(monkeypatch, rate_limited=share, retry_after="0")
    assert waited == 0.0
