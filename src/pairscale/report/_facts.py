"""What a report of a ranking says, computed from a run file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.adaptive.session import adaptive_status
from pairscale.errors import InputError
from pairscale.models.logs import ITEM_LOG, ROUND_LOG
from pairscale.report._attention import Attention, look_again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.store import RunFile

__all__ = ["Facts", "facts_of_run"]

_WORDS = ("ID1", "ID2", "outcome", "better_id", "judge_id", "probability", "content", "thoughts")


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report shows, before it is put into words and pictures.

    Attributes:
        items: one row an item, best first: ``rank ID score se lower upper rank_lower rank_upper wins comparisons``.
        judgements: one row an answer, in the order in which they came.
        texts: by ID.
        conditions: who judged, as the run file has it.
        reliability: of the scores; None where it means nothing.
        model: ``bayes`` for an adaptive run, else the engine of the Bradley–Terry fit.
        adaptive: where the adaptive run stands, when it is one.
        refits: the round log of an adaptive run; no rows otherwise.
        spending: by model, template and day.
        attention: what deserves a second look.
        graph: figures on who met whom.
        health: figures on the judge.
        provenance: names and values, for the end of the page.
        notices: what was left out, and what to be careful with.
        n_groups: groups without a comparison between them.
    """

    items: pl.DataFrame
    judgements: pl.DataFrame
    texts: Mapping[str, str]
    conditions: pl.DataFrame
    reliability: float | None
    model: str
    adaptive: Mapping[str, Any] | None
    refits: pl.DataFrame
    spending: pl.DataFrame
    attention: Attention
    graph: Mapping[str, Any]
    health: Mapping[str, Any]
    provenance: Mapping[str, str]
    notices: Sequence[str]
    n_groups: int = 1


def facts_of_run(store: RunFile, condition_id: str | None = None) -> Facts:
    """Read a run file and compute what there is to say.

    Args:
        store: the run file.
        condition_id: which answers count; None for those of all judges together.

    Raises:
        InputError: when nothing was decided yet.
    """
    results = store.results(condition_id)
    judgements = results.select(*(name for name in _WORDS), *(c for c in ("received_at", "latency_s", "cost")))
    decided = judgements.filter(pl.col("outcome") == "win")
    if not decided.height:
        raise InputError("the run file holds no decided comparison yet, so there is nothing to report")
    status = adaptive_status(store)
    refits = _refits(store)
    samples = store.items()
    if status is not None and refits.height:
        items, notices, model, groups = _adaptive_items(store, decided), [], "bayes", 1
        reliability = refits["reliability_EAP"].to_list()[-1]
        if status["invalid"]:
            notices.append(f"the judge gave no valid answer {status['invalid']:,} times")
    else:
        items, reliability, model, notices, groups = _fitted(decided, samples["ID"].to_list())
    conditions = store.conditions()
    if condition_id is not None:
        conditions = conditions.filter(pl.col("condition_id") == condition_id)
    return Facts(
        items=items,
        judgements=judgements,
        texts=dict(samples.select("ID", "text").iter_rows()) if "text" in samples.columns else {},
        conditions=conditions,
        reliability=reliability,
        model=model,
        adaptive=status,
        refits=refits,
        spending=store.spending(),
        attention=look_again(items, decided),
        graph=_graph(items, decided),
        health=_health(judgements, decided, refits),
        provenance={
            "run file made by": f"{store.get_meta('created_by')}, {str(store.get_meta('created_at'))[:16]} UTC",
            "judges": "; ".join(conditions["judge_id"].unique(maintain_order=True).to_list()),
            "conditions": ", ".join(conditions["condition_id"].to_list()),
        },
        notices=notices,
        n_groups=groups,
    )


def _refits(store: RunFile) -> pl.DataFrame:
    rows = store.read_log("round_log")
    names = [name for name in ROUND_LOG if not rows or name in rows[0]]
    return pl.DataFrame(rows, schema_overrides={"timestamp": pl.String()}, infer_schema_length=None).select(
        name for name in names if rows
    )


