"""``pairscale gate``."""

from __future__ import annotations

from typing import Any

import pairscale as ps
from pairscale.cli._asking import opening, say_judged
from pairscale.cli._common import Output, complain, echo, in_shell, say, show_table
from pairscale.cli.ab import say_cases
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import JudgeError

_STATES = {
    0: "the gate passed",
    1: "the gate could not run",
    3: "the gate failed, by --fail-if",
    4: "untested, so it has not passed",
}


@from_verb(
    "gate",
    "A [B]",
    "pairscale gate a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1",
    "pairscale gate a.jsonl b.jsonl --criterion helpful --margin 0.1",
    "pairscale gate a.jsonl b.jsonl --criterion c --fail-if worse,inconclusive",
    "pairscale gate a.jsonl --baseline a.json --update-baseline --criterion c",
    "pairscale gate b.jsonl --baseline a.json --criterion helpful --run gate.db",
    "pairscale gate tasks.csv --variant-b app:run --baseline a.json --criterion c",
    "pairscale gate a.jsonl b.jsonl --criterion c --junit g.xml --summary g.md",
)
def command(arguments: dict[str, Any], emit: Output) -> int:
    """May B take the place of A?

    Exit code 0: the verdict is not among --fail-if; 3: it is; 4: untested; 1: the gate could not run; 2: wrong usage.

    The verdict is better, worse, not-worse (worse by less than --margin, if at all), equivalent (within the margin on
    both sides) or inconclusive; or untested, whatever --fail-if says, where the gate could not have failed (there are
    too few tasks to show that B is worse, even if it loses all of them) or the judge has not shown that it can tell, by
    naming the same winner in both orders, by --planted or by --card. Tasks are asked in a random order, and no more
    of them than the decision needs; the bounds behind the verdict hold however often you look. If A and B are equal,
    the gate says worse with a chance of at most 5 %; if B is worse by the whole margin, it says not-worse with a chance
    of at most 5 %.

    A variant that fails on a task (an exception, an empty output) has lost it, unless --failures says otherwise. A
    judge that fails gives no outcome; with more such cases than --max-errors, the gate could not run. With --run, run
    the same command again to resume.

    Args:
        a: The recorded answers of A (one task_id and output per row: jsonl, csv, …); with --baseline and no B, those of
            B; or a suite of tasks, for variants to answer.
        b: The recorded answers of B.
        judge: provider:model, module:function or lexical (embedded, a baseline, the default); several of them are a
            panel that decides by majority.
    """
    judges = arguments["judge"] or ["lexical"]
    is_recording = arguments["update_baseline"] and arguments["b"] is None and arguments["a_col"] is None
    if not is_recording:
        opening(*judges, saved=arguments["run"] is not None)
    try:
        found = ps.gate(**arguments)
    except JudgeError as error:
        if not isinstance(error.result, ps.GateResult):
            raise
        found = error.result
    run = found.result
    if run is not None:
        say_cases(run)
        _say_failures(found, run)
    lines = _verdicts(found)
    cases = found.frame() if run is None else run.frame()
    if found.problem is None or not emit.is_screen:
        emit({**found.to_dict(), "cases": cases}, cases, lambda: _show(found, lines))
    if found.problem is not None:
        complain("error", found.problem)
    elif not emit.is_screen:
        for line in lines:
            say(line)
    if run is not None:
        say_judged(*judges)
    state = _STATES[found.exit_code]
    if run is None and found.problem is None:
        state = "the baseline is recorded, and nothing was compared"
    say(f"exit code {found.exit_code}: {state}")
    return found.exit_code


def _say_failures(found: ps.GateResult, run: ps.PairwiseRunResult) -> None:
    """Which answers are missing."""
    for one in found.criteria:
        if one.unanswered:
            say(f"note: {one.key}: the judge gave no answer to {one.unanswered:,} cases")
    for name, failed in ((run.variant_a, found.criteria[0].failures_a), (run.variant_b, found.criteria[0].failures_b)):
        if failed:
            say(f"note: {name} failed in {failed:,} cases, counted as --failures {run.failures} says")


def _verdicts(found: ps.GateResult) -> list[str]:
    lines = [f"{one.verdict}: {one.sentence}; {in_shell(one.advice)}" for one in found.criteria]
    if len(lines) > 1:
        lines = [f"{one.key}: {line}" for one, line in zip(found.criteria, lines, strict=True)]
    return lines


def _show(found: ps.GateResult, lines: list[str]) -> None:
    if found.result is None:
        echo(str(found))
        return
    for line in (*lines, ""):
        echo(line)
    show_table(found.frame())
