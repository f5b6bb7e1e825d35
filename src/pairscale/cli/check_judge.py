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
from pairscale.cli._groups import Asking, Judging, Reading, with_groups
from pairscale.cli._inputs import make_named_judge, run_file, say_reused
from pairscale.cli._opening import Opening, read_texts, say_judged

if TYPE_CHECKING:
    from pairscale.evaluate.judge_check import JudgeCheck

EXAMPLES = (
    "pairscale check-judge essays/ --judge openai:gpt-5.1 --run check.db",
    "pairscale check-judge essays.csv --judge mine:better --n-pairs 50",
    "pairscale check-judge cases.jsonl --labels people.jsonl --out card.json",
)

_Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A folder of texts, a table of them, or the cases of a manifest (`pairscale ab --manifest`).",
    ),
]
_Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What people said: comparisons of the texts, or case_id and preferred of the cases. What has a label "
        "is asked.",
    ),
]
_Key = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key of the labelled manifest, unless it is in the same folder.")
]
_Criterion = Annotated[str | None, typer.Option(metavar="TEXT", help="Which criterion of a manifest that has several.")]
_Run = Annotated[
    str | None,
    typer.Option(metavar="FILE", callback=run_file, help="The run file; the same command asks nothing twice."),
]
_NPairs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Pairs; each is asked twice. 30 when left out, or all with a label."),
]
_NRepeats = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Questions to ask a second time; 20 with --labels, else none."),
]
_NDistractors = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Texts to compare with themselves plus nonsense; 20 with --labels, else none."
    ),
]
_Reliability = Annotated[
    float, typer.Option(min=0, max=1, metavar="R", help="Reliability that the study should reach, for the estimate.")
]
_Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the judge card (.json), or its figures as a table (csv and so on)."),
]


@with_groups
def command(
    data: _Data,
    judge: opt.JudgeName = "lexical",
    labels: _Labels = None,
    key: _Key = None,
    criterion: _Criterion = None,
    run: _Run = None,
    n_pairs: _NPairs = None,
    n_repeats: _NRepeats = None,
    n_distractors: _NDistractors = None,
    judging: Judging = Judging(),
    asking: Asking = Asking(),
    answer: opt.Answer = "winner",
    reliability: _Reliability = 0.9,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed takes the same pairs.")] = 1,
    reading: Reading = Reading(),
    as_json: opt.Json = False,
    out: _Out = None,
) -> None:
    """Try a judge before a study: some pairs in both orders, then one screen.

    Does it answer validly? Is it consistent when the order is reversed? Does it favour a position, or longer
    texts? What does it cost, and how many comparisons and how much money will this data set need? With --labels also:
    does it agree with people, does it say the same when asked again, and does appended nonsense win it over? With
    --answer probability also: are its probabilities right, against people and against its own reversed answers?

    --out judge-card.json keeps all of it, and `pairscale report judge-card.json` shows it as a page.
    """
    from pairscale.evaluate.judge_check import case_rows

    is_card = out is not None and out.suffix.lower() == ".json"
    cases = case_rows(data)
    shared: dict[str, Any] = {
        "labels": labels, "key": key, "criterion": criterion, "n_pairs": n_pairs, "n_repeats": n_repeats,
        "n_distractors": n_distractors, "run": run, "seed": seed, "answer": answer, **asking.limits,
    }  # fmt: skip
    with resumable(run), contextlib.redirect_stdout(sys.stderr):
        if cases is None:
            report, opening = read_texts(data, reading)
            asked = make_named_judge(judge, judging, asking.price, answer)
            opening.say([asked.condition.judge_id])
            found = ps.check_judge(report, asked, **shared)
            say_reused(asked)
        else:
            n = len(cases)
            Opening([printable(f"{n:,} case{'s' * (n != 1)} of two answers from {data}")]).say([judge])
            found = ps.check_judge(data, judge, **judging.arguments, **shared | asking.arguments)
    plan = None
    if found.spread is not None:
        say("estimating what the whole data set will need …")
        plan = ps.plan(
            found.n_items,
            reliability=reliability,
            sd=found.spread,
            answer=answer,
            error=found.error,
            bias=_effect(found),
            price=found.cost_each,
            seconds=found.seconds_each,
        )
    document = _document(found)
    if plan is not None:
        figures = {"answer": plan.answer, "comparisons": plan.comparisons, "cost": plan.cost}
        document |= {"plan": figures | {"sd": found.spread, "error": found.error}}
    if is_card and out is not None:
        say(f"wrote the judge card to {found.save_card(out)}")
    emit(document, found.card.table, as_json=as_json, out=None if is_card else out, show=lambda: _show(found, plan))
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
        "calibrations": [one.to_dict() for one in found.calibrations],
        "card": found.card.to_dict(),
    }


