"""The page of a ranking of variants: a board, who cannot be told apart, all pairs, and what the answers took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.core.errors import InputError
from pairscale.evaluate.ranking import VariantsResult, ranked_variants, saved_variants
from pairscale.reporting._ab_figures import answering_of
from pairscale.reporting._ab_messages import by_whom, judges_of
from pairscale.reporting._disguise import other_names
from pairscale.reporting._origin import moment, origin_of
from pairscale.reporting._shell import Page, Part, dated, spent, table_of
from pairscale.reporting.picture import number, percent, score_picture
from pairscale.store.marks import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pairscale.store.runfile import RunFile

_IMPERSONAL = {"ranked", "pairscale", "seed", "run file made by", "last command"}
_OUTCOMES = ("wins", "losses", "ties", "flips", "abstentions", "errors")


@dataclass(frozen=True, slots=True)
class VariantsFacts:
    """Everything that a report of several variants shows.

    Attributes:
        result: the ranking.
        provenance: names and values.
        notices: what to be careful with.
        spending: what judges and variants cost; None when only the result is known.
    """

    result: VariantsResult
    provenance: Mapping[str, str]
    notices: Sequence[str] = ()
    spending: pl.DataFrame | None = None

    def rows(self, *, texts: bool) -> pl.DataFrame:  # noqa: ARG002 - there are none
        """One row per variant and criterion."""
        run = self.result
        tables = [run.ranking(key).with_columns(criterion=pl.lit(key)) for key in run.keys]
        return pl.concat(tables).select("criterion", pl.exclude("criterion"))

    def page(self, *, texts: bool) -> Page:  # noqa: ARG002 - likewise
        """The report; it holds no text."""
        return _page(self)

    def disguised(self) -> VariantsFacts:
        """The same with other names for the variants."""
        run = self.result
        names = other_names(run.variants, "V")
        results = {
            (names[a], names[b]): replace(one, variant_a=names[a], variant_b=names[b])
            for (a, b), one in run.results.items()
        }
        made: dict[str, Any] = {
            "figures": {names[name]: one for name, one in run.figures.items()},
            "level": run.level,
            "seed": run.seed,
            "created_at": run.created_at,
        }
        variants = tuple(names[name] for name in run.variants)
        other = ranked_variants(variants, run.keys, results, run.stopped, run.cost, run.provenance, **made)
        kept = {name: value for name, value in self.provenance.items() if name in _IMPERSONAL}
        known = pl.col("model").replace(names)
        spending = None if self.spending is None else self.spending.with_columns(known)
        return VariantsFacts(other, kept, self.notices, spending)

    def write_again(self, path: Path) -> int:  # noqa: ARG002 - nothing is written
        """A ranking of variants has no cases to look at again.

        Raises:
            InputError: always.
        """
        raise InputError("`again=` is for the cases of two variants; compare two of these with `pairscale ab`")


def variants_of_run(store: RunFile) -> VariantsFacts:
    """Read the last ranking of variants that a run file keeps.

    Raises:
        InputError: when it keeps none.
    """
    with store.snapshot():
        found, kept = saved_variants(store), store.log_length(VARIANTS)
        judging, answering, origin = store.spending(), answering_of(store), origin_of(store)
    if found is None:
        raise InputError("the run file keeps no ranking of variants; run_variants(..., run=FILE) makes one")
    facts = variants_of_result(found)
    notices = [f"the run file keeps {kept:,} rankings of variants; this is the last"] if kept > 1 else []
    provenance = {**facts.provenance, **origin}
    return VariantsFacts(found, provenance, [*notices, *facts.notices], pl.concat([judging, answering]))


def variants_of_result(run: VariantsResult) -> VariantsFacts:
    """What there is to say of a ranking of variants."""
    made = run.provenance
    settings = {name: value for name, value in made.settings.items() if value is not None and name != "run"}
    provenance = {
        "ranked": f"{moment(run.created_at)}, by {made.method}",
        "pairscale": made.version,
        **({"seed": str(made.seed)} if made.seed is not None else {}),
        **{name: str(value) for name, value in settings.items()},
        **{f"variant {name}": str(value) for name, value in made.inputs.items()},
    }
    said = dict.fromkeys(notice for key in run.keys for notice in run.fits[key].notices)
    notices = [notice for notice in said if "repeats of a pair" not in notice]  # here each is another task
    if run.stopped:
        notices.append(f"the run ended before all cases were compared: {run.stopped}")
    return VariantsFacts(run, provenance, notices)


def _page(facts: VariantsFacts) -> Page:
    run = facts.result
    many = len(run.keys) > 1
    boards = [_board(run, key, many=many) for key in run.keys]
    cases = sum(len(list(one.of(run.keys[0]))) for one in run.results.values())
    some = next(iter(run.results.values()))
    judges = list(dict.fromkeys(name for one in run.results.values() for name in judges_of(one)))
    verdicts = [(key, f"{run.verdict(key)}.") for key in run.keys]
    took = _took(run)
    return Page(
        "variants.html",
        f"{len(run.variants)} variants compared",
        f"{len(run.variants)} variants were compared two by two in {cases:,} cases"
        + (", by several comparators. Each has a verdict of its own:" if many else f": {run.verdict()}."),
        _tiles(facts, cases),
        (("board", "Board", True), ("pairs", "Two by two", True), ("answers", "Answers", took["rows"])),
        {"boards": boards, "answers": took},
        _method(run, "; ".join(f"“{key}” by {by_whom(some, key)}" for key in run.keys)),
        facts.provenance,
        notices=facts.notices,
        verdicts=verdicts if many else [],
        spending=spent(facts.spending, cases, "cases"),
        judges=judges,
    )


def _tiles(facts: VariantsFacts, cases: int) -> list[tuple[str, str]]:
    run = facts.result
    tiles = [(f"{len(run.variants)}", "variants"), (f"{cases:,}", "cases, each two answers to a task")]
    failed = sum(one.failures for one in run.figures.values())
    if run.figures:
        tiles.append((f"{failed:,}", f"of {sum(one.answers for one in run.figures.values()):,} answers failed"))
    cost = run.cost if facts.spending is None else facts.spending["cost"].sum()
    if cost:
        tiles.append((f"${cost:,.2f}", f"spent{dated(facts.spending)}"))
    return tiles


def _board(run: VariantsResult, key: str, *, many: bool) -> Part:
    table = run.ranking(key)
    groups = run.groups(key)
    letters = {
        name: " ".join(_letter(at) for at, group in enumerate(groups) if name in group)
        for name in table["variant"].to_list()
    }
    shown = table.drop_nulls("theta")
    rows = [{**row, "ID": row["variant"], "score": row["theta"]} for row in shown.iter_rows(named=True)]
    board = [
        (
            "" if row["rank"] is None else int(row["rank"]),
            row["variant"],
            letters[row["variant"]],
            *(number(row[name]) for name in ("theta", "lower", "upper")),
        )
        for row in table.iter_rows(named=True)
    ]
    columns = [("rank", True), ("variant", False), ("group", False), ("score", True), ("from", True), ("to", True)]
    outcomes = [(row["variant"], *(row[name] for name in _OUTCOMES)) for row in table.iter_rows(named=True)]
    heads = [("variant", False), *((name, True) for name in ("won", "lost", "ties", "flips", "none", "errors"))]
    alike = [_names(group) for group in groups if len(group) > 1]
    rule = (
        "Where two scores differ by 1, the higher variant wins 73 % of tasks; by 2, 88 %. "
        "Variants that share a letter cannot be told apart: the interval of the difference of their scores holds 0. "
        f"These intervals hold for all {len(rows) * (len(rows) - 1) // 2} differences at "
        f"once, at {100 * run.level:g} %."
    )
    return {
        "name": key if many else "",
        "chart": score_picture(rows) if rows else None,
        "board": table_of(columns, board),
        "groups": [f"Cannot be told apart: {words}." for words in alike] or ["Every two variants can be told apart."],
        "rule": rule,
        "outcomes": table_of(heads, outcomes),
        "pairs": _pairs(run, key),
    }


def _letter(at: int) -> str:
    return ascii_uppercase[at] if at < len(ascii_uppercase) else f"{_letter(at // 26 - 1)}{ascii_uppercase[at % 26]}"


def _names(group: Sequence[str]) -> str:
    return " and ".join([", ".join(group[:-1]), group[-1]])


def _pairs(run: VariantsResult, key: str) -> Part:
    """The win rate of the better of every two variants, in the order of the board."""
    order = {name: at for at, name in enumerate(run.ranking(key)["variant"].to_list())}
    rows = []
    for (a, b), result in run.results.items():
        rate = result.win_rate(key)
        ends = rate.ci or (None, None)
        figures = (rate.rate, *ends)
        first, second = (b, a) if order[b] < order[a] else (a, b)
        if first == a:
            figures = tuple(None if x is None else 1 - x for x in (rate.rate, ends[1], ends[0]))
        rate_words, low, high = (percent(x).removesuffix(" %") or "none" for x in figures)
        rows.append((order[first], order[second], (first, second, rate_words, low, high, rate.n)))
    columns = [("variant", False), ("against", False), ("wins, %", True), ("from", True), ("to", True), ("cases", True)]
    return table_of(columns, [row for *_, row in sorted(rows)])


def _took(run: VariantsResult) -> Part:
    heads = [
        ("variant", False),
        ("failed", False),
        ("median time", False),
        ("mean tokens", False),
        ("mean cost", False),
    ]
    rows = [(name, *run.figures[name].words().values()) for name in run.variants if name in run.figures]
    return table_of(heads, rows)


def _method(run: VariantsResult, compared: str) -> list[str]:
    tasks = len({case.task_id for one in run.results.values() for case in one.cases})
    graded = any(case.preference is not None for one in run.results.values() for case in one.cases)
    robust = "robust ones for which the comparisons of a task may depend on each other"
    intervals = f"are {robust}" if graded else f"are the wider of two: those of the model, and {robust}"
    text = (
        f"{len(run.variants)} variants answered {tasks:,} tasks, and their answers were compared two by two: "
        f"{compared}. Scores are those of a Bradley-Terry model with Firth's correction, in logits; a tie and a flip "
        "(another winner in the other order) are half a win for each, "
        f"{'a graded preference of 0.8 is 0.8 of a win, ' if graded else ''}abstentions and errors are left out. "
        f"Intervals of scores {intervals}. Two variants are told apart where the interval of the difference of their "
        "scores does not hold 0; these intervals hold for all differences at once (the largest standardised "
        "difference, from the covariance of the "
        f"scores). Win rates of two variants {'are mean preferences' if graded else 'count ties and flips as half'}, "
        "with score intervals, one at a time. "
        f"Computed with pairscale {__version__}."
    )
    return [text]