def _adaptive_items(store: RunFile, decided: pl.DataFrame) -> pl.DataFrame:
    """The items of the last refit."""
    last = store.read_log("item_log")[-1]
    log = pl.DataFrame(last["columns"], schema=ITEM_LOG).sort("theta_mean", descending=True, maintain_order=True)
    wins = decided.group_by(ID="better_id").agg(wins=pl.len())
    return log.join(wins, on="ID", how="left", maintain_order="left").select(
        rank=pl.col("theta_mean").rank("min", descending=True).cast(pl.Int64),
        ID="ID",
        score="theta_mean",
        se="theta_sd",
        lower="theta_p2.5",
        upper="theta_p97.5",
        rank_lower=pl.col("rank_p2.5").round().cast(pl.Int64),
        rank_upper=pl.col("rank_p97.5").round().cast(pl.Int64),
        wins=pl.col("wins").fill_null(0).cast(pl.Int64),
        comparisons="degree",
    )


def _fitted(decided: pl.DataFrame, ids: list[str]) -> tuple[pl.DataFrame, float | None, str, list[str], int]:
    from pairscale.models.bradley_terry import fit_bt_model

    fit = fit_bt_model(decided, ids=ids, rank_intervals=True, unconnected="separate", seed=1)
    theta = fit.theta
    ranked = {"rank", "rank_lower", "rank_upper"} <= set(theta.columns)
    items = theta.select(
        rank=pl.col("rank").cast(pl.Int64) if ranked else pl.lit(None, pl.Int64()),
        ID="ID",
        score="theta",
        se="se_mean",
        lower="lower",
        upper="upper",
        rank_lower=pl.col("rank_lower").cast(pl.Int64) if ranked else pl.lit(None, pl.Int64()),
        rank_upper=pl.col("rank_upper").cast(pl.Int64) if ranked else pl.lit(None, pl.Int64()),
        wins="wins",
        comparisons="comparisons",
    )
    return items, fit.reliability, fit.engine, list(fit.notices), len(fit.components)


def _graph(items: pl.DataFrame, decided: pl.DataFrame) -> dict[str, Any]:
    n = items.height
    pairs = decided.select(a=pl.min_horizontal("ID1", "ID2"), b=pl.max_horizontal("ID1", "ID2")).n_unique()
    degree = items["comparisons"]
    return {
        "comparisons": decided.height,
        "pairs": pairs,
        "share": pairs / (n * (n - 1) / 2) if n > 1 else 0.0,
        "least": degree.min(),
        "median": degree.median(),
        "most": degree.max(),
    }


def _health(judgements: pl.DataFrame, decided: pl.DataFrame, refits: pl.DataFrame) -> dict[str, Any]:
    """How the judge behaved: valid answers, first position, the same question asked again."""
    from pairscale.checks._effect import wilson

    n = decided.height
    first = int((decided["better_id"] == decided["ID1"]).sum())
    pair = decided.select(
        a=pl.min_horizontal("ID1", "ID2"),
        b=pl.max_horizontal("ID1", "ID2"),
        won=(pl.col("better_id") == pl.min_horizontal("ID1", "ID2")).cast(pl.Int64()),
    )
    again = pair.group_by("a", "b").agg(n=pl.len(), won=pl.col("won").sum()).filter(pl.col("n") > 1)
    # Of two answers to the same question, drawn without replacement: how often are they the same?
    same = (
        again["won"] * (again["won"] - 1) + (again["n"] - again["won"]) * (again["n"] - again["won"] - 1)
    ).to_numpy()
    two = (again["n"] * (again["n"] - 1)).to_numpy()
    outcomes = dict(judgements["outcome"].value_counts().iter_rows())
    last = refits.row(-1, named=True) if refits.height else {}
    return {
        "answers": judgements.height,
        "outcomes": {name: outcomes.get(name, 0) for name in ("win", "tie", "flip", "abstention", "error")},
        "first": first / n,
        "first_interval": wilson(first, n, 0.95),
        "repeated": again.height,
        "consistent": float(np.sum(same) / np.sum(two)) if again.height else None,
        "lapse": last.get("epsilon_mean"),
        "lapse_interval": (last.get("epsilon_p2.5"), last.get("epsilon_p97.5")),
        "bias": last.get("b_mean"),
        "bias_interval": (last.get("b_p2.5"), last.get("b_p97.5")),
    }
