"""The report of a ranking: one HTML file that opens from the disk, needs no network, and prints well."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.errors import InputError
from pairscale.files import replacing
from pairscale.report import _words as words
from pairscale.report._facts import Facts, facts_of_fit, facts_of_result, facts_of_run
from pairscale.report._svg import lines, number, score_chart
from pairscale.samples import read_samples_df
from pairscale.store import RunFile, open_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pairscale.adaptive import AdaptiveResult
    from pairscale.models import BTFit
    from pairscale.tables import Table

__all__ = ["disguised", "write_again", "write_page", "write_report"]

_PREVIEW = 120
_LONGEST_WORDS = 4_000
_TAG = re.compile(r"<(\w+)>\s*SAMPLE_[12]\s*</\1>")  # the verdict itself, which the page says in words
_COLUMNS = {
    "group": "group", "rank": "rank", "ID": "text", "score": "score", "se": "± se", "lower": "from", "upper": "to",
    "rank_lower": "rank from", "rank_upper": "rank to", "wins": "wins", "comparisons": "of",
}  # fmt: skip


def write_report(
    source: str | os.PathLike[str] | RunFile | AdaptiveResult | BTFit,
    path: str | os.PathLike[str] | None = None,
    samples: Table | None = None,
    *,
    title: str = "Ranking",
    judge: str | None = None,
    condition_id: str | None = None,
    texts: bool = True,
    pseudonyms: bool = False,
) -> Path:
    """Write a ranking as one HTML file.

    It holds the scores with intervals, a table to search and sort, the texts side by side with the judge's words, what
    the reliability means, how the judge behaved, what it cost, what to look at again, a paragraph on the method, and
    where everything comes from; of a fitted model, what can be known from it alone. It loads nothing, and whatever
    comes from outside stays text.

    Args:
        source: a run file, adaptive or not; or an adaptive run, or a fitted Bradley–Terry model, that is kept in none.
        path: where to write; beside the run file under its name with ``.html`` when None.
        samples: the texts, where the source does not have them.
        title: what was asked.
        judge: who judged, where the source does not know.
        condition_id: of a run file with several judges, the one whose answers count; all together when None.
        texts: whether the texts and the judge's words are in it; leave them out before you pass the page on.
        pseudonyms: call the texts T1, T2 and so on, in an order that says nothing.

    Returns:
        The file that was written.

    Raises:
        InputError: when nothing was decided yet.
    """
    facts, name = _facts(source, samples, judge, condition_id)
    if path is None:
        if name is None or "://" in name:
            raise InputError("name the file to write the report to")
        path = Path(name).with_suffix(".html")
    return write_page(disguised(facts) if pseudonyms else facts, path, title=title, texts=texts, run=name)


def write_page(
    facts: Facts, path: str | os.PathLike[str], *, title: str, texts: bool = True, run: str | None = None
) -> Path:
    """Write the page of what is known already; ``run`` is the name of the file that it comes from."""
    target = Path(path)
    with replacing(target) as temporary:
        temporary.write_text(_page(facts, run, title, texts=texts), "utf-8")
    return target


def _facts(source: Any, samples: Table | None, judge: str | None, condition_id: str | None) -> tuple[Facts, str | None]:
    from pairscale.adaptive import AdaptiveResult
    from pairscale.models import BTFit

    known = None if samples is None else read_samples_df(samples, "ID", "text")
    if isinstance(source, AdaptiveResult):
        return facts_of_result(source, known, judge), None
    if isinstance(source, BTFit):
        return facts_of_fit(source, known, judge), None
    if isinstance(source, RunFile):
        return facts_of_run(source, condition_id), source.name
    with open_run(source) as store:
        return facts_of_run(store, condition_id), str(source)


def write_again(facts: Facts, path: str | os.PathLike[str]) -> int:
    """Write the surprising pairs of a run as cases for people to label, and say how many there are.

    Args:
        facts: of the run.
        path: the manifest to write, one JSON line a case, as ``pairscale label`` takes it.
    """
    trait = next((name for name in facts.judges["trait"] if name), "overall quality")
    surprising = [] if facts.attention is None else facts.attention.pairs().rows()
    rows = []
    for one, two in dict.fromkeys((min(pair), max(pair)) for pair in surprising):
        name, texts = f"{one}::{two}", (facts.texts.get(one, ""), facts.texts.get(two, ""))
        case = {"case_id": name, "task_id": name, "criterion": trait, "task_input": ""}
        rows.append(case | {"response_1": texts[0], "response_2": texts[1]})
    with replacing(Path(path)) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return len(rows)


def disguised(facts: Facts) -> Facts:
    """The same facts under other names, in the order of a hash that nobody else can compute."""
    from secrets import token_bytes

    salt = token_bytes(16)
    ids = sorted(facts.items["ID"], key=lambda name: hashlib.sha256(salt + name.encode()).digest())
    other = {name: f"T{place}" for place, name in enumerate(ids, start=1)}

    def named(table: pl.DataFrame, *columns: str) -> pl.DataFrame:
        return table.with_columns(pl.col(column).replace_strict(other, default=None) for column in columns)

    found = facts.attention
    silent = [notice for notice in facts.notices if not any(name in notice for name in other)]
    if hidden := len(facts.notices) - len(silent):
        silent.append(f"{hidden} further notice{'s' * (hidden > 1)} may name texts, and cannot be shown here")
    return replace(
        facts,
        items=named(facts.items, "ID"),
        judgements=None if facts.judgements is None else named(facts.judgements, "ID1", "ID2", "better_id"),
        texts={other[name]: text for name, text in facts.texts.items() if name in other},
        attention=found
        and replace(
            found,
            surprises=named(found.surprises, "winner", "loser"),
            misfits=named(found.misfits, "ID"),
            vague=named(found.vague, "ID"),
        ),
        notices=silent,
    )


def _page(facts: Facts, run: str | None, title: str, *, texts: bool) -> str:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    css, js = _asset("report.css"), _asset("report.js")
    shown = texts and bool(facts.texts)
    place = {name: at for at, name in enumerate(facts.items["ID"])}
    columns = [name for name in _COLUMNS if name in facts.items.columns and facts.items[name].null_count() == 0]
    content = {
        "title": title,
        "headline": words.headline(facts),
        "tiles": _tiles(facts),
        "charts": _charts(facts),
        "columns": [(_COLUMNS[name], name != "ID") for name in columns],
        "rows": [_row(row, columns, facts.texts if shown else {}) for row in facts.items.iter_rows(named=True)],
        "previews": shown,
        "packed": Markup(_packed(facts, place)) if shown else "",  # noqa: S704 - base64
        "sure": words.certainty(facts),
        "convergence": _convergence(facts),
        "judge": list(words.judge(facts).items()),
        "graph": words.graph(facts),
        "spending": _spending(facts),
        "again": _again(facts, place),
        "notices": facts.notices,
        "method": words.method(facts),
        "provenance": list(facts.provenance.items()),
        "again_line": f"pairscale report {Path(run).name}" if run else "",
        "cite": f"pairscale {__version__}: pairwise judging of texts by language models and people (computer program).",
        "made": f"pairscale {__version__}",
        "css": Markup(css),  # noqa: S704 - our own file
        "js": Markup(js),  # noqa: S704 - our own file
        "css_hash": _hash(css),
        "js_hash": _hash(js),
    }
    content["sections"] = [
        (anchor, name)
        for anchor, name, there in (
            ("scores", "Scores", True),
            ("ranking", "Ranking", True),
            ("two", "Two texts", shown),
            ("sure", "How sure", content["sure"]),
            ("judge", "Judge", content["judge"]),
            ("graph", "Who met whom", content["graph"]),
            ("cost", "Cost", content["spending"]),
            ("again", "Look again", facts.attention or facts.notices),
            ("method", "Method", True),
        )
        if there
    ]
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html").render(content)


def _asset(name: str) -> str:
    return (files("pairscale.report") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _tiles(facts: Facts) -> list[dict[str, str]]:
    tiles = [
        {"figure": f"{facts.items.height:,}", "label": "texts"},
        {"figure": f"{facts.comparisons:,}", "label": "comparisons"},
    ]
    if facts.reliability is not None:
        tiles.append({"figure": f"{facts.reliability:.2f}", "label": "reliability"})
    if facts.health is not None and facts.health["consistent"] is not None:
        tiles.append({"figure": f"{facts.health['consistent']:.0%}", "label": "the same answer when asked again"})
    cost = 0 if facts.spending is None else facts.spending["cost"].sum()
    if cost:
        tiles.append({"figure": f"${cost:,.2f}", "label": "spent"})
    return tiles


def _charts(facts: Facts) -> list[tuple[str, Any]]:
    """A chart for every group; their scales share nothing, so neither do their axes."""
    rows = list(facts.items.iter_rows(named=True))
    if "group" not in facts.items.columns:
        return [("", score_chart(rows))]
    groups = groupby(rows, key=lambda row: row["group"])
    return [(f"Group {which}", score_chart(list(members))) for which, members in groups]


def _row(row: Mapping[str, Any], columns: list[str], texts: Mapping[str, str]) -> dict[str, Any]:
    cells = []
    for name in columns:
        value = row[name]
        shown = number(value) if isinstance(value, float) else str(value)
        kind = "id" if name == "ID" else "n"
        cells.append({"shown": shown, "kind": kind, "value": f"{value:.6g}" if isinstance(value, float) else None})
    preview = " ".join(texts.get(row["ID"], "")[:_PREVIEW].split())
    return {"cells": cells, "preview": preview}


def _packed(facts: Facts, place: Mapping[str, int]) -> str:
    """The texts and the judge's words, small: they are the bulk of the page."""
    answers = []
    for row in () if facts.judgements is None else facts.judgements.iter_rows(named=True):
        if row["ID1"] in place and row["ID2"] in place:
            parts = (row["thoughts"], _TAG.sub("", row["content"] or "").strip())
            said = "\n\n".join(part for part in parts if part)[:_LONGEST_WORDS]
            winner = place.get(row["better_id"]) if row["better_id"] else None
            answers.append((place[row["ID1"]], place[row["ID2"]], winner, row["judge_id"], said))
    ids = facts.items["ID"].to_list()
    content = {"ids": ids, "texts": [facts.texts.get(name, "") for name in ids], "answers": answers}
    raw = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(raw, mtime=0)).decode()


