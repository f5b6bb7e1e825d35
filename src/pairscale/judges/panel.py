"""Several judges who share the comparisons of a run: each pair belongs to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairscale.core.comparisons import PANEL, Condition, panel_member
from pairscale.core.errors import InputError
from pairscale.core.tables import listed
from pairscale.judges.base import Judge, JudgePair, Verdict, judge_member
from pairscale.judges.names import PANEL_OF

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PanelJudge", "members_of", "panel_settings", "split_panel"]


class PanelJudge:
    """Judges who share the comparisons: which of them answers depends on the two texts alone.

    So a pair that is asked again, or in the other order, goes to the same judge, also after a restart. In results and
    in the step log, every answer stands under the name of the judge who gave it.

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
        if any(one.backend in ("human", PANEL) for one in conditions):
            raise InputError("people and panels cannot be members of a panel; name the judges one by one")

    def __repr__(self) -> str:
        return f"<PanelJudge of {len(self.members)}: {listed(list(self.names), 10)}>"

    @property
    def condition(self) -> Condition:
        """Who the members are, with all their settings."""
        own = [member.condition for member in self.members]
        traits, templates = {one.trait for one in own}, {one.template_id for one in own}
        settings = {PANEL: list(self.names), "members": [one.condition_id for one in own]}
        return Condition(
            f"{PANEL_OF}{', '.join(self.names)}", PANEL, None, traits.pop() if len(traits) == 1 else None,
            templates.pop() if len(templates) == 1 else None, settings,
        )  # fmt: skip

    def member_of(self, first: str, second: str) -> str:
        """The name of the judge who answers about two texts, in whichever order."""
        return self.names[panel_member(first, second, len(self.names))]

    def _member(self, pair: JudgePair) -> Judge:
        return self.members[panel_member(str(pair.first["ID"]), str(pair.second["ID"]), len(self.members))]

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the judge whom the pair belongs to."""
        return await self._member(pair).compare(pair)

    def __getattr__(self, name: str) -> Any:
        """What a question may cost is known where every member says it."""
        if name == "max_cost_of" and all(judge_member(one, "max_cost_of") is not None for one in self.members):
            return self._max_cost_of
        raise AttributeError(name)

    def _max_cost_of(self, pair: JudgePair) -> float | None:
        costs = [judge_member(one, "max_cost_of")(pair) for one in self.members]
        return None if None in costs else max(costs)

    @property
    def uses_cache(self) -> bool:
        """Whether a member does."""
        return any(judge_member(one, "uses_cache") for one in self.members)

    @property
    def graded(self) -> bool:
        """Whether every member is."""
        return all(judge_member(one, "graded") for one in self.members)

    def allow_ties(self, allowed: bool) -> None:
        """Tell the members that have to know."""
        for one in self.members:
            if (tell := judge_member(one, "allow_ties")) is not None:
                tell(allowed)

    async def aclose(self) -> None:
        """Have the members close their connections."""
        for one in self.members:
            if (end := judge_member(one, "aclose")) is not None:
                await end()


def members_of(*judges: Any) -> list[Any]:
    """Those who are asked: the members in place of a panel, everything else as it is."""
    return [one for judge in judges for one in (judge.members if isinstance(judge, PanelJudge) else (judge,))]


def _named(conditions: Sequence[Condition]) -> list[str]:
    """The members' names; those of the same name are told apart by their settings, or refused as the same judge."""
    if len({one.condition_id for one in conditions}) < len(conditions):
        raise InputError(f"a judge stands in the panel twice: {listed([one.judge_id for one in conditions])}")
    seen: dict[str, int] = {}
    names = []
    for one in conditions:
        seen[one.judge_id] = seen.get(one.judge_id, 0) + 1
        names.append(one.judge_id if seen[one.judge_id] == 1 else f"{one.judge_id} ({seen[one.judge_id]})")
    return names


def split_panel(judge: str) -> list[str]:
    """The members of a panel that is written as one name, with commas; one name when it is none.

    What looks like ``name=value`` is a setting of the member before it.
    """
    parts = [part.strip() for part in judge.split(",")]
    if judge.startswith("replay:") or not all(parts):
        return [judge]
    members = parts[:1]
    for part in parts[1:]:
        if part.partition("=")[0].isidentifier() and "=" in part:
            members[-1] += f",{part}"
        else:
            members.append(part)
    return members


def panel_settings(judge: Judge, btl: Mapping[str, Any], preset: str = "pairscale") -> dict[str, Any]:
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
