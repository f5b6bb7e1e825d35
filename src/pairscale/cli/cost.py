"""``pairscale cost``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli._common import Concurrency, Encoding, Json, Out, Retries, emit, printable, resumable, say
from pairscale.cli._inputs import (
    BaseUrl,
    Cache,
    JudgeArgs,
    PriceOption,
    TemplateName,
    TraitName,
    make_named_judge,
    price_of,
    read_pairs,
    run_file,
    setting,
)
from pairscale.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale cost pairs.csv --judge openai:gpt-5.1 --run run.db",
    "pairscale cost pairs.csv --judge openai:gpt-5.1 --pilot 40 --batch",
    "pairscale cost pairs.csv --judge anthropic:claude-sonnet-4-5 --offline",
    "pairscale cost pairs.csv --judge compatible:m --price input=0.2,output=0.6",
)


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
        float | None, typer.Option(min=0, metavar="N", help="Of an answer, for --offline; else assumed by the model.")
    ] = None,
    price: PriceOption = None,
    quantile: Annotated[
        float, typer.Option(min=0.5, max=0.999, metavar="Q", help="The probability of staying within the budget.")
    ] = 0.9,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", callback=run_file, help="The run file: it keeps the pilot, and `judge` goes on from there."
        ),
    ] = None,
    trait: TraitName = None,
    template: TemplateName = None,
    judge_arg: JudgeArgs = None,
    base_url: BaseUrl = None,
    cache: Cache = None,
    concurrency: Concurrency = 8,
    retries: Retries = 3,
    encoding: Encoding = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Estimate what judging pairs will cost: asks a few, and says what all of them will need.

    The pilot is asked live and paid for; with --run its answers are kept, and `pairscale judge` on the same run file
    asks only the others. Expected is the mean; the budget is not passed with probability Q. --offline asks nothing and
    is rough: thoughts, above all, can cost many times what it assumes.
    """
    table, _ = read_pairs(pairs, None, None, encoding)
    with resumable(run), contextlib.redirect_stdout(sys.stderr):
        found = ps.estimate_llm_pairs_cost(
            table,
            mode="batch" if batch else "live",
            n_test=pilot,
            test_strategy=select,
            seed=seed,
            budget_quantile=quantile,
            offline=offline,
            output_tokens=output_tokens,
            run=run,
            concurrency=concurrency,
            retries=retries,
            **_judge(judge, trait, template, judge_arg, base_url, price, cache),
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
        say(f"next: pairscale {verb} {pairs} --judge {judge} --run {run}")


def _judge(
    judge: str,
    trait: str | None,
    template: str | None,
    given: Sequence[str] | None,
    base_url: str | None,
    price: str | None,
    cache: bool | None,
) -> dict[str, Any]:
    """The judge and its prices, as the function takes them."""
    from pairscale.providers.registry import PROVIDERS

    prices = None if price is None else price_of(price)
    if judge.partition(":")[0] in PROVIDERS:
        settings: dict[str, Any] = dict(setting(text) for text in given or [])
        more = {
            "trait": trait, "base_url": base_url, "price": prices, "prompt_template": template, "cache": cache,
        }  # fmt: skip
        return {"judge": judge} | settings | {name: value for name, value in more.items() if value is not None}
    made: dict[str, Any] = {"judge": make_named_judge(judge, trait, template, given, base_url, cache)}
    if prices is not None:
        if not {"input", "output"} <= set(prices):
            raise InputError(f"--price: {judge} is no provider's model; say input=1.25,output=10")
        made |= {f"cost_per_million_{kind}": prices[kind] for kind in ("input", "output")}
        made["batch_discount"] = prices.get("batch")
    return made


def _show(found: ps.CostEstimate) -> None:
    for line in repr(found).splitlines():
        typer.echo("".join(letter if letter.isprintable() else "�" for letter in line))
