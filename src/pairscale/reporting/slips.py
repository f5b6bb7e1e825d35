"""What is printed of a ranking or of grades: a slip for each text, and the class on one sheet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES

if TYPE_CHECKING:
    from pairscale.core.options import FilePath
    from pairscale.reporting.page import Report

_UNKNOWN = dict.fromkeys(("name", "class", "mark", "level"))


def as_printed(report: Report, out: FilePath | None, *, slips: bool, private: bool, short: bool) -> Report:
    """A report, or what is to be printed of it in place of the page.

    Args:
        report: of a ranking or of grades, where anything is to be printed.
        out: the file to write.
        slips: a slip per text: name, level with its probability in words, score, and the texts next to it.
        private: whether nothing of other texts is on a slip.
        short: the class on one sheet: the ranking, how sure it is, and who judged.

    Raises:
        InputError: If the options do not go together or with a table, or the texts have no common order.
    """
    if private and not slips:
        raise InputError("`private=` belongs to `slips=`")
    if slips and short:
        raise InputError("`slips=` and `short=` are two pages; give one of them")
    if out is not None and Path(out).suffix.lower() in TABLE_SUFFIXES:
        raise InputError(f"slips and the short sheet are pages, and {out} is a table")
    if report.template not in {"ranking.html", "grades.html"} or "group" in report.table.columns:
        raise InputError("slips and the short sheet are of a ranking on one scale, or of grades; this is neither")
    rows = [_UNKNOWN | row for row in report.table.to_dicts()]
    content = {"digits": 0, **report.content, "rows": rows, "n": len(rows), "is_private": private}
    if short:
        return replace(report, template="short.html", content=content, packed=None)
    return replace(report, template="slips.html", title="Slips", content=content, packed=None)
