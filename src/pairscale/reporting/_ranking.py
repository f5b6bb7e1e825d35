"""The page of a ranking."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from pairscale.adaptive.messages import provisional, top_sought
from pairscale.reporting import messages
from pairscale.reporting._calibration import calibration_parts
from pairscale.reporting._shell import Page, Part, cell, dated, packed_pairs, preview, spent, table_of
from pairscale.reporting.picture import Lines, number, score_picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from pairscale.reporting.figures import RankingFacts
    from pairscale.reporting.picture import Picture

_COLUMNS = {
    "group": "group", "rank": "rank", "ID": "ID", "score": "score", "se": "± se", "lower": "from", "upper": "to",
    "rank_lower": "rank from", "rank_upper": "rank to", "wins": "wins", "comparisons": "of", "top_prob": "in the top",
}  # fmt: skip


_MOST_JUDGES = 200
_MINOR = frozenset({"se", "lower", "upper", "rank_lower", "rank_upper", "wins", "comparisons"})
"""What a phone leaves out, so that the columns of the user's own table have room."""


def ranking_page(facts: RankingFacts, *, texts: bool) -> Page:
    """Put a ranking into words, pictures and tables."""
    shown = texts and bool(facts.texts)
    place = {name: at for at, name in enumerate(facts.items["ID"])}
    own = [name for name in _COLUMNS if name in facts.items.columns and facts.items[name].null_count() == 0]
    own = [name for name in own if name not in facts.kept]
    columns = [*own, *(name for name in facts.kept if name in facts.items.columns)]
    heads = [_COLUMNS[name] for name in own]
    heads += [f"sample_{name}" if name in {*heads, "text"} else name for name in columns[len(own) :]]
    content: Part = {
        "charts": _charts(facts),
        "columns": [(head, _is_number(facts.items[name])) for head, name in zip(heads, columns, strict=True)],
        "minor": [at for at, name in enumerate(own) if name in _MINOR],
        "rows": [_row(row, columns, facts.texts if shown else {}) for row in facts.items.iter_rows(named=True)],
        "preview": "text" if shown else "",
        "sure": messages.certainty(facts),
        "convergence": _convergence(facts),
        "refits": _refits(facts),
        "judge": list(messages.judge(facts).items()),
        "judges": _judges(facts),
        "calibration": calibration_parts(facts.calibrations),
        "graph": messages.graph(facts),
    }
    sections = (
        ("scores", "Scores", True),
        ("ranking", "Ranking", True),
        ("two", "Two texts", shown),
        ("sure", "How sure", content["sure"]),
        ("judge", "Judge", content["judge"]),
        ("probabilities", "Probabilities", content["calibration"]),
        ("graph", "Who met whom", content["graph"]),
    )
    nothing = "Nothing stands out: no answer contradicts the scores strongly, and no text fits badly."
    found = facts.attention
    return Page(
        "ranking.html",
        "Ranking",
        messages.headline(facts),
        _tiles(facts),
        sections,
        content,
        messages.method(facts),
        facts.provenance,
        notices=facts.notices,
        again=_again(facts, place),
        nothing=nothing if found is not None else "",
        spending=spent(facts.spending, facts.comparisons, "decided comparisons"),
        packed=packed_pairs(list(place), facts.texts, facts.judgements) if shown else "",
        can_label=bool(facts.texts) and found is not None and found.surprises.height > 0,
        judges=facts.judges["judge_id"].to_list(),
    )


def _is_number(column: pl.Series) -> bool:
    return column.name != "ID" and column.dtype.is_numeric()


