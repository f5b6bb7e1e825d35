"""``pairscale batch``: submit, status, collect, resume, cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from pairscale.cli import _names
from pairscale.cli._common import Encoding, Json, Out, emit, printable, resumable, say, show_table
from pairscale.cli._inputs import (
    BaseUrl,
    JudgeArgs,
    TemplateName,
    TraitName,
    make_named_judge,
    read_pairs,
    run_file,
)
from pairscale.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from pairscale.collect.batch._registry import Entry
    from pairscale.collect.batch.manager import BatchManager

__all__ = ["PARTS", "Part", "group"]

T = TypeVar("T")


_Run = Annotated[str, typer.Argument(metavar="RUN", help="The run file.")]
_Interval = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Between two looks; longer while nothing changes.")
]
_Timeout = Annotated[
    float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting after so long; a later call goes on.")
]
_Chosen = Annotated[
    list[str] | None,
    typer.Option("--batch", metavar="ID", help="Only this batch, by its id or key; may stand several times."),
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
    trait: TraitName = None,
    template: TemplateName = None,
    judge_arg: JudgeArgs = None,
    batch_size: Annotated[int | None, typer.Option(min=1, metavar="N", help="Pairs in a batch, at the most.")] = None,
    segments: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many batches; by default as few as can be.")
    ] = None,
    base_url: BaseUrl = None,
    encoding: Encoding = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Create the batches that these pairs need, and return at once.

    Pairs that have an answer, or are in a batch that is under way, are left out: the same line again pays for nothing
    twice, also after a crash. The batches are in the run file; go on with `pairscale batch resume RUN`.
    """
    from pairscale.judges.llm import LLMJudge
    from pairscale.judges.orders import BothOrders, unwrapped

    table, samples = read_pairs(pairs, None, None, encoding)
    if samples is not None:
        raise InputError(f"{pairs} holds no pairs (ID1 text1 ID2 text2); make them with `pairscale pairs {pairs}`")
    asked = make_named_judge(judge, trait, template, judge_arg, base_url)
    if not isinstance(asked, LLMJudge | BothOrders) or not isinstance(unwrapped(asked), LLMJudge):
        raise InputError(f"--judge {judge}: batches are for models, such as openai:gpt-5.1")

    async def work(manager: BatchManager) -> tuple[list[Entry], pl.DataFrame]:
        await manager.resume()
        _, made = await manager.submit(table, asked, batch_size=batch_size, n_segments=segments)
        return made, manager.status([entry.key for entry in made])

    made, batches = _with_desk(run, work)
    n = sum(len(entry.pair_ids) for entry in made)
    new = f"{_many(n, 'pair')} in {_many(len(made), 'new batch')}"
    say(new if made else "nothing to submit: every pair is answered, or in a batch that is under way")
    if made or as_json or out is not None:
        _show_batches(batches, as_json, out)
    say(f"next: pairscale batch {'resume' if made else 'status'} {run}")


