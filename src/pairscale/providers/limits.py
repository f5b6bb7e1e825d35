"""How fast to ask, and when to wait: a rate limiter that learns from the provider, and a breaker for outages."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeAlias

from pairscale.core.notices import notice
from pairscale.core.options import optional, require_number
from pairscale.core.timelimit import Clock, waiting_for_turn
from pairscale.providers.base import Headers

Sleep: TypeAlias = Callable[[float], Awaitable[Any]]
"""Waits for a number of seconds."""
Now: TypeAlias = Callable[[], datetime]
"""Tells the time of day."""

_MINUTE = 60.0
_LONGEST = 300.0
_SILENT_WAIT_S = 20.0  # longer waits are logged
_WINDOW = 50  # requests that are checked for refusals
_TRIAL = 30  # requests of a trial
_COMPARED = 25  # requests before a trial that it is compared with
_TOLERATED = 0.12  # share of refusals that is no reason to slow down
_TOO_MUCH = 4.0  # refusals beyond that share that are a reason
_SETTLING = 1.0  # seconds after slowing down that a trial ignores: a limit still counts what went before
_NO_CHANCE = 3  # the fewest refusals at the lower rate for which a provider "refuses anyway"
_HOPELESS = 0.75  # the largest share of refusals for which it does
_VALID = 1000  # requests for which the share that is refused anyway is believed
_BELOW = 0.9  # the part of a limit that is used at first
_ALL = 12  # refusals in a row that mean "all"
_LONGEST_PROBE = 16.0  # seconds between single requests then, at most
_SLOWEST = 1 / 6  # requests per second: refusals alone bring the rate no lower
_PATIENCE = 900.0  # seconds to wait for a provider that is down
_TRIES = 3  # tries for a provider that has never answered


def _now() -> datetime:
    return datetime.now(UTC)


def _seconds_until(moment: datetime, now: Now) -> float:
    """How long it is until a moment, which is of UTC unless it says otherwise."""
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - now()).total_seconds()


def retry_after(headers: Headers, now: Now = _now) -> float | None:
    """The seconds that a reply asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date."""
    for name, factor in (("retry-after-ms", 1e-3), ("Retry-After", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        with suppress(ValueError):
            return longest_wait(float(text) * factor)
        with suppress(ValueError, OverflowError):
            return longest_wait(_seconds_until(parsedate_to_datetime(text), now))
    return None


def longest_wait(seconds: float) -> float:
    """The seconds that a provider asks to wait, at least 0 and at most five minutes."""
    return min(_LONGEST, max(0.0, seconds))


class Ticket(NamedTuple):
    """A request that may be sent: its number, from 1, and the moment by the limiter's clock."""

    number: int
    sent_at: float


@dataclass(slots=True)
class _Trial:
    """The requests before the rate was lowered, with which those at the lower rate are compared.

    Attributes:
        limit: The limit before.
        since: When that limit was set.
        rate: Requests per second before.
        first: Number of the request before the first of them.
        last: Number of the last of them.
        refused: How many of them were refused; more outcomes may arrive while the trial runs.
    """

    limit: float | None
    since: float
    rate: float
    first: int
    last: int
    refused: int

    @property
    def requests(self) -> int:
        return self.last - self.first

    @property
    def share(self) -> float:
        return self.refused / self.requests


