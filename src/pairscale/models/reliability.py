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

from pairscale.core.arrays import Ints
from pairscale.core.columns import judge_column
from pairscale.core.comparisons import as_comparisons, decided
from pairscale.core.display import ReprMixin
from pairscale.core.errors import FitError, InputError, TableError
from pairscale.core.notices import notice, plural, without_notices
from pairscale.core.options import checked, require_choice, require_int, require_number, require_seed
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.results import Results
from pairscale.core.tables import Table, listed, require_ids
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.pairing.edges import linked_groups, numbered

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats

__all__ = [
    "ScaleSeparation",
    "SplitBy",
    "SplitHalf",
    "eap_reliability",
    "scale_separation_reliability",
    "spearman_brown",
    "split_half_reliability",
]

SplitBy = Literal["judge", "comparison"]
"""What is split into two halves."""

_FEWEST = 3  # two points always lie on a line
_SAME_THETA = 1e-9


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
    scores, errors = _numbers(theta, "theta"), _numbers(se, "se")
    if scores.ndim != 1 or scores.shape != errors.shape:
        raise InputError(f"theta and se must be two lists of one length; they are {scores.shape} and {errors.shape}")
    if not (errors > 0).all():
        raise InputError("a standard error is not above 0")
    variance, error = _variance(scores, "theta"), float(np.mean(np.square(errors)))
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
    means = _numbers(theta, "theta")
    if sds is None:
        if means.ndim != 2 or len(means) < 2:
            raise InputError(f"draws must have a row per draw and a column per item; theta is of shape {means.shape}")
        means, unknown = means.mean(axis=0), float(means.var(axis=0, ddof=1).mean())
    else:
        deviations = _numbers(sds, "sds")
        if means.ndim != 1 or means.shape != deviations.shape:
            raise InputError(f"theta and sds must be of one length; they are {means.shape} and {deviations.shape}")
        if not (deviations >= 0).all():
            raise InputError("a standard deviation is below 0")
        unknown = float(np.mean(np.square(deviations)))
    known = _variance(means, "theta", equal_is_fine=unknown > 0)
    return known / (known + unknown)


