"""``pairscale ab``."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._asking import opening, say_judged
from pairscale.cli._common import Arguments, Output, echo, fields, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.display import printable
from pairscale.core.errors import InputError
from pairscale.core.notices import plural
from pairscale.core.tables import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pairscale.cli._common import Facts


@from_verb("evaluate.ab.ab", "A [B...]", hidden="timeout stop_when seed suite")
def command(arguments: Arguments, emit: Output) -> None:
    """Is B better than A? With three files of answers or more: which is the best?

    Answers that are recorded already are compared task by task; with a suite, both variants answer it first. Judges are
    asked in both orders. A win, a tie, a flip (another winner in the other order), an abstention and an error stay five
    things, and the last two are never taken for ties. A variant that fails on a task (an exception, an empty or missing
    output) has lost it, unless --failures says otherwise. The verdict rests on the cases with a winner; there is none
    where it would depend on how failures count.

    With --run, every answer and every verdict is kept as it comes. Run the same command again after a crash or Ctrl-C:
    it asks only what is missing. With another --judge, the same answers are graded without running the variants again.

    Args:
        a: The recorded answers of A: rows with task_id and output (jsonl, json, csv, …), or a file of inspect_ai,
            OpenTelemetry, AG2, promptfoo, Langfuse, LangSmith, MT-bench, AlpacaEval, or chat messages; or the answers
            of both in one file; or a suite of tasks (input, and where they are there task_id, reference, tags).
        b: The recorded answers of B, and of further variants, which are then ranked; none with a suite.
        judge: provider:model, module:function, human (asked here) or lexical (embedded, a baseline, the default without
            --labels); several of them are a panel that decides by majority.

    Examples:
        pairscale ab a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1
        pairscale ab a.jsonl b.jsonl --criterion "easy to read" --run ab.db
        pairscale ab a.jsonl b.jsonl c.jsonl d.jsonl --criterion c --baseline a
        pairscale ab tasks.csv --variant-a my:old --variant-b my:new --criterion c
        pairscale ab a.jsonl b.jsonl --criterion helpful --labels labels.jsonl
        pairscale ab a.jsonl b.jsonl --criterion helpful --manifest cases.jsonl
        pairscale ab a.jsonl b.jsonl --criterion helpful --control length
    """
    judges = arguments["judge"] or ["lexical" if arguments["labels"] is None else "people"]
    opening(*judges, run=arguments["run"])
    others = arguments.pop("b")
    result = ps.ab(arguments.pop("a"), *(others if isinstance(others, list) else [others]), **arguments)
    if isinstance(result, ps.VariantsResult):
        _say_ranking(result, emit)
        say_judged(*judges)
        return
    say_cases(result)
    failed = [case for case in result.cases if case.failed is not None or not case.outcome.is_answer]
    for case in failed[:3]:
        say(f"  {case.task_id}, {case.outcome}: {printable(case.reasoning)[:160]}")
    if emit.out is not None:
        say(str(result))
    emit(_document(result), result.frame(), lambda: _show(result))
    say_judged(*judges)
    if not any(case.outcome.is_answer for case in result.cases):
        raise InputError("no case was answered, so there is no verdict")


def _say_ranking(result: ps.VariantsResult, emit: Output) -> None:
    """A ranking of several variants."""
    import polars as pl

    tables = [result.ranking(key).insert_column(0, pl.lit(key).alias("criterion")) for key in result.keys]
    figures = {"verdicts": result.verdict, "rankings": result.ranking, "differences": result.differences}
    document = _by_key(result.keys, figures) | fields(result, "variants baseline stopped cost")

    def show() -> None:
        echo(f"{result}\n")
        for table in tables:
            show_table(table if len(tables) > 1 else table.drop("criterion"))

    for (a, b), comparison in result.results.items():
        if comparison.unmatched:
            say(f"note: {plural(len(comparison.unmatched), 'task')} of {a} and {b} not compared, as one has no answer")
    if result.stopped:
        say(f"note: stopped ({result.stopped}) before all cases were compared; with --run, the same command continues")
    say(f"{sum(comparison.n_cases for comparison in result.results.values()):,} cases, ${result.cost:.4f}")
    emit(document, pl.concat(tables), show)


def say_cases(result: ps.PairwiseRunResult) -> None:
    """How many cases there were, what they cost, and which could not be compared or were not asked."""
    from pairscale.evaluate.wording import asked_words, failures_words
    from pairscale.providers.catalog import price_note

    cost = f", ${result.cost:.4f}{price_note(result.prices_as_of)}" if result.cost else ""
    cases = {(case.task_id, case.repeat) for case in result.cases}
    say(f"{len(cases):,} cases, {asked_words(result)}{cost}")
    if result.unmatched:
        names = listed([case.task_id for case in result.unmatched])
        say(f"note: {plural(len(result.unmatched), 'task')} not compared, because A or B has no answer: {names}")
    if result.unasked:
        say(f"note: stopped ({result.stopped}), {len(result.unasked):,} tasks not asked")
    failures = failures_words(result, result.keys[0])
    if failures:
        say(f"note: {failures}")


def _show(result: ps.PairwiseRunResult) -> None:
    echo(f"{result}\n")
    verdicts = tuple(result.verdict(key) for key in result.keys)
    for line in result.summary().splitlines()[1:]:
        if not line.endswith(verdicts):
            echo(line.removeprefix("  "))


def _document(result: ps.PairwiseRunResult) -> Facts:
    figures: dict[str, Any] = {"verdicts": result.verdict, "counts": result.counts}
    figures["win_rates_decided"] = partial(result.win_rate, ties="excluded")
    if result.control:
        figures["controlled"] = result.controlled
    agreement = {f"{x} / {y}": result.agreement(x, y) for x, y in combinations(result.keys, 2)}
    return {**result.to_dict(), **_by_key(result.keys, figures), "agreement": agreement}


def _by_key(keys: Iterable[str], figures: Mapping[str, Any]) -> Facts:
    """Figures of each comparator, by name."""
    return {name: {key: figure(key) for key in keys} for name, figure in figures.items()}
