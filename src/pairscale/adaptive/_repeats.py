"""Pairs that are asked again: how their answers agree, which may be reversed, and what another answer is worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.core.arrays import Ints

if TYPE_CHECKING:
    from pairscale.adaptive.ledger import Ledger

__all__ = [
    "ENOUGH_REPEATS",
    "EXHAUSTED",
    "REVERSE",
    "WORTHLESS",
    "RepeatCounts",
    "all_asked",
    "draw_reversed",
    "has_reversible",
    "reversible",
]

REVERSE = "reverse"
"""The stage of a step that asks an earlier pair again in the other order."""

EXHAUSTED = "pairs_exhausted"
"""The reason of a stop because every pair was asked, and the judge repeats itself."""

WORTHLESS = 0.90
"""From this agreement of repeats on, a pair that was asked is not worth asking again."""

ENOUGH_REPEATS = 30
"""Repeats that there must be before anything is decided on how they agree."""

_FLIP_LEVEL = 0.95
_FEW = 1_000  # pairs that are looked at together
_HALF = 32  # bits of a pair's code that hold its second item


@dataclass(slots=True)
class RepeatCounts:
    """How the judge answers, counted answer by answer: nothing is read again.

    An answer is compared with the last one on the same pair in the other order, and with the last one in the same
    order. A tie and a win neither agree nor contradict each other.

    Attributes:
        n_reversed: answers on a pair that had one in the other order.
        n_flips: of these, with the opposite winner.
        n_same_order: answers on a pair that had one in the same order.
        n_agreeing: of all these, with the same answer.
        points_of_first: comparisons won by the text shown first; a tie is half.
    """

    n_reversed: int = 0
    n_flips: int = 0
    n_same_order: int = 0
    n_agreeing: int = 0
    points_of_first: float = 0.0
    _once: Ints = field(default_factory=lambda: np.empty(1024, dtype=np.int64))  # codes of the pairs with one answer
    _n_once: int = 0  # how many there are
    _place: dict[int, int] = field(default_factory=dict[int, int])  # where a code is among them
    _last: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])  # Y, by first and second

    @property
    def n_repeats(self) -> int:
        """Answers on a pair that had one before, in either order."""
        return self.n_reversed + self.n_same_order

    def committed(self, a: int, b: int, y: float, *, times: int, orders_agree: bool | None) -> None:
        """Take in an answer.

        Args:
            a: the item that stood first.
            b: the other one.
            y: what the first got.
            times: answers on this pair before.
            orders_agree: of a judge that is asked in both orders at once, whether both gave the same answer.
        """
        self.points_of_first += y
        if (other := self._last.get((b, a))) is not None:
            self.n_reversed += 1
            self.n_flips += abs(other + y - 1) == 1
            self.n_agreeing += other + y == 1
        if (same := self._last.get((a, b))) is not None:
            self.n_same_order += 1
            self.n_agreeing += same == y
        if orders_agree is not None:
            self.n_reversed += 1
            self.n_flips += not orders_agree
            self.n_agreeing += orders_agree
        self._last[a, b] = y
        code = (min(a, b) << _HALF) + max(a, b)
        if times == 0:
            if self._n_once == len(self._once):
                self._once = np.concatenate([self._once, np.empty_like(self._once)])
            self._place[code] = self._n_once
            self._once[self._n_once] = code
            self._n_once += 1
        elif (at := self._place.pop(code, None)) is not None:
            self._n_once -= 1
            moved = int(self._once[self._n_once])
            if moved != code:
                self._once[at] = moved
                self._place[moved] = at

    def asked_once(self, begin: int = 0, end: int | None = None) -> tuple[Ints, Ints]:
        """The pairs with one answer, or a part of them, as two arrays of items."""
        codes = self._once[: self._n_once][begin:end]
        return codes >> _HALF, codes & ((1 << _HALF) - 1)

    @property
    def n_once(self) -> int:
        """How many pairs have one answer."""
        return self._n_once

    def columns(self, committed: int) -> dict[str, Any]:
        """The columns of the round log."""
        return {
            "n_reversed": self.n_reversed,
            "n_flips": self.n_flips,
            "n_repeated_same_order": self.n_same_order,
            "n_repeats_agreeing": self.n_agreeing,
            "first_win_rate": self.points_of_first / committed if committed else None,
        }

    def flips_more_than(self, share: float) -> bool:
        """Whether the judge changes its answer with the order in more than this share of pairs, surely enough.

        It does if, after 30 reversed pairs or more, the lower 95 % limit of the share of flips is above it. The limit
        holds over all looks, because every answer is one: a judge whose chance of a flip never exceeds the share is
        paused in at most one of twenty runs, however long they are. The chance of a judge without a preference for a
        position is at most one half, for texts that are equally good.
        """
        if self.n_reversed < ENOUGH_REPEATS or share >= 1:
            return False
        from pairscale.checks.effect import surely_above

        return surely_above(self.n_flips, self.n_reversed, share, _FLIP_LEVEL)


def reversible(ledger: Ledger, begin: int = 0, end: int | None = None) -> tuple[Ints, Ints]:
    """The pairs that were asked once, or a part of them, that may be asked now, as two arrays of items."""
    i, j = ledger.repeats.asked_once(begin, end)
    free = ~(ledger.closed[i, j] | ledger.set_aside[i] | ledger.set_aside[j])
    return i[free], j[free]


def has_reversible(ledger: Ledger) -> bool:
    """Whether there is one; nearly always among the first."""
    return any(len(reversible(ledger, at, at + _FEW)[0]) for at in range(0, ledger.repeats.n_once, _FEW))


def draw_reversed(ledger: Ledger, rng: np.random.Generator) -> tuple[int, int] | None:
    """One of them, all equally likely; None when there is none."""
    i, j = reversible(ledger)
    if not len(i):
        return None
    at = int(rng.integers(len(i)))
    return int(i[at]), int(j[at])


def all_asked(ledger: Ledger) -> bool:
    """Whether every pair of the items that are asked about has an answer, or was given up."""
    there = np.flatnonzero(~ledger.set_aside)
    if ledger.n_unique_pairs + ledger.given_up < len(there) * (len(there) - 1) // 2:
        return False
    unasked = np.triu(ledger.seen == 0, 1)
    unasked[ledger.set_aside] = unasked[:, ledger.set_aside] = False
    return not any((int(i), int(j)) not in ledger.given_up_pairs for i, j in np.argwhere(unasked))
