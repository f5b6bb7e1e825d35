"""What the commands share: options, tables on the screen and in files, and how failure looks."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairscale.core.addresses import without_login
from pairscale.core.display import as_cell, printable, text_lines

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.errors import PairscaleError

__all__ = [
    "as_argument",
    "chart_file",
    "complain",
    "emit",
    "error_line",
    "in_shell",
    "printable",
    "resumable",
    "say",
    "say_unsaved",
    "show_table",
    "terminal_width",
]

_PIPE_WIDTH = 140

_ARGUMENT = re.compile(
    r"(?:\b(btl_config|adaptive_config|judge_args):? )?(?:`([a-z_]+)=([^`]*)`|\b([a-z_]+)=(['\"])(\w+)\5)"
)
_CONFIGURED = re.compile(r"^(?:adaptive_config|btl_config): ")
_OTHER_NAMES = {"pair_pct": "share", "fit_fn": "fit"}
_CARRIERS = {"btl_config": "--set", "adaptive_config": "--set", "judge_args": "--judge-arg"}


def say(message: str) -> None:
    """A line for the person, on standard error."""
    typer.echo(message, err=True)


def as_argument(run: str) -> str:
    """A run file or an address for a command line: without a login, and quoted where a shell would take it apart."""
    return shlex.quote(without_login(run))


def say_unsaved(run: object | None) -> None:
    """Note that nothing is saved without a run file."""
    if run is None:
        say("note: without --run, nothing is saved if this is interrupted")


def complain(kind: str, message: str) -> None:
    """An error or a note, as one line on standard error."""
    say(f"{kind}: {printable(in_shell(message))}")


def error_line(error: PairscaleError) -> str:
    """What an error says, with the options of the command in place of the arguments of functions."""
    message = str(error)
    argument = getattr(error, "argument", None)
    if argument is not None and message.startswith(argument):
        rest = message.removeprefix(argument)
        if _CONFIGURED.match(argument):
            return f"--set {_CONFIGURED.sub('', argument)}{rest}"
        if argument.isidentifier():
            return f"{_option(argument)}{rest}"
    return message


def in_shell(message: str) -> str:
    """A message with options in place of the arguments that it speaks of."""
    return _ARGUMENT.sub(_spelled, message)


def _spelled(argument: re.Match[str]) -> str:
    name = argument[2] or argument[4]
    value = argument[3] or argument[6]
    if argument[1]:
        return f"{_CARRIERS[argument[1]]} {name}={value}"
    if name == "unconnected":
        return "--separate"
    return _option(name) if value in ("", None, "True") else f"{_option(name)} {value}"


def _option(name: str) -> str:
    return f"--{_OTHER_NAMES.get(name, name).replace('_', '-')}"


def chart_file(path: Path | None) -> Path | None:
    """The file of the chart, refused before any work is done."""
    if path is None:
        return None
    from pairscale.reporting.vega import require_chart_file

    return require_chart_file(path, "--chart")


@contextmanager
def resumable(kept: object | None) -> Iterator[None]:
    """On Ctrl-C and SIGTERM, exit with 130 or 143, after it was said where the answers are and how to resume.

    Args:
        kept: the file that holds the answers; None when nothing is kept.
    """
    from pairscale.runtime import sync

    try:
        with sync.resumable(kept):
            yield
    except (KeyboardInterrupt, sync.Terminated) as stop:
        raise typer.Exit(143 if isinstance(stop, sync.Terminated) else 130) from None


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
        from pairscale.core.files import write_table

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
