"""An exported run in an empty run file: with its own numbers, so that its hash chain still holds.

Everything is entered in blocks. What is held of all rows is their hashes, and which row of the results table belongs to
which comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import delete, select, update

from pairscale.core.errors import StoreMismatchError
from pairscale.core.notices import notice
from pairscale.core.tables import listed
from pairscale.store._companion import companion_rows, enter_rest
from pairscale.store._records import item_row
from pairscale.store._results import results_query
from pairscale.store.evidence import LEFT_OUT, expected_hashes
from pairscale.store.schema import attempts, chain, comparisons, conditions, items, pairs

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.engine import Connection

    from pairscale.store._hashes import Key
    from pairscale.store.chain import Change
    from pairscale.store.runfile import RunFile

__all__ = ["BLOCK", "COPIED", "restore"]

BLOCK = 50_000
"""Rows of a results table that are in memory at a time."""

COPIED = ("error_message", "status_code", "model", "object_type", "thoughts", "content", "prompt_tokens",
          "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "latency_s",
          "cost")  # fmt: skip
"""The columns of an attempt that a results table has."""

_DECIDED = ("outcome", "better_id", "probability")
_KEY = ("custom_id", "condition_id")
_ENTRIES = 50  # of a chain, each with up to 5,000 hashes, that are in memory at a time
_NAMED = 5_000  # rows that one query or statement names

Row = Mapping[str, Any]


class _Known:
    """What the chain of the exported run says, while its rows are entered.

    Attributes:
        differing: rows that are not as the chain has them.
    """

    def __init__(self, expected: Mapping[str, dict[Key, bytes]]) -> None:
        self._expected = expected
        self.differing: dict[str, set[Key]] = {}

    def has(self, part: str, link: list[Any]) -> bool:
        """Whether a row needs no entry of the chain: it has one, or it is not as it was, which the audit must find."""
        key, digest = tuple(link[:-1]), bytes.fromhex(link[-1])
        if part in LEFT_OUT:  # what stays was left out of the export
            return self._expected[part].pop(key, None) == digest
        expected = self._expected[part].get(key)
        if expected is not None and expected != digest:
            self.differing.setdefault(part, set()).add(key)
        elif part in self.differing:
            self.differing[part].discard(key)
        return expected is not None

    def left_out(self) -> Iterator[tuple[str, list[Key]]]:
        """By part, some at a time, the rows of which the export has left it out."""
        for part in sorted(LEFT_OUT):
            missing = iter(self._expected[part])
            while keys := list(islice(missing, _NAMED)):
                yield part, keys


def restore(
    store: RunFile, path: Path, results: Callable[[], Iterator[pl.DataFrame]], samples: Iterable[Row]
) -> tuple[int, pl.DataFrame | None]:
    """Enter an exported run into an empty run file.

    Where the results table says something else than the file beside it, the table holds, and the audit finds it.

    Args:
        store: open for writing, and empty.
        path: the file beside the results.
        results: gives the results table in blocks, from its first row on, whenever it is called.
        samples: the texts.

    Returns:
        How many comparisons were entered, and the results that none of them is from; None when there are none.

    Raises:
        StoreMismatchError: that names the samples whose text was another when they were judged.
    """
    with store.writer.changing() as change:
        change.insert(chain, companion_rows(path, "chain"), _ENTRIES)
        known = _Known(expected_hashes(change.connection))
        change.links.skip, change.about["imported"] = known.has, path.name
        change.insert(items, map(item_row, samples))
        if changed := known.differing.get("items"):
            raise StoreMismatchError(
                f"{listed([name for (name,) in sorted(changed)])} had another text when the exported run judged it; "
                "give the texts of that time"
            )
        for table, kind in ((conditions, "condition"), (pairs, "pair"), (attempts, "attempt")):
            change.insert(table, companion_rows(path, kind))
        change.insert(comparisons, companion_rows(path, "comparison"))
        entered, missing, rest = _let_hold(change, results)
        enter_rest(change, path)
        for part, keys in known.left_out():
            change.links.remove(part, keys)
            change.finish()
    store.writer.renumber()
    if differing := sum(map(len, known.differing.values())) + missing:
        notice(f"{differing:,} rows are not those of the exported run; `pairscale audit {store.name}` names them")
    return entered, rest


def _let_hold(change: Change, results: Callable[[], Iterator[pl.DataFrame]]) -> tuple[int, int, pl.DataFrame | None]:
    """Change what was entered to what the results table says, and remove the comparisons that it does not have."""
    there = _standing(change.connection)
    keys = [_keys(block) for block in results()]
    given = pl.concat([there.clear().select(_KEY), *keys]).with_row_index("place").unique(_KEY, keep="last")
    gone = there.join(given, on=_KEY, how="anti")["comparison_id"].to_list()
    for begin in range(0, len(gone), _NAMED):
        change.connection.execute(
            delete(comparisons).where(comparisons.c.comparison_id.in_(gone[begin : begin + _NAMED]))
        )
    found = there.join(given, on=_KEY).select("place", "comparison_id", "attempt_id").sort("place")
    del there, given
    rest, begin = list[pl.DataFrame](), 0
    for block in results():
        mine = found.filter(pl.col("place").is_between(begin, begin + block.height, closed="left"))
        places = mine["place"] - begin
        for start in range(0, mine.height, _NAMED):
            few = slice(start, start + _NAMED)
            _correct(change, mine[few], block[places[few]])
        if mine.height < block.height:
            rest.append(block.filter(~pl.int_range(pl.len()).is_in(places.implode())))
        begin += block.height
    return found.height, len(gone), pl.concat(rest, how="diagonal_relaxed") if rest else None


def _standing(connection: Connection) -> pl.DataFrame:
    """Every comparison that was entered: ``comparison_id attempt_id custom_id condition_id``."""
    c = comparisons.c
    query = select(c.comparison_id, c.attempt_id, pairs.c.custom_id, c.condition_id)
    query = query.join_from(comparisons, pairs, pairs.c.pair_id == c.pair_id).order_by(c.comparison_id)
    whole, text = pl.Int64(), pl.String()
    schema = {"comparison_id": whole, "attempt_id": whole, "custom_id": text, "condition_id": text}
    blocks = connection.execution_options(stream_results=True).execute(query).partitions(BLOCK)
    parts = [_short(pl.DataFrame(list(map(tuple, block)), schema=schema, orient="row")) for block in blocks]
    return pl.concat([_short(pl.DataFrame(schema=schema)), *parts])


def _keys(block: pl.DataFrame) -> pl.DataFrame:
    """What tells the rows of a results table from each other; empty where it does not say."""
    missing = [pl.lit(None, pl.String).alias(name) for name in _KEY if name not in block.columns]
    return _short(block.with_columns(missing).select(pl.col(_KEY).cast(pl.String)))


def _short(keys: pl.DataFrame) -> pl.DataFrame:
    """The few different conditions as numbers of a list."""
    return keys.with_columns(pl.col("condition_id").cast(pl.Categorical))


def _correct(change: Change, mine: pl.DataFrame, block: pl.DataFrame) -> None:
    """Change the comparisons of some rows of the results table where they differ from these rows."""
    c = comparisons.c
    query, schema = results_query(None, raw=False)
    query = query.add_columns(c.comparison_id).where(c.comparison_id.in_(mine["comparison_id"].to_list()))
    found = change.connection.execute(query)
    stored = pl.DataFrame(list(map(tuple, found)), schema={**schema, "comparison_id": pl.Int64()}, orient="row")
    stored = mine.join(stored, on="comparison_id", how="left", maintain_order="left")
    names = [name for name in (*COPIED, *_DECIDED) if name in block.columns]
    different = pl.Series([False], dtype=pl.Boolean).new_from_index(0, block.height)
    for name in names:
        ours, theirs = stored[name], block[name]
        if ours.dtype != theirs.dtype:
            ours, theirs = ours.cast(pl.String), theirs.cast(pl.String, strict=False)
        different |= ours.ne_missing(theirs)
    for at in different.arg_true():
        _correct_row(change, stored.row(at, named=True), block.row(at, named=True), names)


def _correct_row(change: Change, stored: Row, said: Row, names: Sequence[str]) -> None:
    changed = {name: said[name] for name in names if not _same(stored[name], said[name])}
    attempt = {name: value for name, value in changed.items() if name in COPIED}
    outcome = {name: value for name, value in changed.items() if name in _DECIDED}
    if "better_id" in outcome:
        outcome["winner_pos"] = {stored["ID1"]: 1, stored["ID2"]: 2}.get(outcome["better_id"])
    _change_row(change, attempts, stored["attempt_id"], attempt)
    _change_row(change, comparisons, stored["comparison_id"], outcome)


def _change_row(change: Change, table: Table, number: int, values: Row) -> None:
    if values:
        (key,) = table.primary_key
        change.connection.execute(update(table).where(key == number).values(**values))
        change.changed(table, [number], [table.name])


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
