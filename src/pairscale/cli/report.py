"""``pairscale report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, emit, say
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
        typer.Option(
            metavar="FILE",
            help="The page (RUN.html when it is left out), or by its ending a table: xlsx, csv and so on.",
        ),
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
    as_json: Json = False,
) -> None:
    """Write a run as one HTML page that opens from the disk and loads nothing.

    It holds the ranking with intervals, any two texts side by side with the judgements between them, what the
    reliability means, how the judge behaved, what it cost, what to look at again, and a paragraph on the method.

    With --without-texts and --pseudonyms the page can be shared: it then holds no text, and no name of one.
    """
    from pairscale.files import TABLE_SUFFIXES, write_table
    from pairscale.report._facts import facts_of_run
    from pairscale.report.page import disguised, write_again, write_page

    target = Path(run).with_suffix(".html") if out is None else out
    is_table = target.suffix.lower() in TABLE_SUFFIXES
    if not is_table and target.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"--out {target}: the ending must be html, or that of a table, such as xlsx")
    with ps.open_run(run) as store:
        facts = facts_of_run(store, condition_of(store, condition))
    if pseudonyms:
        facts = disguised(facts)
    if is_table:
        write_table(facts.items, target)
    else:
        write_page(facts, target, title=title, texts=not without_texts, run=run)
    say(f"written: {target}")
    surprises = None if again is None else write_again(facts, again)
    if again is not None:
        say(f"written: {again}, {surprises} pairs to look at again (try: pairscale label {again})")
    if as_json:
        document = {"report": str(target), "again": surprises, "items": facts.items}
        emit(document, facts.items, as_json=True, out=None, show=lambda: None)
