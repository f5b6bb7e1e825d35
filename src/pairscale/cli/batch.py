"""``pairscale batch``: submit, status, collect, resume, cancel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import as_argument, emit, printable, resumable, say, show_table
from pairscale.cli._inputs import run_file, settings_of
from pairscale.cli._opening import read_given_pairs
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from pairscale.batch import BatchAnswers

_Run = Annotated[str, typer.Argument(metavar="RUN", help="The run file.")]
_Interval = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Seconds between two checks; longer while nothing changes.")
]
_MaxMinutes = Annotated[
    float | None,
    typer.Option(min=0, metavar="M", help="Stop waiting after this many minutes; the same command continues."),
]
_Chosen = Annotated[
    list[str] | None,
    typer.Option("--batch", metavar="ID", help="Only this batch, by its id or key; can be repeated."),
]


def submit(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="A table with ID1 text1 ID2 text2; `pairscale pairs` makes it.")
    ],
    judge: Annotated[
        str,
        typer.Option(
            metavar="JUDGE",
            autocompletion=_names.judges,
            help="provider:model of openai, anthropic, gemini or together.",
        ),
    ],
    run: Annotated[
        str,
        typer.Option(
            metavar="FILE", callback=run_file, help="The run file: it knows every batch and keeps every answer."
        ),
    ],
    trait: opt.TraitName = None,
    template: opt.TemplateName = None,
    judge_arg: opt.JudgeArgs = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of pairs per batch.")
    ] = None,
    segments: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of batches; by default as few as possible.")
    ] = None,
    base_url: opt.BaseUrl = None,
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    encoding: opt.Encoding = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Create the batches that these pairs need, and return at once.

    Pairs that have an answer, or are in a batch that is under way, are left out: the same command pays for nothing
    twice, also after a crash. The batches are in the run file; continue with `pairscale batch resume RUN`.
    """
    table, opening = read_given_pairs(pairs, encoding=encoding, a_col=a_col, b_col=b_col)
    batches = ps.batch.submit(
        table, judge=judge, run=run, trait=trait, template=template, judge_args=settings_of(judge_arg),
        batch_size=batch_size, segments=segments, base_url=base_url,
    )  # fmt: skip
    opening.say([judge])
    made = batches.height
    new = f"{_many(int(batches['pairs'].sum()), 'pair')} in {_many(made, 'new batch')}"
    say(new if made else "nothing to submit: every pair is answered, or in a batch that is under way")
    if made or as_json or out is not None:
        _show_batches(batches, as_json, out)
    say(f"next: pairscale batch {'resume' if made else 'status'} {as_argument(run)}")


def status(
    run: _Run,
    offline: Annotated[bool, typer.Option("--offline", help="Show what is known; ask no provider.")] = False,
    registry: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the batches to this file, in the columns of R's registry."),
    ] = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Show the batches of a run: states, counts, ages, and the time they have left."""
    batches = ps.batch.status(run, offline=offline, registry=registry)
    _show_batches(batches, as_json, out)
    _say_next(run, batches)


def collect(run: _Run, as_json: opt.Json = False, out: opt.Out = None) -> None:
    """Take in the results of the batches that have ended, and wait for none.

    What came back is in the run file afterwards; `--out` writes all results of the run's batches to a file.
    """
    answers = ps.batch.collect(run)
    taken = _many(answers.collected, "batch")
    say(f"{taken} taken in; {_many(answers.results.height, 'pair')} of this run answered")
    _show_results(run, answers, as_json=as_json, out=out)


def resume(
    run: _Run,
    interval: _Interval = 60.0,
    max_minutes: _MaxMinutes = None,
    again: Annotated[
        bool, typer.Option("--again", help="First submit again what failed, expired or was cancelled.")
    ] = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Continue where an earlier call stopped: create what was only prepared, wait for all batches, and take them in.

    It may be interrupted at any time, and called from another machine that has the run file and the key.
    """
    with resumable(run):
        answers = ps.batch.resume(
            run, interval=interval, max_minutes=max_minutes, again=again, on_look=_say_waiting, on_again=_say_again
        )
    _show_results(run, answers, as_json=as_json, out=out)


def cancel(run: _Run, batch: _Chosen = None, as_json: opt.Json = False, out: opt.Out = None) -> None:
    """Ask the providers to end batches; what was answered until then can be collected, and is paid for."""
    ending = ps.batch.cancel(run, batch=batch)
    n = ending.height
    say(f"asked for the end of {_many(n, 'batch')}" if n else "nothing to cancel: no batch is under way")
    _show_batches(ending, as_json, out)
    _say_next(run, ps.batch.status(run, offline=True))


class Subcommand(NamedTuple):
    """One of the commands: what it does, in a line, and how it is used."""

    command: Callable[..., None]
    SUMMARY: str
    EXAMPLES: tuple[str, ...]


