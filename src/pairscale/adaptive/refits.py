"""A refit: the Bayesian model fitted to all comparisons so far, and what may be decided on it (§4.5.1, §5.4, §8, §9).

No diagnostics, no decisions: on draws that do not pass the gate, nothing is decided. The row of the round log is there
all the same, and says so. Everything that a stop rests on is in that row: ``gates.stop_decision`` reads nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import polars.selectors as cs

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.gates import (
    is_identified,
    is_near_stop,
    may_stop,
    stop_decision,
    stop_gates,
)
from pairscale.adaptive.selection.information import top_figures
from pairscale.adaptive.selection.ledger import TIE
from pairscale.adaptive.selectors import name_of
from pairscale.core.errors import FitError, InputError, UnknownNameError
from pairscale.core.provenance import utc_now
from pairscale.core.tables import listed
from pairscale.models.bayes.fit import fit_btl, fit_btl_laplace
from pairscale.models.bayes.logs import round_log_row
from pairscale.models.bayes.posterior import item_log, model_columns
from pairscale.models.bayes.repeats import RepeatAgreement, repeats_per_item
from pairscale.models.bayes.sampler import warm_of
from pairscale.models.bayes.settings import MCMCSettings
from pairscale.models.reliability import pearson, reliability_of_draws, spearman
from pairscale.models.warm_start import packed, unpacked

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.adaptive.logs import Columns, Row
    from pairscale.adaptive.selection.ledger import Flags
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.bayes.posterior import Posterior
    from pairscale.models.bayes.settings import Repeats

_DRAWS = 256  # kept of a refit: enough to tell 0.90 from 0.95, and half a megabyte for a thousand items
_FITS: dict[str, Callable[..., Any]] = {"exact": fit_btl, "laplace": fit_btl_laplace}


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What a refit leaves to the rest of the run, small enough to be kept with it.

    Attributes:
        refit_id: which refit.
        passed: whether its diagnostics passed. If not, the run continues with the belief that it had.
        near_stop: whether phase 3 has been entered, by this refit or an earlier one; true of a refit that entered it
            and did not pass, too.
        global_identified: whether the order counts as known.
        theta_mean: per item, the EAP.
        theta_sd: per item, the posterior standard deviation.
        rank: per item, its rank by EAP; 1 is the best, equal ones by id.
        draws: up to 256 draws of theta (draws, items) in half precision; None unless the order counts as known,
            since nothing else asks for them.
        repeat_agreement: the excess agreement of repeats, from 0 (each is new evidence) to 1 (none is); 0 when repeats
            count as independent.
    """

    refit_id: int
    passed: bool
    near_stop: bool
    global_identified: bool
    theta_mean: Floats
    theta_sd: Floats
    rank: Ints
    draws: npt.NDArray[np.float16] | None = None
    repeat_agreement: float = 0.0

    @classmethod
    def of(cls, posterior: Posterior, refit_id: int, **more: Any) -> Belief:
        """What draws leave; ``more`` are the other fields."""
        items = posterior.items
        draws = None
        if more["global_identified"]:  # spread evenly over the chains and their length
            size = min(_DRAWS, posterior.n_draws)
            at = np.arange(size)
            per_chain = posterior.n_draws // posterior.chains
            rows = at * per_chain // size * posterior.chains + at % posterior.chains
            draws = np.asarray(posterior.theta[rows], dtype=np.float16)
        rank = np.argsort(items.order) + 1
        return cls(refit_id, theta_mean=items.theta_mean, theta_sd=items.theta_sd, rank=rank, draws=draws, **more)

    def p_above(self, i: Ints, j: Ints) -> Floats:
        """The posterior probability that item i is above item j, for arrays of items: the share of draws.

        Equal draws count half, and an item that joined later is above any other with probability 0.5.
        """
        assert self.draws is not None  # noqa: S101 - it is asked once the order counts as fitted
        fitted = (i < len(self.rank)) & (j < len(self.rank))
        draws = self.draws.astype(np.float32)
        share = np.full(i.shape, 0.5)
        share[fitted] += np.sign(draws[:, i[fitted]] - draws[:, j[fitted]]).sum(axis=0, dtype=np.float64) / (
            2 * len(draws)
        )
        return share

    def to_bytes(self) -> bytes:
        """The belief as bytes; the same belief gives the same bytes."""
        head = {name: getattr(self, name) for name in _PLAIN}
        draws = {} if self.draws is None else {"draws": self.draws}
        return packed(head, theta_mean=self.theta_mean, theta_sd=self.theta_sd, rank=self.rank, **draws)

    @classmethod
    def from_bytes(cls, data: bytes) -> Belief:
        """The way back.

        Raises:
            InputError: when these are not the bytes of a belief.
        """
        head, arrays = unpacked(data, "a belief")
        try:
            return cls(**head | arrays)
        except TypeError as error:
            raise InputError(f"these {len(data):,} bytes are not a belief: {error}") from None


