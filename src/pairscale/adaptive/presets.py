"""Presets: named sets of settings. A preset is resolved once, when a run starts; the engine knows only settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Literal

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.goals import ORDER, require_goal
from pairscale.core.errors import InputError
from pairscale.core.options import optional, require_choice, require_mapping, require_probability

__all__ = [
    "DOCUMENT",
    "OURS",
    "PRESETS",
    "Preset",
    "answering_by",
    "given_settings",
    "resolve_preset",
    "stopping_at",
    "with_goal",
]

Preset = Literal["pairscale", "pairwiseLLM"]

OURS: Preset = "pairscale"
"""The default of our own verbs."""

DOCUMENT: Preset = "pairwiseLLM"
"""The design document's: the defaults of :class:`AdaptiveConfig` and :class:`BTLConfig`."""

_NO_LIMIT = 1e6

PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        OURS: {
            "adaptive_config": {
                "ties": "half",
                "reverse_rate": 0.10,
                "discount_repeats": True,
                "flip_share_max": 0.5,
                "criterion": "ranks",
            },
            "btl_config": {
                "prior_sd": "learned",
                "repeats": "learned",
                "reliability_figure": "reliability_r2",
                "screen_refits": True,
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
    adaptive_config: Mapping[str, Any] | AdaptiveConfig | None = None,
    btl_config: Mapping[str, Any] | BTLConfig | None = None,
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


def given_settings(config: Mapping[str, Any] | AdaptiveConfig | BTLConfig | None, what: str) -> dict[str, Any]:
    """The fields of a configuration that are given, by name."""
    if isinstance(config, AdaptiveConfig | BTLConfig):
        return asdict(config)
    return optional(require_mapping, config, what) or {}


def with_goal(goal: str, adaptive_config: Mapping[str, Any] | None, reliability: float | None = None) -> dict[str, Any]:
    """The settings for choosing pairs with what the run is for.

    Args:
        goal: ``order`` or ``top:K``.
        adaptive_config: The user's fields of :class:`AdaptiveConfig`.
        reliability: The reliability to stop at, which belongs to the whole order.

    Raises:
        InputError: If both give a goal and they differ, or a reliability is given for another goal than the order.
    """
    settings, wanted = given_settings(adaptive_config, "adaptive_config"), require_goal(goal)
    given = require_goal(settings.get("goal", wanted), "adaptive_config: goal")
    if wanted not in (ORDER, given):
        raise InputError(f"goal={wanted!r} and adaptive_config goal={given!r} differ; give one of them")
    if given == ORDER:
        return settings
    if reliability is not None:
        raise InputError(
            f"reliability belongs to goal='order'; a run for {given!r} stops by the share of wrong members that is "
            "expected: set top_wrong_max in btl_config (--set top_wrong_max=0.05)"
        )
    return settings | {"goal": given}


def stopping_at(reliability: float | None, btl_config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of the model with the reliability to stop at.

    Args:
        reliability: The EAP reliability; None leaves it to the settings.
        btl_config: The user's fields of :class:`BTLConfig`.

    Raises:
        InputError: If both give a reliability, and they differ.
    """
    settings = given_settings(btl_config, "btl_config")
    if reliability is None:
        return settings
    target = require_probability(reliability, "reliability")
    if settings.setdefault("eap_reliability_min", target) != target:
        other = settings["eap_reliability_min"]
        raise InputError(
            f"reliability={target:g} and btl_config eap_reliability_min={other!r} differ; give one of them"
        )
    return settings


def answering_by(answer: str, btl_config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the model with what is evidence.

    Args:
        answer: ``winner`` or ``probability``; ``winner`` leaves it to the settings.
        btl_config: The user's fields of :class:`BTLConfig`.
    """
    return dict(btl_config) if answer == "winner" else {**btl_config, "answer": answer}
