"""``pairscale grade``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, other_file, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError
from pairscale.core.options import FilePath

if TYPE_CHECKING:
    from pairscale.grading.verb import Grades

_MOST_SHOWN = 5


@from_verb("grading.verb.grade", "RUN")
def command(
    arguments: Arguments,
    emit: Output,
    quota: str | None = None,
    boundary: str | None = None,
    out: FilePath | None = None,
    slips: bool = False,
    private: bool = False,
    short: bool = False,
) -> None:
    """Marks and levels from a ranking, by known texts, quotas or boundary texts.

    Known texts carry their scale of marks to all others. Every mark has an interval and every level its probability,
    which allow for what is uncertain about the known marks, the judge's scale and the map between them. A known text
    that has drifted is named, and so are the texts to look at again first.

    Args:
        known: A table ID,mark of texts of the run, also with sd, the standard error of a mark; or last year's run file.
        levels: A table level,from_mark: where levels begin, from the best to the lowest.
        quota: The share of the texts in each level, best first, such as A=15%,B=35%,C=50%.
        boundary: The lowest text of each level, best first, such as A=S017,B=S033.
        out: Write the texts as a table (csv and so on), as a workbook with a sheet for the class and one for the method
            (xlsx), or everything as a page (html).
        slips: With --out PAGE.html: a slip for each text, with its level and how sure that is.
        private: With --slips: nothing of other texts is on a slip.
        short: With --out PAGE.html: the class on one printed sheet.

    Examples:
        pairscale grade essays.db --known marks.csv --levels levels.csv
        pairscale grade essays.db --known marks.csv --out grades.xlsx
        pairscale grade essays.db --quota A=15%,B=35%,C=50%
        pairscale grade essays.db --boundary A=S017,B=S033
        pairscale grade essays.db --known last-year.db --levels levels.csv
    """
    arguments["quota"] = None if quota is None else {name: _share(name, text) for name, text in _pairs(quota, "quota")}
    arguments["boundary"] = None if boundary is None else dict(_pairs(boundary, "boundary"))
    page = other_file(emit, out, ".html", ".htm", ".xlsx")
    if page is None and (slips or private or short):
        raise InputError("slips and the short sheet are pages: give `out=PAGE.html` as well")
    result = ps.grade(**arguments)
    if page is not None:
        say(f"written: {result.report(page, slips=slips, private=private, short=short)}")
    document = fields(result, "items levels summary known again judge notices")
    emit(document, result.items, lambda: _show(result))


def _show(result: Grades) -> None:
    echo(str(result))
    echo()
    named = [name for name in ("name", "class") if name in result.items.columns]
    figures = ("mark", "mark_lower", "mark_upper", "level", "misgrade")
    shown = [name for name in figures if result.items[name].null_count() < result.items.height]
    show_table(result.items.select("rank", "ID", *named, pl.col("score").round(0).cast(pl.Int64), *shown), digits=2)
    if result.levels.height:
        echo()
        show_table(result.levels, digits=2)


def _pairs(text: str, argument: str) -> list[tuple[str, str]]:
    """``A=1,B=2`` in its parts."""
    pairs = []
    for part in text.split(","):
        name, _, value = part.partition("=")
        if not (name.strip() and value.strip()):
            raise InputError(f"{argument} is written LEVEL=VALUE,LEVEL=VALUE, and {part.strip()!r} is not", argument)
        pairs.append((name.strip(), value.strip()))
    return pairs


def _share(name: str, text: str) -> float:
    """A share, also in per cent."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"quota of {name} must be a share such as 15% or 0.15, not {text!r}", "quota") from None
