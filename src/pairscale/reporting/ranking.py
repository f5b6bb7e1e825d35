"""The report of a ranking: of a run file, an adaptive run, a fitted model, or comparisons from elsewhere."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs

from pairscale.adaptive.messages import (
    STOPS,
    adaptive_status,
    how_it_stands,
    panel_slopes,
    provisional,
    stop_in_words,
    top_sought,
)
from pairscale.checks.calibration import calibrations_of
from pairscale.checks.effect import SURELY_BETTER, wilson
from pairscale.core.columns import TASK_COLUMNS, judge_column
from pairscale.core.comparisons import OF_ITS_PAIR, Outcome
from pairscale.core.errors import InputError
from pairscale.core.notices import is_told, plural
from pairscale.core.results import ORDER_KNOWN
from pairscale.core.samples import with_kept
from pairscale.core.tables import listed
from pairscale.judges.base import is_judge
from pairscale.models.bayes.logs import ITEM_LOG
from pairscale.models.bradley_terry import BTFit
from pairscale.models.fit_statistics import ITEM_WORDS, JUDGE_WORDS, flagged, mean_squares
from pairscale.models.model_checks import check_model
from pairscale.models.scores import win_scores
from pairscale.pairing.graph import summarize_pairs
from pairscale.reporting.page import (
    Report,
    calibration_parts,
    moment,
    origin_of,
    other_names,
    pair_writer,
    pairs_to_read,
    people_in,
    preview,
    renamed,
    texts_of,
)
from pairscale.reporting.picture import judge_fit_picture, run_lines, score_picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.core.arrays import Floats
    from pairscale.reporting.picture import Content, Picture, Row
    from pairscale.store.reading import Comparisons
    from pairscale.store.runfile import RunFile

_WORDS = ("ID1", "ID2", "outcome", "better_id", "judge_id", "probability", "content", "thoughts")
_JUDGES = ("judge_id", "model", "trait", "template_id")
_NAMED = ("ID1", "ID2", "better_id")
_COLUMNS = "group rank ID wins_of_100 score_lower score_upper score se rank_lower rank_upper wins comparisons top_prob"
_SURPRISING = 0.1  # an answer that the scores give less than this
_MAX_ENTRIES = 10
_FEWEST_JUDGES = 3  # from which on a chart says more than their table
_BARE = cs.by_name("ID", "text", require_all=False)


# Where a ranking comes from


def ranking_of_run(
    store: RunFile, condition_id: str | None = None, *, texts: bool = True, pseudonyms: bool = False
) -> Report:
    """Read a run file.

    Args:
        store: the run file.
        condition_id: which answers count; None for those of all judges together.
        texts: whether the report holds the texts, and what was said of them.
        pseudonyms: whether the texts have other names.

    Raises:
        InputError: when nothing was decided yet.
    """
    judgements = store.results(condition_id).select(_WORDS)
    samples = store.items()
    conditions = store.conditions()
    if condition_id is not None:
        conditions = conditions.filter(pl.col("condition_id") == condition_id)
    # Scores of an adaptive run are of its own judge's answers; with those of others they are fitted again.
    answered = conditions.filter(pl.col("win") > 0)["condition_id"].to_list()
    is_adaptive = answered == [store.get_meta("adaptive_condition")]
    status = adaptive_status(store) if is_adaptive else None
    refits = store.read_log("round_log") if is_adaptive else []
    items = items_so_far(store) if refits else None
    chosen = "beforehand" if store.get_meta("adaptive") is None else "adaptive"
    spending = store.spending(condition_id)
    origin = origin_of(store, pseudonyms=pseudonyms)
    if "win" not in judgements["outcome"]:
        raise InputError("the run file holds no decided comparison yet, so there is nothing to report")
    people = people_in(store)
    other: dict[str, str] = {}
    if pseudonyms:
        other = other_names(samples["ID"])
        samples = renamed(samples.select(_BARE), other, "ID")
        judgements = renamed(judgements, other, *_NAMED)
        people = renamed(people, other, *_NAMED)
        items = renamed(items, other, "ID")
    if items is not None and status is not None:
        withdrawn = [other.get(name, name) for name in status["withdrawn"]]
        names = ("stop_reason", "preset", "committed_pairs", "invalid")
        facts = _adaptive(items, refits, *(status[name] for name in names), withdrawn=withdrawn)
    else:
        decided = judgements.filter(pl.col("outcome") == "win")
        facts = _fitted(decided, decided, samples["ID"].to_list(), chosen)
    return _report(
        judges=conditions.select(_JUDGES),
        provenance=origin | {"conditions": ", ".join(conditions["condition_id"].to_list())},
        samples=samples,
        judgements=judgements,
        texts=texts,
        people=people,
        spending=spending,
        **facts,
    )


def ranking_of_results(
    comparisons: Comparisons, origin: Mapping[str, str], *, texts: bool = True, pseudonyms: bool = False
) -> Report:
    """Comparisons that no run of ours has asked for: a table of any form, or people's labels.

    Args:
        comparisons: with the texts where they are known.
        origin: where they come from.
        texts: whether the report holds the texts.
        pseudonyms: whether texts and people have other names.

    Raises:
        InputError: when nothing was decided.
    """
    table = comparisons.table
    samples = comparisons.samples
    ids = comparisons.ids
    provenance = {"read": comparisons.line, **origin}
    judge = judge_column(table)
    if pseudonyms:
        other = other_names([*table["ID1"], *table["ID2"], *(ids or ())])
        table = renamed(table, other, *_NAMED)
        samples = renamed(None if samples is None else samples.select(_BARE), other, "ID")
        ids = None if ids is None else [other[name] for name in ids]
        provenance = {}
        if judge is not None:
            who = {name for name in table[judge].cast(pl.String).drop_nulls() if not is_judge(name)}
            table = renamed(table.with_columns(pl.col(judge).cast(pl.String)), other_names(who, "J"), judge)
    judgements = _judgements(table, judge)
    if "win" not in judgements["outcome"]:
        raise InputError("no comparison has a winner, so there is nothing to report")
    facts = _fitted(table, judgements.filter(pl.col("outcome") == "win"), ids, comparisons.chosen)
    names = [] if judge is None else judgements["judge_id"].unique(maintain_order=True).to_list()
    return _report(
        judges=_judges(names),
        provenance=provenance,
        samples=samples,
        judgements=judgements,
        texts=texts,
        **facts,
    )


def ranking_of_result(
    result: AdaptiveResult | BTFit, samples: pl.DataFrame | None, judge: str | None, *, texts: bool, pseudonyms: bool
) -> Report:
    """An adaptive run or a fitted model that is kept in no file.

    Raises:
        InputError: when nothing was decided yet.
    """
    if isinstance(result, BTFit):
        facts = _of_fit(result) | {"comparisons": int(result.theta["comparisons"].sum()) // 2}
        provenance = {"fitted": moment(result.provenance.created_at)}
        judgements = None
    else:
        if not result.refits.height:
            raise InputError("this run has no comparison yet, so there is no ranking to report")
        refits = result.refits.to_dicts()
        state = result.state
        items = _of_last_refit(result.items)
        facts = _adaptive(
            items,
            refits,
            state.stop_reason,
            state.preset,
            state.engine.committed,
            state.invalid,
            withdrawn=state.withdrawn,
        )
        provenance = {"last refit": moment(refits[-1]["timestamp"])}
        judgements = _judgements(_steps(result.logs["step_log"]).with_columns(judge_id=pl.lit(judge)), "judge_id")
        samples = state.items if samples is None else samples
    if pseudonyms:
        other = other_names(facts["items"]["ID"])
        facts |= {
            "items": renamed(facts["items"], other, "ID"),
            "notices": (),
        }  # notices may name texts
        judgements = renamed(judgements, other, *_NAMED)
        samples = renamed(None if samples is None else samples.select(_BARE), other, "ID")
    return _report(
        judges=_judges([judge] if judge else []), provenance=provenance, samples=samples, judgements=judgements,
        texts=texts, **facts,
    )  # fmt: skip


def _judges(names: Sequence[str]) -> pl.DataFrame:
    """Judges of whom no more than the names is known."""
    return pl.DataFrame([{"judge_id": name} for name in names], schema=dict.fromkeys(_JUDGES, pl.String()))


def _fitted(table: pl.DataFrame, decided: pl.DataFrame, ids: Sequence[str] | None, chosen: str | None) -> Content:
    """The scores of comparisons as :func:`pairscale.fit` gives them, and its notices."""
    from pairscale.models.fitting import fit as fit_comparisons

    linked = summarize_pairs(decided.select("ID1", "ID2")).connected  # ranks need one scale
    fit = fit_comparisons(
        table,
        ids=ids,
        rank_intervals=linked,
        covariance=linked,
        separate=not linked,
        chosen=chosen,  # type: ignore[arg-type]
    )
    return _of_fit(fit)


def _of_fit(fit: Any) -> Content:
    """The scores of a fit; without ranks where groups never met, and without their intervals unless asked for."""
    theta = fit.theta
    ranks = ["rank", "rank_lower", "rank_upper"]
    theta = theta.with_columns(pl.lit(None).alias(name) for name in ranks if name not in theta.columns)
    group = [pl.col("component").alias("group")] if "component" in theta.columns else []
    items = theta.select(
        pl.col(ranks).cast(pl.Int64), *group, "ID", "lower", "upper", "wins", "comparisons", score="theta", se="se_mean"
    )
    return {
        "items": items, "model": fit.engine, "reliability": fit.reliability, "n_groups": len(fit.components),
        "notices": [*fit.notices], "covariance": fit.covariance,
    }  # fmt: skip


def _adaptive(
    items: pl.DataFrame,
    refits: Sequence[Row],
    stop_reason: str | None,
    preset: str,
    comparisons: int,
    invalid: int,
    *,
    withdrawn: Sequence[str],
) -> Content:
    """The scores of an adaptive run's last refit, how it stands, and what to be careful with."""
    notices = [f"the judge gave no valid answer {plural(invalid, 'time')}"] if invalid else []
    if withdrawn:
        notices.append(
            f"withdrawn: {plural(len(withdrawn), 'text')} ({listed(withdrawn)}), which reliability and stop do not "
            "count; their places rest on what was answered before"
        )
    return {
        "items": items, "model": "bayes", "reliability": refits[-1]["reliability"], "refits": refits,
        "stop_reason": stop_reason or "open", "preset": preset, "comparisons": comparisons, "notices": notices,
    }  # fmt: skip


