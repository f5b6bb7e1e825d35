"""``pairscale check-judge``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, printable, resumable, say
from pairscale.cli._inputs import make_named_judge, run_file, say_reused
from pairscale.cli._opening import read_texts, say_judged

if TYPE_CHECKING:
    from pairscale.checks.judge import JudgeCheck

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale check-judge essays/ --judge openai:gpt-5.1 --run check.db",
    "pairscale check-judge essays.csv --judge mine:better --n-pairs 50",
)


def command(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A folder or zip archive of texts, or a table of them.")],
    judge: opt.JudgeName = "lexical",
    run: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=run_file, help="The run file; the same line asks nothing twice."),
    ] = None,
    n_pairs: Annotated[int, typer.Option(min=1, metavar="N", help="Pairs; each is asked twice.")] = 30,
    trait: opt.TraitName = None,
    template: opt.TemplateName = None,
    judge_arg: opt.JudgeArgs = None,
    base_url: opt.BaseUrl = None,
    cache: opt.Cache = None,
    concurrency: opt.Concurrency = 8,
    retries: opt.Retries = 3,
    timeout: opt.Timeout = 300.0,
    max_cost: opt.MaxCost = None,
    price: opt.PriceOption = None,
    reliability: Annotated[
        float, typer.Option(min=0, max=1, metavar="R", help="What the study is to reach, for the estimate.")
    ] = 0.9,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed takes the same pairs.")] = 1,
    id_col: opt.IdCol = None,
    text_col: opt.TextCol = None,
    encoding: opt.Encoding = None,
    strict: opt.Strict = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Try a judge before a study: 30 pairs in both orders, then one screen.

    Does it answer validly? Is it consistent when the order is reversed? Does it favour a position? What does it
    cost, and how many comparisons and how much money will this data set need?
    """
    report, opening = read_texts(data, id_col=id_col, text_col=text_col, encoding=encoding, strict=strict)
    with resumable(run), contextlib.redirect_stdout(sys.stderr):
        asked = make_named_judge(judge, trait, template, judge_arg, base_url, cache, price)
        opening.say([asked.condition.judge_id])
        found = ps.check_judge(
            report, asked, n_pairs=n_pairs, run=run, concurrency=concurrency, retries=retries, timeout=timeout,
            max_cost=max_cost, seed=seed,
        )  # fmt: skip
    say_reused(asked)
    say("estimating what the whole data set will need …")
    plan = ps.plan(
        report.samples.height,
        reliability=reliability,
        bias=_effect(found),
        price=found.cost_each,
        seconds=found.seconds_each,
    )
    import polars as pl

    document = _document(found) | {"plan": {"comparisons": plan.comparisons, "cost": plan.cost}}
    table = pl.DataFrame([{name: value for name, value in document.items() if name not in {"failures", "plan"}}])
    emit(document, table, as_json=as_json, out=out, show=lambda: _show(found, plan))
    say_judged([found.judge_id])


def _effect(found: JudgeCheck) -> float:
    value = None if found.bias is None else found.bias.effect.estimate
    return 0.0 if value is None else max(-2.0, min(2.0, float(value)))


def _document(found: JudgeCheck) -> dict[str, Any]:
    return {
        "judge": found.judge_id,
        "n_items": found.n_items,
        "n_pairs": found.n_pairs,
        "n_asked": found.n_asked,
        "n_valid": found.n_valid,
        "prop_valid": found.prop_valid,
        "prop_consistent": found.prop_consistent,
        "position": None if found.bias is None else found.bias.verdict,
        "cost_each": found.cost_each,
        "prices_as_of": found.prices_as_of,
        "seconds_each": found.seconds_each,
        "tokens_each": found.tokens_each,
        "failures": found.failures,
    }


def _show(found: JudgeCheck, plan: Any) -> None:
    from pairscale.providers.prices import price_note

    typer.echo(f"{found.judge_id} on {found.n_pairs} of the pairs of {found.n_items:,} texts, in both orders\n")
    typer.echo(f"valid answers   {found.n_valid} of {found.n_asked}")
    for row in found.failures.head(3).iter_rows(named=True):
        typer.echo(f"                {row['n']} x {row['error_code']}: {printable(row['error_message'] or '')[:90]}")
    if found.prop_consistent is not None:
        typer.echo(f"consistent      {found.prop_consistent:.0%} of the pairs have the same winner both ways")
    if found.bias is not None:
        typer.echo(f"position        {found.bias.verdict}")
    each = [
        None if found.cost_each is None else f"${found.cost_each:.5f}{price_note([found.prices_as_of])}",
        None if found.seconds_each is None else f"{found.seconds_each:.2f} s",
        None if found.tokens_each is None else f"{found.tokens_each:,.0f} tokens",
    ]
    if any(each):
        typer.echo(f"a question      {', '.join(part for part in each if part)}")
    typer.echo(f"whole study     {plan}")
    typer.echo("                if the texts are close; texts far apart need fewer, see `pairscale plan --sd 2`")
