"""``pairscale compare``."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, printable
from pairscale.cli._groups import Judging, with_groups
from pairscale.cli._inputs import make_named_judge, say_reused, show_request
from pairscale.cli._opening import Opening, say_judged

EXAMPLES = (
    "pairscale compare anna.txt ben.txt --judge openai:gpt-5.1",
    'pairscale compare "It rains." "It rains, so we stay." --judge lexical',
    "pairscale compare anna.txt ben.txt --judge openai:gpt-5.1 --dry-run",
)


@with_groups
def command(
    text1: Annotated[
        str, typer.Argument(metavar="TEXT1", help="A file (txt, md, html, docx, odt, pdf), or the text itself.")
    ],
    text2: Annotated[str, typer.Argument(metavar="TEXT2", help="The other one.")],
    judge: opt.JudgeName = "lexical",
    judging: Judging = Judging(),
    timeout: opt.Timeout = 300.0,
    dry_run: opt.DryRun = False,
    encoding: opt.Encoding = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Ask a judge which of two texts is better: a quick try before a study."""
    from pairscale.collect.verbs import pair_of
    from pairscale.judges.base import judge_member
    from pairscale.providers.catalog import price_date, price_note

    pair = pair_of(text1, text2, encoding)
    with contextlib.redirect_stdout(sys.stderr):
        asked = make_named_judge(judge, judging)
    opening = Opening([f"2 texts: {len(pair['text1']):,} and {len(pair['text2']):,} characters"])
    opening.say([asked.condition.judge_id])
    if dry_run:
        show_request(asked, pair, calls=1, as_json=as_json)
        return
    with contextlib.redirect_stdout(sys.stderr):
        answer = ps.compare(pair["text1"], pair["text2"], judge=asked, timeout=timeout)
    row = answer.row(0, named=True)
    say_reused(asked)
    prices_as_of = price_date(judge_member(asked, "price"))

    def show() -> None:
        which = {"SAMPLE_1": "the first text", "SAMPLE_2": "the second text"}.get(row["better_sample"] or "")
        typer.echo(f"better: {which}" if which else f"no winner: {row['outcome']}")
        for name in ("probability", "cost", "latency_s", "total_tokens"):
            if row[name] is not None:
                dates = price_note([prices_as_of]) if name == "cost" else ""
                typer.echo(f"{name}: {row[name]:.4g}{dates}")
        if row["content"]:
            typer.echo(f"answer: {printable(row['content'])}")

    emit({"result": row, "prices_as_of": prices_as_of}, answer, as_json=as_json, out=out, show=show)
    say_judged([row["judge_id"]])