def status(
    run: _Run,
    offline: Annotated[bool, typer.Option("--offline", help="Show what is known; ask no provider.")] = False,
    registry: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the batches to this file, in the columns of R's registry."),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show the batches of a run: states, counts, ages, and the time they have left."""
    from pairscale.files import write_table

    async def work(manager: BatchManager) -> pl.DataFrame:
        if not offline:
            await manager.look()
        if registry is not None:
            write_table(manager.registry(), registry)
        return manager.status()

    batches = _with_desk(run, work)
    _show_batches(batches, as_json, out)
    _say_next(run, batches)


def collect(run: _Run, as_json: Json = False, out: Out = None) -> None:
    """Take in the results of the batches that have ended, and wait for none.

    What came back is in the run file afterwards; `--out` writes all results of the run's batches to a file.
    """

    async def work(manager: BatchManager) -> tuple[list[Entry], _Tables]:
        await manager.look()
        return await manager.collect(), _tables(manager)

    taken, (results, failed, rest, batches) = _with_desk(run, work)
    say(f"{_many(len(taken), 'batch')} taken in; {_many(results.height, 'pair')} of this run answered")
    _show_results(run, results, failed, rest, batches, as_json=as_json, out=out)


def resume(
    run: _Run,
    interval: _Interval = 60.0,
    timeout: _Timeout = None,
    again: Annotated[
        bool, typer.Option("--again", help="First submit again what failed, expired or was cancelled.")
    ] = False,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Go on where anybody stopped: create what was only prepared, wait for all batches, and take them in.

    It may be interrupted at any time, and called from another machine that has the run file and the key.
    """

    async def work(manager: BatchManager) -> _Tables:
        await manager.resume()
        if again:
            await manager.look()
            await manager.collect()
            more = await manager.resubmit()
            n = sum(len(entry.pair_ids) for entry in more)
            new = f"{_many(n, 'pair')} submitted again, in {_many(len(more), 'new batch')}"
            say(new if more else "nothing to submit again: every pair is answered, or in a batch that is under way")
        await manager.wait(interval=interval, timeout=timeout, told=_tell)
        return _tables(manager)

    with resumable(run):
        results, failed, rest, batches = _with_desk(run, work)
    _show_results(run, results, failed, rest, batches, as_json=as_json, out=out)


def cancel(run: _Run, batch: _Chosen = None, as_json: Json = False, out: Out = None) -> None:
    """Ask the providers to end batches; what was answered until then can be collected, and is paid for."""
    from pairscale.providers.batches import ENDED

    async def work(manager: BatchManager) -> tuple[int, pl.DataFrame]:
        known = manager.entries()
        wanted = set(batch or [])
        chosen = [entry.key for entry in known if not wanted or {entry.key, entry.batch_id} & wanted]
        if unknown := wanted - {name for entry in known for name in (entry.key, entry.batch_id)}:
            raise InputError(
                f"{run} knows no batch {', '.join(sorted(unknown))}; `pairscale batch status {run}` lists them"
            )
        mine = [entry for entry in known if entry.key in chosen and entry.open]
        going = [entry.key for entry in mine if wanted or entry.state not in ENDED]
        await manager.cancel(going)
        return len(going), manager.status(chosen)

    n, batches = _with_desk(run, work)
    say(f"asked for the end of {_many(n, 'batch')}" if n else "nothing to cancel: no batch is under way")
    _show_batches(batches, as_json, out)
    _say_next(run, batches)


class Part(NamedTuple):
    """One of the commands: what it does, in a line, and how it is used."""

    command: Callable[..., None]
    SUMMARY: str
    EXAMPLES: tuple[str, ...]


PARTS = {
    "submit": Part(
        submit,
        "Create the batches that pairs need.",
        ("pairscale batch submit pairs.csv --judge openai:gpt-5.1 --run run.db",
         "pairscale batch submit p.csv --judge openai:gpt-5.1 --run r.db --segments 3"),
    ),
    "status": Part(status, "Show the batches of a run.", ("pairscale batch status run.db",)),
    "collect": Part(
        collect, "Take in the batches that have ended.", ("pairscale batch collect run.db --out results.csv",)
    ),
    "resume": Part(
        resume,
        "Wait for all batches, and take them in.",
        ("pairscale batch resume run.db", "pairscale batch resume run.db --again --timeout 3600"),
    ),
    "cancel": Part(
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


def _with_desk(run: str, work: Callable[[BatchManager], Awaitable[T]]) -> T:
    from pairscale.collect.batch.manager import BatchManager
    from pairscale.runtime import run_sync

    async def main() -> T:
        manager = BatchManager(run)
        try:
            return await work(manager)
        finally:
            await manager.aclose()

    return run_sync(main)


def _tell(found: Any) -> None:
    waiting = [entry for entry in found if entry.open]
    if waiting:
        states: dict[str, int] = {}
        for entry in waiting:
            states[entry.state] = states.get(entry.state, 0) + 1
        said = ", ".join(f"{n} {state}" for state, n in states.items())
        say(f"{len(waiting):,} of {_many(len(found), 'batch')} under way: {said}")


def _show_batches(batches: pl.DataFrame, as_json: bool, out: Path | None) -> None:
    emit({"batches": batches}, batches, as_json=as_json, out=out, show=lambda: _show(batches))


class _Tables(NamedTuple):
    """What there is of a run's batches."""

    results: pl.DataFrame
    failed: pl.DataFrame
    rest: pl.DataFrame
    batches: pl.DataFrame


def _tables(manager: BatchManager) -> _Tables:
    return _Tables(*manager.results(), manager.rest(), manager.status())


def _show_results(
    run: str,
    results: pl.DataFrame,
    failed: pl.DataFrame,
    rest: pl.DataFrame,
    batches: pl.DataFrame,
    *,
    as_json: bool,
    out: Path | None,
) -> None:
    document = {"batches": batches, "results": results, "failed_attempts": failed, "rest": rest}
    emit(document, results, as_json=as_json, out=out, show=lambda: _show(batches))
    if rest.height:
        why = rest["error_message"].drop_nulls().unique(maintain_order=True)
        most = f"; {printable(why[0])[:120]}" if why.len() == 1 else ""
        say(f"{_many(rest.height, 'pair')} got no answer{most}: `pairscale batch resume {run} --again` asks again")
    if not _say_next(run, batches) and results.height:
        say(f"next: pairscale fit {run}")


def _say_next(run: str, batches: pl.DataFrame) -> bool:
    """What is to be done about the batches that are not taken in yet; False when there are none."""
    from pairscale.providers.batches import ENDED

    waiting = batches.filter(batches["collected_at"].is_null() & (batches["state"] != "dropped"))
    if waiting.height == 0:
        return False
    ended = int(waiting["state"].is_in(list(ENDED)).sum())
    if ended:
        say(f"{_many(ended, 'batch')} ended and not taken in yet; next: pairscale batch collect {run}")
    else:
        say(f"{_many(waiting.height, 'batch')} under way; next: pairscale batch resume {run}")
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
