"""``pairscale report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, emit, say
from pairscale.cli._inputs import condition_of
from pairscale.errors import InputError
from pairscale.options import optional, require_suffix

if TYPE_CHECKING:
    from pairscale.report._shell import Facts

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale report run.db",
    "pairscale report run.db --out ranking.html --title 'Essays of May'",
    "pairscale report run.db --without-texts --pseudonyms --out to-share.html",
    "pairscale report run.db --out ranking.xlsx",
    "pairscale report run.db --again again.jsonl",
    "pairscale report run.db --as bias",
    "pairscale report run.db --interactive",
)


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file: a ranking, a bias study, or an A/B run.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The page (RUN.html when it is left out), or by its ending a table: xlsx, csv and so on.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What was asked.")] = None,
    kind: Annotated[
        str | None,
        typer.Option("--as", metavar="KIND", help="What to read the run as: ranking, bias or ab; it knows by itself."),
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The judge, or the beginning of a condition, when there are several."),
    ] = None,
    without_texts: Annotated[
        bool, typer.Option("--without-texts", help="Leave the texts and the judge's words out.")
    ] = False,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Call the texts or tasks T1, T2, …, in no order.")
    ] = False,
    again: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what to look at again as cases for `pairscale label`, too."),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Charts that can be pointed at, searched and zoomed; adds 0.9 MB.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a run as one HTML page that opens from the disk and loads nothing.

    Of a ranking it holds the scores with intervals, any two texts side by side with the judgements between them, what
    the reliability means, and how the judge behaved; of a bias study, what the position does under each template and
    judge; of an A/B run, which variant is better, case by case. And of each what it cost, what to look at again, and a
    paragraph on the method.

    With --without-texts and --pseudonyms the page can be shared: it then holds no text, and no name of one.
    """
    from pairscale.files import TABLE_SUFFIXES, write_table
    from pairscale.report._chart_files import require_drawing
    from pairscale.report.page import page_of, write_page

    is_table = out is not None and out.suffix.lower() in TABLE_SUFFIXES
    optional(require_suffix, out, "--out", (".html", ".htm", *TABLE_SUFFIXES))
    optional(require_suffix, again, "--again", (".jsonl", ".ndjson"))
    if interactive and is_table:
        raise InputError(f"--interactive is for the charts of a page, and {out} is a table; leave one of the two out")
    if interactive:
        require_drawing("--interactive")
    facts = _facts(run, kind, condition)
    target = page_of(run) if out is None else out
    shown = facts.disguised() if pseudonyms else facts
    table = shown.rows(texts=not without_texts)
    if is_table:
        write_table(table, target)
    else:
        named = None if pseudonyms else run
        write_page(shown, target, title=title, texts=not without_texts, run=named, interactive=interactive)
    say(f"written: {target}")
    cases = None
    if again is not None:
        cases = shown.write_again(again)
        tell = f" (try: pairscale label {again})" if cases else ", so there is nothing to label"
        say(f"written: {again}, {cases} case{'s' * (cases != 1)} to look at again{tell}")
    if as_json:
        document = {"report": str(target), "again": cases, "items": table}
        emit(document, table, as_json=True, out=None, show=lambda: None)


def _facts(run: str, kind: str | None, condition: str | None) -> Facts:
    from pairscale.report.page import KINDS, facts_of, kind_of

    chosen = next((name for name in KINDS if name == kind), None)
    if kind is not None and chosen is None:
        raise InputError(f"--as {kind}: a run is read as {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    with ps.open_run(run) as store:
        chosen = chosen or kind_of(store)
        if chosen == "ab":
            if condition is not None:
                raise InputError("--condition chooses a judge of a ranking or a study; an A/B run shows all of its own")
            return facts_of(store, chosen)
        # A study is about all of its judges; a ranking of several needs a choice.
        all_of_them = chosen == "bias" and condition is None
        return facts_of(store, chosen, None if all_of_them else condition_of(store, condition))
