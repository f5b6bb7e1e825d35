"""What changes a run from outside: other settings, another stop rule, items that join or are withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.adaptive._strata import best_first
from pairscale.adaptive.config import STOP_SETTINGS, BTLConfig
from pairscale.core.errors import InputError
from pairscale.core.tables import listed

if TYPE_CHECKING:
    from pairscale.adaptive._belief import Belief
    from pairscale.adaptive._proposal import Proposal
    from pairscale.adaptive._round import Round
    from pairscale.adaptive._warm_start import WarmStart
    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.adaptive.ledger import Flags, Ledger
    from pairscale.adaptive.refits import LagPoint, RefitRequest
    from pairscale.adaptive.selectors import Selector
    from pairscale.core.arrays import Floats, Ints

__all__ = ["Changes", "other_settings"]


def other_settings(one: AdaptiveConfig | BTLConfig, two: AdaptiveConfig | BTLConfig) -> list[str]:
    """The fields in which two configurations of the same kind differ."""
    return [entry.name for entry in fields(one) if getattr(one, entry.name) != getattr(two, entry.name)]


class Changes:
    """The part of the engine that takes changes; see :class:`pairscale.adaptive.engine.Engine` for its attributes."""

    ids: list[str]
    config: AdaptiveConfig
    btl: BTLConfig
    ledger: Ledger
    pending: RefitRequest | None
    belief: Belief | None
    identified: bool
    stop_reason: str | None
    open: dict[int, Proposal]
    steps: int
    _given: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
    _round: Round
    _warm: WarmStart
    _anchors: Flags
    _by_id: Ints
    _number_of: dict[str, int]
    _other: Selector | None

    def _settle_size(self, more: Iterable[str]) -> None:
        raise NotImplementedError

    _agreement: float

    def _lag_point(self) -> LagPoint | None:
        raise NotImplementedError

    def _settle_discount(self) -> None:
        """Tell the selectors how much less a repeat is worth, where that counts."""
        self.ledger.discount = self._agreement if self.config.discount_repeats else 0.0

    def _settle_goal(self) -> None:
        """Tell the selectors what counts."""
        self.ledger.top, self.ledger.counts_ranks = self.config.top, self.config.criterion == "ranks"

    def _release(self, proposal: Proposal) -> None:
        raise NotImplementedError

    def configure(self, adaptive_config: Mapping[str, Any], btl_config: Mapping[str, Any]) -> None:
        """Continue with other settings; a run that has stopped may continue with stricter ones."""
        self._given = dict(adaptive_config), dict(btl_config)
        self._settle_size(())
        self._settle_goal()
        if self.config.W_cap != self.ledger.window:
            self.ledger.resize_window(self.config.W_cap)
        self.ledger.forgive(pair_limit=self.config.max_invalid_per_pair, item_limit=self.config.max_invalid_per_item)
        self._settle_discount()
        if self.pending is not None:  # it is fitted, and decided on, by the settings that hold then
            self.pending = replace(self.pending, adaptive=self.config, btl=self.btl, lag=self._lag_point())
        self._round.is_stale = True
        self.stop_reason = None

    def change_stop_rule(self, btl_config: Mapping[str, Any], *, stop_reason: str | None = None) -> None:
        """Take another stop rule, and nothing else: the pairs that are chosen from here on are the same.

        Args:
            btl_config: all that is given of the configuration; only :data:`STOP_SETTINGS` may be otherwise than before.
            stop_reason: why the run stops here, if the new rule holds already.

        Raises:
            InputError: when something else would change.
        """
        new = BTLConfig.for_items(len(self.ids), btl_config)
        if other := [name for name in other_settings(self.btl, new) if name not in STOP_SETTINGS]:
            raise InputError(f"btl_config: {listed(other)} would change, which is not only about the stop")
        self._given, self.btl = (self._given[0], dict(btl_config)), new
        if self.pending is not None:
            self.pending = replace(self.pending, btl=new, lag=self._lag_point())
        self.stop_reason = stop_reason

    def join(self, ids: Sequence[str], mu: Floats | None = None, sigma: Floats | None = None) -> None:
        """More items: they start from the prior, and are tied to others spread over the scale.

        The scale has to be found again with them, so what the last refit said guides no choice until the next one.
        """
        if there := sorted(set(ids) & set(self._number_of)):
            raise InputError(f"{listed(there)} already there; only new items can join")
        before = best_first(self.ledger.mu, self._by_id)
        before = before[~self.ledger.set_aside[before]]
        old = self.ledger.n
        self._settle_size(ids)
        self.ledger.join(len(ids), self.config.W_cap, mu, sigma)
        self._warm.join(np.arange(old, self.ledger.n), before)
        self._round.used = np.concatenate([self._round.used, np.zeros(len(ids), dtype=np.int64)])
        self._anchors = np.concatenate([self._anchors, np.zeros(len(ids), dtype=np.bool_)])
        self._round.is_stale = True
        self.belief, self.identified = None, False
        self.stop_reason = None
        if self._other is not None:
            self._other.joined(self.ledger)

    def withdraw(self, ids: Sequence[str], *, taken: int = 0) -> None:
        """Ask no more about some items: their comparisons stay, and a stop no longer depends on them.

        A question about one of them that has no answer yet is dropped; its step number is not used again.

        Args:
            ids: the items.
            taken: a step number up to which questions may have been asked; later steps have higher ones.

        Raises:
            InputError: when an item is unknown, or fewer than two would be left.
        """
        if unknown := sorted(set(ids) - set(self._number_of)):
            raise InputError(f"{listed(unknown)} cannot be withdrawn: the run has no such item")
        items = [self._number_of[name] for name in ids]
        left = ~self.ledger.withdrawn
        left[items] = False
        if left.sum() < 2:
            raise InputError(f"{len(set(ids)):,} items cannot be withdrawn: a ranking needs at least two texts")
        self.ledger.withdraw(items)
        for step_id, proposal in list(self.open.items()):
            if self.ledger.withdrawn[[proposal.first, proposal.second]].any():
                del self.open[step_id]
                self._drop(proposal)
        self._warm.mend(self.ledger)
        self.steps = max(self.steps, taken)
        if self.pending is not None:
            self.pending = replace(self.pending, withdrawn=self.ledger.withdrawn)
        self._round.is_stale = True

    def _drop(self, proposal: Proposal) -> None:
        self.ledger.drop(proposal.first, proposal.second)
        self._release(proposal)
        if self._other is not None:
            self._other.dropped(self.ledger, proposal.first, proposal.second)
