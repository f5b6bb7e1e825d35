"""The Bayesian models: which parameters there are, the answers that they explain, and the likelihood of an answer.

The linear predictor of an answer is ``eta = a_k (theta_i - theta_j) + b_k``. Scores have the prior ``N(0, tau²)``.

* **Winners.** i beat j with the chance ``(1 - eps) logistic(eta) + eps / 2``: a judge may lapse. Pooled judges have the
  slope 1 and one position effect. With a slope per judge there are no lapses; the mean slope over all comparisons is 1:
  ``a = 1 + Q alpha``, where the columns of Q are an orthonormal basis of what is orthogonal to the judges' shares of
  the comparisons, and ``alpha ~ N(0, 0.75²)``. So scores are in the logits of an average judge.
* **Probabilities.** ``z = logit(q)``, with q the probability that the first of two texts is better, is ``eta + e``,
  where e is the judge's error: Student's t with four degrees of freedom and a scale that is learned. An answer at or
  beyond :data:`SATURATED` says no more than "at least this"; a winner without a probability says that z is above 0, or
  below.

Parameters are named ``u = logit(eps)``, ``b`` (``b0``, ``b1``, ... per judge), ``a0``, ``a1``, ... (alpha),
``t = log(tau)`` and ``s``, the logarithm of the error's scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
import scipy

from pairscale.core.arrays import Floats, Ints
from pairscale.models.data import side_sums

LAPSE_PRIOR = (2.0, 20.0)
"""Of the lapse rate: a beta distribution."""

LEARNED_SCALE = 2.5
"""Scale of the half-normal prior of a spread that is learned from winners."""

POSITION_SD = 0.3
JUDGE_POSITION_SD = 0.5
LOGIT_POSITION_SD = 1.0
"""Standard deviations of the prior of a position effect: of pooled judges, of one of several, of logits."""

SLOPE_SD = 0.75
"""Standard deviation of the prior of alpha."""

DF = 4.0
"""Degrees of freedom of the errors: few enough that single outliers do little."""

SATURATED = 5.0
"""From this logit on (a probability of .9933) an answer is taken as "at least this"."""

LOG_PRIORS = {"t": (math.log(2.0), 1.0), "s": (0.0, 1.0)}
"""With probabilities: mean and standard deviation of the logarithms of the scores' spread and of the error's scale."""

_FIRST_LAPSE = 0.07  # where searches begin; the prior's mean is 0.09
_PEAK = 0.375  # the density of t with four degrees of freedom at 0


@dataclass(frozen=True, slots=True)
class JudgeParameters:
    """Which parameters a model has.

    Attributes:
        lapse: ``eps ~ Beta(2, 20)``.
        position: a position effect with a normal prior: standard deviation 0.3, with slopes 0.5, of logits 1.
        prior_sd: of the scores; None when it is learned.
        judges: how many judges have a slope; 1 when they are pooled.
        probabilities: whether answers are logits.
    """

    lapse: bool
    position: bool
    prior_sd: float | None = 1.0
    judges: int = 1
    probabilities: bool = False

    @property
    def position_sd(self) -> float:
        """The standard deviation of the prior of a position effect."""
        if self.probabilities:
            return LOGIT_POSITION_SD
        return JUDGE_POSITION_SD if self.judges > 1 else POSITION_SD

    @property
    def position_names(self) -> list[str]:
        """The position effects."""
        if not self.position:
            return []
        return ["b"] if self.judges == 1 else [f"b{judge}" for judge in range(self.judges)]

    @property
    def slope_names(self) -> list[str]:
        """The parameters of the slopes."""
        return [f"a{at}" for at in range(self.judges - 1)]

    @property
    def names(self) -> list[str]:
        """The parameters, in the order of the rows behind the scores."""
        names = ["u"] if self.lapse else []
        names += self.position_names + self.slope_names
        if self.prior_sd is None:
            names.append("t")
        if self.probabilities:
            names.append("s")
        return names


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Comparisons, one element each.

    Attributes:
        first: the item shown first.
        second: the item shown second.
        result: 1 when the first won, 0 when the second did, 0.5 for a tie.
        n_items: how many items there are.
        times: how often each occurs; None when it is once.
        judge: who judged, by number; None when judges are pooled.
    """

    first: Ints
    second: Ints
    result: Floats
    n_items: int
    times: Ints | None = None
    judge: Ints | None = None

    @property
    def pair(self) -> Ints:
        """A number for the pair of each."""
        return pair_keys(self.first, self.second, self.n_items, self.judge)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Answers: outcomes that were counted, or one logit each.

    Attributes:
        winner: index of the winner; of a logit, the item shown first.
        loser: index of the other one.
        sign: +1 when the winner stood first, -1 when second.
        times: how often; a tie is half a win for each, and a repeat may count less than once.
        n_items: how many items there are.
        judge: who judged, by number; None when judges are pooled.
        share: the share of the comparisons that each judge made.
        z: the logit that the first is better, or its bound; None for winners.
        kind: 0 when z is the answer, 1 when the answer is at least z, -1 when it is at most z.
    """

    winner: Ints
    loser: Ints
    sign: Floats
    times: Floats
    n_items: int
    judge: Ints | None = None
    share: Floats | None = None
    z: Floats | None = None
    kind: Ints | None = None

    @property
    def pair(self) -> Ints:
        """A number for the pair of each answer."""
        return pair_keys(self.winner, self.loser, self.n_items, self.judge)

    def sums(self, of_winner: Floats, of_loser: Floats) -> Floats:
        """Per item, the sum over its answers of a number for the winner and one for the loser of each."""
        return side_sums(self.winner, self.loser, of_winner, of_loser, self.n_items)


def pair_keys(first: Ints, second: Ints, n_items: int, judge: Ints | None) -> Ints:
    """A number for each pair, the same in both orders; the pairs of two judges are different ones."""
    key = np.minimum(first, second) * n_items + np.maximum(first, second)
    return key if judge is None else key + judge * n_items**2


def count_outcomes(answers: Answers, *, position: bool) -> Cells:
    """Count outcomes; without a position effect, where the winner stood does not matter."""
    asked = pl.DataFrame({"winner": answers.first, "loser": answers.second, "times": answers.result})
    asked = asked.with_columns(judge=0 if answers.judge is None else answers.judge, first=True)
    asked = asked.with_columns(n=1 if answers.times is None else answers.times)
    # A tie is half a win for each.
    turned = asked.with_columns(winner="loser", loser="winner", times=1 - pl.col("times"), first=not position)
    wins = pl.concat([asked, turned]).filter(pl.col("times") > 0)
    kinds = ["judge", "winner", "first", "loser"]
    counted = wins.group_by(kinds).agg((pl.col("times") * pl.col("n")).sum()).sort(kinds)
    return Cells(
        winner=counted["winner"].to_numpy(),
        loser=counted["loser"].to_numpy(),
        sign=np.where(counted["first"].to_numpy(), 1.0, -1.0),
        times=counted["times"].to_numpy(),
        n_items=answers.n_items,
        judge=None if answers.judge is None else counted["judge"].to_numpy(),
        share=None if answers.judge is None else np.bincount(answers.judge) / len(answers.judge),
    )


def read_logits(answers: Answers, probability: pl.Series) -> Cells:
    """Answers as logits, each of them counting once.

    Args:
        answers: the answers; their results are used where there is no probability.
        probability: that the first is better; null where the judge gave none.
    """
    q = probability.to_numpy().astype(np.float64)
    present = np.isfinite(q)
    q = np.where(present, q, 0.5)
    with np.errstate(divide="ignore"):
        z = np.log(q) - np.log1p(-q)
    beyond = np.abs(z) >= SATURATED
    side = np.sign(z).astype(np.int64)
    kind = np.where(present, np.where(beyond, side, 0), np.sign(answers.result - 0.5).astype(np.int64))
    z = np.where(beyond, side * SATURATED, z)
    ones = np.ones(len(z))
    return Cells(answers.first, answers.second, ones, ones, answers.n_items, z=z, kind=kind)


@cache
def gauss_hermite(count: int) -> tuple[Floats, Floats]:
    """Nodes of a standard normal distribution, the middle one first, and their weights, which add up to 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    order = np.argsort(np.abs(nodes), kind="stable")
    return nodes[order], weights[order] / weights.sum()


