"""The report of marks and levels: the class first, then what it rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pairscale.reporting.page import Report, other_names, renamed
from pairscale.reporting.picture import Marks, against_judge, number

if TYPE_CHECKING:
    from pairscale.grading.verb import Grades
    from pairscale.reporting.picture import Picture

_FINE_SCALE = 20  # marks that spread less have decimals
_MOST_TO_LOOK_AT = 10
_COLUMNS = "rank ID name class score mark mark_lower mark_upper level misgrade"


def grades_report(grades: Grades, *, pseudonyms: bool = False) -> Report:
    """Put marks and levels into figures and a picture.

    Args:
        grades: marks and levels.
        pseudonyms: whether texts have other names, and the names of pupils are left out.
    """
    if pseudonyms:
        grades = _disguised(grades)
    items = grades.items
    names = [name for name in _COLUMNS.split() if name in items.columns and items[name].null_count() < items.height]
    digits = _mark_digits(items)
    marks = pl.col("mark", "mark_lower", "mark_upper").round(digits)
    shown = items.with_columns(pl.col("score").round().cast(pl.Int64), marks if digits else marks.cast(pl.Int64))
    content = {
        "sentences": str(grades).splitlines(),
        "summary": grades.summary.row(0, named=True),
        "n": items.height,
        "digits": digits,
        "names": names,
        "rows": shown.select(names).rows(),
        "levels": grades.levels.to_dicts(),
        "known": grades.known.to_dicts(),
        "again": grades.again.head(_MOST_TO_LOOK_AT).to_dicts(),
        "n_again": grades.again.height,
        "chart": _picture(grades) if grades.known.height else None,
    }
    judges = [] if grades.judge is None else grades.judge.split(", ")
    return Report("grades.html", "Marks and levels", items, content, {}, judges, grades.notices)


def _mark_digits(items: pl.DataFrame) -> int:
    """How many decimals of a mark are worth showing: none of 100 marks, one of six."""
    marks = items["mark"].drop_nulls().to_list()
    return 1 if marks and max(marks) - min(marks) < _FINE_SCALE else 0


def _picture(grades: Grades) -> Picture:
    """Marks against scores, the known ones as they are known."""
    items = grades.items.select("ID", x="theta", y="mark", y_low="mark_lower", y_high="mark_upper")
    texts = []
    for row in items.iter_rows(named=True):
        low, mark, high = (number(row[name], 1) for name in ("y_low", "y", "y_high"))
        texts.append({**row, "r": 3.0, "tip": f"{row['ID']}: mark {mark} ({low} to {high})"})
    known = [
        {**row, "r": 4.5, "tip": f"{row['ID']}: known as {number(row['y'], 1)}"}
        for row in grades.known.select("ID", y="known").join(items.select("ID", "x"), on="ID").iter_rows(named=True)
    ]
    marks = [Marks("dots", texts, "mark", "all texts"), Marks("dots", known, "other", "known texts")]
    return against_judge("The mark of each text against the judge's score", "mark", marks)


def _disguised(grades: Grades) -> Grades:
    """The same with other names for texts, and without those of pupils."""
    texts = other_names(grades.items["ID"])
    items = grades.items.drop("name", "class", strict=False)
    return replace(
        grades,
        items=renamed(items, texts, "ID"),
        known=renamed(grades.known, texts, "ID"),
        again=renamed(grades.again, texts, "ID"),
        notices=(),
    )
