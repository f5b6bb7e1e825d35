"""Every number that an adaptive run goes by, with its meaning, its range and its default for N items; goals, presets.

Section numbers are those of the design document. What a user gives is checked by name and range before anything else
happens; what is not given follows from the number of items, and follows it again when items join later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, get_args, get_type_hints

from pairscale.core.errors import InputError
from pairscale.core.options import (
    optional,
    require_choice,
    require_flag,
    require_int,
    require_mapping,
    require_number,
    require_number_or,
    require_probability,
)
from pairscale.core.tables import listed
from pairscale.models.bayes.diagnostics import DiagnosticsGate
from pairscale.models.bayes.settings import Answer, Judges, MCMCSettings, Repeats, Variant, require_repeats

Settings: TypeAlias = Mapping[str, Any]
"""Settings by name: fields of one of the two configurations."""

SMALL = 30
"""Below this many items the document is silent, and rules of our own hold (docs/adaptive.md)."""


# What a run is for

ORDER = "order"
"""The goal of a run that ranks all texts alike."""

_TOP = "top:"


def require_goal(goal: object, name: str = "goal") -> str:
    """``order``, or ``top:K`` with a whole number K of 1 or more.

    Raises:
        InputError: If it is anything else.
    """
    if goal == ORDER:
        return ORDER
    text = goal.strip().lower() if isinstance(goal, str) else ""
    size = text.removeprefix(_TOP)
    if text == size or not size.isascii() or not size.isdigit():
        raise InputError(f"{name} must be 'order', or 'top:K' such as 'top:10', not {goal!r:.80}")
    return f"{_TOP}{require_int(int(size), name, least=1)}"


def top_of(goal: str) -> int | None:
    """The K of ``top:K``; None for the whole order."""
    return None if goal == ORDER else int(goal.removeprefix(_TOP))


# Fields


def _field(
    section: str,
    meaning: str,
    low: float = 0,
    high: float = 0,
    default: Any = MISSING,
    *,
    check: Callable[[Any, str], Any] | None = None,
) -> Any:
    """A field with what is known of it; one without a default is a function of N."""
    metadata = {"section": section, "meaning": meaning, "low": low, "high": high, "check": check}
    return field(default=default, metadata=metadata)


def _share(section: str, meaning: str, default: Any = MISSING) -> Any:
    """A field between 0 and 1."""
    return _field(section, meaning, 0, 1, default)


def _mcmc(value: Any, name: str) -> Settings:
    if MCMCSettings.given(value).seed is not None:
        raise InputError(f"{name} takes no seed; the seed of the run gives every fit its own")
    return dict(value)


class _Settings:
    """What both configurations have in common: fields that are checked by name, type and range."""

    _name: str

    @classmethod
    def _given(cls, config: Any) -> dict[str, Any]:
        """The fields that were given, checked, as plain Python values."""
        if isinstance(config, cls):
            return asdict(config)  # type: ignore[call-overload,no-any-return]
        settings = optional(require_mapping, config, cls._name) or {}
        known_fields = {entry.name: entry.metadata for entry in fields(cls)}  # type: ignore[arg-type]
        if unknown := sorted(set(settings) - set(known_fields)):
            raise InputError(f"{cls._name}: no field {listed(unknown)}; there are {listed(list(known_fields), 60)}")
        return {name: _checked(cls, name, known_fields[name], value) for name, value in settings.items()}

    def _in_order(self, low: str, high: str) -> None:
        least, most = getattr(self, low), getattr(self, high)
        if least > most:
            raise InputError(f"{self._name}: {low} ({least!r}) must not be above {high} ({most!r})")

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """Every field: ``name section default low high meaning``; a default of None is a function of N."""
        return [
            {"name": entry.name, "default": None if entry.default is MISSING else entry.default}
            | {name: entry.metadata[name] for name in ("section", "low", "high", "meaning")}
            for entry in fields(cls)  # type: ignore[arg-type]
        ]


_types = cache(get_type_hints)


def _checked(cls: type, field_name: str, known: Settings, value: Any) -> Any:
    kind = _types(cls)[field_name]
    name = f"{cls._name}: {field_name}"  # type: ignore[attr-defined]
    if known["check"] is not None:
        return known["check"](value, name)
    if kind is bool:
        return require_flag(value, name)
    if get_args(kind):
        return require_choice(value, name, get_args(kind))
    require: Any = require_int if kind is int else require_number
    return require(value, name, least=known["low"], most=known["high"])


# How pairs are chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig(_Settings):
    """How pairs are chosen. Make one with :meth:`for_items`; :meth:`describe` lists every field."""

    _name = "adaptive_config"

    explore_rate: float = _share("4.2", "share of steps that explore")
    round_pairs_target: int = _field("4.6.1", "comparisons that a round plans", 1, 1_000_000_000)
    W_cap: int = _field("6.1.1", "comparisons that count as recent", 1, 1_000_000)
    K_base: int = _field("5.0.1", "strata below the top band", 1, 10_000)
    long_min_dist: int = _field("5.1.2", "strata between the two of a long link, at least", 1, 10_000)
    mid_max_dist: int = _field("5.1.3", "strata between the two of a mid link, at most", 1, 10_000)
    k_total: int = _field("7.1", "anchors", 0, 10_000)
    k_top: int = _field("7.1", "of these, from the top; as many come from the bottom", 0, 10_000)
    boundary_window: int = _field("5.1.4", "ranks on either side of boundary_k that are its border", 0, 1_000_000)
    C_max: int = _field("5.1.5", "candidate pairs looked at in one attempt", 1, 10_000_000, 20_000)
    quota_eps: float = _share("3.2", "share of steps that must take a rarely seen item, until all were seen twice", 0.2)
    explore_resample_max: int = _field("7.5.2", "items tried when exploring finds no partner", 0, 10_000, 10)
    explore_nonlocal_rate: float = _share("7.5.2", "share of exploring that looks far away", 0.15)
    explore_taper_mult: float = _share("4.2", "what exploring is multiplied by once the order is known", 0.5)
    cap_frac: float = _share("6.1.1", "share of recent comparisons that one item may have", 0.08)
    dup_p_margin: float = _field("5.3.2", "how near to 0.5 a pair must be to be asked a third time", 0, 0.5, 0.05)
    dup_max_obs: int = _field("5.3.2", "answers that a pair may have", 1, 100, 2)
    dup_max_obs_relaxed: int = _field("5.3.2", "the same when nothing else is left", 1, 100, 3)
    q: float = _share("5.3.2", "quantile of utility that a third answer must reach", 0.9)
    repeat_in_round_budget: int = _field("5.1.6", "second appearances of items that a round may have", 0, 10_000, 2)
    exposure_underrep_q: float = _share(
        "5.1.6", "quantile of recent comparisons below which an item may appear twice", 0.25
    )
    anchor_frac_early: float = _share("4.6.2", "share of anchor links in early rounds", 0.3)
    anchor_frac_late: float = _share("4.6.2", "share of anchor links later", 0.2)
    anchor_rounds_early: int = _field("4.6.2", "rounds that are early for anchor links", 0, 1_000_000, 4)
    long_frac_early: float = _share("4.6.2", "share of long links in early rounds", 0.1)
    long_frac_late: float = _share("4.6.2", "share of long links later", 0.05)
    long_rounds_early: int = _field("4.6.2", "rounds that are early for long links", 0, 1_000_000, 4)
    mid_frac: float = _share("4.6.2", "share of mid links", 0.1)
    long_taper_mult: float = _share(
        "4.6.2", "what the share of long links is multiplied by once the order is known", 0.25
    )
    long_frac_floor: float = _share("4.6.2", "share of long links that always stays", 0.02)
    mid_bonus_frac: float = _share("4.6.2", "share of the long links taken away that become mid links", 0.2)
    top_band_pct: float = _share("5.0.2", "share of the items in the finely divided top band", 0.1)
    top_band_bins: int = _field("5.0.2", "strata in the top band", 1, 10_000, 5)
    mid_min_dist: int = _field("5.1.3", "strata between the two of a mid link, at least", 0, 10_000, 2)
    local_max_dist: int = _field("5.1.4", "strata between the two of a local link, at most", 0, 10_000, 1)
    local_anchors: bool = _field("5.1.4", "whether anchors take part in local links", 0, 1, True)
    global_identified_reliability_min: float = _share(
        "4.5.1", "reliability (reliability_figure) from which the order may count as known", 0.8
    )
    global_identified_rank_corr_min: float = _field(
        "4.5.1", "rank correlation of TrueSkill and model that this needs", -1, 1, 0.9
    )
    p_long_low: float = _share("5.1.2", "posterior probability below which a long link is decided", 0.1)
    p_long_high: float = _share("5.1.2", "posterior probability above which it is", 0.9)
    boundary_k: int = _field("5.1.4", "the top so many, whose border deserves care", 1, 1_000_000, 20)
    boundary_frac: float = _share("5.1.4", "share of local links spent on that border", 0.15)
    p_star_override_margin: float = _field("6.1.1", "how near to 0.5 a pair must be to pass a star cap", 0, 0.5, 0.05)
    star_override_budget_per_round: int = _field("6.1.1", "such passes in a round", 0, 10_000, 1)
    degree_alpha: float = _field("6.1.3", "exponent of the penalty on often seen items; 0 is none", 0, 0.1, 0.0)
    degree_penalty_max: float = _field("6.1.3", "the largest such penalty, as a factor", 1, 3, 2.0)
    max_invalid_per_pair: int = _field("2.2", "invalid answers after which a pair is given up", 1, 10_000, 3)
    max_invalid_per_item: int = _field(
        "2.2", "invalid answers in a row after which an item is set aside", 1, 10_000, 10
    )
    max_failures_in_row: int = _field(
        "2.2", "answers in a row without a valid one that pause the run", 1, 1_000_000, 20
    )
    ties: Literal["invalid", "half"] = _field(
        "-", "what a tie, or a flip between orders, is: invalid, or half (half a win for each)", default="invalid"
    )
    reverse_rate: float = _share("-", "share of comparisons that ask an earlier pair again in the other order", 0.0)
    discount_repeats: bool = _field(
        "-", "whether a pair that was asked is worth less, as far as repeats agree", 0, 1, False
    )
    flip_share_max: float = _share(
        "-", "share of reversed pairs with the opposite answer that, surely exceeded, pauses the run", 1.0
    )
    criterion: Literal["determinant", "ranks"] = _field(
        "-",
        "what the selector information reduces: determinant (of the covariance), or ranks (up to 500 texts)",
        default="determinant",
    )
    goal: str = _field(
        "-", "what the run is for: order, or top:K (the K best texts)", default=ORDER, check=require_goal
    )

    def __post_init__(self) -> None:
        self._in_order("p_long_low", "p_long_high")
        self._in_order("mid_min_dist", "mid_max_dist")
        self._in_order("dup_max_obs", "dup_max_obs_relaxed")
        if 2 * self.k_top > self.k_total:
            raise InputError(f"adaptive_config: k_top ({self.k_top}) must be at most half of k_total ({self.k_total})")

    @classmethod
    def for_items(cls, n_items: int, given: Settings | None = None, *, refit_pairs_target: int | None = None) -> Self:
        """The configuration of a run.

        Args:
            n_items: how many items there are.
            given: fields that shall be otherwise than the default.
            refit_pairs_target: comparisons between two refits, from which the size of a round follows.

        Raises:
            InputError: that names an unknown field, or the range of an impossible one.
        """
        chosen = cls._given(given)
        n = require_int(n_items, "n_items", least=1)
        refit = refit_pairs_target or _refit_pairs(n)
        base = chosen.get("K_base", 5 if n < 60 else 10 if n < 150 else 12 if n < 400 else 20)
        total = min(40, max(10, round(0.10 * n))) if n >= SMALL else max(2, round(n / 3))
        total = chosen.get("k_total", total if n >= 6 else 0)
        mid_max = max(min(4, base - 1), chosen.get("mid_min_dist", 1), 1)
        by_size = {
            "explore_rate": min(0.25, max(0.10, 0.20 - 0.02 * math.log10(n))),
            "round_pairs_target": math.ceil(refit / 2),
            "W_cap": max(200, min(2000, refit)),
            "K_base": base,
            "long_min_dist": math.ceil(0.5 * base),
            "mid_max_dist": mid_max,
            "mid_min_dist": min(2, mid_max),
            "k_total": total,
            "k_top": round(0.30 * total),
            "boundary_window": max(10, math.ceil(0.05 * n)),
            "dup_max_obs_relaxed": max(3, chosen.get("dup_max_obs", 3)),
        }
        made = cls(**by_size | chosen)
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

    def quotas(self, round_id: int, n_items: int, *, global_identified: bool, anchors: bool = True) -> dict[str, int]:
        """What a round plans, by stage (§4.6.2), and the columns of the round log that say how it came about.

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
        return {
            **stages,
            "local_link": planned - sum(stages.values()),
            "round_pairs_target": self.round_pairs_target,
            "round_pairs_effective": planned,
            "long_quota_raw": raw,
            "long_quota_effective": effective,
            "long_quota_removed": removed,
            "realloc_to_mid": to_mid,
            "realloc_to_local": removed - to_mid,
        }


