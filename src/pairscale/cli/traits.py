"""``pairscale traits``."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, terminal_width

EXAMPLES = ("pairscale traits", "pairscale traits clarity")

_INDENT = "    "


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=_names.traits, help="Show this one only.")
    ] = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """List what texts can be judged on, with the definitions that judges are given.

    The name in front is what `pairscale judge --trait` takes.
    """
    import polars as pl

    traits = [ps.trait_description(name)] if name is not None else list(ps.list_traits())
    rows = [{"key": trait.key, "name": trait.name, "description": trait.description} for trait in traits]

    def show() -> None:
        width = min(terminal_width(), 100)
        for row in rows:
            typer.echo(f"{typer.style(row['key'], bold=True)}  ({row['name']})")
            typer.echo(textwrap.fill(str(row["description"]), width, initial_indent=_INDENT, subsequent_indent=_INDENT))

    emit({"traits": rows}, pl.DataFrame(rows), as_json=as_json, out=out, show=show)
