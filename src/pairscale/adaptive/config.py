"""Every number that an adaptive run goes by, with its meaning, its range and its default for N items.

Section numbers are those of the design document. What a user gives is checked by name and range before anything else
happens; what is not given follows from the number of items, and follows it again when items join later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from typing import Any, Literal, Self, get_args

from pairscale.adaptive.goals import ORDER, require_goal, top_of
from pairscale.core.errors import InputError
from pairscale.core.options import (
    optional,
    require_choice,
    require_flag,
    require_int,
    require_mapping,
    require_number,
    require_number_or,
)
from pairscale.core.tables import listed
from pairscale.models.bayes.diagnostics import DiagnosticsGate
from pairscale.models.bayes.settings import Answer, Judges, MCMCSettings, Repeats, Variant, require_repeats

__all__ = ["STOP_SETTINGS", "AdaptiveConfig", "BTLConfig", "RoundQuotas"]

ReliabilityFigure = Literal["reliability_EAP", "reliability_r2"]
"""The columns of the round log that a run may claim as its reliability."""

Ties = Literal["invalid", "half"]

Criterion = Literal["determinant", "ranks"]
"""What the selector ``information`` reduces."""

SMALL = 30
"""Below so many items the document is silent, and rules of our own hold (docs/adaptive.md)."""


def _range(meaning: str, low: float, high: float, *, section: str) -> dict[str, Any]:
    """What is known of a field: its meaning and range. A field that has no default is a function of N."""
    return {"meaning": meaning, "low": low, "high": high, "section": section}


def _setting(meaning: str, low: float, high: float, default: Any, *, section: str) -> Any:
    """A field with its meaning, its range and its default."""
    return field(default=default, metadata=_range(meaning, low, high, section=section))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig:
    """How pairs are chosen. Make one with :meth:`for_items`; :meth:`describe` lists every field."""

    explore_rate: float = field(metadata=_range("share of steps that explore", 0, 1, section="4.2"))
    round_pairs_target: int = field(metadata=_range("comparisons that a round plans", 1, 10**9, section="4.6.1"))
    W_cap: int = field(metadata=_range("comparisons that count as recent", 1, 10**6, section="6.1.1"))
    K_base: int = field(metadata=_range("strata below the top band", 1, 10**4, section="5.0.1"))
    long_min_dist: int = field(
        metadata=_range("strata between the two of a long link, at least", 1, 10**4, section="5.1.2")
    )
    mid_max_dist: int = field(
        metadata=_range("strata between the two of a mid link, at most", 1, 10**4, section="5.1.3")
    )
    k_total: int = field(metadata=_range("anchors", 0, 10**4, section="7.1"))
    k_top: int = field(metadata=_range("of these, from the top; as many come from the bottom", 0, 10**4, section="7.1"))
    boundary_window: int = field(
        metadata=_range("ranks on either side of boundary_k that are its border", 0, 10**6, section="5.1.4")
    )

    C_max: int = _setting("candidate pairs looked at in one attempt", 1, 10**7, 20_000, section="5.1.5")
    quota_eps: float = _setting(
        "share of steps that must take a rarely seen item, until all were seen twice", 0, 1, 0.20, section="3.2"
    )
    explore_resample_max: int = _setting("items tried when exploring finds no partner", 0, 10**4, 10, section="7.5.2")
    explore_nonlocal_rate: float = _setting("share of exploring that looks far away", 0, 1, 0.15, section="7.5.2")
    explore_taper_mult: float = _setting(
        "what exploring is multiplied by once the order is known", 0, 1, 0.50, section="4.2"
    )
    cap_frac: float = _setting("share of recent comparisons that one item may have", 0, 1, 0.08, section="6.1.1")
    dup_p_margin: float = _setting(
        "how near to 0.5 a pair must be to be asked a third time", 0, 0.5, 0.05, section="5.3.2"
    )
    dup_max_obs: int = _setting("answers that a pair may have", 1, 100, 2, section="5.3.2")
    dup_max_obs_relaxed: int = _setting("the same when nothing else is left", 1, 100, 3, section="5.3.2")
    q: float = _setting("quantile of utility that a third answer must reach", 0, 1, 0.90, section="5.3.2")
    repeat_in_round_budget: int = _setting(
        "second appearances of items that a round may have", 0, 10**4, 2, section="5.1.6"
    )
    exposure_underrep_q: float = _setting(
        "quantile of recent comparisons below which an item may appear twice", 0, 1, 0.25, section="5.1.6"
    )
    anchor_frac_early: float = _setting("share of anchor links in early rounds", 0, 1, 0.30, section="4.6.2")
    anchor_frac_late: float = _setting("share of anchor links later", 0, 1, 0.20, section="4.6.2")
    anchor_rounds_early: int = _setting("rounds that are early for anchor links", 0, 10**6, 4, section="4.6.2")
    long_frac_early: float = _setting("share of long links in early rounds", 0, 1, 0.10, section="4.6.2")
    long_frac_late: float = _setting("share of long links later", 0, 1, 0.05, section="4.6.2")
    long_rounds_early: int = _setting("rounds that are early for long links", 0, 10**6, 4, section="4.6.2")
    mid_frac: float = _setting("share of mid links", 0, 1, 0.10, section="4.6.2")
    long_taper_mult: float = _setting(
        "what the share of long links is multiplied by once the order is known", 0, 1, 0.25, section="4.6.2"
    )
    long_frac_floor: float = _setting("share of long links that always stays", 0, 1, 0.02, section="4.6.2")
    mid_bonus_frac: float = _setting(
        "share of the long links taken away that become mid links", 0, 1, 0.20, section="4.6.2"
    )
    top_band_pct: float = _setting("share of the items in the finely divided top band", 0, 1, 0.10, section="5.0.2")
    top_band_bins: int = _setting("strata in the top band", 1, 10**4, 5, section="5.0.2")
    mid_min_dist: int = _setting("strata between the two of a mid link, at least", 0, 10**4, 2, section="5.1.3")
    local_max_dist: int = _setting("strata between the two of a local link, at most", 0, 10**4, 1, section="5.1.4")
    local_anchors: bool = _setting("whether anchors take part in local links", 0, 1, True, section="5.1.4")
    global_identified_reliability_min: float = _setting(
        "EAP reliability from which the order may count as known", 0, 1, 0.80, section="4.5.1"
    )
    global_identified_rank_corr_min: float = _setting(
        "rank correlation of TrueSkill and model that this needs", -1, 1, 0.90, section="4.5.1"
    )
    p_long_low: float = _setting(
        "posterior probability below which a long link is decided", 0, 1, 0.10, section="5.1.2"
    )
    p_long_high: float = _setting("posterior probability above which it is", 0, 1, 0.90, section="5.1.2")
    boundary_k: int = _setting("the top so many, whose border deserves care", 1, 10**6, 20, section="5.1.4")
    boundary_frac: float = _setting("share of local links spent on that border", 0, 1, 0.15, section="5.1.4")
    p_star_override_margin: float = _setting(
        "how near to 0.5 a pair must be to pass a star cap", 0, 0.5, 0.05, section="6.1.1"
    )
    star_override_budget_per_round: int = _setting("such passes in a round", 0, 10**4, 1, section="6.1.1")
    degree_alpha: float = _setting(
        "exponent of the penalty on often seen items; 0 is none", 0, 0.1, 0.0, section="6.1.3"
    )
    degree_penalty_max: float = _setting("the largest such penalty, as a factor", 1, 3, 2.0, section="6.1.3")
    max_invalid_per_pair: int = _setting("invalid answers after which a pair is given up", 1, 10**4, 3, section="2.2")
    max_invalid_per_item: int = _setting(
        "invalid answers in a row after which an item is set aside", 1, 10**4, 10, section="2.2"
    )
    max_failures_in_row: int = _setting(
        "answers in a row without a valid one that pause the run", 1, 10**6, 20, section="2.2"
    )
    ties: Ties = _setting(  # noqa: RUF009
        "what a tie, or a flip between orders, is: invalid, or half (half a win for each)",
        0,
        0,
        "invalid",
        section="-",
    )

    reverse_rate: float = _setting(
        "share of comparisons that ask an earlier pair again in the other order", 0, 1, 0.0, section="-"
    )
    discount_repeats: bool = _setting(
        "whether a pair that was asked is worth less, as far as repeats agree", 0, 1, False, section="-"
    )
    flip_share_max: float = _setting(
        "share of reversed pairs with the opposite answer that, surely exceeded, pauses the run", 0, 1, 1.0, section="-"
    )

    criterion: Criterion = _setting(  # noqa: RUF009
        "what the selector information reduces: determinant (of the covariance), or ranks (up to 500 texts)", 0, 0,
        "determinant", section="-",
    )  # fmt: skip
    goal: str = _setting("what the run is for: order, or top:K (the K best texts)", 0, 0, ORDER, section="-")

    def __post_init__(self) -> None:
        _check(self, "adaptive_config", but=("ties", "criterion", "goal"))
        require_choice(self.criterion, "adaptive_config: criterion", get_args(Criterion))
        object.__setattr__(self, "goal", require_goal(self.goal))
        require_choice(self.ties, "adaptive_config: ties", get_args(Ties))
        _in_order(self, "adaptive_config", "p_long_low", "p_long_high")
        _in_order(self, "adaptive_config", "mid_min_dist", "mid_max_dist")
        _in_order(self, "adaptive_config", "dup_max_obs", "dup_max_obs_relaxed")
        if 2 * self.k_top > self.k_total:
            raise InputError(f"adaptive_config: k_top ({self.k_top}) must be at most half of k_total ({self.k_total})")

    @classmethod
    def for_items(
        cls, n_items: int, given: Mapping[str, Any] | None = None, *, refit_pairs_target: int | None = None
    ) -> Self:
        """The configuration of a run.

        Args:
            n_items: how many items there are.
            given: fields that shall be otherwise than the default.
            refit_pairs_target: comparisons between two refits, from which the size of a round follows.

        Raises:
            InputError: that names an unknown field, or the range of an impossible one.
        """
        known = _given(cls, given, "adaptive_config")
        n = require_int(n_items, "n_items", least=1)
        given_refit = optional(require_int, refit_pairs_target, "refit_pairs_target", least=1, most=10**9)
        refit = given_refit or _refit_pairs(n)
        base = 5 if n < 60 else 10 if n < 150 else 12 if n < 400 else 20
        base = require_int(known.get("K_base", base), "adaptive_config: K_base", least=1, most=10**4)
        total = min(40, max(10, round(0.10 * n))) if n >= SMALL else max(2, round(n / 3))
        total = known.get("k_total", total if n >= 6 else 0)
        by_size: dict[str, Any] = {
            "explore_rate": min(0.25, max(0.10, 0.20 - 0.02 * math.log10(n))),
            "round_pairs_target": math.ceil(refit / 2),
            "W_cap": max(200, min(2000, refit)),
            "K_base": base,
            "long_min_dist": math.ceil(0.5 * base),
            "mid_max_dist": max(min(4, base - 1), _usable(known.get("mid_min_dist"), 1)),
            "k_total": total,
            "k_top": round(0.30 * _usable(total, 0)),
            "boundary_window": max(10, math.ceil(0.05 * n)),
            "dup_max_obs_relaxed": max(3, _usable(known.get("dup_max_obs"), 3)),
        }
        by_size["mid_min_dist"] = min(2, by_size["mid_max_dist"])
        made = cls(**by_size | known)
        if made.top is not None and made.top >= n:
            raise InputError(f"goal {made.goal!r} needs more than {made.top:,} texts, and there are {n:,}")
        return made

    @property
    def top(self) -> int | None:
        """How many texts at the top the run is for; None when it is for the whole order."""
        return top_of(self.goal)

    def cap_count(self, n_items: int) -> int:
        """How many recent comparisons an item may have (§6.1.1); below N = 30 never fewer than everybody has."""
        cap = math.ceil(self.cap_frac * self.W_cap)
        return cap if n_items >= SMALL else max(cap, math.ceil(1.5 * 2 * self.W_cap / n_items))

    def round_pairs_effective(self, n_items: int) -> int:
        """How many comparisons a round can hold when an item appears once (and a few twice)."""
        return max(1, min(self.round_pairs_target, (n_items + self.repeat_in_round_budget) // 2))

    def quotas(self, round_id: int, n_items: int, *, global_identified: bool, anchors: bool = True) -> RoundQuotas:
        """What a round plans, by stage (§4.6.2).

        Args:
            round_id: the round, from 1.
            n_items: how many items there are.
            global_identified: whether the order counts as known, which tapers long links.
            anchors: whether there are any.
        """
        planned = self.round_pairs_effective(n_items)
        anchor_frac = self.anchor_frac_early if round_id <= self.anchor_rounds_early else self.anchor_frac_late
        long_frac = self.long_frac_early if round_id <= self.long_rounds_early else self.long_frac_late
        tapered = max(self.long_frac_floor, long_frac * self.long_taper_mult) if global_identified else long_frac
        raw, effective = _ceil(long_frac * planned), _ceil(tapered * planned)
        removed = max(0, raw - effective)
        to_mid = _ceil(self.mid_bonus_frac * removed)
        stages = {
            "anchor_link": _ceil(anchor_frac * planned) if anchors else 0,
            "long_link": min(raw, effective),
            "mid_link": _ceil(self.mid_frac * planned) + to_mid,
        }
        # A small round cannot hold one of each: what is most easily spared goes first, and a local link always stays.
        for name in ("mid_link", "long_link", "anchor_link"):
            over = sum(stages.values()) - (planned - 1)
            stages[name] -= min(stages[name], max(0, over))
        return RoundQuotas(
            **stages,
            local_link=planned - sum(stages.values()),
            round_pairs_target=self.round_pairs_target,
            round_pairs_effective=planned,
            long_quota_raw=raw,
            long_quota_effective=effective,
            long_quota_removed=removed,
            realloc_to_mid=to_mid,
            realloc_to_local=removed - to_mid,
        )

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """Every field: ``name section default low high meaning``; a default of None is a function of N."""
        return _described(cls)


@dataclass(frozen=True, slots=True)
class RoundQuotas:
    """What one round plans.

    Attributes:
        anchor_link: comparisons of an anchor with another item.
        long_link: comparisons of items far apart.
        mid_link: comparisons of items some way apart.
        local_link: comparisons of neighbours.
        round_pairs_target: what a round of this run plans at most.
        round_pairs_effective: what this one can hold: the sum of the four.
        long_quota_raw: long links before the taper.
        long_quota_effective: after it.
        long_quota_removed: the difference.
        realloc_to_mid: of that, given to mid links.
        realloc_to_local: of that, given to local links.
    """

    anchor_link: int
    long_link: int
    mid_link: int
    local_link: int
    round_pairs_target: int
    round_pairs_effective: int
    long_quota_raw: int
    long_quota_effective: int
    long_quota_removed: int
    realloc_to_mid: int
    realloc_to_local: int

    def of(self, stage: str) -> int:
        """The quota of a stage."""
        return int(getattr(self, stage))


_NOT_NUMBERS = ("model_variant", "prior_sd", "answer", "judges", "repeats", "reliability_figure", "mcmc")
STOP_SETTINGS = (
    "eap_reliability_min", "stability_lag", "theta_corr_min", "theta_sd_rel_change_max", "rank_spearman_min",
    "top_wrong_max",
)  # fmt: skip
"""The fields of :class:`BTLConfig` that only say when the run stops. They may change while a run is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BTLConfig:
    """When the model is fitted again, and when the run stops. Make one with :meth:`for_items`."""

    refit_pairs_target: int = field(metadata=_range("new comparisons that call for a refit", 1, 10**9, section="4.3"))
    ess_bulk_min: float = field(
        metadata=_range("bulk effective sample size that a refit needs", 0, 10**9, section="4.4")
    )
    ess_bulk_min_near_stop: float = field(metadata=_range("the same near the stop", 0, 10**9, section="4.4"))
    model_variant: Variant = _setting("btl, btl_e, btl_b or btl_e_b", 0, 0, "btl_e_b", section="1.2")  # noqa: RUF009
    prior_sd: float | Literal["learned"] = _setting(
        "spread of the abilities' prior, or learned", 0, 1e6, 1.0, section="1.3"
    )
    answer: Answer = _setting(  # noqa: RUF009
        "what of an answer is evidence: winner, or probability", 0, 0, "winner", section="-"
    )
    judges: Judges = _setting(  # noqa: RUF009
        "of a panel of judges: pooled, as if they were one, or slopes, a slope and a position effect for each", 0, 0,
        "pooled", section="-",
    )  # fmt: skip
    repeats: Repeats = _setting(  # noqa: RUF009
        "how repeats of a pair count: independent, learned, or their excess agreement", 0, 1, "independent", section="-"
    )
    max_rhat: float = _setting("largest R-hat allowed", 1, 1e6, 1.01, section="9.1.2")
    divergences_max: int = _setting("divergences allowed", 0, 10**9, 0, section="9.1.1")
    eap_reliability_min: float = _setting("EAP reliability that a stop needs", 0, 1, 0.90, section="9.2")
    stability_lag: int = _setting("passing refits that a stop looks back", 1, 10**6, 2, section="9.3")
    theta_corr_min: float = _setting(
        "correlation with that refit's scores that a stop needs", -1, 1, 0.95, section="9.3"
    )
    theta_sd_rel_change_max: float = _setting(
        "relative change of their spread that it allows", 0, 1e6, 0.10, section="9.3"
    )
    rank_spearman_min: float = _setting("rank correlation that it needs", -1, 1, 0.95, section="9.4")
    top_wrong_max: float = _setting(
        "expected share of wrong members that a stop allows, where the goal is top:K", 0, 1, 0.10, section="-"
    )
    near_tie_p_low: float = _setting("lowest probability of a near tie, for the log", 0, 1, 0.40, section="10.2")
    near_tie_p_high: float = _setting("highest probability of a near tie", 0, 1, 0.60, section="10.2")
    reliability_figure: ReliabilityFigure = _setting(  # noqa: RUF009
        "the reliability that the run claims and stops by: reliability_EAP or reliability_r2", 0, 0, "reliability_EAP",
        section="9.2",
    )  # fmt: skip
    screen_refits: bool = _setting(
        "whether the normal approximation may rule a stop out, so that the sampler runs near the stop only", 0, 1,
        False, section="9",
    )  # fmt: skip
    mcmc: Mapping[str, Any] = field(
        default_factory=dict,
        metadata={
            "meaning": "settings of the sampler (MCMCSettings), but for its seed",
            "low": 0,
            "high": 0,
            "section": "8.1",
        },
    )

    def __post_init__(self) -> None:
        _check(self, "btl_config", but=_NOT_NUMBERS)
        require_choice(self.model_variant, "btl_config: model_variant", get_args(Variant))
        require_choice(self.answer, "btl_config: answer", get_args(Answer))
        require_choice(self.judges, "btl_config: judges", get_args(Judges))
        require_choice(self.reliability_figure, "btl_config: reliability_figure", get_args(ReliabilityFigure))
        spread = require_number_or(self.prior_sd, "btl_config: prior_sd", ("learned",), above=0)
        object.__setattr__(self, "prior_sd", spread)
        object.__setattr__(self, "repeats", require_repeats(self.repeats, "btl_config: repeats"))
        if self.judges == "slopes" and (self.answer == "probability" or spread != "learned"):
            what = "answer='probability'" if self.answer == "probability" else f"prior_sd={spread!r}"
            raise InputError(f"btl_config: judges='slopes' does not take {what}; leave it out, or use judges='pooled'")
        _in_order(self, "btl_config", "near_tie_p_low", "near_tie_p_high")
        _in_order(self, "btl_config", "ess_bulk_min", "ess_bulk_min_near_stop")
        if MCMCSettings.given(self.mcmc).seed is not None:
            raise InputError("btl_config: mcmc takes no seed; the seed of the run gives every fit its own")

    @classmethod
    def for_items(cls, n_items: int, given: Mapping[str, Any] | None = None) -> Self:
        """The configuration of a run of so many items; ``given`` replaces defaults.

        Raises:
            InputError: that names an unknown field, or the range of an impossible one.
        """
        known = _given(cls, given, "btl_config")
        gate = DiagnosticsGate.for_items(n_items)
        low = require_number(
            known.get("ess_bulk_min", gate.ess_bulk_min), "btl_config: ess_bulk_min", least=0, most=10**9
        )
        by_size: dict[str, Any] = {
            "refit_pairs_target": _refit_pairs(n_items),
            "ess_bulk_min": low,
            "ess_bulk_min_near_stop": max(gate.ess_bulk_min_near_stop, low),
        }
        return cls(**by_size | known)

    @property
    def gate(self) -> DiagnosticsGate:
        """The diagnostics gate."""
        return DiagnosticsGate(self.ess_bulk_min, self.ess_bulk_min_near_stop, self.max_rhat, self.divergences_max)

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """Every field: ``name section default low high meaning``; a default of None is a function of N."""
        return _described(cls)