def items_so_far(store: RunFile) -> pl.DataFrame:
    """The items of the last refit of an adaptive run, best first."""
    return _of_last_refit(pl.DataFrame(store.read_log("item_log", last=1)[0]["columns"], schema=ITEM_LOG))


def _of_last_refit(log: pl.DataFrame) -> pl.DataFrame:
    items = log.sort("theta_mean", descending=True, maintain_order=True).select(
        "rank", "ID", pl.col("top_prob").fill_null(0.0),  # a withdrawn text is no member
        score="theta_mean", se="theta_sd", lower="theta_p2.5", upper="theta_p97.5",
        rank_lower=pl.col("rank_p2.5").round().cast(pl.Int64), rank_upper=pl.col("rank_p97.5").round().cast(pl.Int64),
        comparisons="degree",
    )  # fmt: skip
    return items if log["top_prob"].count() else items.drop("top_prob")


def _judgements(table: pl.DataFrame, judge: str | None) -> pl.DataFrame:
    """Comparisons with the columns that a run has, the task, and whether it is known who stood first."""
    said = pl.col("outcome").cast(pl.String) if "outcome" in table.columns else pl.lit(None, pl.String)
    none = pl.when(said.is_in([*Outcome]) & (said != Outcome.WIN)).then(said).otherwise(pl.lit(str(Outcome.ABSTENTION)))
    who = pl.lit("judge") if judge is None else pl.col(judge).cast(pl.String).fill_null("judge")
    found = table.with_columns(
        who.alias("judge_id"), outcome=pl.when(OF_ITS_PAIR).then(pl.lit(str(Outcome.WIN))).otherwise(none)
    )
    missing = {"probability": pl.Float64(), "content": pl.String(), "thoughts": pl.String(), ORDER_KNOWN: pl.Boolean()}
    empty = [pl.lit(None, kind).alias(name) for name, kind in missing.items() if name not in found.columns]
    tasks = [name for name in TASK_COLUMNS if name in found.columns][:1]
    return found.with_columns(empty).select(*_WORDS, *tasks, pl.col(ORDER_KNOWN).fill_null(value=True))


