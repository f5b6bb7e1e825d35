"""``pairscale traits``."""

from __future__ import annotations

import textwrap

import pairscale as ps
from pairscale.cli._common import Output, echo, terminal_width
from pairscale.cli.from_verb import from_verb


@from_verb("", "[NAME]")
def command(emit: Output, name: str | None = None) -> None:
    """List what texts can be judged on, with the definitions that judges are given.

    The name in front is what `pairscale judge --trait` takes.

    Args:
        name: Show this one only.

    Examples:
        pairscale traits
        pairscale traits clarity
    """
    import polars as pl

    traits = [ps.trait_description(name)] if name is not None else list(ps.list_traits())
    rows = [{"key": trait.key, "name": trait.name, "description": trait.description} for trait in traits]

    def show() -> None:
        for row in rows:
            echo(f"{row['key']}  ({row['name']})")
            echo(textwrap.indent(textwrap.fill(str(row["description"]), min(terminal_width(), 100) - 4), "    "))

    emit({"traits": rows}, pl.DataFrame(rows), show)
