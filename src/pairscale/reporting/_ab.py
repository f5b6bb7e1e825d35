"""The page of a comparison of two variants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.comparisons import Outcome
from pairscale.evaluate.inference.win_rate import slices
from pairscale.evaluate.wording import graded_words
from pairscale.reporting import _ab_messages as words
from pairscale.reporting._judge_people import judge_people
from pairscale.reporting._shell import Page, Part, cell, dated, listed_first, pack, preview, spent, table_of
from pairscale.reporting.picture import Intervals, Shares, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pairscale.evaluate.result import PairwiseCase
    from pairscale.reporting._ab_figures import ABFacts, Case
    from pairscale.reporting.picture import Picture

_MOST = 12
_LONGEST_REASON = 160
_KINDS = {"wins": "b", "ties": "tie", "flips": "flip", "losses": "a", "abstentions": "abstention", "errors": "error"}
_NAMES = {"tie": "ties", "flip": "flips", "abstention": "no answer", "error": "errors"}


def ab_page(facts: ABFacts, *, texts: bool) -> Page:
    """Put a comparison into words, pictures and tables."""
    run = facts.result
    shown = texts and bool(facts.shown)
    cases = _cases(facts)
    place = {name: at for at, name in enumerate(cases)}
    many = len(run.keys) > 1
    content: Part = {
        "a": run.variant_a,
        "b": run.variant_b,
        "rates": _rates(facts),
        "outcomes": _outcomes(facts),
        "tags": _tags(facts),
        "length": [
            f"{f'{key}: ' if many else ''}{text}"
            for key in run.keys
            for text in (words.length(run.length_controlled(key), run), *words.styles(run, key))
        ],
        "agreement": _agreement(facts),
        "people": judge_people(facts, place),
        "preview": "task" if shown else "",
        **_table(facts, cases, place, shown=shown),
    }
    sections = (
        ("rate", "Win rate", True),
        ("outcomes", "Outcomes", True),
        ("tags", "By tag", content["tags"]),
        ("length", "Length", True),
        ("agreement", "Agreement", content["agreement"]),
        ("people", "Judge and people", content["people"]),
        ("cases", "Cases", True),
        ("two", "Side by side", shown),
    )
    again = _again(facts, place, texts=texts)
    return Page(
        "ab.html",
        f"{run.variant_b} against {run.variant_a}",
        words.headline(run),
        _tiles(facts, len(cases)),
        sections,
        content,
        words.method(run),
        facts.provenance,
        notices=facts.notices,
        again=again,
        nothing="Nothing stands out: every case has an answer, and there is no disagreement.",
        verdicts=[(key, f"{run.verdict(key)}.") for key in run.keys] if many else [],
        spending=spent(facts.spending, len(cases), "cases"),
        took=words.took(run),
        packed=_packed(facts, cases) if shown else "",
        can_label=bool(facts.shown) and bool(facts.again()),
        judges=words.judges_of(run),
    )


def _cases(facts: ABFacts) -> dict[Case, dict[str, PairwiseCase]]:
    """By task and repeat, what came of it under each key."""
    cases: dict[Case, dict[str, PairwiseCase]] = {}
    for case in facts.cases:
        cases.setdefault((case.task_id, case.repeat), {})[case.key] = case
    return cases


def _tiles(facts: ABFacts, n: int) -> list[tuple[str, str]]:
    run = facts.result
    rate = run.win_rate(run.keys[0])
    tiles = [(f"{n:,}", "case" + "s" * (n != 1))]
    if rate.rate is not None and rate.ci is not None:
        under = f", {run.keys[0]}" * (len(run.keys) > 1)
        ends = f"{100 * rate.ci[0]:.0f} to {100 * rate.ci[1]:.0f}"
        how = "mean preference" if rate.graded else "ties and flips as half"
        tiles.append((percent(rate.rate), f"win rate of {run.variant_b} ({ends}), {how}{under}"))
    counts = [run.counts(key) for key in run.keys]
    flips, failed = (
        sum(sum(one[kind] for kind in kinds) for one in counts) for kinds in (["flip"], ["abstention", "error"])
    )
    tiles.append((f"{flips:,}", "flips: another winner in the other order"))
    if failed:
        tiles.append((f"{failed:,}", "without an answer"))
    cost = run.cost if facts.spending is None else facts.spending["cost"].sum()
    if cost:
        tiles.append((f"${cost:,.2f}", f"spent{dated(facts.spending)}"))
    return tiles


def _rates(facts: ABFacts) -> Part:
    run = facts.result
    half, alone = ({key: run.win_rate(key, ties=ties) for key in run.keys} for ties in ("half", "excluded"))
    columns = [
        ("criterion", False),
        ("win rate over", False),
        ("cases", True),
        ("rate", True),
        ("from", True),
        ("to", True),
    ]
    rows = []
    for key in run.keys:
        counted = [("ties and flips as half", half[key]), ("cases with a winner", alone[key])]
        if half[key].graded:
            hard = run.win_rate(key, graded=False)
            counted = [("mean preference", half[key]), ("hard verdicts, ties and flips as half", hard), counted[1]]
        for what, rate in counted:
            rows.append((key, what, rate.n, *_ends(rate.rate, *(rate.ci or (None, None)))))
    graded = [
        f"{key}: {line}." if len(run.keys) > 1 else words.sentence(line)
        for key in run.keys
        for line in graded_words(run, key)
    ]
    how = "Graded cases count with their preference, other ties" if graded else "Ties"
    return {
        "chart": _chart(((key, rate.rate, rate.ci) for key, rate in half.items()), run.variant_b, "by criterion"),
        "note": f"{how} and flips count as half a win here; a line that crosses 50 % may be chance.",
        "graded": graded,
        **table_of(columns, rows),
    }


def _ends(*figures: float | None) -> list[str]:
    return ["" if value is None else f"{value:.1%}" for value in figures]


def _chart(rows: Iterable[tuple[str, float | None, tuple[float, float] | None]], b: str, by: str) -> Picture | None:
    known = [
        {"ID": name, "score": rate, "lower": ci and ci[0], "upper": ci and ci[1]}
        for name, rate, ci in rows
        if rate is not None
    ]
    if not known:
        return None
    label = f"Win rate of {b} with intervals, {by}; the table holds the same figures"
    return Intervals(known, label, f"win rate of {b}", in_percent=True, span=(0, 1), middle=0.5)


def _outcomes(facts: ABFacts) -> Part:
    run = facts.result
    names = {"b": f"{run.variant_b} won", "a": f"{run.variant_a} won", **_NAMES}
    rates = {key: run.win_rate(key) for key in run.keys}
    bars = [(key, {kind: getattr(rate, field) for field, kind in _KINDS.items()}) for key, rate in rates.items()]
    columns = [("criterion", False), ("by", False), *((names[kind], True) for kind in _KINDS.values())]
    rows = [(key, words.by_whom(run, key), *counts.values()) for key, counts in bars]
    notes = []
    for key in run.keys:
        if run.flips(key):
            places = run.flip_directions(key)
            under = f"{key}: " if len(run.keys) > 1 else ""
            notes.append(
                f"{under}Of {run.flips(key):,} flip{'s' * (run.flips(key) != 1)}, {places['first']:,} favour whatever "
                f"stood first, {places['second']:,} whatever stood second."
            )
    if run.unmatched:
        notes.append(f"{len(run.unmatched):,} further cases lack an answer of one side, and were not compared.")
    if run.unasked:
        notes.append(f"{len(run.unasked):,} tasks were not asked: the run had stopped ({run.stopped}).")
    order = ["b", "tie", "flip", "a", "abstention", "error"]
    return {
        "chart": Shares(bars, names, "What came of the cases, by criterion"),
        "legend": [(kind, names[kind]) for kind in order],
        "notes": notes,
        **table_of(columns, rows),
    }


def _tags(facts: ABFacts) -> list[Part]:
    run = facts.result
    if not any(case.tags for case in run.cases):
        return []
    columns = [("tag", False), ("cases", True), ("rate", True), ("from", True), ("to", True)]
    columns += [("from, all at once", True), ("to, all at once", True)]
    parts = []
    for key in run.keys:
        found = slices(run.frame(key), interval=run.interval)
        rows = list(found.table.with_columns(slice=pl.col("slice").fill_null("without a tag")).iter_rows(named=True))
        shown = [
            (
                row["slice"],
                row["n"],
                *_ends(*(row[name] for name in ("rate", "lower", "upper", "joint_lower", "joint_upper"))),
            )
            for row in rows
        ]
        ends = [(row["slice"], row["rate"], (row["joint_lower"], row["joint_upper"])) for row in rows]
        note = "The intervals in the picture hold for all tags at once." if len(rows) > 1 else ""
        name = key if len(run.keys) > 1 else ""
        parts.append(
            {"name": name, "chart": _chart(ends, run.variant_b, "by tag"), "note": note, **table_of(columns, shown)}
        )
    return parts


def _agreement(facts: ABFacts) -> Part | None:
    run = facts.result
    rows: list[Sequence[Any]] = []
    for at, x in enumerate(run.keys):
        for y in run.keys[at + 1 :]:
            found = run.agreement(x, y)
            if found.rate is not None:
                kappa = "" if found.cohen_kappa is None else f"{found.cohen_kappa:.2f}"
                ends = ("", "") if found.ci is None else tuple(f"{end:.2f}" for end in found.ci)
                rows.append((x, y, found.n, f"{found.rate:.0%}", kappa, *ends, found.left_out))
    if not rows:
        return None
    columns = [
        ("", False),
        ("", False),
        ("cases", True),
        ("the same", True),
        ("kappa", True),
        ("from", True),
        ("to", True),
    ]
    note = (
        "Over cases to which both gave a winner or a tie. Kappa is agreement beyond chance, by variant: 1 is all of "
        "it, 0 none. Left out: cases that one of them answered with a flip, not at all, or in vain."
    )
    if run.sequential:
        note += " The intervals do not allow for the looks after every case."
    return {"note": note, **table_of([*columns, ("left out", True)], rows)}


def _table(
    facts: ABFacts, cases: Mapping[Case, Mapping[str, PairwiseCase]], place: Mapping[Case, int], *, shown: bool
) -> Part:
    run = facts.result
    tagged = any(case.tags for case in run.cases)
    columns = [("case", False), *([("tags", False)] if tagged else []), *((key, False) for key in run.keys)]
    graded = [key for key in run.keys if any(case.preference is not None for case in run.of(key))]
    columns += [(f"preference for {run.variant_b}{f', {key}' * (len(run.keys) > 1)}", True) for key in graded]
    columns += [(f"characters, {run.variant_a}", True), (f"characters, {run.variant_b}", True)]
    rows = []
    for name, found in cases.items():
        any_of = next(iter(found.values()))
        cells = [cell(words.case_name(any_of), kind="id", two=str(place[name]) if shown else "")]
        cells += [cell(", ".join(any_of.tags), kind="word")] if tagged else []
        cells += [cell(words.outcome(found[key], run) if key in found else "", kind="word") for key in run.keys]
        preferences = [found[key].preference if key in found else None for key in graded]
        cells += [cell("" if one is None else one, kind="n") for one in preferences]
        cells += [cell(any_of.length_a, kind="n"), cell(any_of.length_b, kind="n")]
        known = facts.shown.get(name) if shown else None
        rows.append({"cells": cells, "preview": "" if known is None else preview(known.task_input)})
    minor = [at for at, (name, _) in enumerate(columns) if name.startswith("characters, ")]
    return {"columns": columns, "rows": rows, "minor": minor}


def _packed(facts: ABFacts, cases: Mapping[Case, Mapping[str, PairwiseCase]]) -> str:
    content = []
    for name, found in cases.items():
        known = facts.shown.get(name)
        said = [line for case in found.values() for line in words.said(case, facts.result)]
        sides = ("", "", "") if known is None else (known.task_input, known.a or "", known.b or "")
        content.append((words.case_name(next(iter(found.values()))), *sides, said))
    return pack({"cases": content})


def _again(facts: ABFacts, place: Mapping[Case, int], *, texts: bool) -> list[Part]:
    run, parts = facts.result, list[Part]()
    many = len(run.keys) > 1

    def entry(case: PairwiseCase, why: str) -> Part:
        named = f"{words.case_name(case)} ({case.key})" if many else words.case_name(case)
        return {"text": f"{named}: {why}" if why else named, "two": str(place[case.task_id, case.repeat])}

    for kind, name, why in (
        (Outcome.ERROR, "Errors", "They count for neither side. The same command asks them again."),
        (Outcome.ABSTENTION, "Without an answer", "There is no answer, so they count for neither side."),
    ):
        found = [case for case in facts.cases if case.outcome is kind]
        entries = [entry(case, words.why_not(case)[:_LONGEST_REASON] if texts else "") for case in found]
        parts += [{"name": name, "why": why, "entries": listed_first(entries, _MOST)}] if entries else []
    flips = [case for case in facts.cases if case.outcome is Outcome.FLIP]
    if flips:
        entries = [
            entry(case, f"for whatever stood {d}" if (d := case.detail.get("direction")) else "") for case in flips
        ]
        why = "The other order has another winner: the answers are nearly equal to this judge, or it goes by the place."
        parts.append({"name": "Flips", "why": why, "entries": listed_first(entries, _MOST)})
    names = {"a": run.variant_a, "b": run.variant_b, "tie": "a tie"}
    by_name = {(case.task_id, case.repeat): case for case in run.cases}
    for x, y, disputed in facts.disputed():
        entries = [
            {"text": f"{words.case_name(by_name[name])}: {names[one]}, or {names[two]}", "two": str(place[name])}
            for name, one, two in disputed
        ]
        why = "They name different winners; the first word is that of the first."
        parts.append({"name": f"{x} and {y} disagree", "why": why, "entries": listed_first(entries, _MOST)})
    return parts
