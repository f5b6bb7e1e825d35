"""``pairscale import``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._common import Arguments, say
from pairscale.cli.from_verb import from_verb
from pairscale.core.notices import plural


@from_verb("store.transfer.import_run", "PATH RUN", hidden="encoding")
def command(arguments: Arguments) -> None:
    """Enter the comparisons of a table into a run file: all of it, or nothing.

    A table that `pairscale export` wrote is imported with what it wrote beside it (.logs.jsonl), into a new run file.
    The hash chain begins with the import, and names the digest of the run that was exported.

    Args:
        path: A table of results of any form that `pairscale fit` takes.
        samples: The texts, unless the run file has them: a table or a folder.

    Examples:
        pairscale import comparisons.csv run.db --samples essays.csv
        pairscale import votes.csv run.db --a-col x --b-col y --winner-col won
    """
    new = ps.import_run(**arguments)
    say(f"{plural(new, 'new comparison')} in {arguments['run']}")
