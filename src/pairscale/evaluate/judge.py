"""A judge as a comparator: both orders, and a win only when they agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pairscale.checks.card import JudgeCard, JudgeIdentity
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import checked, require_int
from pairscale.core.provenance import fingerprint, text_hash
from pairscale.evaluate._model_judge import TaskJudge, reasoning_of
from pairscale.evaluate.comparators import Ask, PairwiseOutcome, item_name, together
from pairscale.evaluate.suite import Task, as_words
from pairscale.evaluate.traces import Trace
from pairscale.judges.base import Item, Judge, JudgePair, Verdict, judge_member
from pairscale.judges.build import make_judge, own_settings
from pairscale.judges.orders import merge_orders, merge_preferences
from pairscale.providers.catalog import PROVIDERS
from pairscale.runtime import RETRIES, ask_unrecorded, close

__all__ = ["JudgeComparator", "make_task_judge", "pairwise_judge", "require_card", "require_names"]

Side = Literal["a", "b"]
_SLOTS = {1: "first", 2: "second"}
_OWN = frozenset({"reference", "reference_outputs", "trace", "tags"})
"""What the metadata of an answer may hold about its task: the judge is shown it as the task's, or not at all."""


@checked
def pairwise_judge(
    config: str | Judge | Callable[..., Any],
    *,
    criterion: str,
    key: str,
    swap: bool = True,
    include_reference: bool = True,
    include_trace: bool = False,
    retries: int = RETRIES,
    judge_args: Mapping[str, Any] | None = None,
    judge_card: JudgeCard | None = None,
) -> JudgeComparator:
    """A judge that compares the two answers to a task, in both orders.

    A win counts only when both orders name the same answer. When each order names another, that is a *flip*, and the
    place that the judge preferred is kept. A win in one order and a tie in the other is a *tie*: the judge did not
    stand by its preference, and it did not turn it round either. When one order has no answer, neither has the case: an
    error, or an abstention when the judge declined. Two answers with exactly the same text are a tie, and no judge is
    asked.

    A judge that states a probability (a function that returns ``p``, a :class:`LLMJudge` with ``logprobs``) is graded:
    the case has a ``preference``, the probability that B is better, averaged over both orders. The hard verdict of an
    order is the answer with a probability above ½, a tie at ½; hard verdicts merge as above. So a graded case may be a
    flip, whose preference is the mean of both orders.

    Args:
        config: ``provider:model``, which is asked with the task, the criterion and both answers, and may say that
            neither is better; a :class:`Judge` or a callable ``judge(A, B)``, which judges in its own way: ``A`` and
            ``B`` have ``text`` (the answer), ``input``, ``criterion``, ``task_id``, ``reference`` and ``trace`` (where
            they are included) and what the trace has as metadata; or any other name of :func:`make_judge`.
        criterion: what "better" means, in words.
        key: what the figures stand under; one criterion, one key.
        swap: ask in both orders. Without it each task is asked once, and a digest of it decides which answer stands
            first, so that a preference for a place does not favour a variant.
        include_reference: show the task's reference output, where there is one.
        include_trace: show the events of the traces, too.
        retries: how often to ask again when the judge says that an error may pass.
        judge_args: settings of the judge, such as ``{"reasoning": "low"}``, ``base_url`` or ``price``; see
            :class:`LLMJudge` and :func:`make_judge`.
        judge_card: the :class:`JudgeCard` of this judge and criterion: the win rates of a run are then corrected by it.
            A card of another judge or prompt is refused.

    Example:
        >>> shorter = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) < len(B["text"]))}
        >>> pairwise_judge(shorter, criterion="more concise", key="concise").key
        'concise'
    """
    require_names(criterion, key)
    judge = make_task_judge(config, criterion, judge_args)
    if judge_card is not None:
        require_card(judge_card, judge, criterion, swap=swap)
    return JudgeComparator(judge, criterion, key, swap, include_reference, include_trace, retries, judge_card)


def make_task_judge(
    config: str | Judge | Callable[..., Any], criterion: str, judge_args: Mapping[str, Any] | None
) -> Judge:
    """The judge that is asked about two answers to a task; see :func:`pairwise_judge`."""
    if isinstance(config, str) and config.partition(":")[0] in PROVIDERS:
        name, own = own_settings(config)
        return TaskJudge(name, criterion, {**(judge_args or {}), **own})
    return make_judge(config, judge_args=judge_args)


def require_card(card: JudgeCard, judge: Judge, criterion: str, *, swap: bool) -> None:
    """Refuse a card that was not measured of this judge with this prompt, asked in both orders.

    Raises:
        InputError: that says what differs.
    """
    here = JudgeIdentity.of(judge.condition, "cases", criterion)
    if differing := card.judge.differences(here):
        raise InputError(
            f"the judge card is not of this judge and prompt: {'; '.join(differing)}. Use the judge of the card, or "
            "make a card of this one with check_judge(CASES, `labels=`...)"
        )
    found = card.measures["net_agreement"]
    if not found.measured:
        raise InputError(f"the judge card does not say how far the judge agrees with people: {found.why}")
    if not swap:
        raise InputError("a judge card is measured in both orders; leave out swap=False, or the card")


def require_names(criterion: str, key: str) -> None:
    """Refuse an empty criterion or key."""
    for name, value in (("criterion", criterion), ("key", key)):
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{name} must be a text such as 'more helpful', not {value!r}")


