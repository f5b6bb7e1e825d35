"""``pairscale judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Encoding, Json, Out, emit, say, show_table
from pairscale.errors import InputError

__all__ = ["command"]


def command(
    pairs: Annotated[Path, typer.Argument(help="A table of pairs: ID1 text1 ID2 text2 (see `pairscale pairs`).")],
    judge: Annotated[
        str,
        typer.Option(
            help="lexical (embedded baseline), simulated:COLUMN (known truth), replay:FILE, or module:function."
        ),
    ] = "lexical",
    run: Annotated[
        Path | None, typer.Option(help="The run file: every answer is kept there, and the same line resumes it.")
    ] = None,
    trait: Annotated[str | None, typer.Option(help="What to judge; `pairscale traits` lists them.")] = None,
    template: Annotated[str | None, typer.Option(help="Prompt template, a name or a file.")] = None,
    judge_arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the judge, such as bias=0.3.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions open at once.")] = 1,
    retries: Annotated[int, typer.Option(min=0, help="How often to ask again after a passing error.")] = 3,
    save_path: Annotated[Path | None, typer.Option(help="Also keep this CSV up to date, and resume from it.")] = None,
    encoding: Encoding = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Have pairs judged; stop and resume as you like.

    Every answer is on the disk before it is used. Run the same line again after a crash or Ctrl-C: it asks only what
    is missing for this judge, trait and settings. Another judge on the same run file starts from nothing.

    Example: `pairscale judge pairs.csv --judge lexical --run run.db`, then `pairscale fit run.db`
    """
    from pairscale.files import read_table

    table = read_table(pairs, encoding=encoding)
    if "ID1" not in table.columns:
        raise InputError(f"{pairs} holds no pairs (ID1 text1 ID2 text2); make them: pairscale pairs {pairs} --out FILE")
    if run is None and save_path is None and out is None and not as_json:
        say("note: without --run, --save-path or --out the answers are only shown, not kept")
    answers = ps.submit_pairs(
        table,
        judge,
        run=run,
        trait=trait,
        template=template,
        judge_args=dict(_setting(text) for text in judge_arg or []),
        concurrency=concurrency,
        retries=retries,
        save_path=save_path,
    )
    say(str(answers))
    for row in answers.failed_pairs.head(3).iter_rows(named=True):
        say(f"  failed: {row['ID1']} / {row['ID2']}: {row['error_code']}: {row['error_message']}")
    document = {
        "asked": answers.asked,
        "condition_id": answers.condition_id,
        "results": answers.results,
        "failed_pairs": answers.failed_pairs.drop("text1", "text2"),
        "failed_attempts": answers.failed_attempts.drop("text1", "text2"),
    }
    shown = answers.results.select("ID1", "ID2", "better_id", "probability")
    emit(document, answers.results, as_json=as_json, out=out, show=lambda: show_table(shown, most=10))
    if not answers.results.height and answers.failed_pairs.height:
        raise InputError(f"no pair was answered: {answers.failed_pairs['error_message'][0]}")


def _setting(text: str) -> tuple[str, float | int | str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--judge-arg {text!r} must look like name=value")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
