"""The CSV kept beside a run: rows are added as answers come in, and an older file is taken up again."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairscale.core.encodings import read_text
from pairscale.core.errors import FileFormatError, StoreError, StoreFullError
from pairscale.core.files import replacing
from pairscale.core.formulas import guarded, unguarded
from pairscale.core.notices import notice
from pairscale.core.tables import RESULTS, listed
from pairscale.store.database import scrub_surrogates

_NUMBERS = {name: kind for name, kind in RESULTS.items() if kind.is_numeric()}


class SavedResults:
    """A CSV of results that survives interruption; also one that the R package wrote.

    Attributes:
        rows: what the file held when it was opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self.rows: list[dict[str, Any]] = []
        extra: list[str] = []
        if self._path.exists() and self._path.stat().st_size:
            header, self.rows = _read(self._path)
            extra = [name for name in header if name not in RESULTS]
        self._columns = [*RESULTS, *extra]
        with replacing(self._path) as temporary:  # also completes a header, and drops a torn last line
            temporary.write_text(self._lines([self._columns, *(self._cells(row) for row in self.rows)]), "utf-8")
        self._file = self._path.open("a", encoding="utf-8", newline="")

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, and have them on the disk before returning."""
        lines = self._lines([self._cells(row) for row in rows])
        try:
            try:
                self._file.write(lines)
            except UnicodeEncodeError:
                self._file.write(scrub_surrogates(lines))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreFullError(f"{self._path} cannot be written: {error.strerror}; make room and continue") from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:  # the last rows of a full disk; they are in the run file, if there is one
            raise StoreError(f"{self._path} cannot be closed: {error.strerror}") from None

    def _cells(self, row: Mapping[str, Any]) -> list[Any]:
        return [row.get(name) for name in self._columns]

    @staticmethod
    def _lines(rows: Sequence[Sequence[Any]]) -> str:
        buffer = io.StringIO()
        cells = ([guarded(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
        csv.writer(buffer, lineterminator="\n").writerows(cells)
        return buffer.getvalue()


def _read(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    csv.field_size_limit(100_000_000)
    try:
        header, *records = [
            list(map(unguarded, record)) for record in csv.reader(io.StringIO(read_text(path), newline=""))
        ]
        if records and len(records[-1]) != len(header):
            records.pop()
            notice(f"{path}: the last line is incomplete and is asked again")
        rows = [dict(zip(header, record, strict=True)) for record in records]
        missing = [name for name in ("ID1", "ID2", "better_id") if name not in header]
        if missing:
            raise ValueError(f"no column {listed(missing)}")
        return header, [{name: _value(name, cell) for name, cell in row.items()} for row in rows]
    except (csv.Error, ValueError, OverflowError) as error:
        raise FileFormatError(f"{path} is not a CSV of results: {error}; name another `save_path=`") from None


def _value(name: str, cell: str) -> Any:
    """A cell; an id may really be ``NA``, which in other columns means that there is nothing."""
    if name in ("ID1", "ID2", "better_id"):
        return cell
    if cell in ("", "NA"):
        return None
    if name not in _NUMBERS:
        return cell
    number = float(cell)
    if not abs(number) < 2**63:  # what a column of whole numbers can hold; not NaN
        raise ValueError(f"{name}: {cell!r:.60} is not a number")
    return int(number) if _NUMBERS[name].is_integer() else number
