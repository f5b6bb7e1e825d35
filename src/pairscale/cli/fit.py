"""``pairscale fit``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, emit, say, show_table
from pairscale.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EXAMPLES", "SUMMARY", "command"]

SUMMARY = "Turn comparisons into scores, ranks, intervals and a reliability."
EXAMPLES = (
    "pairscale fit run.db",
    "pairscale fit results.csv --out ranking.xlsx",
    "pairscale fit run.db --condition lexical --json",
)


class Model(StrEnum):
    """The models there are."""

    BT = "bt"


def command(
    results: Annotated[
        str, typer.Argument(metavar="RESULTS", help="A run file, or a table of results (also one from R).")
    ],
    model: Annotated[Model, typer.Option(metavar="MODEL", help="bt: Bradley-Terry.")] = Model.BT,  # noqa: ARG001
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="How to fit it: sirt, the figures of R's sirt::btm; auto is the same.")
    ] = "auto",
    level: Annotated[float, typer.Option(metavar="SHARE", help="Of the intervals.")] = 0.95,
    condition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a run file with several: this judge, this condition (its beginning is enough), or all.",
        ),
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="Fit groups that were never compared one by one, instead of refusing.")
    ] = False,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Turn comparisons into scores, ranks, intervals and a reliability.

    RESULTS is a run file, or a csv, tsv, jsonl, json, parquet or xlsx table with the columns ID1 ID2 better_id, or
    A_id B_id better_id, or object1 object2 result, or winner loser. Rows without a winner are left out, and counted.

    The score (theta) is in logits, with mean 0: a text that is one above another wins 73 of 100 comparisons with it.
    The file that --out writes has further columns, among them the engine's own standard error (se).
    """
    table, ids = _read(results, condition)
    fit = ps.fit_bt_model(table, engine=engine, ids=ids, level=level, unconnected="separate" if separate else "error")
    ranking = fit.theta
    document = {
        "model": "bt",
        "engine": fit.engine,
        "reliability": fit.reliability,
        "n_items": ranking.height,
        "n_comparisons": int(ranking["comparisons"].sum()) // 2,
        "level": level,
        "components": len(fit.components),
        "unjudged": fit.unjudged,
        "notices": fit.notices,
        "items": ranking,
    }

    def show() -> None:
        first = "component" if "component" in ranking.columns else "rank"
        show_table(ranking.select(first, "ID", "theta", "se_mean", "lower", "upper", "wins", "comparisons"))
        typer.echo(f"\n{document['n_items']:,} items, {document['n_comparisons']:,} comparisons, engine {fit.engine}")
        if fit.reliability is not None:
            typer.echo(f"reliability {fit.reliability:.3f}")
        typer.echo(f"lower to upper: {100 * level:g}% interval of the difference to the mean, theta ± z · se_mean")

    emit(document, ranking, as_json=as_json, out=out, show=show)


def _read(source: str, condition: str | None) -> tuple[pl.DataFrame, list[str] | None]:
    from pairscale.files import TABLE_SUFFIXES, read_table

    if Path(source).suffix.lower() in TABLE_SUFFIXES:
        if condition is not None:
            raise InputError("--condition belongs to run files; a table of results has no conditions to choose from")
        table = read_table(source)
        if "ID1" in table.columns and not {"better_id", "better_sample"} & set(table.columns):
            raise InputError(f"{source} holds pairs without answers; `pairscale judge {source} --run FILE` gets them")
        return table, None
    with ps.open_run(source) as store:
        return store.results(_chosen(store.conditions(), condition)), store.items()["ID"].to_list()


def _chosen(conditions: pl.DataFrame, wanted: str | None) -> str | None:
    if conditions.height == 0:
        raise InputError("the run file holds no comparisons yet; `pairscale judge` makes them")
    if wanted == "all":
        say("note: the answers of all conditions are fitted together")
        return None
    found = [
        row["condition_id"]
        for row in conditions.iter_rows(named=True)
        if wanted is None or row["judge_id"] == wanted or row["condition_id"].startswith(wanted)
    ]
    if len(found) == 1:
        return str(found[0])
    there = "; ".join(f"{row['judge_id']} ({row['condition_id'][:8]})" for row in conditions.iter_rows(named=True))
    if not found:
        raise InputError(f"no condition is called {wanted!r}; there are: {there}")
    raise InputError(
        f"the run file holds several conditions; choose one by --condition {found[0][:8]}, or --condition all: {there}"
    )