def _show(found: JudgeCheck, plan: Any) -> None:
    from pairscale.providers.catalog import price_note

    asked = "the cases" if found.card.judge.kind == "cases" else f"the pairs of {found.n_items:,} texts"
    typer.echo(f"{found.judge_id} on {found.n_pairs} of {asked}, in both orders\n")
    typer.echo(f"valid answers   {found.n_valid} of {found.n_asked}")
    for row in found.failures.head(3).iter_rows(named=True):
        typer.echo(f"                {row['n']} x {row['error_code']}: {printable(row['error_message'] or '')[:90]}")
    if found.prop_consistent is not None:
        typer.echo(f"consistent      {found.prop_consistent:.0%} of the pairs have the same winner both ways")
    if found.bias is not None:
        typer.echo(f"position        {found.bias.verdict}")
    for line in _of_card(found.card):
        typer.echo(line)
    for one in found.calibrations:
        typer.echo(f"probabilities   {one.verdict}")
        chance = f"{one.ece_by_chance:.3f} by chance"
        typer.echo(f"                Brier score {one.brier:.3f}, expected calibration error {one.ece:.3f} ({chance})")
    each = [
        None if found.cost_each is None else f"${found.cost_each:.5f}{price_note([found.prices_as_of])}",
        None if found.seconds_each is None else f"{found.seconds_each:.2f} s",
        None if found.tokens_each is None else f"{found.tokens_each:,.0f} tokens",
    ]
    if any(each):
        typer.echo(f"a question      {', '.join(part for part in each if part)}")
    if plan is not None:
        typer.echo(f"whole study     {plan}")
        spread = f"scores with a standard deviation of {found.spread:.1f} logits"
        if found.error is not None:
            spread += f" and probabilities with errors of about {found.error:.1f} logits"
        typer.echo(f"                simulated with {spread}, as these answers suggest; see `pairscale plan`")


def _of_card(card: ps.JudgeCard) -> list[str]:
    """What was measured besides, a line each; without labels and probes, only the length."""
    words = {
        "agreement": ("people", "the same choice as people in {} of {} pairs that both decide"),
        "kappa": ("", "kappa {} on {} pairs"),
        "longer": ("length", "the longer text wins {} of {} decided pairs"),
        "longer_excess": ("", "that is {} more than with people, on {} pairs"),
        "repeatability": ("again", "the same answer in {} of {} questions that were asked twice"),
        "distractor": ("nonsense", "{} of {} texts win against themselves once nonsense is appended"),
    }
    lines = []
    for name, (label, form) in words.items():
        one = card.measures[name]
        if one.value is None:
            continue
        figure = f"{one.value:.2f}" if name == "kappa" else f"{one.value:.0%}"
        scale = 1 if name == "kappa" else 100
        ends = ""
        if one.lower is not None and one.upper is not None:
            digits = 2 if name == "kappa" else 0
            ends = f" ({scale * one.lower:.{digits}f} to {scale * one.upper:.{digits}f})"
        lines.append(f"{label:<15} {form.format(f'{figure}{ends}', f'{one.n:,}')}")
    return lines
