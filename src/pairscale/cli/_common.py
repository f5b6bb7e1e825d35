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

__all__ = [
    "as_argument",
    "chart_file",
    "complain",
    "emit",
    "in_shell",
    "printable",
    "resumable",
    "say",
    "say_unsaved",
    "show_table",
    "terminal_width",
]

_PIPE_WIDTH = 140

# Messages of functions name arguments; users of the command have options.
_PYTHON = (
    ('with pairscale.fit_bt_model(..., unconnected="separate")', "with --separate"),
    ("name another save_path", "name another --save-path"),
    ("Run the same call again", "Run the same command again"),
    ("run the same call again", "run the same command again"),
    ("name it in without=", "give its id to --without"),
    ("without: the run", "--without: the run"),
    ("pair_pct", "share"),
    ("belongs to kind='preferences', not to kind='results'", "belongs to --kind preferences, not to --kind results"),
    ("name it with prompt= or input_col=", "name it with --prompt or --input-col"),
    ("give prompt or input_col, not both", "give --prompt or --input-col, not both"),
    ("prompt and input_col belong to texts", "--prompt and --input-col belong to texts"),
    ("give samples=", "give --samples"),
    ("; or define one with custom_description", ""),
    ("bt_data", "the results"),
    ("manifest with a suite needs run=", "--manifest with a suite needs --run"),
    ("variant, prompt, repeats and variant_timeout", "--variant, --prompt, --repeats and --variant-timeout"),
    ("a suite needs variant_", "a suite needs --variant-"),
    ("suite belongs to two", "--suite belongs to two"),
    ("give terminal or status, not both", "give --terminal or --status, not both"),
    ("give one name to labellers", "give one name to --labellers"),
    ("status changes nothing; leave out labellers", "--status changes nothing; leave out --labellers"),
    ("key belongs to labels of cases", "--key belongs to labels of cases"),
    ("key belongs to labels=", "--key belongs to --labels"),
    ("a_col and b_col belong together", "--a-col and --b-col belong together"),
    (
        "a_col, b_col, winner_col, key and encoding belong to tables",
        "--a-col, --b-col, --winner-col, --key and --encoding belong to tables",
    ),
    (
        "judge human stands alone; people and models are compared with labels",
        "--judge human stands alone; people and models are compared with --labels",
    ),
    ('criterion="more helpful"', '--criterion "more helpful"'),
    ("name a better one with judge=", "name a better one with --judge"),
    ("a_col and b_col", "--a-col and --b-col"),
    ("output_col belongs", "--output-col belongs"),
    ("and strict allows none", "and --strict allows none"),
    ("give skip_unreadable", "give --skip-unreadable"),
    ("update_baseline", "--update-baseline"),
    ("give baseline", "give --baseline"),
    ("with a baseline, those of B alone", "with --baseline, those of B alone"),
    ("give missing=excluded", "give --missing excluded"),
    ("that max_errors allows", "that --max-errors allows"),
    ("or leave out fixed", "or leave out --fixed"),
    ("leave out variant_a and prompt_a", "leave out --variant-a and --prompt-a"),
    ("elsewhere give summary", "elsewhere give --summary"),
    ("step_summary needs", "--step-summary needs"),
    ("judge human answers in ab", "--judge human answers in `pairscale ab`"),
    ("fail_if must", "--fail-if must"),
    ("samples belongs to", "--samples belongs to"),
)
_ARGUMENT = re.compile(
    r"\b(condition|encoding|id_col|text_col|input_col|output_col|a_col|b_col|winner_col|key|n_pairs|samples|share)=(?=(\w?))"
)
_CHOICE = re.compile(r"\b(answer|by|engine|judges|kind|model|prior_sd|repeats|ties|variant)=(['\"])(\w+)\2")
_REFUSED = re.compile(
    r"^(again|base_url|batch_size|bootstrap|cache|concurrency|condition|eps|id_col|interactive|interval|invalid_rate|kind|prompt|input_col|conversational|implicit_prompt"
    r"|labels_per_case|lapse|level|manifest|margin|max_comparisons|max_cost|max_errors|max_minutes|missing|failures|junit|summary|n_boot|n_jobs|n_pairs|out|output_tokens|per_item"
    r"|pilot|price|quantile|reliability|repeats|retries|runs|sd|seconds|seed|segments|share|text_col|timeout|variant_timeout|a_col|b_col|winner_col|encoding)"
    r"(?=( as a position)? must be | belongs to | needs | chooses | is for |: )"
)


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


def in_shell(message: str) -> str:
    """What a function says of its arguments, in the names that the command has for them."""
    for python, option in _PYTHON:
        message = message.replace(python, option)
    message = _CHOICE.sub(lambda match: f"--{match[1].replace('_', '-')} {match[3]}", message)
    message = _ARGUMENT.sub(lambda match: f"--{match[1].replace('_', '-')}{' ' * bool(match[2])}", message)
    return _REFUSED.sub(lambda match: f"--{match[1].replace('_', '-')}", message)


def chart_file(path: Path | None) -> Path | None:
    """The file of the chart, refused before any work is done."""
    if path is None:
        return None
    from pairscale.reporting.charts import require_chart_file

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
