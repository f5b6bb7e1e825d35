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
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pairscale.checks.effect import wilson
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

LEAST_UNITS = 20
"""The fewest units with intervals: of fewer, these hold the truth less often than their level says, or say nothing."""

_RARE = 10  # labels besides the most common one, below which resampled intervals are too narrow
_BLOCK = 2**22  # numbers held at once while resampling
_DRAWS = 10_000  # of tables of two raters


Coefficient: TypeAlias = Callable[["Floats"], "Floats"]
"""A coefficient's figures for rows of weights of the units."""
Coefficients: TypeAlias = dict[tuple[str, str | None], Coefficient]
"""By name, and by how far apart two labels are where there are several ways to say it."""


def estimate_of(coefficient: Coefficient, n_units: int) -> float | None:
    """The figure of all units, each counted once; None where it is undefined."""
    value = float(coefficient(np.ones((1, n_units)))[0])
    return None if math.isnan(value) else value


def pair_coefficients(codes: Ints, numbers: Floats, metrics: Sequence[str]) -> Coefficients:
    """Percent agreement, and the kappas that the metrics of the labels allow."""
    weights = ["unweighted", "linear", "quadratic"] if "ordinal" in metrics else ["unweighted"]
    name = "cohen_kappa" if codes.shape[1] == 2 else "light_kappa"
    kappas: Coefficients = {(name, kind): kappa(codes, numbers, kind) for kind in weights}
    return {("percent_agreement", None): _percent(_counts(codes, numbers)), **kappas}


def _coefficients(codes: Ints, numbers: Floats, metrics: Sequence[str]) -> Coefficients:
    """All coefficients, percent agreement first and Gwet's AC1 last."""
    counts = _counts(codes, numbers)
    alphas: Coefficients = {
        ("krippendorff_alpha", metric): _krippendorff_alpha(counts, numbers, metric) for metric in metrics
    }
    return {**pair_coefficients(codes, numbers, metrics), **alphas, ("gwet_ac1", None): _gwet_ac1(counts)}


def _counts(codes: Ints, numbers: Floats) -> Ints:
    """How many raters gave each unit each label."""
    return np.stack([(codes == category).sum(axis=1) for category in range(len(numbers))], axis=1)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    is_zero = np.abs(denominator) < 1e-12
    return np.where(is_zero, np.nan, numerator / np.where(is_zero, 1.0, denominator))


def _percent(counts: Ints) -> Coefficient:
    """The share of agreeing pairs of raters, averaged over units."""
    raters = counts.sum(axis=1)
    several = raters >= 2
    agreeing = several * (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)
    return lambda drawn: _ratio(drawn @ agreeing, drawn @ several)


def _gwet_ac1(counts: Ints) -> Coefficient:
    """AC1: chance agreement from how evenly the labels are spread."""
    spread = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
    share = _percent(counts)

    def figures(drawn: Floats) -> Floats:
        means = drawn @ spread / drawn.sum(axis=1, keepdims=True)
        chance = _ratio((means * (1 - means)).sum(axis=1), np.array(counts.shape[1] - 1.0))
        return _ratio(share(drawn) - chance, 1 - chance)

    return figures


def kappa(codes: Ints, numbers: Floats, weights: str) -> Coefficient:
    """Cohen's kappa of two raters, on the units that both labelled; of more, its mean over pairs of raters."""
    q = len(numbers)
    kappas = []
    for first, second in combinations(codes.T, 2):
        both = (first >= 0) & (second >= 0)
        if both.any() or codes.shape[1] == 2:
            tables = np.zeros((len(codes), q * q))
            tables[both, first[both] * q + second[both]] = 1
            kappas.append(_beyond_chance(weights, tables, numbers, 0))
    return lambda drawn: np.mean([cohen_kappa(drawn) for cohen_kappa in kappas], axis=0)


def _krippendorff_alpha(counts: Ints, numbers: Floats, metric: str) -> Coefficient:
    """Krippendorff's alpha, from the coincidences of every two labels of a unit."""
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(numbers))
    tables = pairs.reshape(len(counts), -1) / np.maximum(raters - 1, 1)[:, None]
    return _beyond_chance(metric, tables, numbers, 1)


