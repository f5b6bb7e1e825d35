"""What a report of a ranking says, computed from a run file, an adaptive run or a fitted model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.adaptive.config import AdaptiveConfig
from pairscale.adaptive.messages import provisional
from pairscale.adaptive.status import adaptive_status
from pairscale.checks.calibration import Calibration, calibrations_of
from pairscale.collect.taken_over import count_taken_over, taken_over_line
from pairscale.core.columns import TASK_COLUMNS, judge_column
from pairscale.core.comparisons import OF_ITS_PAIR, Outcome
from pairscale.core.errors import InputError
from pairscale.core.results import ORDER_KNOWN, read_form
from pairscale.core.samples import with_kept
from pairscale.judges.names import is_judge
from pairscale.models.bayes.logs import ITEM_LOG
from pairscale.models.bradley_terry import BTFit, Chosen, fit_bt_model
from pairscale.pairing.graph import summarize_pairs
from pairscale.reporting._attention import Attention, look_again
from pairscale.reporting._cases import pair_case, write_cases
from pairscale.reporting._disguise import other_names, renamed, silent
from pairscale.reporting._origin import RESULTS_READ, moment, origin_of, without_settings
from pairscale.store.labels import label_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.reporting._shell import Page
    from pairscale.store.reading import Comparisons
    from pairscale.store.runfile import RunFile

_WORDS = ("ID1", "ID2", "outcome", "better_id", "judge_id", "probability", "content", "thoughts")
_JUDGES = ("judge_id", "model", "trait", "template_id")


@dataclass(frozen=True, slots=True)
class RankingFacts:
    """Everything that a report shows, before it is put into words and pictures.

    Attributes:
        items: one row per item, best first: ``rank ID score se lower upper rank_lower rank_upper wins comparisons``,
            and ``group`` where some never met.
        comparisons: decided ones; in an adaptive run that counts ties, these too.
        texts: by ID.
        judges: who judged: ``judge_id model trait template_id``.
        reliability: of the scores; None where it means nothing.
        model: ``bayes`` for an adaptive run, else the engine of the Bradley–Terry fit.
        provenance: names and values, for the end of the page.
        notices: what was left out, and what to be careful with.
        judgements: one row per answer, in the order in which they came; None when only their sum is known.
        attention: what deserves a second look, then graph: figures on who met whom, and health: on the judge; known
            when the judgements are.
        refits: the round log of an adaptive run.
        stop_reason: why it ended; ``open`` while it is working.
        preset: The preset of an adaptive run.
        spending: by model, template and day.
        n_groups: groups without a comparison between them.
        kept: columns of ``items`` that came with the texts, such as a name or a class.
        calibrations: who stated probabilities, and how right they are, against people and against the other order.
        people: who of the judges is a person, whose name a page that is shared leaves out.
    """

    items: pl.DataFrame
    comparisons: int
    texts: Mapping[str, str]
    judges: pl.DataFrame
    reliability: float | None
    model: str
    provenance: Mapping[str, str]
    notices: Sequence[str]
    judgements: pl.DataFrame | None = None
    attention: Attention | None = None
    graph: Mapping[str, Any] | None = None
    health: Mapping[str, Any] | None = None
    refits: pl.DataFrame | None = None
    stop_reason: str | None = None
    preset: str | None = None
    spending: pl.DataFrame | None = None
    n_groups: int = 1
    kept: Sequence[str] = ()
    calibrations: Sequence[tuple[str, Calibration]] = ()
    people: Sequence[str] = ()

    @property
    def provisional(self) -> str:
        """What is put behind the reliability where the diagnostics of the last refit failed."""
        return "" if self.refits is None else provisional(self.refits.row(-1, named=True))

    def rows(self, *, texts: bool) -> pl.DataFrame:  # noqa: ARG002 - there are none in it
        """What goes into a spreadsheet: the items."""
        return self.items

    def page(self, *, texts: bool) -> Page:
        """The report."""
        from pairscale.reporting._ranking import ranking_page

        return ranking_page(self, texts=texts)

    def disguised(self) -> RankingFacts:
        """The same facts with other names for the texts."""
        other, found = other_names(self.items["ID"]), self.attention
        who = {name: name for name in self.judges["judge_id"]} | other_names(self.people, "J")
        return replace(
            self,
            judges=renamed(self.judges, who, "judge_id"),
            people=(),
            calibrations=[(who.get(name, name), one) for name, one in self.calibrations],
            items=renamed(self.items.drop(self.kept), other, "ID"),
            kept=(),
            judgements=None
            if self.judgements is None
            else _renamed(renamed(self.judgements, other, "ID1", "ID2", "better_id"), who),
            texts={other[name]: text for name, text in self.texts.items() if name in other},
            attention=found
            and replace(
                found,
                surprises=_renamed(renamed(found.surprises, other, "winner", "loser"), who),
                misfits=renamed(found.misfits, other, "ID"),
                vague=renamed(found.vague, other, "ID"),
                judges=_renamed(found.judges, who),
                judge_fit=_renamed(found.judge_fit, who),
            ),
            notices=silent(self.notices, [*other, *self.people]),
            provenance=without_settings(self.provenance),
        )

    def write_again(self, path: Path) -> int:
        """Write the surprising pairs as cases for people to label, and say how many there are."""
        trait = next((name for name in self.judges["trait"] if name), "overall quality")
        surprising = [] if self.attention is None else self.attention.pairs().rows()
        pairs = dict.fromkeys((min(pair), max(pair)) for pair in surprising)
        return write_cases([pair_case(*pair, self.texts, trait) for pair in pairs], path)


def _renamed(table: pl.DataFrame, who: Mapping[str, str]) -> pl.DataFrame:
    """A table under the other names of judges; what is no name of one stays."""
    return table.with_columns(pl.col("judge_id").replace(dict(who)))


def facts_of_run(store: RunFile, condition_id: str | None = None) -> RankingFacts:
    """Read a run file and compute what there is to say.

    Args:
        store: the run file.
        condition_id: which answers count; None for those of all judges together.

    Raises:
        InputError: when nothing was decided yet.
    """
    with store.snapshot():  # the run may be writing
        judgements = store.results(condition_id).select(_WORDS)
        decided = judgements.filter(pl.col("outcome") == "win")
        if not decided.height:
            raise InputError("the run file holds no decided comparison yet, so there is nothing to report")
        samples, conditions = store.items(), store.conditions()
        if condition_id is not None:
            conditions = conditions.filter(pl.col("condition_id") == condition_id)
        # Scores of an adaptive run are of its own judge's answers; with those of others they are fitted again.
        answered = conditions.filter(pl.col("win") > 0)["condition_id"].to_list()
        found = _adaptive(store) if answered == [store.get_meta("adaptive_condition")] else None
        spending, origin = store.spending(condition_id), origin_of(store)
        taken_over = count_taken_over(store, condition_id)
        ties = found is not None and _counts_ties(store)
        people = label_results(store)
    if found is not None:
        items, more = found
    else:
        linked = summarize_pairs(decided.select("ID1", "ID2")).connected  # ranks need one scale
        ids = samples["ID"].to_list()
        chosen: Chosen = "beforehand" if store.get_meta("adaptive") is None else "adaptive"
        fit = fit_bt_model(decided, ids=ids, rank_intervals=linked, unconnected="separate", seed=1, chosen=chosen)
        items = _items_of(fit.theta)
        more = {"model": fit.engine, "notices": fit.notices, "reliability": fit.reliability}
        more["n_groups"] = len(fit.components)
    if taken_over:
        more["notices"] = [*more["notices"], taken_over_line(taken_over)]
    return RankingFacts(
        texts=dict(samples.select("ID", "text").iter_rows()) if "text" in samples.columns else {},
        judges=conditions.select(_JUDGES),
        provenance=origin | {"conditions": ", ".join(conditions["condition_id"].to_list())},
        spending=spending,
        calibrations=_calibrated(judgements, read_form(people).table if people.height else None),
        **_judged(items, judgements, more.get("refits"), samples, ties=ties),
        **more,
    )


def facts_of_results(known: Comparisons, origin: Mapping[str, str]) -> RankingFacts:
    """What there is to say of comparisons that no run of ours has asked for: a table of any form, or people's labels.

    Args:
        known: the comparisons, with the texts where they are known.
        origin: where they come from, for the end of the page.

    Raises:
        InputError: when nothing was decided.
    """
    from pairscale.models.fitting import fit as fit_comparisons

    table = known.table
    judge = judge_column(table)
    judgements = _judgements(table, judge)
    decided = judgements.filter(pl.col("outcome") == "win")
    if not decided.height:
        raise InputError("no comparison has a winner, so there is nothing to report")
    linked = summarize_pairs(decided.select("ID1", "ID2")).connected  # ranks need one scale
    # No column of another tool decides what a comparison counts, unless it is called weight.
    fit = fit_comparisons(table, ids=known.ids, rank_intervals=linked, separate=not linked, chosen=known.chosen)
    assert isinstance(fit, BTFit)  # noqa: S101 - the default model
    has_texts = known.samples is not None and "text" in known.samples.columns
    judges = pl.DataFrame(schema=dict.fromkeys(_JUDGES, pl.String()))
    if judge is not None:
        named = [pl.col(name) for name in _JUDGES[1:] if name in table.columns]
        told = table.select(pl.col(judge).alias("judge_id"), *named).unique(maintain_order=True).drop_nulls("judge_id")
        judges = pl.concat([judges, told.cast(pl.String)], how="diagonal")
        own_name = pl.col("model") == pl.col("judge_id")  # a person has no model
        judges = judges.with_columns(model=pl.when(own_name).then(None).otherwise("model"))
    return RankingFacts(
        texts=_texts(known.samples) if has_texts else {},
        judges=judges,
        reliability=fit.reliability,
        model=fit.engine,
        provenance={RESULTS_READ: known.line, **origin},
        notices=[*fit.notices],
        n_groups=len(fit.components),
        calibrations=_calibrated(judgements),
        people=[name for name in judges["judge_id"].unique(maintain_order=True) if not is_judge(name)],
        **_judged(_items_of(fit.theta), judgements, None, known.samples, ties=False),
    )


def _judgements(table: pl.DataFrame, judge: str | None) -> pl.DataFrame:
    """Comparisons with the columns that a run has, the task, and whether it is known who stood first."""
    said = pl.col("outcome").cast(pl.String) if "outcome" in table.columns else pl.lit(None, pl.String)
    none = pl.when(said.is_in([*Outcome]) & (said != Outcome.WIN)).then(said).otherwise(pl.lit(str(Outcome.ABSTENTION)))
    found = table.with_columns(outcome=pl.when(OF_ITS_PAIR).then(pl.lit(str(Outcome.WIN))).otherwise(none))
    who = pl.lit("judge") if judge is None else pl.col(judge).cast(pl.String).fill_null("judge")
    found = found.with_columns(who.alias("judge_id"))
    missing = {"probability": pl.Float64(), "content": pl.String(), "thoughts": pl.String(), ORDER_KNOWN: pl.Boolean()}
    empty = [pl.lit(None, kind).alias(name) for name, kind in missing.items() if name not in found.columns]
    tasks = [name for name in TASK_COLUMNS if name in found.columns][:1]
    return found.with_columns(empty).select(*_WORDS, *tasks, pl.col(ORDER_KNOWN).fill_null(value=True))


def _calibrated(judgements: pl.DataFrame, people: pl.DataFrame | None = None) -> list[tuple[str, Calibration]]:
    """Per judge that states probabilities, how right they are."""
    stated = judgements.drop_nulls("probability")["judge_id"].unique(maintain_order=True).to_list()
    found = {who: calibrations_of(judgements.filter(judge_id=who), people) for who in stated}
    return [(who if len(found) > 1 else "", one) for who, each in found.items() for one in each]


def _adaptive(store: RunFile) -> tuple[pl.DataFrame, dict[str, Any]] | None:
    """The items of an adaptive run and what else it knows of itself; None before its first refit."""
    status, rows = adaptive_status(store), store.read_log("round_log")
    if status is None or not rows:
        return None
    refits = pl.DataFrame(rows, infer_schema_length=None)
    notices = [*_invalid(status["invalid"]), *_withdrawn(status["withdrawn"])]
    more: dict[str, Any] = {"model": "bayes", "notices": notices, "refits": refits}
    more |= {"reliability": refits["reliability"].to_list()[-1], "stop_reason": status["stop_reason"] or "open"}
    more["preset"] = status["preset"]
    return items_so_far(store), more


def facts_of_result(
    result: AdaptiveResult, samples: pl.DataFrame | None = None, judge: str | None = None
) -> RankingFacts:
    """What there is to say of an adaptive run that is kept in no file.

    Raises:
        InputError: when nothing was decided yet.
    """
    if not result.refits.height:
        raise InputError("this run has no comparison yet, so there is no ranking to report")
    log = result.logs["step_log"].filter(pl.col("pair_id").is_not_null())
    judgements = log.select(
        ID1="A_id", ID2="B_id", outcome=pl.when(pl.col("Y") == 0.5).then(pl.lit("tie")).otherwise(pl.lit("win")),
        better_id=pl.when(pl.col("Y") == 1).then("A_id").when(pl.col("Y") == 0).then("B_id"),
        judge_id=pl.lit(judge or "judge"), probability="probability", content=pl.lit(None, pl.String()),
        thoughts=pl.lit(None, pl.String()),
    )  # fmt: skip
    return RankingFacts(
        texts=_texts(samples),
        judges=_judge_named(judge),
        reliability=result.refits["reliability"].to_list()[-1],
        model="bayes",
        provenance={"last refit": moment(result.refits["timestamp"].to_list()[-1])},
        notices=[*_invalid(result.state.invalid), *_withdrawn(result.state.withdrawn)],
        refits=result.refits,
        stop_reason=result.state.stop_reason or "open",
        preset=result.state.preset,
        calibrations=_calibrated(judgements),
        **_judged(
            _of_last_refit(result.items),
            judgements,
            result.refits,
            result.state.items,
            ties=result.state.engine.counts_ties,
        ),
    )


def facts_of_fit(fit: BTFit, samples: pl.DataFrame | None = None, judge: str | None = None) -> RankingFacts:
    """What there is to say of a fitted model, which knows the sums and no single judgement."""
    items = _items_of(fit.theta)
    return RankingFacts(
        items=items,
        comparisons=int(items["comparisons"].sum()) // 2,
        texts=_texts(samples),
        judges=_judge_named(judge),
        reliability=fit.reliability,
        model=fit.engine,
        provenance={"fitted": moment(fit.provenance.created_at)},
        notices=fit.notices,
        n_groups=len(fit.components),
    )


def _counts_ties(store: RunFile) -> bool:
    """Whether ties are answers in an adaptive run."""
    events = store.read_log("adaptive_events")
    given = [event["adaptive_config"] for event in events if event["event"] in ("start", "configure")]
    return AdaptiveConfig.for_items(len(events[0]["ids"]), given[-1]).ties == "half"


def _judged(
    items: pl.DataFrame,
    judgements: pl.DataFrame,
    refits: pl.DataFrame | None,
    samples: pl.DataFrame | None,
    *,
    ties: bool,
) -> dict[str, Any]:
    """What follows from the single judgements; ``ties`` says whether ties and flips are comparisons, too.

    The columns of the samples come last: one of them may be called ``wins``.
    """
    decided = judgements.filter(pl.col("outcome") == "win")
    counted = judgements.filter(pl.col("outcome").is_in(["win", "tie", "flip"] if ties else ["win"]))
    if "wins" not in items.columns:
        wins = decided.group_by(ID="better_id").agg(wins=pl.len().cast(pl.Int64))
        items = items.join(wins, on="ID", how="left", maintain_order="left").with_columns(pl.col("wins").fill_null(0))
    shown, kept = (items, []) if samples is None else with_kept(items, samples)
    return {
        "items": shown,
        "kept": kept,
        "comparisons": counted.height,
        "judgements": judgements,
        "attention": look_again(items, decided),
        "graph": _graph(items, decided),
        "health": _health(judgements, decided, refits),
    }


def _texts(samples: pl.DataFrame | None) -> dict[str, str]:
    return {} if samples is None else dict(samples.select("ID", "text").iter_rows())


def _judge_named(judge: str | None) -> pl.DataFrame:
    rows = [] if judge is None else [{"judge_id": judge}]
    return pl.DataFrame(rows, schema=dict.fromkeys(_JUDGES, pl.String()))


def _invalid(count: int) -> list[str]:
    return [f"the judge gave no valid answer {count:,} times"] if count else []


def _withdrawn(ids: Sequence[str]) -> list[str]:
    """What a report says of texts that were withdrawn."""
    if not ids:
        return []
    what = "1 text was withdrawn" if len(ids) == 1 else f"{len(ids):,} texts were withdrawn"
    named = f"{', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}"
    told = "reliability and stop do not count withdrawn texts, whose places rest on what was answered before"
    return [f"{what} ({named}): {told}"]


def items_so_far(store: RunFile) -> pl.DataFrame:
    """The items of the last refit of an adaptive run, best first."""
    return _of_last_refit(pl.DataFrame(store.read_log("item_log", last=1)[0]["columns"], schema=ITEM_LOG))


def _of_last_refit(log: pl.DataFrame) -> pl.DataFrame:
    found = log.sort("theta_mean", descending=True, maintain_order=True).select(
        rank="rank",
        ID="ID",
        score="theta_mean",
        se="theta_sd",
        lower="theta_p2.5",
        upper="theta_p97.5",
        rank_lower=pl.col("rank_p2.5").round().cast(pl.Int64),
        rank_upper=pl.col("rank_p97.5").round().cast(pl.Int64),
        comparisons="degree",
        top_prob=pl.col("top_prob"),
    )
    if found["top_prob"].null_count() == found.height:  # the run was for the whole order
        return found.drop("top_prob")
    return found.with_columns(pl.col("top_prob").fill_null(0.0))  # a withdrawn text is no member


def _items_of(theta: pl.DataFrame) -> pl.DataFrame:
    """The scores of a fit; without ranks where groups never met, and without their intervals unless asked for."""
    there = set(theta.columns)
    return theta.select(
        *(
            (pl.col(name) if name in there else pl.lit(None)).cast(pl.Int64).alias(name)
            for name in ("rank", "rank_lower", "rank_upper")
        ),
        *([pl.col("component").alias("group")] if "component" in there else []),
        ID="ID",
        score="theta",
        se="se_mean",
        lower="lower",
        upper="upper",
        wins="wins",
        comparisons="comparisons",
    )


def _graph(items: pl.DataFrame, decided: pl.DataFrame) -> dict[str, Any]:
    n = items.height
    pairs = decided.select(a=pl.min_horizontal("ID1", "ID2"), b=pl.max_horizontal("ID1", "ID2")).n_unique()
    degree = items["comparisons"]
    return {
        "pairs": pairs,
        "share": pairs / (n * (n - 1) / 2) if n > 1 else 0.0,
        "least": degree.min(),
        "median": degree.median(),
        "most": degree.max(),
    }


def _health(judgements: pl.DataFrame, decided: pl.DataFrame, refits: pl.DataFrame | None) -> dict[str, Any]:
    """How the judge behaved: valid answers, first position, the same question asked again."""
    from pairscale.checks.effect import wilson

    sided = decided.filter(ORDER_KNOWN) if ORDER_KNOWN in decided.columns else decided
    n = sided.height
    first = int((sided["better_id"] == sided["ID1"]).sum())
    asked = ["judge_id", *(name for name in TASK_COLUMNS if name in decided.columns)]
    pair = decided.select(
        *asked,
        a=pl.min_horizontal("ID1", "ID2"),
        b=pl.max_horizontal("ID1", "ID2"),
        won=(pl.col("better_id") == pl.min_horizontal("ID1", "ID2")).cast(pl.Int64()),
    )
    again = pair.group_by(*asked, "a", "b").agg(n=pl.len(), won=pl.col("won").sum()).filter(pl.col("n") > 1)
    # Of two answers to the same question, drawn without replacement: how often are they the same?
    same = (
        again["won"] * (again["won"] - 1) + (again["n"] - again["won"]) * (again["n"] - again["won"] - 1)
    ).to_numpy()
    two = (again["n"] * (again["n"] - 1)).to_numpy()
    outcomes = dict(judgements["outcome"].value_counts().iter_rows())
    last = {} if refits is None else refits.row(-1, named=True)
    return {
        "answers": judgements.height,
        "outcomes": {name: outcomes.get(name, 0) for name in ("win", "tie", "flip", "abstention", "error")},
        "first": first / n if n else None,
        "first_interval": wilson(first, n, 0.95) if n else None,
        "repeated": again.height,
        "consistent": float(np.sum(same) / np.sum(two)) if again.height else None,
        "lapse": last.get("epsilon_mean"),
        "lapse_interval": (last.get("epsilon_p2.5"), last.get("epsilon_p97.5")),
        "n_reversed": last.get("n_reversed"),
        "n_flips": last.get("n_flips"),
        "bias": last.get("b_mean"),
        "bias_interval": (last.get("b_p2.5"), last.get("b_p97.5")),
    }
