"""``pairscale check-judge``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._asking import make_judge, opening, read_texts, say_judged
from pairscale.cli._common import Arguments, Output, echo, fields, other_file, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.display import printable
from pairscale.core.notices import plural
from pairscale.core.options import FilePath

if TYPE_CHECKING:
    from pairscale.evaluate.judge_check import JudgeCheck
    from pairscale.simulation.planning import ComparisonPlan


@from_verb("evaluate.judge_check.check_judge", "DATA", hidden="timeout seed encoding strict price")
def command(arguments: Arguments, emit: Output, *, reliability: float = 0.9, out: FilePath | None = None) -> None:
    """Try a judge before a study: some pairs in both orders, then one screen.

    Does it answer validly? Is it consistent when the order is reversed? Does it favour a position, or longer
    texts? What does it cost, and how many comparisons and how much money will this data set need? With --labels also:
    does it agree with people, does it say the same when asked again, and does appended nonsense win it over? With
    --since card.json also: does it agree with people as well as the judge of that card, on the same labels? With
    --answer probability also: are its probabilities right, against people and against its own reversed answers?

    --out judge-card.json keeps all of it, and `pairscale report judge-card.json` shows it as a page.

    Args:
        data: A folder of texts, a table of them, or the cases of a manifest (`pairscale ab --manifest`).
        reliability: Reliability that the study should reach, for the estimate.
        out: Write the judge card (.json), or its figures as a table (csv and so on).

    Examples:
        pairscale check-judge essays/ --judge openai:gpt-5.1 --run check.db
        pairscale check-judge essays.csv --judge mine:better --n-pairs 50
        pairscale check-judge cases.jsonl --labels people.jsonl --out card.json
        pairscale check-judge essays.csv --labels people.csv --since old-card.json
    """
    from pairscale.evaluate.judge_check import case_rows

    card = other_file(emit, out, ".json")
    cases = case_rows(Path(arguments["data"]))
    judge = None
    if cases is None:
        read_texts(arguments)
        judge = make_judge(arguments)
    else:
        say(f"{plural(len(cases), 'case')} of two answers from {arguments['data']}")
    opening(arguments["judge"] if judge is None else judge.condition.judge_id)
    check = ps.check_judge(**arguments)
    plan = None
    if check.spread is not None:
        say("estimating what the whole data set will need …")
        effect = getattr(getattr(check.bias, "effect", None), "b", 0.0)
        plan = ps.plan(
            check.n_items, reliability=reliability, sd=check.spread, answer=arguments["answer"], error=check.error,
            bias=max(-2.0, min(2.0, effect)), price=check.cost_each, seconds=check.seconds_each,
        )  # fmt: skip
    if card is not None:
        say(f"wrote the judge card to {check.save_card(card)}")
    names = "judge_id n_items n_pairs n_asked n_valid prop_valid prop_consistent cost_each prices_as_of seconds_each"
    document = fields(check, f"{names} tokens_each failures spread error")
    document["position"] = getattr(check.bias, "verdict", None)
    document["plan"] = plan and fields(plan, "answer comparisons half cost")
    document["change"] = check.change and asdict(check.change)
    document["card"] = check.card.to_dict()
    emit(document, check.card.table, lambda: _show(check, plan))
    say_judged(check.judge_id, judge=judge)


def _show(check: JudgeCheck, plan: ComparisonPlan | None) -> None:
    from pairscale.providers.catalog import price_note

    asked = "the cases" if check.card.judge.kind == "cases" else f"the pairs of {check.n_items:,} texts"
    echo(f"{check.n_pairs} of {asked}, in both orders\n{check}\n")
    if check.card.measures["agreement"].measured:
        echo(f"{check.card}\n")
    if check.change is not None:
        echo(f"{check.change}\n")
    show_table(check.card.table.select("measure", "n", "value", "lower", "upper").drop_nulls("value"))
    echo()
    for row in check.failures.head(3).iter_rows(named=True):
        echo(printable("{n} x {error_code}: {error_message}".format_map(row))[:120])
    for calibration in check.calibrations:
        echo(f"probabilities   {calibration.verdict} (Brier score {calibration.brier:.3f})")
    if check.cost_each is not None:
        tokens = "" if check.tokens_each is None else f", {check.tokens_each:,.0f} tokens"
        echo(f"a question      ${check.cost_each:.5f}{price_note([check.prices_as_of])}{tokens}")
    if plan is not None:
        echo(f"whole study     {plan}")
        echo(f"                simulated with scores of a standard deviation of {check.spread:.1f} logits")