class Terms(NamedTuple):
    """The log likelihood of each answer, and how it changes.

    Attributes:
        value: the log likelihood.
        slope: its slope in the predictor.
        curvature: its second derivative there, with the sign changed.
        in_noise: its slope in the lapse rate, or in the logarithm of the error's scale.
    """

    value: Any
    slope: Floats
    curvature: Floats
    in_noise: Floats | float


class Winners:
    """Who won, by a judge who may lapse.

    With ``ratio = exp(-eta)``, the chance of an outcome is ``(1 - eps / 2) s / k``, where ``s = 1 / (1 + ratio)``,
    ``k = 1 / (1 + g ratio)`` and ``g = eps / (2 - eps)``. The slope of its logarithm in eta is ``k - s``, and in u
    it is ``(1 - eps) - k (1 - eps) / (1 - eps / 2)``.
    """

    nodes = 3  # exact up to fifth powers

    def __init__(self, model: JudgeParameters) -> None:
        self.noise = "u" if model.lapse else None
        self.start = {"u": math.log(_FIRST_LAPSE / (1 - _FIRST_LAPSE)), "t": 0.0}

    def link(self, u: Any) -> tuple[Any, Any]:
        """The lapse rate, and its slope in u."""
        eps = scipy.special.expit(u)
        return eps, eps * (1 - eps)

    def terms(self, eta: Floats, eps: float) -> Terms:
        """The likelihood of all outcomes."""
        s = scipy.special.expit(eta)
        p = (1 - eps) * s + eps / 2
        rise = (1 - eps) * s * (1 - s) / p if eps else scipy.special.expit(-eta)
        value = np.log(p) if eps else scipy.special.log_expit(eta)
        return Terms(value, rise, rise * (rise - (1 - 2 * s)), (0.5 - s) / p if eps else 0.0)

    def information(self, eta: Floats, eps: float) -> Floats:
        """The expected information of each outcome."""
        s = scipy.special.expit(eta)
        p = (1 - eps) * s + eps / 2
        return ((1 - eps) * s * (1 - s)) ** 2 / np.maximum(p * (1 - p), 1e-300)

    def spread_prior(self, t: Any, squares: Any, n: int) -> tuple[Any, Any]:
        """With the prior of n scores whose squares have this sum: log density but for the squares, and slope in t."""
        variance = np.exp(2 * t)
        log = -n * t - 0.5 * variance / LEARNED_SCALE**2 + t
        return log, squares / variance - n - variance / LEARNED_SCALE**2 + 1

    def noise_prior(self, u: Any, in_noise: Any, *, value: bool = True) -> tuple[Any, Any]:
        """The log density of the prior of u with its Jacobian (if ``value``), and the slope of likelihood and prior."""
        alpha, beta = LAPSE_PRIOR
        eps = scipy.special.expit(u)
        slope = in_noise + alpha * (1 - eps) - beta * eps
        if not value:
            return 0.0, slope
        return alpha * scipy.special.log_expit(u) + beta * scipy.special.log_expit(-u), slope


