"""``pairscale batch``: submit, status, collect, resume, cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from pairscale.cli._common import Encoding, Json, Out, emit, say, show_table
from pairscale.cli._inputs import BaseUrl, make_named_judge, read_pairs, run_file
from pairscale.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from pairscale.collect.batch._registry import Entry
    from pairscale.collect.batch.desk import BatchDesk

__all__ = ["PARTS", "SUMMARY", "Part", "group"]

T = TypeVar("T")

SUMMARY = "Judge through the providers' batch APIs, at a discount, for days."

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
        str, typer.Option(metavar="JUDGE", help="provider:model of openai, anthropic, gemini or together.")
    ],
    run: Annotated[
        str,
        typer.Option(
            metavar="FILE", callback=run_file, help="The run file: it knows every batch and keeps every answer."
        ),
    ],
    trait: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to judge; `pairscale traits` lists them.")
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="NAME", help="Prompt template, a name or a .txt file; `pairscale templates`.")
    ] = None,
    judge_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of the judge; may stand several times."),
    ] = None,
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

    table, samples = read_pairs(pairs, None, None, encoding)
    if samples is not None:
        raise InputError(f"{pairs} holds no pairs (ID1 text1 ID2 text2); make them with `pairscale pairs {pairs}`")
    asked = make_named_judge(judge, trait, template, judge_arg, base_url)
    if not isinstance(asked, LLMJudge):
        raise InputError(f"--judge {judge}: batches are for models, such as openai:gpt-5.1")

    async def work(desk: BatchDesk) -> tuple[list[Entry], pl.DataFrame]:
        await desk.resume()
        _, made = await desk.submit(table, asked, batch_size=batch_size, n_segments=segments)
        return made, desk.status([entry.key for entry in made])

    made, batches = _with_desk(run, work)
    n = sum(len(entry.pair_ids) for entry in made)
    say(f"{n:,} pairs in {len(made):,} new batches" if made else "nothing to submit: all answered or under way")
    _show_batches(batches, as_json, out)
    if made and not as_json:
        say(f"next: pairscale batch resume {run}")


def status(
    run: _Run,
    offline: Annotated[bool, typer.Option("--offline", help="Show what is known; ask no provider.")] = False,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show the batches of a run: states, counts, ages, and the time they have left."""

    async def work(desk: BatchDesk) -> pl.DataFrame:
        if not offline:
            await desk.look()
        return desk.status()

    _show_batches(_with_desk(run, work), as_json, out)


def collect(run: _Run, as_json: Json = False, out: Out = None) -> None:
    """Take in the results of the batches that have ended, and wait for none.

    What came back is in the run file afterwards; `--out` writes all results of the run's batches to a file.
    """

    async def work(desk: BatchDesk) -> tuple[list[Entry], tuple[pl.DataFrame, pl.DataFrame], pl.DataFrame]:
        await desk.look()
        return await desk.collect(), desk.results(), desk.status()

    taken, (results, failed), batches = _with_desk(run, work)
    say(f"{len(taken):,} batches taken in; {results.height:,} pairs answered")
    _show_results(run, results, failed, batches, as_json=as_json, out=out)


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

    async def work(desk: BatchDesk) -> tuple[tuple[pl.DataFrame, pl.DataFrame], pl.DataFrame]:
        await desk.resume()
        if again:
            more = await desk.resubmit()
            say(f"{sum(len(entry.pair_ids) for entry in more):,} pairs submitted again")
        await desk.wait(interval=interval, timeout=timeout, told=_tell)
        return desk.results(), desk.status()

    try:
        (results, failed), batches = _with_desk(run, work)
    except KeyboardInterrupt:
        say(f"interrupted; the batches go on without us: pairscale batch resume {run}")
        raise typer.Exit(130) from None
    _show_results(run, results, failed, batches, as_json=as_json, out=out)


def cancel(run: _Run, batch: _Chosen = None, as_json: Json = False, out: Out = None) -> None:
    """Ask the providers to end batches; what was answered until then can be collected, and is paid for."""

    async def work(desk: BatchDesk) -> pl.DataFrame:
        known = desk.entries()
        wanted = set(batch or [])
        chosen = [entry.key for entry in known if not wanted or {entry.key, entry.batch_id} & wanted]
        if unknown := wanted - {name for entry in known for name in (entry.key, entry.batch_id)}:
            raise InputError(
                f"{run} knows no batch {', '.join(sorted(unknown))}; `pairscale batch status {run}` lists them"
            )
        await desk.cancel(chosen)
        return desk.status()

    _show_batches(_with_desk(run, work), as_json, out)


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


def group(command_class: Any, **settings: Any) -> typer.Typer:
    """The group of commands.

    Args:
        command_class: of each command.
        settings: of the group.
    """
    app = typer.Typer(
        no_args_is_help=True, help=f"{SUMMARY} Submit, come back later, and take the answers in.", **settings
    )
    for name, part in PARTS.items():
        epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in part.EXAMPLES)])
        app.command(name, cls=command_class, short_help=part.SUMMARY, epilog=epilog)(part.command)
    return app


def _with_desk(run: str, work: Callable[[BatchDesk], Awaitable[T]]) -> T:
    from pairscale.collect._background import run_sync
    from pairscale.collect.batch.desk import BatchDesk

    async def main() -> T:
        desk = BatchDesk(run)
        try:
            return await work(desk)
        finally:
            await desk.aclose()

    return run_sync(main)


def _tell(found: Any) -> None:
    waiting = [entry for entry in found if entry.open]
    if waiting:
        states: dict[str, int] = {}
        for entry in waiting:
            states[entry.state] = states.get(entry.state, 0) + 1
        said = ", ".join(f"{n} {state}" for state, n in states.items())
        say(f"{len(waiting):,} of {len(found):,} batches open: {said}")


def _show_batches(batches: pl.DataFrame, as_json: bool, out: Path | None) -> None:
    emit({"batches": batches}, batches, as_json=as_json, out=out, show=lambda: _show(batches))


def _show_results(
    run: str, results: pl.DataFrame, failed: pl.DataFrame, batches: pl.DataFrame, *, as_json: bool, out: Path | None
) -> None:
    document = {"batches": batches, "results": results, "failed_attempts": failed}
    emit(document, results, as_json=as_json, out=out, show=lambda: _show(batches))
    if failed.height:
        say(f"{failed.height:,} attempts gave no answer; `pairscale batch resume {run} --again` asks those pairs again")
    if results.height and not as_json:
        say(f"next: pairscale fit {run}")


def _show(batches: pl.DataFrame) -> None:
    import polars as pl

    if batches.height == 0:
        typer.echo("there are no batches")
        return
    spans = [
        pl.col(name).map_elements(_span, return_dtype=pl.String).alias(title)
        for name, title in (("age_s", "age"), ("left_s", "left"))
    ]
    shown = batches.select(
        "batch_id", "provider", "model", "state", "pairs", "succeeded", "failed", "recorded", *spans, "message", "key"
    )
    show_table(shown.drop([name for name in shown.columns if shown[name].null_count() == shown.height]))


def _span(seconds: float) -> str:
    """A time as people say it: 3 h 20 min."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{int(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
