"""``pairscale agreement``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Encoding, Json, Out, emit, show_table
from pairscale.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale agreement run.db",
    "pairscale agreement labels.jsonl",
    "pairscale agreement marks.csv --unit essay --rater name --label mark",
    "pairscale agreement grades.csv --unit essay --categories fail,pass,good",
)

_LABELS = {"unit": "case_id", "rater": "labeller", "label": "preferred"}


def command(
    labels: Annotated[
        str,
        typer.Argument(
            metavar="LABELS",
            help="A run file with labels, or a table with a unit, a rater and a label per row, as `pairscale label` "
            "writes it, or with a column per rater.",
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
    level: Annotated[float, typer.Option(min=0, max=1, metavar="P", help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the resampling behind the intervals.")] = 1,
    encoding: Encoding = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Do labellers agree, and by how much more than chance would have it?

    Percent agreement, Cohen's kappa (two raters) or Light's (more), Krippendorff's alpha and Gwet's AC1, each with an
    interval; then every two raters by themselves. A missing label is left out. With --categories, or with numbers as
    labels, the order counts, and the weighted coefficients are there, too.
    """
    table = _read(labels, encoding)
    names = {
        role: given or _column(table, role) for role, given in (("unit", unit), ("rater", rater), ("label", label))
    }
    wanted = None if categories is None else [part.strip() for part in categories.split(",")]
    if wanted is not None and names["label"] in table.columns:
        table = table.with_columns(table[names["label"]].cast(str))
    found = ps.agreement(
        table,
        unit=names["unit"],
        rater=names["rater"],
        label=names["label"],
        categories=wanted,
        level=level,
        seed=seed,
    )
    document = {
        "n_units": found.n_units,
        "n_raters": found.n_raters,
        "categories": [str(name) for name in found.categories],
        "level": found.level,
        "table": found.table,
        "pairs": found.pairs,
        "notices": list(found.notices),
    }
    emit(document, found.table, as_json=as_json, out=out, show=lambda: _show(found))


def _read(path: str, encoding: str | None) -> pl.DataFrame:
    from pairscale.files import TABLE_SUFFIXES, read_table

    if "://" in path or (Path(path).suffix.lower() not in TABLE_SUFFIXES and Path(path).exists()):
        with ps.open_run(path) as store:
            table = store.labels()
        if table.height == 0:
            raise InputError(f"{path} holds no labels; `pairscale label MANIFEST --run {path}` collects them")
        return table
    table = read_table(path, text=("case_id", "labeller", "preferred", "unit", "rater", "label"), encoding=encoding)
    if table.height == 0:
        raise InputError(f"{path} holds no labels: it has a header and no rows")
    return table


def _column(table: pl.DataFrame, role: str) -> str:
    """The column of a role: as labels of cases have it where all three are there, else called like the role."""
    return _LABELS[role] if set(_LABELS.values()) <= set(table.columns) else role


def _show(found: ps.Agreement) -> None:
    typer.echo(f"{found.n_raters} raters, {found.n_units:,} units, labels {', '.join(map(str, found.categories))}\n")
    show_table(found.table)
    if found.n_raters > 2:
        typer.echo("\nEvery two of them:")
        show_table(found.pairs)
