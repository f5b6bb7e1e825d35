"""What the answers of a judge say of it: the figures of a judge card, and how far an earlier judge was as good."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks.card import JudgeCard, Measure
from pairscale.checks.effect import wilson
from pairscale.checks.position import PositionalBias
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.notices import plural
from pairscale.core.provenance import text_hash
from pairscale.evaluate.inference.score import score_interval, student_quantile
from pairscale.evaluate.result import cohen_kappa
from pairscale.judges.orders import merge_orders
from pairscale.store.reading import Comparisons
from pairscale.validity.verb import FEWEST_LABELS, trust_of_run

if TYPE_CHECKING:
    from pairscale.evaluate.judge_check import CheckPairs

LEVEL = 0.95
"""Of all intervals of a judge card."""
NO_LABELS = "no labels of people were given"
_WINNERS = ("1", "2")
_TURNED = {"1": "2", "2": "1"}
_PLACES = {"SAMPLE_1": 1, "SAMPLE_2": 2}
_LABELS = {1.0: "1", 0.0: "2", 0.5: "tie"}


def measures_of(
    asked: CheckPairs, results: pl.DataFrame, failed: int, costs: Sequence[float], bias: PositionalBias | None
) -> dict[str, Measure]:
    """The figures of a judge card.

    Args:
        asked: the pairs, what people said, and what was asked.
        results: the answers.
        failed: questions without an answer.
        costs: what questions cost, where the judge says.
        bias: what the two orders say of the position.
    """
    answers = answers_of(results)
    pairs = with_choices(asked, answers)
    with_people = dict.fromkeys(("agreement", "kappa", "net_agreement"), Measure.missing(NO_LABELS))
    if pairs["person"].count():
        with_people = _with_people(pairs)
    repeatability = distractor = Measure.missing(NO_LABELS)
    if asked.again:
        both = [(answers[one], answers[two]) for one, two in asked.again if {one, two} <= answers.keys()]
        same = sum(one == two for one, two in both)
        repeatability = _share(same, len(both), "no repeated question was answered twice")
        padded = [choice for choice in _choices(asked.padded, answers) if choice is not None]
        distractor = _share(padded.count("2"), len(padded), "no such question was answered in both orders")
    return {
        **with_people,
        "correlation": _correlation(asked, results),
        **_position(bias),
        **_length(pairs),
        "repeatability": repeatability,
        "distractor": distractor,
        "validity": _share(results.height, results.height + failed, "nothing was asked"),
        "cost": _cost(costs),
    }


Answers: TypeAlias = dict[str, tuple[Outcome, int | None]]
"""By question, the outcome and the place of the winner."""


def answers_of(results: pl.DataFrame) -> Answers:
    """The judge's answers."""
    columns = results.select("custom_id", "outcome", "better_sample").iter_rows()
    return {name: (Outcome(kind), _PLACES.get(winner)) for name, kind, winner in columns}


def with_choices(asked: CheckPairs, answers: Answers) -> pl.DataFrame:
    """The pairs with whom people prefer (``person``) and whom the judge in both orders (``choice``).

    Both are ``1``, ``2``, ``tie``, the judge's also ``flip``, and null where there is no label or an order no answer.
    """
    person = pl.col("said").replace_strict(_LABELS, return_dtype=pl.String)
    return asked.pairs.with_columns(pl.Series("choice", _choices(asked.orders, answers), pl.String), person=person)


def _choices(orders: Iterable[tuple[str, str]], answers: Answers) -> list[str | None]:
    """What the two orders of questions come to."""
    choices: list[str | None] = []
    for forward, backward in orders:
        choice = None
        if forward in answers and backward in answers:
            outcome, place = answers[backward]
            kind, winner = merge_orders([answers[forward], (outcome, place and 3 - place)])
            choice = str(winner or kind)
        choices.append(choice)
    return choices


def _share(part: int, n: int, why: str) -> Measure:
    return Measure(n, part / n, *wilson(part, n, LEVEL), "wilson") if n else Measure.missing(why)


