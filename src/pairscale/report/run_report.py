"""The report of a run: one HTML file that opens from the disk, needs no network, and prints well."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.errors import InputError
from pairscale.files import replacing
from pairscale.report import _words as words
from pairscale.report._facts import Facts, facts_of_run
from pairscale.report._svg import lines, number, score_chart
from pairscale.store import RunFile, open_run

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["report_table", "write_again", "write_report"]

_PREVIEW = 120
_LONGEST_WORDS = 4_000
_TAG = re.compile(r"<(\w+)>\s*SAMPLE_[12]\s*</\1>")  # the verdict itself, which the page says in words
_COLUMNS = (
    ("rank", "rank", True), ("ID", "text", False), ("score", "score", True), ("se", "± se", True),
    ("lower", "from", True), ("upper", "to", True), ("rank_lower", "rank from", True), ("rank_upper", "rank to", True),
    ("wins", "wins", True), ("comparisons", "of", True),
)  # fmt: skip


def write_report(
    run: str | os.PathLike[str] | RunFile,
    path: str | os.PathLike[str] | None = None,
    *,
    condition_id: str | None = None,
    title: str | None = None,
    texts: bool = True,
    pseudonyms: bool = False,
) -> Path:
    """Write the report of a run as one HTML file.

    It holds the ranking with intervals, the texts side by side with the judge's words, what the reliability means, how
    the judge behaved, what it cost, what to look at again, a paragraph on the method, and where everything comes from.
    It loads nothing, and whatever comes from outside stays text.

    Args:
        run: the run file of any judging, adaptive or not.
        path: where to write; beside the run file under its name with ``.html`` when None.
        condition_id: the judge whose answers count, when the run holds several; their answers together when None.
        title: of the page.
        texts: whether the texts and the judge's words are in it; leave them out before you pass the page on.
        pseudonyms: call the texts T1, T2 and so on, in an order that says nothing.

    Returns:
        The file that was written.

    Raises:
        InputError: when nothing was decided yet.
    """
    if isinstance(run, RunFile):
        facts, name = facts_of_run(run, condition_id), run.name
    else:
        with open_run(run) as store:
            facts, name = facts_of_run(store, condition_id), str(run)
    if path is None:
        if isinstance(run, RunFile) or "://" in name:
            raise InputError("name the file to write the report to")
        path = Path(name).with_suffix(".html")
    if pseudonyms:
        facts = _disguised(facts)
    target = Path(path)
    with replacing(target) as temporary:
        temporary.write_text(_page(facts, Path(name).name, title, texts=texts), "utf-8")
    return target


def report_table(store: RunFile, *, condition_id: str | None = None, pseudonyms: bool = False) -> pl.DataFrame:
    """The ranking of a run as a table: ``rank ID score se lower upper rank_lower rank_upper wins comparisons``.

    Args:
        store: the run file.
        condition_id: the judge whose answers count; all together when None.
        pseudonyms: call the texts T1, T2 and so on, in an order that says nothing.
    """
    facts = facts_of_run(store, condition_id)
    return (_disguised(facts) if pseudonyms else facts).items


def write_again(store: RunFile, path: str | os.PathLike[str], *, condition_id: str | None = None) -> int:
    """Write the surprising pairs of a run as cases for people to label, and say how many there are.

    Args:
        store: the run file.
        path: the manifest to write, one JSON line a case, as ``pairscale label`` takes it.
        condition_id: the judge whose answers count; all together when None.
    """
    facts = facts_of_run(store, condition_id)
    trait = next((name for name in facts.conditions["trait"] if name), "overall quality")
    rows = [
        {
            "case_id": f"{one}::{two}",
            "task_id": f"{one}::{two}",
            "criterion": trait,
            "task_input": "",
            "response_1": facts.texts.get(one, ""),
            "response_2": facts.texts.get(two, ""),
        }
        for one, two in facts.attention.pairs()
        .select(pl.min_horizontal("ID1", "ID2"), ID2=pl.max_horizontal("ID1", "ID2"))
        .iter_rows()
    ]
    with replacing(Path(path)) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return len(rows)


def _disguised(facts: Facts) -> Facts:
    """The same facts under other names, in the order of a hash that nobody else can compute."""
    from dataclasses import replace
    from secrets import token_bytes

    salt = token_bytes(16)
    ids = sorted(facts.items["ID"], key=lambda name: hashlib.sha256(salt + name.encode()).digest())
    other = {name: f"T{number}" for number, name in enumerate(ids, start=1)}

    def named(table: pl.DataFrame, *columns: str) -> pl.DataFrame:
        return table.with_columns(pl.col(column).replace_strict(other, default=None) for column in columns)

    attention = facts.attention
    return replace(
        facts,
        items=named(facts.items, "ID"),
        judgements=named(facts.judgements, "ID1", "ID2", "better_id"),
        texts={other[name]: text for name, text in facts.texts.items() if name in other},
        attention=replace(
            attention,
            surprises=named(attention.surprises, "winner", "loser"),
            misfits=named(attention.misfits, "ID"),
            vague=named(attention.vague, "ID"),
        ),
        notices=() if any(name in notice for notice in facts.notices for name in other) else facts.notices,
    )


def _page(facts: Facts, run: str, title: str | None, *, texts: bool) -> str:
    from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
    from markupsafe import Markup

    css, js = _asset("report.css"), _asset("report.js")
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.autoescape = True
    shown = texts and bool(facts.texts)
    place = {name: at for at, name in enumerate(facts.items["ID"])}
    content = {
        "title": title or "Ranking",
        "headline": words.headline(facts),
        "tiles": _tiles(facts),
        "charts": _charts(facts),
        "columns": _COLUMNS,
        "rows": [_row(row, facts.texts if shown else {}) for row in facts.items.iter_rows(named=True)],
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
        "again_line": f"pairscale report {run}",
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
            ("sure", "How sure", True),
            ("judge", "Judge", True),
            ("graph", "Who met whom", True),
            ("cost", "Cost", content["spending"] is not None),
            ("again", "Look again", True),
            ("method", "Method", True),
        )
        if there
    ]
    return environment.get_template("report.html").render(content)


def _asset(name: str) -> str:
    return (files("pairscale.report") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _tiles(facts: Facts) -> list[dict[str, str]]:
    tiles = [
        {"figure": f"{facts.items.height:,}", "label": "texts"},
        {"figure": f"{facts.graph['comparisons']:,}", "label": "comparisons"},
    ]
    if facts.reliability is not None:
        tiles.append({"figure": f"{facts.reliability:.2f}", "label": "reliability"})
    if facts.health["consistent"] is not None:
        tiles.append({"figure": f"{facts.health['consistent']:.0%}", "label": "the same answer when asked again"})
    cost = facts.spending["cost"].sum()
    if cost:
        tiles.append({"figure": f"${cost:,.2f}", "label": "spent"})
    return tiles


def _charts(facts: Facts) -> list[Any]:
    return [score_chart(list(facts.items.iter_rows(named=True)))]


def _row(row: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    cells = []
    for name, _shown, numeric in _COLUMNS:
        value = row[name]
        shown = number(value) if isinstance(value, float) else "" if value is None else str(value)
        kind = "n" if numeric else "id"
        cells.append({"shown": shown, "kind": kind, "value": f"{value:.6g}" if isinstance(value, float) else None})
    preview = " ".join(texts.get(row["ID"], "")[:_PREVIEW].split())
    return {"cells": cells, "preview": preview}


def _packed(facts: Facts, place: Mapping[str, int]) -> str:
    """The texts and the judge's words, small: they are the bulk of the page."""
    answers = []
    for row in facts.judgements.iter_rows(named=True):
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
    if refits.height < 2:
        return ""
    series = {"reliability": refits["reliability_EAP"].to_list(), "rank stability": refits["rho_rank"].to_list()}
    label = "Reliability and rank stability along the run, refit by refit"
    target = refits["eap_reliability_min"].to_list()[-1] if "eap_reliability_min" in refits.columns else None
    return lines(refits["total_pairs_done"].to_list(), series, label=label, target=target)


def _spending(facts: Facts) -> dict[str, Any] | None:
    paid = facts.spending.filter(pl.col("cost") > 0)
    if not paid.height:
        return None
    total, n = paid["cost"].sum(), facts.graph["comparisons"]
    rows = [
        {**row, "tokens": f"{row['total_tokens'] or 0:,}", "cost": f"{row['cost']:,.4f}"}
        for row in paid.iter_rows(named=True)
    ]
    return {"lead": f"${total:,.4f} in all, ${1000 * total / n:,.2f} for a thousand decided comparisons.", "rows": rows}


def _again(facts: Facts, place: Mapping[str, int]) -> list[dict[str, Any]]:
    found, parts = facts.attention, []
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
        why = "Texts whose wins and losses contradict their score more than chance does (infit above 1.5)."
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
