"""How fast to ask and when to wait, by a clock of our own: schedules that can be computed by hand."""

import asyncio
import collections
import heapq
import logging
import math
import random
from collections import deque
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.errors import InputError
from pairscale.providers.base import LLMRequest
from pairscale.providers.client import LLMClient, ProviderError
from pairscale.providers.limits import Breaker, Pace, retry_after
from pairscale.providers.registry import provider_named


class Clock:
    """Time that passes only when everybody waits; whoever waits for the shortest goes on first."""

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


def pace_of(*limits, **more) -> tuple[Clock, Pace]:
    clock = Clock()
    return clock, Pace(*limits, clock=clock, sleep=clock.sleep, **more)


def admitted(clock: Clock, pace: Pace, *tokens: int) -> list[float]:
    """When each of so many requests may go, asked for all at once."""
    return asyncio.run(clock.run(*(pace.admit(each) for each in tokens)))


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


@given(st.text(max_size=40) | st.from_regex(r"\w{3}, \d{1,3} \w{3} \d{1,5} [\d:]{1,9} [+-]?\d{0,12}"))
def test_retry_after_takes_whatever_a_server_sends(text):
    for name in ("Retry-After", "retry-after-ms"):
        found = retry_after({name: text})
        assert found is None or 0 <= found <= 300


# Pace


def test_without_limits_everything_passes():
    assert admitted(*pace_of(), *[10] * 100) == [0.0] * 100


@pytest.mark.parametrize("limits", [(0,), (-1,), (None, 0), ("many",), (-2.5,), (True,), (math.nan,)])
def test_limits_must_be_above_zero(limits):
    with pytest.raises(InputError, match="_per_minute must be a number above 0, not "):
        Pace(*limits)


def test_requests_are_spread_over_the_minute():
    assert admitted(*pace_of(30), *[0] * 5) == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_no_window_of_a_minute_has_more_requests_than_allowed():
    times = admitted(*pace_of(12), *[0] * 40)
    assert times == [pytest.approx(5.0 * n) for n in range(40)]
    assert all(later - earlier >= 60 - 1e-9 for earlier, later in zip(times, times[12:], strict=False))


def test_a_pace_below_one_a_minute():
    assert admitted(*pace_of(0.5), 0, 0, 0) == [0.0, 120.0, 240.0]


def test_tokens_wait_until_the_window_has_room():
    # 100 a minute: 60 and 40 go at once; 50 more must wait until the first 60 are a minute old, and then fit.
    assert admitted(*pace_of(None, 100), 60, 40, 50) == [0.0, 0.0, 60.0]


def test_a_request_larger_than_the_limit_goes_alone():
    assert admitted(*pace_of(None, 100), 500, 10) == [0.0, 60.0]


def test_a_refusal_halves_the_pace_and_holds_everybody():
    clock, pace = pace_of()
    sent = admitted(clock, pace, *[0] * 60)
    clock.now = 30.0  # sixty in half a minute: 120 a minute
    pace.refused(5.0, sent[0])
    assert pace.requests_per_minute == 60.0
    assert admitted(clock, pace, 0, 0, 0) == [35.0, 36.0, 37.0]


def test_refusals_of_requests_that_were_under_way_together_count_once():
    clock, pace = pace_of()
    sent = admitted(clock, pace, *[0] * 64)
    clock.now = 1.0
    for moment in sent:
        pace.refused(0.0, moment)
    assert pace.requests_per_minute == 64 * 60 / 2
    clock.now = 2.0
    later = admitted(clock, pace, 0)
    clock.now = 3.0
    pace.refused(0.0, later[0])  # this one went at the new rate, which is on trial
    assert pace.requests_per_minute == 64 * 60 / 2


def test_a_single_refusal_of_a_slow_run_does_not_stop_it():
    clock, pace = pace_of()
    sent = admitted(clock, pace, 0)
    pace.refused(0.0, sent[0])
    assert pace.requests_per_minute == 30.0  # one in the least time that is looked at, a second, halved
    for _ in range(60):  # nothing is accepted: slower and slower, but no slower than this
        sent = admitted(clock, pace, 0)
        pace.refused(0.0, sent[0])
    assert pace.requests_per_minute == 10.0


def test_a_limit_of_the_user_below_the_floor_stays():
    clock, pace = pace_of(3)
    sent = admitted(clock, pace, 0)
    pace.refused(0.0, sent[0])
    assert pace.requests_per_minute == 3


def test_the_pace_recovers_by_a_tenth_per_second_up_to_the_limit():
    clock, pace = pace_of(100)
    sent = admitted(clock, pace, *[0] * 10)
    pace.refused(0.0, sent[-1])
    assert pace.requests_per_minute == 50.0
    clock.now += 1.0
    for _ in range(9):  # however many answers
        pace.answered({})
    assert pace.requests_per_minute == pytest.approx(55.0)
    clock.now += 10.0
    pace.answered({})
    assert pace.requests_per_minute == 100


