"""Several judges who share the comparisons of a run: each pair belongs to one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairscale.core.comparisons import PANEL, Condition, panel_member
from pairscale.core.errors import InputError
from pairscale.core.tables import Values, listed
from pairscale.judges.base import PANEL_OF, Judge, JudgePair, Verdict, judge_member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class PanelJudge:
    """Judges who share the comparisons: which of them answers depends on the two texts alone.

    So a pair that is asked again, or in the other order, goes to the same judge, also after a restart. In results and
    in the step log, every answer is listed under the judge who gave it.

    Args:
        members: two judges or more, each with a name of its own.

    Example:
        >>> import pairscale as ps
        >>> PanelJudge([ps.make_judge("lexical"), ps.SimulatedJudge({"a": 1.0, "b": 0.0})]).condition.judge_id
        'panel of lexical, simulated'
    """

    def __init__(self, members: Sequence[Judge]) -> None:
        self.members = tuple(members)
        if len(self.members) < 2:
            raise InputError(f"a panel has two judges or more, not {len(self.members)}")
        conditions = [member.condition for member in self.members]
        self.names = tuple(_named(conditions))
        if any(condition.backend in ("human", PANEL) for condition in conditions):
            raise InputError("people and panels cannot be members of a panel; name the judges one by one")

    @property
    def condition(self) -> Condition:
        """Who the members are, with all their settings."""
        own = [member.condition for member in self.members]
        settings = {PANEL: list(self.names), "members": [condition.condition_id for condition in own]}
        trait = _common([condition.trait for condition in own])
        template = _common([condition.template_id for condition in own])
        return Condition(f"{PANEL_OF}{', '.join(self.names)}", PANEL, None, trait, template, settings)

    def member_of(self, first: str, second: str) -> str:
        """The name of the judge who answers about two texts, in whichever order."""
        return self.names[panel_member(first, second, len(self.members))]

    def _asked(self, pair: JudgePair) -> Judge:
        return self.members[panel_member(str(pair.first["ID"]), str(pair.second["ID"]), len(self.members))]

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the judge whom the pair belongs to."""
        return await self._asked(pair).compare(pair)

    @property
    def max_cost_of(self) -> Callable[[JudgePair], float | None] | None:
        """What a question may cost at most; None unless every member states it."""
        if any(judge_member(member, "max_cost_of") is None for member in self.members):
            return None
        return lambda pair: judge_member(self._asked(pair), "max_cost_of")(pair)

    @property
    def uses_cache(self) -> bool:
        """Whether a member uses the cache."""
        return any(judge_member(member, "uses_cache") for member in self.members)

    @property
    def graded(self) -> bool:
        """Whether every member is graded."""
        return all(judge_member(member, "graded") for member in self.members)


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def members_of(*judges: Any) -> list[Any]:
    """Those who are asked: the members in place of a panel, everything else as it is."""
    return [member for judge in judges for member in (judge.members if isinstance(judge, PanelJudge) else (judge,))]


def _named(conditions: Sequence[Condition]) -> list[str]:
    """The members' names; those of the same name are told apart by their settings, or refused as the same judge."""
    if len({condition.condition_id for condition in conditions}) < len(conditions):
        raise InputError(
            f"the panel has the same judge twice: {listed([condition.judge_id for condition in conditions])}"
        )
    names: list[str] = []
    for condition in conditions:
        name = condition.judge_id
        times = sum(other.judge_id == name for other in conditions[: len(names)])
        if times:
            name = f"{name} ({times + 1})"
        names.append(name)
    return names


def split_panel(judge: str) -> list[str]:
    """The members of a panel that is written as one text, with commas; a single judge is a list of one.

    What looks like ``name=value`` is a setting of the member before it.
    """
    if judge.startswith("replay:"):
        return [judge]
    return [part.strip() for part in re.split(r",(?!\s*\w+=)", judge)]


def panel_settings(judge: Judge, btl: Mapping[str, Any], preset: str = "pairscale") -> Values:
    """The settings of the model of an adaptive run: with a panel, a slope per judge unless they say otherwise.

    Raises:
        InputError: If they are of something that slopes do not take.
    """
    if not isinstance(judge, PanelJudge) or "judges" in btl or preset != "pairscale":
        return dict(btl)
    if btl.get("answer") == "probability":
        raise InputError(
            "slopes of several judges are learned from winners; use answer='winner', or pool the judges: btl_config "
            "judges='pooled' (--set judges=pooled)"
        )
    return {**btl, "judges": "slopes"}
