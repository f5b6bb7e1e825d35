"""The scale of a judge, with its uncertainty, from a run file, results or a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import without_notices
from pairscale.models.bayes.fit import BTLFit
from pairscale.models.bayes.results import BayesFit
from pairscale.models.fitting import fit
from pairscale.store.reading import Comparisons, read_comparisons
from pairscale.validity.scale import JudgeScale


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The judge's scale, who the judge is, and the texts."""

    scale: JudgeScale
    names: list[str]
    samples: pl.DataFrame | None


def judged(run: Any, condition: str | None) -> Judged:
    """The scale of a run file, what ``rank`` returns, results, or a Bayesian fit.

    Raises:
        InputError: If there are scores without their uncertainty.
    """
    if isinstance(run, BayesFit | BTLFit):
        fitted = run.fit if isinstance(run, BayesFit) else run
        return Judged(JudgeScale(fitted.posterior.ids, fitted.posterior.theta), [], None)
    if hasattr(run, "engine") or hasattr(run, "elo"):
        raise InputError(
            "these are scores without a posterior; give the results themselves, or `pairscale.fit(results, "
            "model='bayes')` of them",
            argument="run",
        )
    return judged_by(read_comparisons(run, condition, aloud=False))


def judged_by(comparisons: Comparisons) -> Judged:
    """The scale of comparisons, fitted by the normal approximation."""
    names = judge_names(comparisons.table)
    with without_notices():
        fitted = cast("BayesFit", fit(cast("Any", comparisons), "bayes", engine="laplace")).fit
    return Judged(JudgeScale(fitted.posterior.ids, fitted.posterior.theta), names, comparisons.samples)


def judge_names(table: pl.DataFrame) -> list[str]:
    """Who judged, as far as a table of comparisons says."""
    for name in ("judge_id", "judge", "model"):
        if name in table.columns:
            return sorted(table[name].drop_nulls().cast(pl.String).unique().to_list())
    return []
