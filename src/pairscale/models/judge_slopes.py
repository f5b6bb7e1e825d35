"""Several judges, one scale: a slope and a position effect per judge, and which judges are weak.

``logit P(first beats second | judge k) = a_k (theta_first - theta_second) + b_k``, where the mean of ``a_k`` over all
comparisons is 1. A judge with a slope of 0 says nothing about the texts, and one below 0 prefers the worse text. See
:mod:`pairscale.models._slopes` for the priors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from scipy.special import expit

from pairscale._version import __version__
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.models._logit_density import Whitened
from pairscale.models._sampling import sampled, whitened
from pairscale.models._sampling_bar import SamplingBar
from pairscale.models._slopes import Judged, SlopeDensity, slope_center
from pairscale.models._ties import NODES, tie_dispersion
from pairscale.models.bayes import BTLFit, fit_btl
from pairscale.models.diagnostics import Diagnostics, DiagnosticsGate
from pairscale.models.posterior import Posterior
from pairscale.models.repeats import RepeatAgreement, agreement_by_judge, repeat_weights, repeats_per_item
from pairscale.models.sampling import MCMCSettings, Repeats, Variant
from pairscale.pairing.edges import linked_groups, numbered
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.core.arrays import Floats, Ints

__all__ = ["MOST_ITEMS", "WEAK_SLOPE", "SlopesFit", "fit_panel", "fit_slopes", "weak_words"]

WEAK_SLOPE = 1 / 3
"""A judge whose slope is estimated below this share of the mean slope is weak."""
MOST_ITEMS = 1500
"""The sampler's coordinates are a dense matrix."""
_START_SD = 0.2  # of t, before draws say how wide it is


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SlopesFit(ReprMixin):
    """One fit with a slope and a position effect per judge.

    Attributes:
        posterior: draws of theta (centred, in the logits of an average judge); its b is the mean over comparisons.
        judges: ``judge_id n slope lower upper position position_lower position_upper weak``, highest slope first.
        diagnostics: R-hat, effective sample size, and whether they pass.
        model_variant: ``btl`` or ``btl_b``; slopes take the place of lapses.
        n_comparisons: how many comparisons it was fitted to.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it stood first.
        pos_count_B: per item, in how many of them it stood second.
        repeated_pairs: per item, how many of them repeat a pair.
        n_unique_pairs: how many different pairs were compared.
        prior_sd: draws of the standard deviation of the scores' prior.
        slopes: draws of the slopes, one column per judge, in the order of ``judges``.
        repeat_agreement: how far repeats of a pair by the same judge agree, and how they were counted.
        notices: what to be careful with.
        provenance: how to get the same again.
        engine: what made it, for the log.
    """

    posterior: Posterior
    judges: pl.DataFrame
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    degree: Ints
    pos_count_A: Ints
    pos_count_B: Ints
    repeated_pairs: Ints
    n_unique_pairs: int
    prior_sd: Floats
    slopes: Floats
    repeat_agreement: RepeatAgreement
    notices: tuple[str, ...]
    provenance: Provenance
    engine: str = f"pairscale {__version__} judge slopes"

    def __repr__(self) -> str:
        weak = int(self.judges["weak"].sum())
        return (
            f"<SlopesFit {self.model_variant}: {self.posterior.n_items:,} items, {self.n_comparisons:,} comparisons, "
            f"{self.judges.height:,} judges, {weak:,} weak>"
        )