_PLAIN = ("refit_id", "passed", "near_stop", "global_identified", "repeat_agreement")


FitFn: TypeAlias = Callable[..., Any]
"""A function that fits: :func:`pairscale.models.bayes.fit.fit_btl`, ``fit_btl_laplace``, or one of your own.

It is called with ``rows`` (``ID1 ID2 better_id``; a missing ``better_id`` is a tie; with the setting ``answer`` =
probability also ``probability``, with a panel and ``judges`` = slopes ``judge_id``) and ``ids`` (all items), and by
name ``model_variant``, ``settings``, ``seed`` (of everything random), ``prior_sd``, ``warm`` (None, or what the refit
before gave: a start for ``fit_btl``, else the very object returned then), ``near_stop`` (whether the stricter
effective sample size is required), ``gate`` (the limits) and ``repeats`` (how repeats of a pair count). It must not
depend on anything else; a run that is taken up again has no ``warm`` but that of ``fit_btl``.

It returns an object with ``posterior`` (the draws; its ids are those that were asked for, in their order) and
``diagnostics`` (divergences, R-hat and effective sample size, held against the gate again). The object may also have
``engine``, a text for the log that says what fitted, and ``repeat_agreement`` (a
:class:`~pairscale.models.bayes.repeats.RepeatAgreement`), which must be there when repeats are not independent.
"""


@dataclass(frozen=True, slots=True, eq=False)
class LagPoint:
    """An earlier refit that passed, which stability may be measured against.

    Attributes:
        refit_id: which it was.
        theta_mean: its EAP means. Items that joined later are missing at the end.
        committed: the comparisons that it was fitted to.
    """

    refit_id: int
    theta_mean: Floats
    committed: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RefitRequest:
    """Everything that a refit is computed from. Arrays are copied, so that the run may continue meanwhile.

    Attributes:
        refit_id: which refit, counted from 1.
        ids: the items, in their order.
        history: the comparisons, a row each: number of the first, number of the second, 1 when the first won, 0 when
            the second did, -1 for a tie.
        mu: per item, the TrueSkill mean at the trigger.
        sigma: per item, the TrueSkill standard deviation.
        degree: per item, in how many comparisons it was.
        first: per item, in how many of them it stood first.
        second: per item, in how many of them it stood second.
        n_unique_pairs: different pairs among the comparisons.
        step_id_at_refit: the last step before it.
        round_id_at_refit: the last round that was complete.
        new_pairs: comparisons since the refit before.
        seed: of the run.
        adaptive: how the run chooses pairs.
        btl: how it fits and stops.
        quotas: what the last complete round planned; None when there was none.
        health: columns of the round log on candidates, fallbacks and star caps since the refit before.
        near_stop: whether an earlier refit entered phase 3.
        global_identified: whether the order counted as known after the last refit that passed.
        lag: the earlier refit to compare with; None when too few have passed.
        selector: what chooses the pairs.
        is_closing: whether this is the closing refit of a stop, a limit or a pause.
        withdrawn: per item, whether it was withdrawn; None when none was. Such items are fitted, and figures of the
            round log and decisions are without them.
        probability: per comparison, the probability that the first is better, None where the judge gave none; None when
            only winners are evidence.
        judged_by: per comparison, who of a panel judged; None where judges are pooled.
    """

    refit_id: int
    ids: tuple[str, ...]
    history: npt.NDArray[np.int32]
    mu: Floats
    sigma: Floats
    degree: Ints
    first: Ints
    second: Ints
    n_unique_pairs: int
    step_id_at_refit: int
    round_id_at_refit: int
    new_pairs: int
    seed: int
    adaptive: AdaptiveConfig
    btl: BTLConfig
    quotas: Mapping[str, int] | None = None
    health: Row = field(default_factory=dict[str, Any])
    near_stop: bool = False
    global_identified: bool = False
    lag: LagPoint | None = None
    selector: str | None = None
    is_closing: bool = False
    withdrawn: Flags | None = None
    probability: Sequence[float | None] | None = None
    judged_by: tuple[str | None, ...] | None = None

    @property
    def counted(self) -> Flags | slice:
        """The items that figures and decisions are of: all that were not withdrawn."""
        return slice(None) if self.withdrawn is None or not self.withdrawn.any() else ~self.withdrawn

    def of_counted(self, posterior: Posterior) -> Posterior:
        """The draws of these items."""
        keep = self.counted
        if isinstance(keep, slice):
            return posterior
        return replace(posterior, ids=tuple(np.array(self.ids)[keep].tolist()), theta=posterior.theta[:, keep])

    def rows(self) -> pl.DataFrame:
        """The comparisons by id: ``ID1 ID2 better_id``, where a tie has none, and ``probability``, if it counts."""
        names = pl.Series(self.ids, dtype=pl.String)
        first, second, y = self.history.T.astype(np.int64)
        numbers = {"ID1": first, "ID2": second, "better_id": np.where(y == 1, first, second)}
        rows = pl.DataFrame({name: names.gather(items) for name, items in numbers.items()})
        rows = rows.with_columns(better_id=pl.when(pl.Series(y != TIE)).then("better_id"))
        if self.judged_by is not None and any(self.judged_by):
            rows = rows.with_columns(judge_id=pl.Series(self.judged_by, dtype=pl.String))
        if self.probability is not None:
            rows = rows.with_columns(probability=pl.Series(self.probability, dtype=pl.Float64))
        return rows

    def seed_of(self, attempt: int = 0) -> int:
        """The seed of a fit: of the run, how much it is fitted to, and which attempt at it this is.

        Not the refit's number: closing refits have one too, and a run that paused continues as one that did not.
        """
        return int(np.random.SeedSequence([self.seed, len(self.history), attempt]).generate_state(1)[0])


