"""The report of a ranking of variants: a board, who cannot be told apart, all pairs, and what the answers took."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.errors import InputError
from pairscale.evaluate.ranking import KINDS, VariantsResult, saved_variants
from pairscale.reporting.ab import answering_of, comparator_of, provenance_of
from pairscale.reporting.page import Report, origin_of, other_names
from pairscale.reporting.picture import percent, score_picture

if TYPE_CHECKING:
    from pairscale.reporting.picture import Content
    from pairscale.store.runfile import RunFile

_IMPERSONAL = {"ranked", "pairscale", "seed"}


def variants_of_run(store: RunFile, *, pseudonyms: bool = False) -> Report:
    """Read the last ranking of variants that a run file keeps.

    Raises:
        InputError: when it keeps none.
    """
    found = saved_variants(store)
    spending = pl.concat([store.spending(), answering_of(store)])
    origin = origin_of(store, pseudonyms=pseudonyms)
    if found is None:
        raise InputError("the run file keeps no ranking of variants; run_variants(..., run=FILE) makes one")
    report = variants_of_result(found, pseudonyms=pseudonyms)
    if pseudonyms:
        spending = spending.with_columns(pl.col("model").replace(dict.fromkeys(found.variants, "a variant")))
    return replace(report, provenance={**report.provenance, **origin}, spending=spending)


def variants_of_result(run: VariantsResult, *, pseudonyms: bool = False) -> Report:
    """Put a ranking of variants into figures and pictures."""
    provenance = provenance_of(run, "ranked")
    if pseudonyms:
        run = _disguised(run)
        provenance = {name: value for name, value in provenance.items() if name in _IMPERSONAL}
    said = dict.fromkeys(notice for key in run.keys for notice in run.fit(key).notices)
    notices = [notice for notice in said if "repeats of a pair" not in notice]  # here each is another task
    if run.stopped:
        notices.append(f"the run ended before all cases were compared: {run.stopped}")
    tables = {key: run.ranking(key) for key in run.keys}
    some = next(iter(run.results.values()))
    cases = sum(len(list(one.of(run.keys[0]))) for one in run.results.values())
    content = {
        "run": run,
        "cases": cases,
        "tasks": len({case.task_id for one in run.results.values() for case in one.cases}),
        "graded": any(case.preference is not None for one in run.results.values() for case in one.cases),
        "compared_by": {key: comparator_of(some, key)[1] for key in run.keys},
        "boards": [_board(run, key, table) for key, table in tables.items()],
        "answers": [(name, *run.figures[name].words().values()) for name in run.variants if name in run.figures],
    }
    table = pl.concat(one.select(pl.lit(key).alias("criterion"), pl.all()) for key, one in tables.items())
    judges = [name for one in run.results.values() for key in run.keys for name in comparator_of(one, key)[0]]
    return Report(
        "variants.html",
        f"{len(run.variants)} variants compared",
        table,
        content,
        provenance,
        judges,
        notices,
        n_results=cases,
    )


def _disguised(run: VariantsResult) -> VariantsResult:
    """The same with other names for the variants."""
    names = other_names(run.variants, "V")
    results = {
        (names[a], names[b]): replace(one, variant_a=names[a], variant_b=names[b])
        for (a, b), one in run.results.items()
    }
    return replace(run, results=results, baseline=None if run.baseline is None else names[run.baseline])


def _board(run: VariantsResult, key: str, table: pl.DataFrame) -> Content:
    """The scores, which variants cannot be told apart, and every two variants."""
    rows = table.to_dicts()
    scored = [{**row, "ID": row["variant"], "score": row["theta"]} for row in rows if row["theta"] is not None]
    board = table.select("variant", pl.col("rank").cast(pl.Int64), "theta", "lower", "upper", *KINDS).rows()
    return {
        "key": key,
        "verdict": run.verdict(key),
        "chart": score_picture(scored) if scored else None,
        "board": board,
        "alike": [(name, others) for name, others in run.alike(key).items() if others],
        "differences": len(scored) * (len(scored) - 1) // 2,
        "pairs": _pairs(run, key, table["variant"].to_list()),
    }


def _pairs(run: VariantsResult, key: str, order: list[str]) -> list[tuple[Any, ...]]:
    """The win rate of the better of every two variants, in the order of the board."""
    rows = []
    for (a, b), result in run.results.items():
        rate = result.win_rate(key)
        figures = [rate.rate, *(rate.ci or (None, None))]
        first, second = b, a
        if order.index(a) < order.index(b):
            first, second = a, b
            figures = [None if x is None else 1 - x for x in (figures[0], figures[2], figures[1])]
        rows.append((first, second, *map(percent, figures), rate.n))
    return sorted(rows, key=lambda row: (order.index(row[0]), order.index(row[1])))