def _tiles(facts: RankingFacts) -> list[tuple[str, str]]:
    tiles = [(f"{facts.items.height:,}", "texts"), (f"{facts.comparisons:,}", "comparisons")]
    last = {} if facts.refits is None else facts.refits.row(-1, named=True)
    if (top := top_sought(last)) is not None:
        tiles.append((f"{last['top_wrong']:.1f}", f"wrong members expected in the top {top:,}"))
    elif facts.reliability is not None:
        tiles.append((f"{facts.reliability:.2f}", f"reliability{facts.provisional}"))
    if facts.health is not None and facts.health["consistent"] is not None:
        tiles.append((f"{facts.health['consistent']:.0%}", "the same answer when asked again"))
    cost = 0 if facts.spending is None else facts.spending["cost"].sum()
    if cost:
        tiles.append((f"${cost:,.2f}", f"spent{dated(facts.spending)}"))
    return tiles


def _charts(facts: RankingFacts) -> list[tuple[str, Picture]]:
    """A chart for every group; their scales share nothing, so neither do their axes."""
    rows = list(facts.items.iter_rows(named=True))
    if facts.n_groups == 1:  # a column of the samples may be called group
        return [("", score_picture(rows))]
    groups = groupby(rows, key=lambda row: row["group"])
    return [(f"Group {which}", score_picture(list(members))) for which, members in groups]


def _row(row: Mapping[str, Any], columns: list[str], texts: Mapping[str, str]) -> Part:
    cells = [cell(row[name], kind="id" if name == "ID" else "n" if name in _COLUMNS else None) for name in columns]
    return {"cells": cells, "preview": preview(texts.get(row["ID"], ""))}


def _convergence(facts: RankingFacts) -> Picture | None:
    refits = facts.refits
    if refits is None or refits.height < 2:
        return None
    if (top := top_sought(refits.row(-1, named=True))) is not None:
        right = [None if wrong is None else 1 - wrong / top for wrong in refits["top_wrong"].to_list()]
        label = f"Share of the top {top:,} that is expected to be right along the run, refit by refit"
        target = 1 - refits["top_wrong_allowed"].to_list()[-1] / top
        return Lines(refits["total_pairs_done"].to_list(), {"right members": right}, label, target)
    series = {"reliability": refits["reliability"].to_list(), "rank stability": refits["rho_rank"].to_list()}
    label = "Reliability and rank stability along the run, refit by refit"
    target = refits["eap_reliability_min"].to_list()[-1]
    return Lines(refits["total_pairs_done"].to_list(), series, label, target)


def _refits(facts: RankingFacts) -> Part:
    """The figures of the lines."""
    columns = [("comparisons", True), ("reliability", True), ("rank stability", True)]
    refits = [] if facts.refits is None else facts.refits.to_dicts()
    rows = [
        (row["total_pairs_done"], f"{number(row['reliability'], 3)}{provisional(row, '')}", number(row["rho_rank"], 3))
        for row in refits
    ]
    return table_of(columns, rows)


def _judges(facts: RankingFacts) -> Part | None:
    """How each of several judges fits the scores."""
    fit = None if facts.attention is None else facts.attention.judge_fit
    if fit is None or fit.height < 2:
        return None
    rows = fit.select("judge_id", "comparisons", "infit", "outfit", "reason").rows()
    columns = [("judge", False), ("comparisons", True), ("infit", True), ("outfit", True), ("remark", False)]
    more = f" The {_MOST_JUDGES:,} of {len(rows):,} with the highest infit are listed." * (len(rows) > _MOST_JUDGES)
    shown = [(who, n, number(infit, 2), number(outfit, 2), why or "") for who, n, infit, outfit, why in rows]
    lead = f"Infit and outfit are around 1 if a judge decides as the scores predict, and above 1 if against them.{more}"
    return {"lead": lead, **table_of(columns, shown[:_MOST_JUDGES])}


def _again(facts: RankingFacts, place: Mapping[str, int]) -> list[Part]:
    found, parts = facts.attention, list[Part]()
    if found is None:
        return parts
    if found.surprises.height:
        entries = [
            {"text": messages.surprise(row), "two": f"{place[row['winner']]} {place[row['loser']]}"}
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