@dataclass(frozen=True, slots=True, eq=False)
class RefitOutcome:
    """What a refit gives.

    Attributes:
        row: its row of the round log, every column by name; what is not known is None.
        items: its item log.
        belief: what the rest of the run needs of it.
        warm: for the next refit. ``pairscale.models.warm_start.warm_to_bytes`` keeps it, where it can be kept.
    """

    row: Columns
    items: pl.DataFrame
    belief: Belief
    warm: Any


def refit(request: RefitRequest, fit_fn: FitFn | str | None = None, warm: Any = None) -> RefitOutcome:
    """Fit the model to what a request holds, and see what may be decided on it.

    Args:
        request: the comparisons, the state of the run at the trigger, and its configuration.
        fit_fn: what fits (see :class:`FitFn`); ``laplace`` is the fast normal approximation, for tests, simulations
            and plans; ``exact``, the default, is :func:`pairscale.models.bayes.fit.fit_btl`.
        warm: ``RefitOutcome.warm`` of the refit before.

    Returns:
        A :class:`RefitOutcome`. The same request and ``warm`` give the same, but for its ``timestamp``.

    Raises:
        FitError: when ``fit_fn`` gives a posterior of other items.
        UnknownNameError: when ``fit_fn`` is a name that does not exist.
    """
    function = fit_function(fit_fn)
    if request.btl.screen_refits and function is fit_btl and not request.is_closing and request.judged_by is None:
        screened = _refitted(request, fit_btl_laplace, None)
        if not may_stop(screened.row):
            return replace(screened, row=screened.row | {"screened": True}, warm=None)
    return _refitted(request, function, warm)


def _refitted(request: RefitRequest, fit_fn: FitFn, warm: Any) -> RefitOutcome:
    """Fit with one function, and see what may be decided on it."""
    entered = False
    fit = _fitted(request, fit_fn, warm, near_stop=request.near_stop)
    row = _row(request, fit, near_stop=request.near_stop)
    if row["diagnostics_pass"] and not request.near_stop and is_near_stop(row):
        # This fit enters phase 3 (§5.4). To be decided on, its draws must be worth what phase 3 asks.
        entered = True
        row = _row(request, fit, near_stop=True)
        if not row["diagnostics_pass"]:
            fit = _fitted(request, fit_fn, warm_of(fit) or fit, near_stop=True, attempt=1)
            row = _row(request, fit, near_stop=True)
    row["phase3_entered"] = entered
    row["stop_decision"], row["stop_reason"] = stop_decision(row)
    belief = Belief.of(
        fit.posterior,
        request.refit_id,
        passed=row["diagnostics_pass"],
        near_stop=request.near_stop or entered,
        global_identified=row["global_identified"],
        repeat_agreement=row["repeat_agreement"] or 0.0,
    )
    return RefitOutcome(
        round_log_row(**row).row(0, named=True), _items(request, fit.posterior), belief, warm_of(fit) or fit
    )