PARTS = {
    "submit": Subcommand(
        submit,
        "Create the batches that pairs need.",
        ("pairscale batch submit pairs.csv --judge openai:gpt-5.1 --run run.db",
         "pairscale batch submit p.csv --judge openai:gpt-5.1 --run r.db --segments 3"),
    ),
    "status": Subcommand(status, "Show the batches of a run.", ("pairscale batch status run.db",)),
    "collect": Subcommand(
        collect, "Take in the batches that have ended.", ("pairscale batch collect run.db --out results.csv",)
    ),
    "resume": Subcommand(
        resume,
        "Wait for all batches, and take them in.",
        ("pairscale batch resume run.db", "pairscale batch resume run.db --again --max-minutes 60"),
    ),
    "cancel": Subcommand(
        cancel, "Ask for the end of batches.", ("pairscale batch cancel run.db --batch batch_68a1",)
    ),
}  # fmt: skip
"""The commands of the group, in the order of its help."""


def group(summary: str, command_class: Any, **settings: Any) -> typer.Typer:
    """The group of commands.

    Args:
        summary: Its first sentence in the help.
        command_class: Class of each command.
        settings: Settings of the group.
    """
    app = typer.Typer(
        no_args_is_help=True, help=f"{summary} Submit, come back later, and take the answers in.", **settings
    )
    for name, part in PARTS.items():
        epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in part.EXAMPLES)])
        app.command(name, cls=command_class, short_help=part.SUMMARY, epilog=epilog)(part.command)
    return app


def _say_again(made: pl.DataFrame) -> None:
    new = f"{_many(int(made['pairs'].sum()), 'pair')} submitted again, in {_many(made.height, 'new batch')}"
    say(new if made.height else "nothing to submit again: every pair is answered, or in a batch that is under way")


def _waiting(batches: pl.DataFrame) -> pl.DataFrame:
    """The batches that are not taken in yet."""
    return batches.filter(batches["collected_at"].is_null() & (batches["state"] != "dropped"))


def _say_waiting(batches: pl.DataFrame) -> None:
    waiting = _waiting(batches)
    if waiting.height:
        counted = waiting.group_by("state", maintain_order=True).len()
        said = ", ".join(f"{n} {state}" for state, n in counted.iter_rows())
        say(f"{waiting.height:,} of {_many(batches.height, 'batch')} under way: {said}")


def _show_batches(batches: pl.DataFrame, as_json: bool, out: Path | None) -> None:
    emit({"batches": batches}, batches, as_json=as_json, out=out, show=lambda: _show(batches))


def _show_results(run: str, answers: BatchAnswers, *, as_json: bool, out: Path | None) -> None:
    results, rest, batches = answers.results, answers.rest, answers.batches
    document = {"batches": batches, "results": results, "failed_attempts": answers.failed_attempts, "rest": rest}
    emit(document, results, as_json=as_json, out=out, show=lambda: _show(batches))
    if rest.height:
        why = rest["error_message"].drop_nulls().unique(maintain_order=True)
        if not results.height and not _waiting(batches).height:
            reason = printable(why[0])[:300]
            raise InputError(f"none of the {_many(rest.height, 'pair')} was answered; the first: {reason}")
        most = f"; {printable(why[0])[:120]}" if why.len() == 1 else ""
        again = f"`pairscale batch resume {as_argument(run)} --again` asks again"
        say(f"{_many(rest.height, 'pair')} got no answer{most}: {again}")
    if not _say_next(run, batches) and results.height:
        say(f"next: pairscale fit {as_argument(run)}")


def _say_next(run: str, batches: pl.DataFrame) -> bool:
    """What is to be done about the batches that are not taken in yet; False when there are none."""
    from pairscale.providers.batches import ENDED

    waiting = _waiting(batches)
    if waiting.height == 0:
        return False
    ended = int(waiting["state"].is_in(list(ENDED)).sum())
    if ended:
        say(f"{_many(ended, 'batch')} ended and not taken in yet; next: pairscale batch collect {as_argument(run)}")
    else:
        say(f"{_many(waiting.height, 'batch')} under way; next: pairscale batch resume {as_argument(run)}")
    return True


def _many(n: int, noun: str) -> str:
    """A number with its noun."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{n:,} {noun}{ending * (n != 1)}"


def _show(batches: pl.DataFrame) -> None:
    import polars as pl

    if batches.height == 0:
        typer.echo("there are no batches")
        return
    spans = [
        pl.when(pl.col("collected_at").is_null())
        .then(pl.col(name).map_elements(_span, return_dtype=pl.String))
        .alias(title)
        for name, title in (("age_s", "age"), ("left_s", "left"))
    ]
    twice = ["requests"] if (batches["requests"] != batches["pairs"]).any() else []  # both orders of a pair
    shown = batches.select(
        pl.coalesce("batch_id", "key").alias("batch"), "provider", "model", "state", "pairs", *twice,
        pl.col("succeeded").alias("answered"), "failed", pl.col("recorded").alias("taken in"), *spans, "message",
    )  # fmt: skip
    show_table(shown.drop([name for name in shown.columns if shown[name].null_count() == shown.height]))


def _span(seconds: float) -> str:
    """A time as people say it: 3 h 20 min."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{int(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