def _steps(log: pl.DataFrame) -> pl.DataFrame:
    """The answers of an adaptive run."""
    y = pl.col("Y")
    return log.filter(pl.col("pair_id").is_not_null()).select(
        "probability", ID1="A_id", ID2="B_id", better_id=pl.when(y == 1).then("A_id").when(y == 0).then("B_id"),
        outcome=pl.when(y == 0.5).then(pl.lit("tie")),
    )  # fmt: skip


# The report


def _report(
    *,
    items: pl.DataFrame,
    judges: pl.DataFrame,
    reliability: float | None,
    model: str,
    provenance: Mapping[str, str],
    notices: Sequence[str],
    samples: pl.DataFrame | None,
    judgements: pl.DataFrame | None,
    texts: bool,
    people: pl.DataFrame | None = None,
    comparisons: int | None = None,
    refits: Sequence[Row] = (),
    stop_reason: str | None = None,
    preset: str | None = None,
    spending: pl.DataFrame | None = None,
    n_groups: int = 1,
    covariance: Floats | None = None,
) -> Report:
    """Put a ranking into figures and pictures.

    Args:
        items: one row per item, best first: ``rank ID score se lower upper rank_lower rank_upper comparisons``,
            and ``group`` where some never met.
        judges: who judged: ``judge_id model trait template_id``.
        reliability: of the scores; None where it means nothing.
        model: ``bayes`` for an adaptive run, else the engine of the Bradley–Terry fit.
        provenance: names and values.
        notices: what was left out, and what to be careful with.
        samples: the texts, with the other columns they came with.
        judgements: one row per answer, in the order in which they came; None when only their sum is known.
        texts: whether the report holds the texts, and what was said of them.
        people: their results, to hold probabilities against.
        comparisons: where it is not the number of decided judgements.
        refits: the round log of an adaptive run.
        stop_reason: why it ended; ``open`` while it is working.
        preset: of an adaptive run.
        spending: by model, template and day.
        n_groups: groups without a comparison between them.
        covariance: of the scores, where it is known.
    """
    decided = None if judgements is None else judgements.filter(pl.col("outcome") == "win")
    if decided is not None and "wins" not in items.columns:
        wins = decided.group_by(ID="better_id").agg(wins=pl.len().cast(pl.Int64))
        items = items.join(wins, on="ID", how="left", maintain_order="left").with_columns(pl.col("wins").fill_null(0))
    apart = None
    if n_groups == 1:
        apart = _apart(items, covariance)
        readable = win_scores(*(items[name].to_numpy() for name in ("score", "se", "lower", "upper")))
        names = ("wins_of_100", "score_lower", "score_upper")
        items = items.with_columns(pl.Series(name, column) for name, column in zip(names, readable, strict=True))
    last = refits[-1] if refits else {}
    shown, kept = (items, []) if samples is None else with_kept(items, samples)
    own_texts = texts_of(samples)
    shown_texts = own_texts if texts else {}
    ids = items["ID"].to_list()
    if comparisons is None:
        comparisons = 0 if decided is None else decided.height
    attention = _attention(items, decided)
    content = {
        "n": items.height,
        "comparisons": comparisons,
        "judges": judges.to_dicts(),
        "n_judges": judges["judge_id"].n_unique(),
        "slopes": panel_slopes(last),
        "model": model,
        "reliability": reliability,
        "provisional": provisional(last),
        "preset": preset,
        "stop_reason": stop_reason,
        "stop": _stop(stop_reason, last),
        "last": last,
        "told": [name for name in ("epsilon", "b") if is_told(last, name)],
        "top": top_sought(last),
        "n_groups": n_groups,
        "items": items.to_dicts(),
        "rank_width": (items["rank_upper"] - items["rank_lower"]).cast(float).median(),
        "apart": apart,
        "checks": [] if decided is None or n_groups > 1 else check_model(decided),
        "charts": _charts(items, apart),
        "convergence": _convergence(refits),
        "calibrations": [] if judgements is None else calibration_parts(_calibrated(judgements, people)),
        "place": {name: place for place, name in enumerate(ids)},
        **_table(shown, kept, shown_texts),
        **attention,
        **_health(judgements, decided),
    }
    trait = next(filter(None, judges["trait"]), "overall quality")
    writer = pair_writer(((row["winner"], row["loser"]) for row in attention["surprises"]), own_texts, trait)
    answers = judgements if texts or judgements is None else judgements.drop("content", "thoughts")
    return Report(
        "ranking.html",
        "Ranking",
        shown.rename({"score": "theta", "wins_of_100": "score"}) if apart is not None else shown,
        content,
        provenance,
        judges["judge_id"].to_list(),
        notices,
        spending,
        comparisons,
        pairs_to_read(ids, own_texts, judgements) if shown_texts else None,
        answers,
        writer if own_texts and decided is not None else None,
    )


