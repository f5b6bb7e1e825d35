"""``pairscale agreement``."""

from __future__ import annotations

from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, show_table
from pairscale.cli._groups import ResultCols, with_groups

EXAMPLES = (
    "pairscale agreement run.db",
    "pairscale agreement labels.jsonl",
    "pairscale agreement labels.jsonl --key cases.key.jsonl",
    "pairscale agreement marks.csv --unit essay --rater name --label mark",
    "pairscale agreement votes.csv --a-col x --b-col y --winner-col won",
    "pairscale agreement grades.csv --unit essay --categories fail,pass,good",
)


@with_groups
def command(
    labels: Annotated[
        list[str],
        typer.Argument(
            metavar="LABELS...",
            help="A run file with labels, several run files or their folder, or a table with a unit, a rater and a "
            "label per row, as `pairscale label` writes it, or with a column per rater; or results that say who "
            "judged, of any form that `pairscale fit` takes.",
        ),
    ],
    unit: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of units; otherwise case_id, or unit.")
    ] = None,
    rater: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of raters; otherwise labeller, or rater.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of labels; otherwise preferred, or label.")
    ] = None,
    categories: Annotated[
        str | None, typer.Option(metavar="LIST", help="All labels there may be, in their order: fail,pass,good.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="For labels of cases: the key that says which variant stands first."),
    ] = None,
    columns: ResultCols = ResultCols(),
    level: Annotated[float, typer.Option(min=0, max=1, metavar="P", help="Level of the intervals.")] = 0.95,
    n_boot: Annotated[
        int, typer.Option(min=0, metavar="N", help="Bootstrap resamples of the units; 0 for no such intervals.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the bootstrap.")] = 1,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Do labellers agree, and by how much more than chance would have it?

    Percent agreement, Cohen's kappa (two raters) or Light's (more), Krippendorff's alpha and Gwet's AC1, each with an
    interval; then every two raters by themselves. A missing label is left out. With --categories, or with numbers as
    labels, the order counts, and there are weighted coefficients as well.

    Labels of blinded cases are compared by variant wherever the key is known: in the labels themselves, in
    LABELS.key.jsonl beside them, or with --key.
    """
    wanted = None if categories is None else [part.strip() for part in categories.split(",")]
    found = ps.agreement(
        opt.single(labels), unit=unit, rater=rater, label=label, categories=wanted, key=key,
        level=level, n_boot=n_boot, seed=seed, **vars(columns),
    )  # fmt: skip
    document = {
        "n_units": found.n_units,
        "n_raters": found.n_raters,
        "by": found.by,
        "categories": [str(name) for name in found.categories],
        "level": found.level,
        "table": found.table,
        "pairs": found.pairs,
        "notices": list(found.notices),
    }
    emit(document, found.table, as_json=as_json, out=out, show=lambda: _show(found))


def _show(found: ps.Agreement) -> None:
    by = f", compared by {found.by}" if found.by else ""
    names = ", ".join(map(str, found.categories))
    typer.echo(f"{found.n_raters} raters, {found.n_units:,} units, labels {names}{by}\n")
    show_table(found.table)
    if found.n_raters > 2:
        typer.echo("\nEvery two of them:")
        show_table(found.pairs)