def _row(request: RefitRequest, fit: Any, *, near_stop: bool) -> Columns:
    """The row of the round log of a fit, judged by the diagnostics gate that holds then."""
    btl = request.btl
    figures = {name: getattr(fit.diagnostics, name) for name in ("divergences", "max_rhat", "min_ess_bulk")}
    diagnostics = btl.gate.judge(**figures, near_stop=near_stop)
    counted = request.of_counted(fit.posterior)
    keep = request.counted
    near_ties: Columns = {"near_tie_p_low": btl.near_tie_p_low, "near_tie_p_high": btl.near_tie_p_high}
    exposure = (request.degree[keep], request.first[keep], request.second[keep])
    row: Columns = {
        **request_columns(request),
        "timestamp": utc_now(),
        **model_columns(counted, diagnostics, *exposure, getattr(fit, "engine", None), **near_ties),
        **figure_columns(request, fit.posterior.items.theta_mean),
        "screened": False,
        "repeat_agreement": _repeat_agreement(fit, btl.repeats),
        "top_wrong": None if request.adaptive.top is None else top_figures(counted, request.adaptive.top)[1],
    }
    judges = getattr(fit, "judges", None)
    if judges is not None:
        row["judge_slopes"] = json.dumps(judges.with_columns(cs.float().round(4)).to_dicts())
        row["weak_judges"] = json.dumps(judges.filter("weak")["judge_id"].sort().to_list())
    if isinstance(keep, slice) and hasattr(fit, "reliability"):
        reliability = fit.reliability()
    else:
        reliability = reliability_of_draws(counted.theta)
    row["reliability_r2"] = reliability.estimate
    row["reliability_lower"] = reliability.lower
    row["reliability_upper"] = reliability.upper
    row["rank_correlation"] = reliability.rank_correlation
    row["reliability_without_outliers"] = reliability.without_outliers
    row["p_two_groups"] = reliability.p_two_groups
    row["reliability"] = row[btl.reliability_figure]
    row["global_identified"] = is_identified(row) if diagnostics.diagnostics_pass else request.global_identified
    return row | stop_gates(row)


def _items(request: RefitRequest, posterior: Posterior) -> pl.DataFrame:
    """The item log of a fit."""
    first, second, _ = request.history.T.astype(np.int64)
    repeated = repeats_per_item(first, second, len(request.ids))
    items = item_log(posterior, request.refit_id, request.degree, request.first, request.second, repeated)
    if request.adaptive.top is None:
        return items
    in_top = np.full(len(request.ids), np.nan)
    in_top[request.counted], _ = top_figures(request.of_counted(posterior), request.adaptive.top)
    return items.with_columns(top_prob=pl.Series(in_top).fill_nan(None))


def _repeat_agreement(fit: Any, repeats: Repeats) -> float | None:
    """The excess agreement that the fit counted repeats with; None when they count as independent."""
    if repeats == "independent":
        return None
    agreement = getattr(fit, "repeat_agreement", None)
    if not isinstance(agreement, RepeatAgreement):
        raise FitError(f"fit_fn must give its repeat_agreement when repeats is {repeats!r}, not {agreement!r:.80}")
    return agreement.rho


_NAMED = ("model_variant", "settings", "seed", "prior_sd", "warm", "near_stop", "gate", "repeats")


def fit_function(fit_fn: FitFn | str | None) -> FitFn:
    """What fits: the function itself, or the one of that name; None is the exact sampler."""
    if fit_fn is None:
        return fit_btl
    if callable(fit_fn):
        try:
            signature(fit_fn).bind_partial(None, None, **dict.fromkeys(_NAMED))
        except ValueError:  # without a signature
            return fit_fn
        except TypeError as error:
            raise InputError(
                f"fit_fn is called with rows and ids, and by name with {', '.join(_NAMED)} ({error}); take those, or "
                "**settings, instead of R's (state, config)"
            ) from None
        return fit_fn
    if isinstance(fit_fn, str) and fit_fn in _FITS:
        return _FITS[fit_fn]
    raise UnknownNameError(
        f"fit_fn {fit_fn!r:.80} is not known; give one of {listed(list(_FITS))}, or a function", "fit_fn"
    )