def _apart(items: pl.DataFrame, covariance: Floats | None) -> Content:
    """Which texts are told apart: one is better than the other with a probability of 95 % or more.

    By the normal approximation, from the covariance of the scores, or from their standard errors alone where it is not
    known.
    """
    score = items["score"].to_numpy()
    variance = items["se"].to_numpy() ** 2 if covariance is None else np.diag(covariance)
    n_told_apart = 0
    alike = np.zeros(len(score), dtype=bool)
    for place in range(len(score) - 1):
        shared = 0.0 if covariance is None else covariance[place, place + 1 :]
        spread = np.sqrt(np.maximum(variance[place] + variance[place + 1 :] - 2 * shared, 0.0))
        is_apart = score[place] - score[place + 1 :] >= SURELY_BETTER * spread
        n_told_apart += int(is_apart.sum())
        if place == 0:
            alike[1:] = ~is_apart
    alike[0] = alike.any()
    pairs = len(score) * (len(score) - 1) // 2
    rivals = [name for name, is_alike in zip(items["ID"][1:], alike[1:], strict=True) if is_alike]
    return {"share": n_told_apart / pairs if pairs else None, "pairs": pairs, "alike": alike, "rivals": rivals}


def _stop(reason: str | None, last: Row) -> str:
    if reason == "btl_converged" and last:
        return f"The run stopped by its rule: {stop_in_words(last)}."
    if reason in STOPS:
        return f"The run stopped: {STOPS[reason]}."
    return "" if reason is None else f"The run is {how_it_stands(reason).replace('_', ' ')}."


