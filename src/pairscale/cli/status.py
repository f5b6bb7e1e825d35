"""``pairscale status``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, printable, show_table
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

EXAMPLES = (
    "pairscale status run.db",
    "pairscale status run.db --follow",
    "pairscale status shards/",
    "pairscale status run.db --json",
)

_PAUSE_S = 2.0


def command(
    run: opt.Runs,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Keep watching: a line whenever something has changed, to the end of the run."),
    ] = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Show where a run stands: answers, failures, attempts, tokens and cost of every judge.

    It may be asked while the run is working. One row is one condition: a judge with its trait, template and settings.
    What was paid is shown by model, template and day (UTC). Labels of people are counted by labeller. Counts and costs
    of several run files, such as the shards of one job, are added up.

    The digest covers every row of the run file as it was closed: keep it elsewhere, and `pairscale audit RUN --digest`
    finds any later change.

    Of an adaptive run, it says how far it is: stage, comparisons, reliability, and why it stopped. --json also has the
    settings of every command that wrote to the run file; `pairscale init FILE --from RUN` makes a study file of them.
    """
    from pairscale.cli._history import kept_settings

    named = opt.single(run)
    if follow:
        if as_json or out is not None:
            raise InputError("--follow shows lines as they come; leave --json and --out out")
        if isinstance(named, list):
            raise InputError("--follow watches one run file; name one")
        _follow(named)
        return
    found = ps.status(named)
    commands = []
    if not found.files:
        with ps.open_run(named if isinstance(named, str) else found.run) as store:
            commands = kept_settings(store)

    document = {
        **found.counts,
        **found.made,
        "digest": found.digest,
        "adaptive": found.adaptive,
        "conditions": found.conditions,
        "spending": found.spending,
        "labels": found.labelled,
        "commands": commands,
        "taken_over": found.taken_over,
    }
    emit(document, found.conditions, as_json=as_json, out=out, show=lambda: _show(found))


def _show(found: ps.RunStatus) -> None:
    from pairscale.adaptive.messages import judge_health
    from pairscale.collect.taken_over import taken_over_line

    counts, made = found.counts, found.made
    typer.echo(f"{found.run}: {counts['items']:,} samples, {counts['pairs']:,} pairs, {counts['attempts']:,} attempts")
    if found.files:
        typer.echo()
        _show_tables(found)
        return
    typer.echo(f"made by {made['created_by']}, {str(made['created_at'])[:19].replace('T', ' ')} UTC")
    typer.echo(f"last written by {printable(str(made['writer']))}")
    typer.echo(f"digest {found.digest or 'none: it is being written, or its process was killed'}")
    if found.adaptive is not None:
        typer.echo(_standing(found.adaptive))
        if health := judge_health(found.adaptive["judge"] or {}):
            typer.echo(f"judge: {', '.join(health)}")
    if found.open_batches:
        not_yet = f"{found.open_batches:,} of {found.batches:,} batches not taken in yet"
        typer.echo(f"{not_yet}: pairscale batch status {found.run}")
    if found.taken_over:
        typer.echo(taken_over_line(found.taken_over))
    typer.echo()
    _show_tables(found)


def _show_tables(found: ps.RunStatus) -> None:
    if found.conditions.height:
        show_table(_shown(found.conditions), digits=4)
    elif found.labelled is None:
        typer.echo("nothing was judged yet")
    if found.labelled is not None:
        _show_labels(found.labelled, found.labels, below=found.conditions.height > 0)
    if found.spending["cost"].sum() > 0:
        _show_spending(found.spending)


def _show_spending(spending: pl.DataFrame) -> None:
    from pairscale.providers.catalog import price_note

    dates = price_note(row["prices_as_of"] for row in spending.iter_rows(named=True) if row["cost"])
    typer.echo(f"\nspent so far: ${spending['cost'].sum():,.4f}{dates}\n")
    show_table(spending.drop("total_tokens", "prices_as_of").rename({"template_id": "template"}), digits=4)