# When the model is fitted again, and when the run stops

STOP_SETTINGS = (
    "eap_reliability_min", "stability_lag", "theta_corr_min", "theta_sd_rel_change_max", "rank_spearman_min",
    "top_wrong_max",
)  # fmt: skip
"""The fields of :class:`BTLConfig` that only say when the run stops. They may change while a run is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BTLConfig(_Settings):
    """When the model is fitted again, and when the run stops. Make one with :meth:`for_items`."""

    _name = "btl_config"

    refit_pairs_target: int = _field("4.3", "new comparisons that call for a refit", 1, 1_000_000_000)
    refit_often: bool = _field(
        "-",
        "whether refits come as often as they are cheap, and more often near the stop, so that a run stops in time",
        0,
        1,
        False,
    )
    ess_bulk_min: float = _field("4.4", "bulk effective sample size that a refit needs", 0, 1_000_000_000)
    ess_bulk_min_near_stop: float = _field("4.4", "the same near the stop", 0, 1_000_000_000)
    model_variant: Variant = _field("1.2", "btl, btl_e, btl_b or btl_e_b", default="btl_e_b")  # noqa: RUF009
    prior_sd: float | Literal["learned"] = _field(
        "1.3",
        "spread of the abilities' prior, or learned",
        0,
        1e6,
        1.0,
        check=partial(require_number_or, choices=("learned",), above=0),
    )
    answer: Answer = _field("-", "what of an answer is evidence: winner, or probability", default="winner")  # noqa: RUF009
    judges: Judges = _field(  # noqa: RUF009
        "-",
        "of a panel of judges: pooled, as if they were one, or slopes, a slope and a position effect for each",
        default="pooled",
    )
    repeats: Repeats = _field(  # noqa: RUF009
        "-",
        "how repeats of a pair count: independent, learned, or their excess agreement",
        0,
        1,
        "independent",
        check=require_repeats,
    )
    max_rhat: float = _field("9.1.2", "largest R-hat allowed", 1, 1e6, 1.01)
    divergences_max: int = _field("9.1.1", "divergences allowed", 0, 1_000_000_000, 0)
    eap_reliability_min: float = _share("9.2", "reliability (reliability_figure) that a stop needs", 0.9)
    stability_lag: int = _field("9.3", "passing refits that a stop looks back", 1, 1_000_000, 2)
    theta_corr_min: float = _field("9.3", "correlation with that refit's scores that a stop needs", -1, 1, 0.95)
    theta_sd_rel_change_max: float = _field("9.3", "relative change of their spread that it allows", 0, 1e6, 0.1)
    rank_spearman_min: float = _field("9.4", "rank correlation that it needs", -1, 1, 0.95)
    top_wrong_max: float = _share(
        "-", "expected share of wrong members that a stop allows, where the goal is top:K", 0.1
    )
    near_tie_p_low: float = _share("10.2", "lowest probability of a near tie, for the log", 0.4)
    near_tie_p_high: float = _share("10.2", "highest probability of a near tie", 0.6)
    reliability_figure: Literal["reliability_EAP", "reliability_r2"] = _field(
        "9.2",
        "what the run claims and stops by: EAP reliability, or reliability_r2, the expected squared correlation of the "
        "scores with the judge's true scale",
        default="reliability_EAP",
    )
    screen_refits: bool = _field(
        "9",
        "whether the normal approximation may rule a stop out, so that the sampler runs near the stop only",
        0,
        1,
        False,
    )
    mcmc: Mapping[str, Any] = _field("8.1", "settings of the sampler (MCMCSettings), but for its seed", check=_mcmc)

    def __post_init__(self) -> None:
        if self.judges == "slopes" and (self.answer == "probability" or self.prior_sd != "learned"):
            what = "answer='probability'" if self.answer == "probability" else f"prior_sd={self.prior_sd!r}"
            raise InputError(f"btl_config: judges='slopes' does not take {what}; leave it out, or use judges='pooled'")
        self._in_order("near_tie_p_low", "near_tie_p_high")
        self._in_order("ess_bulk_min", "ess_bulk_min_near_stop")

    @classmethod
    def for_items(cls, n_items: int, given: Settings | None = None) -> Self:
        """The configuration of a run of so many items; ``given`` replaces defaults.

        Raises:
            InputError: that names an unknown field, or the range of an impossible one.
        """
        chosen = cls._given(given)
        gate = DiagnosticsGate.for_items(n_items)
        low = chosen.get("ess_bulk_min", float(gate.ess_bulk_min))
        by_size = {
            "refit_pairs_target": _refit_pairs(n_items, often=chosen.get("refit_often", False)),
            "ess_bulk_min": low,
            "ess_bulk_min_near_stop": float(max(gate.ess_bulk_min_near_stop, low)),
            "mcmc": {},
        }
        return cls(**by_size | chosen)

    @property
    def refit_pairs_near_stop(self) -> int:
        """New comparisons that call for a refit in phase 3."""
        return max(5, self.refit_pairs_target // 4) if self.refit_often else self.refit_pairs_target

    @property
    def round_basis(self) -> int | None:
        """The number of comparisons that the size of a round follows from; None for the document's.

        Refits that come more often do not make rounds smaller.
        """
        return None if self.refit_often else self.refit_pairs_target

    @property
    def gate(self) -> DiagnosticsGate:
        """The diagnostics gate."""
        return DiagnosticsGate(self.ess_bulk_min, self.ess_bulk_min_near_stop, self.max_rhat, self.divergences_max)


def _refit_pairs(n_items: int, *, often: bool = False) -> int:
    """Comparisons between two refits: the document's number, or a third of the texts, at least 20."""
    target = min(5000, max(100, math.ceil(n_items / 2))) if n_items >= SMALL else max(5, n_items)
    return min(target, max(20, math.ceil(n_items / 3))) if often else target


