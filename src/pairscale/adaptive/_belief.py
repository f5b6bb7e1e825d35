"""What a refit leaves to the rest of a run: scores, ranks, and how sure the order of two items is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.errors import InputError
from pairscale.models.warm_start import packed, unpacked

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.bayes.posterior import Posterior

__all__ = ["Belief"]

_DRAWS = 256  # enough to tell 0.90 from 0.95, and half a megabyte for a thousand items
_TABLE = 1024  # up to so many items, all pairs are looked at once and kept
_BLOCK = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What a refit leaves to the rest of the run, small enough to be kept with it.

    Attributes:
        refit_id: which refit.
        passed: whether its diagnostics passed. If not, the run continues with the belief that it had.
        near_stop: whether phase 3 has been entered, by this refit or an earlier one; true of a refit that entered it
            and did not pass, too.
        global_identified: whether the order counts as known.
        theta_mean: per item, the EAP.
        theta_sd: per item, the posterior standard deviation.
        rank: per item, its rank by EAP; 1 is the best, equal ones by id.
        draws: up to 256 draws of theta (draws, items) in half precision; None unless the order counts as known,
            since nothing else asks for them.
        repeat_agreement: the excess agreement of repeats, from 0 (each is new evidence) to 1 (none is); 0 when repeats
            count as independent.
    """

    refit_id: int
    passed: bool
    near_stop: bool
    global_identified: bool
    theta_mean: Floats
    theta_sd: Floats
    rank: Ints
    draws: npt.NDArray[np.float16] | None = None
    repeat_agreement: float = 0.0
    _leads: npt.NDArray[np.int16] | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        refit_id: int,
        *,
        passed: bool,
        near_stop: bool,
        global_identified: bool,
        repeat_agreement: float = 0.0,
    ) -> Belief:
        """What draws leave."""
        found = posterior.items
        rank = np.empty(posterior.n_items, dtype=np.int64)
        rank[found.order] = np.arange(1, posterior.n_items + 1)
        draws = _thinned(posterior) if global_identified else None
        return cls(
            refit_id=refit_id,
            passed=passed,
            near_stop=near_stop,
            global_identified=global_identified,
            theta_mean=found.theta_mean,
            theta_sd=found.theta_sd,
            rank=rank,
            repeat_agreement=repeat_agreement,
            draws=draws,
        )

    def p_above(self, i: npt.ArrayLike, j: npt.ArrayLike) -> Floats:
        """The posterior probability that item i is above item j, for arrays of items: the share of draws.

        Equal draws count half, and an item that joined later is above any other with probability 0.5.

        Raises:
            InputError: when the belief has no draws, because the order does not count as known.
        """
        if self.draws is None:
            raise InputError(f"refit {self.refit_id} left no draws: the global order does not count as known")
        i, j = np.broadcast_arrays(np.asarray(i, dtype=np.int64), np.asarray(j, dtype=np.int64))
        known = (i < len(self.rank)) & (j < len(self.rank))
        found = np.full(i.shape, 0.5)
        found[known] = 0.5 + self._lead(self.draws, i[known], j[known]) / (2 * len(self.draws))
        return found

    def _lead(self, draws: npt.NDArray[np.float16], i: Ints, j: Ints) -> Ints:
        """In how many more draws i is above j than below."""
        n = draws.shape[1]
        if n <= _TABLE:
            if self._leads is None:
                above = np.zeros((n, n), dtype=np.int16)
                for draw in draws.astype(np.float32):
                    above += draw[:, None] > draw
                object.__setattr__(self, "_leads", above - above.T)
            assert self._leads is not None  # noqa: S101
            return np.asarray(self._leads[i, j], dtype=np.int64)
        by_item = np.ascontiguousarray(draws.T, dtype=np.float32)
        lead, size = np.empty(len(i), dtype=np.int64), max(1, _BLOCK // len(draws))
        for at in range(0, len(i), size):
            one, two = by_item[i[at : at + size]], by_item[j[at : at + size]]
            lead[at : at + size] = (one > two).sum(axis=1) - (one < two).sum(axis=1)
        return lead

    def to_bytes(self) -> bytes:
        """The belief as bytes; the same belief gives the same bytes."""
        plain = ("refit_id", "passed", "near_stop", "global_identified", "repeat_agreement")
        head = {name: getattr(self, name) for name in plain}
        draws = {} if self.draws is None else {"draws": self.draws}
        return packed(head, theta_mean=self.theta_mean, theta_sd=self.theta_sd, rank=self.rank, **draws)

    @classmethod
    def from_bytes(cls, data: bytes) -> Belief:
        """The way back.

        Raises:
            InputError: when these are not the bytes of a belief.
        """
        head, arrays = unpacked(data, "a belief")
        try:
            return cls(
                refit_id=head["refit_id"],
                passed=head["passed"],
                near_stop=head["near_stop"],
                global_identified=head["global_identified"],
                theta_mean=arrays["theta_mean"],
                theta_sd=arrays["theta_sd"],
                rank=arrays["rank"],
                repeat_agreement=head["repeat_agreement"],
                draws=arrays.get("draws"),
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"these {len(data):,} bytes are not a belief: {error!r}") from None


def _thinned(posterior: Posterior) -> npt.NDArray[np.float16]:
    """Up to 256 draws, spread evenly over the chains and their length."""
    size, chains = min(_DRAWS, posterior.n_draws), posterior.chains
    at = np.arange(size)
    rows = at * (posterior.n_draws // chains) // size * chains + at % chains
    return np.asarray(posterior.theta[rows], dtype=np.float16)
