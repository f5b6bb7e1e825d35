"""One round: what it plans, how far it is, and who was used in it (§4.6, §5.1.6, §7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pairscale.adaptive.config import RoundQuotas
    from pairscale.core.arrays import Ints

__all__ = ["STAGES", "BoundarySlots", "Round"]

STAGES = ("anchor_link", "long_link", "mid_link", "local_link")
"""The stages of a round, in their order."""

_KNOWN_ORDER = ("near_tie", "boundary")
"""What ``local_priority_mode`` is once the order is known."""
_LAST_DIGITS = 1e-6


class Round:
    """The state of a round; a stage is left when it is full or starved, and not entered again.

    Attributes:
        round_id: which round.
        stages: its stages in their order.
        quota: what each plans.
        done: what each has committed.
        open: what each is asking right now.
        at: which stage is active; behind the last one the round is over.
        used: per item, its uses in this round, with those being asked.
        repeats: second uses so far.
        overrides: star caps passed so far.
        selected: pairs chosen so far.
        is_stale: whether an answer, a refit, new items or settings came since it began.
        plan: the quotas as they are logged.
    """

    def __init__(self, round_id: int, n_items: int, quota: dict[str, int], plan: RoundQuotas | None) -> None:
        self.round_id = round_id
        self.stages = tuple(quota)
        self.quota = quota
        self.done = dict.fromkeys(quota, 0)
        self.open = dict.fromkeys(quota, 0)
        self.at = 0
        self.used: Ints = np.zeros(n_items, dtype=np.int64)
        self.repeats = self.overrides = self.selected = 0
        self.is_stale = False
        self.plan = plan

    @property
    def stage(self) -> str | None:
        """The active stage: the first from here on that is not full; None when the round is over."""
        for name in self.stages[self.at :]:
            if self.done[name] + self.open[name] < self.quota[name]:
                return name
        return None

    def enter(self, stage: str) -> None:
        """Go to a stage."""
        self.at = self.stages.index(stage)

    def starve(self, stage: str) -> None:
        """A stage has nothing to choose from: on to the next."""
        self.at = self.stages.index(stage) + 1

    def admit(self, stage: str, i: int, j: int, *, override: bool) -> None:
        """A pair was chosen."""
        self.enter(stage)
        self.open[stage] += 1
        self.repeats += int(self.used[i] > 0) + int(self.used[j] > 0)
        self.used[[i, j]] += 1
        self.overrides += override
        self.selected += 1

    def committed(self, stage: str) -> None:
        """Its answer is valid."""
        self.open[stage] -= 1
        self.done[stage] += 1

    def rejected(self, stage: str, i: int, j: int, *, repeats: int, override: bool) -> None:
        """It is not: the pair counts as not asked in this round."""
        self.open[stage] -= 1
        self.used[[i, j]] -= 1
        self.repeats -= repeats
        self.overrides -= override


class BoundarySlots:
    """The share of the local links that is due to pairs at the border of the top, once the order is known (§5.1.4).

    Every local link earns a part of a slot. A slot that no pair could take waits for a later local link, in this round
    or in the next.
    """

    def __init__(self) -> None:
        self._earned = 0.0
        self._taken = 0

    def is_due(self, share: float) -> bool:
        """Whether the next local link has a slot."""
        return self._earned + share - self._taken >= 1 - _LAST_DIGITS

    def count(self, fields: Mapping[str, Any], share: float, *, back: bool = False) -> None:
        """Count a link by the columns of its step; with ``back``, as if it had not been asked.

        Args:
            fields: Columns of the step log.
            share: The share of local links that is due.
            back: Whether the link has no valid answer, and so was not asked.
        """
        mode, sign = fields.get("local_priority_mode"), -1 if back else 1
        if mode in _KNOWN_ORDER:
            self._earned += sign * share
            self._taken += sign * (mode == "boundary")