def _ceil(value: float) -> int:
    """Up to the next whole number, forgiving the last bit: 0.1 * 50 is five, whatever the machine makes of it."""
    return math.ceil(value - 1e-9)


# Presets: named sets of settings. A preset is resolved once, when a run starts; the engine knows only settings.

Preset = Literal["pairscale", "pairwiseLLM"]

OURS: Preset = "pairscale"
"""The default of our own verbs."""

DOCUMENT: Preset = "pairwiseLLM"
"""The design document's: the defaults of :class:`AdaptiveConfig` and :class:`BTLConfig`."""

_NO_LIMIT = 1e6

PRESETS: Mapping[str, Mapping[str, Settings]] = MappingProxyType(
    {
        OURS: {
            "adaptive_config": {
                "ties": "half",
                "reverse_rate": 0.10,
                "dup_max_obs": 1,
                "discount_repeats": True,
                "flip_share_max": 0.5,
                "criterion": "ranks",
            },
            "btl_config": {
                "prior_sd": "learned",
                "repeats": "learned",
                "reliability_figure": "reliability_r2",
                "screen_refits": True,
                "refit_often": True,
                # A spread that is learned grows with the evidence: its growth says nothing about the order.
                "theta_sd_rel_change_max": _NO_LIMIT,
            },
        },
        DOCUMENT: {"adaptive_config": {}, "btl_config": {}},
    }
)
"""By name, the settings in which a preset differs from the defaults of the two configurations."""


