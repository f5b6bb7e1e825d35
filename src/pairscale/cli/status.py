"""``pairscale status``."""

from __future__ import annotations

from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, emit, show_table

__all__ = ["command"]


def command(
    run: Annotated[str, typer.Argument(help="The run file.")],
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Where a run stands: pairs, answers by kind, attempts, tokens, cost.

    It may be asked while the run goes on.
    """
    with ps.open_run(run) as store:
        counts, conditions = store.counts(), store.conditions()
        facts = {key: store.get_meta(key) for key in ("created_by", "created_at", "writer")}

    def show() -> None:
        typer.echo(f"{run}: {counts['items']:,} samples, {counts['pairs']:,} pairs, {counts['attempts']:,} attempts")
        typer.echo(f"made by {facts['created_by']}, {facts['created_at'][:19]} UTC; last written by {facts['writer']}")
        if conditions.height:
            empty = [name for name in conditions.columns if conditions[name].null_count() == conditions.height]
            show_table(conditions.drop(empty), digits=4)
        else:
            typer.echo("nothing was judged yet")

    emit({**counts, **facts, "conditions": conditions}, conditions, as_json=as_json, out=out, show=show)
