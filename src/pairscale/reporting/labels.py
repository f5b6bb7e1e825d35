"""Labels of people in a run file: how far they agree."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairscale.checks.people import answers_of_people, people_table
from pairscale.core.errors import InputError
from pairscale.core.notices import without_notices
from pairscale.reporting.page import other_names, renamed
from pairscale.store.label_keys import known_key
from pairscale.store.labels import label_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.checks.agreement import Agreement
    from pairscale.reporting.picture import Content, Row
    from pairscale.store.runfile import RunFile

_BOOT = 200


def labels_of_run(store: RunFile, *, pseudonyms: bool) -> Content | None:
    """Who labelled how much, and how far they agree on each criterion; None where no one was asked."""
    counts = label_counts(store)
    if counts is None:
        return None
    labels = _with_key(store.labels(), store.name)
    if pseudonyms:
        labels = renamed(labels, other_names(labels["labeller"], "L"), "labeller")
    chosen = pl.col("preferred")
    people = labels.group_by("labeller", maintain_order=True).agg(
        labels=chosen.count(), ties=(chosen == "tie").sum(), skipped=pl.col("skipped").count()
    )
    agreement = {
        criterion: label_alpha(part.to_dicts())
        for (criterion,), part in labels.group_by("criterion", maintain_order=True)
    }
    by = "position" if labels["ID1"].null_count() == labels.height else ""
    if "first_variant" in labels.columns:
        by = "variant"
    return {"counts": counts, "rows": people.rows(), "agreement": agreement, "by": by, "trust": None}


def people_of_run(store: RunFile, *, pseudonyms: bool) -> list[Content]:
    """Who judged texts for a run, or labelled its pairs: number, time, agreement with the scale and misfit."""
    people = people_table(answers_of_people(store))
    if pseudonyms:
        people = renamed(people, other_names(people["person"], "L"), "person")
    return people.to_dicts()


def _with_key(labels: pl.DataFrame, run: str) -> pl.DataFrame:
    """Labels with ``first_variant``, where the key lies beside their run file."""
    key = known_key(Path(run), []) if "://" not in run else None
    if key is None or not set(labels["case_id"]) <= set(key):
        return labels
    firsts = {name: str(row["first_variant"]) for name, row in key.items()}
    return labels.with_columns(first_variant=pl.col("case_id").replace_strict(firsts, return_dtype=pl.String()))


def label_alpha(
    labels: Sequence[Row],
) -> tuple[float | None, tuple[float, float] | None, int]:
    """Krippendorff's alpha of labels, its 95 % interval, and the cases with two labels or more that it rests on.

    Args:
        labels: rows with ``case_id labeller preferred``; skips, whose ``preferred`` is None, do not count.
    """
    found = _agreement(labels, n_boot=_BOOT)
    if found is None:
        return None, None, 0
    row = found.table.row(by_predicate=pl.col("statistic") == "krippendorff_alpha", named=True)
    interval = None if row["lower"] is None else (row["lower"], row["upper"])
    return row["estimate"], interval, row["n_units"]


def label_pairs(labels: Sequence[Row]) -> list[Content]:
    """The agreement of every two labellers with a case in common: ``rater1 rater2 n_units`` and the coefficients."""
    found = _agreement(labels, n_boot=0)
    return [] if found is None else found.pairs.filter(pl.col("n_units") > 0).to_dicts()


def _agreement(labels: Sequence[Row], n_boot: int) -> Agreement | None:
    """How far labellers agree; None where no case has two labels yet."""
    from pairscale.checks.agreement import agreement

    given = [row for row in labels if row["preferred"] is not None]
    with without_notices(), suppress(InputError):  # the page shows them
        return agreement(given, unit="case_id", rater="labeller", label="preferred", n_boot=n_boot, seed=1)
    return None
