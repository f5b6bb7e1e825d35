"""The page of position bias: templates by judges, or one judge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.reporting import _bias_messages as words
from pairscale.reporting._bias_messages import judge_name
from pairscale.reporting._calibration import calibration_parts
from pairscale.reporting._shell import Page, Part, cell, listed_first, packed_pairs, spent, table_of
from pairscale.reporting.picture import Intervals, Shares, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.reporting._bias_figures import BiasFacts
    from pairscale.reporting.picture import Picture

_MOST = 12
_FAVOURS = {"first": "favours the first", "second": "favours the second", "neither": "no sign of it"}
_ORDERS = {"first": "first position both times", "same": "the same text", "second": "second position both times"}


def bias_page(facts: BiasFacts, *, texts: bool) -> Page:
    """Put a study into words, pictures and tables."""
    study, table, single = facts.study, facts.table, facts.study.table.height == 1
    shown = texts and bool(facts.texts)
    ids = sorted(facts.texts or {})
    place = {name: at for at, name in enumerate(ids)}
    content: Part = {
        "advice": words.advice(facts),
        "ranking": None if study.ranking.height < 2 else _ranking(study.ranking),
        "to_read": words.TO_READ,
        "to_read_table": words.TO_READ_TABLE,
        "charts": _charts(table),
        "cells_heading": "In figures" if single else "Every template with every judge",
        "orders": _orders(table),
        "calibration": calibration_parts(facts.calibrations),
        **_cells(table),
    }
    sections = (
        ("choose", "Which template", content["ranking"]),
        ("effect", "Effect", content["charts"]),
        ("cells", "Figures", True),
        ("orders", "Where the order decided", content["orders"]),
        ("probabilities", "Probabilities", content["calibration"]),
        ("two", "Two texts", shown),
    )
    n_pairs = max(table["n_pairs"].to_list())
    tiles = [(f"{study.ranking.height:,}", "template" + "s" * (study.ranking.height != 1))]
    judges = table.select(judge_name()).n_unique()
    tiles += [(f"{judges:,}", "judge" + "s" * (judges != 1)), (f"{n_pairs:,}", "pairs, each in both orders")]
    best = study.ranking.row(0, named=True)
    same = "the same winner in both orders"
    tiles.append((percent(best["mean_consistent"]), same if single else f"{same}: {best['template_id']}"))
    nothing = "No pair went to one position in both orders." if facts.pairs is not None else ""
    return Page(
        "bias.html",
        "Position bias" if single else "Templates and position bias",
        words.headline(facts),
        tiles,
        sections,
        content,
        words.method(facts),
        facts.provenance,
        notices=study.notices,
        again=_again(facts, place),
        nothing=nothing,
        spending=spent(facts.spending, int(table["n_pairs"].sum()), "pairs in both orders"),
        packed=packed_pairs(ids, facts.texts or {}, facts.judgements) if shown else "",
        can_label=bool(facts.texts) and facts.pairs is not None and facts.pairs.height > 0,
        judges=table.select(judge_name())["who"].to_list(),
    )


def _charts(table: pl.DataFrame) -> list[tuple[str, Picture]]:
    """The effect with its interval: one row per template, or where there are several judges, a chart per template."""
    known = table.drop_nulls("effect").with_columns(judge_name())
    single = known["who"].n_unique() == 1
    groups = (
        [("", known)]
        if single
        else [(str(name), part) for (name,), part in known.group_by("template_id", maintain_order=True)]
    )
    ends = [
        abs(x) for x in known.select("effect", "effect_lower", "effect_upper").to_numpy().ravel() if math.isfinite(x)
    ]
    most = max([1.0, *ends])
    charts: list[tuple[str, Picture]] = []
    for name, part in groups:
        rows = [
            {"ID": row["template_id"] if single else row["who"], "score": row["effect"]}
            | {"lower": row["effect_lower"], "upper": row["effect_upper"]}
            for row in part.iter_rows(named=True)
        ]
        label = f"Position effect with intervals{f' under {name}' if name else ''}; the table holds the same figures"
        axis = "favours the second ← 0 → favours the first, in logits"
        charts.append((name, Intervals(rows, label, axis, span=(-most, most))))
    return charts


def _ranking(ranking: pl.DataFrame) -> Part:
    columns = [("rank", True), ("template", False), ("judges", True), ("the same winner", True)]
    columns += [("farthest from one half", True), ("judges swayed", True)]
    rows = [
        (
            row["rank"],
            row["template_id"],
            row["n_judges"],
            f"{row['mean_consistent']:.1%}",
            _points(row["worst_pos1"]),
            row["n_significant_paired"],
        )
        for row in ranking.iter_rows(named=True)
    ]
    return table_of(columns, rows)


def _points(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} points"


def _cells(table: pl.DataFrame) -> Part:
    many = table.height > 1
    columns = [("template", False), ("judge", False)] if many else []
    columns += [("verdict", False), ("effect", True), ("from", True), ("to", True), ("pairs", True)]
    columns += [("the same winner", True), ("from", True), ("to", True), ("first wins", True), ("p", True)]
    rows = []
    for row in table.with_columns(judge_name()).iter_rows(named=True):
        favours = row["favours"]
        cells = [cell(row["template_id"], kind="id"), cell(row["who"], kind="word")] if many else []
        mood = {"first": "care", "second": "care", "neither": "good"}.get(favours or "", "")
        cells.append(cell(_FAVOURS.get(favours or "", favours or "not known"), kind=f"word {mood}".strip()))
        cells += [_figure(row[name]) for name in ("effect", "effect_lower", "effect_upper")]
        cells.append(cell(row["n_pairs"]))
        cells += [
            _share(row[name]) for name in ("prop_consistent", "consistent_lower", "consistent_upper", "prop_pos1")
        ]
        p = row["p_paired"]
        cells.append(cell(p, kind="n", shown="" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"))
        rows.append({"cells": cells, "preview": ""})
    minor = [at for at, (name, _) in enumerate(columns) if name in {"effect", "from", "to", "pairs", "p"}]
    return {"columns": columns, "rows": rows, "minor": minor}


def _figure(value: float | None) -> Part:
    if value is None or math.isfinite(value):
        return cell(value, kind="n")
    return cell(value, kind="n", shown="−∞" if value < 0 else "∞")


def _share(value: float | None) -> Part:
    return cell(value, kind="n", shown="" if value is None else f"{value:.1%}")


def _orders(table: pl.DataFrame) -> Part | None:
    """The pairs by what the two orders gave: the same text, or the same position."""
    known = table.drop_nulls("n_both_first").with_columns(judge_name())
    if not known.height:
        return None
    names = [_name(row, known) for row in known.iter_rows(named=True)]
    bars: list[tuple[str, Mapping[str, int]]] = []
    rows: list[Sequence[Any]] = []
    for name, row in zip(names, known.iter_rows(named=True), strict=True):
        ones, twos = row["n_both_first"], row["n_both_second"]
        bars.append((name, {"first": ones, "same": row["n_pairs"] - ones - twos, "second": twos}))
        rows.append((row["template_id"], row["who"], ones, row["n_pairs"] - ones - twos, twos, row["n_left_out"]))
    columns = [("template", False), ("judge", False), ("first both times", True), ("same text", True)]
    columns += [("second both times", True), ("left out", True)]
    chart = Shares(bars, _ORDERS, "Pairs by what the two orders gave")
    return {"lead": words.orders(known), "chart": chart, "legend": list(_ORDERS.items()), **table_of(columns, rows)}


def _name(row: Mapping[str, Any], known: pl.DataFrame) -> str:
    if known["who"].n_unique() == 1:
        return str(row["template_id"])
    return str(row["who"]) if known["template_id"].n_unique() == 1 else f"{row['template_id']}, {row['who']}"


def _again(facts: BiasFacts, place: Mapping[str, int]) -> list[Part]:
    parts = list[Part]()
    if facts.pairs is None:
        return parts
    for position in ("first", "second"):
        found = facts.pairs.filter(pl.col("position") == position)
        counted = found.group_by(a=pl.min_horizontal("ID1", "ID2"), b=pl.max_horizontal("ID1", "ID2")).agg(n=pl.len())
        entries = [
            {
                "text": f"{a} and {b}" + (f", {n} times" if n > 1 else ""),
                "two": f"{place[a]} {place[b]}" if a in place else "",
            }
            for a, b, n in counted.sort("n", "a", "b", descending=[True, False, False]).iter_rows()
        ]
        if entries:
            why = "Read them: nearly equal texts are decided by anything; if they are not, the judge did not read them."
            parts.append(
                {
                    "name": f"Won by the {position} position in both orders",
                    "why": why,
                    "entries": listed_first(entries, _MOST),
                }
            )
    return parts
