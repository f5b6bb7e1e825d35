"""How fast to ask and when to wait, by a clock of our own: schedules that can be computed by hand."""

import asyncio
import heapq
import logging
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.limit_servers import requests_per_minute

from pairscale.providers.limits import Breaker, RateLimiter, Ticket, retry_after


class Clock:
    """Time that passes only when everybody waits; whoever waits for the shortest continues first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Event]] = []
        self._number = 0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0, "a wait of nothing would never end"
        self._number += 1
        event = asyncio.Event()
        heapq.heappush(self._waiting, (self.now + seconds, self._number, event))
        await event.wait()

    async def run(self, *work) -> list:
        """The results of all, in time that they themselves let pass."""
        tasks = [asyncio.ensure_future(one) for one in work]
        while not all(task.done() for task in tasks):
            for _ in range(3 * len(tasks) + 3):
                await asyncio.sleep(0)
            if self._waiting and not all(task.done() for task in tasks):
                self.now, _, event = heapq.heappop(self._waiting)
                event.set()
        return await asyncio.gather(*tasks)


def limiter_of(*limits, **more) -> tuple[Clock, RateLimiter]:
    clock = Clock()
    return clock, RateLimiter(*limits, clock=clock, sleep=clock.sleep, **more)


def tickets(clock: Clock, limiter: RateLimiter, *tokens: int) -> list[Ticket]:
    """Tickets of so many requests, asked for all at once."""
    return asyncio.run(clock.run(*(limiter.admit(each) for each in tokens)))


def admitted(clock: Clock, limiter: RateLimiter, *tokens: int) -> list[float]:
    """When each of so many requests may be sent."""
    return [ticket.sent_at for ticket in tickets(clock, limiter, *tokens)]


# Retry-After

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "86400"}, 300.0),
        ({"Retry-After": "Mon, 16 Nov 2026 12:00:20 GMT"}, 20.0),
        ({"Retry-After": "Mon, 16 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "Mon, 16 Nov 2026 23:00:00 GMT"}, 300.0),
        ({"Retry-After": "Mon, 16 Nov 2026 13:00:30 +0100"}, 30.0),
        ({"Retry-After": "Mon, 16 Nov 2026 12:00:05 -0000"}, 5.0),
        ({"retry-after-ms": "1500", "Retry-After": "60"}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "2"}, 2.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "inf"}, 300.0),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, lambda: NOON) == seconds


# RateLimiter


def test_no_window_of_a_minute_has_more_requests_than_allowed():
    times = admitted(*limiter_of(12), *[0] * 40)
    assert times == [pytest.approx(5.0 * n) for n in range(40)]
    assert all(later - earlier >= 60 - 1e-9 for earlier, later in zip(times, times[12:], strict=False))


def refuse(limiter: RateLimiter, ticket: Ticket, wait: float | None = 0.0) -> None:
    limiter.refused(wait, {}, ticket)


def outcomes(clock: Clock, limiter: RateLimiter, n: int, every: int, seconds: float = 1.0) -> None:
    """Send so many requests; one in ``every`` is refused, none when it is 0. Then so many seconds pass."""
    together = n if n <= 60 else 30
    for _ in range(n // together):
        for ticket in tickets(clock, limiter, *[0] * together):
            refuse(limiter, ticket) if every and ticket.number % every == 0 else limiter.answered({}, ticket)
    clock.now += seconds


def test_too_many_refusals_lower_the_rate_to_what_was_accepted():
    clock, limiter = limiter_of()
    outcomes(clock, limiter, 60, every=3)
    assert requests_per_minute(limiter) == pytest.approx(0.9 * 60 * 60 * 2 / 3, rel=0.05)  # 60 went in a second


def test_a_lower_rate_that_helps_stays_and_grows_with_time():
    clock, limiter = limiter_of()
    outcomes(clock, limiter, 60, every=3)
    clock.now += 1.0
    outcomes(clock, limiter, 30, every=0, seconds=0.0)
    slow = requests_per_minute(limiter)
    assert slow is not None
    rates = []
    for _ in range(5):
        clock.now += 1.0
        rates.append(requests_per_minute(limiter) / slow)
    assert rates == sorted(rates)
    assert rates[0] < 1.15
    assert rates[-1] > 4


def test_when_all_are_refused_single_requests_try():
    clock, limiter = limiter_of()
    for ticket in tickets(clock, limiter, *[0] * 12):
        refuse(limiter, ticket)
    moments = []
    for _ in range(7):
        (ticket,) = tickets(clock, limiter, 0)
        moments.append(ticket.sent_at)
        refuse(limiter, ticket)
    assert [b - a for a, b in zip([0.0, *moments], moments, strict=False)] == [1, 2, 4, 8, 16, 16, 16]
    (ticket,) = tickets(clock, limiter, 0)
    limiter.answered({}, ticket)
    assert 10 <= requests_per_minute(limiter) <= 60
    clock.now += 600
    assert len(set(admitted(clock, limiter, *[0] * 5))) == 5


# Waits that a refusal names


def test_a_named_wait_holds_all_requests():
    clock, limiter = limiter_of()
    first, second = tickets(clock, limiter, 0, 0)
    limiter.answered({}, first)
    refuse(limiter, second, 5.0)
    assert admitted(clock, limiter, 0, 0, 0) == [5.0, 5.0, 5.0]


# Headers


@given(st.integers(1, 600), st.integers(50, 5000) | st.none(), st.lists(st.integers(0, 400), min_size=1, max_size=40))
def test_no_minute_ever_holds_more_than_allowed(requests, tokens, sizes):
    times = admitted(*limiter_of(requests, tokens), *sizes)
    assert times == sorted(times)
    for start in times:
        inside = [size for moment, size in zip(times, sizes, strict=True) if start <= moment < start + 60 - 1e-6]
        assert len(inside) <= requests
        assert tokens is None or sum(inside) <= max(tokens, inside[0] if len(inside) == 1 else tokens)


# Breaker


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "pairscale")
    return lambda: [record.getMessage() for record in caplog.records]


def breaker_of(**more) -> tuple[Clock, Breaker]:
    clock = Clock()
    return clock, Breaker("openai", **({"failures": 3, "wait": 5.0, "clock": clock, "sleep": clock.sleep} | more))


def test_it_opens_after_failures_in_a_row_and_says_so_once(said):
    clock, breaker = breaker_of()
    breaker.failed("a")
    breaker.failed("b")
    breaker.answered()
    breaker.failed("c")
    breaker.failed("d")
    assert not breaker.is_open
    for _ in range(50):  # all that were under way
        breaker.failed("HTTP 503")
    assert breaker.is_open
    assert said() == ["openai does not answer (HTTP 503); trying again in 5 s"]
    assert asyncio.run(clock.run(breaker.admit())) == [True]
    assert clock.now == 5.0


def test_one_at_a_time_tries_and_the_waits_double_up_to_a_minute(said):
    clock, breaker = breaker_of(failures=1)
    breaker.failed("down")
    tries = []

    async def ask() -> None:
        while True:
            tried = await breaker.admit()
            assert tried
            tries.append(clock.now)
            if len(tries) == 7:
                breaker.answered()
                return
            breaker.failed("down", tried, heard=True)

    asyncio.run(clock.run(ask()))
    assert [round(b - a) for a, b in zip([0, *tries], tries, strict=False)] == [5, 10, 20, 40, 60, 60, 60]
    assert said()[-1] == "openai answers again"
    assert len(said()) == 8


@pytest.mark.parametrize(
    ("heard", "waits", "words"),
    [
        (True, [5, 10, 20, 40] + 14 * [60], "does not answer (HTTP 503), for 15 minutes now; try again later"),
        (False, [5, 10, 20], "has never answered (HTTP 503); is there a network, and is the address right?"),
    ],
)
def test_it_gives_up_in_the_end(heard, waits, words):
    """After a quarter of an hour of waiting, and sooner when nobody was ever heard of."""
    clock, breaker = breaker_of(failures=1)
    assert breaker.failed("HTTP 503", heard=heard) is None
    tries = []

    async def ask() -> str:
        while True:
            tried = await breaker.admit()
            tries.append(clock.now)
            if (said := breaker.failed("HTTP 503", tried, heard=heard)) is not None:
                return said

    assert asyncio.run(clock.run(ask())) == [words]
    assert [round(b - a) for a, b in zip([0, *tries], tries, strict=False)] == waits
    assert sum(waits) >= 900 or not heard
    start = clock.now  # whoever asks all the same finds out at once, also that it is back
    assert asyncio.run(clock.run(ask())) == [words if not heard else words.replace("15", "16")]
    assert asyncio.run(clock.run(breaker.admit())) == [True]
    assert clock.now == start
    breaker.answered()
    assert not breaker.is_open
