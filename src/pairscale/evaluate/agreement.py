"""How far two comparators of a run agree on the variant that is better, such as a judge and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.checks.agreement import LEAST_UNITS, agreement, two_raters
from pairscale.checks.effect import wilson
from pairscale.core.display import ReprMixin
from pairscale.core.notices import plural, without_notices
from pairscale.evaluate.inference.cases import score_of

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult

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
    rate_ci: tuple[float, float] | None = None
    graded: tuple[str, ...] = ()
    correlation: float | None = None
    confusion: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rate is None:
            return "no case that both answered"
        kappa = "undefined" if self.cohen_kappa is None else f"{self.cohen_kappa:.2f}"
        return f"agree on {self.rate * 100:.0f} % of {plural(self.n, 'case')}, kappa {kappa}"


def agreement_of(run: PairwiseRunResult, x: str, y: str) -> PairwiseAgreement:
    """How far two comparators of a run agree; see :meth:`PairwiseRunResult.agreement`."""
    cases = {key: {(case.task_id, case.repeat): case for case in run.of(key)} for key in (x, y)}
    shared = [(cases[x][name], cases[y][name]) for name in cases[x] if name in cases[y]]
    asked = [(one, two) for one, two in shared if run.failures == "shown" or one.failed is None]
    both = [(one, two) for one, two in asked if one.winner is not None and two.winner is not None]
    graded = tuple(key for key in (x, y) if any(case.preference is not None for case in cases[key].values()))
    found = PairwiseAgreement(
        left_out=len(shared) - len(both), graded=graded, correlation=_correlation(asked) if graded else None
    )
    if not both:
        return found
    winners = [(str(one.winner), str(two.winner)) for one, two in both]
    with without_notices():  # the result carries them
        measured = agreement(two_raters(*(list(side) for side in zip(*winners, strict=True))), seed=1)
    kappa = measured.table.filter(pl.col("statistic") == "cohen_kappa").row(0, named=True)
    notices = [one for one in measured.notices if one.startswith("few ")]
    if len(both) < LEAST_UNITS:
        notices.insert(0, f"no interval of kappa: {len(both)} cases are too few, it takes {LEAST_UNITS}")
    if graded:
        notices.append("graded answers are compared by their hard verdicts: B above ½, A below")
    differing = tuple(
        (one.task_id, *words) for (one, _), words in zip(both, winners, strict=True) if words[0] != words[1]
    )
    agreed = len(both) - len(differing)
    return replace(
        found,
        rate=agreed / len(both),
        cohen_kappa=kappa["estimate"],
        n=len(both),
        disagreements=differing,
        ci=None if kappa["lower"] is None else (kappa["lower"], kappa["upper"]),
        rate_ci=wilson(agreed, len(both), _LEVEL),  # type: ignore[arg-type]
        confusion=tuple({"x": one, "y": two, "n": winners.count((one, two))} for one in _CHOICES for two in _CHOICES),
        notices=tuple(notices),
    )


def _correlation(shared: Sequence[tuple[PairwiseCase, PairwiseCase]]) -> float | None:
    scores = [[score_of(str(case.outcome), case.winner, case.preference) for case in pair] for pair in shared]
    table = pl.DataFrame(scores, schema={"x": pl.Float64(), "y": pl.Float64()}, orient="row").drop_nulls()
    value = table.select(pl.corr("x", "y", method="spearman")).item() if table.height > 2 else None
    return None if value is None or value != value else float(value)  # noqa: PLR0124 - not a number where one does not vary


def judge_and_people(run: PairwiseRunResult) -> list[tuple[str, str]]:
    """The comparators to hold against each other: each judge with each comparator whose answers are people's."""
    people = {case.key for case in run.cases if "labels" in case.detail or "first_variant" in case.detail}
    return [(judge, key) for judge in run.keys if judge not in people for key in run.keys if key in people]
