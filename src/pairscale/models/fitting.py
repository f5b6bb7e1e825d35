"""From comparisons to scores, with one verb for all models: ``pairscale.fit``.

Where the functions with R's names keep R's defaults, this one learns from the data how far the scores spread and how
much repeats of a pair add (:mod:`pairscale.models.bayes.repeats`), for the Bayesian model and for the engine ``map``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import polars as pl
import polars.selectors as cs

from pairscale.core.columns import judge_column
from pairscale.core.comparisons import AS_NEW, BY_ADDED, say_copies
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked, require_choice
from pairscale.core.results import Results
from pairscale.core.tables import TIMES, as_text, is_blank
from pairscale.models.bayes.settings import Answer, Judges
from pairscale.models.data import order_is_known
from pairscale.models.rows import PROBABILITY, read_rows
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pairscale.core.tables import Table
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bayes.settings import Repeats, Variant
    from pairscale.models.bradley_terry import BTFit, Chosen
    from pairscale.models.data import Ties
    from pairscale.models.elo import EloFit
    from pairscale.store.runfile import RunFile

FitModel: TypeAlias = Literal["bt", "elo", "bayes"]
"""The models there are."""

_BASELINE = "lexical"
_APPROXIMATE = "engine 'laplace' approximates the posterior by a normal distribution, and diagnoses nothing"
_ENGINES = {"bt": ("auto", "sirt", "mle", "map", "firth"), "elo": ("auto",), "bayes": ("auto", "sampler", "laplace")}
_MODELS_OF = {
    **dict.fromkeys(("variant", "answer", "judges"), ("bayes",)),
    **dict.fromkeys(("prior_sd", "repeats", "ties", "engine"), ("bayes", "bt")),
    "runs": ("elo",),
    **dict.fromkeys(
        ("position", "cluster", "bootstrap", "reference", "weights", "covariance", "rank_intervals", "n_jobs", "chosen",
         "level", "separate"), ("bt",),
    ),
}  # fmt: skip
"""The models that an option belongs to."""
_SURE = 2.6  # standard errors: of a hundred judges without an order effect, one is suspected
_DEFAULTS = (None, False, 0, "auto", "winner", "pooled")


@checked
def fit(
    data: Table | str | Path | Sequence[str | Path] | RunFile,
    model: FitModel = "bt",
    *,
    answer: Answer = "winner",
    judges: Judges = "pooled",
    engine: str = "auto",
    variant: Variant | None = None,
    prior_sd: float | Literal["learned"] | None = None,
    repeats: Repeats | None = None,
    ties: Ties | None = None,
    chosen: Chosen | None = None,
    ids: Iterable[Any] | None = None,
    condition: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    key: str | Path | None = None,
    runs: int | None = None,
    seed: int = 1,
    level: float | None = None,
    separate: bool = False,
    position: bool = False,
    cluster: str | None = None,
    bootstrap: int = 0,
    reference: str | None = None,
    weights: str | None = None,
    covariance: bool = False,
    rank_intervals: bool = False,
    n_jobs: int | None = None,
    progress: ProgressMode = False,
) -> BTFit | EloFit | BayesFit:
    """Turn comparisons into scores, ranks, intervals and a reliability.

    The Bayesian model and the engine ``map`` learn the spread of the scores and count repeats of a pair by what they
    add, and the Bayesian model takes a tie, and a flip between orders, as evidence that two texts are close. ``sirt``,
    ``mle``, ``firth`` and ``elo`` give R's figures: every comparison is new evidence, and ties are left out.

    Args:
        data: A run file or its database, several run files (a list, their folder or a pattern), a file of results or of
            people's labels, a table, Parquet files by a pattern, or a lazy table of another engine (Polars, DuckDB,
            Dask, Ibis, PySpark), of any form that the guide to results lists. More than 200,000 comparisons that are
            not in memory are grouped where they lie, and only the different ones are fetched, counted.
        model: ``bt`` (Bradley-Terry), ``elo`` (EloChoice) or ``bayes`` (the whole posterior).
        answer: What is evidence: the ``winner``, or, of bayes, the ``probability`` that the first text is better, from
            the column of that name. Scores are then in the judge's logits.
        judges: Of several judges (column ``judge_id`` or ``judge``): ``pooled``, as if they were one, or, of bayes,
            ``slopes``, a slope and a position effect for each. ``fit.judges`` then has them, and says who is weak.
        engine: Of bt: ``sirt`` (``auto``), ``mle``, ``map`` or ``firth``. Of bayes: ``sampler`` (``auto``) or
            ``laplace``, the normal approximation.
        variant: Of bayes: ``btl``, ``btl_e`` (lapses), ``btl_b`` (position) or ``btl_e_b`` (both; the default where
            results say who stood first, else ``btl_e``).
        prior_sd: Of bayes and ``map``: the standard deviation of the scores' prior; ``learned`` by default.
        repeats: How to count repeats of a pair: ``learned`` (the default of bayes and ``map``), ``independent``, or
            their excess agreement from 0 (each is new evidence) to 1 (none is).
        ties: ``half`` (half a win for each; the default of bayes) or ``drop`` (the default of bt).
        chosen: How the pairs were chosen: ``beforehand``, or ``adaptive``, by what earlier answers said. A run file
            knows it.
        ids: All items there are. A run file knows them.
        condition: Of a run file with several: a judge, a condition (its beginning is enough), ``people`` or ``all``. Of
            labels under several criteria: a criterion, or ``all``.
        a_col: Of a table: the column of the first text, or its path (``pair.0.id``) where values are nested.
        b_col: Of a table: the column of the second text.
        winner_col: Of a table: the column that says who won.
        encoding: Of a table: the encoding of a text file that is not UTF-8.
        key: Of labels that do not say what they compare: the key of their manifest, or their table of pairs.
        runs: Of elo: the number of random orders, 100 by default.
        seed: The same seed gives the same figures.
        level: Of bt: the level of the intervals, 0.95 by default.
        separate: Of bt: fit groups that were never compared one by one, instead of refusing.
        position: bt only: also estimate the preference for the first position.
        cluster: Of bt: robust errors by a column, such as ``judge_id``.
        bootstrap: Of bt: the number of bootstrap rounds for the intervals.
        reference: Of bt, engines ``mle``, ``map`` and ``firth``: the item whose score is 0.
        weights: Of bt: the column of what each comparison counts; by default ``weight``, if there is one.
        covariance: Of bt: keep the covariance of all scores.
        rank_intervals: Of bt: add intervals of the ranks.
        n_jobs: Of bt: processes for the bootstrap, -1 for all cores; by default one, or what
            ``joblib.parallel_config`` says. The figures are the same for every number.
        progress: Of bayes: show a bar while sampling, in a terminal.

    Returns:
        A :class:`BTFit`, an :class:`EloFit` or a :class:`BayesFit`.

    Raises:
        InputError: If an option does not belong to the model or is out of range.
        FitError: If there is nothing to fit.

    Example:
        >>> import pairscale as ps
        >>> ps.fit(ps.example_writing_results, engine="map").theta["ID"][0]
        'S20'
    """
    options = dict(locals())
    for name, choices in (("model", FitModel), ("answer", Answer), ("judges", Judges)):
        require_choice(options[name], name, get_args(choices))
    for name, models in _MODELS_OF.items():
        if model not in models and options[name] not in _DEFAULTS:
            belongs = " or ".join(f"model={owner!r}" for owner in models)
            raise InputError(f"{name} belongs to {belongs}, not to model={model!r}; leave it out", name)
    require_choice(engine, "engine", _ENGINES[model])
    if model == "bt" and prior_sd is not None and engine != "map":
        raise InputError(f"prior_sd belongs to model='bayes' and to engine='map', not to engine={engine!r}", "prior_sd")
    comparisons = read_comparisons(
        data, condition, a_col=a_col, b_col=b_col, winner_col=winner_col, encoding=encoding, key=key,
        keep=counted_by(model, answer=answer, judges=judges, weights=weights, cluster=cluster),
        every_judge=judges == "slopes",
    )  # fmt: skip
    _say_unused(comparisons.table, model, answer)
    names = comparisons.ids if ids is None else ids
    if model == "elo":
        from pairscale.models.elo import fit_elo_model

        return fit_elo_model(comparisons.table, runs=100 if runs is None else runs, seed=seed)
    spread = "learned" if prior_sd is None else prior_sd
    by_default: Repeats = "learned" if model == "bayes" or engine == "map" else "independent"
    counted_repeats = by_default if repeats is None else repeats
    if model == "bayes":
        return _fit_bayes(
            comparisons.table, names, answer, judges, engine, variant, ties,
            seed=seed, prior_sd=spread, repeats=counted_repeats, progress=progress,
        )  # fmt: skip
    if weights is None and "weight" in comparisons.table.columns:
        notice("comparisons count by the column 'weight'")
        weights = "weight"
    # Parts that were never compared are fitted one by one, and each alone says too little about a common spread.
    fixed = 1.0 if engine != "map" or (separate and prior_sd is None) else spread
    from pairscale.models.bradley_terry import fit_bt_model

    fitted = fit_bt_model(
        Results(comparisons.table), engine=engine, ids=names, prior_sd=fixed, ties="drop" if ties is None else ties,
        level=0.95 if level is None else level, seed=seed, unconnected="separate" if separate else "error",
        repeats=counted_repeats, chosen=chosen or comparisons.chosen or "beforehand", position=position,
        cluster=cluster, bootstrap=bootstrap, reference=reference, weights=weights, covariance=covariance,
        rank_intervals=rank_intervals, n_jobs=n_jobs,
    )  # fmt: skip
    if position or not order_is_known(comparisons.table):
        return fitted
    return replace(fitted, notices=(*fitted.notices, *_say_order_effect(fitted)))


def _say_order_effect(fitted: BTFit) -> list[str]:
    """That the text shown first wins surely more, or less, often than the scores explain."""
    outcomes = fitted.outcomes
    everyone = pl.DataFrame({"ID": outcomes.ids}).join(fitted.theta, on="ID", how="left", maintain_order="left")
    theta = everyone["theta"].to_numpy()
    gap = theta[outcomes.first] - theta[outcomes.second]
    weight = np.isfinite(gap) & (outcomes.first != outcomes.second) & (outcomes.result != 0.5)
    expected = 1 / (1 + np.exp(-np.where(weight, gap, 0.0)))
    if outcomes.times is not None:
        weight = weight * outcomes.times
    surplus = weight @ (outcomes.result - expected)
    if surplus**2 <= _SURE**2 * (weight @ (expected * (1 - expected))):
        return []
    share = weight @ outcomes.result / weight.sum()
    side = "more" if surplus > 0 else "less"
    return [
        notice(
            f"the text shown first won {share:.0%} of the comparisons, surely {side} often than the scores explain: "
            "intervals that leave this out do not cover; position=True estimates it"
        )
    ]


def _fit_bayes(
    table: pl.DataFrame,
    ids: Iterable[Any] | None,
    answer: Answer,
    judges: Judges,
    engine: str,
    variant: Variant | None,
    ties: Ties | None,
    **options: Any,
) -> BayesFit:
    """The Bayesian model of winners or of probabilities, with a slope for each judge or without."""
    from pairscale.models.bayes.fit import fit_btl
    from pairscale.models.bayes.results import gathered

    slopes = judges == "slopes"
    graded = answer == "probability"
    if graded and (slopes or ties is not None):
        raise InputError("answer='probability' does not take ties or judges='slopes'; leave it out")
    if slopes and (engine == "laplace" or options["prior_sd"] != "learned"):
        raise InputError("judges='slopes' does not take engine='laplace' or a number for prior_sd; leave it out")
    ordered = order_is_known(table)
    lapses = not (slopes or graded)
    if variant is None:
        variant = _DEFAULT_VARIANTS[lapses, ordered]
    if (not lapses and variant.startswith("btl_e")) or (not ordered and variant.endswith("_b")):
        raise InputError(
            f"variant={variant!r}: lapses (_e) do not go with answer='probability' or judges='slopes', nor a position "
            f"effect (_b) with results that do not say who stood first; use {_DEFAULT_VARIANTS[lapses, ordered]!r}"
        )
    rows, names, notices = read_rows(table, ids, "half" if ties is None else ties, graded=graded)
    if not graded:
        notices += say_copies(rows, AS_NEW if options["repeats"] == "independent" else BY_ADDED)
    columns: list[Any] = ["ID1", "ID2", "better_id", cs.by_name(TIMES, require_all=False)]
    if graded:
        columns.append(PROBABILITY)
    if slopes:
        column = judge_column(rows)
        who = pl.Series([], dtype=pl.String) if column is None else as_text(rows[column], "results")
        if is_blank(who).any() or who.n_unique() < 2:
            raise InputError(
                "judges='slopes' compares judges: it needs a column judge_id or judge without empty values, and two "
                "judges or more; leave it out"
            )
        columns.append(who.alias("judge_id"))
    approximate = engine == "laplace"
    if approximate:
        notices.append(notice(_APPROXIMATE))
    return gathered([fit_btl(rows.select(columns), names, variant, approximate=approximate, **options)], notices)


_DEFAULT_VARIANTS: dict[tuple[bool, bool], Variant] = {
    (True, True): "btl_e_b", (True, False): "btl_e", (False, True): "btl_b", (False, False): "btl",
}  # fmt: skip
"""By whether the judge may lapse, and whether results say who stood first."""


def counted_by(
    model: str,
    *,
    answer: str = "winner",
    judges: str = "pooled",
    weights: str | None = None,
    cluster: str | None = None,
) -> list[str] | None:
    """The columns that a fit needs beside the texts and who won, so that comparisons can be counted; None if not.

    Elo ratings need one comparison after the other, and probabilities are hardly ever the same.
    """
    if model == "elo" or answer == "probability" or judges == "slopes":
        return None
    if model == "bayes":
        return []
    return [name for name in (weights or "weight", cluster) if name is not None]


def _say_unused(table: pl.DataFrame, model: FitModel, answer: Answer) -> None:
    """Say that there are probabilities or weights that are not used; probabilities of the baseline are no answers."""
    if model != "bt" and "weight" in table.columns:
        notice(f"the column 'weight' is not used: model={model!r} counts every comparison once")
    if answer != "winner" or PROBABILITY not in table.columns:
        return
    if "judge_id" in table.columns:
        table = table.filter(pl.col("judge_id").ne_missing(_BASELINE))
    probabilities = table[PROBABILITY].cast(pl.Float64, strict=False).drop_nulls()
    if len(probabilities) and not probabilities.is_in([0.0, 0.5, 1.0]).all():
        notice(
            f"{len(probabilities):,} comparisons have a probability, which is not used: winners alone count; "
            "use model='bayes', answer='probability' to count how sure the judge was"
        )
