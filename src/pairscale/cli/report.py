"""``pairscale report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairscale.cli import _options as opt
from pairscale.cli._common import emit, say
from pairscale.cli._groups import ResultCols, with_groups

EXAMPLES = (
    "pairscale report run.db",
    "pairscale report run.db --out ranking.html --title 'Essays of May'",
    "pairscale report run.db --without-texts --pseudonyms --out to-share.html",
    "pairscale report run.db --out ranking.xlsx",
    "pairscale report run.db --again again.jsonl",
    "pairscale report run.db --kind bias",
    "pairscale report session.csv --samples essays",
    "pairscale report labels.jsonl --condition openai:gpt-5.1",
    "pairscale report run.db --interactive",
    "pairscale report judge-card.json",
)


@with_groups
def command(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="The run file: a ranking, a bias study or an A/B run; several, or their folder, make one ranking; "
            "results of any form that `pairscale fit` takes; labels of two variants with their key; or a judge card.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The page (RUN.html when it is left out), or by its ending a table: csv and so on; xlsx has a sheet "
            "each for ranking, comparisons and method.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What was asked.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="What to read the run as: ranking, bias, ab or variants; by default recognised."
        ),
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The judge, or the beginning of a condition, if there are several; people. For labels: the criterion.",
        ),
    ] = None,
    without_texts: Annotated[
        bool, typer.Option("--without-texts", help="Leave the texts and the judge's words out.")
    ] = False,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Call the texts or tasks T1, T2, …, in no order.")
    ] = False,
    again: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write what to look at again, as cases for `pairscale label`."),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Charts that can be pointed at and zoomed; adds 0.9 MB.")
    ] = False,
    samples: opt.SamplesOfResults = None,
    columns: ResultCols = ResultCols(),
    key: opt.Key = None,
    as_json: opt.Json = False,
) -> None:
    """Write a run as one HTML page that opens from the disk and loads nothing.

    Of a ranking it holds the scores with intervals, any two texts side by side with the judgements between them, what
    the reliability means, and how the judge behaved; of a bias study, what the position does under each template and
    judge; of an A/B run, which variant is better, case by case. And of each what it cost, what to look at again, and a
    paragraph on the method.

    Results that are in no run file, such as a session of comparative judgement or the votes of an arena, make a ranking
    with the fit of texts and judges; texts are shown if you give them with --samples.

    Of an A/B run with labels of people, and of a file of labels in which a labeller is a judge, the page holds the
    judge against people: a table of who said what, their agreement, and the cases in which they differ.

    With --without-texts and --pseudonyms the page can be shared: it then holds no text, and no name of one.
    """
    from pairscale.reporting.results import named
    from pairscale.reporting.verbs import written_report

    made = written_report(
        opt.single(run), named(samples=samples, **vars(columns), key=key), out=out, title=title, kind=kind,
        condition=condition, without_texts=without_texts, pseudonyms=pseudonyms, again=again, interactive=interactive,
    )  # fmt: skip
    say(f"written: {made.path}")
    if again is not None:
        tell = f" (try: pairscale label {again})" if made.again else ", so there is nothing to label"
        say(f"written: {again}, {made.again} case{'s' * (made.again != 1)} to look at again{tell}")
    if as_json:
        document = {"report": str(made.path), "again": made.again, "items": made.items}
        emit(document, made.items, as_json=True, out=None, show=lambda: None)
