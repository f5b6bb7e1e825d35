"""Which pairs of a batch the budget allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pairscale.core.notices import notice
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import BatchJudge, calls_of, max_batch_cost
from pairscale.runtime import Budget, recorded_prices
from pairscale.store.database import write_json

if TYPE_CHECKING:
    from pairscale.collect.batch.registry import RegistryEntry
    from pairscale.store.runfile import RunFile


def affordable(
    store: RunFile,
    judge: BatchJudge,
    questions: Iterable[tuple[int, JudgePair]],
    max_cost: float,
    batches: Sequence[RegistryEntry],
) -> list[tuple[int, JudgePair]]:
    """The questions, in their order, that cannot make the run cost more than it may; the rest is said.

    Args:
        store: the run file.
        judge: who is asked.
        questions: numbers of pairs, and the pairs.
        max_cost: US dollars that the run may spend.
        batches: those of the run; what is under way may still cost something.
    """
    under_way = sum(entry.max_cost or 0.0 for entry in batches if entry.open)
    budget = Budget(max_cost, store.spent() + under_way)
    chosen: list[tuple[int, JudgePair]] = []
    for number, pair in questions:
        most = _cost(judge, pair)
        if not budget.may_ask("", most):
            reserved = f", and ${under_way:.4f} are reserved for batches under way" if under_way else ""
            notice(
                f"{len(chosen):,} pairs are submitted; more might pass `max_cost=`: "
                f"${store.spent():.4f} of ${max_cost:g} "
                f"are spent{reserved}{recorded_prices(store)}. Run it again to continue, later or with a higher "
                "limit"
            )
            break
        budget.spent += most
        chosen.append((number, pair))
    return chosen


def _cost(judge: BatchJudge, pair: JudgePair) -> float:
    """What a pair may cost at most in a batch."""
    calls = calls_of(judge, pair)
    return max_batch_cost(judge, sum(len(write_json(call.body).encode()) for call in calls), len(calls)) or 0.0
