"""``pairscale ab``."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._asking import opening, say_judged
from pairscale.cli._common import Output, echo, printable, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError
from pairscale.core.notices import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@from_verb(
    "ab",
    "A [B...]",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1",
    'pairscale ab a.jsonl b.jsonl --criterion "easy to read" --run ab.db',
    "pairscale ab a.jsonl b.jsonl c.jsonl d.jsonl --criterion helpful --baseline a",
    "pairscale ab tasks.csv --variant-a my:old --variant-b my:new --criterion c",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --labels labels.jsonl",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --manifest cases.jsonl",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --stop-when decided",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --control length",
)
def command(arguments: dict[str, Any], emit: Output) -> None:
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
    """
    judges = arguments["judge"] or ["lexical" if arguments["labels"] is None else "people"]
    opening(*judges, saved=arguments["run"] is not None)
    others = arguments.pop("b")
    found = ps.ab(arguments.pop("a"), *(others if isinstance(others, list) else [others]), **arguments)
    if isinstance(found, ps.VariantsResult):
        _say_ranking(found, emit)
        say_judged(*judges)
        return
    say_cases(found)
    _say_failures(found)
    if emit.out is not None:
        say(str(found))
    emit(_document(found), found.frame(), lambda: _show(found))
    say_judged(*judges)
    if not any(case.outcome.is_answer for case in found.cases):
        raise InputError("no case was answered, so there is no verdict")


def _say_ranking(found: ps.VariantsResult, emit: Output) -> None:
    """A ranking of several variants."""
    import polars as pl

    tables = [found.ranking(key).insert_column(0, pl.lit(key).alias("criterion")) for key in found.keys]
    document = {
        "verdicts": {key: found.verdict(key) for key in found.keys},
        "rankings": {key: found.ranking(key).to_dicts() for key in found.keys},
        "differences": {key: found.differences(key).to_dicts() for key in found.keys},
        **{name: getattr(found, name) for name in ("variants", "baseline", "stopped", "cost")},
    }

    def show() -> None:
        echo(f"{found}\n")
        for table in tables:
            show_table(table if len(tables) > 1 else table.drop("criterion"))

    for (a, b), result in found.results.items():
        if result.unmatched:
            say(f"note: {plural(len(result.unmatched), 'task')} of {a} and {b} not compared, as one has no answer")
    say(f"{sum(result.n_cases for result in found.results.values()):,} cases, ${found.cost:.4f}")
    emit(document, pl.concat(tables), show)


def say_cases(found: ps.PairwiseRunResult) -> None:
    """How many cases there were, what they cost, and which could not be compared or were not asked."""
    from pairscale.evaluate.wording import asked_words
    from pairscale.providers.catalog import price_note

    cost = f", ${found.cost:.4f}{price_note(found.prices_as_of)}" if found.cost else ""
    say(f"{len({(case.task_id, case.repeat) for case in found.cases}):,} cases, {asked_words(found)}{cost}")
    if found.unmatched:
        names = ", ".join(dict.fromkeys(one.task_id for one in found.unmatched[:5]))
        words = plural(len(found.unmatched), "task")
        say(f"note: {words} not compared, because A or B has no answer: {names}{' …' * (len(found.unmatched) > 5)}")
    if found.unasked:
        say(f"note: stopped ({found.stopped}), {len(found.unasked):,} tasks not asked")


def _say_failures(found: ps.PairwiseRunResult) -> None:
    from pairscale.evaluate.wording import failures_words

    words = failures_words(found, found.keys[0])
    if words:
        say(f"note: {words}")
    failed = [case for case in found.cases if case.failed is not None or not case.outcome.is_answer]
    for case in failed[:3]:
        say(f"  {case.task_id}, {case.outcome}: {printable(case.reasoning)[:160]}")


def _show(found: ps.PairwiseRunResult) -> None:
    verdicts = tuple(found.verdict(key) for key in found.keys)
    echo(f"{found}\n")
    for line in found.summary().splitlines()[1:]:
        if not line.endswith(verdicts):
            echo(line.removeprefix("  "))
    if any(case.tags for case in found.cases):
        echo(f"\nby tag, ties and flips as half, wins of {found.variant_b}:")
        show_table(_by_tag(found))


def _by_tag(found: ps.PairwiseRunResult) -> pl.DataFrame:
    """The win rate in each tag, with an interval that holds for all of them at once."""
    import polars as pl

    from pairscale.evaluate.inference.win_rate import slices

    parts = [slices(found.frame(key), interval=found.interval).table.insert_column(0, pl.lit(key).alias("criterion"))
             for key in found.keys]  # fmt: skip
    return pl.concat(parts).select("criterion", pl.col("slice").alias("tag"), "n", "rate", "joint_lower", "joint_upper")


def _document(found: ps.PairwiseRunResult) -> dict[str, Any]:
    names = "run_id variant_a variant_b failures unmatched unasked stopped asked cost"
    document = {name: getattr(found, name) for name in names.split()}
    document["unmatched"] = [asdict(one) for one in found.unmatched]
    document["variants"] = {
        name: asdict(one) | {"failure_rate": one.failure_rate}
        for name, one in zip((found.variant_a, found.variant_b), found.variants, strict=False)
    }
    figures: dict[str, Callable[[str], Any]] = {
        "verdicts": found.verdict,
        "counts": found.counts,
        "win_rates": lambda key: asdict(found.win_rate(key)),
        "win_rates_decided": lambda key: asdict(found.win_rate(key, ties="excluded")),
        "bounds": lambda key: found.bounds(key)._asdict(),
    }
    for name, figure in figures.items():
        document[name] = {key: figure(key) for key in found.keys}
    document["controlled"] = {key: asdict(found.controlled(key)) for key in found.keys if found.control}
    document["agreement"] = {f"{x} / {y}": asdict(found.agreement(x, y)) for x, y in combinations(found.keys, 2)}
    document["prices_as_of"] = ", ".join(found.prices_as_of) or None
    return document | {"by_tag": _by_tag(found), "cases": found.frame()}
