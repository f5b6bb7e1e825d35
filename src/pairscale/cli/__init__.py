"""The command: one file a command, each a thin face of the public functions."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from pairscale._version import __version__
from pairscale.cli import demo, doctor, fit, judge, pairs, status, templates, traits
from pairscale.errors import PairscaleError

__all__ = ["app", "main"]

app = typer.Typer(
    name="pairscale",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: pairscale demo",
)
for module in (demo, pairs, judge, fit, status, templates, traits, doctor):
    app.command(module.__name__.rpartition(".")[2])(module.command)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"pairscale {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Which of two texts is better? Ask it often enough, and get a ranking that you can defend."""


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"note: {record.getMessage()}", err=True)


def main() -> None:
    """Run the command: exit code 0 done, 1 could not be done, 2 wrong usage, 130 interrupted."""
    logging.getLogger("pairscale").addHandler(_Notes())
    logging.getLogger("pairscale").propagate = False
    try:
        app()
    except PairscaleError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output has gone, as in `pairscale traits | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("interrupted; what was done is kept, and the same command goes on from there", err=True)
        sys.exit(130)
    except Exception as error:
        if os.environ.get("PAIRSCALE_DEBUG"):
            raise
        kind = type(error).__name__
        typer.echo(f"error: {kind}: {error} (unexpected: PAIRSCALE_DEBUG=1 shows where; please report it)", err=True)
        sys.exit(1)