class Probabilities:
    """Logits with errors, and bounds of logits."""

    nodes = 5
    noise = "s"

    def __init__(self, cells: Cells) -> None:
        self.z = cast("Floats", cells.z)
        self.kind = cast("Ints", cells.kind)
        # Half of the variance of the answers is the scores', half the error's.
        size = math.log(max(np.sqrt(np.mean(self.z**2)), 0.3) / 2)
        self.start = {"t": size, "s": size}

    def link(self, s: Any) -> tuple[Any, Any]:
        """The logarithm of the error's scale is its own parameter."""
        return s, np.ones_like(s)

    def terms(self, eta: Floats, log_scale: Any, block: slice = slice(None)) -> Terms:
        """The likelihood of a block of answers, each a row of ``eta``."""
        shape = (-1,) + (1,) * (eta.ndim - 1)
        z = self.z[block].reshape(shape)
        kind = self.kind[block].reshape(shape)
        scale = np.exp(log_scale)
        v = np.where(kind == 0, 1.0, kind) * (eta - z) / scale
        tail = DF + v * v
        density = np.log(_PEAK) - 0.5 * (DF + 1) * np.log1p(v * v / DF)
        pull = (DF + 1) * v / tail
        bounded = kind != 0
        below = t_below(v)
        hazard = np.exp(density) / below
        bend = np.where(bounded, hazard * (hazard + pull), (DF + 1) * (DF - v * v) / tail**2)
        return Terms(
            value=np.where(bounded, np.log(below), density - log_scale),
            slope=np.where(bounded, kind * hazard, -pull) / scale,
            curvature=bend / scale**2,
            in_noise=np.where(bounded, -v * hazard, v * pull - 1.0),
        )

    def information(self, eta: Floats, log_scale: float) -> Floats:
        """The weights of a step of weighted least squares, which always gets nearer to the mode; none is negative."""
        scale = math.exp(log_scale)
        v = (eta - self.z) / scale
        bend = self.terms(eta, log_scale).curvature
        return np.where(self.kind != 0, np.maximum(bend, 0.0), (DF + 1) / (DF + v * v) / scale**2)

    def spread_prior(self, t: Any, squares: Any, n: int) -> tuple[Any, Any]:
        """As that of :class:`Winners`."""
        log, slope = _log_normal("t", t)
        return log - n * t, squares * np.exp(-2 * t) - n + slope

    def noise_prior(self, s: Any, in_noise: Any, *, value: bool = True) -> tuple[Any, Any]:
        """As that of :class:`Winners`."""
        del value
        log, slope = _log_normal("s", s)
        return log, in_noise + slope


def _log_normal(name: str, at: Any) -> tuple[Any, Any]:
    mean, sd = LOG_PRIORS[name]
    return -0.5 * ((at - mean) / sd) ** 2, (mean - at) / sd**2


def t_below(v: Floats) -> Floats:
    """The distribution function of t with four degrees of freedom, exact in both tails."""
    root = np.sqrt(4.0 + v * v)
    x = np.abs(v) / root
    small = 4.0 / (root * (root + np.abs(v)))  # 1 - x without cancellation
    tail = small**2 * (2 + x) / 4
    return np.asarray(np.where(v < 0, tail, 1 - tail))
