"""Tables of recorded runs: normalised, packed as JSON, and compared column by column.

What differs between two runs of the same code is dropped: times, durations, paths, versions and the machine. So is the
wording of messages. Long texts are replaced by a digest. Numbers are compared with a relative tolerance of 1e-6:
another machine may compute the last digits differently.

A short table is stored as it is. In a long table only the columns of ``READABLE`` are; every other column is stored as
one figure per 32 rows: of floating-point numbers a weighted sum, of anything else a digest. Where one value fills a
column but for a few rows, it is stored once (``all``), with the other rows by their numbers from 1 (``but``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

Table: TypeAlias = "pl.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]"
"""A table, a list of rows, or a mapping of facts (one row)."""

Tables: TypeAlias = "dict[str, Table]"
Packed: TypeAlias = "dict[str, Any]"

DROPPED = frozenset({
    # times and durations
    "timestamp", "latency_s", "attempted_at", "received_at", "created_at", "collected_at", "labelled_at", "last_at",
    "day", "duration_ms", "age_s", "left_s",
    # wording of messages
    "error_message", "invalid_reason", "message", "problem",
    # what depends on the machine, the version or chance
    "raw_response", "key", "batch_input_path", "batch_output_path", "csv_path", "pairs_path", "mcmc_parallel_chains",
    "mcmc_core_fraction", "mcmc_cores_detected_physical", "mcmc_cores_detected_logical", "mcmc_threads_per_chain",
    "mcmc_engine_version",
})  # fmt: skip
"""Columns that are never recorded."""

READABLE = ("A_id", "B_id", "Y", "status", "better_id", "outcome", "winner")
"""Columns that are stored as they are in long tables, too."""

NOT_COMPARED = ("max_rhat", "min_ess_bulk")
"""By the ranks of the draws: on another machine two nearly equal draws may change places."""

LONG, BLOCK, LONGEST_TEXT, DIGITS, TOLERANCE = 30, 32, 48, 8, 1e-6


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run: a function that takes an empty folder and returns tables by name."""

    name: str
    group: str
    function: Callable[[Path], Tables]


RUNS: dict[str, Run] = {}


def recorded(function: Callable[[Path], Tables]) -> Callable[[Path], Tables]:
    """Register a run under the name of its function; ``runs_given.py`` is the group ``given``."""
    group = function.__module__.rpartition("runs_")[2]
    RUNS[function.__name__] = Run(function.__name__, group, function)
    return function


# Normalising


def columns_of(table: Table) -> dict[str, list[Any]]:
    """The recorded columns of a table, by name, in plain values."""
    if isinstance(table, pl.DataFrame):
        kept = [name for name in table.columns if name not in DROPPED and not table[name].dtype.is_temporal()]
        columns = {name: table[name].to_list() for name in kept}
    else:
        rows = [table] if isinstance(table, Mapping) else list(table)
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names if name not in DROPPED}
    if "condition_id" in columns:  # a digest of settings: only which rows share one is recorded
        seen: dict[Any, str] = {}
        columns["condition_id"] = [seen.setdefault(one, f"c{len(seen) + 1}") for one in columns["condition_id"]]
    return {name: [_plain(value) for value in values] for name, values in columns.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"sha256:{_digest(value)} of {len(value)} characters"
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items() if name not in DROPPED}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    assert value is None or isinstance(value, bool | int), f"a {type(value).__name__} cannot be recorded"
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


# Packing


def pack(table: Table) -> Packed:
    """A table as it is stored."""
    columns = columns_of(table)
    rows = max((len(values) for values in columns.values()), default=0)
    return {"rows": rows, "columns": {name: _packed(name, values) for name, values in columns.items()}}


def _packed(name: str, values: list[Any]) -> Any:
    most, times = Counter(map(_line, values)).most_common(1)[0] if values else ("", 0)
    if len(values) > 1 and len(values) - times <= len(values) // 5:
        others = {str(row): value for row, value in enumerate(values, start=1) if _line(value) != most}
        return {"all": json.loads(most)} | ({"but": others} if others else {})
    if len(values) > LONG and name not in READABLE:
        if all(value is None or isinstance(value, str | int) for value in values):
            return {"digests": _digests(values)}
        if all(value is None or isinstance(value, int | float) for value in values):
            return {"sums": _sums(values)}
    return values


def _blocks(values: list[Any]) -> Iterator[list[Any]]:
    return (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))