def _charts(items: pl.DataFrame, apart: Row | None) -> list[Picture]:
    """A chart for every group; their scales share nothing, so neither do their axes."""
    if apart is not None:
        return [score_picture(items.with_columns(alike=pl.Series(apart["alike"], dtype=pl.Boolean)).to_dicts())]
    rows = items.to_dicts()
    return [score_picture(list(part), f"Group {name}") for name, part in groupby(rows, key=lambda row: row["group"])]


def _convergence(refits: Sequence[Row]) -> Picture | None:
    """How a run for the whole order got on."""
    if len(refits) < 2 or top_sought(refits[-1]) is not None:
        return None
    series = {
        "reliability": [row["reliability"] for row in refits],
        "rank stability": [row["rho_rank"] for row in refits],
    }
    label = "Reliability and rank stability along the run, refit by refit"
    return run_lines([row["total_pairs_done"] for row in refits], series, label, refits[-1]["eap_reliability_min"])


def _table(items: pl.DataFrame, kept: Sequence[str], texts: Mapping[str, str]) -> Content:
    """The table that can be searched and sorted: the figures, and the columns that came with the texts."""
    own = [name for name in _COLUMNS.split() if name in items.columns and items[name].null_count() == 0]
    whole = cs.by_name("wins_of_100", "score_lower", "score_upper", require_all=False).round().cast(pl.Int64)
    return {
        "own": own,
        "kept": [(name, "n" if items[name].dtype.is_numeric() else "", False) for name in kept],
        "rows": items.with_columns(whole).select(*own, *kept).rows(),
        "previews": [preview(texts.get(name, "")) for name in items["ID"]] if texts else [],
    }


def _calibrated(judgements: pl.DataFrame, people: pl.DataFrame | None) -> list[tuple[str, Any]]:
    """Per judge that states probabilities, how right they are."""
    stated = judgements.drop_nulls("probability")["judge_id"].unique(maintain_order=True).to_list()
    by_judge = {who: calibrations_of(judgements.filter(judge_id=who), people) for who in stated}
    return [
        (who if len(by_judge) > 1 else "", calibration)
        for who, calibrations in by_judge.items()
        for calibration in calibrations
    ]


