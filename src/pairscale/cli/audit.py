"""``pairscale audit``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pairscale.cli import _options as opt
from pairscale.cli._common import emit, printable

EXAMPLES = (
    "pairscale audit run.db",
    "pairscale audit run.db --digest 6f0c…",
    "pairscale audit run.db --closed",
    "pairscale audit shards/",
    "pairscale audit run.db --json",
)


def command(
    run: opt.Runs,
    selector: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="The selector that chose the pairs, if it was your own."),
    ] = None,
    digest: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="The digest that the run must have, which you kept elsewhere."),
    ] = None,
    closed: Annotated[
        bool, typer.Option("--closed", help="Fail unless the run was closed, so that no end was cut off.")
    ] = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Check that nothing in a run file was changed, and recompute every choice and every stop of an adaptive run.

    All rows are compared with the hash chain: texts, pairs, conditions, attempts, costs, replies, comparisons, labels
    and logs. Comparisons must follow from the attempts that gave them. An adaptive run is replayed from its seed and
    its outcomes: every pair must come out as it was asked, and every stop must follow from the figures that were logged
    with it. The exit code is 0 when no difference is found, else 1; differences are named by table and row.

    The chain finds every row that was changed, added or removed, with two exceptions. A file whose hashes were all
    computed again is found with --digest: note the digest that `pairscale status` shows when a run has ended, and keep
    it elsewhere. An end that was cut off, rows and chain together, is found with --digest, too, and with --closed
    unless it was cut off exactly where the run was closed before.
    """
    import polars as pl

    from pairscale.auditing import audit

    report = audit(opt.single(run), selector=selector, digest=digest, closed=closed)
    figures = {"steps": report.steps, "refits": report.refits, "problem": report.problem}
    document: dict[str, Any] = {"passed": report.passed, "preset": report.preset, **figures}
    document |= {"n_problems": len(report.problems), "digest": report.digest}
    if report.digests:
        document["digests"] = dict(report.digests)
    details = {"problems": list(report.problems), "rows": dict(report.rows), "imported": report.imported}
    emit(
        document | details,
        pl.DataFrame([{name: value for name, value in document.items() if name != "digests"}]),
        as_json=as_json,
        out=out,
        show=lambda: typer.echo("\n".join(map(printable, str(report).splitlines()))),
    )
    if not report.passed:
        raise typer.Exit(1)
