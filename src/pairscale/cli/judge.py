"""``pairscale judge``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._asking import make_judge, opening, read_given_pairs, say_judged
from pairscale.cli._common import Arguments, Output, as_argument, echo, fields, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from pairscale.judges.base import Judge


@from_verb("collect.verbs.judge", "PAIRS", hidden="shards n_jobs save_path encoding timeout")
def command(arguments: Arguments, emit: Output, *, dry_run: bool = False) -> None:
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

    Examples:
        pairscale judge pairs.csv --judge openai:gpt-5.1 --run run.db
        pairscale judge pairs.csv --judge mine:better --run run.db --concurrency 8
        pairscale judge pairs.csv --judge simulated:truth --judge-arg bias=0.3
        pairscale judge pairs.csv --judge replay:answers.csv --out results.csv
        pairscale judge pairs.csv --judge mine:better --shard 3/16 --run s/03.db
    """
    from pairscale.judges.base import judge_member
    from pairscale.providers.catalog import price_date

    run = arguments["run"]
    read_given_pairs(arguments)
    pairs = arguments["pairs"]
    judge = make_judge(arguments)
    opening(judge.condition.judge_id, run=dry_run or run)
    if dry_run:
        _show_request(emit, judge, pairs)
        return
    answers = ps.judge(**arguments)
    document = fields(answers, "asked condition_id results")
    document["prices_as_of"] = price_date(judge_member(judge, "price"))
    document["failed_pairs"] = answers.failed_pairs.drop("text1", "text2")
    document["failed_attempts"] = answers.failed_attempts.drop("text1", "text2")
    total = pairs.height if arguments["shard"] is None else answers.n_answered + answers.n_failed
    if answers.n_answered == 0:
        if emit.as_json:
            emit(document, None, lambda: None)
        reason = "asked; the first might pass --max-cost"
        if answers.n_failed:
            reason = f"answered; the first: {answers.failed_pairs['error_message'][0]}"
        raise InputError(f"none of the {total:,} pairs was {reason}")
    say(f"{answers.n_answered:,} of {total:,} pairs answered, {answers.asked:,} asked now")
    if answers.n_failed:
        say(f"{answers.n_failed:,} without an answer; the same command asks them again:")
        for row in answers.failed_pairs.head(3).iter_rows(named=True):
            say("  {ID1} / {ID2}: {error_code}: {error_message}".format_map(row))
    emit(document, answers.results, lambda: _show(answers.results, document["prices_as_of"]))
    if run is not None and not emit.as_json:
        say(f"next: pairscale fit {as_argument(run)}")
    say_judged(judge.condition.judge_id, judge=judge)


def _show_request(emit: Output, judge: Judge, pairs: pl.DataFrame) -> None:
    """What would be sent for the first pair, and how often something would be."""
    from pairscale.judges.base import JudgePair

    if not hasattr(judge, "preview"):
        raise InputError(f"--dry-run shows what a model would be sent; {judge.condition.judge_id} is not a model")
    row = pairs.row(0, named=True)
    question = JudgePair({"ID": row["ID1"], "text": row["text1"]}, {"ID": row["ID2"], "text": row["text2"]})
    address, body = judge.preview(question)

    def show() -> None:
        echo(f"{pairs.height:,} calls to {address}, nothing was sent; the first:\n")
        echo(json.dumps(body, indent=2, ensure_ascii=False))

    prompt = judge.request(question).prompt  # type: ignore[attr-defined]
    emit({"calls": pairs.height, "address": address, "body": body, "prompt": prompt}, None, show)


def _show(results: pl.DataFrame, prices_as_of: str | None) -> None:
    from pairscale.providers.catalog import price_note

    names = [name for name in ("probability", "cost") if results[name].null_count() < results.height]
    if (results["outcome"] != "win").any():
        names.insert(0, "outcome")
    show_table(results.select("ID1", "ID2", "better_id", *names), most=10)
    if results["cost"].sum() > 0:
        say(f"cost: US dollars{price_note([prices_as_of])}")
