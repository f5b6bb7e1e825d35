"""``pairscale templates``."""

from __future__ import annotations

from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, emit

__all__ = ["command"]


def command(
    name: Annotated[str | None, typer.Argument(help="Show and check this one: a name, or a .txt file.")] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """List the prompt templates, or show one.

    A template of your own is a text file with {TRAIT_NAME}, {TRAIT_DESCRIPTION}, {SAMPLE_1} and {SAMPLE_2}.
    """
    import polars as pl

    from pairscale.prompts import template_from

    builtin = set(ps.list_prompt_templates(include_registered=False))
    found = [template_from(name)] if name is not None else [template_from(n) for n in ps.list_prompt_templates()]
    rows = [{"name": key, "builtin": key in builtin, "text": text} for key, text in found]

    def show() -> None:
        if name is not None:
            typer.echo(found[0][1])
            return
        for key, text in found:
            first = next((line for line in text.splitlines() if line.strip()), "")
            typer.echo(f"{key:<12} {first[:100]}")
        typer.echo("\npairscale templates NAME shows one")

    emit({"templates": rows}, pl.DataFrame(rows), as_json=as_json, out=out, show=show)
