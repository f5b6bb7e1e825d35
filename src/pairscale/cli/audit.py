"""``pairscale audit``."""

from __future__ import annotations

from pairscale.cli._common import Arguments, Output, echo, fields
from pairscale.cli.from_verb import from_verb


@from_verb("auditing.audit", "RUN...")
def command(arguments: Arguments, emit: Output) -> int:
    """Check that nothing in a run file was changed, and recompute every choice and every stop of an adaptive run.

    All rows are compared with the hash chain: texts, pairs, conditions, attempts, costs, replies, comparisons, labels
    and logs. Comparisons must follow from the attempts that gave them. An adaptive run is replayed from its seed and
    its outcomes: every pair must be the one that was asked, and every stop must follow from the figures logged with it.
    The exit code is 0 when no difference is found, else 1; differences are named by table and row.

    The chain finds every row that was changed, added or removed, with two exceptions. A file whose hashes were all
    computed again is found with --digest: note the digest that `pairscale status` shows when a run has ended, and keep
    it elsewhere. An end that was cut off, rows and chain together, is found with --digest, too, and with --closed
    unless it was cut off exactly where the run was closed before.

    Args:
        run: A run file; several, a folder of them, or a pattern such as 'shards/*.db'.
        selector: The selector that chose the pairs, as module:function, if it was your own.
        digest: The digest that the run must have, which you kept elsewhere.
        closed: Fail unless the run was closed, so that no end was cut off.

    Examples:
        pairscale audit run.db
        pairscale audit run.db --digest 6f0c…
        pairscale audit run.db --closed
        pairscale audit shards/
        pairscale audit run.db --json
    """
    import polars as pl

    from pairscale.auditing import audit

    report = audit(**arguments)
    row = fields(report, "passed preset steps refits problem digest") | {"n_problems": len(report.problems)}
    emit(row | fields(report, "problems rows imported digests"), pl.DataFrame([row]), lambda: echo(str(report)))
    return 0 if report.passed else 1
