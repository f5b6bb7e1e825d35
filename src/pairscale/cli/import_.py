"""``pairscale import``."""

from __future__ import annotations

from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import say

EXAMPLES = (
    "pairscale import comparisons.csv run.db --samples essays.csv",
    "pairscale import votes.csv run.db --a-col x --b-col y --winner-col won",
)


def command(
    path: Annotated[
        str, typer.Argument(metavar="RESULTS", help="A table of results of any form that `pairscale fit` takes.")
    ],
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file; created if it is missing.")],
    samples: Annotated[
        str | None, typer.Option(metavar="DATA", help="The texts, unless the run file has them: a table or a folder.")
    ] = None,
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    winner_col: opt.WinnerCol = None,
) -> None:
    """Enter the comparisons of a table into a run file: all of it, or nothing.

    What `pairscale export` wrote beside the table (.logs.jsonl) is imported as well, and in a new run file the hash
    chain stays, so that `pairscale audit` compares it with what was written when it was judged.
    """
    new = ps.import_run(path, run, samples, a_col=a_col, b_col=b_col, winner_col=winner_col)
    say(f"{new:,} new comparison{'s' * (new != 1)} in {run}")
