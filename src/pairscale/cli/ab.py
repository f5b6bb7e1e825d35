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
from pairscale.cli._common import (
    Concurrency,
    Json,
    MaxCost,
    Out,
    Retries,
    Timeout,
    emit,
    printable,
    resumable,
    say,
    show_table,
)
from pairscale.cli._inputs import BaseUrl, PriceOption, price_of, run_file, setting
from pairscale.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale ab a.jsonl b.jsonl --criterion helpful --judge openai:gpt-5.1",
    'pairscale ab a.jsonl b.jsonl --criterion "easy to read" --run ab.db',
    "pairscale ab tasks.csv --variant-a openai:gpt-5.1 --variant-b mine:agent",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --labels labels.jsonl",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --manifest cases.jsonl",
    "pairscale ab a.jsonl b.jsonl --criterion helpful --stop-when decided",
)


def command(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A_OR_SUITE",
            help="The recorded answers of A (task_id and output a row: jsonl, csv, …), or a suite of tasks (input, and "
            "where they are there task_id, reference, tags).",
        ),
    ],
    second: Annotated[
        Path | None, typer.Argument(metavar="B", help="The recorded answers of B; none with a suite.")
    ] = None,
    criterion: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help='What "better" means; may stand several times.')
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JUDGE",
            autocompletion=_names.judges,
            help="provider:model, module:function, human (asked here), lexical (embedded, a baseline, the default "
            "without --labels); several of them are a panel that decides by majority.",
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What people said: case_id and preferred (1, 2, tie) a row.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key of the labelled manifest, unless it lies beside them.")
    ] = None,
    variant_a: Annotated[
        str | None,
        typer.Option(metavar="VARIANT", help="With a suite: provider:model, module:function, or a file of answers."),
    ] = None,
    variant_b: Annotated[str | None, typer.Option(metavar="VARIANT", help="The other one.")] = None,
    prompt_a: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The prompt of a model that is A: a text, or a .txt file, with {input}."),
    ] = None,
    prompt_b: Annotated[str | None, typer.Option(metavar="TEXT", help="The same for B.")] = None,
    name_a: Annotated[str, typer.Option(metavar="NAME", help="What A is called.")] = "A",
    name_b: Annotated[str, typer.Option(metavar="NAME", help="What B is called.")] = "B",
    suite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With answers of A and B: the tasks that they belong to.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=run_file, help="The run file; the same line goes on from there."),
    ] = None,
    swap: Annotated[
        bool, typer.Option("--swap/--no-swap", help="Ask judges in both orders; a win only when they agree.")
    ] = True,
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="With a suite: answers of each to a task.")] = 1,
    concurrency: Concurrency = 8,
    retries: Retries = 3,
    timeout: Timeout = 300.0,
    max_cost: MaxCost = None,
    price: PriceOption = None,
    stop_when: Annotated[
        str | None,
        typer.Option(metavar="decided", help="Stop as soon as one is shown to be better, however often one looks."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the order with --stop-when.")] = 1,
    judge_arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the judge; may stand several times.")
    ] = None,
    base_url: BaseUrl = None,
    manifest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the cases, blinded, to this .jsonl file, for `pairscale label`."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the result there, as RUN_ID.json.")
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Is B better than A?

    Answers that are recorded already are compared task by task; with a suite, both variants answer it first. Judges are
    asked in both orders. A win, a tie, a flip (another winner in the other order), an abstention and an error stay five
    things, and the last two are never taken for ties. The verdict rests on the cases with a winner.

    With --run, every answer and every verdict is kept as it comes. Run the same line again after a crash or Ctrl-C: it
    asks only what is missing. With another --judge, the same answers are graded without running the variants again.
    """
    with resumable(run), contextlib.redirect_stdout(sys.stderr):  # what is printed meanwhile is no part of the result
        shared: dict[str, Any] = {
            "comparators": _comparators(criterion, judge, labels, key, swap, judge_arg, base_url, retries, price),
            "concurrency": 1 if judge == ["human"] else concurrency, "run": run, "store_dir": save,
            "stop_when": stop_when, "max_cost": max_cost, "seed": seed, "timeout": timeout,
        }  # fmt: skip
        if manifest is not None:
            _check_manifest(manifest, has_answers=second is not None or run is not None)
        if run is None:
            say("note: without --run nothing is kept when this is interrupted")
        if second is not None:
            if variant_a or variant_b or prompt_a or prompt_b or repeats > 1:
                raise InputError("--variant, --prompt and --repeats belong to a suite, not to two files of answers")
            tasks = None if suite is None else _suite(suite)
            found = ps.evaluate_pairwise(first, second, suite=tasks, variant_a=name_a, variant_b=name_b, **shared)
        elif suite is not None:
            raise InputError("--suite belongs to two files of answers; a suite alone is the first argument")
        else:
            found = ps.run_pairwise(
                _suite(first),
                variant_a=_variant(variant_a, prompt_a, "a"),
                variant_b=_variant(variant_b, prompt_b, "b"),
                variant_a_name=name_a,
                variant_b_name=name_b,
                repeats=repeats,
                **shared,
            )
    _report(found)
    if out is not None:
        _verdicts(found, say)
    emit(_document(found), found.frame(), as_json=as_json, out=out, show=lambda: _show(found))
    if manifest is not None:  # last: whatever is wrong with it, the verdict is there
        _manifest(manifest, (first, second, suite), (run, name_a, name_b), criterion or [])
    if not any(case.outcome.is_answer for case in found.cases):
        raise InputError("no case was answered, so there is no verdict")


def _check_manifest(out: Path, *, has_answers: bool) -> None:
    """Refuse what cannot be written, before anything is paid for."""
    from pairscale.evaluate.manifest import require_manifest

    require_manifest(out)
    if not has_answers:
        raise InputError("--manifest with a suite needs --run, where the answers are")


def _manifest(
    out: Path,
    files: tuple[Path, Path | None, Path | None],
    stored: tuple[str | None, str, str],
    criteria: Sequence[str],
) -> None:
    """The cases for labellers: from the files of answers, or from the run file of a suite."""
    first, second, suite = files
    run, *names = stored
    a, b = (first, second) if second else [ps.RunTraceSource(str(run), name) for name in names]
    tasks = ps.read_suite(str(run)) if second is None else None if suite is None else _suite(suite)
    made = ps.export_pairwise_cases(a, b, criteria=criteria, out=out, suite=tasks)
    say(f"wrote {made.n_cases:,} cases to {out}, and their key, for your eyes only, to {made.key_path}")


def _suite(path: Path) -> ps.Suite:
    return ps.Suite.from_jsonl(path)


def _variant(variant: str | None, prompt: str | None, side: str) -> Any:
    if variant is None:
        raise InputError(f"a suite needs --variant-{side}; or name two files of answers, A and B")
    if prompt is None:
        return variant
    from pairscale.files import read_text

    text = read_text(prompt) if prompt.endswith(".txt") else prompt
    return ps.ModelVariant(variant, text)


def _of_model(judges: Sequence[str], base_url: str | None, price: str | None) -> dict[str, Any]:
    """Settings that only a provider's model has."""
    from pairscale.providers.registry import PROVIDERS

    is_model = any(judge.partition(":")[0] in PROVIDERS for judge in judges)
    for option, value in (("--base-url", base_url), ("--price", price)):
        if value is not None and not is_model:
            raise InputError(f"{option} belongs to a provider's model, such as compatible:MODEL")
    found = {"base_url": base_url, "price": None if price is None else price_of(price)}
    return {name: value for name, value in found.items() if value is not None}