def _attention(items: pl.DataFrame, decided: pl.DataFrame | None) -> Content:
    """What deserves a second look: surprising answers, texts that fit badly; and how each judge fits."""
    if decided is None:
        return {"surprises": [], "misfits": [], "judge_fit": [], "judge_chart": None, "looked": False}
    score = items.select("ID", "score")
    first_won = pl.col("better_id") == pl.col("ID1")
    rows = (
        decided.select("judge_id", winner="better_id", loser=pl.when(first_won).then("ID2").otherwise("ID1"))
        .join(score.rename({"ID": "winner", "score": "high"}), on="winner", maintain_order="left")
        .join(score.rename({"ID": "loser", "score": "low"}), on="loser", maintain_order="left")
        .filter(pl.col("winner") != pl.col("loser"))
        .with_columns(p=1 / (1 + (pl.col("low") - pl.col("high")).exp()))
    )
    surprises = rows.filter(pl.col("p") < _SURPRISING).sort("p", "winner", "loser").head(_MAX_ENTRIES)
    both = pl.concat([rows.select("p", ID="winner"), rows.select("p", ID="loser")])
    texts = _fit(both, "ID", ITEM_WORDS).filter(pl.col("reason") == ITEM_WORDS[0])
    as_scored = (((pl.col("p") - 0.5).sign() + 1) / 2).mean()  # equal scores count half
    agreement = rows.group_by("judge_id").agg(agreement=as_scored)
    judges = _fit(rows, "judge_id", JUDGE_WORDS).join(agreement, on="judge_id", maintain_order="left").to_dicts()
    return {
        "surprises": surprises.to_dicts(),
        "misfits": texts.head(_MAX_ENTRIES).to_dicts(),
        "judge_fit": judges,
        "judge_chart": judge_fit_picture(judges) if len(judges) >= _FEWEST_JUDGES else None,
        "looked": True,
    }


def _fit(rows: pl.DataFrame, name: str, words: tuple[str, str]) -> pl.DataFrame:
    """How each fits the scores: the winner was expected to win with p, so that the residual is 1 - p."""
    known = rows[name].unique(maintain_order=True)
    number = rows[name].replace_strict(known, np.arange(len(known)), return_dtype=pl.Int64()).to_numpy()
    p = rows["p"].to_numpy()
    table = mean_squares(number, (1 - p) ** 2, p * (1 - p), len(known), np.ones(len(p))).insert_column(0, known)
    return flagged(table, name, words)


def _health(judgements: pl.DataFrame | None, decided: pl.DataFrame | None) -> Content:
    """How the judge behaved: valid answers, first position, the same question asked again; and who met whom."""
    if judgements is None or decided is None:
        return {"outcomes": {}, "first": None, "repeated": 0, "consistent": None, "pairs": 0}
    sided = decided.filter(ORDER_KNOWN) if ORDER_KNOWN in decided.columns else decided
    first = int((sided["better_id"] == sided["ID1"]).sum())
    low = pl.min_horizontal("ID1", "ID2")
    asked = ["judge_id", *(name for name in TASK_COLUMNS if name in decided.columns)]
    met = decided.select(*asked, a=low, b=pl.max_horizontal("ID1", "ID2"), won=(pl.col("better_id") == low).cast(int))
    again = met.group_by(*asked, "a", "b").agg(n=pl.len().cast(int), won=pl.col("won").sum()).filter(pl.col("n") > 1)
    # Of two answers to the same question, drawn without replacement: how often are they the same?
    n, won = pl.col("n"), pl.col("won")
    same = (won * (won - 1) + (n - won) * (n - won - 1)).sum() / (n * (n - 1)).sum()
    counts = dict(judgements["outcome"].value_counts().iter_rows())
    return {
        "outcomes": {name: counts.get(name, 0) for name in ("win", "tie", "flip", "abstention", "error")},
        "first": first / sided.height if sided.height else None,
        "first_interval": wilson(first, sided.height, 0.95) if sided.height else None,
        "repeated": again.height,
        "consistent": again.select(same).item() if again.height else None,
        "pairs": met.select("a", "b").n_unique(),
    }
