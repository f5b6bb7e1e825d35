"""``pairscale compare``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Encoding, Json, Out, emit, printable
from pairscale.cli._inputs import (
    BaseUrl,
    Cache,
    DryRun,
    JudgeArgs,
    JudgeName,
    TemplateName,
    TraitName,
    make_named_judge,
    say_reused,
    show_request,
)
from pairscale.errors import InputError

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale compare anna.txt ben.txt --judge openai:gpt-5.1",
    'pairscale compare "It rains." "It rains, so we stay." --judge lexical',
    "pairscale compare anna.txt ben.txt --judge openai:gpt-5.1 --dry-run",
)


def command(
    text1: Annotated[str, typer.Argument(metavar="TEXT1", help="A text file, or the text itself.")],
    text2: Annotated[str, typer.Argument(metavar="TEXT2", help="The other one.")],
    judge: JudgeName = "lexical",
    trait: TraitName = None,
    template: TemplateName = None,
    judge_arg: JudgeArgs = None,
    base_url: BaseUrl = None,
    cache: Cache = None,
    dry_run: DryRun = False,
    encoding: Encoding = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Ask a judge which of two texts is better: a quick try before a study."""
    pair = {"ID1": "first", "text1": _text(text1, encoding), "ID2": "second", "text2": _text(text2, encoding)}
    asked = make_named_judge(judge, trait, template, judge_arg, base_url, cache)
    if dry_run:
        show_request(asked, pair, calls=1, as_json=as_json)
        return
    with contextlib.redirect_stdout(sys.stderr):
        answers = ps.submit_pairs([pair], asked, progress=False)
    if answers.results.height == 0:
        failed = answers.failed_pairs.row(0, named=True)
        raise InputError(f"no answer: {failed['error_code']}: {failed['error_message']}")
    row = answers.results.row(0, named=True)
    say_reused(asked)

    def show() -> None:
        which = {"SAMPLE_1": "the first text", "SAMPLE_2": "the second text"}.get(row["better_sample"] or "")
        typer.echo(f"better: {which}" if which else f"no winner: {row['outcome']}")
        for name in ("probability", "cost", "latency_s", "total_tokens"):
            if row[name] is not None:
                typer.echo(f"{name}: {row[name]:.4g}")
        if row["content"]:
            typer.echo(f"answer: {printable(row['content'])}")

    emit({"result": row}, answers.results, as_json=as_json, out=out, show=show)


def _text(given: str, encoding: str | None) -> str:
    from pairscale.files import read_text

    is_file = False
    with contextlib.suppress(OSError, ValueError):  # a long text is no file's name
        is_file = Path(given).is_file()
    if is_file:
        return read_text(given, encoding)
    if not given.strip():
        raise InputError("a text is empty; name a file, or give the text in quotes")
    if given.endswith(".txt"):
        raise InputError(f"{given}: no such file")
    return given
