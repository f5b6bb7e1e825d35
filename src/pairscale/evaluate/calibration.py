"""The win rates of a run as people would see them, by the judge cards that the run was given."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.checks.card import JudgeCard, read_judge_card
from pairscale.core.errors import InputError
from pairscale.core.tables import listed
from pairscale.evaluate.inference.calibrated import CalibratedRate, calibrated_rate
from pairscale.evaluate.inference.score import score_interval

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseRunResult

__all__ = ["CardLike", "calibrated_lines", "calibrated_of", "cards_by_criterion", "cards_of", "lowest_net", "net_bound"]

CardLike: TypeAlias = "str | os.PathLike[str] | JudgeCard"

_UNEQUAL = 0.1  # of the mean length: from there on, a preference for length favours one of the variants


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


def calibrated_of(run: PairwiseRunResult, key: str, level: float) -> CalibratedRate:
    """B's win rate under a comparator, corrected by its judge card.

    Raises:
        InputError: the comparator has no card.
    """
    next(run.of(key), None)
    card = run.cards.get(key)
    if card is None:
        raise InputError(f"{key}: there is no judge card; give the run one with judge_card=")
    counts: Mapping[str, int] = card.measures["net_agreement"].counts
    found = calibrated_rate(
        run.frame(key),
        agreed=counts["agreed"],
        against=counts["reversed"],
        undecided=counts["undecided"],
        level=level,
        sequential=run.sequential,
    )
    return replace(found, notices=(*found.notices, *_careful(run, key, card)))


def _careful(run: PairwiseRunResult, key: str, card: JudgeCard) -> list[str]:
    """What the card shows that would favour one of the variants."""
    excess = card.measures["longer_excess"]
    lengths = [(case.length_a, case.length_b) for case in run.of(key) if case.length_a and case.length_b]
    if not excess.measured or excess.lower is None or excess.upper is None or not lengths:
        return []
    means = [sum(column) / len(lengths) for column in zip(*lengths, strict=True)]
    if excess.lower <= 0 <= excess.upper or abs(means[1] - means[0]) < _UNEQUAL * min(means):
        return []
    longer = run.variant_b if means[1] > means[0] else run.variant_a
    taste, helped = ("longer", longer) if excess.lower > 0 else ("shorter", "")
    helped = helped or (run.variant_a if longer == run.variant_b else run.variant_b)
    words = (
        f"on its card the judge chooses the {taste} text more often than people do, and the answers of {longer} are "
        f"longer here: that favours {helped}, and the correction does not take it out (see control=length)"
    )
    return [words]


def calibrated_lines(found: CalibratedRate, name: str) -> list[str]:
    """A corrected rate, what it rests on, and what to be careful with, in lines.

    Args:
        found: the rate.
        name: what B is called.
    """
    lines = []
    if found.rate is not None and found.ci is not None and found.raw_rate is not None and found.net_ci is not None:
        ends = f"{found.level * 100:g} % sure: {found.ci[0] * 100:.0f} to {found.ci[1] * 100:.0f} %"
        net = f"{found.net_agreement:.2f} ({found.net_ci[0]:.2f} to {found.net_ci[1]:.2f}; 1 would be always, 0 a coin)"
        judge = f"the judge says {found.raw_rate * 100:.0f} %"
        lines = [
            f"as people would see it, by the judge card: {name} wins {found.rate * 100:.0f} % ({ends}); {judge}",
            f"  net agreement of the judge {net} on {found.labels:,} pairs; {found.assumption}",
        ]
    return [*lines, *(f"note: {notice}" for notice in found.notices)]