def resolve_preset(
    preset: str,
    adaptive_config: Settings | AdaptiveConfig | None = None,
    btl_config: Settings | BTLConfig | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a preset, with the user's own in place of them.

    Args:
        preset: ``pairscale`` or ``pairwiseLLM``.
        adaptive_config: The user's fields of :class:`AdaptiveConfig`.
        btl_config: The user's fields of :class:`BTLConfig`.

    Returns:
        The fields of both configurations that are given, by the preset or by the user.

    Raises:
        InputError: If there is no such preset, or the settings are not a mapping.

    Example:
        >>> resolve_preset("pairscale", None, {"prior_sd": 1.5})[1]["prior_sd"]
        1.5
    """
    chosen = PRESETS[require_choice(preset, "preset", PRESETS)]
    adaptive = {**chosen["adaptive_config"], **given_settings(adaptive_config, "adaptive_config")}
    return adaptive, {**chosen["btl_config"], **given_settings(btl_config, "btl_config")}


def given_settings(config: Settings | AdaptiveConfig | BTLConfig | None, what: str) -> dict[str, Any]:
    """The fields of a configuration that are given, by name."""
    if isinstance(config, AdaptiveConfig | BTLConfig):
        return asdict(config)
    return optional(require_mapping, config, what) or {}


def with_goal(goal: str, adaptive_config: Settings | None, reliability: float | None = None) -> dict[str, Any]:
    """The settings for choosing pairs with what the run is for.

    Args:
        goal: ``order`` or ``top:K``; ``order`` leaves it to the settings.
        adaptive_config: The user's fields of :class:`AdaptiveConfig`.
        reliability: The reliability to stop at, which belongs to the whole order.

    Raises:
        InputError: If a reliability is given for another goal than the order.
    """
    settings = given_settings(adaptive_config, "adaptive_config")
    if require_goal(goal) != ORDER:
        settings["goal"] = require_goal(goal)
    if settings.get("goal", ORDER) != ORDER and reliability is not None:
        raise InputError(
            f"reliability belongs to goal='order'; a run for {settings['goal']!r} stops by the share of wrong members "
            "that is expected: set top_wrong_max in btl_config (--set top_wrong_max=0.05)"
        )
    return settings


def stopping_at(reliability: float | None, btl_config: Settings | None, answer: str = "winner") -> dict[str, Any]:
    """The settings of the model with the reliability to stop at, and with what is evidence; defaults change nothing."""
    settings = given_settings(btl_config, "btl_config")
    if reliability is not None:
        settings["eap_reliability_min"] = require_probability(reliability, "reliability")
    if answer != "winner":
        settings["answer"] = answer
    return settings
