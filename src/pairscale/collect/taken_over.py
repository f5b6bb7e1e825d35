"""Answers that a run took over from a CSV that does not say how they were asked.

R's pairwiseLLM writes no ``condition_id``, so that the prompt of its rows is not known. They count as answers, as
``save_path`` promises, and the run file says which they are, so that a status or a report can say so, too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pairscale.core.provenance import utc_now

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

_LOG = "taken_over"


def mark_taken_over(store: RunFile, condition_id: str, pair_ids: Collection[int]) -> None:
    """Write down that the answers to these pairs come from a CSV without a condition."""
    store.log(_LOG, [{"condition_id": condition_id, "pairs": sorted(pair_ids), "at": utc_now()}])


def count_taken_over(store: RunFile, condition_id: str | None = None) -> int:
    """How many answers of a run file (of one condition, or of all) come from a CSV without a condition."""
    rows = (row for row in store.read_log(_LOG) if condition_id in (None, row["condition_id"]))
    return len({(row["condition_id"], number) for row in rows for number in row["pairs"]})


def taken_over_line(count: int) -> str:
    """The same in words, for a status or a report."""
    many = count != 1
    return (
        f"{count:,} answer{'s were' if many else ' was'} taken over from a CSV file without condition_id, as R's "
        f"pairwiseLLM writes it: the prompt of {'these' if many else 'this one'} is not known"
    )