def _digests(values: list[Any]) -> list[str]:
    return [_digest(_line(block))[:8] for block in _blocks(values)]


def _sums(values: list[Any]) -> list[float]:
    """A sum per block, in which every place has its own weight; a missing value counts as a number like no other."""
    numbers = [-777.0 if value is None else float(value) for value in values]
    return [_plain(sum(math.sqrt(at) * value for at, value in enumerate(block, start=1))) for block in _blocks(numbers)]


def write(path: Path, runs: Mapping[str, Mapping[str, Packed]]) -> None:
    """Write packed tables, one line per column."""
    lines = []
    for run, tables in sorted(runs.items()):
        parts = []
        for table, packed in tables.items():
            columns = ",\n".join(f"   {_line(name)}: {_line(values)}" for name, values in packed["columns"].items())
            parts.append(f'  {_line(table)}: {{"rows": {packed["rows"]}, "columns": {{\n{columns}}}}}')
        lines.append(f" {_line(run)}: {{\n" + ",\n".join(parts) + "}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def read(path: Path) -> dict[str, dict[str, Packed]]:
    """What :func:`write` wrote; nothing when there is no such file."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


# Comparing


def same(recorded_value: Any, value: Any) -> bool:
    """Whether two values are equal; numbers up to the tolerance, a flag is not a number."""
    if isinstance(recorded_value, bool) or isinstance(value, bool):
        return recorded_value is value
    if isinstance(recorded_value, int | float) and isinstance(value, int | float):
        return math.isclose(recorded_value, value, rel_tol=TOLERANCE, abs_tol=1e-9)
    if isinstance(recorded_value, list) and isinstance(value, list):
        return len(recorded_value) == len(value) and all(map(same, recorded_value, value))
    if isinstance(recorded_value, dict) and isinstance(value, dict):
        return recorded_value.keys() <= value.keys() and all(same(one, value[k]) for k, one in recorded_value.items())
    return bool(recorded_value == value)


def differences(run: str, expected: Mapping[str, Packed], tables: Tables) -> list[str]:
    """Where the tables of a run differ from the recorded ones; a new table or column is not a difference."""
    found: list[str] = []
    expected = comparable(expected, tables)
    for name, packed in expected.items():
        where = f"run {run}, table {name}"
        if name not in tables:
            found.append(f"{where}: recorded, and missing now")
            continue
        columns = columns_of(tables[name])
        rows = max((len(values) for values in columns.values()), default=0)
        if rows != packed["rows"]:
            found.append(f"{where}: {packed['rows']} rows recorded, {rows} now")
        for column, values in sorted(packed["columns"].items(), key=lambda one: one[0] not in READABLE):
            if column in NOT_COMPARED:
                continue
            if column in columns:
                found += [
                    f"{where}, column {column}, {text}" for text in _unlike(values, packed["rows"], columns[column])
                ]
            elif packed["rows"]:
                found.append(f"{where}, column {column}: recorded, and missing now")
    return found


def comparable(expected: Mapping[str, Packed], tables: Tables) -> Mapping[str, Packed]:
    """The recorded tables that can be compared on this machine.

    A run with a table ``probe`` rests on figures that another machine may compute differently. Where the probe is
    another one than recorded, only the tables ``before_*`` can be compared.
    """
    if "probe" not in expected or pack(tables["probe"]) == expected["probe"]:
        return expected
    return {name: packed for name, packed in expected.items() if name.startswith("before_")}


def _unlike(expected: Any, rows: int, values: list[Any]) -> Iterator[str]:
    """Where one column differs."""
    for kind, figures in (("digests", _digests), ("sums", _sums)):
        if isinstance(expected, dict) and kind in expected:
            text = all(value is None or isinstance(value, str | int) for value in values)
            now = figures(values) if text or kind == "sums" else []
            for block, (then, one) in enumerate(zip_longest(expected[kind], now)):
                if not same(then, one):
                    first, last = block * BLOCK, min((block + 1) * BLOCK, len(values))
                    yield f"rows {first + 1} to {last}: {kind[:-1]} {then} recorded, {one} now: {values[first:last]}"
            return
    recorded_values: Iterable[Any] = expected
    if isinstance(expected, dict):
        others = expected.get("but", {})
        recorded_values = [others.get(str(row), expected["all"]) for row in range(1, rows + 1)]
    for row, (then, now) in enumerate(zip(recorded_values, values, strict=False), start=1):
        if not same(then, now):
            yield f"row {row}: {then!r} recorded, {now!r} now"
