"""How far two comparators agree, such as a judge and people: by variant, or by the side that an answer was shown on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

__all__ = ["By", "PairwiseAgreement", "agreement_of", "first_variant_of", "judge_and_people"]

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

    rate: float | None
    cohen_kappa: float | None
    n: int
    disagreements: tuple[tuple[str, str, str], ...]
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
    left_out = len(shared) - len(both)
    graded = tuple(key for key in (x, y) if any(case.preference is not None for case in cases[key].values()))
    correlation = _correlation(asked) if graded else None
    if by == "position" and both and not all(map(_has_side, both)):
        raise InputError(
            "kappa by position needs to know which variant stood first in every case, and these comparators do not "
            "say; people's labels and judges that are asked in one order do"
        )
    if not both:
        return PairwiseAgreement(None, None, 0, (), None, left_out, by, graded=graded, correlation=correlation)
    words = [(str(one.winner), str(two.winner)) for one, two in both]
    differing = tuple((one.task_id, *said) for (one, _), said in zip(both, words, strict=True) if said[0] != said[1])
    said = {"variant": words, "position": _sides(both) if all(map(_has_side, both)) else None}
    found = {name: None if pairs is None else _kappa(pairs) for name, pairs in said.items()}
    kappas = {name: None if one is None else one[0] for name, one in found.items()}
    chosen = found[by]
    kappa, ci, notices = (None, None, ()) if chosen is None else chosen
    return PairwiseAgreement(
        rate=(len(both) - len(differing)) / len(both),
        cohen_kappa=kappa,
        n=len(both),
        disagreements=differing,
        ci=ci,
        left_out=left_out,
        by=by,
        kappas=kappas,
        rate_ci=_rate_ci(len(both) - len(differing), len(both)),
        graded=graded,
        correlation=correlation,
        confusion=tuple({"x": one, "y": two, "n": words.count((one, two))} for one in _CHOICES for two in _CHOICES),
        notices=(*notices, *_said_of(kappas, graded)),
    )


def _rate_ci(agreed: int, n: int) -> tuple[float, float] | None:
    lower, upper = wilson(agreed, n, _LEVEL)
    return None if lower is None or upper is None else (lower, upper)


def _said_of(kappas: Mapping[str, float | None], graded: Sequence[str]) -> list[str]:
    notices = differing_kappas(kappas)
    if graded:
        who = " and ".join(graded)
        notices.append(f"graded answers ({who}) are compared by their hard verdicts: B above ½, A below")
    return notices


def first_variant_of(case: PairwiseCase) -> str | None:
    """The variant that stood first when a case was judged; None when both orders were asked, or it is not known."""
    detail = case.detail
    orders = detail.get("orders", ())
    known = [detail.get("first_variant"), *(one.get("first_variant") for one in detail.get("labels", ()))]
    known += [orders[0]["first"]] if len(orders) == 1 else []
    found = {one for one in known if one in {"a", "b"}}
    return str(found.pop()) if len(found) == 1 else None


def _has_side(two: tuple[PairwiseCase, PairwiseCase]) -> bool:
    return any(first_variant_of(case) is not None for case in two)


def _sides(both: Sequence[tuple[PairwiseCase, PairwiseCase]]) -> list[tuple[str, str]]:
    """The sides that two chose: as each was shown the answers or, where only one was shown a side, as that one was."""
    found = []
    for two in both:
        firsts = [first_variant_of(case) for case in two]
        shown = [first or next(one for one in firsts if one) for first in firsts]
        found.append(tuple(_side(case, first) for case, first in zip(two, shown, strict=True)))
    return [(one, two) for one, two in found]


def _side(case: PairwiseCase, first: str) -> str:
    return "tie" if case.winner == "tie" else "1" if case.winner == first else "2"


def _kappa(said: Sequence[tuple[str, str]]) -> tuple[float | None, tuple[float, float] | None, tuple[str, ...]]:
    found = measure_agreement(two_raters([x for x, _ in said], [y for _, y in said]), seed=1)
    row = found.table.filter(pl.col("statistic") == "cohen_kappa").row(0, named=True)
    ci = None if row["lower"] is None else (row["lower"], row["upper"])
    few = len(said) < LEAST_UNITS
    notices = [f"no interval of kappa: {len(said)} cases are too few, it takes {LEAST_UNITS}"] if few else []
    return row["estimate"], ci, (*notices, *(one for one in found.notices if one.startswith("few ")))


def _correlation(shared: Sequence[tuple[PairwiseCase, PairwiseCase]]) -> float | None:
    scores = [[score_of(str(case.outcome), case.winner, case.preference) for case in two] for two in shared]
    known = [(x, y) for x, y in scores if x is not None and y is not None]
    table = pl.DataFrame(known, schema=["x", "y"], orient="row")
    if table.height < 3 or any(table[name].n_unique() < 2 for name in ("x", "y")):
        return None
    return float(table.select(pl.corr("x", "y", method="spearman")).item())


def judge_and_people(run: PairwiseRunResult) -> list[tuple[str, str]]:
    """The comparators to hold against each other: each judge with each comparator whose answers are people's."""
    people = [
        key
        for key in run.keys
        if any("labels" in case.detail or "first_variant" in case.detail for case in run.of(key))
    ]
    return [(judge, one) for judge in run.keys if judge not in people for one in people]
