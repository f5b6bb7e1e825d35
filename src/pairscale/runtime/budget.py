"""What a run may spend: money is reserved before a question is asked, and settled when its cost is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pairscale.core.errors import InputError, JudgeError
from pairscale.core.notices import notice
from pairscale.core.options import optional, require_number
from pairscale.judges.base import Judge, JudgePair, Verdict, judge_member
from pairscale.judges.function import raised
from pairscale.judges.panel import members_of
from pairscale.providers.catalog import price_date, price_note
from pairscale.store.queries import PRICES_MARK
from pairscale.store.runfile import RunFile

_ROUNDING = 1 + 1e-9  # ten times ten cents are a dollar


class BudgetExceeded(Exception):  # noqa: N818 - a limit was reached, nothing went wrong
    """The next question might cost more than is left."""


@dataclass(slots=True, eq=False)
class Reservation:
    """Money that is reserved for a question.

    Attributes:
        who: the judge or variant that is asked.
        most: what the question may cost at most; None when it is unknown.
        is_variant: whether a variant is asked; one that states no cost counts as free until it does.
    """

    who: str
    most: float | None
    is_variant: bool = False


@dataclass(slots=True)
class Budget:
    """What a run may spend, and what it has spent.

    Attributes:
        limit: US dollars; None for no limit.
        spent: so far, by the whole run: all calls and resumptions together.
        highest: by condition or variant, what its most expensive answer cost so far.
        prices: the dates of the prices behind it, as :func:`recorded_prices` words them.
    """

    limit: float | None = None
    spent: float = 0.0
    highest: dict[str, float] = field(default_factory=dict)
    prices: str = ""
    _has_said_estimate: bool = False
    _open: list[Reservation] = field(default_factory=list)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, store: RunFile, limit: float | None) -> Budget:
        """The budget of a run file, with what it has spent."""
        highest = {} if limit is None else store.highest_costs()
        return cls(limit, store.spent(), highest, recorded_prices(store))

    def __str__(self) -> str:
        return f"${self.spent:.4f} of ${self.limit:g} are spent{self.prices}"

    async def reserve(self, who: str, most: float | None, *, is_variant: bool = False) -> Reservation:
        """Reserve what a question may cost: what the judge states, or the highest cost of its answers so far.

        Open questions may turn out to cost less, and are waited for before the budget counts as exceeded. While the
        cost of an answer is unknown, one question is asked at a time.

        Args:
            who: the judge or variant that is asked.
            most: what the question may cost at most; None when it is unknown.
            is_variant: whether a variant is asked.

        Raises:
            BudgetExceeded: that is more than is left.
        """
        reservation = Reservation(who, most, is_variant)
        if self.limit is not None:
            while self._open and (self._is_too_much(reservation) or self._must_learn(reservation)):
                self._settled.clear()
                await self._settled.wait()
            if self._is_too_much(reservation):
                raise BudgetExceeded
        self._open.append(reservation)
        return reservation

    def may_ask(self, who: str, most: float | None) -> bool:
        """Whether another question could be asked now, without waiting for those that are open."""
        if self.limit is None:
            return True
        reservation = Reservation(who, most)
        return not self._is_too_much(reservation) and not (self._open and self._must_learn(reservation))

    def pay(self, reservation: Reservation, verdict: Verdict | None) -> None:
        """Settle a judge's verdict; None when the question was given up.

        Raises:
            JudgeError: there is a limit, and the judge states neither what a question may cost nor what it cost.
        """
        if verdict is None:
            self.settle(reservation, None, is_typical=False)
            return
        is_typical = verdict.cost is not None and not verdict.cached
        self.settle(reservation, verdict.cost, is_typical=is_typical)
        unpriced = verdict.outcome.is_answer and verdict.cost is None
        if self.limit is not None and unpriced and reservation.most is None:
            raise JudgeError(
                "`max_cost=` is set, but the judge does not say what its answers cost; return the cost in US dollars "
                "as 'cost' (or Verdict(cost=…)), give the judge a method max_cost_of(pair), or leave out `max_cost=`"
            )

    def say_estimate(self, who: str, cost: float | None) -> None:
        """Log once that the cost of a question is not known, and what is counted instead."""
        if not self._has_said_estimate:
            self._has_said_estimate = True
            notice(
                f"{who}: what a question cost is not known (its reply does not say how many tokens it used, or did not "
                f"arrive), so the most that it may have cost is counted, ${cost or 0.0:.4f}; the same "
                "applies to every such question"
            )

    def settle(self, reservation: Reservation, cost: float | None, *, is_typical: bool = True) -> None:
        """Count a cost and release the reservation.

        Args:
            reservation: of :meth:`reserve`.
            cost: what the answer cost; None when it does not say.
            is_typical: whether other answers may cost as much: not after a failure, nor for an answer from the cache.
        """
        self._open.remove(reservation)
        self.spent += cost or 0.0
        if is_typical:
            self.highest[reservation.who] = max(self.highest.get(reservation.who, 0.0), cost or 0.0)
        self._settled.set()

    def _is_too_much(self, reservation: Reservation) -> bool:
        """Whether the question might pass the limit, together with all open ones."""
        if self.limit is None:
            return False
        reserved = sum(map(self._may_cost, (*self._open, reservation)))
        is_used_up = self.spent * _ROUNDING >= self.limit and not self._is_free(reservation)
        return is_used_up or self.spent + reserved > self.limit * _ROUNDING

    def _may_cost(self, reservation: Reservation) -> float:
        """The most that a question may cost, by what is declared and by the answers so far."""
        return max(self.highest.get(reservation.who, 0.0), reservation.most or 0.0)

    def _is_free(self, reservation: Reservation) -> bool:
        says_so = reservation.most == 0.0 or (reservation.is_variant and reservation.most is None)
        return says_so and self._may_cost(reservation) == 0.0

    def _must_learn(self, reservation: Reservation) -> bool:
        """Whether its cost is unknown, and the answer to an open question will show it."""
        return self._is_unknown(reservation) and any(map(self._is_unknown, self._open))

    def _is_unknown(self, reservation: Reservation) -> bool:
        return reservation.most is None and reservation.who not in self.highest


def max_cost_of(judge: Judge, pair: JudgePair) -> float | None:
    """The most that a question may cost, as its judge declares it; None when it declares nothing.

    Raises:
        JudgeError: it raises an exception instead, or returns something that is no amount of money.
    """
    declared = judge_member(judge, "max_cost_of")
    if declared is None:
        return None
    try:
        return optional(require_number, declared(pair), "what it returns", least=0)
    except Exception as error:  # noqa: BLE001 - whatever it is, the user's code has raised it
        reason = error if isinstance(error, InputError) else f"it raised {raised(error)}"
        raise JudgeError(f"max_cost_of of the judge {judge.condition.judge_id}: {reason}") from None


def require_prices(judges: Iterable[Judge], max_cost: float | None) -> None:
    """Refuse a limit on costs for a model without a known price; without a limit, log that costs are unknown.

    Raises:
        InputError: the limit would have no effect.
    """
    unknown = [judge.condition.judge_id for judge in members_of(*judges) if not _has_price(judge)]
    for name in dict.fromkeys(unknown):
        how = (
            "give it with --price input=1.25,output=10 (US dollars per million tokens; in Python "
            "judge_args={'price': {'input': 1.25, 'output': 10}})"
        )
        if max_cost is not None:
            raise InputError(f"`max_cost=` needs the price of {name}, which is not known; {how}, or leave it out")
        notice(f"the price of {name} is not known, so costs are not counted; {how}")


def record_prices(store: RunFile, judges: Iterable[Judge], variants: Mapping[str, object] | None = None) -> None:
    """Keep in the run file the prices that its costs rest on: the model, the figures, their date and their source.

    Args:
        store: the run file.
        judges: who is asked; those without a price, or with nothing to pay, leave no record.
        variants: by name, the variants that answer.
    """
    recorded = list(store.get_meta(PRICES_MARK) or ())
    asked: list[tuple[str, object]] = [
        (answerer.condition.model or answerer.condition.judge_id, answerer) for answerer in members_of(*judges)
    ]
    rows = list(recorded)
    for model, answerer in (*asked, *(variants or {}).items()):
        price = judge_member(answerer, "price")
        date = price_date(price)
        if date is not None:
            row = {"model": model, "as_of": date, **{name: getattr(price, name) for name in _RECORDED}}
            if row not in rows:
                rows.append(row)
    if rows != recorded:
        store.set_meta(PRICES_MARK, rows)


def recorded_prices(store: RunFile) -> str:
    """The dates of the prices behind the costs of a run, to be shown after each cost."""
    return price_note(row["as_of"] for row in store.get_meta(PRICES_MARK) or ())


_RECORDED = ("input", "output", "source")


def _has_price(judge: Judge) -> bool:
    """Whether a price is known, or the judge is one of the user's own that declares no cost."""
    declared = judge_member(judge, "max_cost_of")
    try:
        return declared is None or declared(_ANY_PAIR) is not None
    except Exception:  # noqa: BLE001 - it knows the texts of the run alone, and will be asked about them
        return True


_ANY_PAIR = JudgePair({"ID": "a", "item_id": "a", "text": ""}, {"ID": "b", "item_id": "b", "text": ""})
