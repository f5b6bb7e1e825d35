"""How far two comparators agree, such as a judge and people: by variant, or by the side that an answer was shown on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from pairscale.checks.agreement import LEAST_UNITS, differing_kappas, measure_agreement, two_raters
from pairscale.checks.effect import wilson
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.options import require_choice
from pairscale.evaluate.inference.cases import score_of

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult

__all__ = ["By", "PairwiseAgreement", "agreement_of", "judge_and_people"]

By: TypeAlias = Literal["variant", "position"]
"""What kappa compares: the variant that each preferred, or the side on which it was shown."""

_LEVEL = 0.95
_CHOICES = ("b", "tie", "a")


@dataclass(frozen=True, slots=True, repr=False)
class PairwiseAgreement(ReprMixin):
    """How far two comparators agree, over the cases to which both gave a winner or a tie.

    Attributes:
        rate: the share of equal answers; None when there is no such case.
        cohen_kappa: the same beyond chance; None where it is not defined.
        n: such cases.
        disagreements: ``(task_id, winner_x, winner_y)``.
        ci: of kappa, 95 %; None where there is none.
        left_out: cases that one of them answered with a flip, an abstention or an error, or that none was asked about,
            because a variant failed.
        by: what kappa compares: ``variant`` (who preferred which variant) or ``position`` (which side they chose).
        kappas: kappa by ``variant`` and by ``position``; None where the side is not known, or kappa is not defined.
        rate_ci: of the rate, 95 %, Wilson's.
        graded: the keys whose answers are graded. Their hard verdicts are compared: B above ½, A below, a tie at ½.
        correlation: Spearman's, of the preferences of both over all answered cases (a hard answer counts as 1, ½ or 0),
            where one of them is graded; None otherwise, or where one of them does not vary.
        confusion: how often which two answers met: ``x y n``, for every two of ``b``, ``tie`` and ``a``.
        notices: what to be careful with.
    """

    rate: float | None = None
    cohen_kappa: float | None = None
    n: int = 0
    disagreements: tuple[tuple[str, str, str], ...] = ()
    ci: tuple[float, float] | None = None
    left_out: int = 0
    by: str = "variant"
    kappas: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    rate_ci: tuple[float, float] | None = None
    graded: tuple[str, ...] = ()
    correlation: float | None = None
    confusion: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rate is None:
            return "no case that both answered"
        kappa = "undefined" if self.cohen_kappa is None else f"{self.cohen_kappa:.2f}"
        by = f" by {self.by}" if self.by != "variant" or self.kappas.get("position") is not None else ""
        return f"agree on {self.rate * 100:.0f} % of {self.n:,} case{'s' * (self.n != 1)}, kappa {kappa}{by}"


def agreement_of(run: PairwiseRunResult, x: str, y: str, by: By = "variant") -> PairwiseAgreement:
    """How far two comparators of a run agree; see :meth:`PairwiseRunResult.agreement`."""
    require_choice(by, "by", ("variant", "position"))
    cases = {key: {(case.task_id, case.repeat): case for case in run.of(key)} for key in (x, y)}
    shared = [(cases[x][name], cases[y][name]) for name in cases[x] if name in cases[y]]
    asked = [(one, two) for one, two in shared if run.failures == "shown" or one.failed is None]
    both = [(one, two) for one, two in asked if one.winner is not None and two.winner is not None]
    graded = tuple(key for key in (x, y) if any(case.preference is not None for case in cases[key].values()))
    found = PairwiseAgreement(
        left_out=len(shared) - len(both), by=by, graded=graded, correlation=_correlation(asked) if graded else None
    )
    if not both:
        return found
    winners = [(str(one.winner), str(two.winner)) for one, two in both]
    sides = [_sides(pair) for pair in both]
    known_sides = [side for side in sides if side is not None]
    kappas = {"variant": _kappa(winners)}
    if len(known_sides) == len(both):
        kappas["position"] = _kappa(known_sides)
    elif by == "position":
        raise InputError(
            "kappa by position needs to know which variant stood first in every case, and these comparators do not "
            "say; people's labels and judges that are asked in one order do"
        )
    estimates = {name: kappas[name].estimate if name in kappas else None for name in ("variant", "position")}
    differing = tuple(
        (one.task_id, *words) for (one, _), words in zip(both, winners, strict=True) if len(set(words)) > 1
    )
    lower, upper = wilson(len(both) - len(differing), len(both), _LEVEL)
    notices = [*kappas[by].notices, *differing_kappas(estimates)]
    if graded:
        who = " and ".join(graded)
        notices.append(f"graded answers ({who}) are compared by their hard verdicts: B above ½, A below")
    return replace(
        found,
        rate=(len(both) - len(differing)) / len(both),
        cohen_kappa=kappas[by].estimate,
        n=len(both),
        disagreements=differing,
        ci=kappas[by].ci,
        kappas=estimates,
        rate_ci=None if lower is None or upper is None else (lower, upper),
        confusion=tuple({"x": one, "y": two, "n": winners.count((one, two))} for one in _CHOICES for two in _CHOICES),
        notices=tuple(notices),
    )


def _first_variant(case: PairwiseCase) -> str | None:
    """The variant that stood first when a case was judged; None when both orders were asked, or it is not known."""
    detail = case.detail
    known = {detail.get("first_variant"), *(label.get("first_variant") for label in detail.get("labels", ()))}
    orders = detail.get("orders", ())
    if len(orders) == 1:
        known.add(orders[0]["first"])
    known &= {"a", "b"}
    return known.pop() if len(known) == 1 else None


def _sides(pair: tuple[PairwiseCase, PairwiseCase]) -> tuple[str, str] | None:
    """The sides that two chose: as each was shown the answers or, where only one was shown a side, as that one was."""
    firsts = [_first_variant(case) for case in pair]
    shown = next((first for first in firsts if first is not None), None)
    if shown is None:
        return None
    one, two = (_side(case, first or shown) for case, first in zip(pair, firsts, strict=True))
    return one, two


def _side(case: PairwiseCase, first: str) -> str:
    if case.winner == "tie":
        return "tie"
    return "1" if case.winner == first else "2"


@dataclass(frozen=True, slots=True)
class _Kappa:
    estimate: float | None
    ci: tuple[float, float] | None
    notices: tuple[str, ...]


def _kappa(answers: Sequence[tuple[str, str]]) -> _Kappa:
    found = measure_agreement(two_raters([x for x, _ in answers], [y for _, y in answers]), seed=1)
    row = found.table.filter(pl.col("statistic") == "cohen_kappa").row(0, named=True)
    notices = [one for one in found.notices if one.startswith("few ")]
    if len(answers) < LEAST_UNITS:
        notices.insert(0, f"no interval of kappa: {len(answers)} cases are too few, it takes {LEAST_UNITS}")
    return _Kappa(row["estimate"], None if row["lower"] is None else (row["lower"], row["upper"]), tuple(notices))


def _correlation(shared: Sequence[tuple[PairwiseCase, PairwiseCase]]) -> float | None:
    scores = [[score_of(str(case.outcome), case.winner, case.preference) for case in pair] for pair in shared]
    table = pl.DataFrame(scores, schema={"x": pl.Float64(), "y": pl.Float64()}, orient="row").drop_nulls()
    if table.height < 3 or any(table[name].n_unique() < 2 for name in ("x", "y")):
        return None
    return float(table.select(pl.corr("x", "y", method="spearman")).item())


def judge_and_people(run: PairwiseRunResult) -> list[tuple[str, str]]:
    """The comparators to hold against each other: each judge with each comparator whose answers are people's."""
    people = {case.key for case in run.cases if "labels" in case.detail or "first_variant" in case.detail}
    return [(judge, key) for judge in run.keys if judge not in people for key in run.keys if key in people]
