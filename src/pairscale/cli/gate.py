"""``pairscale gate``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._asking import opening, say_judged
from pairscale.cli._common import Arguments, Output, complain, echo, in_shell, say, show_table
from pairscale.cli.ab import say_cases
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import JudgeError

_STATES = {
    0: "the gate passed",
    1: "the gate could not run",
    3: "the gate failed, by --fail-if",
    4: "untested, so it has not passed",
}


@from_verb("evaluate.gate.gate", "A [B]", hidden="timeout seed suite encoding")
def command(arguments: Arguments, emit: Output) -> int:
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
            B.
        b: The recorded answers of B.
        judge: provider:model, module:function or lexical (embedded, a baseline, the default); several of them are a
            panel that decides by majority.

    Examples:
        pairscale gate a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1
        pairscale gate a.jsonl b.jsonl --criterion helpful --margin 0.1
        pairscale gate a.jsonl b.jsonl --criterion c --fail-if worse,inconclusive
        pairscale gate b.jsonl --baseline a.jsonl --criterion helpful --run gate.db
        pairscale gate a.jsonl b.jsonl --criterion c --summary g.md
    """
    judges = arguments["judge"] or ["lexical"]
    opening(*judges, run=arguments["run"])
    try:
        result = ps.gate(**arguments)
    except JudgeError as error:
        if not isinstance(error.result, ps.GateResult):
            raise
        result = error.result
    run = result.result
    cases = result.frame()
    if run is not None:
        cases = run.frame()
        say_cases(run)
        for criterion in result.criteria:
            if criterion.unanswered:
                say(f"note: {criterion.key}: the judge gave no answer to {criterion.unanswered:,} cases")
    lines = _verdicts(result)
    if result.problem is None or not emit.is_screen:
        emit({**result.to_dict(), "cases": cases}, cases, lambda: _show(result, lines))
    if result.problem is not None:
        complain("error", result.problem)
    elif not emit.is_screen:
        say("\n".join(lines))
    state = _STATES[result.exit_code]
    if run is not None:
        say_judged(*judges)
    say(f"exit code {result.exit_code}: {state}")
    return result.exit_code


def _verdicts(result: ps.GateResult) -> list[str]:
    lines = []
    for criterion in result.criteria:
        line = f"{criterion.verdict}: {criterion.sentence}; {in_shell(criterion.advice)}"
        lines.append(line if len(result.criteria) == 1 else f"{criterion.key}: {line}")
    return lines


def _show(result: ps.GateResult, lines: list[str]) -> None:
    for line in (*lines, ""):
        echo(line)
    show_table(result.frame())