def fit_slopes(
    rows: pl.DataFrame,
    ids: Sequence[str],
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    position: bool = True,
    repeats: Repeats = "learned",
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    progress: ProgressMode = False,
    aloud: bool = True,
) -> SlopesFit:
    """Fit once, with draws from the exact posterior.

    Args:
        rows: ``ID1 ID2 better_id judge_id``; a missing ``better_id`` is a tie, half a win for each.
        ids: all items.
        settings: how to sample.
        seed: of the draws.
        position: whether each judge has a position effect.
        repeats: how to count repeats of a pair by the same judge, as in :func:`pairscale.models.bayes.fit_btl`.
        near_stop: require the stricter effective sample size.
        gate: other limits than the default ones.
        progress: show a bar when standard error is a terminal.
        aloud: say by a notice what to be careful with.

    Raises:
        InputError: when there are fewer than two judges, or too many items.
    """
    settings = settings or MCMCSettings()
    names = pl.Series(list(ids), dtype=pl.String)
    who = rows["judge_id"].unique().sort()
    if len(who) < 2:
        raise InputError(f"judges='slopes' compares judges, and all answers are of {who[0]!r}; leave it out")
    if len(names) > MOST_ITEMS:
        raise InputError(f"judges='slopes' is for up to {MOST_ITEMS:,} texts, and these are {len(names):,}")
    answers, agreement = _counted(rows, names, who, repeats, position=position)
    density = SlopeDensity(answers, position=position)
    center = slope_center(density).x
    factor = density.factor(center)
    rng = generator(seed)
    with SamplingBar(settings.iter_warmup + settings.iter_sampling, show=progress) as tick:
        root = np.zeros((density.size, density.size))
        root[:-1, :-1], root[-1, -1] = np.linalg.inv(factor).T, _START_SD
        begun = whitened(
            Whitened(density, center, root, 0.0), lambda draws: Whitened.of_linear_draws(density, factor, draws), 100,
            settings, rng, tick, "judges='pooled'",
        )  # fmt: skip
        drawn = sampled(begun, settings, near_stop, gate, tick)
    fit = _result(rows, names, who, answers, density, drawn.draws, drawn.diagnostics, agreement, repeats, seed, aloud)
    said = (notice(text) if aloud else text for text in begun.fallbacks)
    return replace(fit, notices=(*fit.notices, *said))


def fit_panel(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = "learned",
    warm: Any = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    repeats: Repeats = "learned",
) -> SlopesFit | BTLFit:
    """Fit the answers of a panel once; takes what :func:`pairscale.models.bayes.fit_btl` takes.

    Slopes take the place of lapses. Before two judges have answered, it is the fit without slopes. There is no faster
    approximation: with slopes, the mode is far from the mass of the posterior, and the sampler takes about a second.
    """
    if rows["judge_id"].n_unique() < 2:
        return fit_btl(
            rows.drop("judge_id"), ids, model_variant, settings, seed, prior_sd=prior_sd, near_stop=near_stop,
            gate=gate, repeats=repeats,
        )  # fmt: skip
    del warm
    position = model_variant.endswith("_b")
    return fit_slopes(
        rows, ids, settings, seed, position=position, repeats=repeats, near_stop=near_stop, gate=gate,
        aloud=False,
    )  # fmt: skip


def _counted(
    rows: pl.DataFrame, names: pl.Series, who: pl.Series, repeats: Repeats, *, position: bool
) -> tuple[Judged, RepeatAgreement]:
    """The comparisons, each repeat and tie for as much evidence as it is, and how far repeats agree."""
    first, second = numbered(rows["ID1"], names), numbered(rows["ID2"], names)
    judge = numbered(rows["judge_id"], who)
    first_won = rows["better_id"] == rows["ID1"]
    result = first_won.cast(pl.Float64).fill_null(0.5).to_numpy()
    n = len(names)
    answers = Judged(first, second, judge, result, np.ones(len(first)), n, len(who))

    def weighed(rho: float) -> Judged:
        size = n * len(who)
        return replace(answers, times=repeat_weights(judge * n + first, judge * n + second, size, rho))

    def logits(rho: float) -> tuple[Floats, Floats]:
        found = slope_center(SlopeDensity(weighed(rho), position=position))
        return found.logit, found.variance

    agreement = agreement_by_judge(first, second, judge, first_won, n, repeats, logits)
    counted = weighed(agreement.rho)

    def chances(phi: float) -> Floats:
        found = slope_center(SlopeDensity(replace(counted, times=counted.times / phi), position=position))
        return np.asarray(expit(found.logit[:, None] + np.sqrt(found.variance)[:, None] * NODES))

    phi = tie_dispersion(counted.times, first_won.null_count(), len(first), chances)
    return replace(counted, times=counted.times / phi), agreement


