"""The columns of a refit's row that follow from the run: what it was asked, and how the scores compare with others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars.selectors as cs

from pairscale.models.correlations import pearson, spearman

if TYPE_CHECKING:
    from pairscale.adaptive.ledger import Flags
    from pairscale.adaptive.refits import LagPoint, RefitRequest
    from pairscale.core.arrays import Floats

__all__ = ["figure_columns", "judge_columns", "request_columns"]

_QUOTAS = ("long_quota_raw", "long_quota_effective", "long_quota_removed", "realloc_to_mid", "realloc_to_local")


def request_columns(request: RefitRequest) -> dict[str, Any]:
    """What is known before anything is fitted: counts, settings, and how the choosing went."""
    adaptive, btl, plan = request.adaptive, request.btl, request.quotas
    effective = adaptive.round_pairs_effective(len(request.ids)) if plan is None else plan.round_pairs_effective
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
        **{name: None if plan is None else getattr(plan, name) for name in _QUOTAS},
        "eap_reliability_min": btl.eap_reliability_min,
        "theta_corr_min": btl.theta_corr_min,
        "theta_sd_rel_change_max": btl.theta_sd_rel_change_max,
        "rank_spearman_min": btl.rank_spearman_min,
        "round_pairs_target": adaptive.round_pairs_target if plan is None else plan.round_pairs_target,
        "round_pairs_effective": effective,
        "selector": request.selector,
        "is_closing": request.is_closing,
        "goal": adaptive.goal,
        "top_wrong_allowed": None if adaptive.top is None else adaptive.top * btl.top_wrong_max,
    }


def judge_columns(fit: Any) -> dict[str, str]:
    """What a fit says of the judges of a panel, as JSON, and who of them is weak; nothing of other fits."""
    judges = getattr(fit, "judges", None)
    if judges is None:
        return {}
    plain = judges.with_columns(cs.float().round(4))
    weak = judges.filter("weak")["judge_id"].sort().to_list()
    return {"judge_slopes": json.dumps(plain.to_dicts()), "weak_judges": json.dumps(weak)}


def figure_columns(request: RefitRequest, theta: Floats) -> dict[str, Any]:
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


def _lagged(lag: LagPoint | None, theta: Floats, keep: Flags | slice) -> dict[str, Any]:
    """How the scores moved since the lagged refit, over the items that both have."""
    names = ("rho_theta", "delta_sd_theta", "rho_rank")
    if lag is None:
        return {"lag_eligible": False, "lag_refit_id": None, **dict.fromkeys(names)}
    n = min(len(theta), len(lag.theta_mean))
    keep = keep if isinstance(keep, slice) else keep[:n]
    now, before = theta[:n][keep], np.asarray(lag.theta_mean, dtype=np.float64)[:n][keep]
    n = len(now)
    # Equal values have no spread, whatever rounding makes of their mean.
    spread_now, spread_before = (float(x.std(ddof=1)) if n > 1 and x.min() < x.max() else 0.0 for x in (now, before))
    figures = (
        pearson(now, before),
        abs(spread_now - spread_before) / spread_before if spread_before > 0 else None,
        spearman(now, before),
    )
    return {"lag_eligible": True, "lag_refit_id": lag.refit_id, **dict(zip(names, figures, strict=True))}
