"""What comparisons are worth as evidence: repeats of a pair, copies of rows, and pairs that were chosen adaptively."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from pairscale.core.comparisons import AS_NEW, say_copies, says_who_stood_first
from pairscale.core.notices import notice
from pairscale.models.bayes.model import JudgeParameters, count_outcomes
from pairscale.models.bayes.repeats import RepeatAgreement, repeat_agreement, repeat_weights
from pairscale.models.bayes.settings import Repeats, require_repeats

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models._counts import Decided
    from pairscale.models._engines import FitEngine

__all__ = ["Chosen", "say_chosen", "say_copies_of", "weigh_evidence"]

Chosen = Literal["beforehand", "adaptive"]
"""How the pairs were chosen: independently of the answers, or by what earlier answers said."""


def weigh_evidence(decided: Decided, repeats: Repeats) -> tuple[Decided, RepeatAgreement | None]:
    """The comparisons with each repeat weighed for what it adds, and how far repeats agree; None when independent."""
    if require_repeats(repeats) == "independent":
        return decided, None
    apart = decided.first != decided.second
    first, second, result = _compared(decided, apart)
    first_won = pl.Series(result == 1).set(pl.Series(result == 0.5), None)
    model = JudgeParameters(lapse=True, position=says_who_stood_first(decided.table))
    times = None if decided.times is None else decided.times[apart]
    cells = count_outcomes(first, second, first_won, len(decided.ids), position=model.position, times=times)
    found = repeat_agreement(first, second, first_won, cells, model, repeats, times)
    share = np.ones(len(apart))
    share[apart] = repeat_weights(first, second, len(decided.ids), found.rho, times)
    weight = share if decided.weight is None else decided.weight * share
    return replace(decided, weight=weight), found


def say_copies_of(decided: Decided, agreement: RepeatAgreement | None) -> list[str]:
    """Say how many rows repeat others, and how they are counted; without an agreement, each counts as new evidence."""
    if decided.times is not None:
        return []
    apart = decided.first != decided.second
    first, second, result = _compared(decided, apart)
    better = np.where(result == 0.5, -1, np.where(result == 1, first, second))
    counted = AS_NEW
    if agreement is not None:
        share = repeat_weights(first, second, len(decided.ids), agreement.rho, None)
        counted = f"the {len(first):,} comparisons count as {share.sum():,.0f}"
    rows = decided.table.filter(apart).with_columns(ID1=first, ID2=second, better_id=better)
    return say_copies(rows, counted)


def _compared(decided: Decided, apart: npt.NDArray[np.bool_]) -> tuple[Ints, Ints, Floats]:
    """The comparisons of two different items."""
    return decided.first[apart].astype(np.int64), decided.second[apart].astype(np.int64), decided.result[apart]


def say_chosen(chosen: Chosen, engine: FitEngine) -> list[str]:
    """That intervals of this engine do not cover on pairs that were chosen adaptively."""
    if chosen == "beforehand":
        return []
    why = "are too narrow: 95 % ones covered 65 to 92 % in simulations, and less when the judge repeats itself"
    if engine.name == "map":
        why = "cover only if the scores spread as prior_sd says and the judge does not repeat itself"
    return [
        notice(
            f"the pairs were chosen by what earlier answers said, and there the intervals of engine {engine.name!r} "
            f'{why}. Use model="bayes", or engine="map" with prior_sd="learned" and repeats="learned"'
        )
    ]
