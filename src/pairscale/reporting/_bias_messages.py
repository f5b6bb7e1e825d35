"""A report of position bias in words: the headline, which template to choose, the method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.checks.effect import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pairscale.reporting._bias_figures import BiasFacts

TO_READ = (
    "The effect is in logits: 0 is none, above 0 the first position is favoured, below 0 the second. With an effect of "
    "0.5 the first of two equally good texts wins 62 of 100 times, with 1 it wins 73. A line that crosses 0 may be "
    "chance."
)
TO_READ_TABLE = (
    "The same winner: pairs that the same text won in both orders. First wins: the share of all comparisons that went "
    "to the first position. p: of the exact sign test between pairs that the first position won in both orders, and "
    "pairs that the second won."
)


def judge_name() -> pl.Expr:
    """What a judge is called: by its name, or by its model and how that reasons."""
    model = pl.concat_str("model", "thinking", separator=" ", ignore_nulls=True)
    return pl.coalesce("judge", pl.when(model != "").then(model), "backend", pl.lit("the judge")).alias("who")


def headline(facts: BiasFacts) -> str:
    """Whether the position sways the judge, in plain words; of several templates, which sways least."""
    ranking, table = facts.study.ranking, facts.table
    if facts.verdict is not None:
        return f"{facts.verdict[:1].upper()}{facts.verdict[1:]}."
    best = ranking.row(0, named=True)
    judges = table.select(judge_name()).n_unique()
    others = len(_alike(facts)) - 1
    rivals = f" {_count(others, 'other template')} may be as good." if others else ""
    found = (
        f"{_count(ranking.height, 'template')} with {_count(judges, 'judge')}, every pair in both orders. Most "
        f"consistent is {best['template_id']}: the same text won both times in {best['mean_consistent']:.0%} of the "
        f"pairs.{rivals}"
    )
    known = table["favours"].count()
    return f"{found} {_favour(table, known)} a position." if known else found


def _alike(facts: BiasFacts) -> list[Mapping[str, Any]]:
    """The most consistent template, and those whose interval overlaps with its own, over all judges together."""
    ends = {}
    for (name,), part in facts.study.table.drop_nulls("prop_consistent").group_by("template_id"):
        same = (part["prop_consistent"] * part["n_pairs"]).round().sum()
        ends[name] = wilson(int(same), int(part["n_pairs"].sum()), facts.study.level)
    rows = list(facts.study.ranking.iter_rows(named=True))
    least = ends[rows[0]["template_id"]][0] or 0.0
    return [row for row in rows if (ends.get(row["template_id"], (None, None))[1] or 0.0) >= least]


def _favour(table: pl.DataFrame, known: int) -> str:
    biased = table["favours"].is_in(["first", "second"]).sum()
    return f"{f'{biased:,}' if biased else 'None'} of {known:,} combinations favour{'s' * (biased == 1)}"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'s' * (n != 1)}"


def advice(facts: BiasFacts) -> list[str]:
    """Which template to choose, why, and how clear that is."""
    ranking, table, level = facts.study.ranking, facts.table, facts.study.level
    if ranking.height < 2:
        return []
    alike = _alike(facts)
    # What consistency does not tell apart, the position does.
    chosen = min(alike, key=lambda row: (row["n_significant_paired"] or 0, row["worst_pos1"] or 0.0, row["rank"]))
    name, often = chosen["template_id"], f"{chosen['mean_consistent']:.1%} of the pairs"
    own = table.filter(pl.col("template_id") == name)
    far = "" if chosen["worst_pos1"] is None else f"{100 * chosen['worst_pos1']:.1f}"
    share = f"the share that the first position wins is at most {far} points away from one half" if far else ""
    if len(alike) == 1:
        wins = "with it the same text wins in both orders most often"
        said = [f"Choose {name}: {wins}, in {often}{f'; {share}' if share else ''}."]
    else:
        names = [str(row["template_id"]) for row in alike]
        least = f"under which the fewest judges favour a position{f'; {share}' if share else ''}"
        both = (
            f"{', '.join(names[:-1])} and {names[-1]} cannot be told apart by how often the same text wins both times"
        )
        said = [f"{both}: their {100 * level:g} % intervals overlap.", f"Of these choose {name} ({often}), {least}."]
    swayed = int(own["favours"].is_in(["first", "second"]).sum())
    if swayed:
        said.append(
            f"It does not take the effect away: {_favour(own, own.height)} a position with it. Ask every pair in both "
            "orders, or score with a model that takes the position out."
        )
    said.append(
        f"Of {table.height:,} combinations, about {table.height * (1 - level):.1f} would seem to favour a position by "
        "chance alone."
    )
    return said


def orders(known: pl.DataFrame) -> str:
    """How often the order decided, and for which position."""
    first, second, total = (int(known[name].sum()) for name in ("n_both_first", "n_both_second", "n_pairs"))
    return (
        f"In {first + second:,} of {total:,} pairs the winner changed with the order: {first:,} times the first "
        f"position won both times, {second:,} times the second. The others have the same winner in both orders."
    )


def method(facts: BiasFacts) -> list[str]:
    """A paragraph on the method, to be taken over into a paper."""
    study, table = facts.study, facts.study.table
    judges = table.select(judge_name()).n_unique()
    asked = f" for “{facts.trait}”" if facts.trait else ""
    pairs = _count(max(table["n_pairs"].to_list()), "pair")
    text = (
        f"{pairs} of texts were judged{asked} in both orders by {_count(judges, 'judge')} with "
        f"{_count(study.ranking.height, 'prompt template')}. A pair is consistent when the same text wins in both "
        "orders. The position effect b (log odds of the first text = difference of the texts + b) is estimated by "
        "conditional maximum likelihood, in which the differences cancel. Its "
        f"{100 * study.level:g} % interval is exact (Clopper–Pearson) where each order was asked once, and that of a "
        "score test otherwise. A position counts as favoured when the exact two-sided sign test between the pairs "
        f"that it won in both orders and those that the other won gives p below {1 - study.level:.2g}; intervals of "
        f"shares are Wilson's. Computed with pairscale {__version__}."
    )
    return [text]
