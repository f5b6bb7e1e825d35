"""``pairscale status``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, emit, printable, show_table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EXAMPLES", "SUMMARY", "command"]

SUMMARY = "Show where a run stands: answers, failures, attempts, cost."
EXAMPLES = ("pairscale status run.db", "pairscale status run.db --json")


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file.")],
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show where a run stands: answers, failures, attempts, tokens and cost of every judge.

    It may be asked while the run goes on. One row is one condition: a judge with its trait, template and settings.
    """
    with ps.open_run(run) as store:
        counts, conditions = store.counts(), store.conditions()
        facts = {key: store.get_meta(key) for key in ("created_by", "created_at", "writer")}

    def show() -> None:
        typer.echo(f"{run}: {counts['items']:,} samples, {counts['pairs']:,} pairs, {counts['attempts']:,} attempts")
        made = f"{facts['created_by']}, {str(facts['created_at'])[:19].replace('T', ' ')} UTC"
        typer.echo(f"made by {made}")
        typer.echo(f"last written by {printable(str(facts['writer']))}\n")
        if conditions.height:
            show_table(_shown(conditions), digits=4)
        else:
            typer.echo("nothing was judged yet")

    emit({**counts, **facts, "conditions": conditions}, conditions, as_json=as_json, out=out, show=show)


def _shown(conditions: pl.DataFrame) -> pl.DataFrame:
    """What a person wants to know first, and nothing that is empty."""
    import polars as pl

    empty = {name for name in conditions.columns if conditions[name].null_count() == conditions.height}
    rare = {name for name in ("tie", "flip", "abstention", "error") if conditions[name].sum() == 0}
    return conditions.select(
        pl.col("judge_id").alias("judge"),
        *(pl.col(name) for name in ("model", "trait", "template_id") if name not in empty),
        pl.sum_horizontal("win", "tie", "flip").alias("answered"),
        *(pl.col(name) for name in ("tie", "flip", "abstention", "error") if name not in rare),
        "attempts",
        *(pl.col(name) for name in ("cost", "total_tokens") if name not in empty),
        pl.col("condition_id").str.head(8).alias("condition"),
        pl.col("last_at").str.head(19).str.replace("T", " ").alias("last answer (UTC)"),
    )
