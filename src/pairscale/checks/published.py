"""Two published studies of position bias, as they were printed.

Both are by Mercer (2025) with the R package pairwiseLLM. Its templates have other wordings than those of the same
names here, and models change: take the figures as what to expect of a judge, never as a measurement of ours.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import polars as pl

from pairscale.checks.effect import VOTES, position_effect, sign_test, wilson
from pairscale.checks.templates import STUDY, TemplateStudy, rank_templates

OTHER_WORDINGS = "measured with pairwiseLLM's templates, whose wordings are not ours"
"""Stands beside every display of these figures."""

_LEVEL = 0.95


def published_template_study() -> TemplateStudy:
    """The published comparison of five templates with 15 configurations of language models, on 190 pairs of texts.

    ``template_id`` to ``p_sample1_overall`` are as printed, to three digits. Three of these figures determine how many
    pairs there were and how many went to one position twice; ``n_pairs``, ``n_both_first`` and ``n_both_second`` are
    reconstructed from them, and the intervals, ``p_paired`` and ``effect`` follow. Two rows then have 189 pairs and
    one 163: answers were missing there.

    Example:
        >>> published_template_study().table.height
        75
    """
    return _study("published_template_study.csv")


def published_default_template() -> TemplateStudy:
    """The published figures of pairwiseLLM's default template with 19 configurations, on 45 pairs.

    Only the consistency and a p were printed. The text says that the p is of all comparisons in both orders; the
    values are those of a test of 45 comparisons, so they probably are of one order.

    Example:
        >>> published_default_template().table.height
        19
    """
    return _study("published_default_template.csv")


def _study(name: str) -> TemplateStudy:
    # By its package, not by pairscale.datasets, which would load the generator of essays too.
    content = (files("pairscale") / "datasets" / "data" / name).read_bytes()
    schema = {**{column: kind for column, kind in STUDY.items() if column != "judge"}, "source": pl.String()}
    printed = pl.read_csv(content, infer_schema=False)
    printed = printed.with_columns(pl.col(column).cast(schema[column]) for column in printed.columns)
    source = f"{printed['source'][0]}; {OTHER_WORDINGS}"
    rows = [row | _derived(row) for row in printed.drop("source").iter_rows(named=True)]
    table = pl.DataFrame(rows, schema=STUDY)
    return TemplateStudy(table, rank_templates(table, _LEVEL), _LEVEL, (OTHER_WORDINGS,), source)


def _derived(row: dict[str, Any]) -> dict[str, float | None]:
    """What follows from the counts of a row."""
    n, consistent = row["n_pairs"], round(row["prop_consistent"] * row["n_pairs"])
    more: dict[str, float | None] = {}
    more["consistent_lower"], more["consistent_upper"] = wilson(consistent, n, _LEVEL)
    if row["n_both_first"] is None:
        return more
    first, second = row["n_both_first"], row["n_both_second"]
    more["pos1_lower"], more["pos1_upper"] = wilson(consistent + 2 * first, 2 * n, _LEVEL)
    effect = position_effect(_votes(first, second), _LEVEL)
    more |= {"effect": effect.estimate, "effect_lower": effect.lower, "effect_upper": effect.upper}
    return more | {"p_paired": sign_test(first, first + second)}


def _votes(first: int, second: int) -> pl.DataFrame:
    """Pairs that went to the first position twice, and to the second; the consistent ones say nothing of it."""
    rows = [("", "", "", 1, 1, 1, 0)] * first + [("", "", "", 1, 0, 1, 1)] * second
    return pl.DataFrame(rows, schema=VOTES, orient="row")