def _refit_pairs(n_items: int) -> int:
    return min(5000, max(100, math.ceil(n_items / 2))) if n_items >= SMALL else max(5, n_items)


def _ceil(value: float) -> int:
    """Up to the next whole number, forgiving the last bit: 0.1 * 50 is five, whatever the machine makes of it."""
    return math.ceil(value - 1e-9)


def _usable(value: Any, otherwise: int) -> int:
    """A whole number that other defaults may follow; anything else is refused by its own name a little later."""
    try:
        return require_int(value, "", least=0, most=10**4)
    except InputError:
        return otherwise


def _given(cls: type, given: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    if isinstance(given, cls):
        return asdict(given)  # type: ignore[call-overload,no-any-return]
    settings = optional(require_mapping, given, what) or {}
    names = [entry.name for entry in fields(cls)]
    if unknown := sorted(name for name in settings if name not in names):
        raise InputError(f"{what}: no field {listed(unknown)}; there are {listed(names, 60)}")
    return settings


def _check(config: Any, what: str, but: tuple[str, ...] = ()) -> None:
    """Validate every field by its type and range, and keep it as a plain Python value."""
    for entry in fields(config):
        if entry.name in but:
            continue
        given, name, plain = getattr(config, entry.name), f"{what}: {entry.name}", entry.metadata
        value: float
        if str(entry.type) == "bool":
            value = require_flag(given, name)
        elif str(entry.type) == "int":
            value = require_int(given, name, least=plain["low"], most=plain["high"])
        else:
            value = require_number(given, name, least=plain["low"], most=plain["high"])
        object.__setattr__(config, entry.name, value)


def _in_order(config: Any, what: str, low: str, high: str) -> None:
    least, most = getattr(config, low), getattr(config, high)
    if least > most:
        raise InputError(f"{what}: {low} ({least!r}) must not be above {high} ({most!r})")


def _described(cls: type) -> list[dict[str, Any]]:
    return [
        {"name": entry.name, "section": entry.metadata["section"], "default": _default(entry),
         "low": entry.metadata["low"], "high": entry.metadata["high"], "meaning": entry.metadata["meaning"]}
        for entry in fields(cls)
    ]  # fmt: skip


def _default(entry: Field[Any]) -> Any:
    return None if entry.default is MISSING else entry.default
