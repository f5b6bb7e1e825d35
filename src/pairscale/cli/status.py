"""``pairscale status``."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError
from pairscale.store.marks import COMMANDS

if TYPE_CHECKING:
    import polars as pl

_PAUSE_S = 2.0


@from_verb("reporting.verbs.status", "RUN...")
def command(arguments: Arguments, emit: Output, *, follow: bool = False) -> None:
    """Show where a run stands: answers, failures, attempts, tokens and cost of every judge.

    It may be asked while the run is working. One row is one condition: a judge with its trait, template and settings.
    What was paid is shown by model, template and day (UTC). Labels of people are counted. Counts and costs
    of several run files, such as the shards of one job, are added up.

    The digest covers every row of the run file as it was closed: keep it elsewhere, and `pairscale audit RUN --digest`
    finds any later change.

    Of an adaptive run, it says how far it is: stage, comparisons, reliability, and why it stopped. --json also has the
    settings of every command that wrote to the run file.

    Args:
        run: A run file; several, a folder of them, or a pattern such as 'shards/*.db'.
        follow: Keep watching: a line whenever something has changed, to the end of the run.

    Examples:
        pairscale status run.db
        pairscale status run.db --follow
        pairscale status shards/
        pairscale status run.db --json
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
            commands = store.read_log(COMMANDS)
    document = {**found.counts, **found.made, "labels": found.labelled, "commands": commands}
    document |= fields(found, "digest adaptive conditions spending")
    emit(document, found.conditions, lambda: _show(found))


def _show(found: ps.RunStatus) -> None:
    echo(str(found))
    if not found.files:
        echo(f"digest {found.digest or 'none: it is being written, or its process was killed'}")
    for line in _standing(found):
        echo(line)
    if found.open_batches:
        batches = f"{found.open_batches:,} of {found.batches:,} batches not taken in yet"
        echo(f"{batches}: pairscale batch status {found.run}")
    if found.conditions.height:
        echo()
        _show_conditions(found.conditions)
    if found.spending["cost"].sum() > 0:
        echo()
        show_table(found.spending.drop("total_tokens"), digits=4)


def _show_conditions(table: pl.DataFrame) -> None:
    """What a person wants to know first, and nothing that is empty."""
    import polars as pl

    names = "run judge_id model trait template_id tie flip abstention error attempts cost"
    used = [name for name in names.split() if name in table.columns and any(table[name])]
    answered = pl.sum_horizontal("win", "tie", "flip").alias("answered")
    condition = pl.col("condition_id").str.head(8).alias("condition")
    last = pl.col("last_at").str.head(19).str.replace("T", " ").alias("last answer (UTC)")
    show_table(table.select(*used, answered, condition, last), digits=4)


def _follow(run: str, emit: Output) -> None:
    """The lines of a run whenever something has changed, until an adaptive run has ended or the user has."""
    from datetime import UTC, datetime

    shown = ""
    while True:
        found = ps.status(run)
        line = "; ".join([str(found), *_standing(found)])
        if line != shown:
            emit({}, None, partial(echo, f"{datetime.now(UTC):%H:%M:%S}  {line}"))
            shown = line
        if found.adaptive is not None and found.adaptive["has_ended"]:
            return
        time.sleep(_PAUSE_S)


def _standing(found: ps.RunStatus) -> list[str]:
    """How far an adaptive run and the labels of people are, a line each."""
    from pairscale.adaptive.messages import STOPS, judge_health, named_reliability, provisional, shown_figure
    from pairscale.cli.rank import ENDINGS, PAUSED

    lines = []
    run = found.adaptive
    if run is not None:
        reason = run["stop_reason"]
        state = "running, or its process was killed"
        if reason in STOPS:
            state = f"stopped: {STOPS[reason]}"
        elif reason is not None or run["has_ended"]:
            state = ENDINGS.get(reason, PAUSED)
        name, certainty = named_reliability(run, run["preset"])
        figure = f"{name} {shown_figure(run['reliability'])}{provisional(run)}"
        if certainty:
            figure += f" ({certainty})"
        stage = run["stage"].replace("_", " ")
        words = {**run, "withdrawn": len(run["withdrawn"]), "figure": figure, "stage": stage, "state": state}
        lines.append(
            "adaptive ranking (preset {preset}, goal {goal}): {n_items:,} items ({withdrawn:,} withdrawn), "
            "{committed_pairs:,} comparisons, {invalid:,} invalid answers, {figure}, {stage}, round {round_id}, "
            "{state}".format_map(words)
        )
        health = judge_health(run["judge"] or {})
        if health:
            lines.append(f"judge: {', '.join(health)}")
    if found.labelled is not None:
        counts = "{complete:,} of {wanted:,} labels of {cases:,} cases, {skipped:,} skipped".format_map(found.labelled)
        lines.append(f"{counts} (pairscale label {found.run} --status shows each labeller)")
    return lines
