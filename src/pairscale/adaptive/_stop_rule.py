"""Another stop rule for a run that is paused: which settings it is, and whether the last refit meets it already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pairscale.adaptive._changes import other_settings
from pairscale.adaptive.config import STOP_SETTINGS, BTLConfig
from pairscale.adaptive.gates import stop_decision
from pairscale.adaptive.session import event_of
from pairscale.core.notices import notice

if TYPE_CHECKING:
    from pairscale.adaptive.engine import Engine
    from pairscale.adaptive.state import AdaptiveState

__all__ = ["change_stop_rule", "is_stop_rule", "stops_now"]

_LIMITS = tuple(name for name in STOP_SETTINGS if name not in ("stability_lag", "top_wrong_max"))


def is_stop_rule(engine: Engine, new: BTLConfig) -> bool:
    """Whether a configuration differs from a run's in its stop rule at most."""
    return set(other_settings(engine.btl, new)) <= set(STOP_SETTINGS)


def stops_now(engine: Engine, last: Mapping[str, Any] | None, new: BTLConfig) -> str | None:
    """Why a paused run stops at once under another rule; None when it continues until a refit meets the rule.

    It stops when its last refit would have stopped it: the refit passed with the effective sample size that a stop
    needs, it is of all items, and its figures meet the new limits. With another ``stability_lag``, those figures are
    not known before the next refit.

    Args:
        engine: the run.
        last: the row of the round log of its last refit that was no closing one.
        new: the configuration with the new rule.
    """
    belief, lag = engine.belief, engine.btl.stability_lag
    if last is None or belief is None or engine.pending is not None or new.stability_lag != lag:
        return None
    if last["refit_id"] != belief.refit_id:
        return None
    limits = {name: getattr(new, name) for name in _LIMITS} | {"ess_bulk_required": new.ess_bulk_min_near_stop}
    if engine.config.top is not None:
        limits["top_wrong_allowed"] = engine.config.top * new.top_wrong_max
    return stop_decision({**last, **limits})[1]


def change_stop_rule(state: AdaptiveState, btl_config: dict[str, Any]) -> None:
    """Give a paused run another stop rule, say so, and have it logged; it stops if its last refit meets the rule."""
    engine = state.engine
    new = BTLConfig.for_items(len(state.ids), btl_config)
    reason = stops_now(engine, state.last_refit, new)
    said = [f"{name} is {getattr(new, name)!r}, was {getattr(engine.btl, name)!r}" for name in STOP_SETTINGS
            if getattr(new, name) != getattr(engine.btl, name)]  # fmt: skip
    ends = "; the last refit meets it, so that the run stops here" if reason is not None else ""
    notice(f"another stop rule from here on: {', '.join(said)}{ends}")
    state.unlogged.append(event_of("stop_rule", engine, btl_config=btl_config, stop_reason=reason))
    state.settings["btl_config"] = btl_config
    engine.change_stop_rule(btl_config, stop_reason=reason)
    state.ended = None
