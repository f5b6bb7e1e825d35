"""``pairscale cost``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import as_argument, emit, printable, resumable, say
from pairscale.cli._groups import Judging, Reading, with_groups
from pairscale.cli._inputs import price_of, run_file
from pairscale.cli._opening import read_pairs, say_judged

EXAMPLES = (
    "pairscale cost pairs.csv --judge openai:gpt-5.1 --run run.db",
    "pairscale cost pairs.csv --judge openai:gpt-5.1 --pilot 40 --batch",
    "pairscale cost pairs.csv --judge anthropic:claude-sonnet-4-5 --offline",
    "pairscale cost pairs.csv --judge compatible:m --price input=0.2,output=0.6",
)


@with_groups
def command(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="A table with ID1 text1 ID2 text2, or texts: then all their pairs.")
    ],
    judge: Annotated[
        str,
        typer.Option(metavar="JUDGE", autocompletion=_names.judges, help="provider:model, as in `pairscale judge`."),
    ],
    pilot: Annotated[int, typer.Option(min=1, metavar="N", help="Pairs to ask; they are paid for.")] = 25,
    select: Annotated[
        Literal["stratified", "random", "first"],
        typer.Option(metavar="WAY", help="Which: stratified (by the length of the prompts), random or first."),
    ] = "stratified",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed takes the same pairs.")] = 1,
    batch: Annotated[bool, typer.Option("--batch", help="The others will go through a batch, at its price.")] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nothing, need no key: a rough estimate from the texts' length.")
    ] = False,
    output_tokens: Annotated[
        float | None,
        typer.Option(min=0, metavar="N", help="Tokens of an answer, for --offline; by default assumed from the model."),
    ] = None,
    price: opt.PriceOption = None,
    quantile: Annotated[
        float, typer.Option(min=0.5, max=0.999, metavar="Q", help="The probability of staying within the budget.")
    ] = 0.9,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=run_file,
            help="The run file: it keeps the pilot, and `judge` continues from there.",
        ),
    ] = None,
    judging: Judging = Judging(),
    concurrency: opt.Concurrency = 8,
    retries: opt.Retries = 3,
    timeout: opt.Timeout = 300.0,
    reading: Reading = Reading(),
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Estimate what judging pairs will cost: asks a few, and says what all of them will need.

    The pilot is asked live and paid for; with --run its answers are kept, and `pairscale judge` on the same run file
    asks only the others. Expected is the mean; the budget is not passed with probability Q. --offline asks nothing and
    is rough: thoughts, above all, can cost many times what it assumes.
    """
    table, _, opening = read_pairs(pairs, reading, a_col, b_col)
    opening.say([judge])
    with resumable(run), contextlib.redirect_stdout(sys.stderr):
        found = ps.cost(
            table,
            judge=judge,
            pilot=pilot,
            select=select,
            seed=seed,
            batch=batch,
            offline=offline,
            output_tokens=output_tokens,
            price=None if price is None else price_of(price),
            quantile=quantile,
            run=run,
            concurrency=concurrency,
            retries=retries,
            timeout=timeout,
            **judging.arguments,
        )
    document: dict[str, Any] = found.summary.row(0, named=True)
    document |= {"calibration": dict(found.calibration), "notes": list(found.notes)}
    document["failed_pairs"] = found.failed_pairs.drop("text1", "text2")
    emit(document, found.summary, as_json=as_json, out=out, show=lambda: _show(found))
    if as_json or out is not None:
        for note in found.notes:
            say(f"note: {printable(note)}")
    elif run is not None and not offline:
        verb = "batch submit" if batch else "judge"
        say(f"next: pairscale {verb} {as_argument(str(pairs))} --judge {judge} --run {as_argument(run)}")
    say_judged([None if offline else judge])


def _show(found: ps.CostEstimate) -> None:
    for line in repr(found).splitlines():
        typer.echo("".join(letter if letter.isprintable() else "�" for letter in line))
