"""Does a new judge agree with people as well as an earlier one? Both on the same labels, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pairscale.checks.card import JudgeCard, read_judge_card
from pairscale.core.errors import InputError
from pairscale.core.notices import plural
from pairscale.core.options import FilePath
from pairscale.evaluate.inference.score import score_interval

__all__ = ["JudgeChange", "card_with_answers", "compared", "require_same_labels"]


@dataclass(frozen=True, slots=True)
class JudgeChange:
    """How far two judges agree with people, on the same labels.

    A judge agrees where it names the text that people prefer in both orders; a tie or a flip is no agreement.

    Attributes:
        judge: the new judge.
        earlier: the judge of the card.
        n: pairs that people decide and both judges answered.
        agreement: the share in which the new judge agrees.
        agreement_earlier: the share in which the earlier one did.
        gained: pairs in which only the new one agrees.
        lost: pairs in which only the earlier one did.
        difference: the new share less the earlier one.
        lower: the lower end of its interval, which holds for few pairs, too.
        upper: the upper end.
        level: Level of the interval.
    """

    judge: str
    earlier: str
    n: int
    agreement: float
    agreement_earlier: float
    gained: int
    lost: int
    difference: float
    lower: float
    upper: float
    level: float

    def __str__(self) -> str:
        points = round(100 * abs(self.difference))
        change = "no difference"
        if points:
            change = f"{plural(points, 'point')} {'less' if self.difference < 0 else 'more'}"
        interval = f"{100 * self.level:g} % confidence interval {100 * self.lower:+.0f} to {100 * self.upper:+.0f}"
        return (
            f"{self.judge} agrees with people in {100 * self.agreement:.0f} % of {plural(self.n, 'label')}, "
            f"the earlier one ({self.earlier}) in {100 * self.agreement_earlier:.0f} %: {change} ({interval})"
        )


def card_with_answers(since: JudgeCard | FilePath) -> JudgeCard:
    """The card to compare with.

    Raises:
        InputError: If it holds no answers on labels.
    """
    card = since if isinstance(since, JudgeCard) else read_judge_card(since)
    if not card.data.get("answers"):
        raise InputError(
            f"the card of {card.judge.judge_id} has no answers on labels of people, so that nothing can be compared "
            "with it; make it again, with `labels=`",
            argument="since",
        )
    return card


def require_same_labels(now: Mapping[str, Sequence[str | None]], earlier: JudgeCard) -> None:
    """Refuse labels that are not those of the earlier card.

    Args:
        now: by a digest of each labelled pair, whom people prefer.
        earlier: the card.
    """
    before = earlier.data["answers"]
    new = len(now.keys() - before.keys())
    gone = len(before.keys() - now.keys())
    changed = sum(now[pair][0] != before[pair][0] for pair in now.keys() & before.keys())
    if new or gone or changed:
        raise InputError(
            f"the labels are not those of the card: {plural(new, 'pair')} more, {gone:,} fewer, {changed:,} with "
            "another label; compare judges on the same labels, or make the card again",
            argument="since",
        )


def compared(card: JudgeCard, earlier: JudgeCard) -> JudgeChange:
    """How far the judges of two cards of the same labels agree with people.

    Raises:
        InputError: If no pair can be compared.
    """
    now = card.data["answers"]
    before = earlier.data["answers"]
    pairs = [pair for pair, (people, _) in now.items() if people != "tie"]
    answered = [pair for pair in pairs if now[pair][1] is not None and before[pair][1] is not None]
    if not answered:
        raise InputError("no pair that people decided was answered by both judges", argument="since")
    agrees = {pair for pair in answered if now[pair][1] == now[pair][0]}
    agreed = {pair for pair in answered if before[pair][1] == before[pair][0]}
    n = len(answered)
    gained = len(agrees - agreed)
    lost = len(agreed - agrees)
    # A pair scores 1 for the new judge, 0 for the earlier one, and one half where they are equal.
    equal = 1 - (gained + lost) / n
    lower, upper = score_interval(0.5 + (gained - lost) / (2 * n), equal, n, card.level, careful=True)
    return JudgeChange(
        judge=card.judge.judge_id,
        earlier=earlier.judge.judge_id,
        n=n,
        agreement=len(agrees) / n,
        agreement_earlier=len(agreed) / n,
        gained=gained,
        lost=lost,
        difference=(gained - lost) / n,
        lower=2 * lower - 1,
        upper=2 * upper - 1,
        level=card.level,
    )
