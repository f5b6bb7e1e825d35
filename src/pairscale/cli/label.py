"""``pairscale label``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, say, show_table
from pairscale.cli.from_verb import from_verb

if TYPE_CHECKING:
    from pairscale.people.overview import Overview


@from_verb("people.verbs.label", "SOURCE", hidden="seed encoding")
def command(arguments: Arguments, emit: Output) -> int:
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

    Examples:
        pairscale label cases.jsonl --run run.db --labellers ann,bob
        pairscale label cases.jsonl --labellers 5 --instructions how.md --port 8484
        pairscale label run.db --criterion clarity --no-ties
        pairscale label cases.jsonl --run run.db --terminal
        pairscale label run.db --status --out labels.jsonl
    """
    result = ps.label(**arguments)
    view = result.overview
    document = {"labels": result.labels, "done": view.labels, "wanted": view.wanted, "stuck": view.stuck}
    emit(document, result.labels, lambda: _show(view))
    if result.done < result.wanted and not arguments["status"]:
        say(f"{result.done:,} of {result.wanted:,} labels are in {result.run}; run the same command again to continue")
        return result.exit_code
    return 0


def _show(view: Overview) -> None:
    import polars as pl

    rows = [
        {"labeller": person.labeller.name, **fields(person, "labels ties skipped seconds is_fast leans")}
        | {"left side": person.left / max(person.sided, 1)}
        for person in view.labellers
    ]
    if rows:
        table = pl.DataFrame(rows, infer_schema_length=None)
        show_table(table.rename({"is_fast": "too fast", "leans": "leans to a side"}), digits=2)
    for criterion in view.criteria:
        alpha = "" if criterion.alpha is None else f"; alpha {criterion.alpha:.2f} on {criterion.n_units:,} cases"
        echo(f"{criterion.criterion}: {criterion.complete:,} of {criterion.cases:,} cases complete{alpha}")
