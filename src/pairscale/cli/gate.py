"""``pairscale gate``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import (
    complain,
    emit,
    error_line,
    in_shell,
    printable,
    resumable,
    say,
    say_unsaved,
    show_table,
)
from pairscale.cli._groups import AnswerCols, Asking, Variants, with_groups
from pairscale.cli._inputs import settings_of
from pairscale.cli._opening import Opening, say_judged
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import pairscale as ps

EXAMPLES = (
    "pairscale gate a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1",
    "pairscale gate a.jsonl b.jsonl --criterion helpful --margin 0.1",
    "pairscale gate a.jsonl b.jsonl --criterion c --fail-if worse,inconclusive",
    "pairscale gate a.jsonl --baseline a.json --update-baseline --criterion c",
    "pairscale gate b.jsonl --baseline a.json --criterion helpful --run gate.db",
    "pairscale gate tasks.csv --variant-b app:run --baseline a.json --criterion c",
    "pairscale gate a.jsonl b.jsonl --criterion c --junit g.xml --summary g.md",
)

_A = Annotated[
    Path,
    typer.Argument(
        metavar="A_OR_SUITE",
        help="The recorded answers of A (one task_id and output per row: jsonl, csv, …); with --baseline and no B, "
        "those of B; or a suite of tasks, for variants to answer.",
    ),
]
_Criterion = Annotated[list[str] | None, typer.Option(metavar="TEXT", help='What "better" means; can be repeated.')]
_Judge = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JUDGE",
        autocompletion=_names.judges,
        help="provider:model, module:function, lexical (embedded, a baseline, the default); several of them are a "
        "panel that decides by majority.",
    ),
]
_FailIf = Annotated[
    list[str],
    typer.Option(
        metavar="VERDICT",
        help="What to fail on: worse, inconclusive, not-better (every verdict but better); can be repeated, or given "
        "with commas.",
    ),
]
_Margin = Annotated[float, typer.Option(metavar="SHARE", help="How far the win rate of B may lie below one half.")]
_Level = Annotated[float, typer.Option(metavar="LEVEL", help="The chance that what the verdict says is true.")]
_Fixed = Annotated[bool, typer.Option("--fixed", help="Ask all cases and look once, as a test of fixed size does.")]
_Baseline = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The answers of A, recorded before; checked by a hash.")
]
_UpdateBaseline = Annotated[
    bool,
    typer.Option("--update-baseline", help="Record the answers of A in the baseline; without B, do only that."),
]
_Missing = Annotated[
    str,
    typer.Option(metavar="WAY", help="If B has no answer to a task of A: refuse to run, or excluded."),
]
_MaxErrors = Annotated[
    float, typer.Option(metavar="SHARE", help="Largest share of cases that the judge may leave without an answer.")
]
_Summary = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write a Markdown summary, for a pull request.")
]
_Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML, one test case per criterion.")]
_Save = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write the cases there, as RUN_ID.json.")]


@with_groups
def command(
    a: _A,
    b: Annotated[Path | None, typer.Argument(metavar="B", help="The recorded answers of B.")] = None,
    criterion: _Criterion = None,
    judge: _Judge = None,
    fail_if: _FailIf = ["worse"],  # noqa: B006 - Typer copies it
    margin: _Margin = 0.05,
    level: _Level = 0.95,
    fixed: _Fixed = False,
    variants: Variants = Variants(),
    baseline: _Baseline = None,
    update_baseline: _UpdateBaseline = False,
    asking: Asking = Asking(),
    failures: opt.Failures = "loss",
    missing: _Missing = "refuse",
    max_errors: _MaxErrors = 0.1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the order of the tasks.")] = 1,
    judge_arg: opt.JudgeArgs = None,
    base_url: opt.BaseUrl = None,
    summary: _Summary = None,
    junit: _Junit = None,
    save: _Save = None,
    columns: AnswerCols = AnswerCols(),
    encoding: opt.Encoding = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """May B take the place of A?

    Exit code 0: the verdict is not among --fail-if; 3: it is; 4: untested; 1: the gate could not run; 2: wrong usage.

    The verdict is better, worse, not-worse (worse by less than --margin, if at all), equivalent (within the margin on
    both sides) or inconclusive; or untested, whatever --fail-if says, where the gate could not have failed: there are
    too few tasks to show that B is worse, even if it loses all of them. Tasks are asked in a random order, and no more
    of them than the decision needs; the bounds behind the verdict hold however often you look. If A and B are equal,
    the gate says worse with a chance of at most 5 %; if B is worse by the whole margin, it says not-worse with a chance
    of at most 5 %.

    A variant that fails on a task (an exception, an empty output) has lost it, unless --failures says otherwise. A
    judge that fails gives no outcome; with more such cases than --max-errors, the gate could not run. With --run, run
    the same command again to resume.
    """
    import pairscale as ps
    from pairscale.core.errors import JudgeError
    from pairscale.evaluate.gate import require_gate_options
    from pairscale.evaluate.run import require_two_names
    from pairscale.providers.catalog import price_note

    counting: dict[str, Any] = {"failures": failures}
    files: dict[str, Any] = {"baseline": baseline, "summary": summary, "junit": junit}
    options: dict[str, Any] = {
        "margin": margin, "level": level, "fixed": fixed, "missing": missing, "max_errors": max_errors,
    }  # fmt: skip
    try:
        require_two_names(variants.name_a, variants.name_b)
        criteria, fails_on = require_gate_options(
            criterion, fail_if, judge, failures, update_baseline, files, **options
        )
    except InputError as error:
        raise typer.BadParameter(in_shell(error_line(error))) from None
    if b is None and baseline is None and columns.a_col is None and not variants.given:
        raise typer.BadParameter("name the answers of A and of B; with --baseline, those of B alone", param_hint="B")
    who = judge or ["lexical"]
    if not (update_baseline and b is None and columns.a_col is None):
        Opening([]).say(who)
        say_unsaved(variants.run)
    with (
        resumable(variants.run),
        contextlib.redirect_stdout(sys.stderr),
    ):  # what is printed meanwhile is no part of the result
        try:
            found = ps.gate(
                a, b, criterion=criteria, fail_if=fails_on, judge=who, seed=seed, judge_args=settings_of(judge_arg),
                base_url=base_url, save=save, encoding=encoding, update_baseline=update_baseline, **counting,
                **files, **options, **vars(columns), **vars(variants), **asking.arguments,
            )  # fmt: skip
        except JudgeError as error:
            if not isinstance(error.result, ps.GateResult):
                raise
            found = error.result
    _report(found, "" if found.result is None else price_note(found.result.prices_as_of))
    cases = found.frame() if found.result is None else found.result.frame()
    if found.problem is not None and out is None and not as_json:
        complain("error", found.problem)
    else:
        emit({**found.to_dict(), "cases": cases}, cases, as_json=as_json, out=out, show=lambda: _show(found))
        if found.problem is not None:
            complain("error", found.problem)
        elif as_json or out is not None:
            _say_verdicts(found)
    if found.result is not None:
        say_judged(who)
    say(f"exit code {found.exit_code}: {_state(found)}")
    raise typer.Exit(found.exit_code)


def _state(found: ps.GateResult) -> str:
    if found.problem is not None:
        return "the gate could not run"
    if found.result is None:
        return "the baseline is recorded, and nothing was compared"
    if found.exit_code == 4:
        return "untested, as the gate could not have failed"
    return "the gate passed" if found.passed else f"the gate failed, as --fail-if is {', '.join(found.fail_if)}"


def _report(found: ps.GateResult, dates: str) -> None:
    """What the person should know besides the verdict; ``dates`` are those of the prices, in words."""
    from pairscale.evaluate.wording import asked_words

    run = found.result
    if run is None:
        return
    cases = len({(case.task_id, case.repeat) for case in run.cases})
    say(f"{cases:,} cases, {asked_words(run)}{f', ${run.cost:.4f}{dates}' if run.cost else ''}")
    if run.unmatched:
        shown = ", ".join(printable(one.task_id) for one in run.unmatched[:5])
        more = f" and {len(run.unmatched) - 5:,} more" if len(run.unmatched) > 5 else ""
        say(f"note: {len(run.unmatched):,} not compared, because A or B has no answer: {shown}{more}")
    if run.unasked:
        why = "decided" if run.stopped == "decided" else f"stopped, {run.stopped}"
        say(f"note: {why}; {len(run.unasked):,} tasks were not asked")
    for one in found.criteria:
        about = f"{one.key}: " if len(found.criteria) > 1 else ""
        if one.unanswered:
            say(printable(f"note: {about}the judge gave no answer to {one.unanswered:,} cases"))
        for name, failed in ((run.variant_a, one.failures_a), (run.variant_b, one.failures_b)):
            if failed and one is found.criteria[0]:
                say(printable(f"note: {name} failed in {failed:,} cases, counted as failures={run.failures} says"))


def _lines(found: ps.GateResult) -> list[str]:
    many = len(found.criteria) > 1
    return [
        printable(f"{f'{one.key}: ' if many else ''}{one.verdict}: {one.sentence}; {in_shell(one.advice)}")
        for one in found.criteria
    ]


def _say_verdicts(found: ps.GateResult) -> None:
    for line in _lines(found):
        say(line)


def _show(found: ps.GateResult) -> None:
    if found.result is None:
        typer.echo(printable(str(found)))
        return
    for line in _lines(found):
        typer.echo(line)
    typer.echo("")
    show_table(found.frame())
