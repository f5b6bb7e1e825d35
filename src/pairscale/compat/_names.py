"""Which two samples a request is of: read from its name, from a table of requests, or from the run file.

Our own pipeline names a request by its batch's key and the pair's number (see :func:`custom_id`), so that no id of a
sample reaches the provider. The ids of such a request are in the run file, and in the file of pairs beside the results.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from pairscale.collect.batch.files import own_name
from pairscale.collect.batch.registry import entries, pairs_named
from pairscale.core.errors import InputError, TableError
from pairscale.core.files import read_table, write_table
from pairscale.core.tables import Table, to_frame
from pairscale.store.runfile import open_run

Ids = tuple[str, str] | tuple[None, None]
_COLUMNS = ("custom_id", "ID1", "ID2")
_FOLDER = ".batches"
_BY_KEY = re.compile(r"([^:#]+):([^:#]+)#\d+")
_ESCAPED = re.compile("%(25|3A|23)")  # the separators, where they stand in an id


def ids_of(custom_id: str, prefix: str | None = None) -> Ids:
    """The two ids in a request's name, ``PREFIX_ID1_vs_ID2``, or ``ID1:ID2#1`` as run files name pairs.

    Args:
        custom_id: the name.
        prefix: what stands before the first id; by default everything up to the first underscore.

    Returns:
        The ids; None twice when the name does not say.

    Example:
        >>> ids_of("EXP_stu_01_vs_stu_02")
        ('stu_01', 'stu_02')
        >>> ids_of("stu_01:stu_02#1")
        ('stu_01', 'stu_02')
        >>> ids_of("EXP_A_vs_B_vs_C")
        (None, None)
    """
    if prefix is None and (own := _BY_KEY.fullmatch(custom_id)):
        one, two = (_ESCAPED.sub(lambda found: chr(int(found[1], 16)), part) for part in own.groups())
        return one, two
    parts = custom_id.split("_vs_")
    if len(parts) != 2 or not all(parts):
        return None, None
    first, second = parts
    if prefix is not None:
        return (first.removeprefix(f"{prefix}_"), second) if first.startswith(f"{prefix}_") else (None, None)
    _, underscore, rest = first.partition("_")
    return (rest if underscore and rest else first), second


class RequestNames:
    """Finds the two samples of every request in one file of results.

    Args:
        results: the file of results.
        requests: ``custom_id ID1 ID2``; the only source of ids when it is given.
        prefix: what stands before the first id in a name.
        run: the run file of the pipeline that made the requests; by default it is looked for beside the results.

    Attributes:
        unknown: the names for which there are no ids, in their order.
        unresolved: the first name of our own pipeline whose pairs were not found; None when there is none.
    """

    def __init__(
        self,
        results: Path,
        requests: Table | None = None,
        prefix: str | None = None,
        run: str | os.PathLike[str] | None = None,
    ) -> None:
        self._results, self._prefix, self._run = results, prefix, run
        self._given = None if requests is None else _from_table(requests)
        self._by_key: dict[str, Mapping[str, tuple[str, str]]] = {}
        self.unknown: list[str] = []
        self.unresolved: str | None = None

    def ids(self, name: str) -> Ids:
        """The first and the second sample of a request, as they were shown; None twice when nothing says."""
        own = own_name(name)
        if self._given is not None:
            found = _looked_up(self._given, name)
        elif own is not None:
            found = _looked_up(self._pairs_of(own[0]), name)
            if found[0] is None:
                self.unresolved = self.unresolved or name
        else:
            found = ids_of(name, self._prefix)
        if found[0] is None:
            self.unknown.append(name)
        return found

    def _pairs_of(self, key: str) -> Mapping[str, tuple[str, str]]:
        """The pairs of one batch of our own, by the names of their requests."""
        if key not in self._by_key:
            given = self._run is not None
            self._by_key[key] = self._from_run(key) if given else self._from_file(key) or self._from_beside(key)
        return self._by_key[key]

    def _from_run(self, key: str) -> Mapping[str, tuple[str, str]]:
        run = str(self._run)
        if "://" not in run and not Path(run).is_file():
            raise InputError(f"{run}: no such run file")
        if not (found := _of_batch(run, key)):
            raise InputError(f"{run} does not hold the batch {key}; pass the run file of its pipeline")
        return found

    def _from_file(self, key: str) -> Mapping[str, tuple[str, str]]:
        for path in (self._results.with_name(f"{key}.pairs.csv"), _companion(self._results)):
            if path.is_file():
                table = read_table(path, text=_COLUMNS)
                if set(_COLUMNS) <= set(table.columns):
                    return _from_table(table)
        return {}

    def _from_beside(self, key: str) -> Mapping[str, tuple[str, str]]:
        folder = self._results.resolve().parent
        places = [folder / "run.db"]
        if folder.name.endswith(_FOLDER):
            places.insert(0, folder.with_name(folder.name.removesuffix(_FOLDER)))
        return next((found for path in places if path.is_file() and (found := _of_batch(path, key))), {})


def copy_pairs(run: str | os.PathLike[str], key: str, results: Path) -> None:
    """Write ``custom_id ID1 ID2`` of one batch beside a copy of its results, so that the copy can be read alone."""
    rows = [{"custom_id": name, "ID1": one, "ID2": two} for name, (one, two) in _of_batch(run, key).items()]
    write_table(pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String())), _companion(results))


def _companion(results: Path) -> Path:
    return results.with_suffix(".pairs.csv")


def _of_batch(run: str | os.PathLike[str], key: str) -> Mapping[str, tuple[str, str]]:
    with open_run(run) as store:
        found: Sequence[int] = [number for entry in entries(store, [key]) for number in entry.pair_ids]
        return {f"{key}-{number}": (one, two) for number, (_, one, two) in pairs_named(store, found).items()}


def _looked_up(known: Mapping[str, tuple[str, str]], name: str) -> Ids:
    """The ids of a name; a request of ours that shows the pair in reverse has the name of the other with an ``r``."""
    if (found := known.get(name)) is not None:
        return found
    own = own_name(name)
    if own is not None and own[2] and (found := known.get(f"{own[0]}-{own[1]}")) is not None:
        return found[1], found[0]
    return None, None


def _from_table(requests: Table) -> dict[str, tuple[str, str]]:
    frame = to_frame(requests, "requests_tbl")
    if missing := [name for name in _COLUMNS if name not in frame.columns]:
        raise TableError(f"requests_tbl: no column {', '.join(missing)}")
    rows: Iterable[tuple[str, str, str]] = frame.select(pl.col(*_COLUMNS).cast(pl.String)).iter_rows()
    return {name: (first, second) for name, first, second in rows}
