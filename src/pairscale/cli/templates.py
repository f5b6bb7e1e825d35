"""``pairscale templates``."""

from __future__ import annotations

from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, printable, say, terminal_width

EXAMPLES = ("pairscale templates", "pairscale templates default > mine.txt", "pairscale templates mine.txt")


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=_names.templates, help="Show and check this one: a name, or a .txt file."
        ),
    ] = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """List the prompt templates, or show and check one.

    A template of your own is a text file with {TRAIT_NAME}, {TRAIT_DESCRIPTION}, {SAMPLE_1} and {SAMPLE_2}. Start
    from one of these, and check yours by showing it.
    """
    import polars as pl

    from pairscale.core.prompts import template_from

    builtin = set(ps.list_prompt_templates(include_registered=False))
    names = [name] if name is not None else ps.list_prompt_templates()
    found = list(dict(map(template_from, names)).items())  # test1 is another name of advocate, and so on
    rows = [{"name": key, "builtin": key in builtin, "text": text} for key, text in found]

    def show() -> None:
        if name is not None:
            typer.echo(found[0][1].removesuffix("\n"))  # as the file is, so that it can be sent to one
            return
        widest = max(len(key) for key, _ in found)
        for key, text in found:
            typer.echo(f"{key:<{widest}}  {_gist(text, terminal_width() - widest - 2)}")
        say("\npairscale templates NAME shows one")

    emit({"templates": rows}, pl.DataFrame(rows), as_json=as_json, out=out, show=show)


def _gist(text: str, width: int) -> str:
    """The first words of a template that are no heading."""
    words = printable(" ".join(line for line in text.splitlines() if not line.startswith("#")))
    return words if len(words) <= width else words[: max(width - 1, 1)].rstrip() + "…"
