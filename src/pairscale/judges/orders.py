"""Any judge, asked in both orders: a win only when both orders name the same text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

from pairscale.core.comparisons import Condition, Outcome
from pairscale.core.tables import Values
from pairscale.judges.base import Judge, JudgePair, Verdict, judge_member
from pairscale.judges.function import verdict_of

T = TypeVar("T")

_SUMMED = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost",
    "saved",
)  # fmt: skip
_PRECEDENCE = {"judge": 0, "transient": 1, "question": 2}
"""Of two failures, the one with the lower number becomes that of the pair."""


def merge_orders(outcomes: Sequence[tuple[Outcome, T | None]]) -> tuple[Outcome, T | None]:
    """One outcome of those of the two orders.

    Two wins of the same text are a win, wins of different texts a flip. A win and a tie are a tie, and so are two ties:
    the judge did not stand by its preference. An error in one order is an error, else an abstention an abstention.

    Args:
        outcomes: of each order, the outcome and the text that won, whatever names it; None without a winner.
    """
    kinds = [kind for kind, _ in outcomes]
    for kind in (Outcome.ERROR, Outcome.ABSTENTION, Outcome.FLIP):
        if kind in kinds:
            return kind, None
    winners = {winner for kind, winner in outcomes if kind is Outcome.WIN}
    if len(winners) > 1:
        return Outcome.FLIP, None
    return (Outcome.TIE, None) if Outcome.TIE in kinds else (Outcome.WIN, winners.pop())


def merge_preferences(stated: Sequence[float | None]) -> float | None:
    """One probability of those of the two orders: their mean; None unless every order states one.

    Args:
        stated: of each order, the probability that one and the same text is better.
    """
    values = [probability for probability in stated if probability is not None]
    return sum(values) / len(values) if values and len(values) == len(stated) else None


def swapped(pair: JudgePair) -> JudgePair:
    """The same question with the samples in the other order, under a name of its own."""
    # Copies: a judge that changes its samples must not change those of the other order.
    return replace(pair, first=dict(pair.second), second=dict(pair.first), uid=f"{pair.uid}~", is_swapped=True)


def merge_verdicts(forward: Verdict, backward: Verdict) -> Verdict:
    """One verdict of those of the two orders; the place of the winner is that of the forward order."""
    both = (forward, backward)
    turned = None if backward.winner_pos is None else 3 - backward.winner_pos
    kind, winner = merge_orders([(forward.outcome, forward.winner_pos), (backward.outcome, turned)])
    merged: Values = {
        "content": _joined(forward.content, backward.content),
        "thoughts": _joined(forward.thoughts, backward.thoughts),
        "raw_response": [forward.raw_response, backward.raw_response],
        "latency_s": max((verdict.latency_s for verdict in both if verdict.latency_s is not None), default=None),
        "cached": forward.cached and backward.cached,
        "cost_is_estimate": forward.cost_is_estimate or backward.cost_is_estimate,
        "probability": None,
    }
    for name in _SUMMED:
        values = [getattr(verdict, name) for verdict in both if getattr(verdict, name) is not None]
        merged[name] = sum(values) if values else None
    if not kind.is_answer:
        # A judge that cannot judge stops the run; else, when one order may be asked again, so may the pair.
        failed = sorted(
            (verdict for verdict in both if verdict.outcome is kind),
            key=lambda verdict: _PRECEDENCE[verdict.failure or ""],
        )
        return replace(failed[0], **merged)
    stated = None if backward.probability is None else 1 - backward.probability
    merged |= {"probability": merge_preferences([forward.probability, stated]), "winner_pos": winner}
    return replace(forward, outcome=kind, **merged)


def _joined(forward: str | None, backward: str | None) -> str | None:
    if forward is None and backward is None:
        return None
    return f"{forward or ''}\n--- in the other order ---\n{backward or ''}"


class BothOrders:
    """A judge that is asked about every pair in both orders.

    When one order fails for the moment, its answered half is kept, so that a retry asks for the other alone.

    Args:
        judge: any judge.

    Example:
        >>> import pairscale as ps
        >>> judge = BothOrders(ps.make_judge("lexical"))
        >>> judge.condition.judge_id
        'lexical'
    """

    both_orders = True

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._halves: dict[tuple[Any, ...], Verdict] = {}

    def __getattr__(self, name: str) -> Any:
        """Everything else is the judge's own; what a question may cost is that of both orders."""
        if name == "judge":
            raise AttributeError(name)
        own = getattr(self.judge, name)
        if name != "max_cost_of" or own is None:
            return own

        def max_cost_of(pair: JudgePair) -> float | None:
            costs = [own(pair), own(swapped(pair))]
            return None if None in costs else sum(costs)

        return max_cost_of

    @property
    def condition(self) -> Condition:
        """The judge's own, and that it is asked in both orders."""
        own = self.judge.condition
        return replace(own, settings={**own.settings, "both_orders": True})

    def describe(self) -> Values:
        """Everything that another process needs to be the same judge."""
        return {**self.judge.describe(), "both_orders": True}  # type: ignore[attr-defined]

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask in both orders at once; when one fails, the other is waited for, as it may be paid for."""
        asked = (pair, swapped(pair))
        halves = await asyncio.gather(*map(self._half, asked), return_exceptions=True)
        for half in halves:
            if isinstance(half, BaseException):
                raise half
        answered = cast("list[Verdict]", halves)
        verdict = merge_verdicts(*answered)
        for question, half in zip(asked, answered, strict=True):
            if verdict.failure == "transient" and half.outcome.is_answer:
                # Paid for already: it costs nothing when the pair is asked again.
                free: Values = dict.fromkeys(_SUMMED)
                self._halves[_question(question)] = replace(half, **free, cost_is_estimate=False)
        return verdict

    async def _half(self, pair: JudgePair) -> Verdict:
        """The verdict of one order; what the judge raises is one, too, so that the other order is not lost."""
        kept = self._halves.pop(_question(pair), None)
        if kept is not None:
            return kept
        verdict = await verdict_of(self.judge, pair)
        if verdict.error_code == "judge_error":
            return verdict
        most = judge_member(self.judge, "max_cost_of")
        if most is not None and verdict.cost is None:
            with suppress(Exception):  # with max_cost, it was raised before the question was asked
                verdict = verdict.with_cost_at_most(most(pair))
        return verdict


def _question(pair: JudgePair) -> tuple[Any, ...]:
    """What an answered half is kept under: another run may use the same names for other texts."""
    return (pair.uid, *(item[name] for item in (pair.first, pair.second) for name in ("ID", "text")))


def unwrapped(judge: Judge) -> Judge:
    """The judge itself, whether it is asked in both orders or not."""
    return judge.judge if isinstance(judge, BothOrders) else judge
