"""The step log: one row per step, in the order in which the answers came; its columns, their types and meanings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, TypeAlias

import polars as pl

Row: TypeAlias = Mapping[str, Any]
"""A row of a log, by the names of its columns."""

Columns: TypeAlias = dict[str, Any]
"""Some columns of a row that is being made."""

_INT, _REAL, _TEXT, _FLAG = pl.Int64(), pl.Float64(), pl.String(), pl.Boolean()
_TIME = pl.Datetime("us", "UTC")

_STEP: dict[str, tuple[Any, str]] = {
    # Which step, and what came of it
    "step_id": (_INT, "which step, counted from 1 in the order of asking"),
    "timestamp": (_TIME, "when its answer was recorded, UTC"),
    "pair_id": (_INT, "which committed comparison, counted from 1; missing when none was committed"),
    "i": (_INT, "one item of the pair, by its number from 1"),
    "j": (_INT, "the other item"),
    "A": (_INT, "the item that stood first"),
    "B": (_INT, "the item that stood second"),
    "Y": (
        _INT,
        "1 when the first won, 0 when the second did, 0.5 for a tie (ties = half); missing without a valid answer",
    ),
    "status": (_TEXT, "committed, invalid (asked, no valid answer) or starved (nothing to ask)"),
    # Where in the schedule
    "round_id": (_INT, "which round; 0 is the warm start"),
    "round_stage": (
        _TEXT,
        "warm_start, reverse, anchor_link, long_link, mid_link or local_link; or another selector's name",
    ),
    "pair_type": (_TEXT, "the same as round_stage"),
    "stage_committed_so_far": (_INT, "comparisons committed in this round and stage when it was chosen"),
    "stage_quota": (_INT, "how many this round and stage plan"),
    # Exposure and strata
    "used_in_round_i": (_INT, "how often i was used in this round before"),
    "used_in_round_j": (_INT, "how often j was"),
    "is_anchor_i": (_FLAG, "whether i was an anchor"),
    "is_anchor_j": (_FLAG, "whether j was"),
    "stratum_i": (_INT, "the stratum of i, 1 the best"),
    "stratum_j": (_INT, "the stratum of j"),
    "dist_stratum": (_INT, "the distance of the two strata"),
    # How it was chosen
    "is_explore_step": (_FLAG, "whether the pair was chosen to explore, not for its utility"),
    "explore_mode": (_TEXT, "local or nonlocal"),
    "explore_reason": (_TEXT, "probabilistic or coverage_quota_override"),
    "explore_rate_used": (_REAL, "the share of exploring that held for this step"),
    "local_priority_mode": (_TEXT, "in local links: standard, near_tie or boundary"),
    "long_gate_pass": (_FLAG, "in long links, once the order is known: whether the outcome was still open"),
    "long_gate_reason": (
        _TEXT,
        "posterior_extreme: decided already; posterior_unavailable: TrueSkill was used instead",
    ),
    "star_override_used": (_FLAG, "whether a star cap was passed because of a near tie"),
    "star_override_reason": (
        _TEXT,
        "near_tie_override, only_pairs_left, or why it was not: budget_exhausted, deg_extreme",
    ),
    "candidate_starved": (_FLAG, "whether nothing could be chosen in this stage"),
    "fallback_used": (_TEXT, "base, expand_locality, uncertainty_pool, dup_relax or global_safe"),
    "fallback_path": (_TEXT, "all that were tried, in their order"),
    "starvation_reason": (
        _TEXT,
        "what left nothing to choose from: no_candidates, hard_filters, duplicates, star_caps, routing",
    ),
    # Candidates left after each part of the pipeline
    "n_candidates_generated": (_INT, "candidate pairs that the stage gave"),
    "n_candidates_after_hard_filters": (_INT, "of these, neither in flight, nor resting, nor given up"),
    "n_candidates_after_duplicates": (_INT, "of these, not asked too often"),
    "n_candidates_after_star_caps": (_INT, "of these, without an item that was too busy lately"),
    "n_candidates_scored": (_INT, "of these, given a utility: all of them"),
    # The two items when they were chosen
    "deg_i": (_INT, "comparisons of i so far"),
    "deg_j": (_INT, "comparisons of j so far"),
    "recent_deg_i": (_INT, "comparisons of i among the last W_cap"),
    "recent_deg_j": (_INT, "comparisons of j among them"),
    "mu_i": (_REAL, "TrueSkill mu of i"),
    "mu_j": (_REAL, "TrueSkill mu of j"),
    "sigma_i": (_REAL, "TrueSkill sigma of i"),
    "sigma_j": (_REAL, "TrueSkill sigma of j"),
    "p_ij": (_REAL, "TrueSkill's probability that i beats j; missing when nothing was committed"),
    "U0_ij": (_REAL, "p_ij (1 - p_ij): how open the outcome was"),
    # Star caps
    "star_cap_rejects": (_INT, "candidates that the star caps refused"),
    "star_cap_reject_items": (_INT, "different items that were too busy"),
    # Beyond the document: what a replay and a reader need
    "A_id": (_TEXT, "the id of the item that stood first"),
    "B_id": (_TEXT, "the id of the item that stood second"),
    "invalid_reason": (_TEXT, "why an answer was not valid"),
    "invalid_kind": (
        _TEXT,
        "abstention (no winner was named), failure (this pair cannot be judged) or error (no connection)",
    ),
    "proposed_after": (_INT, "rows of this log that there were when the step was chosen"),
    "in_flight": (_INT, "other pairs that were being asked then"),
    "belief_refit_id": (_INT, "the refit whose scores the choice knew of; missing before the first"),
    "repeats_allowed": (_FLAG, "whether rarely seen items might appear a second time in the round"),
    "set_aside": (_TEXT, "ids of items that are no longer asked about from this answer on"),
    "selector": (_TEXT, "who chose"),
    "orders_agree": (
        _FLAG,
        "with ties = half and a judge that is asked in both orders: whether both named the same text",
    ),
    "probability": (_REAL, "with answer = probability: the judge's probability that the first is better"),
    "judge": (_TEXT, "with a panel of judges: who of them answered"),
}

STEP_LOG: dict[str, pl.DataType] = {name: dtype for name, (dtype, _) in _STEP.items()}
"""The columns of the step log."""

STEP_LOG_MEANING: dict[str, str] = {name: meaning for name, (_, meaning) in _STEP.items()}
"""What they mean."""


def step_frame(rows: Sequence[Row], *, ties: bool = False) -> pl.DataFrame:
    """Rows by column name as a table with exactly the columns of :data:`STEP_LOG`.

    Args:
        rows: the rows.
        ties: whether a tie is an answer, so that ``Y`` may be 0.5: it is a whole number otherwise.
    """
    columns = []
    types = STEP_LOG | {"Y": _REAL} if ties else STEP_LOG
    for name, dtype in types.items():
        values = [row.get(name) for row in rows]
        if dtype == _TIME:
            text = pl.Series(name, values, dtype=pl.String)
            columns.append(text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", time_zone="UTC"))
        else:
            columns.append(pl.Series(name, values, dtype=dtype, strict=True))
    return pl.DataFrame(columns)


def health_columns(rows: Sequence[Row]) -> Columns:
    """The columns of the round log that say how the choosing went, from the rows since the last refit."""
    used = Counter(row["fallback_used"] for row in rows if row.get("fallback_used"))
    starved = Counter(row["starvation_reason"] for row in rows if row.get("candidate_starved"))
    scored = [row for row in rows if row.get("n_candidates_scored") is not None]
    star_rejects = sum(row["star_cap_rejects"] or 0 for row in scored)
    rejects = sum(row["n_candidates_generated"] - row["n_candidates_scored"] for row in scored)
    return {
        "proposed_pairs_mode": float(median(row["n_candidates_scored"] for row in scored)) if scored else None,
        "starve_rate_since_last_refit": starved.total() / len(rows) if rows else None,
        "fallback_rate_since_last_refit": (used.total() - used["base"]) / len(rows) if rows else None,
        "fallback_used_mode": _most(used),
        "starvation_reason_mode": _most(starved),
        "star_cap_rejects_since_last_refit": star_rejects,
        "star_cap_reject_rate_since_last_refit": star_rejects / rejects if rejects else None,
    }


def _most(counts: Counter[str]) -> str | None:
    """The most frequent; of equal ones the first by name, so that the order of rows does not matter."""
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None
