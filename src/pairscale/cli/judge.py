"""``pairscale judge``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._asking import make_judge, opening, read_given_pairs, say_judged, show_request
from pairscale.cli._common import Output, as_argument, fields, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl


@from_verb(
    "collect.verbs.judge",
    "PAIRS",
    "pairscale judge pairs.csv --judge openai:gpt-5.1 --run run.db",
    "pairscale judge pairs.csv --judge mine:better --run run.db --concurrency 8",
    "pairscale judge pairs.csv --judge simulated:truth --judge-arg bias=0.3",
    "pairscale judge pairs.csv --judge replay:answers.csv --out results.csv",
    "pairscale judge pairs.csv --judge mine:better --shard 3/16 --run s/03.db",
    hidden="shards n_jobs save_path encoding timeout",
)
def command(arguments: dict[str, Any], emit: Output, *, dry_run: bool = False) -> None:
    """Have pairs judged, and keep every answer.

    Every answer is on the disk before it is used. Run the same command again after a crash or Ctrl-C: it asks only what
    is missing for this judge, trait and settings. Another judge may use the same run file; it starts from nothing.

    A judge of your own is a function judge(A, B) in a Python file. A and B have "ID", "text" and the other columns of
    the samples; it returns 1 when A is better, and 2 when B is.

    One process keeps hundreds of questions open: try --concurrency 256 first. For a job array on several machines, give
    every task the same pairs and its own --shard and --run; --max-cost is that of the whole job, and a shard spends its
    part at most. `pairscale fit`, `report`, `status` and others then take the folder.

    Args:
        pairs: A table with ID1 text1 ID2 text2; `pairscale pairs` makes it.
        run: The run file: every answer is kept there, and the same command resumes it.
        dry_run: Show the first request and the number of calls; ask nothing.
    """
    from pairscale.core.counting import is_many
    from pairscale.judges.base import judge_member
    from pairscale.providers.catalog import price_date

    run = arguments["run"]
    read_given_pairs(arguments)
    pairs = arguments["pairs"]
    judge = make_judge(arguments)
    opening(judge.condition.judge_id, saved=dry_run or run is not None)
    if dry_run:
        show_request(emit, judge, pairs.row(0, named=True), pairs.height)
        return
    answers = ps.judge(**arguments)
    document = fields(answers, "asked condition_id results")
    document["prices_as_of"] = price_date(judge_member(judge, "price"))
    document["failed_pairs"] = answers.failed_pairs.drop("text1", "text2")
    document["failed_attempts"] = answers.failed_attempts.drop("text1", "text2")
    total = pairs.height
    if arguments["shard"] is not None:
        total = answers.n_answered + answers.n_failed
    if answers.n_answered == 0:
        if emit.as_json:
            emit(document, None, lambda: None)
        if answers.n_failed == 0:
            raise InputError(f"none of the {total:,} pairs was asked; the first might pass --max-cost")
        reason = answers.failed_pairs["error_message"][0]
        raise InputError(f"none of the {total:,} pairs was answered; the first: {reason}")
    say(f"{answers.n_answered:,} of {total:,} pairs answered, {answers.asked:,} asked now")
    if answers.n_failed:
        say(f"{answers.n_failed:,} without an answer; the same command asks them again:")
        for row in answers.failed_pairs.head(3).iter_rows(named=True):
            say(f"  {row['ID1']} / {row['ID2']}: {row['error_code']}: {row['error_message']}")
    if is_many(pairs.height) and run is not None and emit.is_screen:
        say(f"so many results are not read into memory: pairscale export {as_argument(run)} --out results.parquet")
    else:
        emit(document, answers.results, lambda: _show(answers.results, document["prices_as_of"]))
    if run is not None and not emit.as_json:
        say(f"next: pairscale fit {as_argument(run)}")
    say_judged(judge.condition.judge_id, judge=judge)


def _show(results: pl.DataFrame, prices_as_of: str | None) -> None:
    from pairscale.providers.catalog import price_note

    names = [name for name in ("probability", "cost") if results[name].null_count() < results.height]
    if (results["outcome"] != "win").any():
        names.insert(0, "outcome")
    show_table(results.select("ID1", "ID2", "better_id", *names), most=10)
    if results["cost"].sum() > 0:
        say(f"cost: US dollars{price_note([prices_as_of])}")