def _convergence(facts: Facts) -> Any:
    refits = facts.refits
    if refits is None or refits.height < 2:
        return ""
    series = {"reliability": refits["reliability_EAP"].to_list(), "rank stability": refits["rho_rank"].to_list()}
    label = "Reliability and rank stability along the run, refit by refit"
    target = refits["eap_reliability_min"].to_list()[-1]
    return lines(refits["total_pairs_done"].to_list(), series, label=label, target=target)


def _spending(facts: Facts) -> dict[str, Any] | None:
    paid = pl.DataFrame() if facts.spending is None else facts.spending.filter(pl.col("cost") > 0)
    if not paid.height:
        return None
    total, n = paid["cost"].sum(), facts.comparisons
    rows = [
        {**row, "tokens": f"{row['total_tokens'] or 0:,}", "cost": f"{row['cost']:,.4f}"}
        for row in paid.iter_rows(named=True)
    ]
    return {"lead": f"${total:,.4f} in all, ${1000 * total / n:,.2f} for a thousand decided comparisons.", "rows": rows}


def _again(facts: Facts, place: Mapping[str, int]) -> list[dict[str, Any]]:
    found, parts = facts.attention, list[dict[str, Any]]()
    if found is None:
        return parts
    if found.surprises.height:
        entries = [
            {"text": words.surprise(row), "two": f"{place[row['winner']]} {place[row['loser']]}"}
            for row in found.surprises.iter_rows(named=True)
        ]
        why = (
            "Answers that the scores hardly expected. Read the two texts: either the judge slipped, or the scale does."
        )
        parts.append({"name": "Surprising answers", "why": why, "entries": entries})
    if found.misfits.height:
        entries = [
            {"text": f"{row['ID']}: infit {row['infit']:.2f} in {row['comparisons']} comparisons", "two": ""}
            for row in found.misfits.iter_rows(named=True)
        ]
        why = "Texts that are judged against the scores more often than the others (infit or outfit far above theirs)."
        parts.append({"name": "Texts that fit badly", "why": why, "entries": entries})
    if found.judges.height:
        entries = [
            {"text": f"{row['judge_id']}: infit {row['infit']:.2f} in {row['comparisons']} comparisons", "two": ""}
            for row in found.judges.iter_rows(named=True)
        ]
        parts.append({"name": "Judges that differ", "why": "Their answers contradict the scale.", "entries": entries})
    if found.vague.height:
        entries = [
            {"text": f"{row['ID']}: between rank {row['rank_lower']} and {row['rank_upper']}", "two": ""}
            for row in found.vague.iter_rows(named=True)
        ]
        parts.append({"name": "Widest ranks", "why": "More comparisons of these tell the most.", "entries": entries})
    if found.n_circular:
        share = found.n_circular / found.n_triads
        shown = f"{found.n_circular:,} of {found.n_triads:,} decided triads"
        text = f"{shown} go round ({share:.1%}); if chance decided, a quarter would."
        why = "Triads of texts in which the first beats the second, the second the third, and the third the first."
        parts.append({"name": "Circular triads", "why": why, "entries": [{"text": text, "two": ""}]})
    return parts
