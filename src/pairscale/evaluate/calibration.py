"""The judge cards that a run or a gate was given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from pairscale.checks.card import JudgeCard, read_judge_card
from pairscale.core.errors import InputError
from pairscale.core.tables import listed
from pairscale.evaluate.inference.score import score_interval

__all__ = ["CardLike", "cards_by_criterion", "cards_of", "lowest_net", "net_bound"]

CardLike: TypeAlias = "str | os.PathLike[str] | JudgeCard"


def cards_by_criterion(
    given: CardLike | Sequence[CardLike] | None, criteria: Sequence[str], judges: Sequence[Any]
) -> dict[str, JudgeCard]:
    """The judge cards that a user named, by the criterion that each is of.

    Args:
        given: a file, a card, or several.
        criteria: those of the run.
        judges: those of the run.

    Raises:
        InputError: a card is of no criterion of the run, two are of the same, or no single judge is asked.
    """
    cards: list[CardLike] = []
    if given is not None:
        cards = [given] if isinstance(given, str | os.PathLike | JudgeCard) else list(given)
    found: dict[str, JudgeCard] = {}
    for one in cards:
        card = one if isinstance(one, JudgeCard) else read_judge_card(one)
        criterion = card.judge.trait
        if len(judges) != 1 or judges[0] == "human":
            raise InputError("judge_card is of one judge, which must be asked alone: name it with `judge=`")
        if card.judge.kind != "cases":
            raise InputError(
                "the judge card was measured on pairs of texts, with another prompt than two answers to a task have; "
                "make one with check_judge(CASES, `labels=`...), CASES being a manifest of ab(manifest=...)"
            )
        if criterion not in criteria:
            raise InputError(f"the judge card is of the criterion {criterion!r}, and this run has {listed(criteria)}")
        if criterion in found:
            raise InputError(f"two judge cards are of the criterion {criterion!r}; give one of them")
        found[str(criterion)] = card
    return found


def cards_of(comparators: Sequence[object]) -> dict[str, JudgeCard]:
    """By the keys of comparators, the cards that they were given."""
    found = {str(getattr(one, "key", "")): getattr(one, "judge_card", None) for one in comparators}
    return {key: card for key, card in found.items() if isinstance(card, JudgeCard)}


def net_bound(net: float, undecided: float, labels: int, error: float) -> float:
    """What the net agreement of a judge is above, wrong with a chance of at most ``error``.

    Args:
        net: the net agreement on the card.
        undecided: share of the pairs that people decided and the judge did not.
        labels: pairs that people decided.
        error: the chance.
    """
    return 2 * score_interval((1 + net) / 2, undecided, labels, 1 - 2 * error)[0] - 1


def lowest_net(card: JudgeCard, error: float) -> float:
    """The lower bound of the net agreement on a card; see :func:`net_bound`.

    Raises:
        InputError: that is 0 or less, so that the judge cannot stand for people.
    """
    found = card.measures["net_agreement"]
    if found.value is None:
        raise InputError(f"the judge card does not say how far the judge agrees with people: {found.why}")
    lower = net_bound(found.value, found.counts["undecided"] / found.n, found.n, error)
    if lower <= 0:
        raise InputError(
            f"the {found.n:,} pairs of the judge card do not show that {card.judge.judge_id} agrees with people more "
            "often than it disagrees; label more pairs, find a better judge, or leave the card out"
        )
    return lower
