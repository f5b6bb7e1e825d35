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

__all__ = ["command"]


class Model(StrEnum):
    """The models there are."""

    BT = "bt"


def command(
    results: Annotated[str, typer.Argument(help="A run file, or a table of results (also one from R).")],
    model: Annotated[Model, typer.Option(help="bt: Bradley-Terry, by maximum likelihood.")] = Model.BT,  # noqa: ARG001
    engine: Annotated[str, typer.Option(help="How to fit it; auto is sirt's bias-reduced estimate.")] = "auto",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    condition: Annotated[
        str | None, typer.Option(help="Of a run file: this judge or condition (its beginning), or all of them.")
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="Fit unlinked groups one by one instead of refusing.")
    ] = False,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Turn comparisons into scores, ranks, intervals and a reliability.

    Understands ID1 ID2 better_id, A_id B_id better_id, object1 object2 result, winner loser, and run files.

    Examples: `pairscale fit run.db`; `pairscale fit results.csv --out ranking.xlsx`
    """
    table, ids = _read(results, condition)
    fit = ps.fit_bt_model(
        ps.build_bt_data(table), engine=engine, ids=ids, level=level, unconnected="separate" if separate else "error"
    )
    ranking = fit.theta
    reliability = "unknown" if fit.reliability is None else f"{fit.reliability:.3f}"
    document = {
        "model": "bt",
        "engine": fit.engine,
        "reliability": fit.reliability,
        "n_items": ranking.height,
        "n_comparisons": int(ranking["comparisons"].sum()) // 2,
        "level": level,
        "unjudged": fit.unjudged,
        "notices": fit.notices,
        "items": ranking,
    }

    def show() -> None:
        show_table(ranking.select("rank", "ID", "theta", "se", "lower", "upper", "wins", "comparisons"))
        typer.echo(f"\n{document['n_items']:,} items, {document['n_comparisons']:,} comparisons, engine {fit.engine}")
        typer.echo(f"reliability {reliability}; intervals of {level:.0%} around the difference to the mean")

    emit(document, ranking, as_json=as_json, out=out, show=show)


def _read(source: str, condition: str | None) -> tuple[pl.DataFrame, list[str] | None]:
    from pairscale.files import TABLE_SUFFIXES, read_table

    if Path(source).suffix.lower() in TABLE_SUFFIXES:
        if condition is not None:
            raise InputError("--condition belongs to run files; a table of results has no conditions to choose from")
        return read_table(source), None
    with ps.open_run(source) as store:
        return store.results(_chosen(store.conditions(), condition)), store.items()["ID"].to_list()


def _chosen(conditions: pl.DataFrame, wanted: str | None) -> str | None:
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
    there = "; ".join(f"{row['judge_id']} ({row['condition_id']})" for row in conditions.iter_rows(named=True))
    if not there:
        raise InputError("the run file holds no comparisons yet")
    if not found:
        raise InputError(f"no condition is called {wanted!r}; there are: {there}")
    raise InputError(f"the run file holds several conditions; choose one with --condition, or all: {there}")