def _beyond_chance(weights: str, tables: Floats, numbers: Floats, taken: int) -> Coefficient:
    """1 less observed over expected disagreement in the table of two labels.

    Args:
        weights: how far apart two labels are.
        tables: of each unit, its cells.
        numbers: what each category counts.
        taken: labels that chance no longer draws from, when it draws the second of two.
    """
    q = len(numbers)
    difference = np.abs(numbers[:, None] - numbers)
    powers = {"linear": 1, "quadratic": 2, "interval": 2}
    fixed = (difference != 0) * difference ** powers.get(weights, 0)

    def figures(drawn: Floats) -> Floats:
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

    return figures


# Intervals.


def statistic_rows(
    codes: Ints, numbers: Floats, metrics: Sequence[str], n_boot: int, level: float, seed: int | None
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The coefficients with their intervals, as rows, and what to be careful with.

    Args:
        codes: units by raters: the number of each label among the categories, -1 where it is missing.
        numbers: what each category counts: its own number, or its place.
        metrics: by which labels differ: ``nominal``, ``ordinal`` where they have an order, ``interval`` of numbers.
        n_boot: resamples of the units; 0 for no intervals but Wilson's.
        level: of the intervals.
        seed: of what is drawn.
    """
    q = len(numbers)
    labels = (codes >= 0).sum(axis=1)
    n_units = int((labels >= 2).sum())
    coefficients = _coefficients(codes, numbers, metrics)
    estimates = {key: estimate_of(coefficient, len(codes)) for key, coefficient in coefficients.items()}
    share = estimates["percent_agreement", None]
    has_enough = n_boot > 0 and n_units >= LEAST_UNITS
    cells: Coefficients = {}
    if codes.shape[1] == 2 and has_enough:
        table = np.bincount(codes[labels == 2] @ [q, 1], minlength=q * q)
        cells = _coefficients(cell_codes(q), numbers, metrics)
        if labels.min() < 2:
            del cells["gwet_ac1", None]  # it rests on units with one label, too
    rows = []
    for key, estimate in estimates.items():
        ends: Sequence[float | None] = (None, None)
        interval = None
        if estimate is not None:
            if key[0] == "percent_agreement" and labels.max() == 2:
                interval = "wilson"
                ends = wilson(round(estimate * n_units), n_units, level)
            elif key in cells:
                interval = "dirichlet"
                drawn = [*dirichlet_ends(cells[key], table, level, seed), estimate]
                ends = (min(drawn), max(drawn))
            elif has_enough and share != 1:
                interval = "bootstrap"
                drawn = [*_bootstrap(coefficients[key], len(codes), n_boot, seed), estimate]  # never none at all
                tail = (1 - level) / 2
                ends = np.nanquantile(drawn, [tail, 1 - tail]).tolist()
        rows.append((*key, estimate, *ends, interval, n_units))
    kinds = {row[5] for row in rows if row[2] is not None}
    notices = []
    if n_boot and n_units < LEAST_UNITS and None in kinds:
        notices.append(f"no intervals: {n_units} units are too few, it takes {LEAST_UNITS}")
    elif n_boot and None in kinds:
        notices.append("all labels agree; resampling them cannot say how sure that is, so there is no interval")
    fewest = min(int((rater >= 0).sum() - np.bincount(rater[rater >= 0]).max()) for rater in codes.T)
    if "bootstrap" in kinds and fewest < _RARE:
        notices.append(
            f"a rater gave only {fewest} labels besides the most common one: resampled intervals may be too narrow"
        )
    if None in estimates.values():
        notices.append("some statistics are undefined: the labels do not vary, so chance explains them all")
    return rows, notices


def cell_codes(q: int) -> Ints:
    """One unit for every cell of the table of two raters, in the order of the cells."""
    return np.stack(np.divmod(np.arange(q * q, dtype=np.int64), q), axis=1)


def dirichlet_ends(cells: Coefficient, table: Ints, level: float, seed: int | None) -> list[float]:
    """Of a coefficient of one unit for each cell, the ends of the intervals by the table of two raters."""
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
    for drawn in (one_unit, two_units, agreeing):
        figures = cells(total * drawn / drawn.sum(axis=1, keepdims=True))
        ends += np.nanquantile(figures, [tail, 1 - tail]).tolist()
    return ends


def _bootstrap(coefficient: Coefficient, n_units: int, n_boot: int, seed: int | None) -> list[float]:
    """The figures of units drawn with replacement."""
    rng = generator(seed)
    even = np.full(n_units, 1 / n_units)
    block = max(1, _BLOCK // n_units)
    figures: list[float] = []
    for start in range(0, n_boot, block):
        drawn = rng.multinomial(n_units, even, min(block, n_boot - start))
        figures += coefficient(drawn.astype(np.float64)).tolist()
    return figures
