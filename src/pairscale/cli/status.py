"""``pairscale status``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._common import Output, echo, show_table
from pairscale.cli._history import kept_settings
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_PAUSE_S = 2.0


@from_verb(
    "status",
    "RUN...",
    "pairscale status run.db",
    "pairscale status run.db --follow",
    "pairscale status shards/",
    "pairscale status run.db --json",
)
def command(arguments: dict[str, Any], emit: Output, *, follow: bool = False) -> None:
    """Show where a run stands: answers, failures, attempts, tokens and cost of every judge.

    It may be asked while the run is working. One row is one condition: a judge with its trait, template and settings.
    What was paid is shown by model, template and day (UTC). Labels of people are counted by labeller. Counts and costs
    of several run files, such as the shards of one job, are added up.

    The digest covers every row of the run file as it was closed: keep it elsewhere, and `pairscale audit RUN --digest`
    finds any later change.

    Of an adaptive run, it says how far it is: stage, comparisons, reliability, and why it stopped. --json also has the
    settings of every command that wrote to the run file.

    Args:
        run: A run file; several, a folder of them, or a pattern such as 'shards/*.db'.
        follow: Keep watching: a line whenever something has changed, to the end of the run.
    """
    run = arguments["run"]
    if follow:
        if not emit.is_screen or not isinstance(run, str):
            raise InputError("--follow shows lines of one run file as they come; leave --json and --out out")
        _follow(run, emit)
        return
    found = ps.status(run)
    commands = []
    if not found.files:
        with ps.open_run(found.run) as store:
            commands = kept_settings(store)
    names = ("digest", "adaptive", "conditions", "spending", "taken_over")
    document = {**found.counts, **found.made, "labels": found.labelled, "commands": commands}
    document |= {name: getattr(found, name) for name in names}
    emit(document, found.conditions, lambda: _show(found))


def _show(found: ps.RunStatus) -> None:
    from pairscale.adaptive.messages import judge_health
    from pairscale.collect.taken_over import taken_over_line

    counts = found.counts
    echo(f"{found.run}: {counts['items']:,} samples, {counts['pairs']:,} pairs, {counts['attempts']:,} attempts")
    if not found.files:
        echo(f"digest {found.digest or 'none: it is being written, or its process was killed'}")
    if found.adaptive is not None:
        echo(_standing(found.adaptive))
        health = judge_health(found.adaptive["judge"] or {})
        if health:
            echo(f"judge: {', '.join(health)}")
    if found.open_batches:
        batches = f"{found.open_batches:,} of {found.batches:,} batches not taken in yet"
        echo(f"{batches}: pairscale batch status {found.run}")
    if found.taken_over:
        echo(taken_over_line(found.taken_over))
    echo()
    if found.conditions.height:
        _show_conditions(found.conditions)
    elif found.labelled is None:
        echo("nothing was judged yet")
    if found.labelled is not None:
        echo(_labelling(found.labelled))
        if found.labels.height:
            _show_labels(found.labels)
    if found.spending["cost"].sum() > 0:
        _show_spending(found.spending)


def _show_spending(spending: pl.DataFrame) -> None:
    from pairscale.providers.catalog import price_note

    dates = price_note(row["prices_as_of"] for row in spending.iter_rows(named=True) if row["cost"])
    echo(f"\nspent so far: ${spending['cost'].sum():,.4f}{dates}\n")
    show_table(spending.drop("total_tokens", "prices_as_of"), digits=4)


def _show_labels(labels: pl.DataFrame) -> None:
    import polars as pl

    chosen = pl.col("preferred")
    counts = (chosen.count().alias("labels"), (chosen == "tie").sum().alias("tie"), pl.col("skipped").count())
    last = _last(pl.col("labelled_at").max())
    show_table(labels.group_by("labeller", maintain_order=True).agg(*counts, last))


def _show_conditions(table: pl.DataFrame) -> None:
    """What a person wants to know first, and nothing that is empty."""
    import polars as pl

    named = (
        "run",
        "judge_id",
        "model",
        "trait",
        "template_id",
        "tie",
        "flip",
        "abstention",
        "error",
        "attempts",
        "cost",
    )
    used = [name for name in named if name in table.columns and any(table[name])]
    answered = pl.sum_horizontal("win", "tie", "flip").alias("answered")
    condition = pl.col("condition_id").str.head(8).alias("condition")
    show_table(table.select(*used, answered, condition, _last(pl.col("last_at"))), digits=4)


def _last(moment: Any) -> Any:
    return moment.str.head(19).str.replace("T", " ").alias("last answer (UTC)")


def _follow(run: str, emit: Output) -> None:
    """A line whenever something has changed, until an adaptive run has ended or the user has."""
    from datetime import UTC, datetime

    from pairscale.adaptive.status import adaptive_status
    from pairscale.runtime import recorded_prices
    from pairscale.store.labels import label_counts

    shown = ""
    while True:
        with ps.open_run(run) as store:
            adaptive = adaptive_status(store)
            line = (
                f"{store.counts()['attempts']:,} attempts"
                if adaptive is None
                else _standing(adaptive).partition(": ")[2]
            )
            spent = store.spent()
            if spent:
                line += f", ${spent:,.4f} spent{recorded_prices(store)}"
            labelled = label_counts(store)
        if labelled is not None:
            line += f", {_labelling(labelled)}"
        if line != shown:
            emit({}, None, partial(echo, f"{datetime.now(UTC):%H:%M:%S}  {line}"))
            shown = line
        if adaptive is not None and adaptive["has_ended"]:
            return
        time.sleep(_PAUSE_S)


def _standing(run: Mapping[str, Any]) -> str:
    """An adaptive run in a line: stage, comparisons, reliability, and whether it continues."""
    from pairscale.adaptive.messages import how_it_stands, provisional

    parts = [f"{run['n_items']:,} items", f"{run['committed_pairs']:,} comparisons"]
    if run["withdrawn"]:
        parts[0] += f" ({len(run['withdrawn']):,} withdrawn)"
    if run["invalid"]:
        parts.append(f"{run['invalid']:,} invalid answers")
    known = "not known yet" if run["reliability"] is None else f"{run['reliability']:.2f}{provisional(run)}"
    parts += [f"reliability {known}", f"{run['stage'].replace('_', ' ')}, round {run['round_id']}"]
    if run["stop_reason"] is not None:
        parts.append(how_it_stands(run["stop_reason"]))
    elif run["has_ended"]:
        parts.append("paused; run the same command again to continue")
    else:
        parts.append("running, or its process was killed")
    goal = "" if run["goal"] == "order" else f", goal {run['goal']}"
    return f"adaptive ranking (preset {run['preset']}{goal}): {', '.join(parts)}"


def _labelling(counts: Mapping[str, int]) -> str:
    """How far people are, in a line."""
    skipped = f", {counts['skipped']:,} skipped" if counts["skipped"] else ""
    return f"{counts['complete']:,} of {counts['wanted']:,} labels of {counts['cases']:,} cases{skipped}"
