"""``pairscale label``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._common import Output, echo, say, show_table
from pairscale.cli.from_verb import from_verb

if TYPE_CHECKING:
    from pairscale.people.verbs import Labelling


@from_verb(
    "label",
    "SOURCE",
    "pairscale label cases.jsonl --run run.db --labellers ann,bob",
    "pairscale label cases.jsonl --labellers 5 --instructions how.md --port 8484",
    "pairscale label run.db --criterion clarity --no-ties",
    "pairscale label cases.jsonl --run run.db --terminal",
    "pairscale label run.db --status --out labels.jsonl",
)
def command(arguments: dict[str, Any], emit: Output) -> int:
    """Have people label pairs: which of the two is better?

    Each labeller gets a personal link, and the owner another one, with progress, agreement, warnings and
    downloads. Which text stands on which side is drawn for every labeller and case; the labels are in the order of the
    manifest. No labeller sees a case twice. A click is on the disk, in the run file, before the next page is shown.
    Run the same command again to continue, with the same links. Ctrl-C or SIGTERM stops; --out and --json then give
    the labels.

    The page listens on this machine alone. For others, put a proxy with https before it and name its --url, or give
    --host.

    Args:
        labellers: Names of the labellers, such as ann,bob, or their number; each gets a link.
        ties: Allow ties, or force a choice; allowed by default.
    """
    found = ps.label(**arguments)
    view = found.overview
    document = {"labels": found.labels, "done": view.labels, "wanted": view.wanted, "stuck": view.stuck}
    emit(document, found.labels, lambda: _show(found))
    if found.done < found.wanted and not arguments["status"]:
        say(f"{found.done:,} of {found.wanted:,} labels are in {found.run}; run the same command again to continue")
        return found.exit_code
    return 0


def _show(found: Labelling) -> None:
    import polars as pl

    rows = []
    for one in found.overview.labellers:
        warnings = ["too fast"] * one.is_fast + ["leans to a side"] * one.leans
        row = {"labeller": one.labeller.name, "labels": one.labels, "ties": one.ties, "skipped": one.skipped}
        row |= {"seconds": one.seconds, "left side": one.left / one.sided if one.sided else None}
        rows.append(row | {"warning": ", ".join(warnings)})
    if rows:
        show_table(pl.DataFrame(rows, infer_schema_length=None), digits=2)
    for view in found.overview.criteria:
        alpha = "" if view.alpha is None else f"; alpha {view.alpha:.2f} on {view.n_units:,} cases"
        echo(f"{view.criterion}: {view.complete:,} of {view.cases:,} cases complete{alpha}")
