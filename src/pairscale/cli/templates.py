"""``pairscale templates``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._common import Output, echo, say, terminal_width
from pairscale.cli.from_verb import from_verb
from pairscale.core.display import printable


@from_verb("", "[NAME]")
def command(emit: Output, name: str | None = None) -> None:
    """List the prompt templates, or show and check one.

    A template of your own is a text file with {TRAIT_NAME}, {TRAIT_DESCRIPTION}, {SAMPLE_1} and {SAMPLE_2}. Start
    from one of these, and check yours by showing it.

    Args:
        name: Show and check this one: a name, or a .txt file.

    Examples:
        pairscale templates
        pairscale templates default > mine.txt
        pairscale templates mine.txt
    """
    import polars as pl

    from pairscale.core.prompts import template_from

    names = ps.list_prompt_templates() if name is None else [name]
    texts = dict(map(template_from, names))  # test1 is another name of advocate, and so on
    rows = [{"name": key, "text": text} for key, text in texts.items()]

    def show() -> None:
        if name is not None:
            echo(rows[0]["text"].removesuffix("\n"))  # as the file is, so that it can be sent to one
            return
        for key, text in texts.items():
            words = printable(" ".join(line for line in text.splitlines() if not line.startswith("#")))
            echo(f"{key:<12}{words}"[: terminal_width()])
        say("\npairscale templates NAME shows one")

    emit({"templates": rows}, pl.DataFrame(rows), show)
