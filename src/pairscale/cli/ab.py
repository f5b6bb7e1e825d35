"""``pairscale ab``."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, printable, resumable, say, say_unsaved, show_table
from pairscale.cli._groups import AnswerCols, Asking, Variants, with_groups
from pairscale.cli._inputs import settings_of
from pairscale.cli._opening import Opening, say_judged
from pairscale.core.errors import InputError, PairscaleError
from pairscale.evaluate.wording import controlled_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

EXAMPLES = (
    "pairscale ab a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1",
    'pairscale ab a.jsonl b.jsonl --criterion "easy to read" --run ab.db',
    "pairscale ab tasks.csv --variant-a openai:gpt-5.1 --variant-b mine:agent",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --labels labels.jsonl",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --manifest cases.jsonl",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --stop-when decided",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --control length",
    "pairscale ab old.eval new.eval --criterion helpful --judge openai:gpt-5.1",
)

_A = Annotated[
    Path,
    typer.Argument(
        metavar="A_OR_SUITE",
        help="The recorded answers of A: rows with task_id and output (jsonl, json, csv, …), or a file of "
        "inspect_ai, OpenTelemetry, AG2, promptfoo, Langfuse, LangSmith, MT-bench, AlpacaEval, or chat messages; "
        "or the answers of both in one file; or a suite of tasks (input, and where they are there task_id, "
        "reference, tags).",
    ),
]
_Criterion = Annotated[list[str] | None, typer.Option(metavar="TEXT", help='What "better" means; can be repeated.')]
_Judge = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JUDGE",
        autocompletion=_names.judges,
        help="provider:model, module:function, human (asked here), lexical (embedded, a baseline, the default "
        "without --labels); several of them are a panel that decides by majority.",
    ),
]
_Labels = Annotated[
    Path | None, typer.Option(metavar="FILE", help="What people said: one case_id and preferred (1, 2, tie) per row.")
]
_Key = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key of the labelled manifest, unless it is in the same folder.")
]
_StopWhen = Annotated[
    str | None,
    typer.Option(metavar="decided", help="Stop as soon as one is shown to be better, however often one looks."),
]
_Control = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STYLE",
        help="Also give the win rate at equal STYLE: length, markdown (or headers, lists, bold), or a numeric "
        "column of the answers; can be repeated.",
    ),
]
_Manifest = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write the cases, blinded, to this .jsonl file, for `pairscale label`."),
]
_Save = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write the result there, as RUN_ID.json.")]


@with_groups
def command(
    a: _A,
    b: Annotated[Path | None, typer.Argument(metavar="B", help="The recorded answers of B; none with a suite.")] = None,
    criterion: _Criterion = None,
    judge: _Judge = None,
    labels: _Labels = None,
    key: _Key = None,
    variants: Variants = Variants(),
    asking: Asking = Asking(),
    failures: opt.Failures = "loss",
    stop_when: _StopWhen = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the order of the tasks with --stop-when.")] = 1,
    control: _Control = None,
    judge_arg: opt.JudgeArgs = None,
    base_url: opt.BaseUrl = None,
    manifest: _Manifest = None,
    save: _Save = None,
    columns: AnswerCols = AnswerCols(),
    encoding: opt.Encoding = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Is B better than A?

    Answers that are recorded already are compared task by task; with a suite, both variants answer it first. Judges are
    asked in both orders. A win, a tie, a flip (another winner in the other order), an abstention and an error stay five
    things, and the last two are never taken for ties. A variant that fails on a task (an exception, an empty or missing
    output) has lost it, unless --failures says otherwise. The verdict rests on the cases with a winner; there is none
    where it would depend on how failures count.

    With --run, every answer and every verdict is kept as it comes. Run the same command again after a crash or Ctrl-C:
    it asks only what is missing. With another --judge, the same answers are graded without running the variants again.
    """
    from pairscale.providers.catalog import price_note

    who = judge or (["people"] if labels is not None else ["lexical"])
    counting: dict[str, Any] = {"failures": failures, "stop_when": stop_when}
    Opening([]).say(who)
    say_unsaved(variants.run)
    with (
        resumable(variants.run),
        contextlib.redirect_stdout(sys.stderr),
    ):  # what is printed meanwhile is no part of the result
        unwritten: PairscaleError | None = None
        try:
            found = ps.ab(
                a, b, criterion=criterion or [], judge=who if labels is None else judge, labels=labels, key=key,
                seed=seed, control=control or (),
                judge_args=settings_of(judge_arg), base_url=base_url, manifest=manifest, save=save, encoding=encoding,
                **counting, **vars(columns), **vars(variants), **asking.arguments,
            )  # fmt: skip
        except PairscaleError as error:  # of the manifest: the verdict is there all the same
            found = getattr(error, "result", None)  # type: ignore[assignment]
            if not isinstance(found, ps.PairwiseRunResult):
                raise
            unwritten = error
    _report(found, price_note(found.prices_as_of))
    if out is not None:
        _verdicts(found, say)
    emit(_document(found), found.frame(), as_json=as_json, out=out, show=lambda: _show(found))
    say_judged(who)
    if unwritten is not None:
        raise unwritten
    if not any(case.outcome.is_answer for case in found.cases):
        raise InputError("no case was answered, so there is no verdict")