class RateLimiter:
    """Decides when requests may be sent, by the limits of the user and by what the provider accepts.

    Without limits of the user, all requests are sent at once until the provider refuses (429) clearly more than one in
    eight of the last 50. Then the rate is lowered to what the provider accepted, and the next 30 requests are a trial:

    - **Too fast.** Fewer are refused at the lower rate. The limiter keeps it, and raises it with time: slowly at first,
      faster the longer refusals stay rare.
    - **Refuses anyway.** As large a share is refused at the lower rate. The limiter returns to the rate before, and
      tolerates this share in addition for the next 1,000 requests.
    - **Still too fast.** Anything else: the rate is lowered again.

    When all requests are refused, single requests test after 1, 2, 4, 8 and then every 16 seconds whether the provider
    accepts requests again.

    What the provider says comes first. A refusal that names a wait holds all requests for that time, unless a request
    that was sent later is answered: then the wait concerns the refused request alone. A header that says that nothing
    is left until some moment holds all requests until then; for a minute, if that is more than five minutes away. Every
    wait of more than 20 seconds is logged.

    Args:
        requests_per_minute: Maximum requests per minute.
        tokens_per_minute: Maximum tokens per minute, as estimated before sending.
        clock: Returns seconds that never go back.
        sleep: Waits for a number of seconds.
        now: Returns the time of day, for headers that name a moment.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        now: Now = _now,
    ) -> None:
        self._most_requests = optional(require_number, requests_per_minute, "requests_per_minute", above=0)
        self._most_tokens = optional(require_number, tokens_per_minute, "tokens_per_minute", above=0)
        self._clock = clock
        self._sleep = sleep
        self._now = now
        self._sent: deque[tuple[float, int]] = deque()  # moment and tokens of the requests of the last minute
        self._tokens_sent = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._last = Ticket(0, -math.inf)
        # What the provider says
        self._reset = self._hold = -math.inf  # until when headers, and a named wait, hold all requests
        self._logged_until = -math.inf  # the end of the last wait that was logged
        self._held_by = 0  # number of the request whose refusal named the wait
        self._holds_all = True  # whether that wait concerns all requests
        # What the outcomes showed
        self._limit: float | None = None  # requests per second that the provider accepts
        self._limit_since = -math.inf
        self._anyway = 0.0  # share that is refused at any rate
        self._anyway_until = 0  # number of the last request for which that share is believed
        self._trial: _Trial | None = None
        self._probe_wait = 0.0  # seconds between single requests; 0 while not all are refused
        self._probes_after = 0  # number of the last request before the single ones
        self._answers = 0  # since the last time that all were refused
        self._answers_since = math.inf
        # Outcomes that count
        self._counted_after = 0  # only requests after this number count
        self._settled = -math.inf  # and only those sent after this moment
        self._newest = self._newest_answer = 0  # numbers of the last request with an outcome, and with an answer
        self._refused: deque[int] = deque(maxlen=_WINDOW)  # numbers

    def _rate(self, now: float) -> float | None:
        """Requests per second."""
        most = None if self._most_requests is None else self._most_requests / _MINUTE
        if self._limit is None:
            return most
        passed = 0.0 if self._trial else now - self._limit_since
        unit = min(120.0, max(3.0, 100 / self._limit))  # seconds after which the rate is 2.7 times as high
        rate = _BELOW * self._limit * math.exp(min(10.0, passed / unit) ** 2)
        return rate if most is None else min(rate, most)

    # Sending

    async def admit(self, tokens: int = 0) -> Ticket:
        """Wait until a request of this many tokens may be sent; requests are admitted in the order of the calls."""
        if self._line or self._wait(tokens) > 0:
            with waiting_for_turn():
                await self._queue(tokens)
        self._last = Ticket(self._last.number + 1, self._clock())
        self._sent.append((self._last.sent_at, tokens))
        self._tokens_sent += tokens
        self._answers_since = min(self._answers_since, self._last.sent_at)
        if self._last.sent_at < self._settled:
            self._counted_after = self._last.number
        if self._last.number > self._anyway_until and self._trial is None:
            self._anyway = 0.0
        return self._last

    async def _queue(self, tokens: int) -> None:
        """Wait in line until a request of this many tokens may be sent."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            if self._line[0] is not turn:
                await turn
            while (wait := self._wait(tokens)) > 0:
                if wait > _SILENT_WAIT_S and self._clock() >= self._logged_until:
                    self._logged_until = self._clock() + wait
                    notice(f"waiting {wait:.0f} s for the rate limit")
                await self._sleep(wait)
        finally:
            self._line.remove(turn)
            if self._line and not self._line[0].done():
                self._line[0].set_result(None)

    def _wait(self, tokens: int) -> float:
        """Seconds until a request of this many tokens may be sent; 0 or less for now."""
        now = self._clock()
        while self._sent and self._sent[0][0] + _MINUTE <= now:
            self._tokens_sent -= self._sent.popleft()[1]
        wait = max(self._hold, self._reset) - now
        if self._sent:
            oldest = self._sent[0][0] + _MINUTE - now
            if self._most_requests is not None and len(self._sent) + 1 > self._most_requests:
                wait = max(wait, oldest)
            if self._most_tokens is not None and self._tokens_sent + tokens > self._most_tokens:
                wait = max(wait, oldest)
        rate = self._rate(now)  # requests are spread, so that a minute does not begin with all of its requests
        spread = 0.0 if rate is None else 1 / rate
        return max(wait, self._last.sent_at + max(spread, self._probe_wait) - now)

    # Outcomes

    def refused(self, wait: float | None, headers: Headers, ticket: Ticket) -> None:
        """The provider refused a request as one too many (429).

        Args:
            wait: The seconds that it asks to wait, if it does.
            headers: Of its reply.
            ticket: Of the request.
        """
        now = self._clock()
        number = ticket.number
        if wait is None:  # Retry-After says more: a limit resets when all of it is there again
            self._keep_to(headers, now)
        trial = self._trial
        if trial is not None and trial.first < number <= trial.last:
            trial.refused += 1
            self._lower(trial, now)
        if number > self._counted_after:
            self._newest = max(self._newest, number)
            self._refused.append(number)
        if (
            wait
            and number > self._newest_answer
            and now + wait > self._hold
            and (self._holds_all or self._excess() > 0)
        ):
            self._hold = now + wait
            self._held_by = number
        if self._probe_wait:
            if number > self._probes_after:
                self._probe_wait = min(_LONGEST_PROBE, 2 * self._probe_wait)
        elif self._in_row() >= _ALL + 20 * self._anyway:
            self._probe_wait = 1.0
            self._probes_after = self._last.number
            self._holds_all = True
        elif trial is not None:
            self._check_trial(trial, now)
        elif self._n_counted() >= _TRIAL and self._excess() > _TOO_MUCH + 6 * self._anyway:
            self._slow_down(now)

    def answered(self, headers: Headers, ticket: Ticket) -> None:
        """The provider answered a request, whatever it said.

        Args:
            headers: Of its reply.
            ticket: Of the request.
        """
        now = self._clock()
        number = ticket.number
        self._keep_to(headers, now)
        self._answers += 1
        self._newest_answer = max(self._newest_answer, number)
        if number > self._held_by and self._hold > now:
            self._hold = -math.inf
            self._holds_all = False
        if number > self._counted_after:
            self._newest = max(self._newest, number)
        if self._probe_wait:
            if number > self._probes_after:
                self._end_probes(now)
        elif self._trial is not None:
            self._check_trial(self._trial, now)

    def _keep_to(self, headers: Headers, now: float) -> None:
        """Hold all requests until the reset of a limit of which, by these headers, nothing is left."""
        for remaining, until in _RATE_HEADERS:
            left = headers.get(remaining)
            reset = headers.get(until)
            if left is not None and left.strip() == "0" and reset is not None:
                seconds = duration(reset, self._now)
                if seconds > _LONGEST:
                    seconds = _MINUTE
                if seconds > 0:  # not NaN
                    self._reset = max(self._reset, now + seconds)

    # Requests count by number up to the newest with an outcome, and those without one yet count as answered: refusals
    # arrive sooner than answers, so that the first outcomes of a burst would all be refusals.

    def _n_counted(self) -> int:
        """How many requests count."""
        return min(_WINDOW, max(0, self._newest - self._counted_after))

    def _count_refused(self, requests: int) -> int:
        """How many of the last requests were refused."""
        return sum(self._newest - requests < number <= self._newest for number in self._refused)

    def _excess(self) -> float:
        """How many more were refused than is tolerated."""
        requests = self._n_counted()
        return self._count_refused(requests) - requests * (self._anyway + _TOLERATED)

    def _in_row(self) -> int:
        """How many of the last requests were all refused."""
        refused = set(self._refused)
        row = 0
        while self._newest - row in refused:
            row += 1
        return row

    def _count_from_now(self, settle: float = 0.0) -> None:
        """Forget the outcomes until now, and those of requests that are sent in the next ``settle`` seconds."""
        self._counted_after = self._last.number
        self._settled = self._clock() + settle
        self._refused.clear()

    # Conclusions

    def _slow_down(self, now: float) -> None:
        """Lower the rate to what was accepted, and begin a trial."""
        requests = min(_COMPARED, self._n_counted())
        first = self._newest - requests
        refused = self._count_refused(requests)
        rate = self._sending_rate(now)
        self._trial = _Trial(self._limit, self._limit_since, rate, first, self._newest, refused)
        self._lower(self._trial, now)
        self._count_from_now(_SETTLING)

    def _lower(self, trial: _Trial, now: float) -> None:
        """Set the limit to what was accepted of the rate before the trial."""
        accepted = (1 - trial.share) / (1 - self._anyway)
        self._set_limit(trial.rate * max(1 / 8, min(1.0, accepted)), now)

    def _set_limit(self, limit: float, now: float) -> None:
        self._limit = max(_SLOWEST / _BELOW, limit)
        self._limit_since = now

    def _sending_rate(self, now: float) -> float:
        """Requests per second in the last second, or in a longer time when they were few."""
        recent = 0
        for moment, _ in reversed(self._sent):
            if recent >= _TRIAL and moment <= now - 1:
                break
            recent += 1
        lasted = max(1.0, now - self._sent[-recent][0]) if recent else 1.0
        rate = recent / lasted
        allowed = self._rate(now)
        return rate if allowed is None else min(rate, allowed)

    def _check_trial(self, trial: _Trial, now: float) -> None:
        """End a trial that has enough requests, or that has taken a minute."""
        requests = self._n_counted()
        if requests < _TRIAL and (requests == 0 or now <= self._settled + _MINUTE):
            return
        refused = self._count_refused(requests)
        before = trial.share
        after = refused / requests
        both = (trial.refused + refused) / (trial.requests + requests)
        chance = 2 * math.sqrt(both * (1 - both) * (1 / trial.requests + 1 / requests))
        as_before = abs(after - before) <= chance and after - self._anyway >= 0.4 * (before - self._anyway)
        if as_before and refused >= _NO_CHANCE and after <= _HOPELESS:
            self._limit = trial.limit
            self._limit_since = trial.since
            self._anyway = both
        elif after <= self._anyway + _TOLERATED:
            self._limit_since = now
            self._anyway = after
        else:
            self._slow_down(now)
            return
        self._trial = None
        self._anyway_until = self._last.number + _VALID
        self._count_from_now()

    def _end_probes(self, now: float) -> None:
        """Continue at the rate that was accepted since the last time that all requests were refused."""
        self._set_limit(self._answers / max(1.0, now - self._answers_since) / _BELOW, now)
        self._answers = 0
        self._answers_since = now
        self._probe_wait = 0.0
        self._trial = None
        self._count_from_now(_SETTLING)