class JudgeComparator:
    """A judge as a comparator; :func:`pairwise_judge` makes one."""

    def __init__(
        self,
        judge: Judge,
        criterion: str,
        key: str,
        swap: bool,
        include_reference: bool,
        include_trace: bool,
        retries: int,
        judge_card: JudgeCard | None = None,
    ) -> None:
        require_int(retries, "retries", least=0)
        self.judge_card, self._told = judge_card, False
        self.judge, self.criterion, self.key = judge, criterion, key
        self._swap, self._reference, self._trace, self._retries = swap, include_reference, include_trace, retries

    def __repr__(self) -> str:
        return f"<pairwise_judge {self.judge.condition.judge_id}, key {self.key!r}>"

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Who is asked."""
        return (self.judge,)

    async def aclose(self) -> None:
        """Have the judge close its connections."""
        await close(self.judge)

    async def compare(
        self, *, task: Task, trace_a: Trace, trace_b: Trace, reference_outputs: Any = None, ask: Ask = ask_unrecorded
    ) -> PairwiseOutcome:
        """Which is better; ``ask`` is how a run puts the questions."""
        reference = as_words(reference_outputs) if self._reference else ""
        if self.judge_card is not None and (reference or self._trace):
            self._tell_more_shown()
        sides = {"a": self._item(task, trace_a, reference), "b": self._item(task, trace_b, reference)}
        if all(sides["a"].get(name) == sides["b"].get(name) for name in ("text", "trace")):
            return PairwiseOutcome("tie", "the two answers are the same", {"identical": True})
        orders: list[tuple[Side, Side]] = [("a", "b"), ("b", "a")]
        if not self._swap:
            orders = [orders[int(text_hash(f"{self.key}|{task.task_id}"), 16) % 2]]
        pairs = [self._pair(task, sides[first], sides[second]) for first, second in orders]
        verdicts = await together(*(ask(self.judge, pair, self._retries) for pair in pairs))
        firsts = [order[0] for order in orders]
        return merged_outcome(firsts, verdicts, self.judge.condition.judge_id, graded=self._graded)

    def _tell_more_shown(self) -> None:
        if not self._told:
            self._told = True
            notice(
                "the judge is shown references or traces here, and its card was measured without them: the corrected "
                "win rate assumes that they do not change how often it agrees with people"
            )

    def _item(self, task: Task, trace: Trace, reference: str) -> dict[str, Any]:
        name = item_name(task.task_id, trace.output)
        own: dict[str, Any] = {"ID": name, "item_id": name, "text": trace.output, "task_id": task.task_id}
        own |= {"input": task.input, "criterion": self.criterion}
        if reference:
            own["reference"] = reference
        if self._trace:
            own["trace"] = "\n".join(as_words(event) for event in trace.to_dict()["events"])
        return {str(name): value for name, value in trace.metadata.items() if name not in _OWN} | own

    @property
    def _graded(self) -> bool:
        return bool(judge_member(self.judge, "graded"))

    def _pair(self, task: Task, first: Item, second: Item) -> JudgePair:
        # Everything that the judge is shown is in the name: another criterion, input or answer is another question.
        return JudgePair(first, second, f"{task.task_id}:{fingerprint([self.criterion, first, second])}")


def merged_outcome(
    firsts: Sequence[Side], verdicts: Sequence[Verdict], judge_id: str, *, graded: bool = True
) -> PairwiseOutcome:
    """One outcome of the verdicts of one or two orders.

    Args:
        firsts: which variant stood first in each order.
        verdicts: what the judge said to each.
        judge_id: who that was.
        graded: whether a probability that a verdict states is its answer.
    """
    orders = [_order(first, verdict, graded=graded) for first, verdict in zip(firsts, verdicts, strict=True)]
    detail: dict[str, Any] = {"judge_id": judge_id, "orders": orders}
    detail |= {f"order{at}": order["preferred"] for at, order in enumerate(orders, start=1)}
    reasoning = "\n".join(
        f"{order['first'].upper()} first: {order['reasoning']}" if len(orders) > 1 else order["reasoning"]
        for order in orders
        if order["reasoning"]
    )
    costs = [verdict.cost for verdict in verdicts if verdict.cost is not None]
    more: dict[str, Any] = {"detail": detail, "cost": sum(costs) if costs else None}
    kind, winner = merge_orders([(Outcome(order["outcome"]), order["winner"]) for order in orders])
    if kind.is_answer:
        more["preference"] = merge_preferences([order["preference"] for order in orders])
    if kind is Outcome.FLIP:
        slots = {order["preferred"] for order in orders}
        detail["direction"] = slots.pop() if len(slots) == 1 else None
    return PairwiseOutcome("tie" if kind is Outcome.TIE else winner, reasoning, outcome=kind, **more)


def _order(first: Side, verdict: Verdict, *, graded: bool) -> dict[str, Any]:
    """What was said when a variant stood first; a graded verdict is for the answer whose probability is above ½."""
    second: Side = "b" if first == "a" else "a"
    kind = verdict.outcome
    preferred = "tie" if kind is Outcome.TIE else _SLOTS.get(verdict.winner_pos or 0)
    stated = verdict.probability if graded and kind.is_answer else None
    if stated is not None and kind is not Outcome.FLIP:
        preferred = "tie" if stated == 0.5 else _SLOTS[1 if stated > 0.5 else 2]
        kind = Outcome.TIE if preferred == "tie" else Outcome.WIN
    return {
        "first": first,
        "outcome": str(kind),
        "preferred": preferred,
        "preference": None if stated is None else 1 - stated if first == "a" else stated,
        "winner": {"first": first, "second": second, "tie": "tie"}.get(preferred or ""),
        "reasoning": reasoning_of(verdict),
        "error_code": verdict.error_code,
        "cost": verdict.cost,
    }