def _difference(more: int, less: int, n: int, why: str) -> Measure:
    """A share minus another share of the same pairs, by the score interval for paired shares."""
    if not n:
        return Measure.missing(why)
    value = (more - less) / n
    lower, upper = score_interval((1 + value) / 2, (n - more - less) / n, n, LEVEL)
    return Measure(n, value, 2 * lower - 1, 2 * upper - 1, "score")


def _with_people(pairs: pl.DataFrame) -> dict[str, Measure]:
    answered = pairs.drop_nulls(["person", "choice"])
    decided = answered.filter(pl.col("person") != "tie")
    agreed = decided.filter(pl.col("choice") == pl.col("person")).height
    opposed = decided.filter(pl.col("choice").is_in(_WINNERS)).height - agreed
    nothing = "no pair was decided by people and answered by the judge"
    return {
        "agreement": _share(agreed, agreed + opposed, nothing),
        "kappa": _kappa(answered.filter(pl.col("choice") != "flip")),
        "net_agreement": _difference(agreed, opposed, decided.height, nothing),
    }


def _kappa(answered: pl.DataFrame) -> Measure:
    """By variant where there are variants, else by the place in a random order."""
    if not answered.height:
        return Measure.missing("no labelled pair was answered with a winner or a tie")
    sides = pl.col("choice", "person")
    by_variant = answered.select(pl.when(first_variant="b").then(sides.replace(_TURNED)).otherwise(sides))
    row = cohen_kappa(*(column.to_list() for column in by_variant))
    if row["estimate"] is None:
        return Measure.missing("kappa is not defined where one of them always says the same")
    return Measure(answered.height, *(row[name] for name in ("estimate", "lower", "upper", "interval")))


def _correlation(asked: CheckPairs, results: pl.DataFrame) -> Measure:
    """The correlation of the judge's scale of the texts with people's, as :func:`pairscale.trust` has it."""
    if asked.people is None:
        return Measure.missing(NO_LABELS if asked.kind == "texts" else "answers to tasks have no scale in common")
    answers = asked.main(results).drop_nulls("better_id")
    texts = [*answers["ID1"], *answers["ID2"]]
    people = asked.people.filter(pl.all_horizontal(pl.col("ID1", "ID2").is_in(texts)))
    if people.height < FEWEST_LABELS:
        return Measure.missing(f"it takes {FEWEST_LABELS} answers of people to pairs that the judge answered")
    try:
        validity = trust_of_run(Comparisons(answers, ""), Comparisons(people, "")).validity
    except InputError as error:
        return Measure.missing(str(error))
    return Measure(validity.n_labels, validity.estimate, validity.lower, validity.upper, "posterior")


def _position(bias: PositionalBias | None) -> dict[str, Measure]:
    why = "no pair has a winner in both orders"
    if bias is None:
        return dict.fromkeys(("consistency", "first_place", "position_effect"), Measure.missing(why))
    row = bias.summary.row(0, named=True)
    n = int(row["n_pairs"])
    in_logits = Measure.missing(str(bias.why))
    if bias.effect is not None:
        in_logits = Measure(n, bias.effect.b, bias.effect.lower, bias.effect.upper, "robust")
    return {
        "consistency": _share(round(row["prop_consistent"] * n), n, why),
        "first_place": _share(round(row["prop_pos1"] * 2 * n), 2 * n, why),
        "position_effect": in_logits,
    }


def _length(pairs: pl.DataFrame) -> dict[str, Measure]:
    """How often the longer text wins, and how much more often than with people."""
    why = "no pair of unequal length was decided"
    first = pl.col("text1").str.len_chars()
    second = pl.col("text2").str.len_chars()
    longer = pl.when(first > second).then(pl.lit("1")).when(first < second).then(pl.lit("2"))
    decided = pairs.filter(pl.col("choice").is_in(_WINNERS)).with_columns(longer=longer).drop_nulls("longer")
    chose_longer = pl.col("choice") == pl.col("longer")
    chosen = decided.filter(chose_longer).height
    excess = Measure.missing(NO_LABELS)
    if pairs["person"].count():
        by_both = decided.filter(pl.col("person").is_in(_WINNERS))
        differing = by_both.filter(pl.col("choice") != pl.col("person"))
        more = differing.filter(chose_longer).height
        excess = _difference(more, differing.height - more, by_both.height, f"{why} by both")
    return {"longer": _share(chosen, decided.height, why), "longer_excess": excess}