def fit_name(fit_fn: FitFn | str | None) -> str:
    """What the log of a run calls it: ``exact``, ``laplace``, or a function's own name and what it binds."""
    function = fit_function(fit_fn)
    return next((name for name, known in _FITS.items() if function is known), name_of(function))


def _fitted(request: RefitRequest, fit_fn: FitFn, warm: Any, *, near_stop: bool, attempt: int = 0) -> Any:
    btl = request.btl
    fit = fit_fn(
        request.rows(), request.ids, model_variant=btl.model_variant, settings=MCMCSettings.given(btl.mcmc),
        seed=request.seed_of(attempt), prior_sd=btl.prior_sd, warm=warm, near_stop=near_stop, gate=btl.gate,
        repeats=btl.repeats,
    )  # fmt: skip
    if fit.posterior.ids != request.ids:
        raise FitError("fit_fn gave a posterior of other items than it was asked for, or in another order")
    return fit


# The columns of the round log that follow from the run

_QUOTAS = ("long_quota_raw", "long_quota_effective", "long_quota_removed", "realloc_to_mid", "realloc_to_local")


def request_columns(request: RefitRequest) -> Columns:
    """What is known before anything is fitted: counts, settings, and how the choosing went."""
    adaptive = request.adaptive
    btl = request.btl
    quotas = dict.fromkeys(_QUOTAS) | {
        "round_pairs_target": adaptive.round_pairs_target,
        "round_pairs_effective": adaptive.round_pairs_effective(len(request.ids)),
    }
    if request.quotas is not None:
        quotas = {name: request.quotas[name] for name in quotas}
    return {
        **request.health,
        "refit_id": request.refit_id,
        "round_id_at_refit": request.round_id_at_refit,
        "step_id_at_refit": request.step_id_at_refit,
        "model_variant": btl.model_variant,
        "total_pairs_done": len(request.history),
        "new_pairs_since_last_refit": request.new_pairs,
        "n_unique_pairs_seen": request.n_unique_pairs,
        "global_identified_reliability_min": adaptive.global_identified_reliability_min,
        "global_identified_rank_corr_min": adaptive.global_identified_rank_corr_min,
        **quotas,
        "eap_reliability_min": btl.eap_reliability_min,
        "theta_corr_min": btl.theta_corr_min,
        "theta_sd_rel_change_max": btl.theta_sd_rel_change_max,
        "rank_spearman_min": btl.rank_spearman_min,
        "selector": request.selector,
        "is_closing": request.is_closing,
        "goal": adaptive.goal,
        "top_wrong_allowed": None if adaptive.top is None else adaptive.top * btl.top_wrong_max,
    }


def figure_columns(request: RefitRequest, theta: Floats) -> Columns:
    """How the scores compare with TrueSkill's, and with those of the lagged refit (§9.3, §9.4)."""
    keep = request.counted
    mu, sigma, now = request.mu[keep], request.sigma[keep], theta[keep]
    return {
        "ts_sigma_mean": float(sigma.mean()),
        "ts_sigma_max": float(sigma.max()),
        "ts_degree_sigma_corr": pearson(request.degree[keep], sigma),
        "ts_btl_theta_corr": pearson(mu, now),
        "ts_btl_rank_spearman": spearman(mu, now),
        **_lagged(request.lag, theta, keep),
    }


def _lagged(lag: LagPoint | None, theta: Floats, keep: Flags | slice) -> Columns:
    """How the scores moved since the lagged refit, over the items that both have."""
    if lag is None:
        missing = dict.fromkeys(("lag_refit_id", "rho_theta", "delta_sd_theta", "rho_rank"))
        return {"lag_eligible": False, **missing}
    n = min(len(theta), len(lag.theta_mean))
    keep = keep if isinstance(keep, slice) else keep[:n]
    now, before = theta[:n][keep], np.asarray(lag.theta_mean, dtype=np.float64)[:n][keep]
    spread = _spread(before)
    return {
        "lag_eligible": True,
        "lag_refit_id": lag.refit_id,
        "rho_theta": pearson(now, before),
        "delta_sd_theta": abs(_spread(now) - spread) / spread if spread > 0 else None,
        "rho_rank": spearman(now, before),
    }


def _spread(values: Floats) -> float:
    """The standard deviation; equal values have none, whatever rounding makes of their mean."""
    return float(values.std(ddof=1)) if len(values) > 1 and values.min() < values.max() else 0.0
