"""One budget for several workers: each is granted a part of what is left, and gives back what it does not spend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pairscale.core.errors import InputError
from pairscale.runtime.budget import Budget, BudgetExceeded, Reservation
from pairscale.store.workers import Grant

__all__ = ["SharedBudget"]

_ROUNDING = 1 + 1e-9
_WAIT_S = 0.5
_AHEAD = 8  # further questions that money is asked for at once


async def _no_grant(_least: float, _most: float) -> Grant:
    raise InputError("a shared budget needs somebody who grants")


@dataclass(slots=True)
class SharedBudget(Budget):
    """The budget of one worker.

    The database knows what every worker has spent and may spend. A question is asked when its highest cost is covered
    by what this worker was granted, so that all workers together keep to the limit. Where a judge does not say what a
    question may cost, each worker asks one at a time until it knows.

    Attributes:
        grant: asks for money: between so much and so much, what this worker has spent included.
        granted: US dollars that this worker may spend, what it has spent included.
        mine: US dollars that this worker has spent.
    """

    grant: Callable[[float, float], Awaitable[Grant]] = _no_grant
    granted: float = 0.0
    mine: float = 0.0
    _negotiation: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reserve(self, who: str, most: float | None, *, is_variant: bool = False) -> Reservation:
        """Reserve what a question may cost; see :meth:`Budget.reserve`."""
        reservation = Reservation(who, most, is_variant)
        if self.limit is not None:
            async with self._negotiation:
                await self._cover(reservation)
                self._open.append(reservation)
        else:
            self._open.append(reservation)
        return reservation

    async def _cover(self, reservation: Reservation) -> None:
        """Wait until what is granted covers the question, too.

        Raises:
            BudgetExceeded: nothing is left, and no other worker has anything to give back.
        """
        is_free = self._is_free(reservation)
        while not is_free:
            if self._open and self._must_learn(reservation):
                await self._settling()
                continue
            cost = self._may_cost(reservation)
            need = self.mine + sum(map(self._may_cost, self._open)) + cost
            if need <= self.granted * _ROUNDING and cost > 0:
                return
            found = await self.grant(need, need + _AHEAD * cost)
            self.granted, self.spent = found.granted, max(found.spent, self.mine)
            if need <= found.granted * _ROUNDING and found.spent * _ROUNDING < (self.limit or 0.0):
                return
            if self._open:
                await self._settling()
            elif found.is_held:
                self.granted = (await self.grant(self.mine, self.mine)).granted
                await asyncio.sleep(_WAIT_S)
            else:
                raise BudgetExceeded

    async def give_back(self) -> None:
        """Let other workers have what this one does not need now."""
        if self.limit is not None and not self._open and self.granted > self.mine:
            async with self._negotiation:
                if not self._open:
                    self.granted = (await self.grant(self.mine, self.mine)).granted

    async def _settling(self) -> None:
        """Wait until a question is settled, or for a moment: another worker may have given something back."""
        self._settled.clear()
        try:
            await asyncio.wait_for(self._settled.wait(), _WAIT_S)
        except TimeoutError:
            return

    def settle(self, reservation: Reservation, cost: float | None, *, known: bool = True) -> None:
        """Count a cost and release the reservation; see :meth:`Budget.settle`."""
        self.mine += cost or 0.0
        Budget.settle(self, reservation, cost, known=known)
