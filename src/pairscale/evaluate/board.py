"""Which variants of a ranking can be told apart: all differences at once, and groups without a shown difference.

The intervals of all differences hold together: with the scores' covariance C, the half-width of a difference is its
standard error times the quantile of the largest |difference| / standard error that N(0, C) gives (Tukey's way, for
scores that are neither independent nor equally certain). Two variants cannot be told apart when the interval of their
difference holds 0. A group is a set of variants of which no two can be told apart, and which no further one joins; a
variant may be in two groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from pairscale.models.bradley_terry import BTFit

__all__ = ["DIFFERENCES", "differences_of", "groups_of"]

DIFFERENCES = {
    "variant": pl.String(),
    "other": pl.String(),
    "difference": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "differ": pl.Boolean(),
}
"""The columns of the differences between variants."""

_DRAWS = 20_000


def differences_of(fit: BTFit, level: float, seed: int) -> pl.DataFrame:
    """The difference of the scores of every two variants, with intervals that hold for all of them at once.

    Args:
        fit: of the variants, with its covariance.
        level: of all intervals together.
        seed: of the draws for the quantile.

    Returns:
        One row for every two, the better first: ``variant other difference lower upper differ``.

    Raises:
        InputError: the fit has no covariance.
    """
    if fit.covariance is None:
        raise InputError("differences need a fit with covariance=True")
    names, scores = fit.theta["ID"].to_list(), fit.theta["theta"].to_numpy()
    pairs = list(combinations(range(len(names)), 2))
    one, two = (
        (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True)) if pairs else (np.zeros(0, int),) * 2
    )
    c = fit.covariance
    errors = np.sqrt(np.maximum(c[one, one] + c[two, two] - 2 * c[one, two], 0))
    values, vectors = np.linalg.eigh(c)  # it has no variance in the direction of the mean, so no Cholesky factor
    root = vectors * np.sqrt(np.maximum(values, 0))
    draws = np.random.default_rng(seed).standard_normal((_DRAWS, len(names))) @ root.T
    with np.errstate(invalid="ignore", divide="ignore"):
        largest = np.nan_to_num(np.abs(draws[:, one] - draws[:, two]) / errors).max(axis=1, initial=0)
    reach = float(np.quantile(largest, level)) * errors
    gaps = scores[one] - scores[two]
    rows = {
        "variant": [names[at] for at in one],
        "other": [names[at] for at in two],
        "difference": gaps,
        "lower": gaps - reach,
        "upper": gaps + reach,
        "differ": np.abs(gaps) > reach,
    }
    return pl.DataFrame(rows, schema=DIFFERENCES)


def groups_of(differences: pl.DataFrame, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The groups of variants that cannot be told apart, the best first; one alone is a group, too.

    Args:
        differences: see :func:`differences_of`.
        names: all variants, the best first.

    Example:
        >>> rows = [("x", "y", False), ("x", "z", True), ("y", "z", False)]
        >>> table = pl.DataFrame(rows, schema=["variant", "other", "differ"], orient="row")
        >>> groups_of(table, ["x", "y", "z"])
        [('x', 'y'), ('y', 'z')]
    """
    alike: dict[str, set[str]] = {name: set() for name in names}
    for one, two, differ in differences.select("variant", "other", "differ").iter_rows():
        if not differ:
            alike[one].add(two)
            alike[two].add(one)
    place = {name: at for at, name in enumerate(names)}
    found = [tuple(sorted(group, key=place.__getitem__)) for group in _cliques(set(), set(names), set(), alike)]
    return sorted(found, key=lambda group: [place[name] for name in group])


def _cliques(
    chosen: set[str], open_to: set[str], done: set[str], alike: dict[str, set[str]]
) -> Iterator[Iterable[str]]:
    """All largest sets of names that are alike in pairs (Bron and Kerbosch 1973, with a pivot)."""
    if not open_to and not done:
        yield chosen
        return
    pivot = max(open_to | done, key=lambda name: (len(alike[name] & open_to), name))
    for name in sorted(open_to - alike[pivot]):
        yield from _cliques(chosen | {name}, open_to & alike[name], done & alike[name], alike)
        open_to, done = open_to - {name}, done | {name}
