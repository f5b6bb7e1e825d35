"""``pairscale plan``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import complain, emit, show_table

if TYPE_CHECKING:
    from pairscale.simulation.planning import ComparisonPlan

EXAMPLES = (
    "pairscale plan --items 200 --reliability 0.9",
    "pairscale plan --items 200 --price 0.002 --seconds 2 --concurrency 8",
    "pairscale plan --items 200 --goal top:10 --sd 2",
    "pairscale plan --items 100 --answer probability --error 1.5 --sd 2",
    "pairscale plan --items 100 --judge-slopes 1.5,1,0.5",
    "pairscale plan --items 60 --reliability 0.8 --sd 2 --bias 0.3 --lapse 0.05",
)


def command(
    items: Annotated[int, typer.Option(min=2, metavar="N", help="How many items there will be.")],
    goal: opt.Goal = "order",
    reliability: Annotated[
        float | None, typer.Option(metavar="R", help="The EAP reliability to stop at; 0.9 by default.")
    ] = None,
    sd: Annotated[float, typer.Option(metavar="SD", help="Standard deviation of the abilities, in logits.")] = 1.0,
    bias: Annotated[float, typer.Option(metavar="LOGITS", help="The judge's preference for the first position.")] = 0.0,
    lapse: Annotated[float, typer.Option(metavar="SHARE", help="Share of answers that are a coin toss.")] = 0.0,
    invalid_rate: Annotated[float, typer.Option(metavar="SHARE", help="Share of questions that it declines.")] = 0.0,
    answer: opt.Answer = "winner",
    error: Annotated[
        float | None,
        typer.Option(metavar="LOGITS", help="With --answer probability: scale of the judge's errors; 1 by default."),
    ] = None,
    judge_slopes: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Of several judges: how much of a difference each sees, as 1.5,1,0.5,0."),
    ] = None,
    selector: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=_names.selectors,
            help="How pairs are chosen: pollitt (for the order), information (for top:K), random or nearest.",
        ),
    ] = None,
    preset: opt.PresetName = "pairscale",
    price: Annotated[
        float | None, typer.Option(min=0, metavar="X", help="Price per question, in any currency.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, metavar="X", help="Seconds per answer.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Questions open at once.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Runs to simulate.")] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same plan.")] = 0,
    n_jobs: opt.NJobs = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """How many comparisons will I need, what will they cost, how long will they take?

    Runs like the one you plan are simulated to their stop rule, and the median over all runs is reported. A run that
    ends before that, because no pair is left or after 100 comparisons per item, counts as one that needs more than any
    other. With more than 100 items, runs of 100 are simulated and their comparisons per item are taken: these hardly
    depend on the number of items.

    The figures rest on --sd, how far apart the texts are in the judge's eyes. At 1, the better of two texts drawn at
    random wins 73 of 100 comparisons; at 2, 83; at 0.5, 63.
    """
    plan = ps.plan(
        items,
        goal=goal,
        reliability=reliability,
        sd=sd,
        bias=bias,
        lapse=lapse,
        invalid_rate=invalid_rate,
        answer=answer,
        error=error,
        judge_slopes=None if judge_slopes is None else _numbers(judge_slopes),
        selector=selector,
        preset=preset,  # type: ignore[arg-type]
        price=price,
        seconds=seconds,
        concurrency=concurrency,
        seeds=seeds,
        seed=seed,
        n_jobs=n_jobs,
    )
    for line in plan.notices:
        complain("note", line)

    def show() -> None:
        show_table(plan.runs)
        typer.echo()
        typer.echo(str(plan))
        if plan.top_right is not None:
            top = plan.goal.removeprefix("top:")
            typer.echo(f"at the end of the runs: {plan.top_right:.1f} of the true top {top} were named")
        elif plan.reliability_true is not None and plan.spearman is not None:
            typer.echo(
                f"at the end of the runs: true reliability {plan.reliability_true:.3f}, rank correlation with the "
                f"truth {plan.spearman:.3f}"
            )

    emit(_document(plan), plan.runs, as_json=as_json, out=out, show=show)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ps.errors.InputError(f"--judge-slopes must look like 1.5,1,0.5,0, not {text!r}") from None


def _document(plan: ComparisonPlan) -> dict[str, object]:
    return {entry.name: getattr(plan, entry.name) for entry in fields(plan)}
