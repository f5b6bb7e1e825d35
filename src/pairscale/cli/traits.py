"""``pairscale traits``."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, emit

__all__ = ["command"]


def command(
    name: Annotated[str | None, typer.Argument(help="Show this one only.")] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """List what texts can be judged on, with the definitions that judges are given."""
    import polars as pl

    traits = [ps.trait_description(name)] if name is not None else list(ps.list_traits())
    rows = [{"key": trait.key, "name": trait.name, "description": trait.description} for trait in traits]

    def show() -> None:
        for row in rows:
            typer.echo(f"{row['key']}  ({row['name']})")
            typer.echo(textwrap.indent(textwrap.fill(str(row["description"]), 100), "    "))

    emit({"traits": rows}, pl.DataFrame(rows), as_json=as_json, out=out, show=show)
