"""The arithmetic of a cost estimate: which pairs to try, what they show about the others, and how sure that is.

Nothing here asks a judge. Numbers go in (bytes, tokens), numbers come out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

_DRAWS = 2_000
_LOGNORMAL_FROM = 4  # values; below, Student's t alone
_MAX_LOGNORMAL = 3.0  # times Student's margin


def choose_pilot(prompt_bytes: Ints, n_test: int, strategy: str, seed: int | None) -> tuple[Ints, Floats]:
    """The rows of the pilot, in their order, and how many pairs each of them represents, itself included.

    Stratified by bytes, the pairs are laid out by the length of their prompts and cut into as many even parts as there
    are pairs in the pilot; chance takes one of each.
    """
    total = prompt_bytes.size
    n = min(n_test, total)
    if strategy == "first":
        return np.arange(n), np.full(n, total / n)
    chance = generator(seed)
    if strategy == "random":
        return np.sort(chance.permutation(total)[:n]), np.full(n, total / n)
    # Equal lengths in random order, or neighbours in the table would fall into the same part.
    laid_out = np.lexsort((chance.random(total), prompt_bytes))
    ends = (np.arange(1, n + 1) * total) // n
    starts = np.concatenate(([0], ends[:-1]))
    rows = laid_out[starts + np.floor(chance.random(n) * (ends - starts)).astype(np.int64)]
    order = np.argsort(rows)
    return rows[order], (ends - starts)[order].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Spread:
    """A sum that is not known yet.

    Attributes:
        expected: its expected value.
        budget: what it stays below with the probability that was asked for.
    """

    expected: float
    budget: float


@dataclass(frozen=True, slots=True)
class InputFit:
    """Input tokens by the bytes of the prompt: ``intercept + slope * bytes``, by least squares.

    Attributes:
        intercept: tokens of an empty prompt.
        slope: tokens per byte.
        r_squared: the share of the tokens' variance that bytes explain; None where there is none to explain.
        residual_sd: standard deviation of the tokens around the line; None with two pairs or fewer.
        n: pairs that it rests on.
        mean_bytes: of their prompts.
        sum_squares: of the bytes around that mean; 0 when there is no line, but a share of tokens per byte or a mean.
    """

    intercept: float
    slope: float
    r_squared: float | None
    residual_sd: float | None
    n: int
    mean_bytes: float
    sum_squares: float

    def total(self, prompt_bytes: Ints, quantile: float) -> Spread:
        """The input tokens of other prompts."""
        count = prompt_bytes.size
        if count == 0:
            return Spread(0.0, 0.0)
        expected = max(0.0, count * self.intercept + self.slope * float(prompt_bytes.sum()))
        if not self.residual_sd:
            return Spread(expected, expected)
        apart = (float(prompt_bytes.mean()) - self.mean_bytes) ** 2 / self.sum_squares if self.sum_squares else 0.0
        error = self.residual_sd * math.sqrt(count + count**2 * (1 / self.n + apart))
        return Spread(expected, expected + _student(self.n - 2, quantile) * error)


def fit_input(prompt_bytes: Ints, tokens: Floats, weights: Floats) -> InputFit:
    """Fit the line.

    Where all prompts are equally long, tokens are taken as proportional to bytes; where it would fall, as their mean.
    """
    n = prompt_bytes.size
    mean_x = float(np.average(prompt_bytes, weights=weights))
    mean_y = float(np.average(tokens, weights=weights))
    (sxx, sxy), (_, syy) = np.cov(prompt_bytes, tokens, aweights=weights, ddof=0).tolist()
    slope = mean_y / mean_x
    intercept = 0.0
    if sxx > 0:
        slope = max(0.0, sxy / sxx)
        intercept = mean_y - slope * mean_x
    residuals = float(np.average((tokens - intercept - slope * prompt_bytes) ** 2, weights=weights))
    r_squared = None
    if syy > 0:
        r_squared = max(0.0, 1 - residuals / syy)
    residual_sd = None
    if n > 2:
        residual_sd = math.sqrt(residuals * n / (n - 2))
    return InputFit(intercept, slope, r_squared, residual_sd, n, mean_x, sxx * n if slope else 0.0)


def likely_sum(values: Floats, weights: Floats, count: int, quantile: float) -> Spread:
    """The sum over ``count`` further pairs of what was seen in some, each counted by its weight.

    The budget takes two things into account: the mean of the pilot is not that of all, and the further pairs vary
    themselves. Output tokens are skewed: most answers are short, a few are very long, and a small pilot has probably
    seen too few of those. So the margin is the larger of two: Student's, and that of a lognormal distribution, the
    latter up to three times the former.

    Args:
        values: what the pilot's pairs used.
        weights: how many further pairs each represents.
        count: further pairs.
        quantile: of the budget, 0.5 or more.
    """
    used = weights > 0
    values = values[used]
    if count == 0 or values.size == 0:
        return Spread(0.0, 0.0)
    share = weights[used] / weights[used].sum()
    mean = float(share @ values)
    seen = 1 / float(share @ share)  # as many values as equal weights would need to be as sure
    if values.size == 1 or seen <= 1:
        return Spread(count * mean, 2 * count * mean)  # one value shows no spread: take it twice
    sd = math.sqrt(float(share @ (values - mean) ** 2) * seen / (seen - 1))
    margin = _student(seen - 1, quantile) * sd * math.sqrt(1 / seen + 1 / count)
    if values.size >= _LOGNORMAL_FROM and sd > 0:
        skewed = _lognormal(values, share, seen, count, quantile, np.random.default_rng(0)) - mean
        margin = max(margin, min(_MAX_LOGNORMAL * margin, skewed))
    return Spread(count * mean, count * (mean + margin))


def _lognormal(
    values: Floats,
    share: Floats,
    seen: float,
    count: int,
    quantile: float,
    chance: np.random.Generator,
) -> float:
    """The quantile of the mean of further values, if they are lognormal: both parameters drawn, given the pilot."""
    logs = np.log(np.maximum(values, 1e-9 * float(values.max())))
    mean = float(share @ logs)
    variance = float(share @ (logs - mean) ** 2) * seen / (seen - 1)
    drawn = np.minimum((seen - 1) * variance / chance.chisquare(seen - 1, _DRAWS), 50.0)
    means = np.exp(mean + chance.standard_normal(_DRAWS) * np.sqrt(drawn / seen) + drawn / 2)
    further = means * (1 + chance.standard_normal(_DRAWS) * np.sqrt(np.expm1(drawn) / count))
    return float(np.quantile(further, quantile))


def _student(freedom: float, quantile: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1.0), quantile))
