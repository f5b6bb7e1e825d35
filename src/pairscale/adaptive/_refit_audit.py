"""What a refit must say, given what came from outside: the scores that the sampler found, and its diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.adaptive._refit_columns import figure_columns, request_columns
from pairscale.adaptive.gates import NEAR_STOP_MARGIN, NEAR_STOP_WRONG, is_identified, may_stop, stop_gates
from pairscale.adaptive.goal_errors import expected_wrong

if TYPE_CHECKING:
    from pairscale.adaptive._belief import Belief
    from pairscale.adaptive.refits import RefitRequest

__all__ = ["belief_faults", "item_columns", "round_columns"]

Row = Mapping[str, Any]


def round_columns(request: RefitRequest, logged: Row, items: Row) -> dict[str, Any]:
    """The columns of the round log that follow from the run, its settings and the scores in the item log."""
    btl, keep = request.btl, request.counted
    degree, all_means = request.degree[keep], np.array(items["theta_mean"], dtype=np.float64)
    mean, sd = all_means[keep], np.array(items["theta_sd"], dtype=np.float64)[keep]
    between, within = float(mean.var(ddof=1)), float(np.mean(sd**2))
    near_stop = request.near_stop or bool(logged["phase3_entered"])
    repeats = logged["repeat_agreement"] if btl.repeats == "learned" else btl.repeats
    gates = stop_gates(logged)
    return {
        **request_columns(request),
        **figure_columns(request, all_means),
        "n_items": len(mean),
        "mean_degree": float(degree.mean()),
        "min_degree": int(degree.min()),
        "pos_balance_sd": float((request.first - request.second)[keep].std(ddof=1)),
        "reliability_EAP": between / (between + within) if between + within > 0 else None,
        "reliability": logged[btl.reliability_figure],
        "screened": bool(logged["screened"]) and btl.screen_refits and not may_stop(logged),
        "theta_sd_eap": between**0.5,
        "divergences_max_allowed": btl.divergences_max,
        "max_rhat_allowed": btl.max_rhat,
        "ess_bulk_required": btl.ess_bulk_min_near_stop if near_stop else btl.ess_bulk_min,
        "near_stop_active": near_stop,
        "phase3_entered": _enters(request, logged, passed=bool(gates["diagnostics_pass"])),
        "global_identified": is_identified(logged) if gates["diagnostics_pass"] else request.global_identified,
        "repeat_agreement": None if repeats == "independent" else repeats,
        "top_wrong": _wrong(request, items),
        **gates,
    }


def _wrong(request: RefitRequest, items: Row) -> float | None:
    """The expected number of wrong members, from the probabilities in the item log."""
    if request.adaptive.top is None:
        return None
    keep = request.counted
    in_top = np.array(items["top_prob"], dtype=np.float64)[keep]
    return expected_wrong(in_top, np.array(items["theta_mean"], dtype=np.float64)[keep], request.adaptive.top)


def _enters(request: RefitRequest, logged: Row, *, passed: bool) -> bool:
    """Whether a refit entered phase 3. One that did may have been drawn again, so its log alone cannot refute it."""
    if request.near_stop:
        return False
    if request.adaptive.top is None:
        reliability = logged["reliability"]
        near = reliability is not None and reliability >= request.btl.eap_reliability_min - NEAR_STOP_MARGIN
    else:
        near = logged["top_wrong"] <= NEAR_STOP_WRONG * logged["top_wrong_allowed"]
    return bool(logged["phase3_entered"]) or (passed and near)


def item_columns(request: RefitRequest, items: Row) -> dict[str, Any]:
    """The columns of the item log that follow from the run and from the scores in it."""
    degree = request.degree.tolist()
    theta = np.array(items["theta_mean"], dtype=np.float64)
    return {
        "refit_id": [request.refit_id] * len(degree),
        "ID": list(request.ids),
        "degree": degree,
        "pos_count_A": request.first.tolist(),
        "pos_count_B": request.second.tolist(),
        "pos_A_rate": [
            first / times if times else None for first, times in zip(request.first.tolist(), degree, strict=True)
        ],
        "rank": (1 + len(theta) - np.searchsorted(np.sort(theta), theta, side="right")).tolist(),
    }


def belief_faults(request: RefitRequest, logged: Row, items: Row, belief: Belief) -> Iterator[str]:
    """What the rest of the run was given must be what the logs of the refit say; each difference in words."""
    said = {
        "refit_id": request.refit_id,
        "passed": logged["diagnostics_pass"],
        "near_stop": request.near_stop or logged["phase3_entered"],
        "global_identified": logged["global_identified"],
        "repeat_agreement": logged["repeat_agreement"] or 0.0,
    }
    for name, value in said.items():
        if getattr(belief, name) != value:
            yield f"{name} is {value!r} in the log and {getattr(belief, name)!r} in what was kept of it"
    for name in ("theta_mean", "theta_sd"):
        if not np.array_equal(getattr(belief, name), np.array(items[name], dtype=np.float64)):
            yield f"{name} is not the same in the item log and in what was kept of it"
    places = np.argsort(belief.rank)
    if (
        sorted(belief.rank.tolist()) != list(range(1, len(request.ids) + 1))
        or (np.diff(belief.theta_mean[places]) > 0).any()
    ):
        yield "rank is not that of the scores"
    if (belief.draws is None) == belief.global_identified:
        yield "draws are there exactly when the order counts as known, but not here"
