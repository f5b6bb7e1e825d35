"""What merging keeps of each run file: where its rows went, and what they were where the merged file has others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pairscale.store._hashes import sha256

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["MERGES", "MergedRun", "Numbers", "expanded", "identity", "renumbered"]

MERGES = "merges"
"""The log with one row per run file that was merged: ``source digest numbers logs originals``."""

_PAIR_NUMBERS: Mapping[str, Sequence[str]] = {"batches": ("pair_ids", "pairs", "pair"), "taken_over": ("pairs",)}
"""By log, the fields that hold numbers of pairs."""


class Numbers:
    """The new number of every old one, as ranges; old ones are entered in their order.

    Attributes:
        ranges: first old one, first new one, how many.
    """

    __slots__ = ("_n", "ranges")

    def __init__(self, numbers: Iterable[tuple[int, int]] = ()) -> None:
        self.ranges: list[list[int]] = []
        self._n = 0
        for old, new in numbers:
            self[old] = new

    def __setitem__(self, old: int, new: int) -> None:
        self._n += 1
        last = self.ranges[-1] if self.ranges else None
        if last is not None and (last[0] + last[2], last[1] + last[2]) == (old, new):
            last[2] += 1
        else:
            self.ranges.append([old, new, 1])

    def get(self, old: int) -> int | None:
        """The new number, if there is one."""
        at = bisect_right(self.ranges, old, key=lambda one: one[0]) - 1
        if at < 0 or old >= self.ranges[at][0] + self.ranges[at][2]:
            return None
        return self.ranges[at][1] + old - self.ranges[at][0]

    def __getitem__(self, old: int) -> int:
        new = self.get(old)
        if new is None:
            raise KeyError(old)
        return new

    def __len__(self) -> int:
        return self._n


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
        shared: attempts that were in an earlier file, too.
    """

    name: str
    connection: Connection
    digest: str | None
    numbers: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    repeats: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    logs: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    originals: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    shared: Numbers = field(default_factory=Numbers)

    def pair(self, condition_id: str, number: int) -> int:
        """The new number of a pair under a condition."""
        return self.repeats.get((condition_id, number)) or self.numbers["pairs"][number]

    def keep(self, table: str, row: Mapping[str, Any]) -> None:
        """Remember a row as it was."""
        self.originals.setdefault(table, []).append(dict(row))

    def row(self) -> dict[str, Any]:
        """Its row of the log ``merges``."""
        numbers = {name: known.ranges for name, known in self.numbers.items()}
        numbers["repeats"] = Numbers((old, new) for (_, old), new in self.repeats.items()).ranges
        logs = {name: known.ranges for name, known in self.logs.items()}
        named = {"source": self.name, "digest": self.digest}
        return {**named, "numbers": numbers, "logs": logs, "originals": self.originals}


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
