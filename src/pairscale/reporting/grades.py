"""The report of marks and levels: the class first, then what it rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pairscale.reporting.page import Report, other_names, renamed
from pairscale.reporting.picture import Marks, Picture, axis_around, number

if TYPE_CHECKING:
    from pairscale.grading.verb import Grades

_FINE_SCALE = 20  # marks that spread less have decimals
_MOST_TO_LOOK_AT = 10
_HEADS = {
    "rank": "rank", "ID": "ID", "name": "name", "class": "class", "score": "score", "mark": "mark",
    "mark_lower": "from", "mark_upper": "to", "level": "level", "misgrade": "chance of a wrong level",
}  # fmt: skip
_MINOR = {"mark_lower", "mark_upper", "score"}


def grades_report(grades: Grades, *, pseudonyms: bool = False) -> Report:
    """Put marks and levels into figures and a picture.

    Args:
        grades: marks and levels.
        pseudonyms: whether texts have other names, and the names of pupils are left out.
    """
    if pseudonyms:
        grades = _disguised(grades)
    items = grades.items
    heads = [name for name in _HEADS if name in items.columns and items[name].null_count() < items.height]
    kinds = {"ID": "id", "misgrade": "share"} | dict.fromkeys(("name", "class", "level"), "")
    columns = [(_HEADS[name], kinds.get(name, "n"), name in _MINOR) for name in heads]
    digits = _mark_digits(items)
    marks = pl.col("mark", "mark_lower", "mark_upper").round(digits)
    shown = items.with_columns(pl.col("score").round().cast(pl.Int64), marks if digits else marks.cast(pl.Int64))
    content = {
        "sentences": str(grades).splitlines(),
        "summary": grades.summary.row(0, named=True),
        "n": items.height,
        "digits": digits,
        "columns": columns,
        "rows": [list(row) for row in shown.select(heads).iter_rows()],
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
    dots = [
        {
            "x": row["theta"],
            "y": row["mark"],
            "y_low": row["mark_lower"],
            "y_high": row["mark_upper"],
            "r": 3.0,
            "tip": f"{row['ID']}: mark {number(row['mark'], 1)} ({number(row['mark_lower'], 1)} to "
            f"{number(row['mark_upper'], 1)})",
        }
        for row in grades.items.iter_rows(named=True)
    ]
    scores = grades.items.select("ID", "theta")
    known = [
        {"x": row["theta"], "y": row["known"], "r": 4.5, "tip": f"{row['ID']}: known as {number(row['known'], 1)}"}
        for row in grades.known.join(scores, on="ID").iter_rows(named=True)
    ]
    heights = [dot[end] for dot in dots for end in ("y_low", "y_high")] + [dot["y"] for dot in known]
    x = axis_around("the judge's score, in logits", [dot["x"] for dot in dots])
    y = axis_around("mark", heights)
    marks = [Marks("dots", dots, "mark", "all texts"), Marks("dots", known, "other", "known texts")]
    return Picture("The mark of each text against the judge's score", x, y, marks, height=340)


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
