"""Bayesian Bradley–Terry–Luce: the whole posterior of the scores and of the judge's faults.

``P(A wins) = (1 - eps) logistic(theta_A - theta_B + b) + eps / 2`` with ``theta_raw ~ N(0, 1)``, theta centred in every
draw, a lapse rate ``eps ~ Beta(2, 20)`` and a position effect ``b ~ N(0, 0.3)``; the variants ``btl``, ``btl_e``,
``btl_b`` and ``btl_e_b`` have neither, one or both. Sampled exactly, by :mod:`pairscale.models._hmc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs
from scipy.special import expit

from pairscale.core.arrays import Floats, Ints
from pairscale.core.comparisons import AS_NEW, BY_ADDED, say_copies, says_who_stood_first
from pairscale.core.display import PlotMixin, ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import (
    ProgressMode,
    require_choice,
    require_number_or,
    require_seed,
)
from pairscale.core.provenance import Provenance
from pairscale.core.tables import TIMES, Table
from pairscale.models._bayes_rows import BayesTies, read_rows, sizes_of
from pairscale.models._btl import BTLDensity, Cells, JudgeParameters
from pairscale.models._sampling import Warm, sampled, warmed_up
from pairscale.models._sampling_bar import SamplingBar
from pairscale.models.diagnostics import Diagnostics, DiagnosticsGate
from pairscale.models.known import known_by_id, standardised
from pairscale.models.logs import ITEM_FIGURES, round_log_row, summarize_items
from pairscale.models.model_columns import model_columns
from pairscale.models.posterior import Posterior, item_log
from pairscale.models.repeats import RepeatAgreement, count_repeats, places, repeats_per_item, row_times
from pairscale.models.sampling import MCMCSettings, Repeats, Variant
from pairscale.pairing.edges import count_cells, linked_groups
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from pairscale.models.judge_slopes import SlopesFit
    from pairscale.models.laplace import LaplaceFit
    from pairscale.models.logits import LogitFit

__all__ = ["BTLFit", "BayesFit", "fit_bayes_btl_mcmc", "fit_btl"]

_VARIANTS = {"btl": (False, False), "btl_e": (True, False), "btl_b": (False, True), "btl_e_b": (True, True)}
_MANY_ITEMS, _WIDER = 10, 1.5  # from here on the spread of the scores says something about that of the prior


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BTLFit(ReprMixin):
    """One fit: the draws, what the diagnostics said of them, and what they were fitted to.

    Attributes:
        posterior: the draws of theta (centred), epsilon and b.
        diagnostics: divergences, R-hat, effective sample size, and whether they pass.
        model_variant: ``btl``, ``btl_e``, ``btl_b`` or ``btl_e_b``.
        n_comparisons: how many comparisons it was fitted to.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it stood first.
        pos_count_B: per item, in how many of them it stood second.
        repeated_pairs: per item, how many of them repeat a pair.
        prior_sd: draws of the abilities' prior standard deviation, when it was learned.
        slope: draws of what a standard deviation of ``known`` is worth, in logits; None without it.
        accept: the mean acceptance.
        n_gradients: how many gradients of the density were computed, for all chains at once.
        n_unique_pairs: how many different pairs were compared.
        repeat_agreement: how far repeats of a pair agree, and how they were counted.
        notices: what to be careful with.
        provenance: how to get the same again.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    degree: Ints
    pos_count_A: Ints
    pos_count_B: Ints
    repeated_pairs: Ints
    prior_sd: Floats | None
    slope: Floats | None
    accept: float
    n_gradients: int
    n_unique_pairs: int
    repeat_agreement: RepeatAgreement
    notices: tuple[str, ...]
    provenance: Provenance
    _warm: Warm

    def __repr__(self) -> str:
        verdict = "diagnostics pass" if self.diagnostics.diagnostics_pass else "diagnostics FAIL"
        return (
            f"<BTLFit {self.model_variant}: {self.posterior.n_items:,} items, {self.n_comparisons:,} comparisons, "
            f"{self.posterior.n_draws:,} draws, {verdict}>"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BayesFit(PlotMixin, table="_items", columns=ITEM_FIGURES, charts=("scores", "ranks", "wins")):
    """Bayesian fits of one set of results, or of growing parts of it.

    Attributes:
        item_log_list: per fit, the item log: means, standard deviations, quantiles and ranks of every item.
        item_summary: all of them in one table.
        round_log: one row per fit: diagnostics, reliability, epsilon and b, and measures of what is still uncertain.
        fits: the fits themselves.
        notices: what was left out, and what to be careful with.
    """

    item_log_list: list[pl.DataFrame]
    item_summary: pl.DataFrame
    round_log: pl.DataFrame
    fits: list[BTLFit | LaplaceFit | LogitFit | SlopesFit]
    notices: tuple[str, ...] = ()

    @property
    def fit(self) -> BTLFit | LaplaceFit | LogitFit | SlopesFit:
        """The last fit: of all the comparisons."""
        return self.fits[-1]

    @property
    def judges(self) -> pl.DataFrame | None:
        """Of a fit with ``judges="slopes"``, one row per judge: slope, position effect, and whether it is weak."""
        return getattr(self.fit, "judges", None)

    @property
    def _items(self) -> pl.DataFrame:
        return summarize_items(self, sort_by="theta_mean")

    def __repr__(self) -> str:
        return f"<BayesFit: {len(self.fits)} {'fit' if len(self.fits) == 1 else 'fits, the last'} {self.fit!r}>"


def fit_bayes_btl_mcmc(
    results: Table,
    ids: Iterable[Any] | None = None,
    model_variant: Variant = "btl_e_b",
    mcmc: Mapping[str, Any] | MCMCSettings | None = None,
    pair_counts: Sequence[int] | None = None,
    subset_method: Literal["first", "sample"] = "first",
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = 1.0,
    repeats: Repeats = "independent",
    ties: BayesTies = "drop",
    prior: Mapping[str, float] | Table | None = None,
    progress: ProgressMode = False,
) -> BayesFit:
    """Fit the Bayesian model to results, once or on growing parts of them, with the defaults of R's pairwiseLLM.

    These are a prior of standard deviation 1, repeats that count as new evidence, and no ties. ``pairscale.fit(results,
    model="bayes")`` learns the standard deviation, counts repeats by what they add, and takes ties as evidence.

    Args:
        results: canonical results, or results of any shape; rows without a winner are left out, with a notice.
        ids: all items there are; those without a comparison keep the prior. Default: those in the results.
        model_variant: ``btl``, ``btl_e`` (lapse), ``btl_b`` (position) or ``btl_e_b`` (both).
        mcmc: fields of :class:`MCMCSettings`, such as ``{"iter_sampling": 1000}``.
        pair_counts: fit the first so many comparisons, for each of these sizes; each fit starts from the one before.
        subset_method: ``first`` takes them in their order, ``sample`` in a random one.
        seed: of the sampler (unless ``mcmc`` has one) and of ``sample``.
        prior_sd: the standard deviation of the abilities' prior, or ``learned`` (half-normal with scale 2.5).
        repeats: how to count repeats of a pair: ``independent``, each is new evidence; ``learned``, by how far repeats
            agree beyond what the scores explain; or that excess agreement, from 0 (independent) to 1 (nothing new).
        ties: ``drop`` leaves ties and flips (two orders, two answers) out; ``half`` counts half a win for each side.
        prior: a number that is known of each item beforehand, such as a mark: a mapping from ID to number, or a table
            with ``ID`` and one other column. Missing ones count as average, and are said.
        progress: show a bar when standard error is a terminal.

    Returns:
        A :class:`BayesFit` with ``item_log_list``, ``item_summary``, ``round_log``, ``fits`` and ``fit``.

    Raises:
        InputError: for an unknown variant or field, or ids that are not among ``ids``.
        FitError: when no row has a winner.

    Example:
        >>> import pairscale as ps
        >>> fit = fit_bayes_btl_mcmc(ps.example_writing_results, model_variant="btl", mcmc={"chains": 4}, seed=1)
        >>> ps.summarize_items(fit, top_n=3)["ID"].to_list()
        ['S20', 'S19', 'S18']
    """
    settings = MCMCSettings.given(mcmc)
    require_choice(subset_method, "subset_method", ("first", "sample"))
    if judge_parameters(model_variant, prior_sd).position and not says_who_stood_first(results):
        raise InputError(
            "results list winners and losers without saying who stood first, so there is no position effect to "
            "estimate; use model_variant='btl_e' or 'btl'"
        )
    rows, names, said = read_rows(results, ids, ties)
    said += say_copies(rows, AS_NEW if repeats == "independent" else BY_ADDED)
    rows = rows.select("ID1", "ID2", "better_id", cs.by_name(TIMES, require_all=False))
    known = None if prior is None else known_by_id(prior, names)
    sizes = sizes_of(pair_counts, rows.height)
    seed = require_seed(seed)
    base = seed if settings.seed is None else settings.seed
    if base is None:
        base = int(np.random.default_rng().integers(2**32))  # drawn here so that it can be told
    if subset_method == "sample":
        rows = rows[generator(base).permutation(rows.height)]
    fits: list[BTLFit] = []
    for size in sizes:
        warm = fits[-1] if fits else None
        fits.append(
            fit_btl(
                rows[:size], names, model_variant, settings, base,
                prior_sd=prior_sd, warm=warm, repeats=repeats, known=known, progress=progress,
            )
        )  # fmt: skip
    return gathered(fits, [*said, *fits[-1].notices, *_say_narrow(fits[-1], prior_sd)])


def gathered(fits: Sequence[BTLFit | LaplaceFit | LogitFit | SlopesFit], notices: Iterable[str]) -> BayesFit:
    """Fits of growing parts of the same results as one result."""
    items = [
        item_log(fit.posterior, at, fit.degree, fit.pos_count_A, fit.pos_count_B, fit.repeated_pairs)
        for at, fit in enumerate(fits, start=1)
    ]
    rounds = [_round_row(fit, at, fits) for at, fit in enumerate(fits, start=1)]
    return BayesFit(items, pl.concat(items), pl.concat(rounds), list(fits), tuple(notices))


def _say_narrow(fit: BTLFit, prior_sd: float | Literal["learned"]) -> list[str]:
    """That the scores spread wider than their prior allows for."""
    found = float(fit.posterior.items.theta_mean.std(ddof=1)) if fit.posterior.n_items >= _MANY_ITEMS else 0.0
    if isinstance(prior_sd, str) or found < _WIDER * prior_sd:
        return []
    return [
        notice(
            f"the scores have a standard deviation of {found:.1f}, and their prior one of {prior_sd:g}: the scores at "
            "both ends are drawn to the middle and their intervals do not cover; use prior_sd='learned'"
        )
    ]


def fit_btl(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_e_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = 1.0,
    warm: BTLFit | None = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    repeats: Repeats = "independent",
    known: Sequence[float] | Floats | None = None,
    progress: ProgressMode = False,
) -> BTLFit:
    """Fit once.

    Args:
        rows: ``ID1 ID2 better_id``; a missing ``better_id`` is a tie, half a win for each.
        ids: all items.
        model_variant: which faults the judge may have.
        settings: how to sample.
        seed: of the sampler.
        prior_sd: of the abilities, or ``learned``.
        warm: an earlier fit of fewer comparisons of the same items; its coordinates and draws are the start.
        near_stop: require the stricter effective sample size.
        gate: other limits than the default ones.
        repeats: how to count repeats of a pair: ``independent``, each is new evidence; ``learned``, by how far repeats
            agree beyond what the scores explain; or that excess agreement, from 0 (independent) to 1 (nothing new).
        known: per item, a number known beforehand, such as a mark, in any unit; ``nan`` where it is missing, which
            counts as the mean. Abilities then spread around ``slope * known`` (standardised), ``slope ~ N(0, 1)``.
        progress: show a bar when standard error is a terminal.
    """
    settings = settings or MCMCSettings()
    model = judge_parameters(model_variant, prior_sd, known)
    names = pl.Series(list(ids), dtype=pl.String)
    cells, first, second, agreement = count_repeats(rows, names, model, repeats)
    times = row_times(rows)
    pos_A, pos_B = (places(side, len(names), times) for side in (first, second))
    density = BTLDensity(cells, model)
    rng = generator(seed)
    start = warm._warm if warm is not None else None
    if start is not None and (start.ids != tuple(names) or start.model != model):
        start = None
    with SamplingBar(settings.iter_warmup + settings.iter_sampling, show=progress) as tick:
        begun = warmed_up(density, start, settings, rng, tick)
        found = sampled(begun, settings, near_stop, gate, tick)
    draws, diagnostics = found.draws, found.diagnostics
    judge = {name: draws[:, :, row] for name, row in density.row.items()}
    posterior = Posterior.from_chains(
        tuple(names),
        found.theta,
        expit(judge["u"]) if "u" in judge else None,
        judge.get("b"),
        diagnostics,
        in_place=True,
    )
    inputs = {"comparisons": _digest(cells)}
    groups = [group for group in linked_groups(cells.winner, cells.loser, len(names)) if len(group) > 1]
    apart = f"{len(groups):,} groups were never compared; only the prior says how far apart they are"
    said = ((apart,) if len(groups) > 1 else ()) + begun.fallbacks
    start_of = {"warm": begun.warm, "coordinates": "learned" if begun.learned else "unlearned"}
    options = {"model_variant": model_variant, "prior_sd": prior_sd, **start_of, **asdict(settings)}
    if repeats != "independent":
        options |= {"repeats": repeats, "repeat_agreement": agreement.rho}
    return BTLFit(
        posterior=posterior,
        diagnostics=diagnostics,
        model_variant=model_variant,
        n_comparisons=int(pos_A.sum()),
        degree=pos_A + pos_B,
        pos_count_A=pos_A,
        pos_count_B=pos_B,
        repeated_pairs=repeats_per_item(first, second, len(names), times),
        prior_sd=np.exp(judge["t"]).ravel() if "t" in judge else None,
        slope=judge["g"].ravel() if "g" in judge else None,
        accept=found.accept,
        n_gradients=begun.sampler.gradients,
        n_unique_pairs=len(count_cells(np.minimum(first, second), np.maximum(first, second), len(names))[0]),
        repeat_agreement=agreement,
        notices=tuple(notice(text) for text in said),
        provenance=Provenance("lock-step HMC", options, seed, inputs),
        _warm=found.warm_start(tuple(names), model, begun),
    )


# What goes in


def judge_parameters(variant: str, prior_sd: Any, known: Sequence[float] | Floats | None = None) -> JudgeParameters:
    kinds = _VARIANTS[require_choice(variant, "model_variant", _VARIANTS)]
    spread = require_number_or(prior_sd, "prior_sd", ("learned",), above=0)
    standard = None if known is None else tuple(standardised(known).tolist())
    return JudgeParameters(*kinds, prior_sd=None if isinstance(spread, str) else spread, known=standard)


def _digest(cells: Cells) -> str:
    from hashlib import sha256

    columns = np.stack((cells.winner, cells.loser, cells.sign.astype(np.int64), cells.times.astype(np.int64)))
    part = cells.times % 1  # of ties, and of repeats that count less than once
    more = part.astype("<f8").tobytes() if part.any() else b""
    return sha256(columns.astype("<i8").tobytes() + more).hexdigest()[:16]


# What comes out


def _round_row(
    fit: BTLFit | LaplaceFit | LogitFit | SlopesFit,
    refit_id: int,
    fits: Sequence[BTLFit | LaplaceFit | LogitFit | SlopesFit],
) -> pl.DataFrame:
    before = fits[refit_id - 2].n_comparisons if refit_id > 1 else 0
    known: dict[str, Any] = {
        "refit_id": refit_id,
        "timestamp": fit.provenance.created_at,
        "model_variant": fit.model_variant,
        "total_pairs_done": fit.n_comparisons,
        "new_pairs_since_last_refit": fit.n_comparisons - before,
        "n_unique_pairs_seen": fit.n_unique_pairs,
        **model_columns(
            fit.posterior, fit.diagnostics, fit.degree, fit.pos_count_A, fit.pos_count_B, getattr(fit, "engine", None)
        ),
    }
    if fit.repeat_agreement.how != "independent":
        known["repeat_agreement"] = fit.repeat_agreement.rho
    slope = getattr(fit, "slope", None)
    if slope is not None:
        low, high = np.quantile(slope, (0.025, 0.975))
        known |= {"prior_slope_mean": float(slope.mean()), "prior_slope_p2.5": low, "prior_slope_p97.5": high}
    return round_log_row(**known)
