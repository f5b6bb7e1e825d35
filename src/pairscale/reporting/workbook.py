"""A run as an Excel file: a sheet each for what was found, the comparisons, and the method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pairscale.reporting._ab_figures import ABFacts
from pairscale.reporting._card import CardFacts
from pairscale.reporting._shell import CITATION
from pairscale.reporting._variants import VariantsFacts
from pairscale.reporting.figures import RankingFacts
from pairscale.reporting.labels import FactsWithLabels

if TYPE_CHECKING:
    from pairscale.reporting._shell import Facts

_WORDS = ("content", "thoughts")
_CUT = 32_000  # characters; an Excel cell holds a few more


def sheets_of(facts: Facts, *, texts: bool) -> dict[str, pl.DataFrame]:
    """The sheets of a run, by their names.

    Args:
        facts: what is known of it.
        texts: whether the judge's words are in it.
    """
    own = facts.facts if isinstance(facts, FactsWithLabels) else facts
    kinds = {RankingFacts: "ranking", ABFacts: "cases", VariantsFacts: "ranking", CardFacts: "measures"}
    first = kinds.get(type(own), "study")
    sheets = {first: facts.rows(texts=texts)}
    if isinstance(own, RankingFacts) and own.judgements is not None:
        answers = own.judgements if texts else own.judgements.drop(_WORDS, strict=False)
        sheets["comparisons"] = answers.with_columns(pl.col(pl.String).str.head(_CUT))
    page = facts.page(texts=False)
    rows = [("found", page.headline), *page.verdicts, *(("method", part) for part in page.method)]
    rows += [
        *((what, figure) for figure, what in page.tiles),
        *page.provenance.items(),
        *(("notice", part) for part in page.notices),
    ]
    rows.append(("to cite", CITATION))
    named = [(str(name), str(value)) for name, value in rows]
    sheets["method"] = pl.DataFrame(named, schema={"what": pl.String(), "value": pl.String()}, orient="row")
    return sheets
