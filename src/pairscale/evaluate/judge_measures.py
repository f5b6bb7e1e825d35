"""What the answers of a judge say of it: the figures of a judge card, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.checks.agreement import agreement
from pairscale.checks.card import Measure
from pairscale.checks.effect import wilson
from pairscale.checks.position import PositionalBias
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.provenance import text_hash
from pairscale.evaluate.inference.score import score_interval, student_quantile
from pairscale.judges.orders import merge_orders
from pairscale.store.reading import Comparisons
from pairscale.validity.verb import FEWEST_LABELS, trust_of_run

if TYPE_CHECKING:
    from pairscale.evaluate.judge_check import CheckPairs

_NO_LABELS = "no labels of people were given"
_NAMES = {1.0: "1", 0.0: "2", 0.5: "tie"}
_TURNED = {"1": "2", "2": "1"}
LEVEL = 0.95
"""Of all intervals of a judge card."""
_KAPPA = pl.col("statistic") == "cohen_kappa"


def measures_of(
    found: CheckPairs,
    results: pl.DataFrame,
    failed: int,
    costs: Sequence[float],
    bias: PositionalBias | None,
) -> dict[str, Measure]:
    """The figures of a judge card.

    Args:
        found: the pairs, what people said, and what was asked.
        results: the answers.
        failed: questions without an answer.
        costs: what questions cost, where the judge says.
        bias: what the two orders say of the position.
    """
    said = _answers(results)
    merged = _both_orders(found, said)
    asked = len(said) + failed
    return {
        **_with_people(found, merged),
        "correlation": _correlation(found, results),
        **_position(bias),
        **_length(found, merged),
        "repeatability": _repeatability(found, said),
        "distractor": _distractor(found, said),
        "validity": _share(len(said), asked, "nothing was asked", valid=len(said), asked=asked),
        "cost": _cost(costs),
    }


def labelled_answers(found: CheckPairs, results: pl.DataFrame | None = None) -> dict[str, tuple[str, str | None]]:
    """By a digest of each labelled pair, whom people prefer and whom the judge: ``1``, ``2``, ``tie`` or ``flip``.

    Which text of a pair is the first follows from the digests alone, so that another check of the same labels can be
    compared. Before the judge was asked, there are no results.
    """
    merged = _both_orders(found, {} if results is None else _answers(results))
    labelled = found.pairs.select("ID1", "text1", "ID2", "text2", "said").rows()
    answers: dict[str, tuple[str, str | None]] = {}
    for (id1, text1, id2, text2, label), winner in zip(labelled, merged, strict=True):
        if label is None:
            continue
        people = _NAMES[label]
        answer = winner
        digests = [text_hash(f"{id1}\n{text1}")[:16], text_hash(f"{id2}\n{text2}")[:16]]
        if digests != sorted(digests):
            people = _TURNED.get(people, people)
            answer = _TURNED.get(str(answer), answer)
        answers["".join(sorted(digests))] = people, answer
    return answers


_Said = tuple[Outcome, int | None]
"""The outcome of a question, and the place of the winner."""


def _answers(results: pl.DataFrame) -> dict[str, _Said]:
    places = {"SAMPLE_1": 1, "SAMPLE_2": 2}
    columns = results.select("custom_id", "outcome", "better_sample").iter_rows()
    return {name: (Outcome(kind), places.get(winner)) for name, kind, winner in columns}


def _both_orders(found: CheckPairs, said: Mapping[str, _Said]) -> list[str | None]:
    orders = zip(found.forward, found.backward, strict=True)
    return [_merged(said.get(forward), said.get(backward)) for forward, backward in orders]


def _merged(forward: _Said | None, backward: _Said | None) -> str | None:
    """What both orders come to: ``1``, ``2``, ``tie``, ``flip``; None where an order has no answer."""
    if forward is None or backward is None:
        return None
    turned = None if backward[1] is None else 3 - backward[1]
    kind, winner = merge_orders([forward, (backward[0], turned)])
    return str(winner) if kind is Outcome.WIN else str(kind)


def _share(part: int, n: int, why: str, **counts: int) -> Measure:
    if not n:
        return Measure.missing(why, **counts)
    return Measure(n, part / n, *wilson(part, n, LEVEL), "wilson", counts)


def _difference(more: int, less: int, n: int, why: str, **counts: int) -> Measure:
    """A share minus another share of the same pairs, by the score interval for paired shares."""
    if not n:
        return Measure.missing(why, **counts)
    value = (more - less) / n
    ends = score_interval((1 + value) / 2, (n - more - less) / n, n, LEVEL)
    return Measure(n, value, 2 * ends[0] - 1, 2 * ends[1] - 1, "score", counts)


def _with_people(found: CheckPairs, merged: Sequence[str | None]) -> dict[str, Measure]:
    labelled = [
        (_NAMES[said], choice, variant)
        for (said, variant), choice in zip(found.pairs.select("said", "first_variant").rows(), merged, strict=True)
        if said is not None
    ]
    if not labelled:
        return dict.fromkeys(("agreement", "kappa", "net_agreement"), Measure.missing(_NO_LABELS))
    answered = [(person, choice, variant) for person, choice, variant in labelled if choice is not None]
    decided = [(person, choice) for person, choice, _ in answered if person != "tie"]
    agreed = sum(person == choice for person, choice in decided)
    reversed_ = sum(choice in {"1", "2"} and person != choice for person, choice in decided)
    counts = {
        "labelled": len(labelled),
        "answered": len(answered),
        "agreed": agreed,
        "reversed": reversed_,
        "undecided": len(decided) - agreed - reversed_,
        "people_tied": len(answered) - len(decided),
    }
    nothing = "no pair was decided by people and answered by the judge"
    return {
        "agreement": _share(agreed, agreed + reversed_, nothing, **counts),
        "kappa": _kappa([row for row in answered if row[1] != "flip"]),
        "net_agreement": _difference(agreed, reversed_, len(decided), nothing, **counts),
    }


def _kappa(answered: Sequence[tuple[str, str, str | None]]) -> Measure:
    """By variant where there are variants, else by the place in a random order."""
    if not answered:
        return Measure.missing("no labelled pair was answered with a winner or a tie")
    people, judge = [], []
    for person, choice, first in answered:
        of_variants = _TURNED if first == "b" else {}
        people.append(of_variants.get(person, person))
        judge.append(of_variants.get(choice, choice))
    found = agreement({"judge": judge, "people": people}, unit="pair", level=LEVEL, seed=1)
    row = found.table.row(by_predicate=_KAPPA, named=True)
    if row["estimate"] is None:
        return Measure.missing("kappa is not defined where one of them always says the same")
    return Measure(len(answered), float(row["estimate"]), _finite(row["lower"]), _finite(row["upper"]), row["interval"])


def _correlation(found: CheckPairs, results: pl.DataFrame) -> Measure:
    """The correlation of the judge's scale of the texts with people's, as :func:`pairscale.trust` has it."""
    if found.people is None:
        return Measure.missing(_NO_LABELS if found.kind == "texts" else "answers to tasks have no scale in common")
    answers = results.filter(
        pl.col("custom_id").is_in([*found.forward, *found.backward]), pl.col("better_id").is_not_null()
    )
    texts = [*answers["ID1"], *answers["ID2"]]
    people = found.people.filter(pl.all_horizontal(pl.col("ID1", "ID2").is_in(texts)))
    if people.height < FEWEST_LABELS:
        return Measure.missing(f"it takes {FEWEST_LABELS} answers of people to pairs that the judge answered")
    try:
        validity = trust_of_run(Comparisons(answers, ""), Comparisons(people, "")).validity
    except InputError as error:
        return Measure.missing(str(error))
    return Measure(validity.n_labels, validity.estimate, validity.lower, validity.upper, "posterior")


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _position(bias: PositionalBias | None) -> dict[str, Measure]:
    why = "no pair has a winner in both orders"
    if bias is None:
        return dict.fromkeys(("consistency", "first_place", "position_effect"), Measure.missing(why))
    row = bias.summary.row(0, named=True)
    n = int(row["n_pairs"])
    same = round(row["prop_consistent"] * n)
    in_logits = Measure.missing(str(bias.why))
    if bias.effect is not None:
        in_logits = Measure(n, bias.effect.b, bias.effect.lower, bias.effect.upper, "robust")
    return {
        "consistency": _share(same, n, why, consistent=same, pairs=n),
        "first_place": _share(round(row["prop_pos1"] * 2 * n), 2 * n, why),
        "position_effect": in_logits,
    }


def _length(found: CheckPairs, merged: Sequence[str | None]) -> dict[str, Measure]:
    none = "no pair of unequal length was decided"
    pairs = found.pairs.select("text1", "text2", "said").rows()
    judge: list[bool] = []  # whether it chose the longer text
    both: list[tuple[bool, bool]] = []  # whether it did, and whether people did
    for (first, second, said), choice in zip(pairs, merged, strict=True):
        if len(first) == len(second) or choice not in {"1", "2"}:
            continue
        first_is_longer = len(first) > len(second)
        judge.append((choice == "1") == first_is_longer)
        if said in {0.0, 1.0}:
            both.append((judge[-1], (said == 1.0) == first_is_longer))
    longer = _share(sum(judge), len(judge), none)
    if not found.pairs["said"].count():
        return {"longer": longer, "longer_excess": Measure.missing(_NO_LABELS)}
    counts = {"judge": sum(chosen for chosen, _ in both), "people": sum(chosen for _, chosen in both)}
    more = both.count((True, False))
    less = both.count((False, True))
    return {"longer": longer, "longer_excess": _difference(more, less, len(both), f"{none} by both", **counts)}


def _repeatability(found: CheckPairs, said: Mapping[str, _Said]) -> Measure:
    if not found.again:
        return Measure.missing(_NO_LABELS)
    both = [(said.get(found.forward[at]), said.get(name)) for at, name in found.again.items()]
    known = [(one, two) for one, two in both if one is not None and two is not None]
    same = sum(one == two for one, two in known)
    return _share(same, len(known), "no repeated question was answered twice", same=same, asked=len(both))


def _distractor(found: CheckPairs, said: Mapping[str, _Said]) -> Measure:
    if not found.padded:
        return Measure.missing(_NO_LABELS)
    merged = [_merged(said.get(one), said.get(two)) for one, two in found.padded]
    known = [one for one in merged if one is not None]
    counts = {"padded": known.count("2"), "as_it_was": known.count("1")}
    counts["undecided"] = len(known) - sum(counts.values())
    return _share(counts["padded"], len(known), "no such question was answered in both orders", **counts)


def _cost(costs: Sequence[float]) -> Measure:
    if not costs:
        return Measure.missing("the judge does not say what its answers cost")
    values = np.asarray(costs, dtype=np.float64)
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return Measure(n, mean)
    half = student_quantile(LEVEL, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return Measure(n, mean, max(0.0, mean - half), mean + half, "t")
