"""``pairscale label``."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairscale.cli._common import Json, Out, emit, say, show_table
from pairscale.cli._inputs import run_file
from pairscale.cli._people import Host, Instructions, Labellers, Plain, Port, Url, people, show_links, written
from pairscale.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.people import Address, Case, LabelStore

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale label cases.jsonl --run run.db --labellers ann,bob",
    "pairscale label cases.jsonl --labellers 5 --instructions how.md --port 8484",
    "pairscale label run.db --criterion clarity --no-ties",
    "pairscale label cases.jsonl --run run.db --terminal",
    "pairscale label run.db --status --out labels.jsonl",
)


_WAKE_S = 0.5


def _default_run(context: typer.Context, run: str | None) -> str | None:
    """Without --run, the labels of a run file are kept in it, and those of a table beside it: cases.db."""
    from pairscale.files import TABLE_SUFFIXES

    source = context.params.get("source")
    if run is not None or source is None:
        return run_file(run)
    return str(Path(source).with_suffix(".db")) if Path(source).suffix.lower() in TABLE_SUFFIXES else source


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
    labellers: Labellers = None,
    labels_per_case: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Labels that each case gets; 1 with one labeller, 2 with more."),
    ] = None,
    instructions: Instructions = None,
    criterion: Annotated[
        str | None, typer.Option(metavar="TEXT", help="In what one may be better; for pairs, which do not say it.")
    ] = None,
    no_ties: Annotated[bool, typer.Option("--no-ties", help="Force a choice.")] = False,
    plain: Plain = False,
    host: Host = "127.0.0.1",
    port: Port = 8484,
    url: Url = None,
    owner_token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Of the owner's page; by default a random one, which stays.")
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Ask here, in the terminal, and serve nothing.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Show how far it is, and serve nothing.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Of sides and orders; a random one by default.")
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Have people label pairs: which of the two is better?

    Each labeller gets a link of their own, and the owner another one, with progress, agreement, warnings and
    downloads. Which text stands on which side is drawn for every labeller and case; the labels are in the order of the
    manifest. No labeller sees a case twice. A click is on the disk, in the run file, before the next page is shown.
    Run the same command again to continue, with the same links. Ctrl-C or SIGTERM stops; --out and --json then give
    the labels.

    The page listens on this machine alone. For others, put a proxy with https before it and name its --url, or give
    --host.
    """
    from pairscale.people import Address, LabelStore, read_cases
    from pairscale.people.serve import require_page
    from pairscale.runtime.sync import terminable

    if terminal and status:
        raise InputError("give --terminal or --status, not both")
    if Path(source).is_dir():
        raise InputError(f"{source} is a folder; pair its texts first: pairscale pairs {source} --out pairs.csv")
    cases = read_cases(source, criterion=criterion)
    names = people(labellers)
    if terminal and len(names) > 1:
        raise InputError("one person sits at a terminal; give one name to --labellers")
    settings: dict[str, Any] = {"labels_per_case": labels_per_case, "ties": False if no_ties else None}
    settings |= {"seed": seed, "owner_token": owner_token}
    kept = str(run)
    if status:
        _show_status(kept, cases, names, settings, as_json=as_json, out=out)
        return
    address = Address(host, port, url)
    if not terminal:
        require_page()
    code = 0
    with terminable(), LabelStore(kept, cases, labellers=names, **settings) as store:
        if terminal:
            from pairscale.people.terminal import label_in_terminal

            label_in_terminal(store, cases, names[0] if names else "terminal")
        else:
            code = _serve(store, cases, address, written(instructions), plain)
        _report(store, cases, as_json, out)
        done, wanted = store.totals()
    if done < wanted:
        say(f"{done:,} of {wanted:,} labels are in {kept}; run the same command again to continue")
        raise typer.Exit(code)


def _show_status(
    run: str, cases: Sequence[Case], names: list[str], settings: dict[str, Any], *, as_json: bool, out: Path | None
) -> None:
    """Show how far it is; only reads, so that it works while another process labels."""
    from pairscale.people import LabelStore

    if names or any(value is not None for value in settings.values()):
        raise InputError("--status changes nothing; leave out --labellers and the settings of labelling")
    if "://" not in run and not Path(run).exists():
        raise InputError(f"{run}: no labels yet; run the same command without --status to collect them")
    with LabelStore(run, cases, write=False) as store:
        known = store.case_ids()
        _report(store, [case for case in cases if case.case_id in known], as_json, out)


def _serve(store: LabelStore, cases: Sequence[Case], address: Address, instructions: str, plain: bool) -> int:
    """Serve until Ctrl-C or SIGTERM; gives the exit code for labels that are not complete."""
    from pairscale.people import serve_labels
    from pairscale.runtime.sync import Terminated

    if not store.labellers():
        store.add_labeller("labeller-1")
    people_there, wanted = len(store.labellers()), store.labels_per_case
    if people_there < wanted:
        say(f"note: each case needs {wanted} labels by different people, and there are {people_there}; add --labellers")
    with serve_labels(store, cases, address=address, instructions=instructions, plain=plain) as site:
        say(f"{len(cases):,} cases, {wanted} label{'s' * (wanted != 1)} each, kept in {store.name}")
        show_links({"owner": site.owner, **site.links})
        say("send each labeller their link; Ctrl-C stops, and the same command continues")
        try:
            while True:  # in short waits: another thread may get the signal, and only a waking main thread sees it
                threading.Event().wait(_WAKE_S)
        except (KeyboardInterrupt, Terminated) as stop:
            say("stopping")
            return 143 if isinstance(stop, Terminated) else 130


def _report(store: LabelStore, cases: Sequence[Case], as_json: bool, out: Path | None) -> None:
    """How far it is, and the labels."""
    import polars as pl

    from pairscale.people import label_table
    from pairscale.people.overview import overview

    labels = label_table(store, for_spreadsheets=out is not None and out.suffix.lower() in {".csv", ".tsv"})
    view = overview(store, {case.case_id: case for case in cases})

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
