"""How fast to ask, and when to wait: a pace that learns from the provider, and a breaker for when it is down."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pairscale.notices import notice
from pairscale.options import optional, require_number

__all__ = ["Breaker", "Pace", "duration", "longest_wait", "retry_after"]

_MINUTE = 60.0
_LONGEST = 300.0
_RARE = 0.2  # the share of refusals below which they are rare
_OUTCOMES = 20  # so many of the last ones make that share
_TRIAL, _REMEMBERED = 16, 100  # outcomes of a trial; and of what came before it, at most
_NO_CHANCE, _SETTLING = 3, 1.0  # refusals in a trial that are no accident; seconds that it does not look at
_HOPELESS = 0.6  # a share of refusals at which asking at full speed makes no sense
_PATIENCE, _TRIES = 900.0, 3  # seconds to wait for a provider; tries for one that was never heard of
_SLOWEST, _FASTEST = 10.0, 100_000.0  # requests a minute: refusals alone bring it no lower; above, there is no limit


def retry_after(headers: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """The seconds that a reply asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date."""
    for name, factor in (("retry-after-ms", 1e-3), ("Retry-After", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return longest_wait(float(text) * factor)
        except ValueError:
            pass
        try:
            until = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            continue
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return longest_wait((until - now()).total_seconds())
    return None


def longest_wait(seconds: float) -> float:
    """The seconds to wait when a provider asks for so many: at least none, and at most five minutes."""
    return min(_LONGEST, max(0.0, seconds))


class Pace:
    """So many requests and tokens per minute, and no more.

    Without limits of the user's it lets everything pass until the provider says otherwise: by its rate-limit headers,
    or by refusing (429). A refusal halves the rate, once for all requests that were under way together; the rate then
    grows with time. Unless the refusal says how long to wait, a trial finds out whether slowing down helps. If the
    share of refusals does not fall as that of a limit would, the provider refuses a share of requests whatever the rate
    is: all requests go at once again, and such refusals count for nothing for a minute.

    Args:
        requests_per_minute: at most so many.
        tokens_per_minute: at most so many, as they are estimated beforehand.
        clock: seconds that never go back.
        sleep: waits.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        requests_per_minute = optional(require_number, requests_per_minute, "requests_per_minute", above=0)
        tokens_per_minute = optional(require_number, tokens_per_minute, "tokens_per_minute", above=0)
        self._most_requests = requests_per_minute
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._clock, self._sleep = clock, sleep
        self._sent: deque[tuple[float, int]] = deque()
        self._tokens_sent = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._last = -math.inf
        self._not_before = self._slowed = self._free_until = -math.inf
        self._grown_at, self._share = -math.inf, 0.0
        self._before, self._trial = (
            [0, 0],
            [0, 0],
        )  # refusals and outcomes of requests before and since the rate was halved
        self._is_trial, self._growth = False, 1.1

    @property
    def requests_per_minute(self) -> float | None:
        """The pace now; None when there is no limit."""
        return self._requests

    async def admit(self, tokens: int = 0) -> float:
        """Wait until a request of so many tokens may go, one behind the other; the moment when it does."""
        if self._line or self._wait(tokens) > 0:
            await self._queue(tokens)
        self._last = self._clock()
        self._sent.append((self._last, tokens))
        self._tokens_sent += tokens
        return self._last

    async def _queue(self, tokens: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            if self._line[0] is not turn:
                await turn
            while (wait := self._wait(tokens)) > 0:
                await self._sleep(wait)
        finally:
            self._line.remove(turn)
            if self._line and not self._line[0].done():
                self._line[0].set_result(None)

    def _wait(self, tokens: int) -> float:
        now = self._clock()
        while self._sent and self._sent[0][0] + _MINUTE <= now:
            self._tokens_sent -= self._sent.popleft()[1]
        wait = self._not_before - now
        if self._sent:
            oldest = self._sent[0][0] + _MINUTE - now
            if self._most_requests is not None and len(self._sent) + 1 > self._most_requests:
                wait = max(wait, oldest)
            if self._tokens is not None and self._tokens_sent + tokens > self._tokens:
                wait = max(wait, oldest)
        if self._requests is not None:  # spread them, so that a minute does not begin with all of its requests
            wait = max(wait, self._last + _MINUTE / self._requests - now)
        return wait

    def refused(self, wait: float | None, sent: float | None = None) -> None:
        """The provider said that this is too fast (429).

        Args:
            wait: the seconds that it asks to wait, if it does.
            sent: when the request went. One that went before the rate was last halved says nothing new.
        """
        now = self._clock()
        self._share += (1 - self._share) / _OUTCOMES
        self._count(sent, refused=True)
        if now < self._free_until and not wait:
            return
        self._not_before = max(self._not_before, now + (wait if wait is not None else 1.0))
        if self._is_trial or (sent is not None and sent <= self._slowed):
            return
        slowed_before, self._slowed = self._slowed > -math.inf, now
        self._grown_at = now
        slowest = _SLOWEST if self._most_requests is None else min(_SLOWEST, self._most_requests)
        if self._requests is not None and slowed_before and self._share < _RARE:
            self._requests = max(slowest, 0.95 * self._requests)
            return
        recent = [at for at, _ in self._sent if at > now - _MINUTE]
        lasted = max(1.0, now - recent[0]) if recent else _MINUTE
        pace = len(recent) / lasted * _MINUTE  # what it really was: a limit may be far above it
        pace = pace if self._requests is None else min(pace, self._requests)
        self._requests = max(slowest, pace / 2)
        # A provider that says how long to wait has a limit, which is not tried again soon.
        self._is_trial, self._trial, self._growth = not wait, [0, 0], 1.006 if wait else 1.1

    def answered(self, headers: Mapping[str, str], sent: float | None = None) -> None:
        """An answer came: what its headers say of the limits, and a higher rate as time passes."""
        self._learn(headers)
        self._share -= self._share / _OUTCOMES
        self._count(sent, refused=False)
        if self._requests is None or self._requests == self._most_requests:
            return
        now = self._clock()
        passed, self._grown_at = now - self._grown_at, now
        faster = self._requests * self._growth ** min(passed, _MINUTE)
        if self._most_requests is not None:
            self._requests = min(faster, self._most_requests)
        else:
            self._requests = faster if faster < _FASTEST else None

    def _count(self, sent: float | None, *, refused: bool) -> None:
        """Count an outcome, and end a trial that has enough of them."""
        if self._is_trial and sent is not None and self._slowed < sent <= self._slowed + _SETTLING:
            return  # a limit looks back: what went before the rate was halved still counts there
        counts = self._before if sent is None or sent <= self._slowed or not self._is_trial else self._trial
        counts[0] += refused
        counts[1] += 1
        if counts is self._before and counts[1] > _REMEMBERED:
            self._before = [counts[0] // 2, counts[1] // 2]
        if not self._is_trial or self._trial[1] < _TRIAL:
            return
        self._is_trial = False
        before, after = ((one[0] + 0.5) / (one[1] + 1) for one in (self._before, self._trial))
        by_limit = max(0.0, 2 * before - 1)  # what a limit would refuse of half as many requests
        self._before = self._trial
        if (by_limit + before) / 2 < after < _HOPELESS and self._trial[0] >= _NO_CHANCE:
            self._requests, self._free_until = self._most_requests, self._clock() + _MINUTE
            self._not_before = -math.inf

    def _learn(self, headers: Mapping[str, str]) -> None:
        for remaining, until in _RATE_HEADERS:
            left = headers.get(remaining)
            if left is not None and left.strip() == "0" and (reset := headers.get(until)) is not None:
                self._not_before = max(self._not_before, self._clock() + longest_wait(duration(reset)))


_RATE_HEADERS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
)
"""What is left, and until when: as OpenAI and its like say it, and as Anthropic does."""

_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def duration(text: str) -> float:
    """``1m30s``, ``250ms``, ``12`` or a moment in ISO 8601, in seconds from now."""
    if parts := _PARTS.findall(text):
        return sum(float(number) * {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}[unit] for number, unit in parts)
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


class Breaker:
    """Stops asking a provider that is down, says so, tries again after a while, and says when it is back.

    It gives up after a quarter of an hour of waiting; and after three tries when the provider was never heard of, so
    that it is more likely that the network or the address is wrong.

    Args:
        name: the provider's.
        failures: so many failures in a row open it.
        wait: seconds before the first try; doubled each time, up to a minute.
        clock: seconds that never go back.
        sleep: waits.
    """

    def __init__(
        self,
        name: str,
        *,
        failures: int = 10,
        wait: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._name, self._failures, self._first_wait = name, failures, wait
        self._clock, self._sleep = clock, sleep
        self._in_row, self._wait, self._until = 0, wait, 0.0
        self._tries, self._waited = 0, 0.0
        self._trying = self._heard = False

    @property
    def is_open(self) -> bool:
        """Whether the provider counts as down."""
        return self._in_row >= self._failures

    async def admit(self) -> bool:
        """Wait while the provider is down; one at a time may try whether it is back.

        Returns:
            Whether this request is such a try. Whoever is admitted tells how it went, and this with it.
        """
        while self.is_open:
            now = self._clock()
            if now >= self._until and not self._trying:
                self._trying = True
                return True
            await self._sleep(max(0.05, min(1.0, self._until - now)))
        return False

    def failed(self, reason: str, tried: bool = False, *, heard: bool = False) -> str | None:
        """It did not answer.

        Args:
            reason: in words.
            tried: as :meth:`admit` returned it.
            heard: whether there was an answer after all, which said that it cannot answer.

        Returns:
            None; or what to say when it makes no sense to wait any longer.
        """
        was_open = self.is_open
        self._heard |= heard
        self._in_row += 1
        if not self.is_open or (was_open and not tried):
            return None  # not down yet; or down already, and this request had gone before
        self._trying = False
        if was_open:
            self._tries, self._waited = self._tries + 1, self._waited + self._wait
        else:
            self._tries, self._waited = 0, 0.0
        if self._waited >= _PATIENCE or (not self._heard and self._tries >= _TRIES):
            self._until = self._clock()  # whoever asks all the same need not wait again
            if self._heard:
                return f"does not answer ({reason}), for {self._waited / _MINUTE:.0f} minutes now; try again later"
            return f"has never answered ({reason}); is there a network, and is the address right?"
        self._wait = min(_MINUTE, 2 * self._wait) if was_open else self._first_wait
        self._until = self._clock() + self._wait
        notice(f"{self._name} does not answer ({reason}); trying again in {self._wait:g} s")
        return None

    def answered(self) -> None:
        """It did, whatever it said."""
        if self.is_open:
            notice(f"{self._name} answers again")
        self._trying, self._heard = False, True
        self._in_row = 0

    def gave_up(self, tried: bool = False) -> None:
        """Whoever was admitted no longer waits for the answer: another one may try."""
        if tried:
            self._trying = False
