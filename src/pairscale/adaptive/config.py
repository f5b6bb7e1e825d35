"""Every number that an adaptive run goes by, with its type and its default for N items; goals, presets.

``settings.toml`` says what each of them means and what it may be. What a user gives is checked by name and range before
anything else happens; what is not given follows from the number of items, and follows it again when items join later.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache, partial
from importlib.resources import files
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

_FIELDS = tomllib.loads(files("pairscale.adaptive").joinpath("settings.toml").read_text("utf-8"))
"""Of every field: the section of the design document, the least and the greatest value, and what it means."""


def _mcmc(value: Any, name: str) -> Settings:
    if MCMCSettings.given(value).seed is not None:
        raise InputError(f"{name} takes no seed; the seed of the run gives every fit its own")
    return dict(value)


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "goal": require_goal,
    "prior_sd": partial(require_number_or, choices=("learned",), above=0),
    "repeats": require_repeats,
    "mcmc": _mcmc,
}
"""How fields are checked that take more than a number, a flag or one of a few words."""


class _Settings:
    """What both configurations have in common: fields that are checked by name, type and range."""

    _name: str

    @classmethod
    def _given(cls, config: Settings | None) -> dict[str, Any]:
        """The fields that were given, checked, as plain Python values."""
        settings = optional(require_mapping, config, cls._name) or {}
        known = _FIELDS[cls._name]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise InputError(f"{cls._name}: no field {listed(unknown)}; there are {listed(list(known), 60)}")
        return {name: cls._checked(name, value) for name, value in settings.items()}

    @classmethod
    def _checked(cls, field: str, value: Any) -> Any:
        kind = _types(cls)[field]
        name = f"{cls._name}: {field}"
        if field in _CHECKS:
            return _CHECKS[field](value, name)
        if kind is bool:
            return require_flag(value, name)
        if get_args(kind):
            return require_choice(value, name, get_args(kind))
        _, low, high, _ = _FIELDS[cls._name][field]
        require: Any = require_int if kind is int else require_number
        return require(value, name, least=low, most=high)

    def _in_order(self, low: str, high: str) -> None:
        least, most = getattr(self, low), getattr(self, high)
        if least > most:
            raise InputError(f"{self._name}: {low} ({least!r}) must not be above {high} ({most!r})")

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """Every field: ``name default section low high meaning``; a default of None is a function of N."""
        described = []
        for entry in fields(cls):  # type: ignore[arg-type]
            section, low, high, meaning = _FIELDS[cls._name][entry.name]
            default = None if entry.default is MISSING else entry.default
            row = {"name": entry.name, "default": default, "section": section, "low": low, "high": high}
            described.append(row | {"meaning": meaning})
        return described


_types: Callable[[type], dict[str, Any]] = cache(get_type_hints)


# How pairs are chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig(_Settings):
    """How pairs are chosen. Make one with :meth:`for_items`; :meth:`describe` lists every field."""

    _name = "adaptive_config"

    explore_rate: float
    round_pairs_target: int
    W_cap: int
    K_base: int
    long_min_dist: int
    mid_max_dist: int
    k_total: int
    k_top: int
    boundary_window: int
    C_max: int = 20000
    quota_eps: float = 0.2
    explore_resample_max: int = 10
    explore_nonlocal_rate: float = 0.15
    explore_taper_mult: float = 0.5
    cap_frac: float = 0.08
    dup_p_margin: float = 0.05
    dup_max_obs: int = 2
    dup_max_obs_relaxed: int = 3
    q: float = 0.9
    repeat_in_round_budget: int = 2
    exposure_underrep_q: float = 0.25
    anchor_frac_early: float = 0.3
    anchor_frac_late: float = 0.2
    anchor_rounds_early: int = 4
    long_frac_early: float = 0.1
    long_frac_late: float = 0.05
    long_rounds_early: int = 4
    mid_frac: float = 0.1
    long_taper_mult: float = 0.25
    long_frac_floor: float = 0.02
    mid_bonus_frac: float = 0.2
    top_band_pct: float = 0.1
    top_band_bins: int = 5
    mid_min_dist: int = 2
    local_max_dist: int = 1
    local_anchors: bool = True
    global_identified_reliability_min: float = 0.8
    global_identified_rank_corr_min: float = 0.9
    p_long_low: float = 0.1
    p_long_high: float = 0.9
    boundary_k: int = 20
    boundary_frac: float = 0.15
    p_star_override_margin: float = 0.05
    star_override_budget_per_round: int = 1
    degree_alpha: float = 0.0
    degree_penalty_max: float = 2.0
    max_invalid_per_pair: int = 3
    max_invalid_per_item: int = 10
    max_failures_in_row: int = 20
    ties: Literal["invalid", "half"] = "invalid"
    reverse_rate: float = 0.0
    discount_repeats: bool = False
    flip_share_max: float = 1.0
    criterion: Literal["determinant", "ranks"] = "determinant"
    goal: str = ORDER

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

    refit_pairs_target: int
    refit_often: bool = False
    ess_bulk_min: float
    ess_bulk_min_near_stop: float
    model_variant: Variant = "btl_e_b"
    prior_sd: float | Literal["learned"] = 1.0
    answer: Answer = "winner"
    judges: Judges = "pooled"
    repeats: Repeats = "independent"
    max_rhat: float = 1.01
    divergences_max: int = 0
    eap_reliability_min: float = 0.9
    stability_lag: int = 2
    theta_corr_min: float = 0.95
    theta_sd_rel_change_max: float = 0.1
    rank_spearman_min: float = 0.95
    top_wrong_max: float = 0.1
    near_tie_p_low: float = 0.4
    near_tie_p_high: float = 0.6
    reliability_figure: Literal["reliability_EAP", "reliability_r2"] = "reliability_EAP"
    screen_refits: bool = False
    mcmc: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.judges == "slopes" and (self.answer == "probability" or self.prior_sd != "learned"):
            what = "answer='probability'" if self.answer == "probability" else f"prior_sd={self.prior_sd!r}"
            raise InputError(f"btl_config: judges='slopes' does not take {what}; leave it out, or use judges='pooled'")
        self._in_order("near_tie_p_low", "near_tie_p_high")
        self._in_order("ess_bulk_min", "ess_bulk_min_near_stop")

    @classmethod
    def for_items(cls, n_items: int, given: Settings | None = None) -> Self:
        """The configuration of a run of this many items; ``given`` replaces defaults.

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
        return max(3, self.refit_pairs_target // 8) if self.refit_often else self.refit_pairs_target

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
    wanted = require_goal(goal)
    if wanted != ORDER:
        settings["goal"] = wanted
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