def test_without_a_limit_the_pace_is_free_again_in_the_end():
    clock, pace = pace_of()
    pace.refused(0.0, admitted(clock, pace, 0)[0])
    for _ in range(20):
        clock.now += 10.0
        pace.answered({})
    assert pace.requests_per_minute is None


def answers_of(n: int, refuses, seed: int) -> tuple[float, int]:
    """Seconds and requests that so many answers take, 8 open at once, a tenth of a second each."""
    clock, rng = Clock(), random.Random(seed)

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    pace = Pace(clock=clock, sleep=sleep)

    async def main() -> tuple[float, int]:
        under_way: list[tuple[float, float, bool]] = []
        answered = requests = 0
        while answered < n and requests < 20 * n:
            if len(under_way) == 8:
                under_way.sort()
                done, sent, refused = under_way.pop(0)
                clock.now = max(clock.now, done)
                if refused:
                    pace.refused(0.0, sent)
                else:
                    pace.answered({}, sent)
                    answered += 1
            sent = await pace.admit()
            under_way.append((sent + 0.1, sent, refuses(sent, rng)))
            requests += 1
        return clock.now, requests

    return asyncio.run(main())


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5])
@pytest.mark.parametrize("seed", [21, 22, 23])
def test_a_share_that_is_refused_whatever_the_rate_costs_little_time(share, seed):
    seconds, requests = answers_of(1000, lambda _sent, rng: rng.random() < share, seed)
    assert seconds <= 2 * requests * 0.1 / 8 + 15


@pytest.mark.parametrize("per_second", [10, 25])
def test_a_true_limit_is_met_with_few_refusals(per_second):
    accepted: deque[float] = deque()

    def refuses(sent, _rng):
        while accepted and accepted[0] <= sent - 1:
            accepted.popleft()
        if len(accepted) >= per_second:
            return True
        accepted.append(sent)
        return False

    seconds, requests = answers_of(40 * per_second, refuses, 5)
    assert 40 * per_second / seconds >= 0.75 * per_second
    assert requests <= 1.3 * 40 * per_second


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "250ms"}, 0.25),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 300.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "12"}, 12.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "later"}, 0.0),
        ({"x-ratelimit-remaining-requests": "17", "x-ratelimit-reset-requests": "1m"}, 0.0),
        ({"x-ratelimit-remaining-requests": "0"}, 0.0),
    ],
)
def test_rate_limit_headers_of_openai(headers, wait):
    clock, pace = pace_of()
    pace.answered(headers)
    assert admitted(clock, pace, 0) == [pytest.approx(wait)]


