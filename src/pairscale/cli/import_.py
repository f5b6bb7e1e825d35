"""``pairscale import``."""

from __future__ import annotations

from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import say
from pairscale.cli._groups import ResultCols, with_groups

EXAMPLES = (
    "pairscale import comparisons.csv run.db --samples essays.csv",
    "pairscale import votes.csv run.db --a-col x --b-col y --winner-col won",
)


@with_groups
def command(
    path: Annotated[
        str, typer.Argument(metavar="RESULTS", help="A table of results of any form that `pairscale fit` takes.")
    ],
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file; created if it is missing.")],
    samples: Annotated[
        str | None, typer.Option(metavar="DATA", help="The texts, unless the run file has them: a table or a folder.")
    ] = None,
    columns: ResultCols = ResultCols(),
) -> None:
    """Enter the comparisons of a table into a run file: all of it, or nothing.

    A table that `pairscale export` wrote is imported with what it wrote beside it (.logs.jsonl), into a new run file.
    The hash chain begins with the import, and names the digest of the run that was exported.
    """
    new = ps.import_run(path, run, samples, **vars(columns))
    say(f"{new:,} new comparison{'s' * (new != 1)} in {run}")
