"""``pairscale label``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, say, show_table
from pairscale.cli._inputs import run_file

if TYPE_CHECKING:
    from pairscale.people.verbs import Labelling

EXAMPLES = (
    "pairscale label cases.jsonl --run run.db --labellers ann,bob",
    "pairscale label cases.jsonl --labellers 5 --instructions how.md --port 8484",
    "pairscale label run.db --criterion clarity --no-ties",
    "pairscale label cases.jsonl --run run.db --terminal",
    "pairscale label run.db --status --out labels.jsonl",
)


def _default_run(context: typer.Context, run: str | None) -> str | None:
    """Without --run, the labels of a run file are kept in it, and those of a table beside it: cases.db."""
    from pairscale.people.verbs import labels_file

    source = context.params.get("source")
    return run_file(run) if run is not None or source is None else labels_file(source)


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MANIFEST_OR_RUN",
            help="A blinded manifest (case_id task_id criterion task_input response_1 response_2), a table of pairs, "
            "or a run file, whose pairs are labelled.",
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_default_run,
            help="The run file that keeps the labels. By default MANIFEST_OR_RUN itself if it is one, else a file "
            "beside it with the ending .db.",
        ),
    ] = None,
    labellers: opt.Labellers = None,
    labels_per_case: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Labels that each case gets; 1 with one labeller, 2 with more."),
    ] = None,
    instructions: opt.Instructions = None,
    criterion: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What “better” means; for pairs, which do not say it.")
    ] = None,
    ties: Annotated[
        bool | None,
        typer.Option("--ties/--no-ties", help="Allow ties, or force a choice; allowed by default.", show_default=False),
    ] = None,
    plain: opt.Plain = False,
    host: opt.Host = "127.0.0.1",
    port: opt.Port = 8484,
    url: opt.Url = None,
    owner_token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Token of the owner's page; by default a random one, which is kept."),
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Ask here, in the terminal, and serve nothing.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Show how far it is, and serve nothing.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed of sides and orders; random by default.")
    ] = None,
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    encoding: opt.Encoding = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Have people label pairs: which of the two is better?

    Each labeller gets a personal link, and the owner another one, with progress, agreement, warnings and
    downloads. Which text stands on which side is drawn for every labeller and case; the labels are in the order of the
    manifest. No labeller sees a case twice. A click is on the disk, in the run file, before the next page is shown.
    Run the same command again to continue, with the same links. Ctrl-C or SIGTERM stops; --out and --json then give
    the labels.

    The page listens on this machine alone. For others, put a proxy with https before it and name its --url, or give
    --host.
    """
    found = ps.label(
        source, run=run, labellers=labellers, labels_per_case=labels_per_case, instructions=instructions,
        criterion=criterion, ties=ties, plain=plain, host=host, port=port, url=url, owner_token=owner_token,
        terminal=terminal, status=status, seed=seed, a_col=a_col, b_col=b_col, encoding=encoding,
    )  # fmt: skip
    _report(found, as_json, out)
    if found.done < found.wanted and not status:
        say(f"{found.done:,} of {found.wanted:,} labels are in {found.run}; run the same command again to continue")
        raise typer.Exit(found.exit_code)


def _report(found: Labelling, as_json: bool, out: Path | None) -> None:
    """How far it is, and the labels."""
    import polars as pl

    view = found.overview
    labels = found.labels

    def show() -> None:
        rows = [
            {"labeller": one.labeller.name, "labels": one.labels, "ties": one.ties, "skipped": one.skipped,
             "seconds": one.seconds, "left side": one.left / one.sided if one.sided else None,
             "warning": ", ".join(["too fast"] * one.is_fast + ["leans to a side"] * one.leans)}
            for one in view.labellers
        ]  # fmt: skip
        if rows:
            show_table(pl.DataFrame(rows, infer_schema_length=None), digits=2)
        for one in view.criteria:
            alpha = "" if one.alpha is None else f"; alpha {one.alpha:.2f} on {one.n_units:,} cases"
            typer.echo(f"{one.criterion}: {one.complete:,} of {one.cases:,} cases complete{alpha}")

    document = {"labels": labels, "done": view.labels, "wanted": view.wanted, "stuck": view.stuck}
    emit(document, labels, as_json=as_json, out=out, show=show)
