"""What the commands share: options, tables on the screen and in files, and how failure looks."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Encoding", "IdCol", "Json", "Out", "Seed", "TextCol", "emit", "say", "show_table"]

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Write the table to this file: csv, tsv, jsonl, json, parquet or xlsx by its ending."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
IdCol = Annotated[str | None, typer.Option(help="The column of ids [default: ID, else the first].")]
TextCol = Annotated[str | None, typer.Option(help="The column of texts [default: text, else the second].")]
Encoding = Annotated[str | None, typer.Option(help="Of text files that are neither UTF-8 nor marked.")]


def say(message: str) -> None:
    """A line for the person, on standard error."""
    typer.echo(message, err=True)


def emit(
    document: Mapping[str, Any],
    table: pl.DataFrame,
    *,
    as_json: bool,
    out: Path | None,
    show: Callable[[], None],
) -> None:
    """The result of a command: to a file, as JSON, or on the screen."""
    if out is not None:
        from pairscale.files import write_table

        write_table(table, out)
        say(f"wrote {table.height:,} rows to {out}")
    if as_json:
        sys.stdout.write(json.dumps(_plain(document), ensure_ascii=False, indent=2) + "\n")
    elif out is None:
        show()


def show_table(table: pl.DataFrame, title: str | None = None, *, most: int = 60, digits: int = 3) -> None:
    """A table on the screen: the first rows, numbers to the right, texts cut short."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(title=title, title_justify="left", header_style="bold", pad_edge=False, box=None)
    for name, dtype in table.schema.items():
        grid.add_column(name, justify="right" if dtype.is_numeric() else "left", no_wrap=True, overflow="ellipsis")
    for row in table.head(most).iter_rows():
        grid.add_row(*(_cell(value, digits) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False, emoji=False)
    console.print(grid)
    if table.height > most:
        console.print(f"… and {table.height - most:,} more rows; --out FILE writes them all")


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return " ".join(str(value).split())[:60]


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return [_plain(row) for row in value.iter_rows(named=True)]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
