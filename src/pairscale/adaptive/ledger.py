"""What was asked and answered so far, as arrays: everything that a selector looks at.

Items are numbers from 0, in the order in which they came in. All counts are over committed comparisons (§2.1); pairs
that are being asked right now are counted beside them. Nothing here is computed from the history: each answer changes a
few cells, so a step costs the same at the start and after fifty thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from pairscale.adaptive._repeats import WORTHLESS, RepeatCounts
from pairscale.models import trueskill
from pairscale.pairing.edges import linked_groups

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints

    Flags = npt.NDArray[np.bool_]

__all__ = ["TIE", "Ledger"]

FIRST_ANSWERS = 10
"""A judge that is asked for probabilities and gives none in so many answers gives none."""

TIE = -1
"""A tie in the history, where a win of the first is 1 and one of the second 0."""


class Ledger:
    """The counts and beliefs of a run.

    Attributes:
        n: how many items there are.
        mu: per item, the TrueSkill mean.
        sigma: per item, the TrueSkill standard deviation.
        degree: per item, committed comparisons (``deg`` of the document).
        first: per item, those in which it stood first (``pos_count_A``).
        second: per item, those in which it stood second (``pos_count_B``).
        recent: per item, those among the last ``window`` (``recent_deg``).
        open_degree: per item, comparisons that are being asked right now.
        set_aside: per item, whether it is no longer asked about: the judge never answers, or it was withdrawn.
        withdrawn: per item, whether it was withdrawn.
        seen: per pair (in both orders), committed comparisons (``pair_obs_count``).
        closed: per pair (in both orders), whether it cannot be asked now: in flight, resting or given up.
        committed: how many comparisons are committed.
        n_unique_pairs: how many different pairs are among them.
        repeats: how the answers on pairs that were asked again agree.
        discount: the share of its worth that a pair loses once it has an answer; 0 when repeats are not discounted.
        top: how many texts at the top the run is for; None when it is for the whole order.
        counts_ranks: whether pairs are chosen by the errors of ranks they remove, not by the determinant, where the
            selector is ``information``.
    """

    def __init__(
        self,
        n: int,
        window: int,
        mu: Floats | None = None,
        sigma: Floats | None = None,
    ) -> None:
        self.n = n
        self.mu = np.full(n, trueskill.MU) if mu is None else np.array(mu, dtype=np.float64)
        self.sigma = np.full(n, trueskill.SIGMA) if sigma is None else np.array(sigma, dtype=np.float64)
        self.degree, self.first, self.second, self.recent, self.open_degree = (
            np.zeros(n, dtype=np.int64) for _ in range(5)
        )
        self.set_aside, self.withdrawn = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        self.seen = np.zeros((n, n), dtype=np.uint8)
        self.closed = np.zeros((n, n), dtype=np.bool_)
        np.fill_diagonal(self.closed, True)
        self.committed = 0
        self.n_unique_pairs = 0
        self.repeats = RepeatCounts()
        self.discount = 0.0
        self.top: int | None = None
        self.counts_ranks = False
        self._last_first = np.zeros((n, n), dtype=np.bool_)  # [i, j]: i stood first when the two last met
        self._open_lead = np.zeros(n, dtype=np.int64)  # of those being asked, first less second
        self._window: Ints = np.zeros((window, 2), dtype=np.int64)
        self._resting: set[tuple[int, int]] = set()
        self._given_up: set[tuple[int, int]] = set()
        self._in_order: Counter[tuple[int, int]] = Counter()  # answers, by who stood first
        self._invalid: dict[tuple[int, int], int] = {}
        self._invalid_in_row = np.zeros(n, dtype=np.int64)
        self._log = np.zeros((1024, 3), dtype=np.int32)
        self._probabilities = np.full(1024, np.nan)
        self.judges: list[str] = []
        self._judged_by = np.zeros(1024, dtype=np.int16)

    # What there is

    @property
    def history(self) -> npt.NDArray[np.int32]:
        """The committed comparisons in their order: first, second, 1 when the first won (0 if not, :data:`TIE`)."""
        return self._log[: self.committed]

    @property
    def probabilities(self) -> Floats:
        """Per committed comparison, the probability that the first is better; NaN where none was given."""
        return self._probabilities[: self.committed]

    @property
    def judged_by(self) -> Ints:
        """Per committed comparison, who judged, as a number of ``judges``; 0 where a run has one judge."""
        return np.asarray(self._judged_by[: self.committed], dtype=np.int64)

    @property
    def has_probabilities(self) -> bool:
        """Whether any committed comparison has a probability."""
        there = np.isfinite(self.probabilities)
        return bool(there[:FIRST_ANSWERS].any() or there.any())

    @property
    def min_degree(self) -> int:
        """The fewest comparisons of an item that is still asked about."""
        there = self.degree[~self.set_aside]
        return int(there.min()) if there.size else 0

    @property
    def repeats_are_worthless(self) -> bool:
        """Whether the judge repeats itself so well that a pair with an answer is not asked again."""
        return self.discount >= WORTHLESS

    @property
    def busy(self) -> Ints:
        """Per item, recent comparisons and those being asked: what star caps go by."""
        return self.recent + self.open_degree

    def order(self, i: int, j: int) -> tuple[int, int]:
        """Which of the two stands first (§7.6): the other than last time, else the one that stood second more often."""
        if self.seen[i, j]:
            return (j, i) if self._last_first[i, j] else (i, j)
        lead_i = self.first[i] - self.second[i] + self._open_lead[i]
        lead_j = self.first[j] - self.second[j] + self._open_lead[j]
        if lead_i == lead_j:
            return min(i, j), max(i, j)
        return (i, j) if lead_i < lead_j else (j, i)

    def resting(self, left: Ints, right: Ints) -> Flags:
        """Per item of the left and of the right, whether the two rest, and may be asked again."""
        found = np.zeros((len(left), len(right)), dtype=np.bool_)
        row, column = ({item: at for at, item in enumerate(side.tolist())} for side in (left, right))
        for pair in self._resting:
            for i, j in (pair, pair[::-1]):
                if i in row and j in column:
                    found[row[i], column[j]] = True
        return found

    def apart(self) -> list[int]:
        """The items that no comparison ties to the largest group; withdrawn ones do not count."""
        first, second, _ = self.history.T
        groups = [group[~self.withdrawn[group]] for group in linked_groups(first, second, self.n)]
        _, *others = sorted(groups, key=len, reverse=True)
        return sorted(item for group in others for item in group.tolist())

    def times(self, first: int, second: int) -> int:
        """How often two were asked before: with an answer in this order, and in vain in either."""
        return self._in_order[first, second] + self._invalid.get((min(first, second), max(first, second)), 0)

    # What happens

    def open(self, a: int, b: int) -> None:
        """A pair is being asked: it and its items count as used."""
        self.closed[a, b] = self.closed[b, a] = True
        self._resting.discard((min(a, b), max(a, b)))
        self.open_degree[a] += 1
        self.open_degree[b] += 1
        self._open_lead[a] += 1
        self._open_lead[b] -= 1

    def _answered(self, a: int, b: int) -> None:
        self.closed[a, b] = self.closed[b, a] = False
        self.open_degree[a] -= 1
        self.open_degree[b] -= 1
        self._open_lead[a] -= 1
        self._open_lead[b] += 1

    def commit(
        self,
        a: int,
        b: int,
        y: float,
        *,
        orders_agree: bool | None = None,
        probability: float | None = None,
        judge: str | None = None,
    ) -> None:
        """A valid answer: a stood first, and won when y is 1; 0.5 is a tie."""
        self._answered(a, b)
        self.repeats.committed(a, b, y, times=int(self.seen[a, b]), orders_agree=orders_agree)
        winner, loser = (a, b) if y else (b, a)
        moved = trueskill.update_tie if y == 0.5 else trueskill.update
        after = moved(*map(float, (self.mu[winner], self.sigma[winner], self.mu[loser], self.sigma[loser])))
        self.mu[winner], self.sigma[winner] = after.mu_winner, after.sigma_winner
        self.mu[loser], self.sigma[loser] = after.mu_loser, after.sigma_loser
        self.degree[a] += 1
        self.degree[b] += 1
        self.first[a] += 1
        self.second[b] += 1
        self.n_unique_pairs += not self.seen[a, b]
        if self.seen[a, b] < 255:
            self.seen[a, b] += 1
            self.seen[b, a] += 1
        self._last_first[a, b], self._last_first[b, a] = True, False
        self._invalid_in_row[a] = self._invalid_in_row[b] = 0
        self._remember(a, b)
        if self.committed == len(self._log):
            self._log = np.concatenate([self._log, np.zeros_like(self._log)])
            self._probabilities = np.concatenate([self._probabilities, np.full_like(self._probabilities, np.nan)])
            self._judged_by = np.concatenate([self._judged_by, np.zeros_like(self._judged_by)])
        self._log[self.committed] = a, b, TIE if y == 0.5 else y
        self._probabilities[self.committed] = np.nan if probability is None else probability
        if judge is not None:
            if judge not in self.judges:
                self.judges.append(judge)
            self._judged_by[self.committed] = self.judges.index(judge)
        self._in_order[a, b] += 1
        self.committed += 1

    def _remember(self, a: int, b: int) -> None:
        slot = self.committed % len(self._window)
        if self.committed >= len(self._window):
            self.recent[self._window[slot]] -= 1
        self._window[slot] = a, b
        self.recent[a] += 1
        self.recent[b] += 1

    def reject(self, a: int, b: int, *, is_error: bool, pair_limit: int, item_limit: int) -> list[int]:
        """An answer that is none: the pair rests for the round, or is given up.

        An error (the judge could not be reached) makes the pair rest but counts against no text.

        Returns:
            Items that are set aside from now on.
        """
        self._answered(a, b)
        self.closed[a, b] = self.closed[b, a] = True
        key = (min(a, b), max(a, b))
        if is_error:
            self._resting.add(key)
            return []
        self._invalid[key] = self._invalid.get(key, 0) + 1
        (self._resting if self._invalid[key] < pair_limit else self._given_up).add(key)
        fallen = []
        for item in key:
            self._invalid_in_row[item] += 1
            if self._invalid_in_row[item] >= item_limit and not self.set_aside[item]:
                self.set_aside[item] = True
                fallen.append(item)
        return fallen

    def wake(self) -> None:
        """A new round: pairs that rested may be asked again."""
        for i, j in self._resting:
            self.closed[i, j] = self.closed[j, i] = False
        self._resting.clear()

    @property
    def given_up(self) -> int:
        """How many pairs are not asked any more, because there were too many invalid answers on them."""
        return len(self._given_up)

    @property
    def given_up_pairs(self) -> Set[tuple[int, int]]:
        """Which pairs these are, the lower number first."""
        return self._given_up

    def forgive(self, *, pair_limit: int, item_limit: int) -> None:
        """Other limits on invalid answers: what is below them now may be asked about again, from the next round on."""
        below = {key for key in self._given_up if self._invalid[key] < pair_limit}
        self._given_up -= below
        self._resting |= below
        self.set_aside &= (self._invalid_in_row >= item_limit) | self.withdrawn

    def withdraw(self, items: Sequence[int]) -> None:
        """Items are no longer asked about, whatever their answers were; these stay."""
        self.withdrawn[list(items)] = self.set_aside[list(items)] = True

    def drop(self, a: int, b: int) -> None:
        """A pair that was being asked is not asked any more, and counts as if it had never been."""
        self._answered(a, b)

    def join(
        self,
        more: int,
        window: int,
        mu: Floats | None = None,
        sigma: Floats | None = None,
    ) -> None:
        """More items, numbered behind the others; ``window`` is the new length of what counts as recent."""
        fresh = Ledger(more, 1, mu, sigma)
        for name in (
            "mu", "sigma", "degree", "first", "second", "recent", "open_degree", "set_aside", "withdrawn",
            "_open_lead", "_invalid_in_row",
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), getattr(fresh, name)]))
        for name in ("seen", "closed", "_last_first"):
            old = getattr(self, name)
            grown = np.zeros((self.n + more, self.n + more), dtype=old.dtype)
            grown[: self.n, : self.n] = old
            setattr(self, name, grown)
        self.n += more
        np.fill_diagonal(self.closed, True)
        self.resize_window(window)

    @property
    def window(self) -> int:
        """How many comparisons count as recent."""
        return len(self._window)

    def resize_window(self, window: int) -> None:
        """Another number of comparisons counts as recent: the one time that the history is read again."""
        self._window = np.zeros((window, 2), dtype=np.int64)
        self.recent = np.zeros(self.n, dtype=np.int64)
        for at in range(max(0, self.committed - window), self.committed):
            a, b, _ = self._log[at]
            self._window[at % window] = a, b
            self.recent[a] += 1
            self.recent[b] += 1
