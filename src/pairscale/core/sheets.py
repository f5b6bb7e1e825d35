"""Tables as sheets of an Excel file: what a cell can hold, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.tables import row_numbers

_EXCEL_ROWS, _EXCEL_COLUMNS, _EXCEL_TEXT, _EXCEL_DIGITS, _EXCEL_YEAR = 1_048_576, 16_384, 32_767, 15, 1901
_EXCEL_CELLS: dict[Any, str] = {pl.Boolean: "boolean", pl.Date: "datetime", pl.Datetime: "datetime"}
_DATE_FORMATS: dict[Any, str] = {pl.Date: "yyyy-mm-dd", pl.Datetime: "yyyy-mm-dd hh:mm:ss"}


def for_excel(frame: pl.DataFrame, target: Path) -> pl.DataFrame:
    """The table as a sheet can hold it; what it would cut off is refused."""
    if frame.height >= _EXCEL_ROWS or frame.width > _EXCEL_COLUMNS:
        raise FileFormatError(
            f"{target}: a table of {frame.height:,} rows and {frame.width:,} columns is too large for an Excel sheet; "
            "write csv or parquet"
        )
    frame = frame.select(_excel_column(column) for column in frame)
    for column in frame.select(pl.col(pl.String)):
        # Excel counts as UTF-16 does: an emoji is two.
        size = (column.str.len_chars() + column.str.count_matches(r"[\x{10000}-\x{10FFFF}]")).fill_null(0)
        if (size > _EXCEL_TEXT).any():
            raise FileFormatError(
                f"{target}: an Excel cell holds {_EXCEL_TEXT:,} characters, and column {column.name!r} has more in "
                f"{row_numbers(size > _EXCEL_TEXT)}; write csv or parquet"
            )
    return frame


def _excel_column(column: pl.Series) -> pl.Series:
    """The column as numbers of 15 digits, truth values, times without a zone, or text."""
    kind = column.dtype
    if kind.is_integer():
        digits = column.cast(pl.String).str.strip_chars("-").str.len_chars()
        return column.cast(pl.String) if (digits > _EXCEL_DIGITS).any() else column
    if kind.is_float():
        return column.fill_nan(None)
    if isinstance(kind, pl.Datetime) and kind.time_zone:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if isinstance(kind, pl.Date | pl.Datetime):
        return column.cast(pl.String) if (column.dt.year() < _EXCEL_YEAR).any() else column
    return column if kind.is_numeric() or kind == pl.Boolean else column.cast(pl.String)


def write_sheets(sheets: Mapping[str, pl.DataFrame], path: Path) -> None:
    """Write tables as sheets, each with the names of its columns in bold, which stay in sight.

    Raises:
        MissingExtraError: without the package that writes Excel files.
    """
    try:
        import xlsxwriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing an Excel file", "documents") from error
    with xlsxwriter.Workbook(str(path), {"nan_inf_to_errors": True}) as book:
        bold = book.add_format({"bold": True})
        styles = {kind: (book.add_format({"num_format": code}),) for kind, code in _DATE_FORMATS.items()}
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name)
            for at, column in enumerate(frame):
                _write_column(sheet, at, column, bold, styles)
            sheet.freeze_panes(1, 0)


def _write_column(sheet: Any, at: int, column: pl.Series, bold: Any, styles: Mapping[Any, tuple[Any, ...]]) -> None:
    kind = type(column.dtype)
    # One kind of cell a column: left to choose, the library would make formulas and links of texts.
    cells = "number" if column.dtype.is_numeric() else _EXCEL_CELLS.get(kind, "string")
    write = getattr(sheet, f"write_{cells}")
    sheet.write_string(0, at, column.name, bold)
    for row, value in enumerate(column, start=1):
        if value is not None:
            write(row, at, value, *styles.get(kind, ()))
