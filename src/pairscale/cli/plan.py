"""``pairscale plan``."""

from __future__ import annotations

from dataclasses import asdict

import pairscale as ps
from pairscale.cli._common import Arguments, Output, complain, echo, show_table
from pairscale.cli.from_verb import from_verb


@from_verb("simulation.planning.plan", "", hidden="invalid_rate selector preset seed n_jobs")
def command(arguments: Arguments, emit: Output) -> None:
    """How many comparisons will I need, what will they cost, how long will they take?

    Runs like the one you plan are simulated to their stop rule. The answer is the number of comparisons that is enough
    for 80 % of them, with what half of them need in brackets. A run that ends before its stop, because no pair is left
    or after 100 comparisons per item, counts as one that needs more than any other. With more than 100 items, runs of
    100 are simulated and their comparisons per item are taken: these hardly depend on the number of items.

    The figures rest on --sd, how far apart the texts are in the judge's eyes. At 1, the better of two texts drawn at
    random wins 73 of 100 comparisons; at 2, 83; at 0.5, 63.

    Args:
        price: Price per question, in any currency.

    Examples:
        pairscale plan --items 200 --reliability 0.9
        pairscale plan --items 200 --price 0.002 --seconds 2 --concurrency 8
        pairscale plan --items 200 --goal top:10 --sd 2
        pairscale plan --items 100 --answer probability --error 1.5 --sd 2
        pairscale plan --items 60 --reliability 0.8 --sd 2 --bias 0.3 --lapse 0.05
    """
    plan = ps.plan(**arguments)
    for line in plan.notices:
        complain("note", line)

    def show() -> None:
        show_table(plan.runs)
        echo(f"\n{plan}")

    emit(asdict(plan), plan.runs, show)