def _comparators(
    criteria: Sequence[str] | None,
    judges: Sequence[str] | None,
    labels: Path | None,
    key: Path | None,
    swap: bool,
    given: Sequence[str] | None,
    base_url: str | None,
    retries: int,
    price: str | None,
) -> list[Any]:
    if not criteria:
        raise InputError('say what "better" means: --criterion "more helpful"')
    if key is not None and labels is None:
        raise InputError("--key belongs to --labels")
    names = list(judges or ([] if labels else ["lexical"]))
    settings: dict[str, Any] = dict(setting(text) for text in given or [])
    settings |= _of_model(names, base_url, price)
    if names == ["lexical"]:
        say("note: the judge is lexical, a baseline that reads no criterion; name a better one with --judge")
    made: list[Any] = []
    how: dict[str, Any] = {"swap": swap, "retries": retries, "judge_args": settings or None}
    for criterion in dict.fromkeys(criteria):
        if "human" in names:
            if len(names) > 1:
                raise InputError("--judge human stands alone; people and models are compared with --labels")
            made.append(ps.human_pairwise(key=criterion, criterion=criterion))
        elif len(names) == 1:
            made.append(ps.pairwise_judge(names[0], criterion=criterion, key=criterion, **how))
        elif names:
            made.append(ps.pairwise_panel(names, criterion=criterion, key=criterion, **how))
        if labels is not None:
            name = f"{criterion} (people)" if names else criterion
            made.append(ps.human_labels(labels, criterion=criterion, key=name, key_file=key))
    return made


def _report(found: ps.PairwiseRunResult) -> None:
    """What the person should know besides the figures."""
    cases = len({(case.task_id, case.repeat) for case in found.cases})
    asked = f"{found.asked:,} questions asked now" if found.asked else "all known already, nothing asked"
    say(f"{cases:,} cases, {asked}{f', ${found.cost:.4f}' if found.cost else ''}")
    if found.unmatched:
        shown = ", ".join(printable(one.task_id) for one in found.unmatched[:5])
        more = f" and {len(found.unmatched) - 5:,} more" if len(found.unmatched) > 5 else ""
        say(f"note: {len(found.unmatched):,} not compared, for want of an answer of both: {shown}{more}")
    if found.unasked:
        say(f"note: stopped ({found.stopped}), {len(found.unasked):,} tasks not asked")
    failed = [case for case in found.cases if not case.outcome.is_answer]
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

    from pairscale.evaluate.inference import slices

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
        "by_tag": _by_tag(found),
        "flip_directions": {key: found.flip_directions(key) for key in found.keys},
        "agreement": {
            f"{x} / {y}": asdict(found.agreement(x, y)) for at, x in enumerate(found.keys) for y in found.keys[at + 1 :]
        },
        "unmatched": [asdict(one) for one in found.unmatched],
        "unasked": list(found.unasked),
        "stopped": found.stopped,
        "asked": found.asked,
        "cost": found.cost,
        "cases": found.frame(),
    }
