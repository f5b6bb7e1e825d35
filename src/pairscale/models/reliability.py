"""How reliable scores are: from their standard errors, from a posterior, or by fitting two halves of the data.

Scale separation (SSR) and EAP reliability ask the model how much of the spread of the scores is not error; they trust
the model, and that judges agree. Split halves ask the data: fitted on half of the judges each, how well do two sets of
scores agree? Kinnear, Jones & Davies (2025, doi 10.31219/osf.io/c9q3b) give both for 101 sessions.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from pairscale.core.columns import judge_column
from pairscale.core.comparisons import as_comparisons, decided
from pairscale.core.display import ReprMixin
from pairscale.core.errors import FitError, InputError, TableError
from pairscale.core.notices import notice, plural, without_notices
from pairscale.core.options import checked, require_choice, require_int, require_seed
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.results import Results
from pairscale.core.tables import Table, listed, require_ids
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.models.correlations import pearson

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats

__all__ = [
    "ScaleSeparation",
    "SplitBy",
    "SplitHalf",
    "eap_reliability",
    "scale_separation_reliability",
    "split_half_reliability",
]

SplitBy = Literal["judge", "comparison"]
"""What is split into two halves."""

_FEWEST = 3  # two points always lie on a line
_SAME_THETA = 1e-9
_SPLITS = {
    "split": pl.Int64(),
    "correlation": pl.Float64(),
    "items": pl.Int64(),
    "separation_1": pl.Float64(),
    "separation_2": pl.Float64(),
}


@dataclass(frozen=True, slots=True, repr=False)
class ScaleSeparation(ReprMixin):
    """How far scores are apart, measured in their standard errors.

    Attributes:
        ssr: scale separation reliability, ``1 - mean(se²) / var(theta)``; below 0 when the scores differ less than
            their errors would make them.
        separation: ``sd(theta) / sqrt(mean(se²))``, the separation index that sirt and the published figures give
            (``sepG``): of the observed scores, so that ``ssr = 1 - 1 / separation²``.
        true_separation: ``sqrt(ssr / (1 - ssr))``, the index of the Rasch literature, of the scores without their
            error; 0 when ``ssr`` is not above 0.
    """

    ssr: float
    separation: float
    true_separation: float

    def __str__(self) -> str:
        return f"reliability {self.ssr:.3f}, separation {self.separation:.2f}, without error {self.true_separation:.2f}"


def scale_separation_reliability(theta: npt.ArrayLike, se: npt.ArrayLike) -> ScaleSeparation:
    """The share of the variance of scores that is not error, from the scores and their standard errors.

    ``SSR = 1 - mean(se²) / var(theta)``, with the sample variance, as ``mle.rel`` of R's ``sirt::btm``.

    Args:
        theta: the scores, one per item.
        se: their standard errors, above 0.

    Raises:
        InputError: when there are fewer than two scores, they are all equal, or a number cannot be used.

    Example:
        >>> round(scale_separation_reliability([-1, 0, 1], [0.5, 0.5, 0.5]).ssr, 2)
        0.75
    """
    scores = _numbers(theta)
    errors = _numbers(se)
    if scores.ndim != 1 or scores.shape != errors.shape or not (errors > 0).all():
        raise InputError("theta and se must be two lists of one length, with standard errors above 0")
    variance = _variance(scores)
    if not variance:
        raise InputError("all of theta are equal: there is no spread that could be reliable")
    error = float(np.mean(np.square(errors)))
    ssr = 1 - error / variance
    return ScaleSeparation(
        ssr=ssr,
        separation=float(np.sqrt(variance / error)),
        true_separation=float(np.sqrt(max(variance / error - 1, 0.0))),
    )


def eap_reliability(theta: npt.ArrayLike, sds: npt.ArrayLike | None = None) -> float:
    """The share of the variance of true scores that a posterior knows, from its draws or its means and deviations.

    ``Var(E[theta_i]) / (Var(E[theta_i]) + mean(Var(theta_i)))``, with sample variances.

    Args:
        theta: the draws, one row per draw and one column per item; or, with ``sds``, the posterior means, one per item.
        sds: the posterior standard deviations, one per item.

    Raises:
        InputError: when there are fewer than two items or draws, all is equal, or a number cannot be used.

    Example:
        >>> eap_reliability([-1, 0, 1], [0.5, 0.5, 0.5])
        0.8
    """
    means = _numbers(theta)
    if sds is None:
        if means.ndim != 2 or len(means) < 2:
            raise InputError(f"draws must have a row per draw and a column per item; theta is of shape {means.shape}")
        unknown = float(means.var(axis=0, ddof=1).mean())
        means = means.mean(axis=0)
    else:
        deviations = _numbers(sds)
        if means.ndim != 1 or means.shape != deviations.shape or not (deviations >= 0).all():
            raise InputError("theta and sds must be two lists of one length, with no standard deviation below 0")
        unknown = float(np.mean(np.square(deviations)))
    known = _variance(means)
    if known + unknown == 0:
        raise InputError("all of theta are equal and certain: there is no spread that could be reliable")
    return known / (known + unknown)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SplitHalf(ReprMixin, table="splits"):
    """How well the scores of two random halves agree.

    Attributes:
        correlation: the median over splits of the correlation (Pearson) of the two halves' scores. With halves of
            judges it says how well two such groups of half the size agree.
        lower: the 2.5th percentile over splits.
        upper: the 97.5th percentile over splits.
        full: ``correlation`` stepped up to the whole data by the Spearman-Brown formula; None when it is not above -1.
        splits: one row per split that could be used: ``split``, ``correlation``, ``items`` (those that both halves
            scored), ``separation_1``, ``separation_2`` (sd(theta) / sqrt(mean(se²)) of these items in each half).
        left_out: splits that could not be used: a half has no estimate (its comparisons fall into parts, say), or fewer
            than three items are in both.
        by: what was split.
        engine: the engine that fitted the halves.
        notices: what was left out.
        provenance: how to get the same again.
    """

    correlation: float
    lower: float
    upper: float
    full: float | None
    splits: pl.DataFrame
    left_out: int
    by: SplitBy
    engine: str
    notices: tuple[str, ...]
    provenance: Provenance

    def __str__(self) -> str:
        return f"correlation {self.correlation:.3f} of halves by {self.by} in {plural(self.splits.height, 'split')}"


@checked
def split_half_reliability(
    data: Table,
    *,
    by: SplitBy = "judge",
    splits: int = 100,
    seed: int | None = None,
    engine: str = "sirt",
    judge: str | None = None,
) -> SplitHalf:
    """Fit random halves of the data apart and correlate their scores, as Kinnear, Jones & Davies (2025) do.

    Half of the judges (rounded down), drawn at random, are one half of the data, and the rest are the other; with
    ``by="comparison"`` it is half of the comparisons, which leaves out what judges disagree about and so gives more.
    Each half is fitted by :func:`pairscale.fit_bt_model`; items that both scored are correlated. A split with a half
    that has no estimate is left out and counted.

    Args:
        data: results of any shape that :func:`pairscale.build_bt_data` takes; ties and rows without a winner are left
            out, and said.
        by: ``judge`` or ``comparison``.
        splits: random splits.
        seed: makes it reproducible; without one, the one used is in the provenance.
        engine: of :func:`pairscale.fit_bt_model`.
        judge: the column that says who judged; without it ``judge_id``, else ``judge``.

    Raises:
        TableError: when the columns are of no known shape, or there is no column of judges.
        InputError: when an option is out of range.
        FitError: when there is only one judge (or comparison), or no split could be used.

    Example:
        >>> import pairscale as ps
        >>> split_half_reliability(ps.example_writing_results, by="comparison", splits=5, seed=1).splits.height
        5
    """
    require_choice(by, "by", get_args(SplitBy))
    splits = require_int(splits, "splits", least=1)
    given_seed = require_seed(seed)
    seed = secrets.randbits(48) if given_seed is None else given_seed
    frame, notices = decided(as_comparisons(data, "data"))
    unit = np.arange(frame.height) if by == "comparison" else _judges(frame, judge)
    n_units = len(np.unique(unit))
    if n_units < 2:
        raise FitError(f"there are fewer than two {by}s in comparisons with a winner: nothing to split")
    rows = []
    why = f"fewer than {_FEWEST} items with different scores in both halves"
    games = frame.select("ID1", "ID2", "better_id")
    for split in range(splits):
        first = np.zeros(n_units, dtype=bool)
        first[np.random.default_rng([seed, split]).permutation(n_units)[: n_units // 2]] = True
        halves = [games.filter(pl.Series(first[unit] == side)) for side in (True, False)]
        try:
            with without_notices():  # hundreds of fits would say the same hundreds of times
                fits = [fit_bt_model(Results(half), engine=engine).theta for half in halves]
        except FitError as error:
            why = str(error)
            continue
        agreement = _agreement(fits[0].join(fits[1], on="ID", suffix="_2"))
        if agreement is not None:
            rows.append({"split": split + 1, **agreement})
    left_out = splits - len(rows)
    if left_out:
        said = f"left out {left_out:,} of {splits:,} splits, the last one because of a half: {why}"
        if not rows:
            raise FitError(said)
        notices.append(notice(said))
    table = pl.DataFrame(rows, schema=_SPLITS)
    lower, median, upper = (float(x) for x in np.quantile(table["correlation"], [0.025, 0.5, 0.975]))
    return SplitHalf(
        correlation=median,
        lower=lower,
        upper=upper,
        full=2 * median / (1 + median) if median > -1 else None,
        splits=table,
        left_out=left_out,
        by=by,
        engine=engine,
        notices=tuple(notices),
        provenance=Provenance(
            method="split_half",
            settings={"by": by, "splits": splits, "engine": engine},
            seed=seed,
            inputs={"comparisons": fingerprint([games.rows(), unit.tolist()])},
        ),
    )


def _judges(frame: pl.DataFrame, judge: str | None) -> npt.NDArray[np.int64]:
    """Who judged each row, as a number."""
    name = judge or judge_column(frame)
    if name is None:
        raise TableError(
            f"data: no column 'judge_id' or 'judge' says who judged; it has {listed(frame.columns, 20)}. Name it with "
            '`judge=`, or split by="comparison"'
        )
    return np.unique(require_ids(frame, [name], "data")[name].to_numpy(), return_inverse=True)[1]


def _agreement(both: pl.DataFrame) -> dict[str, float] | None:
    """What two halves say of the items of both; nothing when that is too little."""
    one = both["theta"].to_numpy()
    two = both["theta_2"].to_numpy()
    if len(one) < _FEWEST or min(np.ptp(one), np.ptp(two)) <= _SAME_THETA:
        return None
    return {
        "correlation": pearson(one, two) or 0.0,
        "items": len(one),
        "separation_1": scale_separation_reliability(one, both["se"]).separation,
        "separation_2": scale_separation_reliability(two, both["se_2"]).separation,
    }


def _numbers(values: npt.ArrayLike) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores and their errors must be numbers") from None
    if not np.isfinite(numbers).all():
        raise InputError("a score or an error is missing or not finite")
    return numbers


def _variance(scores: Floats) -> float:
    if len(scores) < 2:
        raise InputError(f"a reliability needs at least two items; there are {len(scores)}")
    return float(np.var(scores, ddof=1)) if np.ptp(scores) else 0.0
