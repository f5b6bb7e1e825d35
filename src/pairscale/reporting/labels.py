"""Labels of people in a run file: how far they agree, and their part of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import without_notices
from pairscale.reporting._disguise import other_names, renamed
from pairscale.reporting._shell import table_of
from pairscale.reporting.picture import number
from pairscale.store.label_keys import known_key

if TYPE_CHECKING:
    from pairscale.reporting._shell import Facts, Page, Part

_BOOT = 200


@dataclass(frozen=True, slots=True)
class FactsWithLabels:
    """What is known of a run whose file also holds labels of people.

    Attributes:
        facts: of the run itself.
        labels: see :meth:`RunFile.labels`.
        counts: see :func:`pairscale.store.labels.label_counts`.
    """

    facts: Facts
    labels: pl.DataFrame
    counts: Mapping[str, int]

    def rows(self, *, texts: bool) -> pl.DataFrame:
        """What goes into a spreadsheet: that of the run."""
        return self.facts.rows(texts=texts)

    def page(self, *, texts: bool) -> Page:
        """The report of the run, with a section on its labels."""
        return replace(self.facts.page(texts=texts), labels=_part(self.labels, self.counts))

    def disguised(self) -> Facts:
        """The same under other names, also for the labellers."""
        people = other_names(set(self.labels["labeller"]), "L")
        return replace(self, facts=self.facts.disguised(), labels=renamed(self.labels, people, "labeller"))

    def write_again(self, path: Path) -> int:
        """Write what to look at again for people to label, and say how many cases there are."""
        return self.facts.write_again(path)


def _part(labels: pl.DataFrame, counts: Mapping[str, int]) -> Part:
    """The section: who labelled how much, and how far they agree on each criterion."""
    chosen = pl.col("preferred")
    by_labeller = labels.group_by("labeller", maintain_order=True).agg(
        labels=chosen.count(), ties=(chosen == "tie").sum(), skipped=pl.col("skipped").count()
    )
    columns = [("labeller", False), ("labels", True), ("ties", True), ("skipped", True)]
    lead = f"{counts['complete']:,} of {counts['wanted']:,} labels of {counts['cases']:,} cases are in the run file."
    agreed, by = [], _by(labels)
    for (criterion,), part in labels.group_by("criterion", maintain_order=True):
        alpha, interval, units = label_alpha(part.to_dicts())
        if alpha is not None:
            ends = "" if interval is None else f" (95 % interval {number(interval[0], 2)} to {number(interval[1], 2)})"
            agreed.append(f"{criterion}: Krippendorff's alpha{by} {number(alpha, 2)}{ends} on {units:,} cases.")
    return {"lead": lead, "agreement": agreed, **table_of(columns, by_labeller.rows())}


def with_key(labels: pl.DataFrame, run: str) -> pl.DataFrame:
    """Labels with ``first_variant``, where the key lies beside their run file."""
    key = known_key(Path(run), []) if "://" not in run else None
    if key is None or not set(labels["case_id"]) <= set(key):
        return labels
    firsts = {name: str(row["first_variant"]) for name, row in key.items()}
    return labels.with_columns(first_variant=pl.col("case_id").replace_strict(firsts, return_dtype=pl.String()))


def _by(labels: pl.DataFrame) -> str:
    """What agreement compares, in words; of texts with ids of their own there are no variants."""
    if "first_variant" in labels.columns:
        return " by variant"
    return " by position (which side was chosen)" if labels["ID1"].null_count() == labels.height else ""


def label_alpha(
    labels: Sequence[Mapping[str, Any]],
) -> tuple[float | None, tuple[float, float] | None, int]:
    """Krippendorff's alpha of labels, its 95 % interval, and the cases with two labels or more that it rests on.

    Args:
        labels: rows with ``case_id labeller preferred``; skips, whose ``preferred`` is None, do not count.
    """
    try:
        table = _agreement(labels, n_boot=_BOOT).table
    except InputError:  # there are not yet two labels of one case
        return None, None, 0
    row = next(row for row in table.iter_rows(named=True) if row["statistic"] == "krippendorff_alpha")
    interval = None if row["lower"] is None else (row["lower"], row["upper"])
    return row["estimate"], interval, row["n_units"]


def label_pairs(labels: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The agreement of every two labellers with a case in common: ``rater1 rater2 n_units`` and the coefficients."""
    try:
        table = _agreement(labels, n_boot=0).pairs
    except InputError:
        return []
    return [row for row in table.iter_rows(named=True) if row["n_units"]]


def _agreement(labels: Sequence[Mapping[str, Any]], n_boot: int) -> Any:
    from pairscale.checks.agreement import agreement

    given = [row for row in labels if row["preferred"] is not None]
    with without_notices():  # the page shows them
        return agreement(given, unit="case_id", rater="labeller", label="preferred", n_boot=n_boot, seed=1)
