"""Two published studies of position bias, as they were printed.

Both are by Mercer (2025) with the R package pairwiseLLM. Its templates have other wordings than those of the same
names here, and models change: take the figures as what to expect of a judge, never as a measurement of ours.
"""

from __future__ import annotations

from importlib.resources import files

import polars as pl

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
    rows = pl.read_csv(content, infer_schema=False)
    table = rows.select(pl.lit(None).alias(column) if column not in rows.columns else column for column in STUDY)
    table = table.cast(STUDY)  # type: ignore[arg-type]
    source = f"{rows['source'][0]}; {OTHER_WORDINGS}"
    return TemplateStudy(table, rank_templates(table, _LEVEL), _LEVEL, (OTHER_WORDINGS,), source)