def spearman_brown(reliability: float, factor: float = 2.0) -> float:
    """What a reliability becomes when there is ``factor`` times as much data of the same kind.

    ``factor r / (1 + (factor - 1) r)``; the default steps a correlation of two halves up to the whole.

    Raises:
        InputError: when ``reliability`` is not above -1 and at most 1, or ``factor`` not at least 1.

    Example:
        >>> round(spearman_brown(0.6), 3)
        0.75
    """
    reliability = require_number(reliability, "reliability", above=-1, most=1)
    factor = require_number(factor, "factor", least=1)
    below = 1 + (factor - 1) * reliability
    if below <= 0:
        raise InputError(f"a reliability of {reliability} cannot be stepped up {factor} times")
    return factor * reliability / below


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
        unconnected: splits that could not be used, because the comparisons of a half fall into parts.
        too_few: splits that could not be used, because fewer than three items were in both halves, or a half gave
            them all one score.
        unfitted: splits that could not be used, because the engine has no estimate for a half (``mle`` has none where
            an item won or lost everything).
        by: what was split.
        engine: the engine that fitted the halves.
        notices: what was left out, and what the fits of the halves said.
        provenance: how to get the same again.
    """

    correlation: float
    lower: float
    upper: float
    full: float | None
    splits: pl.DataFrame
    unconnected: int
    too_few: int
    unfitted: int
    by: SplitBy
    engine: str
    notices: tuple[str, ...]
    provenance: Provenance

    def __str__(self) -> str:
        full = "" if self.full is None else f"; stepped up to the whole data {self.full:.3f}"
        return (
            f"correlation {self.correlation:.3f}, {self.lower:.3f} to {self.upper:.3f}, of halves by {self.by} "
            f"in {plural(self.splits.height, 'split')}{full}"
        )


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
    whose comparisons fall into parts is left out and counted, for its scores share no scale; so is one with a half for
    which the engine has no estimate.

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
    splits, number = require_int(splits, "splits", least=1), require_seed(seed)
    seed = secrets.randbits(48) if number is None else number
    results = as_comparisons(data, "data")
    frame, notices = decided(results)
    if frame.is_empty():
        raise FitError(f"none of the {results.height:,} rows of data has a winner: there is nothing to split")
    unit = _judges(frame, judge) if by == "judge" else np.arange(frame.height)
    n_units = int(unit.max()) + 1
    if n_units < 2:
        raise FitError(f"there is only one {by}: nothing to split" + (' (by="comparison" may do)' * (by == "judge")))

    rows = []
    unconnected = 0
    too_few = 0
    failed: list[str] = []
    heard: list[str] = []
    games = frame.select("ID1", "ID2", "better_id")
    for split in range(splits):
        first = np.zeros(n_units, dtype=bool)
        first[np.random.default_rng([seed, split]).permutation(n_units)[: n_units // 2]] = True
        halves = [games.filter(pl.Series(first[unit] == side)) for side in (True, False)]
        if not all(_is_connected(half) for half in halves):
            unconnected += 1
            continue
        try:
            with without_notices():  # hundreds of fits would say the same hundreds of times
                one, two = (fit_bt_model(Results(half), engine=engine) for half in halves)
        except FitError as error:
            failed.append(str(error))
            continue
        heard += [*one.notices, *two.notices]
        agreement = _agreement(one.theta.join(two.theta, on="ID", suffix="_2"))
        if agreement is None:
            too_few += 1
        else:
            rows.append({"split": split + 1, **agreement})
    notices += _say_splits(splits, unconnected, too_few, failed, heard)
    if not rows:
        more = f", {len(failed):,} a half that engine {engine!r} cannot fit (the first: {failed[0]})" if failed else ""
        raise FitError(
            f"none of the {splits:,} splits could be used: {unconnected:,} had a half that falls into parts, "
            f"{too_few:,} fewer than {_FEWEST} items with different scores in both halves{more}; more comparisons are "
            "needed"
        )
    table = pl.DataFrame(rows, schema=_SPLITS)
    lower, median, upper = (float(x) for x in np.quantile(table["correlation"], [0.025, 0.5, 0.975]))
    return SplitHalf(
        correlation=median,
        lower=lower,
        upper=upper,
        full=spearman_brown(median) if median > -1 else None,
        splits=table,
        unconnected=unconnected,
        too_few=too_few,
        unfitted=len(failed),
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


_SPLITS = {
    "split": pl.Int64(),
    "correlation": pl.Float64(),
    "items": pl.Int64(),
    "separation_1": pl.Float64(),
    "separation_2": pl.Float64(),
}


def _judges(frame: pl.DataFrame, judge: str | None) -> Ints:
    """Who judged each row, as a number."""
    name = judge_column(frame) if judge is None else judge
    if name is None:
        raise TableError(
            f"data: no column 'judge_id' or 'judge' says who judged; it has {listed(frame.columns, 20)}. Name it with "
            '`judge=`, or split by="comparison"'
        )
    column = require_ids(frame, [name], "data")[name]
    return numbered(column, column.unique().sort())


def _is_connected(half: pl.DataFrame) -> bool:
    ids = pl.concat([half["ID1"], half["ID2"]]).unique()
    return len(linked_groups(numbered(half["ID1"], ids), numbered(half["ID2"], ids), len(ids))) == 1


def _agreement(both: pl.DataFrame) -> dict[str, float] | None:
    """What two halves say of the items of both; nothing when that is too little."""
    one, two, se_one, se_two = (both[name].to_numpy() for name in ("theta", "theta_2", "se", "se_2"))
    if len(one) < _FEWEST or min(np.ptp(one), np.ptp(two)) <= _SAME_THETA:
        return None
    return {
        "correlation": float(np.clip(np.corrcoef(one, two)[0, 1], -1, 1)),
        "items": len(one),
        "separation_1": scale_separation_reliability(one, se_one).separation,
        "separation_2": scale_separation_reliability(two, se_two).separation,
    }


def _say_splits(splits: int, unconnected: int, too_few: int, failed: list[str], heard: list[str]) -> list[str]:
    said = []
    if unconnected:
        said.append(notice(f"left out {unconnected:,} of {splits:,} splits: the comparisons of a half fall into parts"))
    if too_few:
        said.append(notice(f"left out {too_few:,} of {splits:,} splits: too few items with scores in both halves"))
    if failed:
        what = f"{len(failed):,} of {splits:,} splits: the engine has no estimate for a half"
        said.append(notice(f"left out {what}, the first time because {failed[0]}"))
    if heard:
        fits = 2 * (splits - unconnected)
        said.append(notice(f"{len(heard):,} notices from the {fits:,} fits of halves, the first: {heard[0]}"))
    return said


def _numbers(values: npt.ArrayLike, name: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"a number of {name} is missing or not finite")
    return numbers


def _variance(scores: Floats, name: str, *, equal_is_fine: bool = False) -> float:
    if len(scores) < 2:
        raise InputError(f"{name} needs at least two items; it has {len(scores)}")
    if np.ptp(scores) == 0 and not equal_is_fine:
        raise InputError(f"all of {name} are equal: there is no spread that could be reliable")
    return float(np.var(scores, ddof=1))
