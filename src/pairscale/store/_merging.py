"""What merging keeps of each run file: where its rows went, and what they were where the merged file has others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pairscale.store._hashes import sha256

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["MERGES", "MergedRun", "expanded", "identity", "in_ranges", "renumbered"]

MERGES = "merges"
"""The log with one row per run file that was merged: ``source digest numbers logs originals``."""

_PAIR_NUMBERS: Mapping[str, Sequence[str]] = {"batches": ("pair_ids", "pairs", "pair"), "taken_over": ("pairs",)}
"""By log, the fields that hold numbers of pairs."""


@dataclass(slots=True)
class MergedRun:
    """One of the run files that are merged.

    Attributes:
        name: of the file.
        connection: to read it by.
        digest: the digest that it was closed with.
        numbers: by table, the new number of every old one.
        repeats: pairs that were answered in an earlier file, too: the new number, by condition and old number.
        logs: by log, the new row of every old one.
        originals: by table, the rows that are not, or not in the same letters, in the merged file.
        shared: how many attempts were in an earlier file, too.
    """

    name: str
    connection: Connection
    digest: str | None
    numbers: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])
    repeats: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    logs: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])
    originals: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    shared: int = 0

    def pair(self, condition_id: str, number: int) -> int:
        """The new number of a pair under a condition."""
        return self.repeats.get((condition_id, number)) or self.numbers["pairs"][number]

    def keep(self, table: str, row: Mapping[str, Any]) -> None:
        """Remember a row as it was."""
        self.originals.setdefault(table, []).append(dict(row))

    def row(self) -> dict[str, Any]:
        """Its row of the log ``merges``."""
        numbers = {name: in_ranges(known.items()) for name, known in self.numbers.items()}
        numbers["repeats"] = in_ranges((old, new) for (_, old), new in self.repeats.items())
        logs = {name: in_ranges(known.items()) for name, known in self.logs.items()}
        named = {"source": self.name, "digest": self.digest}
        return {**named, "numbers": numbers, "logs": logs, "originals": self.originals}


def in_ranges(numbers: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Old and new numbers as ranges: first old one, first new one, how many."""
    ranges: list[list[int]] = []
    for old, new in numbers:
        if ranges and (ranges[-1][0] + ranges[-1][2], ranges[-1][1] + ranges[-1][2]) == (old, new):
            ranges[-1][2] += 1
        else:
            ranges.append([old, new, 1])
    return ranges


def expanded(ranges: Iterable[Sequence[int]]) -> dict[int, int]:
    """By new number, the old one."""
    return {new + at: old + at for old, new, n in ranges for at in range(n)}


def renumbered(log: str, row: dict[str, Any], source: MergedRun, conditions: dict[str, str]) -> dict[str, Any]:
    """A row of a log with the new numbers of its pairs.

    Args:
        log: the log.
        row: of it.
        source: where it is from.
        conditions: by the key of a batch, its condition; a row that says it is remembered here.
    """
    fields = [name for name in _PAIR_NUMBERS.get(log, ()) if name in row]
    if not fields:
        return row
    if "condition_id" in row:
        conditions[row.get("key", "")] = row["condition_id"]
    condition = row.get("condition_id") or conditions[row["key"]]

    def new(number: int) -> int:
        return source.pair(condition, number)

    changed = {name: [new(n) for n in row[name]] if isinstance(row[name], list) else new(row[name]) for name in fields}
    return row | changed


def identity(values: Iterable[Any]) -> str:
    """What is the same for two rows exactly when all these values are."""
    return sha256("\x1f".join(map(repr, values)))
