"""What may be spent: money is set aside before a question is asked, and given back when its answer tells the price."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairscale.judges.base import Verdict

__all__ = ["Promise", "Purse", "TooDear"]

_ROUNDING = 1 + 1e-9  # ten times ten cents are a dollar


class TooDear(Exception):  # noqa: N818 - it says that the money is spent, not that something went wrong
    """The next question might cost more than is left."""


@dataclass(slots=True, eq=False)
class Promise:
    """Money that is set aside for a question.

    Attributes:
        who: the judge or variant that is asked.
        most: what they say that it may cost; None when they do not say.
    """

    who: str
    most: float | None


@dataclass(slots=True)
class Purse:
    """What may be spent, and what is.

    Attributes:
        limit: US dollars; None for any number of them.
        spent: so far, by this call.
    """

    limit: float | None = None
    spent: float = 0.0
    _open: list[Promise] = field(default_factory=list[Promise])
    _dearest: dict[str, float] = field(default_factory=dict[str, float])
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def promise(self, who: str, most: float | None) -> Promise:
        """Set aside what a question may cost: as much as the dearest to the same one, or as they say beforehand.

        What is open may turn out to cost less, and is waited for before the money is said to be spent. While nobody
        knows what somebody's answers cost, one question is asked at a time, to learn it.

        Args:
            who: the judge or variant that is asked.
            most: what they say that it may cost; None when they do not say.

        Returns:
            The promise, for :meth:`pay` or :meth:`settle`.

        Raises:
            TooDear: when that is more than is left.
        """
        promise = Promise(who, most)
        if self.limit is not None:
            while self._open and (self._is_too_much(promise) or self._has_to_learn(promise)):
                self._settled.clear()
                await self._settled.wait()
            if self._is_too_much(promise):
                raise TooDear
        self._open.append(promise)
        return promise

    def pay(self, promise: Promise, verdict: Verdict | None) -> None:
        """Pay for a judge's verdict; None when the question was broken off."""
        if verdict is None:
            self.settle(promise, None, tells=False)
        else:
            known = verdict.cost is not None or verdict.outcome.is_answer
            self.settle(promise, verdict.cost, tells=known and not verdict.cached)

    def settle(self, promise: Promise, cost: float | None, *, tells: bool = True) -> None:
        """Pay, and give back what was set aside.

        Args:
            promise: of :meth:`promise`.
            cost: what the answer did cost; None when it does not say.
            tells: whether others may be taken to cost as much: not after an error, nor for an answer from the cache.
        """
        self._open.remove(promise)
        self.spent += cost or 0.0
        if tells:
            self._dearest[promise.who] = max(self._dearest.get(promise.who, 0.0), cost or 0.0)
        self._settled.set()

    def _is_too_much(self, promise: Promise) -> bool:
        owed = sum(map(self._may_cost, (*self._open, promise)))
        return self.limit is not None and self.spent + owed > self.limit * _ROUNDING

    def _may_cost(self, promise: Promise) -> float:
        return max(self._dearest.get(promise.who, 0.0), promise.most or 0.0)

    def _has_to_learn(self, promise: Promise) -> bool:
        """Whether nobody knows what it may cost, and another question is about to tell."""
        return self._is_blind(promise) and any(map(self._is_blind, self._open))

    def _is_blind(self, promise: Promise) -> bool:
        return promise.most is None and promise.who not in self._dearest