def test_rate_limit_headers_of_anthropic():
    clock, pace = pace_of()
    until = (datetime.now(UTC) + timedelta(seconds=40)).isoformat().replace("+00:00", "Z")
    pace.answered({"anthropic-ratelimit-requests-remaining": "3", "anthropic-ratelimit-requests-reset": until})
    assert admitted(clock, pace, 0) == [0.0]
    pace.answered({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": until})
    assert admitted(clock, pace, 0) == [pytest.approx(40, abs=5)]


@given(
    st.integers(1, 600),
    st.integers(50, 5000) | st.none(),
    st.lists(st.integers(0, 400), min_size=1, max_size=40),
)
def test_no_minute_ever_holds_more_than_allowed(requests, tokens, sizes):
    times = admitted(*pace_of(requests, tokens), *sizes)
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


def test_everybody_goes_on_when_it_is_back(said):
    clock, breaker = breaker_of(failures=1)
    breaker.failed("down")
    moments = []

    async def ask() -> None:
        tried = await breaker.admit()
        moments.append((clock.now, tried))
        if tried:
            await clock.sleep(0.5)
            breaker.answered()

    asyncio.run(clock.run(*(ask() for _ in range(20))))
    assert sum(tried for _, tried in moments) == 1
    assert max(moment for moment, _ in moments) <= 6.5
    assert said()[1:] == ["openai answers again"]


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


def test_one_that_answered_once_has_the_long_patience():
    clock, breaker = breaker_of(failures=1)
    breaker.answered()
    assert breaker.failed("cut") is None
    for _ in range(4):
        assert asyncio.run(clock.run(breaker.admit())) == [True]
        assert breaker.failed("cut", tried=True) is None


def test_late_failures_of_the_others_do_not_end_a_try(said):
    clock, breaker = breaker_of(failures=1)
    breaker.failed("down")
    assert asyncio.run(clock.run(breaker.admit())) == [True]
    breaker.failed("an old one")
    breaker.answered()
    assert not breaker.is_open
    assert len(said()) == 2


def test_a_try_that_is_given_up_leaves_room_for_another(said):
    clock, breaker = breaker_of(failures=1)
    breaker.failed("down")
    assert asyncio.run(clock.run(breaker.admit())) == [True]
    breaker.gave_up(True)
    assert asyncio.run(clock.run(breaker.admit())) == [True]


def test_the_wait_begins_anew_after_it_was_back():
    clock, breaker = breaker_of(failures=1)
    for _ in range(2):
        start = clock.now
        breaker.failed("down")
        assert asyncio.run(clock.run(breaker.admit())) == [True]
        assert clock.now - start == 5.0
        breaker.answered()


def test_whoever_is_cancelled_in_the_queue_lets_the_next_one_go():
    clock, pace = pace_of(60)

    async def scene() -> list[float]:
        tasks = [asyncio.ensure_future(pace.admit()) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks[1:3], return_exceptions=True)
        return await clock.run(tasks[0], tasks[3])

    assert asyncio.run(scene()) == [0.0, 1.0]
    assert admitted(clock, pace, 0) == [2.0]  # also from another event loop


# In the body


def quota(delay, kind="type.googleapis.com/google.rpc.RetryInfo"):
    details = [{"@type": "type.googleapis.com/google.rpc.Help"}, {"@type": kind, "retryDelay": delay}, "no object"]
    return {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": details}}


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        (quota("34.07s"), {}, 34.07),
        ([quota("2s")], {}, 2.0),
        (quota("0s"), {}, 0.0),
        (quota("90000s"), {}, 300.0),
        (quota("34s"), {"Retry-After": "3"}, 3.0),
        (quota(7), {}, None),
        (quota("34s", "type.googleapis.com/google.rpc.ErrorInfo"), {}, None),
        ({"error": {"message": "no details", "details": "none"}}, {}, None),
        ("no JSON", {}, None),
    ],
)
def test_gemini_says_in_the_body_how_long_to_wait(body, headers, seconds):
    client = LLMClient(provider_named("gemini"), api_key="none-at-all")
    assert client.refused(429, headers, body).retry_after == (None if seconds is None else pytest.approx(seconds))


def test_the_pace_keeps_to_what_the_body_says():
    """A real 429 of Gemini, over HTTP: the next request of the same client waits as long as its body asks."""
    from aiohttp import web

    waits, asked = [], []

    async def answer(request):
        asked.append(request.path)
        return web.json_response(quota("21s"), status=429)

    async def scene():
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        pace = Pace(clock=lambda: 1000.0 + sum(waits), sleep=waited)
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        client = LLMClient(provider_named("gemini"), api_key="none-at-all", base_url=address, pace=pace)
        for _ in range(2):
            with pytest.raises(ProviderError) as raised:
                await client.complete(LLMRequest(model="gemini-2.5-flash", prompt="x"))
            assert (raised.value.code, raised.value.retry_after) == ("rate_limited", 21.0)
        await client.aclose()
        await runner.cleanup()

    async def waited(seconds):
        waits.append(seconds)

    asyncio.run(scene())
    assert len(asked) == 2
    assert sum(waits) == pytest.approx(21.0)


def test_anthropics_filter_is_a_filter():
    body = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
    }
    client = LLMClient(provider_named("anthropic"), api_key="none-at-all")
    error = client.refused(400, {}, body)
    assert (error.code, error.failure) == ("content_filter", "question")


# Rare refusals


def paced(n: int, refuses) -> tuple[float, int]:
    """The seconds that so many answers take, one request behind the other, and how many were refused on the way.

    ``refuses`` says how long to wait, or None for an answer.
    """
    now, refused = 0.0, 0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def scene() -> None:
        nonlocal now, refused
        pace, answers = Pace(clock=lambda: now, sleep=sleep), 0
        while answers < n:
            sent = await pace.admit()
            now += 0.001
            if (wait := refuses(now)) is not None:
                refused += 1
                pace.refused(wait, sent)
            else:
                answers += 1
                pace.answered({})

    asyncio.run(scene())
    return now, refused


@pytest.mark.parametrize("share", [0.005, 0.01, 0.02, 0.04])
def test_a_few_refusals_whatever_the_pace_do_not_bring_it_down(share):
    """Once, one in a hundred brought it down to 150 requests a minute: 4,000 took half an hour."""
    rng = random.Random(1)
    seconds, refused = paced(4000, lambda _: 0.0 if rng.random() < share else None)
    assert refused > 4000 * share / 2
    assert seconds < 150  # 4 without any; once 27 minutes and more


@pytest.mark.parametrize("limit", [10, 100, 300])
def test_a_true_limit_is_kept_to(limit):
    """So many requests in any ten seconds: nearly as many are answered, and few are refused."""
    answered = collections.deque()

    def refuses(now: float) -> float | None:
        while answered and answered[0] <= now - 10:
            answered.popleft()
        if len(answered) >= limit:
            return answered[0] + 10 - now
        answered.append(now)
        return None

    seconds, refused = paced(20 * limit, refuses)
    assert 189 < seconds < 270  # 190 at the limit: the first of them go at once
    assert refused <= 0.12 * 20 * limit