def _show_labels(labelled: Mapping[str, int], labels: pl.DataFrame, *, below: bool) -> None:
    if below:
        typer.echo()
    typer.echo(_labelling(labelled))
    if labels.height:
        show_table(_by_labeller(labels))


def _follow(run: str) -> None:
    """A line whenever something has changed, until an adaptive run has ended or the user has."""
    from datetime import UTC, datetime

    from pairscale.adaptive.status import adaptive_status
    from pairscale.runtime import recorded_prices
    from pairscale.store.labels import label_counts

    said = ""
    while True:
        with ps.open_run(run) as store:
            adaptive, attempts, spent = adaptive_status(store), store.counts()["attempts"], store.spent()
            labelled = label_counts(store)
            dates = recorded_prices(store)
        line = f"{attempts:,} attempts" if adaptive is None else _standing(adaptive).partition(": ")[2]
        line += f", ${spent:,.4f} spent{dates}" if spent else ""
        line += f", {_labelling(labelled)}" if labelled is not None else ""
        if line != said:
            typer.echo(f"{datetime.now(UTC):%H:%M:%S}  {line}")
            said = line
        if adaptive is not None and adaptive["has_ended"]:
            return
        time.sleep(_PAUSE_S)


def _standing(run: Mapping[str, Any]) -> str:
    """An adaptive run in a line: stage, comparisons, reliability, and whether it continues."""
    from pairscale.adaptive.messages import how_it_stands, provisional

    reliability = run["reliability"]
    known = "not known yet" if reliability is None else f"{reliability:.2f}{provisional(run)}"
    gone = f" ({len(run['withdrawn']):,} withdrawn)" if run["withdrawn"] else ""
    said = [f"{run['n_items']:,} items{gone}", f"{run['committed_pairs']:,} comparisons"]
    said += [f"{run['invalid']:,} invalid answers"] if run["invalid"] else []
    said += [f"reliability {known}", f"{run['stage'].replace('_', ' ')}, round {run['round_id']}"]
    if run["stop_reason"] is not None:
        said.append(how_it_stands(run["stop_reason"]))
    else:
        said.append(
            "paused; run the same command again to continue"
            if run["has_ended"]
            else "running, or its process was killed"
        )
    goal = "" if run["goal"] == "order" else f", goal {run['goal']}"
    return f"adaptive ranking (preset {run['preset']}{goal}): {', '.join(said)}"


def _labelling(counts: Mapping[str, int]) -> str:
    """How far people are, in a line."""
    said = f"{counts['complete']:,} of {counts['wanted']:,} labels of {counts['cases']:,} cases"
    return f"{said}, {counts['skipped']:,} skipped" if counts["skipped"] else said


def _by_labeller(labels: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    chosen = pl.col("preferred")
    return (
        labels.group_by("labeller", maintain_order=True)
        .agg(
            labels=chosen.count(),
            tie=(chosen == "tie").sum(),
            skipped=pl.col("skipped").count(),
            last=pl.col("labelled_at").max().str.head(19).str.replace("T", " "),
        )
        .rename({"last": "last answer (UTC)"})
    )


def _shown(conditions: pl.DataFrame) -> pl.DataFrame:
    """What a person wants to know first, and nothing that is empty."""
    import polars as pl

    empty = {name for name in conditions.columns if conditions[name].null_count() == conditions.height}
    rare = {name for name in ("tie", "flip", "abstention", "error") if conditions[name].sum() == 0}
    return conditions.select(
        *(pl.col(name) for name in ("run",) if name in conditions.columns),
        pl.col("judge_id").alias("judge"),
        *(pl.col(name) for name in ("model", "trait", "template_id") if name not in empty),
        pl.sum_horizontal("win", "tie", "flip").alias("answered"),
        *(pl.col(name) for name in ("tie", "flip", "abstention", "error") if name not in rare),
        "attempts",
        *(pl.col(name) for name in ("cost", "total_tokens") if name not in empty),
        pl.col("condition_id").str.head(8).alias("condition"),
        pl.col("last_at").str.head(19).str.replace("T", " ").alias("last answer (UTC)"),
    )
