"""``pairscale cost``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._asking import opening, read_pairs, say_judged
from pairscale.cli._common import Arguments, Facts, Output, as_argument, complain, echo, say
from pairscale.cli.from_verb import from_verb


@from_verb(
    "collect.cost.cost", "PAIRS", hidden="select seed quantile cache timeout concurrency strict encoding a_col b_col"
)
def command(arguments: Arguments, emit: Output) -> None:
    """Estimate what judging pairs will cost: asks a few, and says what all of them will need.

    The pilot is asked live and paid for; with --run its answers are kept, and `pairscale judge` on the same run file
    asks only the others. Expected is the mean; the budget is not passed with probability Q. --offline asks nothing and
    is rough: thoughts, above all, can cost many times what it assumes.

    Examples:
        pairscale cost pairs.csv --judge openai:gpt-5.1 --run run.db
        pairscale cost pairs.csv --judge openai:gpt-5.1 --pilot 40 --batch
        pairscale cost pairs.csv --judge anthropic:claude-sonnet-4-5 --offline
        pairscale cost pairs.csv --judge compatible:m --price input=0.2,output=0.6
    """
    source = arguments["pairs"]
    judge = arguments["judge"]
    read_pairs(arguments, "pairs")
    opening(judge)
    found = ps.cost(**arguments)
    document: Facts = found.summary.row(0, named=True)
    document |= {"calibration": dict(found.calibration), "notes": list(found.notes)}
    document["failed_pairs"] = found.failed_pairs.drop("text1", "text2")
    emit(document, found.summary, lambda: echo(repr(found)))
    if not emit.is_screen:
        for note in found.notes:
            complain("note", note)
    if arguments["offline"]:
        return
    if arguments["run"] is not None and emit.is_screen:
        verb = "batch submit" if arguments["batch"] else "judge"
        run = as_argument(arguments["run"])
        say(f"next: pairscale {verb} {as_argument(source)} --judge {judge} --run {run}")
    say_judged(judge)
