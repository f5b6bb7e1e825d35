"""Choose the pair whose answer is expected to tell the most: about all abilities, their ranks, or the top.

Abilities are believed to be jointly normal, with the inverse of the posterior's curvature at its mode as covariance
(Laplace). The model is Bradley–Terry, the prior N(0, s²) for every item. A comparison of
i and j, with::

    m = mean_i - mean_j      v = Var(theta_i - theta_j) = C_ii + C_jj - 2 C_ij

adds the information w to the difference, and so takes ``log(1 + w v)`` from the log-determinant of the covariance. The
pair with the greatest such reduction is chosen (D-optimal); of equal ones, that of the lowest numbers. With a goal, or
with the criterion ``ranks``, what counts is what a comparison takes from the errors that
:class:`ErrorWeights` weighs.

**w before the answer** is the mean of ``p (1 - p)`` over what is believed of the difference, not its value at m: with
few answers m is a guess. From the usual approximation of a logistic curve by a normal one (MacKay 1992)::

    w = k p(k m) (1 - p(k m))      k = 1 / sqrt(1 + pi v / 8)

**The mean** is the mode, moved by the first term that Laplace's method gives for the difference of the two: who has won
all of three comparisons is likely to be better than at the mode, and deserves stronger opponents. With ``t`` the third
derivative of the log-likelihood along each answered difference and v its variance, it is half of C times the sum of
``t v (e_i - e_j)``.

**An answer** is taken in at once, as if what was believed before were exactly normal: the difference has its new mode
at x, the mean moves along, and the covariance loses a matrix of rank one (Sherman–Morrison) of weight ``p(x) (1 -
p(x))``. Every N/4 answers (N/2 beyond 500 items) after the warm start everything is solved again by Newton's method.

**s is learned**: each such solution moves it towards the highest point of the marginal likelihood of the answers (of
its Laplace approximation, which sees that the curvature at the mode changes with s; MacKay's simpler fixed point, which
does not, was found at half the truth) times a wide prior, log s ~ N(log 1.5, 0.5²), within 0.5 to 5.

**A pair in flight** counts with its w until its answer is there, so that those chosen beside it look elsewhere.

**Cost.** All pairs are scored in every step: about 20 ms for 1,000 texts, 60 ms where a goal counts errors.

What follows from the goal of a run: the whole order, or the texts at the top.

A goal decides two things: which errors of the scores count when the next pair is chosen, and when the run may stop.

**Choosing.** A comparison of i and j with information w on their difference, whose variance is v, takes
``w / (1 + w v) (C x)(C x)'`` from the covariance C, with x = e_i - e_j. Where an error of the score of text k counts by
``omega_k``, the pair is worth::

    w / (1 + w v) * sum over k of omega_k (C x)_k²

For the *top K*, scores count as distances to the cut, the place between the K-th text and the next. Two places may be
meant: that between the K-th and the next of the expected scores, and the one above which K texts are expected, which is
higher as long as little is known, as expected scores are drawn to the middle. The cut is half-way between the two. Its
score is that of the texts in proportion to how likely each is to be there, and C is the covariance of the distances.
``omega_k = phi(d_k / s_k) / s_k``, with the mean d_k and the standard deviation s_k of the distance, is how dense the
belief of text k is at the cut: only texts that may be on either side of it count.

For the *ranks* of all texts, ``omega_k`` is the square of how densely the others stand around text k, on average over
what is believed of them: an error of its score costs as many ranks as there are texts within it.

**Stopping.** The top K that a run reports are the K texts with the highest posterior means. The expected number of
wrong members among them is K less the sum of their posterior probabilities of being in the top K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from pairscale.adaptive.selection.ledger import pair_of
from pairscale.adaptive.selectors import Choice, Selector, allowed_pairs
from pairscale.models.data import side_sums
from pairscale.models.prior_mode import prior_mode

if TYPE_CHECKING:
    from pairscale.adaptive.selection.ledger import Flags, Ledger, Pair, Rng
    from pairscale.core.arrays import Floats
    from pairscale.models.bayes.posterior import Posterior

SD_START = 1.5
SD_LOW = 0.5
SD_HIGH = 5.0
"""The standard deviation of the prior: at first, and within what bounds it is learned."""

SD_SPREAD = 0.5
"""How far log s is believed to be from that of the first one."""

RANKED = 500
"""Up to this many items, errors of ranks can count; of more, looking at all pairs in every step would take too long."""

_TIE = 1 - 1e-9  # scores that differ by rounding only are equal, so that other machines choose the same pair
_LONGEST = 0.4  # change of log s at a time
_HALVED = 40  # times, to find a place on the scale
_NOTHING = 1e-9  # of the largest weight: what is below counts for nothing


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
        self._since = 0  # answers since everything was last solved

    def choose(self, ledger: Ledger, max_obs: int, rng: Rng) -> Choice | None:  # noqa: ARG002
        """The next pair, or None when no pair is allowed. The random numbers are left alone."""
        self._fit(ledger)
        allowed = allowed_pairs(ledger, max_obs)
        candidates = int(np.count_nonzero(allowed)) // 2
        if not candidates:
            return None
        gain = np.where(allowed, self.gains(ledger), -1.0)
        at = int(np.argmax(gain >= gain.max() * _TIE))
        return Choice(*divmod(at, ledger.n), candidates)

    def opened(self, ledger: Ledger, a: int, b: int) -> None:
        """A pair is being asked: what it is expected to tell counts from now on."""
        self._fit(ledger)
        self.belief.open(a, b)

    def committed(self, ledger: Ledger, a: int, b: int, y: float) -> None:
        """A valid answer is taken in."""
        self._fit(ledger)
        self.belief.answer(a, b, y)
        self._since += 1
        # Solving everything again takes time of the order n³.
        between = max(5, ledger.n // 4) if ledger.n <= 500 else ledger.n // 2
        if ledger.is_linked and self._since >= between:
            self.belief.solve()
            self._since = 0

    def dropped(self, ledger: Ledger, a: int, b: int) -> None:
        """What the pair was expected to tell no longer counts."""
        self._fit(ledger)
        self.belief.drop(a, b)

    def joined(self, ledger: Ledger) -> None:
        """More items came in: nothing but the prior is known of them."""
        self._fit(ledger)

    def _fit(self, ledger: Ledger) -> None:
        self.belief.discount = ledger.discount
        if ledger.n > self.belief.n:
            self.belief.join(ledger.n - self.belief.n)

    def gains(self, ledger: Ledger) -> Floats:
        """Per pair (in both orders), what a comparison is worth: w v, or what it takes from the errors that count."""
        mean = self.belief.mean
        covariance = self.belief.covariance
        variance = np.diag(covariance)
        v = np.maximum(variance[:, None] + variance - 2 * covariance, 0.0)  # with itself, up to rounding
        w = expected_information(mean[:, None] - mean, v)
        counted = None  # what counts is the determinant
        if ledger.top is not None:
            counted = top_errors(mean, covariance, ledger.top, ~ledger.withdrawn)
        elif ledger.counts_ranks and ledger.n <= RANKED:
            counted = rank_errors(mean, covariance)
        if counted is None:
            gain = w * v
        else:
            gain = w / (1 + w * v) * counted.of_pairs(covariance)
        if ledger.discount:
            gain *= np.where(ledger.seen > 0, 1 - ledger.discount, 1.0)
        return gain


class Laplace:
    """What is believed of the abilities: a normal distribution, kept up to date answer by answer.

    Attributes:
        n: how many items there are.
        mean: per item, the expected ability.
        mode: per item, its likeliest ability when everything was last solved.
        covariance: of the abilities; with what pairs in flight are expected to tell.
        sd: the standard deviation of the prior.
        discount: a pair with n answers counts as ``1 + (n - 1)(1 - discount)`` of them.
    """

    def __init__(self) -> None:
        self.n = 0
        self.discount = 0.0
        self.sd = SD_START
        self.mean: Floats = np.zeros(0)
        self.mode: Floats = np.zeros(0)
        self.covariance: Floats = np.zeros((0, 0))
        self._next_sd = SD_START
        self._open: dict[Pair, float] = {}  # in flight, with the weight that is in the covariance
        self._answers: dict[Pair, list[float]] = {}  # by pair, how many, and how many the lower number won

    def join(self, more: int) -> None:
        """More items, of which nothing but the prior is known."""
        new = np.arange(self.n, self.n + more)
        self.covariance = np.pad(self.covariance, (0, more))
        self.covariance[new, new] = self.sd**2
        self.mean = np.pad(self.mean, (0, more))
        self.mode = np.pad(self.mode, (0, more))
        self.n += more

    def open(self, a: int, b: int) -> None:
        """A pair is in flight: what it is expected to tell counts already."""
        column = self._difference(a, b)
        v = float(column[a] - column[b])
        weight = float(expected_information(np.asarray(self.mean[a] - self.mean[b]), np.asarray(v)))
        weight *= self._share(a, b)
        self._open[pair_of(a, b)] = weight
        self._add(column, v, weight)

    def drop(self, a: int, b: int) -> None:
        """A pair in flight came back without an answer: its weight is taken out again."""
        column = self._difference(a, b)
        self._add(column, float(column[a] - column[b]), -self._open.pop(pair_of(a, b)))

    def answer(self, a: int, b: int, y: float) -> None:
        """Take in that a was compared with b, and won when y is 1; 0.5 is a tie, half a win for each."""
        share = self._share(a, b)
        self._count(a, b, y)
        weight = self._open.pop(pair_of(a, b), 0.0)
        column = self._difference(a, b)
        v = float(column[a] - column[b])
        # Taking the weight out and putting the answer in is one change of the difference, so it is one of rank one.
        before = float(self.mean[a] - self.mean[b])
        alone = v / (1 - weight * v)
        after, information = _mode(before, share * alone, y)
        information *= share
        left = alone / (1 + alone * information)
        after += left**2 * information * math.tanh(after / 2) / 2  # 2 p - 1 is the hyperbolic tangent of half of it
        self.mean += column * ((after - before) / v)
        self._add(column, v, information - weight)

    def _difference(self, a: int, b: int) -> Floats:
        """The covariance of every ability with that of a less that of b."""
        column: Floats = self.covariance[a] - self.covariance[b]
        return column

    def _add(self, column: Floats, v: float, weight: float) -> None:
        """Add information of this weight on a difference of variance v, with this :meth:`_difference`."""
        self.covariance -= np.outer(column, column) * (weight / (1 + weight * v))

    def _share(self, a: int, b: int) -> float:
        """What the next answer on a pair counts: 1, or less when it has one."""
        return 1.0 if not self.discount or pair_of(a, b) not in self._answers else 1 - self.discount

    def _count(self, a: int, b: int, y: float) -> None:
        answers = self._answers.setdefault(pair_of(a, b), [0.0, 0.0])
        answers[0] += 1
        answers[1] += y if a < b else 1 - y

    def solve(self) -> None:
        """Find the mode and its curvature from all answers, and what they say of s."""
        i, j = np.array(list(self._answers), dtype=np.int64).reshape(-1, 2).T
        times, won = np.array(list(self._answers.values()), dtype=np.float64).reshape(-1, 2).T
        if self.discount:
            counted = 1 + (times - 1) * (1 - self.discount)
            won = won * counted / times
            times = counted
        self.sd = self._next_sd
        solution = prior_mode(i, j, times, won, prior=self.sd**-2, start=self.mean)
        mode = solution.theta
        p = solution.p
        inverse, _ = lapack.dpotri(solution.factor, lower=1, overwrite_c=1)
        inverse += np.tril(inverse, -1).T
        self.mode = mode
        self.covariance = np.ascontiguousarray(inverse)
        variance = np.diag(self.covariance)
        skew = times * p * (1 - p) * (1 - 2 * p) * (variance[i] + variance[j] - 2 * self.covariance[i, j])
        moved = self.covariance @ np.column_stack([side_sums(i, j, skew, -skew, self.n), mode])
        self.mean = mode - moved[:, 0] / 2
        self._next_sd = self._better_sd(float(skew @ (moved[i, 1] - moved[j, 1])))
        for pair in self._open:
            self.open(*pair)

    def _better_sd(self, bent: float) -> float:
        """An s of higher marginal likelihood, by a step along its slope.

        Args:
            bent: how much the log-determinant of the curvature changes with log s because the mode moves, in units of
                2 / s².
        """
        prior = self.sd**-2
        told = self.n - prior * float(np.trace(self.covariance))  # how many abilities' worth the answers tell
        log_sd = math.log(self.sd)
        slope = prior * float(self.mode @ self.mode) - told - prior * bent
        slope -= (log_sd - math.log(SD_START)) / SD_SPREAD**2
        step = slope / (2 * told**2 / self.n + SD_SPREAD**-2)
        return min(SD_HIGH, max(SD_LOW, math.exp(log_sd + min(_LONGEST, max(-_LONGEST, step)))))


def _mode(m: float, v: float, y: float) -> tuple[float, float]:
    """The mode of a difference believed to be N(m, v) after one answer, and the information of the answer there."""
    x = brentq(lambda x: x - m - v * (y - expit(x)), m - v, m + v, xtol=1e-12)
    return x, float(expit(x) * expit(-x))


# What a goal counts


@dataclass(frozen=True, slots=True, eq=False)
class ErrorWeights:
    """How much errors of the scores count.

    Attributes:
        weights: Per text, omega.
        cut: Per text, its share in the score of the cut that scores are distances to; None when they are no distances.
    """

    weights: Floats
    cut: Floats | None = None

    def of_pairs(self, covariance: Floats) -> Floats:
        """``sum over k of omega_k (C x)_k²`` per pair of texts, in both orders.

        Args:
            covariance: C, of the scores.
        """
        near = np.flatnonzero(self.weights)
        part = covariance[:, near]
        if self.cut is not None:
            part = part - (covariance @ self.cut)[:, None]
        scaled = part * self.weights[near]
        own = (scaled * part).sum(axis=1)
        told: Floats = own[:, None] + own - 2 * scaled @ part.T
        return np.maximum(told, 0.0)


def top_errors(mean: Floats, covariance: Floats, top: int, eligible: Flags) -> ErrorWeights | None:
    """How much errors count for the top K; None when all texts that are there belong to it.

    Args:
        mean: Per text, the expected score.
        covariance: Of the scores.
        top: How many texts are wanted.
        eligible: Per text, whether it may be a member; those that were withdrawn may not.
    """
    among = np.sort(mean[eligible])[::-1]
    if top >= len(among):
        return None
    variance = np.diag(covariance)
    between = (among[top - 1] + among[top]) / 2
    distance = mean - (between + _expected_above(mean[eligible], np.sqrt(variance[eligible]), top)) / 2
    cut = np.where(eligible, _density(distance, variance), 0.0)
    if not cut.any():  # far from everything: the nearest text is the cut
        cut[np.argmin(np.where(eligible, np.abs(distance), np.inf))] = 1.0
    cut /= cut.sum()
    with_cut = covariance @ cut
    apart = variance - 2 * with_cut + cut @ with_cut
    weights = np.where(eligible, _density(distance, apart), 0.0)
    weights[weights < _NOTHING * weights.max()] = 0.0
    return ErrorWeights(weights, cut) if weights.any() else None


def _expected_above(mean: Floats, sd: Floats, top: int) -> float:
    """The score above which the wanted number of texts is expected."""
    usable = np.maximum(sd, 1e-9)
    low = float((mean - 8 * usable).min())
    high = float((mean + 8 * usable).max())
    for _ in range(_HALVED):
        middle = (low + high) / 2
        if float(ndtr((mean - middle) / usable).sum()) > top:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def rank_errors(mean: Floats, covariance: Floats) -> ErrorWeights:
    """How much errors count for the ranks of all texts.

    Args:
        mean: Per text, the expected score.
        covariance: Of the scores.
    """
    variance = np.diag(covariance)
    density = _density(mean[:, None] - mean, variance[:, None] + variance - 2 * covariance)
    np.fill_diagonal(density, 0.0)
    return ErrorWeights(np.square(density.mean(axis=1)))


def _density(distance: Floats, variance: Floats) -> Floats:
    """That of a normal distribution of this mean and variance, at zero."""
    usable = np.maximum(variance, 1e-9)
    density: Floats = np.exp(-np.square(distance) / (2 * usable)) / np.sqrt(2 * math.pi * usable)
    return density


def top_probabilities(posterior: Posterior, top: int) -> Floats:
    """Per text, the share of draws in which it is among the top K."""
    theta = posterior.theta
    n_draws, n = theta.shape
    if top >= n:
        return np.ones(n)
    members = np.argpartition(-theta, top - 1, axis=1)[:, :top]
    counted: Floats = np.bincount(members.ravel(), minlength=n) / n_draws
    return counted


def top_figures(posterior: Posterior, top: int) -> tuple[Floats, float]:
    """Per text, the probability of being in the top K, and the expected number of wrong members."""
    probability = top_probabilities(posterior, top)
    return probability, expected_wrong(probability, posterior.items.theta_mean, top)


def expected_wrong(probability: Floats, mean: Floats, top: int) -> float:
    """How many of the K texts with the highest means are expected not to belong to the top K.

    Args:
        probability: Per text, that of being in the top K.
        mean: Per text, its posterior mean.
        top: K.
    """
    chosen = np.argsort(-mean, kind="stable")[:top]
    return float(len(chosen) - probability[chosen].sum())