def _cost(costs: Sequence[float]) -> Measure:
    n = len(costs)
    if not n:
        return Measure.missing("the judge does not say what its answers cost")
    mean = float(np.mean(costs))
    if n < 2:
        return Measure(n, mean)
    half = student_quantile(LEVEL, n - 1) * float(np.std(costs, ddof=1)) / math.sqrt(n)
    return Measure(n, mean, max(0.0, mean - half), mean + half, "t")


# A judge beside an earlier one: both on the same labels, pair by pair


LabelledAnswers: TypeAlias = dict[str, tuple[str, str | None]]
"""By a digest of each labelled pair, whom people prefer and whom the judge."""


def labelled_answers(pairs: pl.DataFrame) -> LabelledAnswers:
    """By a digest of each labelled pair, whom people prefer and whom the judge; see :func:`with_choices`.

    Which text of a pair is the first follows from the digests alone, so that another check of the same labels can be
    compared.
    """
    answers: LabelledAnswers = {}
    columns = ("ID1", "text1", "ID2", "text2", "person", "choice")
    for id1, text1, id2, text2, person, choice in pairs.drop_nulls("person").select(columns).iter_rows():
        digests = [text_hash(f"{name}\n{text}")[:16] for name, text in ((id1, text1), (id2, text2))]
        if digests != sorted(digests):
            answers["".join(sorted(digests))] = _TURNED.get(person, person), _TURNED.get(choice, choice)
        else:
            answers["".join(digests)] = person, choice
    return answers


def require_same_labels(now: LabelledAnswers, earlier: JudgeCard) -> None:
    """Refuse labels that are not those of the earlier card.

    Args:
        now: by a digest of each labelled pair, whom people prefer.
        earlier: the card.
    """
    labels = {(pair, answers[0]) for pair, answers in now.items()}
    before = {(pair, answers[0]) for pair, answers in earlier.data["answers"].items()}
    if labels != before:
        raise InputError(
            f"the labels are not those of the card: it has {len(before - labels):,} that are not here, and lacks "
            f"{len(labels - before):,}; compare judges on the same labels, or make the card again",
            argument="since",
        )


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
        points = round(100 * self.difference)
        change = f"{plural(abs(points), 'point')} {'less' if points < 0 else 'more'}" if points else "no difference"
        interval = f"{100 * self.level:g} % confidence interval {100 * self.lower:+.0f} to {100 * self.upper:+.0f}"
        return (
            f"{self.judge} agrees with people in {100 * self.agreement:.0f} % of {plural(self.n, 'label')}, "
            f"the earlier one ({self.earlier}) in {100 * self.agreement_earlier:.0f} %: {change} ({interval})"
        )


def change_between(card: JudgeCard, earlier: JudgeCard) -> JudgeChange:
    """How far the judges of two cards of the same labels agree with people.

    Raises:
        InputError: If no pair can be compared.
    """
    before = earlier.data["answers"]
    answers = [(person, choice, before[pair][1]) for pair, (person, choice) in card.data["answers"].items()]
    agreed = Counter(
        (choice == person, former == person)
        for person, choice, former in answers
        if person != "tie" and choice is not None and former is not None
    )
    n = agreed.total()
    if not n:
        raise InputError("no pair that people decided was answered by both judges", argument="since")
    both = agreed[True, True]
    gained = agreed[True, False]
    lost = agreed[False, True]
    difference = (gained - lost) / n
    # A pair scores 1 for the new judge, 0 for the earlier one, and one half where they are equal.
    lower, upper = score_interval((1 + difference) / 2, 1 - (gained + lost) / n, n, card.level, careful=True)
    return JudgeChange(
        judge=card.judge.judge_id,
        earlier=earlier.judge.judge_id,
        n=n,
        agreement=(both + gained) / n,
        agreement_earlier=(both + lost) / n,
        gained=gained,
        lost=lost,
        difference=difference,
        lower=2 * lower - 1,
        upper=2 * upper - 1,
        level=card.level,
    )
