"""``pairscale batch``: submit, status, collect, resume, cancel."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._asking import opening, read_given_pairs
from pairscale.cli._common import Arguments, Output, as_argument, echo, fields, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.display import printable
from pairscale.core.errors import InputError
from pairscale.core.notices import plural

if TYPE_CHECKING:
    import polars as pl

    from pairscale.batch import BatchAnswers


@from_verb("batch.submit", "PAIRS", hidden="segments encoding a_col b_col")
def submit(arguments: Arguments, emit: Output) -> None:
    """Create the batches that these pairs need, and return at once.

    Pairs that have an answer, or are in a batch that is under way, are left out: the same command pays for nothing
    twice, also after a crash. The batches are in the run file; continue with `pairscale batch resume RUN`.

    Args:
        judge: provider:model of openai, anthropic, gemini or together.

    Examples:
        pairscale batch submit pairs.csv --judge openai:gpt-5.1 --run run.db
    """
    read_given_pairs(arguments)
    batches = ps.batch.submit(**arguments)
    opening(arguments["judge"])
    _say_made(batches)
    if batches.height or not emit.is_screen:
        _emit(batches, emit)
    say(f"next: pairscale batch {'resume' if batches.height else 'status'} {as_argument(arguments['run'])}")


@from_verb("batch.status", "RUN", hidden="registry")
def status(arguments: Arguments, emit: Output) -> None:
    """Show the batches of a run: states, counts, ages, and the time they have left.

    Examples:
        pairscale batch status run.db
    """
    batches = ps.batch.status(**arguments)
    _emit(batches, emit)
    _say_next(arguments["run"], batches)


@from_verb("batch.collect", "RUN")
def collect(arguments: Arguments, emit: Output) -> None:
    """Take in the results of the batches that have ended, and wait for none.

    The results are in the run file afterwards; `--out` writes all results of the run's batches to a file.

    Examples:
        pairscale batch collect run.db --out results.csv
    """
    answers = ps.batch.collect(**arguments)
    answered = f"{plural(answers.results.height, 'pair')} of this run answered"
    say(f"{plural(answers.collected, 'batch', 'batches')} taken in; {answered}")
    _show_results(arguments["run"], answers, emit)


@from_verb("batch.resume", "RUN")
def resume(arguments: Arguments, emit: Output) -> None:
    """Continue where an earlier call stopped: create what was only prepared, wait for all batches, and take them in.

    It may be interrupted at any time, and called from another machine that has the run file and the key.

    Examples:
        pairscale batch resume run.db
        pairscale batch resume run.db --again --max-minutes 60
    """
    from pairscale.runtime.sync import resumable

    with resumable(arguments["run"]):
        on_again = partial(_say_made, how="submitted again, in")
        answers = ps.batch.resume(**arguments, on_look=_say_waiting, on_again=on_again)
    _show_results(arguments["run"], answers, emit)


@from_verb("batch.cancel", "RUN")
def cancel(arguments: Arguments, emit: Output) -> None:
    """Ask the providers to end batches; what was answered until then can be collected, and is paid for.

    Args:
        batch: Only this batch, by its id or key; can be repeated.

    Examples:
        pairscale batch cancel run.db --batch batch_68a1
    """
    ending = ps.batch.cancel(**arguments)
    if ending.height:
        say(f"asked for the end of {plural(ending.height, 'batch', 'batches')}")
    else:
        say("nothing to cancel: no batch is under way")
    _emit(ending, emit)
    _say_next(arguments["run"], ps.batch.status(arguments["run"], offline=True))


def _emit(batches: pl.DataFrame, emit: Output) -> None:
    emit({"batches": batches}, batches, lambda: _show(batches))


def _say_made(made: pl.DataFrame, how: str = "in") -> None:
    if made.height:
        batches = plural(made.height, "new batch", "new batches")
        say(f"{plural(int(made['pairs'].sum()), 'pair')} {how} {batches}")
    else:
        say("nothing to submit: every pair is answered, or in a batch that is under way")


def _waiting(batches: pl.DataFrame) -> pl.DataFrame:
    """The batches that are not taken in yet."""
    return batches.filter(batches["collected_at"].is_null() & (batches["state"] != "dropped"))


def _say_waiting(batches: pl.DataFrame) -> None:
    waiting = _waiting(batches)
    if waiting.height:
        states = ", ".join(f"{n} {state}" for state, n in Counter(waiting["state"]).items())
        say(f"{waiting.height:,} of {plural(batches.height, 'batch', 'batches')} under way: {states}")


def _show_results(run: str, answers: BatchAnswers, emit: Output) -> None:
    batches = answers.batches
    emit(fields(answers, "batches results failed_attempts rest"), answers.results, lambda: _show(batches))
    if answers.rest.height:
        reasons = answers.rest["error_message"].drop_nulls()
        reason = printable(reasons[0])[:300] if reasons.len() else "unknown"
        pairs = plural(answers.rest.height, "pair")
        if not answers.results.height and not _waiting(batches).height:
            raise InputError(f"none of the {pairs} was answered; the first: {reason}")
        say(f"{pairs} got no answer; {reason}: `pairscale batch resume {as_argument(run)} --again` asks again")
    if not _say_next(run, batches) and answers.results.height:
        say(f"next: pairscale fit {as_argument(run)}")


def _say_next(run: str, batches: pl.DataFrame) -> bool:
    """What is to be done about the batches that are not taken in yet; False when there are none."""
    waiting = _waiting(batches).height
    if waiting:
        words = plural(waiting, "batch is", "batches are")
        say(f"{words} not taken in yet; next: pairscale batch resume {as_argument(run)}")
    return waiting > 0


def _show(batches: pl.DataFrame) -> None:
    import polars as pl

    if batches.height == 0:
        echo("there are no batches")
        return
    is_open = pl.col("collected_at").is_null()
    hours = (pl.when(is_open).then(pl.col(f"{name}_s") / 3600).alias(f"{name} (h)") for name in ("age", "left"))
    shown = batches.select(
        pl.coalesce("batch_id", "key").alias("batch"), "provider", "model", "state", "pairs", "requests",
        pl.col("succeeded").alias("answered"), "failed", pl.col("recorded").alias("taken in"), *hours, "message",
    )  # fmt: skip
    show_table(shown.drop([name for name in shown.columns if shown[name].null_count() == shown.height]), digits=1)
