"""``pairscale check-judge``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._asking import make_judge, opening, read_texts, say_judged
from pairscale.cli._common import Output, echo, printable, say, show_table, writable
from pairscale.cli.from_verb import from_verb
from pairscale.core.notices import plural

if TYPE_CHECKING:
    from pairscale.evaluate.judge_check import JudgeCheck
    from pairscale.simulation.planning import ComparisonPlan


@from_verb(
    "check_judge",
    "DATA",
    "pairscale check-judge essays/ --judge openai:gpt-5.1 --run check.db",
    "pairscale check-judge essays.csv --judge mine:better --n-pairs 50",
    "pairscale check-judge cases.jsonl --labels people.jsonl --out card.json",
)
def command(
    arguments: dict[str, Any], emit: Output, *, reliability: float = 0.9, out: str | Path | None = None
) -> None:
    """Try a judge before a study: some pairs in both orders, then one screen.

    Does it answer validly? Is it consistent when the order is reversed? Does it favour a position, or longer
    texts? What does it cost, and how many comparisons and how much money will this data set need? With --labels also:
    does it agree with people, does it say the same when asked again, and does appended nonsense win it over? With
    --answer probability also: are its probabilities right, against people and against its own reversed answers?

    --out judge-card.json keeps all of it, and `pairscale report judge-card.json` shows it as a page.

    Args:
        data: A folder of texts, a table of them, or the cases of a manifest (`pairscale ab --manifest`).
        reliability: Reliability that the study should reach, for the estimate.
        out: Write the judge card (.json), or its figures as a table (csv and so on).
    """
    from pairscale.evaluate.judge_check import case_rows

    card = out if str(out).lower().endswith(".json") else None
    if out is not None and card is None:
        emit.out = writable(Path(out))
    cases = case_rows(Path(arguments["data"]))
    if cases is None:
        read_texts(arguments)
        judge = make_judge(arguments)
        opening(judge.condition.judge_id)
    else:
        judge = None
        say(f"{plural(len(cases), 'case')} of two answers from {arguments['data']}")
        opening(arguments["judge"])
    found = ps.check_judge(**arguments)
    plan = None
    if found.spread is not None:
        say("estimating what the whole data set will need …")
        effect = found.bias.effect.b if found.bias is not None and found.bias.effect is not None else 0.0
        plan = ps.plan(
            found.n_items, reliability=reliability, sd=found.spread, answer=arguments["answer"], error=found.error,
            bias=max(-2.0, min(2.0, effect)), price=found.cost_each, seconds=found.seconds_each,
        )  # fmt: skip
    if card is not None:
        say(f"wrote the judge card to {found.save_card(card)}")
    document = _document(found)
    if plan is not None:
        spread = {"sd": found.spread, "error": found.error}
        document["plan"] = {"answer": plan.answer, "comparisons": plan.comparisons, "cost": plan.cost} | spread
    emit(document, found.card.table, lambda: _show(found, plan))
    say_judged(found.judge_id, judge=judge)


def _document(found: JudgeCheck) -> dict[str, Any]:
    names = (
        "judge_id n_items n_pairs n_asked n_valid prop_valid prop_consistent cost_each prices_as_of seconds_each "
        "tokens_each failures"
    )
    document = {name: getattr(found, name) for name in names.split()}
    document["position"] = None if found.bias is None else found.bias.verdict
    document["calibrations"] = [one.to_dict() for one in found.calibrations]
    return document | {"card": found.card.to_dict()}


def _show(found: JudgeCheck, plan: ComparisonPlan | None) -> None:
    from pairscale.providers.catalog import price_note

    asked = "the cases" if found.card.judge.kind == "cases" else f"the pairs of {found.n_items:,} texts"
    echo(f"{found.judge_id} on {found.n_pairs} of {asked}, in both orders\n")
    table = found.card.table
    show_table(table.filter(table["value"].is_not_null()).select("measure", "n", "value", "lower", "upper"))
    echo(f"\nvalid answers   {found.n_valid} of {found.n_asked}")
    for row in found.failures.head(3).iter_rows(named=True):
        echo(f"                {row['n']} x {row['error_code']}: {printable(row['error_message'] or '')[:90]}")
    if found.prop_consistent is not None:
        echo(f"consistent      {found.prop_consistent:.0%} of the pairs have the same winner both ways")
    if found.bias is not None:
        echo(f"position        {found.bias.verdict}")
    for one in found.calibrations:
        echo(f"probabilities   {one.verdict} (Brier score {one.brier:.3f}, calibration error {one.ece:.3f})")
    if found.cost_each is not None:
        tokens = "" if found.tokens_each is None else f", {found.tokens_each:,.0f} tokens"
        echo(f"a question      ${found.cost_each:.5f}{price_note([found.prices_as_of])}{tokens}")
    if plan is not None:
        echo(f"whole study     {plan}")
        echo(f"                simulated with scores of a standard deviation of {found.spread:.1f} logits")
