"""The people who judged: how much each did, how fast, and how well their answers fit the common scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.errors import PairscaleError
from pairscale.core.notices import without_notices
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.models.fit_statistics import fit_statistics
from pairscale.store.labels import label_results

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["PEOPLE_COLUMNS", "answers_of_people", "people_table"]

PEOPLE_COLUMNS = {
    "person": pl.String(),
    "comparisons": pl.Int64(),
    "ties": pl.Int64(),
    "skipped": pl.Int64(),
    "seconds": pl.Float64(),
    "last": pl.String(),
    "agreement": pl.Float64(),
    "infit": pl.Float64(),
    "misfit": pl.Boolean(),
    "reason": pl.String(),
}
"""The columns of :func:`people_table`."""

_SURELY = 2.58
"""Standard deviations below the expected agreement from which a person is a misfit."""
_FEWEST = 5
"""Winners below which a person's agreement and fit are not given."""


def answers_of_people(store: RunFile) -> pl.DataFrame:
    """The answers of those whom a run asked, or labels of its pairs, as results; the column ``model`` names people."""
    if "human" not in store.conditions()["judge_id"].to_list():
        return label_results(store)
    return store.results().filter(pl.col("judge_id") == "human").with_columns(judge_id="model")


def people_table(results: pl.DataFrame) -> pl.DataFrame:
    """One row per person who answered, most comparisons first.

    ``comparisons`` are answers with a winner or a tie, ``seconds`` the median time of one, ``agreement`` the share of
    winners that have the higher score on the scale of all answers, and ``infit`` is as :func:`pairscale.fit_statistics`
    has it. ``misfit`` says whether the agreement is lower than chance explains where people judge by that scale
    (p < .005), with the ``reason``. The last four are null for fewer than five winners and before there is a scale.

    Args:
        results: what people answered; the column ``model`` names them.
    """
    answers = results.filter(pl.col("model").is_not_null()).rename({"model": "person"})
    outcome = pl.col("outcome").cast(pl.String)
    is_answer = outcome.is_in(["win", "tie"])
    counts = answers.group_by("person").agg(
        comparisons=is_answer.sum(),
        ties=(outcome == "tie").sum(),
        skipped=(outcome == "abstention").sum(),
        seconds=pl.col("latency_s").filter(is_answer).median(),
        last=pl.col("received_at").max(),
    )
    enough = pl.col("comparisons") - pl.col("ties") >= _FEWEST
    fitted = ("agreement", "infit", "misfit", "reason")
    table = counts.join(_fit_of_people(answers), on="person", how="left").with_columns(
        pl.when(enough).then(pl.col(name)) for name in fitted
    )
    return table.select(pl.col(name).cast(kind) for name, kind in PEOPLE_COLUMNS.items()).sort(
        "comparisons", "person", descending=[True, False]
    )


def _fit_of_people(answers: pl.DataFrame) -> pl.DataFrame:
    """Each person's ``agreement infit misfit reason``; no rows where the answers give no scale."""
    columns = ("person", "agreement", "infit", "misfit", "reason")
    none = pl.DataFrame(schema={name: PEOPLE_COLUMNS[name] for name in columns})
    decided = answers.drop_nulls("better_id").select("ID1", "ID2", "better_id", judge_id="person")
    try:
        with without_notices():
            fit = fit_bt_model(decided)
            judges = fit_statistics(fit).judges
    except PairscaleError:  # too few answers for a scale
        return none
    if judges is None:
        return none
    scores = dict(fit.theta.select("ID", "theta").iter_rows())
    gap = pl.col("ID1").replace_strict(scores) - pl.col("ID2").replace_strict(scores)
    chance = 1 / (1 + (-gap.abs()).exp())  # that the text with the higher score wins
    agrees = (pl.col("better_id") == pl.col("ID1")) == (gap > 0)
    people = decided.group_by(person="judge_id").agg(
        agreed=agrees.sum(), count=pl.len(), expected=chance.sum(), variance=(chance * (1 - chance)).sum()
    )
    misfit = pl.col("agreed") < pl.col("expected") - _SURELY * pl.col("variance").sqrt()
    reason = pl.format(
        "agrees with the common scale in {} of {} answers, where about {} are to be expected",
        "agreed",
        "count",
        pl.col("expected").round().cast(pl.Int64),
    )
    people = people.with_columns(misfit=misfit, reason=pl.when(misfit).then(reason))
    infit = judges.select("infit", "agreement", person="judge_id")
    return people.join(infit, on="person").select(*columns)
