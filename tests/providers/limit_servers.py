"""Servers that refuse requests, in simulated time, and clients that ask them through the real rate limiter.

``python -m tests.providers.limit_servers`` prints the held-out figures of docs/validation.md; with ``tuning``, those of
the servers by which the limiter's constants were chosen.
"""

import asyncio
import math
import random
import selectors
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pairscale.providers.client import pause
from pairscale.providers.limits import RateLimiter, retry_after

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
RETRIES = 3  # how often a run asks again by default


class _NoWaiting(selectors.DefaultSelector):
    """Moves the clock on instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list:
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.now += max(0.0, timeout)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once."""

    def __init__(self) -> None:
        self._clock = _NoWaiting()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


# Rules: each is asked when a request arrives and says how long to wait, or None to accept it.


class TokenBucket:
    """Refills continuously, as the limits of OpenAI and Anthropic do."""

    def __init__(self, per_second: float, burst: float | None = None) -> None:
        self.per_second, self.burst = per_second, max(1.0, per_second if burst is None else burst)
        self.tokens, self.at = self.burst, 0.0

    def refill(self, now: float) -> None:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second)
        self.at = now

    def __call__(self, now: float) -> float | None:
        self.refill(now)
        if self.tokens < 1 - 1e-9:
            return (1 - self.tokens) / self.per_second
        self.tokens -= 1
        return None

    def left(self, now: float) -> tuple[int, float]:
        """Requests that may go now, and the seconds until all of them may."""
        self.refill(now)
        return int(self.tokens + 1e-9), (self.burst - self.tokens) / self.per_second