def _report(found: ps.PairwiseRunResult, dates: str) -> None:
    """What the person should know besides the figures; ``dates`` are those of the prices, in words."""
    from pairscale.evaluate.wording import asked_words, failures_words

    cases = len({(case.task_id, case.repeat) for case in found.cases})
    say(f"{cases:,} cases, {asked_words(found)}{f', ${found.cost:.4f}{dates}' if found.cost else ''}")
    for words, which in (
        ("task{} not compared, because A or B has no answer", [one for one in found.unmatched if one.repeat == 1]),
        ("duplicate{} not compared, because the other has no answer", [o for o in found.unmatched if o.repeat > 1]),
    ):
        if which:
            shown = ", ".join(dict.fromkeys(printable(one.task_id) for one in which[:5]))
            more = f" and {len(which) - 5:,} more" if len(which) > 5 else ""
            say(f"note: {len(which):,} {words.format('s' * (len(which) != 1))}: {shown}{more}")
    for key in found.keys[:1]:
        if words := failures_words(found, key):
            say(f"note: {printable(words)}")
    if found.unasked:
        say(f"note: stopped ({found.stopped}), {len(found.unasked):,} tasks not asked")
    failed = [case for case in found.cases if case.failed is not None or not case.outcome.is_answer]
    for case in failed[:3]:
        say(f"  {printable(case.task_id)}, {case.outcome}: {printable(case.reasoning)[:160]}")
    if len(failed) > 3:
        say(f"  … {len(failed) - 3:,} more without an answer")


def _verdicts(found: ps.PairwiseRunResult, tell: Callable[[str], None]) -> None:
    for key in found.keys:
        words = found.verdict(key) if len(found.keys) == 1 else f"{key}: {found.verdict(key)}"
        tell(printable(words))


def _show(found: ps.PairwiseRunResult) -> None:
    import polars as pl

    from pairscale.evaluate.wording import bounds_lines, graded_words, variant_lines

    _verdicts(found, typer.echo)
    many, rows = len(found.keys) > 1, []
    for key in found.keys:
        half, alone = found.win_rate(key), found.win_rate(key, ties="excluded")
        for words, rate in (("ties and flips as half", half), ("cases with a winner", alone)):
            ends = rate.ci or (None, None)
            figures = {"n": rate.n, f"wins of {found.variant_b}": rate.rate, "lower": ends[0], "upper": ends[1]}
            rows.append({**({"criterion": key} if many else {}), "win rate over": words, **figures})
    typer.echo("")
    show_table(pl.DataFrame(rows))
    said = [(key, line) for key in found.keys for line in (*graded_words(found, key), *bounds_lines(found, key))]
    for line in (*(f"{key}: {line}" if many else line for key, line in said), *variant_lines(found)):
        typer.echo(printable(line))
    if found.control:
        typer.echo("")
        for key in found.keys:
            for line in controlled_lines(found.controlled(key), found.variant_b):
                typer.echo(printable(f"{key}: {line}" if many else line))
    if any(case.tags for case in found.cases):
        typer.echo(f"\nby tag, ties and flips as half, wins of {printable(found.variant_b)}:")
        show_table(_by_tag(found))
    if many:
        for line in found.summary().splitlines():
            if " agree on " in line:
                typer.echo(printable(line))


def _by_tag(found: ps.PairwiseRunResult) -> pl.DataFrame:
    """The win rate in each tag, with an interval that holds for all of them at once."""
    import polars as pl

    from pairscale.evaluate.inference.win_rate import slices

    parts = [
        slices(found.frame(key), interval=found.interval).table.with_columns(criterion=pl.lit(key))
        for key in found.keys
    ]
    table = pl.concat(parts).select("criterion", "n", "rate", "joint_lower", "joint_upper", tag="slice")
    return table.select("criterion", "tag", "n", "rate", "joint_lower", "joint_upper")


def _document(found: ps.PairwiseRunResult) -> dict[str, Any]:
    return {
        "run_id": found.run_id,
        "variant_a": found.variant_a,
        "variant_b": found.variant_b,
        "keys": list(found.keys),
        "verdicts": {key: found.verdict(key) for key in found.keys},
        "counts": {key: found.counts(key) for key in found.keys},
        "win_rates": {key: asdict(found.win_rate(key)) for key in found.keys},
        "win_rates_decided": {key: asdict(found.win_rate(key, ties="excluded")) for key in found.keys},
        "controlled": {key: asdict(found.controlled(key)) for key in found.keys} if found.control else {},
        "failures": found.failures,
        "bounds": {key: found.bounds(key)._asdict() for key in found.keys},
        "win_rates_by_failures": {
            key: {way: asdict(rate) for way, rate in found.rates(key).items()} for key in found.keys
        },
        "variants": {
            name: asdict(one) | {"failure_rate": one.failure_rate}
            for name, one in zip((found.variant_a, found.variant_b), found.variants, strict=False)
        },
        "by_tag": _by_tag(found),
        "flip_directions": {key: found.flip_directions(key) for key in found.keys},
        "agreement": {
            f"{x} / {y}": asdict(found.agreement(x, y)) for at, x in enumerate(found.keys) for y in found.keys[at + 1 :]
        },
        "unmatched": [asdict(one) for one in found.unmatched],
        "unasked": list(found.unasked),
        "stopped": found.stopped,
        "asked": found.asked,
        "answered": found.answered,
        "cost": found.cost,
        "prices_as_of": ", ".join(found.prices_as_of) or None,
        "cases": found.frame(),
    }
