"""The rate limiter against servers that refuse requests, in simulated time: seconds, and requests per answer.

The bounds are the contract, not the figures of these seeds (docs/validation.md has those).
"""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.limit_servers import (
    Change,
    FixedWindow,
    Share,
    SimulatedLoop,
    SlidingWindow,
    TokenBucket,
    ask,
    requests_per_minute,
)

from pairscale.providers.limits import RateLimiter

SEEDS = (11, 12, 13)


def shared(share: float, seed: int, **more) -> tuple[float, float, int]:
    """Seconds with the limiter, seconds without any, and requests."""
    limited = ask(Share(share, random.Random(seed)), seed=seed, **more)
    free = ask(Share(share, random.Random(seed)), seed=seed, limited=False, **more)
    return limited.seconds, free.seconds, limited.requests


# A share that is refused whatever the rate


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("style", ["none", "zero"])
@pytest.mark.parametrize("share", [0.02, 0.08, 0.2, 0.35, 0.5])
def test_a_share_that_is_refused_anyway_costs_little_time(share, style, seed):
    limited, free, requests = shared(share, seed, style=style)
    assert limited <= 1.5 * free + 2
    assert requests < 1000 / (1 - share) * 1.15


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_120_answers_with_three_in_ten_refused_take_at_most_twice_as_long_as_with_503(concurrency, seed):
    """Of a 503 the limiter learns nothing, and its retry waits a second or longer, as after a 429 without a wait."""
    refused = ask(Share(0.3, random.Random(seed)), seed=seed, style="zero", answers=120, concurrency=concurrency)
    failed = Share(0.3, random.Random(seed))
    errors = ask(failed, seed=seed, style="none", answers=120, concurrency=concurrency, limited=False)
    assert refused.seconds <= 2 * errors.seconds + 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0.05, 0.25])
def test_a_share_that_is_told_to_wait_a_second_does_not_stop_the_others(share, seed):
    limited, free, _ = shared(share, seed, style="seconds")
    assert limited <= 3 * free


# Limits


@pytest.mark.parametrize("style", ["none", "zero", "seconds", "ms", "openai"])
@pytest.mark.parametrize("per_second", [4, 12])
def test_a_limit_far_below_the_demand_is_met_with_few_refusals(per_second, style):
    """Twenty times as many requests as the limit allows, and more, if nothing slowed them down."""
    got = ask(TokenBucket(per_second), style=style, concurrency=80)
    assert 1000 / got.seconds >= 0.75 * per_second
    assert got.requests <= 1.5 * 1000
    assert got.lost <= 10


@pytest.mark.parametrize("style", ["none", "zero", "seconds"])
def test_a_limit_for_each_minute(style):
    got = ask(FixedWindow(100), style=style, answers=400, concurrency=16)
    assert got.seconds <= 1.5 * 180
    assert got.requests <= 1.5 * 400


@pytest.mark.parametrize("style", ["none", "seconds"])
def test_a_limit_that_counts_what_it_refused(style):
    got = ask(SlidingWindow(80, 10.0, strict=True), style=style, concurrency=40)
    assert 1000 / got.seconds >= 0.4 * 8
    assert got.requests <= 1.5 * 1000


def test_a_limit_that_falls_is_found_again():
    got = ask(Change(30.0, TokenBucket(20), TokenBucket(5)), style="none", concurrency=32)
    assert got.late >= 0.75 * 5
    assert got.requests <= 2 * 1000


def test_a_limit_that_rises_is_found_again():
    got = ask(Change(60.0, TokenBucket(5), TokenBucket(25)), style="none", concurrency=32, answers=2000)
    assert got.late >= 0.75 * 25
    assert got.requests <= 1.5 * 2000


def test_refusals_that_end_are_forgotten():
    """A minute of refusing four in five, and then none: the rate of before is back within three minutes."""
    rule = Change(60.0, Share(0.8, random.Random(3)), Share(0.0, random.Random(3)))
    got = ask(rule, style="zero", answers=8000)
    assert got.seconds <= 60 + 180 + 8000 * 0.1 / 8
    assert got.late >= 0.75 * 8 / 0.1


WAITS = st.sampled_from([None, 0.0, 0.3, 40.0])
EVENTS = st.lists(st.tuples(st.sampled_from(["send", "send", "refuse", "answer", "lose"]), WAITS, st.integers(0, 99)))


@given(st.integers(0, 200), EVENTS, st.none() | st.integers(1, 1000))
def test_whatever_happens_no_request_waits_for_ever(refused_first, events, per_minute):
    """Outcomes in any order, some that never come, and any waits: the next request goes within the longest of them."""

    async def scene() -> None:
        clock = asyncio.get_running_loop().time
        limiter, open_ = RateLimiter(per_minute, clock=clock), []
        for event, wait, which in [("send", None, 0), ("refuse", 0.0, 0)] * refused_first + events:
            start = clock()
            if event == "send":
                open_.append(await limiter.admit())
                longest = max(40.0, 60 / min(10, per_minute or 10)) + 60 * bool(per_minute)
                assert clock() - start <= longest + 1e-6
            elif open_:
                ticket = open_.pop(which % len(open_))
                if event == "refuse":
                    limiter.refused(wait, {}, ticket)
                elif event == "answer":
                    limiter.answered({}, ticket)
            rate = requests_per_minute(limiter)
            assert rate is None or min(10, per_minute or 10) <= rate + 1e-9
            assert per_minute is None or rate <= per_minute * (1 + 1e-15)

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(scene())
