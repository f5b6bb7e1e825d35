"""The part of a report that holds a judge's probabilities against people, or against its own reversed answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.reporting._shell import Part, table_of
from pairscale.reporting.picture import Diagram, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.checks.calibration import Calibration

__all__ = ["calibration_parts"]

_NAMES = {"people": "Against people", "reversed": "Against its own answers in the other order"}
_OBSERVED = {
    "people": "share in which people choose the first text",
    "reversed": "share in which the reversed answer chooses that text",
}
_TO_READ = (
    "On the dashed line, probabilities are right. A mark stands for the answers of one bin, by what the judge states "
    "for the text shown first; it is larger where there are more, and has an interval. A slope below 1 is a judge that "
    "is more certain than it should be."
)
_OWN = (
    " Agreement with itself shows how consistent a judge is, not whether it is right. A judge that gives the same pair "
    "the same answer every time, as models do at temperature 0, agrees with itself however wrong its probabilities "
    "are: for such a judge this diagram says little."
)


def calibration_parts(found: Sequence[tuple[str, Calibration]]) -> list[Part]:
    """A section each.

    Args:
        found: who states the probabilities (empty where there is only one), and how right they are.
    """
    return [_part(who, one) for who, one in found]


def _part(who: str, found: Calibration) -> Part:
    name = _NAMES[found.against]
    label = f"Stated probabilities {name[0].lower()}{name[1:]}; the table holds the same figures"
    columns = [("stated", False), ("answers", True), ("mean", True), ("observed", True), ("interval", False)]
    rows = [
        (
            f"{percent(row['from'])} to {percent(row['to'])}",
            f"{row['n']:,}",
            percent(row["stated"]),
            percent(row["observed"]),
            f"{percent(row['lower'])} to {percent(row['upper'])}",
        )
        for row in found.bins.iter_rows(named=True)
    ]
    verdict = found.verdict
    return {
        "name": f"{who}: {name[0].lower()}{name[1:]}" if who else name,
        "lead": f"{verdict[0].upper()}{verdict[1:]}.",
        "chart": Diagram(found.bins.to_dicts(), label, "stated for the text shown first", _OBSERVED[found.against]),
        "note": _TO_READ + (_OWN if found.against == "reversed" else ""),
        "figures": _figures(found),
        **table_of(columns, rows),
    }


def _figures(found: Calibration) -> list[tuple[str, str]]:
    level = f"{100 * found.level:g} % interval"
    chance = f"with as many answers, right probabilities would have {found.ece_by_chance:.3f} by chance"
    said = [
        ("Brier score", f"{found.brier:.3f}; 0 is best, 0.25 that of a judge that always says 50 %"),
        ("Expected calibration error", f"{found.ece:.3f} over {found.bins.height} bins; {chance}"),
    ]
    for name, value, low, high, right in (
        ("Slope", found.slope, found.slope_lower, found.slope_upper, "1"),
        ("Intercept", found.intercept, found.intercept_lower, found.intercept_upper, "0"),
    ):
        if value is not None:
            said.append((name, f"{number(value)} ({level} {number(low)} to {number(high)}); {right} is right"))
    return said if found.why is None else [*said, ("Slope and intercept", f"not estimated: {found.why}")]
