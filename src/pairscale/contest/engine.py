"""One set of candidates: what the answers show, and which two to ask about next. It knows no judge and no file.

The candidates' strengths have a Bradley-Terry likelihood and a normal prior. The posterior is taken to be normal, with
the mean and covariance at which the *expected* gradient is zero: the mode would lie too near the middle where nearly
all answers agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

_SPREAD = 1.5  # of the strengths beforehand, in logits
_DRAWS = 256  # for choosing a pair
_SURE_DRAWS = 2_048  # for stopping and for the report
_STEPS = 20
_CLOSE = 0.02  # of a step, in logits: far below what one answer changes
_COPIED = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_COPIED_PRIOR = np.array([0.3, 0.1, 0.1, 0.1, 0.4])
_MOST_COPIED = 0.9  # above it, repeats tell nothing
_FAILURES_OF_CANDIDATE = 3
_FAILURES_OF_PAIR = 2


class Contest:
    """One set of candidates, numbered from 0.

    The next pair is drawn by top-two Thompson sampling: two draws from the posterior each name who has a place, and
    where they differ, these two are compared. A repeat of a question counts less the more of the judge's repeats are
    copies of the earlier answer; a judge who always repeats itself is asked about no pair twice.

    Args:
        n: how many candidates.
        places: how many places from the first on matter; 1 for the best alone.
        confidence: how sure the places have to be.
        repeats: whether a pair that is asked again may get another answer; None finds it out.
        seed: of the draws.

    Attributes:
        n: how many candidates.
        mean: their strengths in logits.
        usable: which of them are not set aside.
        is_sure: whether the places were as sure as they have to be when the last pair was looked for.
    """

    def __init__(
        self, n: int, *, places: int = 1, confidence: float = 0.95, repeats: bool | None = None, seed: tuple[int, ...]
    ) -> None:
        self.n = n
        self.mean = np.zeros(n)
        self.usable = np.ones(n, dtype=bool)
        self.is_sure = False
        self._places = min(places, n)
        self._confidence = confidence
        self._covariance: Floats = np.eye(n) * _SPREAD**2
        self._answers = np.zeros((n, n))
        self._won = np.zeros((n, n))  # of these answers, by the candidate of the row
        self._shown = np.zeros((n, n))  # open and answered questions that show the candidate of the row first
        self._failed = np.zeros((n, n))
        self._finds_out = repeats is None
        self._copied: Floats = _COPIED_PRIOR
        if repeats is not None:
            self._copied = (_COPIED == (0 if repeats else 1)).astype(float)
        self._is_fitted = True
        self._rng = np.random.default_rng(seed)

    @property
    def copied(self) -> float:
        """The share of repeats that copy the earlier answer, as far as that is known."""
        return float(_COPIED @ self._copied)

    @property
    def n_answers(self) -> int:
        """How many answers there are."""
        return int(self._answers.sum() / 2)

    # Questions and answers

    def open(self, first: int, second: int) -> None:
        """Count a question that is asked now, or was in an earlier call."""
        self._shown[first, second] += 1

    def release(self, first: int, second: int) -> None:
        """Take back a question that was given up."""
        self._shown[first, second] -= 1

    def record(self, first: int, second: int, share: float) -> None:
        """Take the answer to an open question.

        Args:
            first: the candidate shown first.
            second: the other.
            share: 1 when the first is better, 0 when the second is, or what lies between.
        """
        if self._finds_out and self._answers[first, second]:
            self._learn_copied(first, second, share)
        self._answers[first, second] += 1
        self._answers[second, first] += 1
        self._won[first, second] += share
        self._won[second, first] += 1 - share
        self._is_fitted = False

    def _learn_copied(self, first: int, second: int, share: float) -> None:
        """Update the share of copied answers by a repeat: the same answer may also come by chance."""
        side = np.sign(self._won[first, second] / self._answers[first, second] - 0.5)
        by_chance = 1 / (1 + np.exp(-side * (self.mean[first] - self.mean[second])))
        likelihood = 1 - _COPIED
        if side == np.sign(share - 0.5):
            likelihood = _COPIED + (1 - _COPIED) * by_chance
        weight = self._copied * likelihood
        self._copied = weight / weight.sum()

    def fail(self, first: int, second: int) -> list[int]:
        """Record that an open question got no answer; returns who is set aside for it: those who never got one."""
        self.release(first, second)
        self._failed[first, second] += 1
        self._failed[second, first] += 1
        failed = self._failed.sum(axis=1)
        unanswered = self._answers.sum(axis=1) == 0
        most = max(failed[first], failed[second], _FAILURES_OF_CANDIDATE)
        aside = [
            candidate
            for candidate in (first, second)
            if unanswered[candidate] and self.usable[candidate] and failed[candidate] == most
        ]
        self.usable[aside] = False
        return aside

    def next_pair(self) -> tuple[int, int] | None:
        """The two to ask about next, in the order to show them; None when the places are sure or nothing would help."""
        if not self.usable.any():
            return None
        shares = self._place_shares(_DRAWS)
        self.is_sure = self._is_enough(shares) and self._is_enough(self._place_shares(_SURE_DRAWS))
        if self.is_sure:
            return None
        gain = self._gains()
        weight = (shares.T @ shares) * gain
        reached = weight.cumsum()
        if reached[-1] > 0:
            cell = int(np.searchsorted(reached, self._rng.random() * reached[-1], side="right"))
        else:  # all pairs of contenders are asked; answers about their nearest neighbours help, too
            of_contender = (gain > 0) & (shares.max(axis=0) > 0)[:, None]
            if not of_contender.any():
                return None
            distance = np.abs(self.mean[:, None] - self.mean)
            cell = int(np.where(of_contender, distance, np.inf).argmin())
        first, second = divmod(cell, self.n)
        if self._shown[first, second] > self._shown[second, first]:
            return second, first
        return first, second

    def _is_enough(self, shares: Floats) -> bool:
        return bool(shares.max(axis=1).mean() >= self._confidence)

    def _gains(self) -> Floats:
        """What another question about each two is worth, in independent answers."""
        asked = self._shown + self._shown.T
        gain = _worth(asked + 1, self.copied) - _worth(asked, self.copied)
        if self.copied > _MOST_COPIED:
            gain[asked > 0] = 0.0
        gain[self._failed >= _FAILURES_OF_PAIR] = 0.0
        gain[~self.usable] = 0.0
        gain[:, ~self.usable] = 0.0
        np.fill_diagonal(gain, 0.0)
        return gain

    # What the answers say

    def shares(self) -> Floats:
        """How probable it is that a candidate has a place: a row per place, a column per candidate."""
        return self._place_shares(_SURE_DRAWS)

    def scores(self) -> Floats:
        """How many of 100 comparisons with the other candidates each is expected to win."""
        self._fit()
        wins: Floats = self._expected()[0].sum(axis=1) - 0.5  # against itself
        return 100 * wins / max(self.n - 1, 1)

    def _place_shares(self, draws: int) -> Floats:
        self._fit()
        noise = self._rng.standard_normal((draws, self.n), dtype=np.float32)  # half the work, and exact enough
        strengths = noise @ np.linalg.cholesky(self._covariance).T.astype(np.float32) + self.mean
        strengths[:, ~self.usable] = -np.inf
        if self._places == 1:
            return np.bincount(strengths.argmax(axis=1), minlength=self.n)[None, :] / draws
        cells = np.argsort(-strengths, axis=1)[:, : self._places] + self.n * np.arange(self._places)
        counts = np.bincount(cells.ravel(), minlength=self.n * self._places).reshape(self._places, self.n)
        return counts / draws

    def _expected(self) -> tuple[Floats, Floats]:
        """How probable each candidate of a row is to beat that of a column, and the slopes of these logits."""
        variance = np.diag(self._covariance)
        slope = 1 / np.sqrt(1 + (np.pi / 8) * (variance[:, None] + variance - 2 * self._covariance))
        return 1 / (1 + np.exp(-slope * (self.mean[:, None] - self.mean))), slope

    def _fit(self) -> None:
        """Bring the posterior up to date."""
        if self._is_fitted:
            return
        self._is_fitted = True
        answers = _worth(self._answers, self.copied)
        won = (self._won * answers / np.maximum(self._answers, 1)).sum(axis=1)
        for _ in range(_STEPS):
            expected, slope = self._expected()
            precision = -answers * expected * (1 - expected) * slope
            np.fill_diagonal(precision, 0.0)
            np.fill_diagonal(precision, 1 / _SPREAD**2 - precision.sum(axis=1))
            self._covariance = np.linalg.inv(precision).astype(np.float64)
            step = self._covariance @ (won - (answers * expected).sum(axis=1) - self.mean / _SPREAD**2)
            longest = float(np.abs(step).max())
            self.mean = self.mean + step / max(longest, 1.0)
            if longest < _CLOSE:
                break


def _worth(asked: Floats, copied: float) -> Floats:
    """How many independent answers some answers to one question are worth."""
    return asked / (1 + np.maximum(asked - 1, 0) * copied)
