"""Choose the pair whose answer is expected to tell the most: about all abilities, their ranks, or the top.

Abilities are believed to be jointly normal, with the inverse of the posterior's curvature at its mode as covariance
(Laplace). The model is Bradley–Terry, the prior N(0, s²) for every item. A comparison of
i and j, with::

    m = mean_i - mean_j      v = Var(theta_i - theta_j) = C_ii + C_jj - 2 C_ij

adds the information w to the difference, and so takes ``log(1 + w v)`` from the log-determinant of the covariance. The
pair with the greatest such reduction is chosen (D-optimal); of equal ones, that of the lowest numbers. With a goal, or
with the criterion ``ranks``, what counts is what a comparison takes from the errors that
:mod:`pairscale.adaptive.selection.goal_errors` weighs.

**w before the answer** is the mean of ``p (1 - p)`` over what is believed of the difference, not its value at m: with
few answers m is a guess. From the usual approximation of a logistic curve by a normal one (MacKay 1992)::

    w = k p(k m) (1 - p(k m))      k = 1 / sqrt(1 + pi v / 8)

**The mean** is the mode, moved by the first term that Laplace's method gives for the difference of the two: who has won
all of three comparisons is likely to be better than at the mode, and deserves stronger opponents. With ``t`` the third
derivative of the log-likelihood along each answered difference and v its variance, it is half of C times the sum of
``t v (e_i - e_j)``.

**An answer** is taken in at once, as if what was believed before were exactly normal: the difference has its new mode
at x, the mean moves along, and the covariance loses a matrix of rank one (Sherman–Morrison) of weight ``p(x) (1 -
p(x))``. Every N/4 answers (N/2 beyond 500 items) everything is solved again by Newton's method.

**s is learned**: each such solution moves it towards the highest point of the marginal likelihood of the answers (of
its Laplace approximation, which sees that the curvature at the mode changes with s; MacKay's simpler fixed point, which
does not, was found at half the truth) times a wide prior, log s ~ N(log 1.5, 0.5²), within 0.5 to 5.

**A pair in flight** counts with its w until its answer is there, so that those chosen beside it look elsewhere.

**Cost.** Up to 100 items all pairs are scored in every step. Beyond, only all pairs of some items are: of those whose
best pair promised most when it was last looked at (lazy greedy: with more answers the promise of a pair only falls, or
nearly so, as expectations move a little; items just answered about are looked at again in any case). Rank-one matrices
are collected and added to the covariance many at a time, which is the cheaper way round for large ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from pairscale.adaptive.selection.goal_errors import ErrorWeights, rank_errors, top_errors
from pairscale.adaptive.selectors import Choice, Selector, allowed_partners
from pairscale.models.prior_mode import prior_mode, signed_sums

if TYPE_CHECKING:
    from pairscale.adaptive.selection.ledger import Ledger
    from pairscale.core.arrays import Floats, Ints

SD_START, SD_LOW, SD_HIGH = 1.5, 0.5, 5.0
"""The standard deviation of the prior: at first, and within what bounds it is learned."""

SD_SPREAD = 0.5
"""How far log s is believed to be from that of the first one."""

PAIRS_SCORED = 5_000
"""About so many pairs are scored in a step."""

ROWS_SCORED = 8
"""The pairs of at least so many items, however many there are."""

RANKED = 500
"""Up to so many items errors of ranks can count; of more, looking at all pairs in every step would take too long."""

_TIE = 1 - 1e-9  # scores that differ by rounding only are equal, so that other machines choose the same pair
_COLLECTED = 32  # matrices of rank one that are added at once
_LONGEST = 0.4  # change of log s at a time


def expected_information(m: Floats, v: Floats) -> Floats:
    """The mean of p (1 - p) over a difference of abilities that is normal with mean m and variance v."""
    k = 1 / np.sqrt(1 + (math.pi / 8) * v)
    odds = np.exp(-np.abs(m) * k)
    information: Floats = k * odds / np.square(1 + odds)
    return information


class InformationSelector(Selector):
    """Chooses the pair with the greatest expected reduction of the posterior log-determinant; see the module.

    Attributes:
        belief: what is believed of the abilities.
    """

    def __init__(self) -> None:
        self.belief = Laplace()
        self._promise: Floats = np.zeros(0)  # per item, w v of its best pair when last looked at
        self._upper: tuple[Ints, Ints] = np.triu_indices(0)
        self._since = 0  # answers since everything was last solved

    def choose(self, ledger: Ledger, max_obs: int, rng: np.random.Generator) -> Choice | None:  # noqa: ARG002
        """The next pair, or None when no pair is allowed. The random numbers are left alone."""
        self._fit(ledger)
        if self._since >= _answers_between(ledger.n):
            self.belief.solve()
            self._since = 0
            self._look_at_all()
        self.belief.settle()
        return self._of_all(ledger, max_obs) if self._scores_all() else self._of_promising(ledger, max_obs)

    def opened(self, ledger: Ledger, a: int, b: int) -> None:
        """A pair is being asked: what it is expected to tell counts from now on."""
        self._fit(ledger)
        self.belief.open(a, b)

    def committed(self, ledger: Ledger, a: int, b: int, y: float) -> None:
        """A valid answer is taken in."""
        self._fit(ledger)
        self.belief.answer(a, b, y)
        self._promise[[a, b]] = np.inf
        self._since += 1

    def dropped(self, ledger: Ledger, a: int, b: int) -> None:
        """What the pair was expected to tell no longer counts."""
        self._fit(ledger)
        self.belief.drop(a, b)
        self._promise[[a, b]] = np.inf

    def joined(self, ledger: Ledger) -> None:
        """More items came in: nothing but the prior is known of them."""
        self._fit(ledger)

    def _fit(self, ledger: Ledger) -> None:
        self.belief.discount = ledger.discount
        more = ledger.n - self.belief.n
        if more:
            self.belief.join(more)
            self._promise = np.concatenate([self._promise, np.full(more, np.inf)])
            if self._scores_all():
                self._upper = np.triu_indices(ledger.n, 1)

    def _of_all(self, ledger: Ledger, max_obs: int) -> Choice | None:
        i, j = self._upper
        belief, spread = self.belief, self.belief.covariance
        v = spread.variance[i]
        v += spread.variance[j]
        v -= 2 * spread.whole()[i, j]
        w = expected_information(belief.mean[i] - belief.mean[j], v)
        counted = self._counted(ledger)
        gain = v * w if counted is None else w / (1 + w * v) * counted.of_pairs(spread.whole())[i, j]
        if ledger.discount:
            gain *= np.where(ledger.seen[i, j] > 0, 1 - ledger.discount, 1.0)
        allowed = ~ledger.closed[i, j] & (ledger.seen[i, j] < max_obs)
        if ledger.set_aside.any():
            allowed &= ~(ledger.set_aside[i] | ledger.set_aside[j])
        candidates = int(np.count_nonzero(allowed))
        if not candidates:
            return None
        gain[~allowed] = -1.0
        at = int(np.argmax(gain >= gain.max() * _TIE))
        return Choice(int(i[at]), int(j[at]), candidates)

    def _of_promising(self, ledger: Ledger, max_obs: int) -> Choice | None:
        counted = self._counted(ledger)
        # What counts changes with every answer, so that nothing can be promised from one step to the next.
        spread = self.belief.covariance
        promise = self._promise if counted is None else counted.weights * np.square(spread.variance)
        order = np.argsort(-promise, kind="stable")
        order = order[~ledger.set_aside[order]]
        size = max(ROWS_SCORED, PAIRS_SCORED // ledger.n)
        for begin in range(0, len(order), size):
            rows = np.sort(order[begin : begin + size])
            allowed = np.stack([allowed_partners(ledger, int(row), max_obs) for row in rows])
            gain = np.where(allowed, self._gains(rows, counted), -1.0)
            if ledger.discount:
                gain *= np.where(allowed & (ledger.seen[rows] > 0), 1 - ledger.discount, 1.0)
            best = gain.max(axis=1)
            self._promise[rows] = best
            candidates = int(np.count_nonzero(allowed))
            if candidates:
                row, j = divmod(int(np.argmax(gain >= best.max() * _TIE)), ledger.n)
                i = int(rows[row])
                return Choice(min(i, j), max(i, j), candidates)
        return None

    def _look_at_all(self) -> None:
        """What every item's best pair promises, allowed or not: none is overlooked then, at worst looked at in vain."""
        n, size = self.belief.n, max(ROWS_SCORED, PAIRS_SCORED // self.belief.n)
        if not self._scores_all():
            for begin in range(0, n, size):
                rows = np.arange(begin, min(n, begin + size))
                self._promise[rows] = self._gains(rows).max(axis=1)

    def _scores_all(self) -> bool:
        return self.belief.n * (self.belief.n - 1) // 2 <= PAIRS_SCORED

    def _counted(self, ledger: Ledger) -> ErrorWeights | None:
        """How much errors of the abilities count; None when what counts is the determinant."""
        belief = self.belief
        if ledger.top is not None:
            return top_errors(belief.mean, belief.covariance.whole(), ledger.top, ~ledger.withdrawn)
        by_ranks = ledger.counts_ranks and ledger.n <= RANKED
        return rank_errors(belief.mean, belief.covariance.whole()) if by_ranks else None

    def _gains(self, rows: Ints, counted: ErrorWeights | None = None) -> Floats:
        """Per item of these and any other item, what a comparison is worth: w v, or what errors count."""
        belief, spread = self.belief, self.belief.covariance
        v = spread.variance[rows, None] + spread.variance - 2 * spread.rows(rows)
        np.maximum(v, 0.0, out=v)  # with itself, up to rounding
        gains: Floats = expected_information(belief.mean[rows, None] - belief.mean, v)
        if counted is None:
            gains *= v
            return gains
        gains /= 1 + gains * v
        gains *= np.maximum(counted.of_pairs(spread.whole(), rows), 0.0)
        return gains


class Laplace:
    """What is believed of the abilities: a normal distribution, kept up to date answer by answer.

    Attributes:
        n: how many items there are.
        mean: per item, the expected ability.
        mode: per item, its likeliest ability when everything was last solved.
        covariance: of the abilities; with what pairs in flight are expected to tell, as far as they are settled.
        sd: the standard deviation of the prior.
        discount: a pair with n answers counts as ``1 + (n - 1)(1 - discount)`` of them.
    """

    def __init__(self) -> None:
        self.n = 0
        self.discount = 0.0
        self.sd = SD_START
        self.mean: Floats = np.zeros(0)
        self.mode: Floats = np.zeros(0)
        self.covariance = UpdatedCovariance(np.zeros((0, 0)))
        self._next_sd = SD_START
        self._waiting: list[tuple[int, int]] = []  # in flight, and not yet in the covariance
        self._open: dict[tuple[int, int], float] = {}  # in flight, with the weight that is in the covariance
        self._answers: dict[tuple[int, int], list[float]] = {}  # by pair, how many, and how many the lower number won

    def join(self, more: int) -> None:
        """More items, of which nothing but the prior is known."""
        size = self.n + more
        grown = np.zeros((size, size))
        grown[: self.n, : self.n] = self.covariance.whole()
        grown[range(self.n, size), range(self.n, size)] = self.sd**2
        self.covariance = UpdatedCovariance(grown)
        self.mean, self.mode = (np.concatenate([values, np.zeros(more)]) for values in (self.mean, self.mode))
        self.n = size

    def open(self, a: int, b: int) -> None:
        """A pair is in flight. Its weight is added when it is needed: often the answer is there before that."""
        self._waiting.append(_key(a, b))

    def settle(self) -> None:
        """Add what pairs in flight are expected to tell, as far as it is not yet in."""
        for a, b in self._waiting:
            column = self.covariance.difference(a, b)
            v = float(column[a] - column[b])
            weight = float(expected_information(np.asarray(self.mean[a] - self.mean[b]), np.asarray(v)))
            weight *= self._share(a, b)
            self._open[a, b] = weight
            self.covariance.add(column, v, weight)
        self._waiting.clear()

    def drop(self, a: int, b: int) -> None:
        """A pair in flight came back without an answer: its weight is taken out again."""
        weight = self._taken_out(_key(a, b))
        if weight:
            column = self.covariance.difference(a, b)
            self.covariance.add(column, float(column[a] - column[b]), -weight)

    def answer(self, a: int, b: int, y: float) -> None:
        """Take in that a was compared with b, and won when y is 1; 0.5 is a tie, half a win for each."""
        share = self._share(a, b)
        self._count(a, b, y)
        weight = self._taken_out(_key(a, b))
        column = self.covariance.difference(a, b)
        v = float(column[a] - column[b])
        # Taking the weight out and putting the answer in is one change of the difference, so it is one of rank one.
        before = float(self.mean[a] - self.mean[b])
        alone = v / (1 - weight * v)
        after, information = _mode(before, share * alone, y)
        information *= share
        left = alone / (1 + alone * information)
        after += left**2 * information * math.tanh(after / 2) / 2  # 2 p - 1 is the hyperbolic tangent of half of it
        self.mean += column * ((after - before) / v)
        self.covariance.add(column, v, information - weight)

    def _share(self, a: int, b: int) -> float:
        """What the next answer on a pair counts: 1, or less when it has one."""
        return 1.0 if not self.discount or _key(a, b) not in self._answers else 1 - self.discount

    def _taken_out(self, key: tuple[int, int]) -> float:
        if key in self._waiting:
            self._waiting.remove(key)
            return 0.0
        return self._open.pop(key, 0.0)

    def _count(self, a: int, b: int, y: float) -> None:
        answers = self._answers.setdefault(_key(a, b), [0.0, 0.0])
        answers[0] += 1
        answers[1] += y if a < b else 1 - y

    def solve(self) -> None:
        """Find the mode and its curvature from all answers, and what they say of s."""
        i, j = np.array(list(self._answers), dtype=np.int64).reshape(-1, 2).T
        times, won = np.array(list(self._answers.values()), dtype=np.float64).reshape(-1, 2).T
        if self.discount:
            counted = 1 + (times - 1) * (1 - self.discount)
            times, won = counted, won * counted / times
        self.sd = self._next_sd
        found = prior_mode(i, j, times, won, prior=self.sd**-2, start=self.mean)
        mode, p = found.theta, found.p
        inverse, _ = lapack.dpotri(found.factor, lower=1, overwrite_c=1)
        inverse += np.tril(inverse, -1).T
        self.mode, self.covariance = mode, UpdatedCovariance(np.ascontiguousarray(inverse))
        variance = self.covariance.variance
        skew = times * p * (1 - p) * (1 - 2 * p) * (variance[i] + variance[j] - 2 * self.covariance.whole()[i, j])
        moved = self.covariance.whole() @ np.column_stack([signed_sums(i, j, skew, self.n), mode])
        self.mean = mode - moved[:, 0] / 2
        self._next_sd = self._better_sd(float(skew @ (moved[i, 1] - moved[j, 1])))
        self._waiting[:0] = self._open
        self._open.clear()

    def _better_sd(self, bent: float) -> float:
        """An s of higher marginal likelihood, by a step along its slope.

        Args:
            bent: how much the log-determinant of the curvature changes with log s because the mode moves, in units of
                2 / s².
        """
        prior = self.sd**-2
        told = self.n - prior * float(self.covariance.variance.sum())  # how many abilities' worth the answers tell
        log_sd = math.log(self.sd)
        slope = prior * float(self.mode @ self.mode) - told - prior * bent
        slope -= (log_sd - math.log(SD_START)) / SD_SPREAD**2
        step = slope / (2 * told**2 / self.n + SD_SPREAD**-2)
        return min(SD_HIGH, max(SD_LOW, math.exp(log_sd + min(_LONGEST, max(-_LONGEST, step)))))


class UpdatedCovariance:
    """A covariance that changes by matrices of rank one, which are collected and added many at a time.

    Attributes:
        variance: its diagonal, always up to date.
    """

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix
        self.variance: Floats = np.diag(matrix).copy()
        self._columns = np.zeros((_COLLECTED, len(matrix)))
        self._factors = np.zeros(_COLLECTED)
        self._collected = 0

    def difference(self, a: int, b: int) -> Floats:
        """The covariance of every ability with that of a less that of b."""
        columns = self._columns[: self._collected]
        shares = self._factors[: self._collected] * (columns[:, a] - columns[:, b])
        column: Floats = self._matrix[a] - self._matrix[b] + shares @ columns
        return column

    def rows(self, rows: Ints) -> Floats:
        """Some rows."""
        columns = self._columns[: self._collected]
        part: Floats = self._matrix[rows] + (columns[:, rows].T * self._factors[: self._collected]) @ columns
        return part

    def whole(self) -> Floats:
        """The matrix."""
        if self._collected:
            columns = self._columns[: self._collected]
            self._matrix += (columns.T * self._factors[: self._collected]) @ columns
            self._collected = 0
        return self._matrix

    def add(self, column: Floats, v: float, weight: float) -> None:
        """Add information of this weight on a difference of variance v, with this :meth:`difference`."""
        factor = -weight / (1 + weight * v)
        self._columns[self._collected] = column
        self._factors[self._collected] = factor
        self._collected += 1
        self.variance += factor * np.square(column)
        if self._collected == _COLLECTED:
            self.whole()


def _answers_between(n: int) -> int:
    """How many answers are taken in one by one before everything is solved again, which takes time of the order n³."""
    return max(5, n // 4) if n <= 500 else n // 2


def _key(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _mode(m: float, v: float, y: float) -> tuple[float, float]:
    """The mode of a difference believed to be N(m, v) after one answer, and the information of the answer there."""
    sign = 1.0 if y else -1.0
    # Seen from the winner, the mode solves x = m + v (1 - p(x)); both sides of it are known. After a tie, half a win
    # for each, it solves x = m + v (1/2 - p(x)), and is nearer to 0 than m was.
    start, short = sign * m, 0.5 if y == 0.5 else 0.0
    low, high = (min(0.0, start), max(0.0, start)) if short else (start, start + v)
    x = start + v * (_logistic(-start) - short) / (1 + v * _logistic(start) * _logistic(-start))
    for _ in range(100):
        lost = _logistic(-x)
        off = x - start - v * (lost - short)
        if off > 0:
            high = x
        else:
            low = x
        step = off / (1 + v * lost * (1 - lost))
        x = x - step if low <= x - step <= high else (low + high) / 2
        if abs(step) < 1e-12 * (1 + abs(x)):
            break
    lost = _logistic(-x)
    return sign * x, lost * (1 - lost)


def _logistic(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    odds = math.exp(x)
    return odds / (1 + odds)
