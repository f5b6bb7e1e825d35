"""Studies over seeds: selectors, numbers of items, spreads of ability, judgements in flight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from pairscale.adaptive.config import OURS, AdaptiveConfig, BTLConfig, Preset, resolve_preset, stopping_at
from pairscale.adaptive.selectors import OwnSelector, named_selector, selector_name
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import Done, require_jobs, values_of
from pairscale.core.options import ProgressMode, checked, optional, require_int, require_number, require_probability
from pairscale.judges.simulated import SimulatedJudge
from pairscale.simulation.run import CURVE, SimulatedRun, simulate_all

if TYPE_CHECKING:
    from pairscale.adaptive.refits import FitFn

SETTING: dict[str, pl.DataType] = {
    "n_items": pl.Int64(),
    "ability_sd": pl.Float64(),
    "judge": pl.String(),
    "concurrency": pl.Int64(),
    "selector": pl.String(),
}
"""What tells the runs of a study apart, besides the seed."""

_OF_RUN = SETTING | {"seed": pl.Int64()}
_ENDS = ("spearman_eap", "reliability_claimed", "reliability_true", "excess")
RUNS: dict[str, pl.DataType] = _OF_RUN | {
    "comparisons": pl.Int64(),
    "per_item": pl.Float64(),
    "asked": pl.Int64(),
    "stop_reason": pl.String(),
    "stopped_at": pl.Int64(),
    **dict.fromkeys(_ENDS, pl.Float64()),
    "error": pl.String(),
}
"""The columns of ``SimulationStudy.runs``."""

FIGURES = tuple(name for name in CURVE if name != "comparisons")
_SAME = tuple(name for name in SETTING if name != "selector")
_POINT = (*SETTING, "comparisons", "per_item")
_STOPS = ("n_items", "judge", "selector", "n_runs", "n_stopped", "per_item", "reliability_claimed", "reliability_true")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulationStudy(ReprMixin, table="stops", columns=_STOPS):
    """The figures of many simulated runs. Comparisons ``per_item`` are comparisons divided by the number of items.

    Attributes:
        runs: one row per run: where it ended and why, where the stop rule first held (``stopped_at``), the reliability
            it claimed, the true one, and ``excess``, the first less the second. A run that failed has its ``error``
            and counts nowhere else.
        curves: one row per run and checkpoint: correlations with the truth, of TrueSkill (``_mu``) and of one estimate
            for all selectors (``_map``).
        refits: one row per run and refit: claimed and true reliability.
        summary: means of the curves, a row for each setting and checkpoint, with 95 % intervals (``_lower``,
            ``_upper``). With a baseline also ``_gain``: the difference to that selector, seed by seed. Checkpoints that
            only some of the runs reached are left out: those that continue longest are the unlucky ones.
        stops: means at the end of the runs, a row for each setting: ``n_stopped`` of ``n_runs`` met the stop rule.
        reliability: means of the refits, a row for each setting and number of comparisons.
        baseline: the selector that the others are compared with; None when there is none.
        settings: what was asked for.
    """

    runs: pl.DataFrame
    curves: pl.DataFrame
    refits: pl.DataFrame
    summary: pl.DataFrame
    stops: pl.DataFrame
    reliability: pl.DataFrame
    baseline: str | None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.runs.height:,} runs of {self.stops.height:,} settings"


@checked
def simulate(
    items: int | Sequence[int] = (100,),
    *,
    selector: str | OwnSelector | Sequence[str | OwnSelector] = ("pollitt", "random"),
    preset: Preset = OURS,
    seeds: int = 20,
    seed: int = 0,
    sd: float | Sequence[float] = (1.0,),
    bias: float = 0.0,
    lapse: float = 0.0,
    invalid_rate: float = 0.0,
    repeats: float = 0.0,
    concurrency: int | Sequence[int] = (1,),
    per_item: float | None = None,
    reliability: float | None = None,
    fit: FitFn | str | None = "laplace",
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    progress: ProgressMode = True,
) -> SimulationStudy:
    """Run the adaptive engine on judges of known truth, for every combination of settings and every seed.

    Runs of one seed have the same abilities and the same luck, whatever the selector, so differences between selectors
    are far less noisy than the figures themselves.

    Args:
        items: How many items; one number or several.
        selector: What chooses the pairs, one or several: ``pollitt``, ``random``, ``nearest``, ``information``, or
            functions of your own, as in :func:`rank`.
        preset: The settings to start from, as in :func:`rank`: ``pairscale`` or ``pairwiseLLM``.
        seeds: How many runs of each combination.
        seed: Seed of the first run; the others count up from it.
        sd: Standard deviation of the abilities, in logits; one number or several.
        bias: The judge's preference for the first position, in logits.
        lapse: Share of answers that the judge gives at random.
        invalid_rate: Share of questions that the judge declines.
        repeats: Probability that a pair that is asked again, in either order, gets its first answer again: 0 for a
            judge that varies, 1 for one that repeats itself.
        concurrency: Questions open at once; one number or several.
        per_item: Continue to this many comparisons per item, whatever the stop rule says; by default runs end at the
            stop rule, or after 100 comparisons per item.
        reliability: Reliability that the stop rule asks for, the squared correlation to expect between the scores and
            the truth; 0.9 by default.
        fit: What fits the model: ``laplace`` (fast), ``exact`` (the sampler of real runs) or a function.
        adaptive_config: Fields of ``AdaptiveConfig`` to use instead of the preset's.
        btl_config: Fields of ``BTLConfig`` to use instead of the preset's.
        n_jobs: How many runs at once, in processes of their own; -1 for all cores. By default one, or what
            ``joblib.parallel_config`` says. Results are the same for every number.
        progress: Show progress on standard error.

    Returns:
        A :class:`SimulationStudy`.

    Raises:
        InputError: If a setting is out of range.
        UnknownNameError: If a selector is not known.

    Example:
        >>> import pairscale as ps
        >>> study = ps.simulate(12, selector=("pollitt", "random"), seeds=2, per_item=4, progress=False)
        >>> study.runs.height, study.summary["per_item"].unique().to_list()
        (4, [1.0, 2.0, 3.0, 4.0])
    """
    sizes = [require_int(n, "items", least=2) for n in _several(items, "items")]
    chosen = {selector_name(one): one for one in map(named_selector, _several(selector, "selector"))}
    spreads = [require_number(one, "sd", above=0) for one in _several(sd, "sd")]
    flights = [require_int(k, "concurrency", least=1) for k in _several(concurrency, "concurrency")]
    limit = optional(require_number, per_item, "per_item", above=0)
    reliability = optional(require_number, reliability, "reliability", above=0, below=1)
    adaptive, model = resolve_preset(preset, adaptive_config, stopping_at(reliability, btl_config))
    for n in sizes:  # refused before any run
        AdaptiveConfig.for_items(n, adaptive)
        BTLConfig.for_items(n, model)
    seed = require_int(seed, "seed", least=0)
    seeds = require_int(seeds, "seeds", least=1)
    faults: dict[str, Any] = {"bias": bias, "lapse": lapse, "invalid_rate": invalid_rate}
    SimulatedJudge("truth", **faults)  # validates them
    faults["repeats"] = require_probability(repeats, "repeats")
    judge = ", ".join(f"{name.removesuffix('_rate')} {value:g}" for name, value in faults.items() if value) or "clean"
    same = faults | {"stop_early": limit is None, "fit_fn": fit, "adaptive_config": adaptive, "btl_config": model}
    labels = []
    tasks = []
    for n, spread, k, number, name in product(sizes, spreads, flights, range(seed, seed + seeds), chosen):
        label = {"n_items": n, "ability_sd": spread, "concurrency": k, "selector": name, "seed": number}
        labels.append(label | {"judge": judge})
        length = None if limit is None else max(1, round(limit * n))
        tasks.append(same | label | {"selector": chosen[name], "max_comparisons": length})
    done = simulate_all(tasks, require_jobs(n_jobs), progress)
    settings = {
        "items": sizes, "selector": list(chosen), "seeds": seeds, "seed": seed, "sd": spreads, "judge": judge,
        "concurrency": flights, "per_item": limit, "preset": preset,
    }  # fmt: skip
    return _gathered(labels, done, "random" if "random" in chosen and len(chosen) > 1 else None, settings)


def _several(value: Any, name: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    values = list(dict.fromkeys(value))
    if not values:
        raise InputError(f"{name} must hold one number or more")
    return values


def _gathered(
    labels: Sequence[dict[str, Any]],
    done: Sequence[Done[SimulatedRun]],
    baseline: str | None,
    settings: Mapping[str, Any],
) -> SimulationStudy:
    values_of(done, "run")
    rows = []
    curves_of_runs = []
    refits_of_runs = []
    for label, task in zip(labels, done, strict=True):
        if task.value is None:
            rows.append(label | {"error": task.error})
            continue
        rows.append(label | task.value.end)
        setting = [pl.lit(label[name], dtype=kind).alias(name) for name, kind in _OF_RUN.items()]
        curves_of_runs.append(task.value.curve.select(*setting, pl.all()))
        refits_of_runs.append(task.value.refits.select(*setting, pl.all()))
    ends = _completed(pl.DataFrame(rows, schema=RUNS))
    curves = pl.concat(curves_of_runs).with_columns(per_item=pl.col("comparisons") / pl.col("n_items"))
    refits = _completed(pl.concat(refits_of_runs))
    selector = pl.col("selector").cast(pl.Enum(settings["selector"]))
    by: list[Any] = ["n_items", "ability_sd", "concurrency", selector]
    good = ends.filter(pl.col("error").is_null())
    compared = curves
    figures = list(FIGURES)
    if baseline is not None:
        same_run = [*_SAME, "seed", "comparisons"]
        of_baseline = pl.col(*FIGURES).filter(pl.col("selector") == baseline).first().over(same_run)
        compared = curves.with_columns((pl.col(*FIGURES) - of_baseline).name.suffix("_gain"))
        figures += [f"{name}_gain" for name in FIGURES]
    n_stopped = pl.col("stopped_at").count().cast(pl.Int64)
    stops = means(good, list(SETTING), ["comparisons", "per_item", *_ENDS], n_stopped=n_stopped)
    at_refits = means(refits.filter(~pl.col("is_closing")), _POINT, _ENDS)  # closing ones come at other counts
    return SimulationStudy(
        runs=ends.select(list(RUNS)),
        curves=curves,
        refits=refits,
        summary=_of_all_runs(means(compared, _POINT, figures), stops).sort(*by, "comparisons"),
        stops=stops.sort(by),
        reliability=_of_all_runs(at_refits, stops).sort(*by, "comparisons"),
        baseline=baseline,
        settings=settings,
    )


def _completed(table: pl.DataFrame) -> pl.DataFrame:
    """A table with how much more reliability was claimed than there was, and with comparisons per item."""
    excess = pl.col("reliability_claimed") - pl.col("reliability_true")
    return table.with_columns(per_item=pl.col("comparisons") / pl.col("n_items"), excess=excess)


def _of_all_runs(table: pl.DataFrame, stops: pl.DataFrame) -> pl.DataFrame:
    """The means to which all runs of their setting contribute."""
    return table.join(stops, on=[*SETTING, "n_runs"], how="semi", maintain_order="left")


def means(table: pl.DataFrame, by: Sequence[str], figures: Sequence[str], **counts: pl.Expr) -> pl.DataFrame:
    """Per group ``n_runs`` and other counts, and of each figure its mean and the ends of its 95 % interval.

    The intervals are Student's. One run has none: its ends are empty.
    """
    all_figures = pl.col(figures)
    grouped = table.group_by(by, maintain_order=True).agg(
        all_figures.mean(),
        all_figures.std().name.prefix("_"),
        all_figures.count().name.prefix("n_"),
        n_runs=pl.len().cast(pl.Int64),
        **counts,
    )
    columns: list[Any] = [*by, "n_runs", *counts]
    for name in figures:
        n = np.maximum(grouped[f"n_{name}"].to_numpy(), 2)  # of fewer the spread is missing
        half = pl.col(f"_{name}") * pl.Series(stdtrit(n - 1, 0.975) / np.sqrt(n), dtype=pl.Float64)
        columns += [name, (pl.col(name) - half).alias(f"{name}_lower"), (pl.col(name) + half).alias(f"{name}_upper")]
    return grouped.select(columns)
