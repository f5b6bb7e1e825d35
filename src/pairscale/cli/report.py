"""``pairscale report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import say
from pairscale.cli._inputs import condition_of
from pairscale.errors import InputError

__all__ = ["EXAMPLES", "SUMMARY", "command"]

SUMMARY = "Write a run as one HTML page: ranking, texts, judge, cost, method."
EXAMPLES = (
    "pairscale report run.db",
    "pairscale report run.db --out ranking.html --title 'Essays of May'",
    "pairscale report run.db --without-texts --pseudonyms --out to-share.html",
    "pairscale report run.db --out ranking.xlsx",
    "pairscale report run.db --again again.jsonl",
)


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page, or by its ending a table (xlsx, csv …).  [default: RUN.html]"),
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="What was asked.")] = "Ranking",
    condition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The judge, or the beginning of a condition, when there are several."),
    ] = None,
    without_texts: Annotated[
        bool, typer.Option("--without-texts", help="Leave the texts and the judge's words out.")
    ] = False,
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="Call the texts T1, T2, …, in no order.")] = False,
    again: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the surprising pairs as cases for `pairscale label`, too."),
    ] = None,
) -> None:
    """Write a run as one HTML page that opens from the disk and loads nothing.

    It holds the ranking with intervals, any two texts side by side with the judgements between them, what the
    reliability means, how the judge behaved, what it cost, what to look at again, and a paragraph on the method.

    With --without-texts and --pseudonyms the page can be shared: it then holds no text, and no name of one.
    """
    from pairscale.files import TABLE_SUFFIXES, write_table
    from pairscale.report import report_table, write_again, write_report

    with ps.open_run(run) as store:
        chosen = condition_of(store, condition)
        if out is not None and out.suffix.lower() in TABLE_SUFFIXES:
            write_table(report_table(store, condition_id=chosen, pseudonyms=pseudonyms), out)
            written = out
        else:
            if out is not None and out.suffix.lower() not in {".html", ".htm"}:
                raise InputError(f"--out {out}: the ending must be html, or that of a table, such as xlsx")
            target = out or Path(run).with_suffix(".html")
            written = write_report(
                store, target, condition_id=chosen, title=title, texts=not without_texts, pseudonyms=pseudonyms
            )
        say(f"written: {written}")
        if again is not None:
            n = write_again(store, again, condition_id=chosen)
            say(
                f"written: {again}, {n} pairs to look at again (try: pairscale label {again})"
                if n
                else "no pair surprises"
            )
