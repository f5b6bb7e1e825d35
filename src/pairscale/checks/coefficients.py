"""The coefficients of agreement and their intervals.

Each coefficient is a function of sums over units, so that a bootstrap needs no loop: it weights the units by how often
each was drawn, and adds up again. Called with rows of weights, a coefficient gives one figure a row, NaN where it is
undefined.

Of two raters, the units with both labels are a table of q by q cells. Its true shares are drawn from their posterior
under a Dirichlet prior, and the interval holds the coefficients that these tables have. Where a label is rare, a
bootstrap cannot draw what it has not seen, and its intervals are far too narrow; these are not. There are three priors:
as much as one unit spread evenly over the cells, as much as two units, and as one unit with more on the cells of
agreement (1 / q each). The interval holds those of all three, and reaches as far as Student's t does instead of the
normal distribution. How often it holds the truth is in docs/validation.md.

Of more raters, units are drawn with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.checks.effect import wilson
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

LEAST_UNITS = 20
"""Intervals need so many units: with fewer, they hold the truth less often than their level says, or say nothing."""

_RARE = 10  # labels besides the most common one, below which resampled intervals are too narrow
_BLOCK = 2**22  # numbers held at once while resampling
_DRAWS = 10_000  # of tables of two raters


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of the agreement of given units.

    Attributes:
        name: the statistic.
        weights: how far apart two labels are, where there are several ways to say it.
        of: its figures for rows of weights of the units.
    """

    name: str
    weights: str | None
    of: Callable[[Floats], Floats]

    def estimate(self, n_units: int) -> float | None:
        """The figure of all units, each counted once; None where it is undefined."""
        value = float(self.of(np.ones((1, n_units)))[0])
        return None if math.isnan(value) else value


def kappa_weights(*, ordered: bool) -> list[str]:
    """How labels may be weighted that differ."""
    return ["unweighted", "linear", "quadratic"] if ordered else ["unweighted"]


def _coefficients(codes: Ints, numbers: Floats, *, ordered: bool, numeric: bool) -> list[Coefficient]:
    """All coefficients, percent agreement first and Gwet's AC1 last."""
    counts = np.stack([(codes == category).sum(axis=1) for category in range(len(numbers))], axis=1)
    metrics = ["nominal", *(["ordinal"] if ordered else []), *(["interval"] if numeric else [])]
    share = _percent(counts)
    kappas = [_light_kappa(codes, numbers, weights) for weights in kappa_weights(ordered=ordered)]
    alphas = [_krippendorff_alpha(counts, numbers, metric) for metric in metrics]
    return [share, *kappas, *alphas, _gwet_ac1(counts, share)]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    is_zero = np.abs(denominator) < 1e-12
    return np.where(is_zero, np.nan, numerator / np.where(is_zero, 1.0, denominator))


def _percent(counts: Ints) -> Coefficient:
    """The share of agreeing pairs of raters, averaged over units."""
    raters = counts.sum(axis=1)
    several = raters >= 2
    agreeing = several * (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)
    return Coefficient("percent_agreement", None, lambda drawn: _ratio(drawn @ agreeing, drawn @ several))


def _gwet_ac1(counts: Ints, share: Coefficient) -> Coefficient:
    """AC1: chance agreement from how evenly the labels are spread."""
    spread = counts / np.maximum(counts.sum(axis=1), 1)[:, None]

    def of(drawn: Floats) -> Floats:
        means = drawn @ spread / drawn.sum(axis=1, keepdims=True)
        chance = _ratio((means * (1 - means)).sum(axis=1), np.array(counts.shape[1] - 1.0))
        return _ratio(share.of(drawn) - chance, 1 - chance)

    return Coefficient("gwet_ac1", None, of)


def cohen_kappa(codes: Ints, numbers: Floats, weights: str) -> Coefficient:
    """Cohen's kappa of two raters, on the units that both labelled."""
    q = len(numbers)
    both = (codes >= 0).all(axis=1)
    tables = np.zeros((len(codes), q * q))
    tables[both, codes[both, 0] * q + codes[both, 1]] = 1
    return _beyond_chance("cohen_kappa", weights, tables, numbers, 0)


