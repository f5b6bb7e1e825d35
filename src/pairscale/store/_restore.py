"""An exported run in an empty run file: with its own numbers, so that its hash chain still holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import StoreMismatchError
from pairscale.core.notices import notice
from pairscale.core.tables import listed
from pairscale.store._companion import companion_rows, enter_rest
from pairscale.store._records import item_row
from pairscale.store.database import prepared_insert
from pairscale.store.evidence import LEFT_OUT, expected_hashes
from pairscale.store.schema import attempts, chain, comparisons, conditions, items, pairs

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["COPIED", "restore"]

COPIED = ("error_message", "status_code", "model", "object_type", "thoughts", "content", "prompt_tokens",
          "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "latency_s",
          "cost")  # fmt: skip
"""The columns of an attempt that a results table has."""

Row = Mapping[str, Any]


class _Known:
    """What the chain of the exported run says, while its rows are entered.

    Attributes:
        differing: rows that are not as the chain has them.
    """

    def __init__(self, expected: Mapping[str, Mapping[tuple[Any, ...], bytes]]) -> None:
        self._expected = expected
        self._entered: dict[str, set[tuple[Any, ...]]] = {name: set() for name in LEFT_OUT}
        self.differing: dict[str, list[tuple[Any, ...]]] = {}

    def has(self, part: str, link: list[Any]) -> bool:
        """Whether a row needs no entry of the chain: it has one, or it is not as it was, which the audit must find."""
        *key, digest = link
        expected = self._expected[part].get(tuple(key))
        if part in LEFT_OUT:
            self._entered[part].add(tuple(key))
        if expected is None or expected == bytes.fromhex(digest):
            return expected is not None
        if part in LEFT_OUT:
            return False
        self.differing.setdefault(part, []).append(tuple(key))
        return True

    def left_out(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """By part, the rows of which the export has left it out."""
        for part in sorted(LEFT_OUT):
            if missing := [key for key in self._expected[part] if key not in self._entered[part]]:
                yield part, missing


def restore(store: RunFile, path: Path, results: Iterable[Row], samples: Iterable[Row]) -> tuple[int, set[int]]:
    """Enter an exported run into an empty run file.

    Where the results table says something else than the file beside it, the table holds, and the audit finds it.

    Args:
        store: open for writing, and empty.
        path: the file beside the results.
        results: the rows of the results table.
        samples: the texts.

    Returns:
        How many comparisons were entered, and the places of the results that they are from.

    Raises:
        StoreMismatchError: that names the samples whose text was another when they were judged.
    """
    given = {(row.get("custom_id"), row.get("condition_id")): (at, row) for at, row in enumerate(results)}
    with store.writer.changing() as change:
        prepared_insert(chain, change.connection.dialect).execute(change.connection, companion_rows(path, "chain"))
        known = _Known(expected_hashes(change.connection))
        change.links.skip, change.about["imported"] = known.has, path.name
        change.insert(items, map(item_row, samples))
        if changed := known.differing.get("items"):
            raise StoreMismatchError(
                f"{listed([name for (name,) in changed])} had another text when the exported run judged it; "
                "give the texts of that time"
            )
        change.insert(conditions, companion_rows(path, "condition"))
        named = list(companion_rows(path, "pair"))
        change.insert(pairs, named)
        names = {row["pair_id"]: row for row in named}
        settled = {row["attempt_id"]: row for row in companion_rows(path, "comparison")}
        asked = {
            number: given.get((names[row["pair_id"]]["custom_id"], row["condition_id"]))
            for number, row in settled.items()
        }
        models = {row["condition_id"]: row["model"] for row in companion_rows(path, "condition")}
        change.insert(
            attempts,
            (_merged(row, asked.get(row["attempt_id"]), models) for row in companion_rows(path, "attempt")),
        )
        entered = [(row, found) for number, row in settled.items() if (found := asked[number]) is not None]
        change.insert(comparisons, (_outcome(row, found[1], names[row["pair_id"]]) for row, found in entered))
        enter_rest(change, path)
        for part, keys in known.left_out():
            change.links.remove(part, keys)
    store.writer.renumber()
    if differing := sum(map(len, known.differing.values())) + len(settled) - len(entered):
        notice(f"{differing:,} rows are not those of the exported run; `pairscale audit {store.name}` names them")
    return len(entered), {at for _, (at, _) in entered}


def _merged(row: Row, found: tuple[int, Row] | None, models: Mapping[str, Any]) -> dict[str, Any]:
    """An attempt with what the results table says otherwise."""
    if found is None:
        return dict(row)
    said = dict(found[1])
    if row["model"] is None and said.get("model") == models.get(row["condition_id"]):
        said["model"] = None
    return dict(row) | {name: said[name] for name in COPIED if name in said and not _same(row[name], said[name])}


def _outcome(row: Row, said: Row, pair: Row) -> dict[str, Any]:
    """A comparison with what the results table says otherwise."""
    changed = {
        name: said[name] for name in ("outcome", "better_id", "probability") if not _same(row[name], said.get(name))
    }
    if "better_id" in changed:
        changed["winner_pos"] = {pair["ID1"]: 1, pair["ID2"]: 2}.get(changed["better_id"])
    return dict(row) | changed


def _same(ours: Any, theirs: Any) -> bool:
    """Whether a value is the same after a way through a table: 1 and "1", a text and its blanks, nothing and ""."""
    if ours in (None, "") or theirs in (None, ""):
        return ours in (None, "") and theirs in (None, "")
    if isinstance(ours, int | float):
        try:
            return math.isclose(ours, float(theirs), rel_tol=1e-12)
        except (TypeError, ValueError):
            return False
    return str(ours).split() == str(theirs).split()