class FixedWindow:
    """So many requests in each minute of the server's clock."""

    def __init__(self, requests: int, seconds: float = 60.0) -> None:
        self.per_second, self.burst = requests / seconds, float(requests)
        self.requests, self.seconds, self.window, self.used = requests, seconds, 0, 0

    def _turn(self, now: float) -> None:
        if (window := int(now // self.seconds)) != self.window:
            self.window, self.used = window, 0

    def __call__(self, now: float) -> float | None:
        self._turn(now)
        if self.used >= self.requests:
            return (self.window + 1) * self.seconds - now
        self.used += 1
        return None

    def left(self, now: float) -> tuple[int, float]:
        self._turn(now)
        return self.requests - self.used, (self.window + 1) * self.seconds - now


class SlidingWindow:
    """So many requests in any stretch of time; refused ones count, too, when ``strict``."""

    def __init__(self, requests: int, seconds: float = 1.0, *, strict: bool = False) -> None:
        self.per_second, self.burst = requests / seconds, float(requests)
        self.requests, self.seconds, self.strict = requests, seconds, strict
        self.seen: deque[float] = deque()

    def __call__(self, now: float) -> float | None:
        while self.seen and self.seen[0] <= now - self.seconds:
            self.seen.popleft()
        full = len(self.seen) >= self.requests
        wait = self.seen[0] + self.seconds - now if full else None
        if self.strict or not full:
            self.seen.append(now)
            if len(self.seen) > self.requests:
                self.seen.popleft()
        return wait


class Share:
    """Refuses a share of requests, whatever the rate."""

    def __init__(self, share: float, rng: random.Random) -> None:
        self.share, self.rng = share, rng

    def __call__(self, now: float) -> float | None:
        return 1.0 if self.rng.random() < self.share else None


class AnyOf:
    """Refuses what one of its rules refuses; a request that one refuses does not count for the next."""

    def __init__(self, *rules) -> None:
        self.rules = rules

    def __call__(self, now: float) -> float | None:
        return next((wait for rule in self.rules if (wait := rule(now)) is not None), None)


class Change:
    """One rule until a moment, another one after it."""

    def __init__(self, at: float, first, then) -> None:
        self.at, self.first, self.then = at, first, then

    def __call__(self, now: float) -> float | None:
        return (self.first if now < self.at else self.then)(now)


class Concurrent:
    """At most so many requests under way at once."""

    def __init__(self, most: int) -> None:
        self.most, self.open = most, 0

    def __call__(self, now: float) -> float | None:
        return 1.0 if self.open >= self.most else None


Rule = Callable[[float], float | None]


def requests_per_minute(limiter: RateLimiter) -> float | None:
    """The rate now; None when there is no limit."""
    rate = limiter._rate(limiter._clock())
    return None if rate is None else 60 * rate


def headers_of(style: str, rule: Rule, wait: float | None, now: float) -> dict[str, str]:
    """The headers of a reply; ``wait`` is None for an answer."""
    headers = {}
    if wait is not None:
        named = {"zero": "0", "seconds": str(math.ceil(wait)), "anthropic": str(math.ceil(wait))}
        if style in named:
            headers["Retry-After"] = named[style]
        elif style == "ms":
            headers["retry-after-ms"] = str(math.ceil(1000 * wait))
    if style in {"openai", "anthropic"}:
        left, reset = rule.left(now)
        if style == "openai":
            headers["x-ratelimit-remaining-requests"] = str(left)
            headers["x-ratelimit-reset-requests"] = f"{math.ceil(1000 * reset)}ms"
        else:
            until = (EPOCH + timedelta(seconds=math.ceil(now + reset))).isoformat().replace("+00:00", "Z")
            headers["anthropic-ratelimit-requests-remaining"] = str(left)
            headers["anthropic-ratelimit-requests-reset"] = until
    return headers


class NoLimiter:
    """Lets everything pass: what is ideal when the rate changes nothing."""

    async def admit(self, tokens: int = 0) -> None:
        pass

    def refused(self, wait, headers, sent) -> None:
        pass

    def answered(self, headers, sent) -> None:
        pass


@dataclass(frozen=True)
class Outcome:
    """What so many answers took.

    Attributes:
        seconds: in simulated time.
        requests: that the server got.
        lost: questions that a run with the default number of retries would have given up.
        late: answers per second in the second half of the run.
    """

    seconds: float
    requests: int
    lost: int
    late: float


def ask(
    rule: Rule,
    *,
    answers: int = 1000,
    style: str = "none",
    concurrency: int = 8,
    latency: float = 0.1,
    seed: int = 1,
    limited: bool = True,
    most_seconds: float = 36_000.0,
) -> Outcome:
    """Ask until there are so many answers, as a run does it: a refused question waits, and is asked again."""
    rng = random.Random(seed)
    requests = lost = 0
    done: list[float] = []
    questions = iter(range(answers))

    async def client(limiter, clock, jitter: random.Random) -> None:
        nonlocal requests, lost
        for _ in questions:
            attempts = 0
            while clock() < most_seconds:
                sent = await limiter.admit()
                requests += 1
                attempts += 1
                wait = rule(clock())
                headers = headers_of(style, rule, wait, clock())
                if wait is None:
                    rooms = [one for one in getattr(rule, "rules", [rule]) if isinstance(one, Concurrent)]
                    for room in rooms:
                        room.open += 1
                    await asyncio.sleep(latency * rng.uniform(0.5, 1.5))
                    for room in rooms:
                        room.open -= 1
                    limiter.answered(headers, sent)
                    done.append(clock())
                    break
                await asyncio.sleep(latency * rng.uniform(0.1, 0.3))
                named = retry_after(headers)
                limiter.refused(named, headers, sent)
                await asyncio.sleep(pause(named, (attempts - 1) % (RETRIES + 1), jitter))  # as a second run would
            lost += attempts > RETRIES + 1

    async def main() -> float:
        clock = asyncio.get_running_loop().time
        limiter = NoLimiter()
        if limited:
            limiter = RateLimiter(clock=clock, now=lambda: EPOCH + timedelta(seconds=clock()))
        await asyncio.gather(*(client(limiter, clock, random.Random(f"{seed}|{n}")) for n in range(concurrency)))
        return clock()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        seconds = runner.run(main())
    half = len(done) // 2
    late = (len(done) - half) / max(1e-9, done[-1] - done[half - 1]) if half else 0.0
    return Outcome(seconds, requests, lost, late)


@dataclass(frozen=True)
class Case:
    """A server and its clients, and what would be ideal.

    Attributes:
        name: for tables.
        rule: makes the rule from a source of random numbers.
        limit: answers per second in the long run; None when the rate changes nothing.
        burst: answers that come at once before the limit counts.
        more: further arguments of :func:`ask`.
    """

    name: str
    rule: Callable[[random.Random], Rule]
    limit: float | None = None
    burst: float = 0.0
    more: Mapping[str, object] = None

    def measure(self, seed: int, answers: int = 1000) -> tuple[float, float, int, Outcome]:
        """Time as a multiple of the ideal, requests per answer, lost questions, and everything."""
        more = dict(self.more or {})
        answers = more.pop("answers", answers)
        got = ask(self.rule(random.Random(f"{seed}|rule")), answers=answers, seed=seed, **more)
        if self.limit is None:
            free = self.rule(random.Random(f"{seed}|rule"))
            ideal = ask(free, answers=answers, seed=seed, limited=False, **more).seconds
        else:
            ideal = max(1.0, (answers - self.burst) / self.limit)
        return got.seconds / ideal, got.requests / answers, got.lost, got


def _share(share: float, style: str, **more) -> Case:
    return Case(f"share {share:.0%}, {style}", lambda rng: Share(share, rng), more={"style": style, **more})


def _bucket(per_second: float, style: str, burst: float | None = None, **more) -> Case:
    made = TokenBucket(per_second, burst)
    return Case(
        f"bucket {per_second:g}/s, burst {made.burst:g}, {style}",
        lambda _: TokenBucket(per_second, burst),
        per_second,
        made.burst,
        {"style": style, **more},
    )


def _window(requests: int, style: str, seconds: float = 60.0, answers: int = 1000, **more) -> Case:
    return Case(
        f"fixed {requests} per {seconds:g} s, {style}",
        lambda _: FixedWindow(requests, seconds),
        answers / (seconds * ((answers - 1) // requests)),  # the last window need not pass
        0.0,
        {"style": style, "answers": answers, **more},
    )


def _strict(requests: int, style: str, seconds: float, **more) -> Case:
    return Case(
        f"sliding {requests} per {seconds:g} s, refused count, {style}",
        lambda _: SlidingWindow(requests, seconds, strict=True),
        requests / seconds,
        requests,
        {"style": style, **more},
    )


def _concurrent(most: int, style: str, latency: float, **more) -> Case:
    return Case(
        f"{most} at once, {latency:g} s each, {style}",
        lambda _: Concurrent(most),
        most / latency,
        0.0,
        {"style": style, "latency": latency, **more},
    )


def _both(share: float, per_second: float, style: str, **more) -> Case:
    return Case(
        f"bucket {per_second:g}/s and share {share:.0%}, {style}",
        lambda rng: AnyOf(Share(share, rng), TokenBucket(per_second)),
        per_second,
        per_second,
        {"style": style, **more},
    )


def _change(first: float, then: float, at: float, style: str, answers: int, **more) -> Case:
    limit = answers / (at + (answers - first * at) / then)
    return Case(
        f"bucket {first:g}/s, after {at:g} s {then:g}/s, {style}",
        lambda _: Change(at, TokenBucket(first), TokenBucket(then)),
        limit,
        0.0,
        {"style": style, "answers": answers, **more},
    )


TUNING = [
    *(_share(share, style) for share in (0.05, 0.1, 0.2, 0.3, 0.5) for style in ("zero", "none", "seconds")),
    _share(0.1, "zero", concurrency=64),
    _share(0.3, "zero", latency=2.0),
    *(_bucket(rate, style, concurrency=64) for rate in (4, 10, 25) for style in ("none", "zero", "seconds", "ms")),
    *(_bucket(4, style, concurrency=64) for style in ("openai", "anthropic")),
    _bucket(10, "none"),
    _bucket(1, "none", 60, concurrency=64, answers=300),
    *(_window(60, style, answers=300) for style in ("none", "zero", "seconds", "anthropic")),
    _window(600, "none", concurrency=64, answers=2000),
    _strict(100, "none", 10, concurrency=64),
    _strict(100, "seconds", 10, concurrency=64),
    _concurrent(8, "none", 0.1, concurrency=64),
    _concurrent(4, "zero", 2.0, concurrency=32, answers=300),
    _both(0.2, 10, "zero", concurrency=32),
    _both(0.2, 10, "none", concurrency=32),
    _change(20, 5, 30, "none", 1000, concurrency=32),
    _change(5, 20, 60, "zero", 2000, concurrency=32),
]

HELD_OUT = [  # chosen before the limiter was measured on any of them
    *(_share(share, style) for share in (0.03, 0.07, 0.15, 0.27, 0.4, 0.6) for style in ("zero", "none", "ms")),
    _share(0.07, "zero", concurrency=100),
    _share(0.24, "zero", latency=3.0, concurrency=16),
    *(_bucket(rate, style, concurrency=100) for rate in (2, 6, 17, 50) for style in ("none", "zero", "seconds", "ms")),
    *(_bucket(rate, style, concurrency=48) for rate in (3, 15) for style in ("openai", "anthropic")),
    _bucket(7, "none", concurrency=12),
    _bucket(0.5, "none", 20, concurrency=16, answers=200),
    _bucket(3, "zero", 180, concurrency=100),
    *(_window(40, style, answers=200) for style in ("none", "zero", "seconds", "openai")),
    _window(1000, "none", concurrency=100, answers=4000),
    _window(50, "none", 10, concurrency=24),
    _strict(40, "none", 5, concurrency=48),
    _strict(90, "seconds", 30, concurrency=48),
    _concurrent(5, "none", 0.3, concurrency=40),
    _concurrent(10, "zero", 4.0, concurrency=100),
    _both(0.12, 6, "zero", concurrency=40),
    _both(0.35, 18, "none", concurrency=40),
    _change(30, 4, 20, "zero", 1000, concurrency=40),
    _change(3, 30, 90, "none", 2000, concurrency=40),
]


def table(cases: list[Case], seeds: tuple[int, ...]) -> list[str]:
    """One row per case, the worst of the seeds."""
    lines = ["| server | time, of the ideal | requests per answer | questions given up |", "| --- | --- | --- | --- |"]
    for case in cases:
        got = [case.measure(seed) for seed in seeds]
        times, requests, lost = ([one[n] for one in got] for n in range(3))
        lines.append(f"| {case.name} | {max(times):.2f} | {max(requests):.2f} | {max(lost)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(TUNING, (1, 2, 3)) if "tuning" in sys.argv else table(HELD_OUT, (101, 102, 103, 104, 105))))