def _light_kappa(codes: Ints, numbers: Floats, weights: str) -> Coefficient:
    """The mean of Cohen's kappa over pairs of raters; of two raters, Cohen's kappa."""
    pairs = [codes[:, pair] for pair in combinations(range(codes.shape[1]), 2)]
    kappas = [cohen_kappa(pair, numbers, weights) for pair in pairs if (pair >= 0).all(axis=1).any()]
    name = "cohen_kappa" if len(pairs) == 1 else "light_kappa"
    return Coefficient(name, weights, lambda drawn: np.stack([kappa.of(drawn) for kappa in kappas]).mean(axis=0))


def _krippendorff_alpha(counts: Ints, numbers: Floats, metric: str) -> Coefficient:
    """Krippendorff's alpha, from the coincidences of every two labels of a unit."""
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(numbers))
    tables = pairs.reshape(len(counts), -1) / np.maximum(raters - 1, 1)[:, None]
    return _beyond_chance("krippendorff_alpha", metric, tables, numbers, 1)


def _beyond_chance(name: str, weights: str, tables: Floats, numbers: Floats, taken: int) -> Coefficient:
    """1 less observed over expected disagreement in the table of two labels.

    Args:
        name: the statistic.
        weights: how far apart two labels are.
        tables: of each unit, its cells.
        numbers: what each category counts.
        taken: labels that chance no longer draws from, when it draws the second of two.
    """
    q = len(numbers)
    difference = np.abs(numbers[:, None] - numbers)
    by_name = {"linear": difference, "quadratic": difference**2, "interval": difference**2}
    fixed = by_name.get(weights, difference != 0)

    def of(drawn: Floats) -> Floats:
        table = (drawn @ tables).reshape(len(drawn), q, q)
        rows = table.sum(axis=2)
        columns = table.sum(axis=1)
        distance = fixed
        if weights == "ordinal":  # the labels from one to the other, the two ends counted half
            middle = rows.cumsum(axis=1) - rows / 2
            distance = (middle[:, :, None] - middle[:, None, :]) ** 2
        observed = (table * distance).sum(axis=(1, 2))
        expected = (rows[:, :, None] * columns[:, None, :] * distance).sum(axis=(1, 2))
        return 1 - _ratio((rows.sum(axis=1) - taken) * observed, expected)

    return Coefficient(name, weights, of)


# Intervals.


