"""``pairscale audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from pairscale.cli._common import Json, Out, emit, printable

__all__ = ["EXAMPLES", "command"]

EXAMPLES = ("pairscale audit run.db", "pairscale audit run.db --json")


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file.")],
    selector: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Who chose the pairs, when it was a selector of your own."),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Recompute every choice and every stop of an adaptive run from its log.

    The log's hash chain is checked first: it finds any row that was changed, removed or added. Then the run is
    replayed from its seed and its outcomes. Every pair must come out as it was asked, and every stop must follow from
    the figures that were logged with it. The exit code is 0 when all is reproduced, and 1 with the first difference
    otherwise.
    """
    import polars as pl

    from pairscale.adaptive.audit import audit_run

    report = audit_run(run, selector=selector)
    document = {"passed": report.passed, "steps": report.steps, "refits": report.refits, "problem": report.problem}
    emit(document, pl.DataFrame([document]), as_json=as_json, out=out, show=lambda: typer.echo(printable(str(report))))
    if not report.passed:
        raise typer.Exit(1)
