"""What the commands share: options, tables on the screen and in files, and how failure looks."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairscale.display import as_cell, printable, text_lines

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Concurrency",
    "Encoding",
    "IdCol",
    "Json",
    "MaxCost",
    "Out",
    "Retries",
    "Seed",
    "TextCol",
    "Timeout",
    "chart_file",
    "complain",
    "emit",
    "printable",
    "resumable",
    "say",
    "show_table",
    "terminal_width",
]

_PIPE_WIDTH = 140

# Functions speak of their arguments; whoever reads it here has options.
_PYTHON = (
    ('with pairscale.fit_bt_model(..., unconnected="separate")', "with --separate"),
    ("name another save_path", "name another --save-path"),
    ("name it in without=", "give its id to --without"),
    ("without: the run", "--without: the run"),
    ("pair_pct", "share"),
    ("; or define one with custom_description", ""),
    ("bt_data", "the results"),
)
_ARGUMENT = re.compile(r"\b(encoding|id_col|text_col|n_pairs|share)=(?=(\w?))")
_REFUSED = re.compile(
    r"^(bootstrap|concurrency|eps|id_col|level|max_comparisons|max_cost|max_minutes|n_pairs|reliability|retries|runs|seed"
    r"|share|text_col|workers)(?=( as a position)? must be )"
)


def say(message: str) -> None:
    """A line for the person, on standard error."""
    typer.echo(message, err=True)


def complain(kind: str, message: str) -> None:
    """An error or a note, as one line on standard error."""
    for python, option in _PYTHON:
        message = message.replace(python, option)
    message = _ARGUMENT.sub(lambda match: f"--{match[1].replace('_', '-')}{' ' * bool(match[2])}", message)
    message = _REFUSED.sub(lambda match: f"--{match[1].replace('_', '-')}", message)
    say(f"{kind}: {printable(message)}")


def _writable(out: Path | None) -> Path | None:
    """The file to write, refused before any work is done rather than after it."""
    if out is None:
        return None
    from importlib.util import find_spec
    from tempfile import TemporaryFile

    from pairscale.errors import FileFormatError, MissingExtraError
    from pairscale.files import TABLE_SUFFIXES
    from pairscale.options import require_suffix

    require_suffix(out, "--out", TABLE_SUFFIXES)
    if out.is_dir():
        raise FileFormatError(f"--out {out} is a folder; name a file in it")
    if out.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise MissingExtraError("writing an Excel file", "excel")
    try:
        with TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise FileFormatError(f"--out {out} cannot be written: {error.strerror}") from None
    return out


def chart_file(path: Path | None) -> Path | None:
    """The file of the chart, refused before any work is done."""
    if path is None:
        return None
    from pairscale.report.charts import require_chart_file

    return require_chart_file(path, "--chart")


Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=_writable,
        help="Write the whole table to this file: csv, tsv, jsonl, json, parquet or xlsx, by its ending.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same pairs.")]
IdCol = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column of ids; otherwise the one called ID, or the first.")
]
TextCol = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column of texts; otherwise the one called text, or the second.")
]
Concurrency = Annotated[int, typer.Option(min=1, metavar="N", help="Questions open at once.")]
Retries = Annotated[int, typer.Option(min=0, metavar="N", help="Retries after a transient failure.")]
Timeout = Annotated[float, typer.Option(min=0.001, metavar="S", help="Seconds that one answer may take.")]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Stop before the run, all calls together, costs more; needs known prices."),
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of text files that are not UTF-8, such as cp1252 or utf-16.")
]


@contextmanager
def resumable(kept: object | None) -> Iterator[None]:
    """On Ctrl-C and SIGTERM, say where the answers are and how to resume, and exit with 130 or 143.

    Args:
        kept: the file that holds the answers; None when nothing is kept.
    """
    from pairscale.runtime.sync import Terminated

    try:
        yield
    except (KeyboardInterrupt, Terminated) as stop:
        where = (
            f"The answers so far are in {kept}. Run the same command again to resume." if kept else "Nothing was kept."
        )
        is_terminated = isinstance(stop, Terminated)
        say(f"{'terminated' if is_terminated else 'interrupted'}. {where}")
        raise typer.Exit(143 if is_terminated else 130) from None


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
        say(f"wrote {table.height:,} row{'s' * (table.height != 1)} to {out}")
    if as_json:
        plain_ascii = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
        typer.echo(json.dumps(_plain(document), ensure_ascii=plain_ascii, indent=2))
    elif out is None:
        show()


def terminal_width() -> int:
    """How many columns there are: of the terminal, or enough for a file or another program."""
    if os.environ.get("COLUMNS", "").isdecimal():
        return max(20, int(os.environ["COLUMNS"]))
    try:
        return max(20, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError, AttributeError):  # not a terminal
        return _PIPE_WIDTH


def show_table(table: pl.DataFrame, *, most: int = 60, digits: int = 3) -> None:
    """A table on the screen: the first rows, numbers to the right and never cut.

    Where it is too wide, texts are cut shorter; if that is not enough, the last columns are left out, and named.
    """
    numeric = [dtype.is_numeric() for dtype in table.dtypes]
    grid = [list(table.columns), *([as_cell(value, digits) for value in row] for row in table.head(most).iter_rows())]
    (head, *rest), shown = text_lines(grid, numeric, terminal_width())
    typer.echo(typer.style(head, bold=True))
    for line in rest:
        typer.echo(line)
    hidden = table.columns[shown:]
    if table.height > most or hidden:
        more = [f"{table.height - most:,} more rows"] if table.height > most else []
        more += [f"{len(hidden)} more columns ({', '.join(hidden)})"] if hidden else []
        typer.echo(f"… {', '.join(more)}: --out FILE writes them all")


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
