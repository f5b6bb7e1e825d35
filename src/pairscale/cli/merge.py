"""``pairscale merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import as_argument, emit, say, show_table

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale merge monday.db tuesday.db --out both.db",
    "pairscale merge part-*.db --out whole.db",
)


def command(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="The run files, two or more; they stay as they are.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The run file to write; it must not hold a run.")],
    as_json: opt.Json = False,
) -> None:
    """Merge run files into a new one, without loss: work that was split by hand over machines comes together.

    Texts, attempts, comparisons, logs, labels and costs of all files are in the new one, and `pairscale audit` compares
    them with the hash chains of the files that they are from. What is in several files because one is a copy of
    another is there once. A pair that two files have different answers to is kept twice, as a repeat.

    Files that cannot be one are refused: the same ID with another text, two adaptive runs, a damaged file.
    """
    found = ps.merge(runs, out)
    say(str(found))
    document = {"run": found.run, **found.counts, "sources": found.sources}
    emit(document, found.sources, as_json=as_json, out=None, show=lambda: show_table(found.sources))
    if not as_json:
        say(f"next: pairscale audit {as_argument(found.run)}")
