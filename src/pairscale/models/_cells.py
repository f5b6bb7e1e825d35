"""Which parameters the Bayesian model has, and the outcomes that it is fitted to, counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from pairscale.core.arrays import Floats, Ints
from pairscale.pairing.edges import count_cells

__all__ = ["Cells", "JudgeParameters", "count_outcomes"]


@dataclass(frozen=True, slots=True)
class JudgeParameters:
    """Which parameters the judge has, and what is known of the abilities beforehand.

    Attributes:
        lapse: ``eps ~ Beta(2, 20)``.
        position: ``b ~ N(0, 0.3)``.
        prior_sd: of the abilities; None when it is learned, ``tau ~ half-normal(2.5)``.
        known: per item, what is known of it beforehand, with mean 0 and variance 1; None when there is nothing. The
            abilities then spread around ``slope * known``, with ``slope ~ N(0, 1)``.
    """

    lapse: bool
    position: bool
    prior_sd: float | None = 1.0
    known: tuple[float, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The judge's parameters, in the order of the rows behind the abilities."""
        present = (
            ("u", self.lapse), ("b", self.position), ("t", self.prior_sd is None), ("g", self.known is not None),
        )  # fmt: skip
        return tuple(name for name, there in present if there)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Outcomes counted: who beat whom, standing where, how often.

    Attributes:
        winner: index of the winner.
        loser: index of the loser.
        sign: +1 when the winner stood first, -1 when second.
        times: how often; a tie is half a win for each, and a repeat may count less than once.
        n_items: how many items there are.
    """

    winner: Ints
    loser: Ints
    sign: Floats
    times: Floats
    n_items: int


def count_outcomes(
    first: Ints, second: Ints, first_won: pl.Series, n_items: int, *, position: bool, times: Ints | None = None
) -> Cells:
    """Count outcomes; without a position effect, where the winner stood does not matter.

    Args:
        first: per comparison, the item shown first.
        second: per comparison, the item shown second.
        first_won: whether the first won; null is a tie, which counts as half a win for each.
        n_items: how many items there are.
        position: whether the model has a position effect.
        times: how often each comparison stands there; once by default.
    """
    tied = first_won.is_null().to_numpy()
    won = first_won.fill_null(value=True).to_numpy()
    if not tied.any():
        return _counted(first, second, won, n_items, position=position, times=times)
    # Everything twice: a tie is a win of each, once; then halved.
    again = np.where(tied, ~won, won)
    one, two = np.tile(first, 2), np.tile(second, 2)
    both = None if times is None else np.tile(times, 2)
    cells = _counted(one, two, np.concatenate([won, again]), n_items, position=position, times=both)
    return replace(cells, times=cells.times / 2)


def _counted(
    first: Ints, second: Ints, won: npt.NDArray[np.bool_], n_items: int, *, position: bool, times: Ints | None
) -> Cells:
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    place = won.astype(np.int64) if position else np.ones_like(winner)
    coded, lost, often = count_cells(winner * 2 + place, loser, n_items, times)
    return Cells(coded // 2, lost, np.where(coded % 2 == 1, 1.0, -1.0), often.astype(np.float64), n_items)