def statistic_rows(
    codes: Ints, numbers: Floats, *, ordered: bool, numeric: bool, n_boot: int, level: float, seed: int | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The coefficients with their intervals, as rows, and what to be careful with.

    Args:
        codes: units by raters: the number of each label among the categories, -1 where it is missing.
        numbers: what each category counts: its own number, or its place.
        ordered: whether the categories have an order.
        numeric: whether they are numbers.
        n_boot: resamples of the units; 0 for no intervals but Wilson's.
        level: of the intervals.
        seed: of what is drawn.
    """
    labels = (codes >= 0).sum(axis=1)
    n_units = int((labels >= 2).sum())
    coefficients = _coefficients(codes, numbers, ordered=ordered, numeric=numeric)
    rows: list[dict[str, Any]] = [
        {"statistic": one.name, "weights": one.weights, "estimate": one.estimate(len(codes)), "n_units": n_units}
        for one in coefficients
    ]
    if labels.max() == 2:
        lower, upper = wilson(round(rows[0]["estimate"] * n_units), n_units, level)
        rows[0] |= {"lower": lower, "upper": upper, "interval": "wilson"}
    notices = []
    pending = [number for number, row in enumerate(rows) if row["estimate"] is not None and "interval" not in row]
    if not n_boot:
        pending = []
    if pending and n_units < LEAST_UNITS:
        notices.append(f"no intervals: {n_units} units are too few, it takes {LEAST_UNITS}")
        pending = []
    if pending and codes.shape[1] == 2:
        q = len(numbers)
        cells = _coefficients(cell_codes(q), numbers, ordered=ordered, numeric=numeric)
        both = codes[labels == 2]
        table = np.bincount(both[:, 0] * q + both[:, 1], minlength=q * q)
        if labels.min() < 2:
            cells.pop()  # AC1 rests on units with one label, too
        by_table = pending[: len(cells) - 1]
        ends = dirichlet_ends([cells[number] for number in by_table], table, level, seed)
        for number, (lower, upper) in zip(by_table, ends, strict=True):
            estimate = rows[number]["estimate"]
            rows[number] |= {"lower": min(lower, estimate), "upper": max(upper, estimate), "interval": "dirichlet"}
        pending = pending[len(by_table) :]
    if pending and np.isclose(rows[0]["estimate"], 1):
        notices.append("all labels agree; resampling them cannot say how sure that is, so there is no interval")
    elif pending:
        figures = _bootstrap([coefficients[number] for number in pending], len(codes), n_boot, seed)
        for number, samples in zip(pending, figures, strict=True):
            kept = np.append(samples[~np.isnan(samples)], rows[number]["estimate"])  # never none at all
            tail = (1 - level) / 2
            lower, upper = np.quantile(kept, [tail, 1 - tail])
            rows[number] |= {"lower": float(lower), "upper": float(upper), "interval": "bootstrap"}
        fewest = min(int((rater >= 0).sum() - np.bincount(rater[rater >= 0]).max()) for rater in codes.T)
        if fewest < _RARE:
            notices.append(
                f"a rater gave only {fewest} labels besides the most common one: resampled intervals may be too narrow"
            )
    if any(row["estimate"] is None for row in rows):
        notices.append("some statistics are undefined: the labels do not vary, so chance explains them all")
    return rows, notices


def cell_codes(q: int) -> Ints:
    """One unit for every cell of the table of two raters, in the order of the cells."""
    return np.stack(np.divmod(np.arange(q * q, dtype=np.int64), q), axis=1)


def dirichlet_ends(
    cells: Sequence[Coefficient], table: Ints, level: float, seed: int | None
) -> list[tuple[float, float]]:
    """Of coefficients of one unit for each cell, both ends of the interval by the table of two raters."""
    from scipy.special import stdtrit

    total = float(table.sum())
    n_cells = len(table)
    q = math.isqrt(n_cells)
    rng = generator(seed)
    one_unit = rng.standard_gamma(table + 1 / n_cells, (_DRAWS, n_cells))
    two_units = one_unit + rng.standard_gamma(1 / n_cells, (_DRAWS, n_cells))
    agreeing = one_unit.copy()
    agreeing[:, :: q + 1] += rng.standard_gamma(1 / q - 1 / n_cells, (_DRAWS, q))
    tail = NormalDist().cdf(-float(stdtrit(total - 1, (1 + level) / 2)))
    ends = []
    for coefficient in cells:
        quantiles = []
        for drawn in (one_unit, two_units, agreeing):
            figures = coefficient.of(total * drawn / drawn.sum(axis=1, keepdims=True))
            quantiles.append(np.nanquantile(figures, [tail, 1 - tail]))
        ends.append((float(np.min(quantiles)), float(np.max(quantiles))))
    return ends


def _bootstrap(coefficients: Sequence[Coefficient], n_units: int, n_boot: int, seed: int | None) -> Floats:
    """The figures of units drawn with replacement, one row per coefficient."""
    rng = generator(seed)
    even = np.full(n_units, 1 / n_units)
    block = max(1, _BLOCK // n_units)
    figures = []
    for start in range(0, n_boot, block):
        drawn = rng.multinomial(n_units, even, min(block, n_boot - start)).astype(np.float64)
        figures.append([coefficient.of(drawn) for coefficient in coefficients])
    return np.concatenate(figures, axis=1)