_RATE_HEADERS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
)
"""The headers for what is left and until when: those of OpenAI and servers like it, and those of Anthropic."""

_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def duration(text: str, now: Now = _now) -> float:
    """``1m30s``, ``250ms``, ``12`` or a moment in ISO 8601, in seconds from now; NaN when it is none of these."""
    if parts := _PARTS.findall(text):
        return sum(float(number) * {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}[unit] for number, unit in parts)
    with suppress(ValueError):
        seconds = float(text)
        return seconds if math.isnan(seconds) else max(0.0, seconds)
    with suppress(ValueError):
        return max(0.0, _seconds_until(datetime.fromisoformat(text), now))
    return math.nan


class Breaker:
    """Stops asking a provider that is down, tries again after a while, and logs both, and when it is back.

    It gives up after a quarter of an hour of waiting, and after three tries when the provider has never answered: then
    the network or the address is probably wrong.

    Args:
        name: the provider's.
        failures: the number of failures in a row that opens it.
        wait: seconds before the first try; doubled each time, up to a minute.
        clock: seconds that never go back.
        sleep: waits.

    Attributes:
        has_answered: whether the provider has ever answered.
    """

    def __init__(
        self,
        name: str,
        *,
        failures: int = 10,
        wait: float = 5.0,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._name = name
        self._failures = failures
        self._first_wait = wait
        self._clock = clock
        self._sleep = sleep
        self._in_row = 0
        self._wait = wait
        self._until = 0.0
        self._tries = 0
        self._waited = 0.0
        self._trying = False
        self.has_answered = False

    @property
    def is_open(self) -> bool:
        """Whether the provider counts as down."""
        return self._in_row >= self._failures

    async def admit(self) -> bool:
        """Wait while the provider is down; one at a time may try whether it is back.

        Returns:
            Whether this request is that try. The caller reports how the request went, and passes this back.
        """
        if self._in_row < self._failures:  # not open
            return False
        with waiting_for_turn():
            while self.is_open:
                now = self._clock()
                if now >= self._until and not self._trying:
                    self._trying = True
                    return True
                await self._sleep(max(0.05, min(1.0, self._until - now)))
        return False

    def failed(self, reason: str, is_try: bool = False, *, heard: bool = False) -> str | None:
        """Count a request that the provider did not answer.

        Args:
            reason: why, for the message.
            is_try: as :meth:`admit` returned it.
            heard: whether it replied after all, with a status that says that it is down.

        Returns:
            None; or what to say when it makes no sense to wait any longer.
        """
        was_open = self.is_open
        self.has_answered |= heard
        self._in_row += 1
        if not self.is_open or (was_open and not is_try):
            return None  # not down yet; or down already, and this request had gone before
        self._trying = False
        if was_open:
            self._tries += 1
            self._waited += self._wait
        else:
            self._tries = 0
            self._waited = 0.0
        if self._waited >= _PATIENCE or (not self.has_answered and self._tries >= _TRIES):
            self._until = self._clock()  # a later request need not wait again
            if self.has_answered:
                return f"does not answer ({reason}), for {self._waited / _MINUTE:.0f} minutes now; try again later"
            return f"has never answered ({reason}); is there a network, and is the address right?"
        self._wait = min(_MINUTE, 2 * self._wait) if was_open else self._first_wait
        self._until = self._clock() + self._wait
        notice(f"{self._name} does not answer ({reason}); trying again in {self._wait:g} s")
        return None

    def answered(self) -> None:
        """Count a request that the provider answered, whatever it said."""
        if self.is_open:
            notice(f"{self._name} answers again")
        self._trying = False
        self.has_answered = True
        self._in_row = 0

    def gave_up(self, is_try: bool = False) -> None:
        """The admitted request no longer waits for its answer: another one may try."""
        if is_try:
            self._trying = False
