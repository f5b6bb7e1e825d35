"""The report of a judge's scale beside people's: a page of its own, and a section of a ranking's page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import without_notices
from pairscale.reporting.page import Report, other_names, preview, renamed
from pairscale.reporting.picture import Marks, Picture, axis_around, number
from pairscale.store.labels import label_results
from pairscale.store.reading import read_comparisons
from pairscale.validity.verb import Trust, trust_of_run

if TYPE_CHECKING:
    from pairscale.reporting.picture import Content
    from pairscale.store.runfile import RunFile


def trust_report(trust: Trust, *, texts: bool = True, pseudonyms: bool = False) -> Report:
    """Put the answer into figures and a picture.

    Args:
        trust: the judge's scale beside people's.
        texts: whether the beginnings of the texts of the next pairs are shown.
        pseudonyms: whether texts and people have other names.
    """
    if pseudonyms:
        trust = _disguised(trust)
    pairs = [
        {"ids": (row["ID1"], row["ID2"]), "texts": [preview(row[name] or "") for name in ("text1", "text2")]}
        for row in trust.next.iter_rows(named=True)
    ]
    content = {
        "trust": trust_part(trust),
        "trust_judge": trust.judge,
        "items": trust.items.height,
        "rows": _rows(trust),
        "people": [] if trust.people is None else trust.people.to_dicts(),
        "pairs": pairs,
        "with_texts": texts and trust.next["text1"].null_count() < trust.next.height,
    }
    title = "How far can this ranking be trusted?"
    judges = [] if trust.judge is None else trust.judge.split(", ")
    return Report("trust.html", title, trust.items, content, {"judge": trust.judge or ""}, judges, trust.notices)


def trust_part(trust: Trust) -> Content:
    """What the page and the section share: the sentences, the figures and the picture."""
    is_told = trust.validity.estimate is not None
    return {
        "sentences": str(trust).splitlines(),
        "validity": trust.validity,
        "judge_alone": trust.agreement_judge,
        "corrected": trust.agreement_corrected,
        "chart": _picture(trust) if is_told else None,
    }


def trust_of_labels(store: RunFile, condition: str | None) -> Content | None:
    """The section of a ranking whose run file has people's labels of the same texts; None where they say nothing."""
    labels = label_results(store)
    if not labels.height:
        return None
    try:
        with without_notices():
            trust = trust_of_run(read_comparisons(store, condition), read_comparisons(labels))
    except InputError:  # of other texts, ties only, or several judges without a choice
        return None
    return None if trust.validity.estimate is None else trust_part(trust)


def _picture(trust: Trust) -> Picture:
    """People's scores against the judge's, with their intervals."""
    dots = [
        {
            "x": row["theta_judge"],
            "y": row["theta_people"],
            "y_low": row["theta_people"] - 1.96 * row["theta_people_sd"],
            "y_high": row["theta_people"] + 1.96 * row["theta_people_sd"],
            "r": 3.5,
            "tip": f"{row['ID']}: judge {number(row['theta_judge'])} (rank {row['rank_judge']}), "
            f"people {number(row['theta_people'])} (rank {row['rank_people']})",
        }
        for row in trust.items.iter_rows(named=True)
    ]
    x = axis_around("the judge's score, in logits", [dot["x"] for dot in dots])
    y = axis_around("people's score", [dot[end] for dot in dots for end in ("y_low", "y_high")])
    return Picture("People's score of each text against the judge's", x, y, [Marks("dots", dots)], height=340)


def _rows(trust: Trust) -> list[list[Any]]:
    if trust.validity.estimate is None:
        return []
    names = ["rank_people", "ID", "rank_judge", "moved", "rank_people_lower", "rank_people_upper"]
    return [list(row) for row in trust.items.sort("rank_people").select(names).iter_rows()]


def _disguised(trust: Trust) -> Trust:
    """The same with other names for texts and people."""
    texts = other_names(trust.items["ID"])
    people = trust.people
    if people is not None:
        people = renamed(people, other_names(people["person"], "L"), "person")
    blank = pl.lit(None, pl.String)
    pairs = renamed(trust.next, texts, "ID1", "ID2").with_columns(text1=blank, text2=blank)
    return replace(trust, items=renamed(trust.items, texts, "ID"), next=pairs, people=people)
