"""Bayesian fits of one set of results: what they show, and R's function for them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import polars.selectors as cs

from pairscale.core.comparisons import AS_NEW, BY_ADDED, say_copies, says_who_stood_first
from pairscale.core.display import PlotMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, require_choice, require_int, require_list, require_seed
from pairscale.core.tables import TIMES, Table, listed
from pairscale.models.bayes.fit import BTLFit, fit_btl, judge_parameters
from pairscale.models.bayes.logs import ITEM_FIGURES, round_log_row, summarize_items
from pairscale.models.bayes.posterior import item_log, model_columns
from pairscale.models.bayes.settings import MCMCSettings, Repeats, Variant
from pairscale.models.reliability import outlying, two_groups
from pairscale.models.rows import BayesTies, read_rows
from pairscale.pairing.table import generator

_MANY_ITEMS = 10
_MORE_LIKELY_THAN_NOT = 0.5
_WIDER = 1.5  # from here on the spread of the scores says something about that of the prior


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BayesFit(PlotMixin, table="_items", columns=ITEM_FIGURES, charts=("scores", "ranks")):
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
    fits: list[BTLFit]
    notices: tuple[str, ...] = ()

    @property
    def fit(self) -> BTLFit:
        """The last fit: of all the comparisons."""
        return self.fits[-1]

    @property
    def judges(self) -> pl.DataFrame | None:
        """Of a fit with ``judges="slopes"``, one row per judge: slope, position effect, and whether it is weak."""
        return self.fit.judges

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
        pair_counts: numbers of comparisons: the first ones are fitted, and each fit starts from the one before.
        subset_method: ``first`` takes them in their order, ``sample`` in a random one.
        seed: of the sampler (unless ``mcmc`` has one) and of ``sample``.
        prior_sd: the standard deviation of the abilities' prior, or ``learned`` (half-normal with scale 2.5).
        repeats: how to count repeats of a pair: ``independent``, each is new evidence; ``learned``, by how far repeats
            agree beyond what the scores explain; or that excess agreement, from 0 (independent) to 1 (nothing new).
        ties: ``drop`` leaves ties and flips (two orders, two answers) out; ``half`` counts half a win for each side.
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
    rows, names, notices = read_rows(results, ids, ties)
    notices += say_copies(rows, AS_NEW if repeats == "independent" else BY_ADDED)
    rows = rows.select("ID1", "ID2", "better_id", cs.by_name(TIMES, require_all=False))
    sizes = [rows.height]
    if pair_counts is not None:
        sizes = sorted(require_list(pair_counts, "pair_counts", require_int, least=1, most=rows.height))
    seed = require_seed(seed)
    base = seed if settings.seed is None else settings.seed
    if base is None:
        base = secrets.randbits(32)  # drawn here so that it can be told
    if subset_method == "sample":
        rows = rows[generator(base).permutation(rows.height)]
    fits: list[BTLFit] = []
    for size in sizes:
        fit = fit_btl(
            rows[:size], names, model_variant, settings, base,
            prior_sd=prior_sd, warm=fits[-1] if fits else None, repeats=repeats, progress=progress,
        )  # fmt: skip
        fits.append(fit)
    return gathered(fits, notices)


def gathered(fits: Sequence[BTLFit], notices: Iterable[str]) -> BayesFit:
    """Fits of growing parts of the same results as one result, with what was said of the rows."""
    items = []
    rounds = []
    before = 0
    for at, fit in enumerate(fits, start=1):
        counts = (fit.degree, fit.pos_count_A, fit.pos_count_B)
        items.append(item_log(fit.posterior, at, *counts, fit.repeated_pairs))
        columns: dict[str, Any] = {
            "refit_id": at,
            "timestamp": fit.provenance.created_at,
            "model_variant": fit.model_variant,
            "total_pairs_done": fit.n_comparisons,
            "new_pairs_since_last_refit": fit.n_comparisons - before,
            "n_unique_pairs_seen": fit.n_unique_pairs,
            **model_columns(fit.posterior, fit.diagnostics, *counts, fit.engine),
        }
        if fit.repeat_agreement.how != "independent":
            columns["repeat_agreement"] = fit.repeat_agreement.rho
        rounds.append(round_log_row(**columns))
        before = fit.n_comparisons
    last = fits[-1]
    all_notices = [*notices, *last.notices, *_say_narrow(last), *_say_outside(last), *_say_groups(last)]
    if last.judges is not None and last.judges["weak"].any():
        all_notices.append(notice(weak_words(last.judges.filter("weak")["judge_id"].to_list())))
    return BayesFit(items, pl.concat(items), pl.concat(rounds), list(fits), tuple(all_notices))


def weak_words(weak: Sequence[str]) -> str:
    """Who is weak, and what that means."""
    verb = "is a weak judge" if len(weak) == 1 else "are weak judges"
    return f"{listed(list(weak), 10)} {verb}: a slope below a third of the mean slope says little about the texts"


def _say_outside(fit: BTLFit) -> list[str]:
    """Which texts lost or won nearly everything, and what that means for the reliability."""
    if not outlying(fit.posterior.items.theta_mean, fit.evidence.cells).any():
        return []
    reliability = fit.reliability()
    names = listed([fit.posterior.ids[at] for at in reliability.outliers], 10)
    text = f"lost or won nearly everything, so that the distance to the others is not told: {names}"
    if reliability.without_outliers is not None:
        text += f"; without them, the reliability is {reliability.without_outliers:.2f}"
    return [notice(text)]


def _say_groups(fit: BTLFit) -> list[str]:
    """That the texts fall into two groups, and what that means for the order."""
    groups = two_groups(fit.posterior.items.theta_mean, fit.evidence.cells, fit.evidence.model)
    if groups is None or groups.probability <= _MORE_LIKELY_THAN_NOT:
        return []
    return [
        notice(
            f"the texts fall into two groups (probability {groups.probability:.2f}): which group a text belongs to is "
            "known better than the order within its group"
        )
    ]


def _say_narrow(fit: BTLFit) -> list[str]:
    """That the scores spread wider than their prior allows for."""
    prior_sd = fit.provenance.settings["prior_sd"]
    if fit.prior_sd is not None or fit.posterior.n_items < _MANY_ITEMS:
        return []
    spread = float(fit.posterior.items.theta_mean.std(ddof=1))
    if spread < _WIDER * prior_sd:
        return []
    return [
        notice(
            f"the scores have a standard deviation of {spread:.1f}, and their prior one of {prior_sd:g}: the scores at "
            "both ends are drawn to the middle and their intervals do not cover; use prior_sd='learned'"
        )
    ]
