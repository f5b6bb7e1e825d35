"""``pairscale judge``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import as_argument, emit, printable, resumable, say, say_unsaved, show_table
from pairscale.cli._groups import Asking, Judging, with_groups
from pairscale.cli._inputs import make_named_judge, run_file, say_reused, show_request
from pairscale.cli._opening import read_given_pairs, say_judged
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = (
    "pairscale judge pairs.csv --judge openai:gpt-5.1 --run run.db",
    "pairscale judge pairs.csv --judge mine:better --run run.db --concurrency 8",
    "pairscale judge pairs.csv --judge simulated:truth --judge-arg bias=0.3",
    "pairscale judge pairs.csv --judge replay:answers.csv --out results.csv",
    "pairscale judge pairs.csv --judge mine:better --shard 3/16 --run s/03.db",
    "pairscale judge pairs.csv --judge mine:better --shards 4 --run shards",
)


@with_groups
def command(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="A table with ID1 text1 ID2 text2; `pairscale pairs` makes it.")
    ],
    judge: Annotated[
        str,
        typer.Option(
            metavar="JUDGE",
            autocompletion=_names.judges,
            help="provider:model (openai:gpt-5.1, anthropic:…, gemini:…, together:…, ollama:…, compatible:…), lexical "
            "(embedded, a baseline), simulated:COLUMN (known truth), replay:FILE (recorded answers), or "
            "module:function (yours, also from this folder).",
        ),
    ] = "lexical",
    run: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=run_file,
            help="The run file: every answer is kept there, and the same command resumes it.",
        ),
    ] = None,
    judging: Judging = Judging(),
    asking: Asking = Asking(),
    answer: opt.Answer = "winner",
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Judge one of N equal parts of the pairs, such as 3/16, into a run file of its own."
        ),
    ] = None,
    shards: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Judge N parts, each in a run file in the folder --run.")
    ] = None,
    n_jobs: opt.NJobs = None,
    dry_run: opt.DryRun = False,
    save_path: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also keep this CSV up to date, and resume from it.")
    ] = None,
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    encoding: opt.Encoding = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Have pairs judged, and keep every answer.

    Every answer is on the disk before it is used. Run the same command again after a crash or Ctrl-C: it asks only what
    is missing for this judge, trait and settings. Another judge may use the same run file; it starts from nothing.

    A judge of your own is a function judge(A, B) in a Python file. A and B have "ID", "text" and the other columns of
    the samples; it returns 1 when A is better, and 2 when B is.

    One process keeps hundreds of questions open: try --concurrency 256 first. For a job array on several machines, give
    every task the same pairs and its own --shard and --run; --max-cost is that of the whole job, and a shard spends its
    part at most. `pairscale fit`, `report`, `status` and others then take the folder.
    """
    from pairscale.core.counting import is_many
    from pairscale.judges.base import judge_member
    from pairscale.providers.catalog import price_date

    table, opening = read_given_pairs(pairs, encoding=encoding, a_col=a_col, b_col=b_col)
    kept = run or save_path
    # What a judge function prints is no part of the result.
    with resumable(kept), contextlib.redirect_stdout(sys.stderr):
        asked = make_named_judge(judge, judging, asking.price, answer)
        opening.say([asked.condition.judge_id])
        if not dry_run:
            say_unsaved(kept)
            answers = ps.judge(
                table, asked, answer=answer, run=run, shard=shard, shards=shards, n_jobs=n_jobs, save_path=save_path,
                **asking.limits,
            )  # fmt: skip
    if dry_run:
        show_request(asked, table.row(0, named=True), calls=table.height, as_json=as_json)
        return
    prices_as_of = price_date(judge_member(asked, "price"))
    if answers.n_answered == 0:
        if as_json:
            emit(_document(answers, prices_as_of), answers.results, as_json=True, out=None, show=lambda: None)
        raise _unanswered(answers, table.height)
    _report(answers, table.height if shard is None else answers.n_answered + answers.n_failed)
    say_reused(asked)
    if is_many(table.height) and run is not None and out is None and not as_json:
        say(f"so many results are not read into memory: pairscale export {as_argument(run)} --out results.parquet")
    else:
        document = _document(answers, prices_as_of)
        emit(document, answers.results, as_json=as_json, out=out, show=lambda: _show(answers.results, prices_as_of))
    if run is not None and not as_json:
        say(f"next: pairscale fit {as_argument(run)}")
    say_judged([asked.condition.judge_id])


def _document(answers: ps.SubmitResult, prices_as_of: str | None) -> dict[str, object]:
    return {
        "asked": answers.asked,
        "prices_as_of": prices_as_of,
        "condition_id": answers.condition_id,
        "results": answers.results,
        "failed_pairs": answers.failed_pairs.drop("text1", "text2"),
        "failed_attempts": answers.failed_attempts.drop("text1", "text2"),
    }


def _unanswered(answers: ps.SubmitResult, total: int) -> InputError:
    if answers.n_failed == 0:
        return InputError(f"none of the {total:,} pairs was asked; the first might pass --max-cost")
    reason = answers.failed_pairs["error_message"][0]
    return InputError(f"none of the {total:,} pairs was answered; the first: {reason}")


def _report(answers: ps.SubmitResult, total: int) -> None:
    done = answers.n_answered
    asked = "all known already, nothing asked" if answers.asked == 0 else f"{answers.asked:,} asked now"
    say(f"{done:,} of {total:,} pairs answered, {asked}")
    if answers.n_failed:
        say(f"{answers.n_failed:,} without an answer; the same command asks them again:")
        for row in answers.failed_pairs.head(3).iter_rows(named=True):
            reason = f"{row['error_code']}: {row['error_message']}"
            say(f"  {printable(row['ID1'])} / {printable(row['ID2'])}: {printable(reason)}")


def _show(results: pl.DataFrame, prices_as_of: str | None) -> None:
    from pairscale.providers.catalog import price_note

    shown = results.select("ID1", "ID2", "better_id", "outcome", "probability", "cost")
    uniform = [name for name in ("probability", "cost") if shown[name].null_count() == shown.height]
    if (shown["outcome"] == "win").all():
        uniform.append("outcome")
    show_table(shown.drop(uniform), most=10)
    if "cost" not in uniform and results["cost"].sum() > 0:
        say(f"cost: US dollars{price_note([prices_as_of])}")