def _result(
    rows: pl.DataFrame, names: pl.Series, who: pl.Series, answers: Judged, density: SlopeDensity, draws: Floats,
    diagnostics: Diagnostics, agreement: RepeatAgreement, repeats: Repeats, seed: int | None, aloud: bool,
) -> SlopesFit:  # fmt: skip
    """Everything in the unit of the mean slope."""
    n = len(names)
    slopes = 1 + draws[:, :, density.of_alpha] @ density.basis.T
    spread = np.exp(draws[:, :, density.row["t"]])
    effects = draws[:, :, density.of_b] if density.position else None
    b = None if effects is None else effects @ answers.share
    posterior = Posterior.from_chains(tuple(names), draws[:, :, :n] * spread[:, :, None], None, b, diagnostics)
    table = _judges(who, answers, slopes, effects)
    weak = table.filter("weak")["judge_id"].to_list()
    said = []
    if weak:
        said.append(weak_words(weak))
    if len([group for group in linked_groups(answers.first, answers.second, n) if len(group) > 1]) > 1:
        said.append("there are groups that were never compared; only the prior says how far apart they are")
    columns = (answers.first, answers.second, answers.judge, answers.result, answers.times)
    digest = sha256(b"".join(np.ascontiguousarray(one, dtype="<f8").tobytes() for one in columns)).hexdigest()
    pos_A, pos_B = np.bincount(answers.first, minlength=n), np.bincount(answers.second, minlength=n)
    low, high = np.minimum(answers.first, answers.second), np.maximum(answers.first, answers.second)
    variant = "btl_b" if density.position else "btl"
    options = {"model_variant": variant, "prior_sd": "learned", "repeats": repeats, "judges": "slopes"}
    return SlopesFit(
        posterior=posterior,
        judges=table,
        diagnostics=diagnostics,
        model_variant=variant,
        n_comparisons=rows.height,
        degree=pos_A + pos_B,
        pos_count_A=pos_A,
        pos_count_B=pos_B,
        repeated_pairs=repeats_per_item(answers.first, answers.second, n),
        n_unique_pairs=len(np.unique(low * n + high)),
        prior_sd=spread.ravel(),
        slopes=slopes.reshape(-1, len(who))[:, numbered(table["judge_id"], who)],
        repeat_agreement=agreement,
        notices=tuple(notice(text) if aloud else text for text in said),
        provenance=Provenance("lock-step HMC", options, seed, {"comparisons": digest[:16]}),
    )


def weak_words(weak: Sequence[str]) -> str:
    """Who is weak, and what that means."""
    verb = "is a weak judge" if len(weak) == 1 else "are weak judges"
    return f"{listed(list(weak), 10)} {verb}: a slope below a third of the mean slope says little about the texts"


def _judges(who: pl.Series, answers: Judged, slopes: Floats, effects: Floats | None) -> pl.DataFrame:
    """The table of the judges; slopes and effects are (draws, chains, judges)."""
    levels = (0.025, 0.5, 0.975)
    low, middle, high = np.quantile(slopes, levels, axis=(0, 1))
    missing = [None] * len(who)
    ends = (missing, missing, missing) if effects is None else np.quantile(effects, levels, axis=(0, 1))
    numbers = {
        "slope": middle, "lower": low, "upper": high, "position": ends[1], "position_lower": ends[0],
        "position_upper": ends[2],
    }  # fmt: skip
    table = pl.DataFrame(
        {"judge_id": who, "n": np.bincount(answers.judge, minlength=len(who)), **numbers},
        schema_overrides=dict.fromkeys(numbers, pl.Float64),
    )
    return table.with_columns(weak=pl.col("slope") < WEAK_SLOPE).sort("slope", "judge_id", descending=[True, False])
