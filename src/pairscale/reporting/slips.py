"""What is printed of a ranking or of grades: a slip for each text, and the class on one sheet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pairscale.core.errors import InputError
from pairscale.core.notices import plural

if TYPE_CHECKING:
    from pairscale.reporting.page import Report
    from pairscale.reporting.picture import Content

__all__ = ["as_short", "as_slips"]

_WORDS = ((0.95, "almost certainly"), (0.8, "very probably"), (0.6, "probably"), (0.0, "perhaps"))


def as_slips(report: Report, *, private: bool) -> Report:
    """A slip per text: name, level with its probability in words, score, and the texts next to it.

    Args:
        report: of a ranking or of grades.
        private: whether nothing of other texts is on a slip.

    Raises:
        InputError: If the report is of something else, or its texts have no common order.
    """
    rows = _rows(report)
    slips = []
    for place, row in enumerate(rows):
        slip = _figures(row)
        slip["above"] = _title(rows[place - 1]) if place and not private else None
        slip["below"] = _title(rows[place + 1]) if place + 1 < len(rows) and not private else None
        slips.append(slip)
    content = {"digits": 0, **report.content, "slips": slips, "n": len(rows)}
    return replace(report, template="slips.html", title="Slips", content=content, packed=None)


def as_short(report: Report) -> Report:
    """The class on one sheet: the ranking, how sure it is, and who judged.

    Raises:
        InputError: As :func:`as_slips`.
    """
    rows = [_figures(row) for row in _rows(report)]
    sentences = report.content.get("sentences")
    if sentences is None:
        sentences = [f"{plural(len(rows), 'text')} in {plural(report.content['comparisons'], 'comparison')}."]
        if report.content["reliability"] is not None:
            agrees = report.content["last"].get("rank_correlation")
            order = "" if agrees is None else f" (rank correlation to expect with the judge's true order {agrees:.2f})"
            sentences.append(f"The reliability of the scale is {report.content['reliability']:.2f}{order}.")
    has = {name: any(row[name] is not None for row in rows) for name in ("name", "class", "mark", "level")}
    has["interval"] = "score_lower" in rows[0]
    content = {"digits": 0, **report.content, "rows": rows, "has": has, "sentences": sentences}
    return replace(report, template="short.html", content=content, packed=None)


def _rows(report: Report) -> list[Content]:
    """The texts, best first."""
    if report.template not in {"ranking.html", "grades.html"} or "group" in report.table.columns:
        raise InputError("slips and the short sheet are of a ranking on one scale, or of grades; this is neither")
    return report.table.to_dicts()


def _figures(row: Content) -> Content:
    """What is said of one text."""
    figures = {
        name: row.get(name) for name in ("ID", "name", "class", "rank", "level", "mark", "mark_lower", "mark_upper")
    }
    figures |= {name: round(row[name]) for name in ("score", "score_lower", "score_upper") if name in row}
    figures["p_level"] = None if row.get("level") is None else row[f"p_{row['level']}"]
    if figures["p_level"] is not None:
        figures["sure"] = next(words for least, words in _WORDS if figures["p_level"] >= least)
    return figures


def _title(row: Content) -> str:
    """What another text is called on a slip; never by the name of its pupil."""
    return str(row.get("title") or row["ID"])
