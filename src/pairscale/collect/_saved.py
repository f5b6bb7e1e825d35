"""The CSV kept beside a run: rows are added as answers come in, and an older file is taken up again."""

from __future__ import annotations

import csv
import io
import os
from contextlib import suppress
from pathlib import Path

import polars as pl

from pairscale.core.encodings import read_text
from pairscale.core.errors import FileFormatError, StoreFullError
from pairscale.core.files import replacing
from pairscale.core.formulas import guarded_frame, unguarded_frame
from pairscale.core.notices import notice
from pairscale.core.options import FilePath
from pairscale.core.tables import RESULTS, require_columns

_IDS = ("ID1", "ID2", "better_id")


class SavedResults:
    """A CSV of results that survives interruption; also one that the R package wrote.

    Attributes:
        rows: what the file held when it was opened, with all columns of results and those of its own.
    """

    def __init__(self, path: FilePath) -> None:
        self._path = Path(path)
        self.rows = pl.DataFrame(schema=RESULTS)
        if self._path.exists() and self._path.stat().st_size:
            self.rows = pl.concat([self.rows, _read(self._path)], how="diagonal")
        with replacing(self._path) as temporary:  # also completes a header, and drops a torn last line
            guarded_frame(self.rows).write_csv(temporary)
        self._file = self._path.open("ab")

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows, and have them on the disk before returning."""
        if rows.is_empty():
            return
        lines = guarded_frame(pl.concat([self.rows.clear(), rows], how="diagonal")).write_csv(include_header=False)
        try:
            self._file.write(lines.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreFullError(f"{self._path} cannot be written: {error.strerror}; make room and continue") from None

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # rows that could not be written, which was reported
            self._file.close()


def _read(path: Path) -> pl.DataFrame:
    csv.field_size_limit(100_000_000)
    try:
        header, *records = csv.reader(io.StringIO(read_text(path), newline=""))
        if records and len(records[-1]) != len(header):
            records.pop()
            notice(f"{path}: the last line is incomplete; its pair is asked again")
        cells = dict(zip(header, zip(*records, strict=True), strict=True)) if records else {}
        frame = unguarded_frame(pl.DataFrame(cells, schema=dict.fromkeys(header, pl.String())))
        require_columns(frame, _IDS, "the table")
        # An id may really be NA, which in other columns means that there is nothing.
        frame = frame.with_columns(pl.exclude(*_IDS).replace({"": None, "NA": None}))
        return frame.with_columns(
            _numbers(frame[name]) for name, kind in RESULTS.items() if kind.is_numeric() and name in frame.columns
        )
    except (csv.Error, ValueError) as error:
        raise FileFormatError(f"{path} is not a CSV of results: {error}; name another `save_path=`") from None


def _numbers(cells: pl.Series) -> pl.Series:
    numbers = cells.cast(pl.Float64, strict=False)
    is_wrong = ~numbers.is_between(-(2.0**63), 2.0**63, closed="none").fill_null(value=False)  # nor NaN
    wrong = cells.filter(is_wrong).drop_nulls()
    if wrong.len():
        raise ValueError(f"{cells.name}: {wrong[0]!r:.60} is not a number")
    return numbers.cast(RESULTS[cells.name])
