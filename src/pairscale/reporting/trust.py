"""The report of a judge's scale beside people's: a page of its own, and a section of a ranking's page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import without_notices
from pairscale.reporting.page import Report, other_names, preview, renamed
from pairscale.reporting.picture import Marks, against_judge, number
from pairscale.store.labels import label_results
from pairscale.store.reading import read_comparisons
from pairscale.validity.verb import Trust, trust_of_run

if TYPE_CHECKING:
    from pairscale.reporting.picture import Content, Picture
    from pairscale.store.runfile import RunFile

_COLUMNS = "rank_people ID rank_judge moved rank_people_lower rank_people_upper"


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
        "rows": []
        if trust.validity.estimate is None
        else trust.items.select(_COLUMNS.split()).sort("rank_people").rows(),
        "people": [] if trust.people is None else trust.people.to_dicts(),
        "pairs": pairs,
        "with_texts": texts and trust.next["text1"].null_count() < trust.next.height,
    }
    title = "How far can this ranking be trusted?"
    judges = [] if trust.judge is None else trust.judge.split(", ")
    return Report("trust.html", title, trust.items, content, {"judge": trust.judge or ""}, judges, trust.notices)


def trust_part(trust: Trust) -> Content:
    """What the page and the section share: the sentences, the figures and the picture."""
    return {
        "sentences": str(trust).splitlines(),
        "validity": trust.validity,
        "judge_alone": trust.agreement_judge,
        "corrected": trust.agreement_corrected,
        "chart": None if trust.validity.estimate is None else _picture(trust),
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
    half = 1.96 * pl.col("theta_people_sd")
    people = pl.col("theta_people")
    items = trust.items.with_columns(x="theta_judge", y=people, y_low=people - half, y_high=people + half)
    dots = [
        {**row, "r": 3.5, "tip": f"{row['ID']}: judge {number(row['x'])} (rank {row['rank_judge']}), "
        f"people {number(row['y'])} (rank {row['rank_people']})"}
        for row in items.iter_rows(named=True)
    ]  # fmt: skip
    return against_judge("People's score of each text against the judge's", "people's score", [Marks("dots", dots)])


def _disguised(trust: Trust) -> Trust:
    """The same with other names for texts and people."""
    texts = other_names(trust.items["ID"])
    people = None if trust.people is None else renamed(trust.people, other_names(trust.people["person"], "L"), "person")
    blank = pl.lit(None, pl.String)
    pairs = renamed(trust.next, texts, "ID1", "ID2").with_columns(text1=blank, text2=blank)
    return replace(trust, items=renamed(trust.items, texts, "ID"), next=pairs, people=people)
