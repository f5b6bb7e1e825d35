"""From comparisons to scores, with one verb for all models: ``pairscale.fit``.

Where the functions with R's names keep R's defaults, this one learns from the data how far the scores spread and how
much repeats of a pair add (:mod:`pairscale.models.bayes.repeats`), for the Bayesian model and for the engine ``map``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import polars as pl

from pairscale.core.columns import judge_column
from pairscale.core.comparisons import says_who_stood_first
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked, require_choice
from pairscale.core.results import Results
from pairscale.core.tables import as_text, is_blank, times_of
from pairscale.models._progress import showing_progress
from pairscale.models.bayes.rows import PROBABILITY, read_graded_rows
from pairscale.models.bayes.settings import Answer, Judges
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pairscale.core.tables import Table
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bayes.rows import BayesTies
    from pairscale.models.bayes.settings import Repeats, Variant
    from pairscale.models.bradley_terry import BTFit, Chosen
    from pairscale.models.data import Ties
    from pairscale.models.elo import EloFit
    from pairscale.store.runfile import RunFile

__all__ = ["FitModel", "fit", "misplaced"]

FitModel: TypeAlias = Literal["bt", "elo", "bayes"]
"""The models there are."""

_BASELINE = "lexical"
_APPROXIMATE = "engine 'laplace' approximates the posterior by a normal distribution, and diagnoses nothing"
_ENGINES = {"bt": ("auto", "sirt", "mle", "map", "firth"), "elo": ("auto",), "bayes": ("auto", "sampler", "laplace")}
_OF_MODEL = {
    "separate": ("bt",), "position": ("bt",), "cluster": ("bt",), "bootstrap": ("bt",), "reference": ("bt",),
    "weights": ("bt",), "covariance": ("bt",), "rank_intervals": ("bt",), "level": ("bt",), "chosen": ("bt",),
    "variant": ("bayes",), "prior_sd": ("bayes", "bt"), "repeats": ("bayes", "bt"),
    "ties": ("bayes", "bt"), "engine": ("bayes", "bt"), "runs": ("elo",), "answer": ("bayes",), "n_jobs": ("bt",),
    "judges": ("bayes",),
}  # fmt: skip


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
    cluster: str | Sequence[Any] | None = None,
    bootstrap: int = 0,
    reference: str | None = None,
    weights: str | Sequence[float] | None = None,
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
        ties: ``half`` (half a win for each; the default of bayes), ``drop`` (the default of bt), or of bt ``davidson``.
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
        cluster: Of bt: robust errors by a column, or by one name per row.
        bootstrap: Of bt: the number of bootstrap rounds for the intervals.
        reference: Of bt, engines ``mle``, ``map`` and ``firth``: the item whose score is 0.
        weights: Of bt: what each comparison counts, a column or one number per row; by default the column ``weight``,
            if there is one.
        covariance: Of bt: keep the covariance of all scores.
        rank_intervals: Of bt: add intervals of the ranks.
        n_jobs: Of bt: processes for the bootstrap, -1 for all cores; by default one, or what
            ``joblib.parallel_config`` says. The figures are the same for every number.
        progress: Show what a long fit of bt or bayes works at, in a terminal or a notebook.

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
    for name, value, choices in (("model", model, FitModel), ("answer", answer, Answer), ("judges", judges, Judges)):
        require_choice(value, name, get_args(choices))
    of_bt: dict[str, Any] = {
        "position": position, "cluster": cluster, "bootstrap": bootstrap, "reference": reference, "weights": weights,
        "covariance": covariance, "rank_intervals": rank_intervals, "n_jobs": n_jobs,
    }  # fmt: skip
    given = of_bt | {
        "engine": engine != "auto", "variant": variant, "prior_sd": prior_sd, "repeats": repeats,
        "ties": ties, "chosen": chosen, "runs": runs, "level": level, "separate": separate,
        "answer": answer != "winner", "judges": judges != "pooled",
    }  # fmt: skip
    _require_belonging(given, model)
    require_choice(engine, "engine", _ENGINES[model])
    _require_together(judges, answer, engine, variant, prior_sd, ties)
    known = read_comparisons(
        data, condition, a_col=a_col, b_col=b_col, winner_col=winner_col, encoding=encoding, key=key,
        keep=counted_by(model, answer=answer, judges=judges, weights=weights, cluster=cluster),
        every_judge=judges == "slopes",
    )  # fmt: skip
    _require_columns(known.table, weights=weights, cluster=cluster)
    _say_unused(known.table, answer)
    if weights is None and "weight" in known.table.columns:
        of_bt["weights"] = _own_weights(model)
    names = known.ids if ids is None else ids
    if model == "elo":
        from pairscale.models.elo import fit_elo_model

        return fit_elo_model(known.table, runs=100 if runs is None else runs, seed=seed)
    spread = prior_sd if prior_sd is not None else "learned"
    found: BTFit | BayesFit
    if model == "bayes":
        bayesian = _Bayesian(known.table, names, engine, variant, seed, spread, repeats, ties, progress)
        found = bayesian.fit(answer, judges)
        return found
    if prior_sd is not None and engine != "map":
        raise InputError(f"prior_sd belongs to model='bayes' and to engine='map', not to engine={engine!r}", "prior_sd")
    # Parts that were never compared are fitted one by one, and each alone says too little about a common spread.
    fixed = 1.0 if engine != "map" or (separate and prior_sd is None) else spread
    by_default: Repeats = "learned" if engine == "map" else "independent"
    from pairscale.models.bradley_terry import fit_bt_model

    with showing_progress(show=progress):
        found = fit_bt_model(
            Results(known.table), engine=engine, ids=names, prior_sd=fixed, ties="drop" if ties is None else ties,
            level=0.95 if level is None else level, seed=seed, unconnected="separate" if separate else "error",
            repeats=by_default if repeats is None else repeats,
            chosen=chosen or known.chosen or "beforehand", **of_bt,
        )  # fmt: skip
    return found


def _require_belonging(given: Mapping[str, Any], model: FitModel) -> None:
    """Refuse an option of another model."""
    if wrong := misplaced({name: not _is_unset(value) for name, value in given.items()}, model):
        models = " or ".join(f"model={known!r}" for known in wrong[1])
        raise InputError(f"{wrong[0]} belongs to {models}, not to model={model!r}; leave it out", wrong[0])


def counted_by(
    model: str,
    *,
    answer: str = "winner",
    judges: str = "pooled",
    weights: str | Sequence[float] | None = None,
    cluster: str | Sequence[Any] | None = None,
) -> list[str] | None:
    """The columns that a fit needs beside the texts and who won, so that comparisons can be counted; None if not.

    Args:
        model: see :func:`fit`; Elo ratings need one comparison after the other.
        answer: see :func:`fit`; probabilities are hardly ever the same.
        judges: see :func:`fit`.
        weights: see :func:`fit`.
        cluster: see :func:`fit`.
    """
    if model == "elo" or answer == "probability" or judges == "slopes":
        return None
    named = [weights if weights is not None else "weight", cluster] if model == "bt" else []
    return [name for name in named if isinstance(name, str)]


def _require_columns(table: pl.DataFrame, **given: str | Sequence[Any] | None) -> None:
    """Refuse one value per row where the different rows are counted."""
    wrong = [name for name, value in given.items() if value is not None and not isinstance(value, str)]
    if wrong and times_of(table) is not None:
        raise InputError(f"{wrong[0]}: so many comparisons are counted, not read one by one; name a column of theirs")


def _say_unused(table: pl.DataFrame, answer: Answer) -> None:
    """Say that there are probabilities and only winners are used; those of the baseline are no answers."""
    if answer != "winner" or PROBABILITY not in table.columns:
        return
    if "judge_id" in table.columns:
        table = table.filter(pl.col("judge_id").ne_missing(_BASELINE))
    given = table[PROBABILITY].cast(pl.Float64, strict=False).drop_nulls()
    if len(given) and not given.is_in([0.0, 0.5, 1.0]).all():
        notice(
            f"{len(given):,} comparisons have a probability, which is not used: winners alone count; "
            "use model='bayes', answer='probability' to count how sure the judge was"
        )


def _require_together(
    judges: Judges,
    answer: Answer,
    engine: str,
    variant: Variant | None,
    prior_sd: float | Literal["learned"] | None,
    ties: Ties | None,
) -> None:
    """Refuse what a fit of probabilities or of slopes does not take."""
    if answer == "probability" and ties is not None:
        raise InputError("ties belongs to answer='winner'; with answer='probability' a tie is a probability of 0.5")
    if judges != "slopes":
        return
    wrong = {
        "answer='probability'": answer != "winner",
        "engine='laplace'": engine == "laplace",
        "a number for prior_sd": prior_sd not in (None, "learned"),
    }
    if refused := [name for name, there in wrong.items() if there]:
        raise InputError(f"judges='slopes' does not take {refused[0]}; leave it out, or use judges='pooled'")
    if variant not in (None, "btl", "btl_b"):
        raise InputError(
            f"variant={variant!r} has lapses; with judges='slopes' use 'btl' or 'btl_b', which have slopes instead"
        )


def _own_weights(model: FitModel) -> str | None:
    """The column ``weight``, which only one model can use."""
    if model == "bt":
        notice("comparisons count by the column 'weight'")
        return "weight"
    notice(f"the column 'weight' is not used: model={model!r} counts every comparison once")
    return None


def _is_unset(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, int) and value == 0)


def misplaced(given: Mapping[str, bool], model: str) -> tuple[str, tuple[str, ...]] | None:
    """The first option that was given and does not belong to a model, and the models that it belongs to."""
    wrong = next((name for name, there in given.items() if there and model not in _OF_MODEL[name]), None)
    return None if wrong is None else (wrong, _OF_MODEL[wrong])


@dataclass(frozen=True, slots=True)
class _Bayesian:
    """A fit of the Bayesian model: the comparisons, and the options of :func:`fit`."""

    table: pl.DataFrame
    ids: Iterable[Any] | None
    engine: str
    variant: Variant | None
    seed: int
    prior_sd: float | Literal["learned"]
    repeats: Repeats | None
    ties: Ties | None
    progress: ProgressMode

    def fit(self, answer: Answer, judges: Judges) -> BayesFit:
        """The fit of winners or of probabilities, with a slope for each judge or without."""
        if self.ties == "davidson":
            raise InputError("ties='davidson' belongs to model='bt'; the Bayesian model takes 'half' or 'drop'")
        if answer == "probability":
            return self._graded()
        return self._by_judge() if judges == "slopes" else self._pooled()

    @property
    def _counted(self) -> Repeats:
        return "learned" if self.repeats is None else self.repeats

    @property
    def _tied(self) -> BayesTies:
        return "half" if self.ties is None else cast("BayesTies", self.ties)

    def _pooled(self) -> BayesFit:
        """A fit of winners, with all judges pooled."""
        best = self.variant or ("btl_e_b" if says_who_stood_first(self.table) else "btl_e")
        if self.engine == "laplace":
            return self._pooled_laplace(best)
        from pairscale.models.bayes.results import fit_bayes_btl_mcmc

        return fit_bayes_btl_mcmc(
            self.table, self.ids, best, seed=self.seed, prior_sd=self.prior_sd, repeats=self._counted, ties=self._tied,
            progress=self.progress,
        )  # fmt: skip

    def _pooled_laplace(self, variant: Variant) -> BayesFit:
        from pairscale.models.bayes.fit import fit_btl_laplace
        from pairscale.models.bayes.results import gathered

        rows, names, said = self._rows()
        rows = rows.drop("judge_id", PROBABILITY, strict=False)
        said.append(notice(_APPROXIMATE))
        given: dict[str, Any] = {"prior_sd": self.prior_sd, "repeats": self._counted}
        return gathered([fit_btl_laplace(rows, names, variant, seed=self.seed, **given)], said)

    def _graded(self) -> BayesFit:
        """A fit of probabilities."""
        from pairscale.models.bayes.fit import fit_btl, fit_btl_laplace
        from pairscale.models.bayes.results import gathered

        rows, names, said = read_graded_rows(self.table, self.ids)
        best = self.variant or ("btl_b" if says_who_stood_first(rows) else "btl")
        if best not in ("btl", "btl_b"):
            raise InputError(
                f"variant={best!r} has lapses; with answer='probability' use 'btl' or 'btl_b', which have outliers "
                "instead"
            )
        rows = rows.select("ID1", "ID2", "better_id", PROBABILITY)
        given: dict[str, Any] = {"seed": self.seed, "prior_sd": self.prior_sd, "repeats": self._counted}
        if self.engine == "laplace":
            said.append(notice(_APPROXIMATE))
            found = fit_btl_laplace(rows, names, best, **given)
        else:
            found = fit_btl(rows, names, best, **given, progress=self.progress)
        return gathered([found], [*said, *found.notices])

    def _by_judge(self) -> BayesFit:
        """A fit with a slope and a position effect for each judge."""
        from pairscale.models.bayes.fit import fit_btl
        from pairscale.models.bayes.results import gathered

        ordered = says_who_stood_first(self.table)
        if self.variant == "btl_b" and not ordered:
            raise InputError(
                "results list winners and losers without saying who stood first, so there is no position effect to "
                "estimate; use variant='btl'"
            )
        rows, names, said = self._rows()
        column = judge_column(rows)
        if column is None:
            raise InputError("judges='slopes' needs a column judge_id or judge that says who judged; there is neither")
        who = as_text(rows[column], "results")
        if blank := int(is_blank(who).sum()):
            raise InputError(f"judges='slopes': column {column!r} is empty in {blank:,} of {rows.height:,} rows")
        rows = rows.select("ID1", "ID2", "better_id", who.alias("judge_id"))
        if who.n_unique() < 2:
            raise InputError(f"judges='slopes' compares judges, and all answers are of {who[0]!r}; leave it out")
        found = fit_btl(
            rows, names, "btl_b" if ordered and self.variant != "btl" else "btl", seed=self.seed, prior_sd="learned",
            repeats=self._counted, progress=self.progress,
        )  # fmt: skip
        return gathered([found], [*said, *found.notices])

    def _rows(self) -> tuple[pl.DataFrame, list[str], list[str]]:
        """The comparisons, the items and the notices; rows that stand twice are among the last."""
        from pairscale.core.comparisons import AS_NEW, BY_ADDED, say_copies
        from pairscale.models.bayes.rows import read_rows

        rows, names, said = read_rows(self.table, self.ids, self._tied)
        return rows, names, [*said, *say_copies(rows, AS_NEW if self._counted == "independent" else BY_ADDED)]
