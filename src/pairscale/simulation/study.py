"""Studies over seeds: selectors, numbers of items, spreads of ability, faults of judges, judgements in flight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.presets import OURS, Preset, resolve_preset, stopping_at
from pairscale.adaptive.selectors import OwnSelector, named_selector, selector_name
from pairscale.core.display import PlotMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import Done, require_jobs, values_of
from pairscale.core.options import (
    ProgressMode,
    checked,
    optional,
    require_choice,
    require_int,
    require_list,
    require_number,
    shown,
)
from pairscale.core.tables import listed
from pairscale.judges.simulated import SimulatedJudge
from pairscale.simulation._summary import crossing, differences, means, three_decimals
from pairscale.simulation.run import CURVE, REFITS, SimulatedRun, simulate_all

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

RUNS: dict[str, pl.DataType] = SETTING | {
    "seed": pl.Int64(),
    "comparisons": pl.Int64(),
    "per_item": pl.Float64(),
    "asked": pl.Int64(),
    "stop_reason": pl.String(),
    "stopped_at": pl.Int64(),
    "spearman_eap": pl.Float64(),
    "reliability_claimed": pl.Float64(),
    "reliability_true": pl.Float64(),
    "excess": pl.Float64(),
    "error": pl.String(),
}
"""The columns of ``SimulationStudy.runs``."""

FIGURES = tuple(name for name in CURVE if name != "comparisons")
_FAULTS = ("bias", "lapse", "invalid_rate")
_SAME = tuple(name for name in SETTING if name != "selector")
_POINT = (*SETTING, "comparisons", "per_item")
_STOPS = ("n_items", "judge", "selector", "n_runs", "n_stopped", "per_item", "reliability_claimed", "reliability_true")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulationStudy(PlotMixin, table="stops", columns=_STOPS, charts=("selectors",)):
    """What came out of many simulated runs. Comparisons ``per_item`` are comparisons divided by the number of items.

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
        said = [
            f"{row['selector']} {row['per_item']:.1f} comparisons per item, true reliability "
            f"{three_decimals(row['reliability_true'])}"
            for row in self.stops.head(4).iter_rows(named=True)
        ]
        more = [f"{self.stops.height - 4} more"] if self.stops.height > 4 else []
        return f"{self.runs.height:,} run{'s' * (self.runs.height != 1)}: {'; '.join(said + more)}"

    def reach(self, target: float = 0.9, figure: str = "spearman_map") -> pl.DataFrame:
        """How many comparisons it takes to reach a target, by interpolation.

        Args:
            target: the value to reach.
            figure: a column of ``curves``, or ``reliability_claimed``, ``reliability_true`` or ``spearman_eap``.

        Returns:
            One row a setting: ``on_average`` is where the mean curve meets the target; ``comparisons`` is the mean of
            where each run first meets it, with its interval, over the ``n_reached`` that do. With a baseline,
            ``of_baseline`` is ``on_average`` divided by that of the baseline.

        Raises:
            InputError: when there is no such figure.
        """
        figures = [*FIGURES, *(name for name in REFITS if name.startswith(("reliability", "spearman")))]
        require_choice(figure, "figure", figures)
        target = require_number(target, "target")
        of_runs, of_means = (self.curves, self.summary) if figure in CURVE else (self.refits, self.reliability)
        one = _crossings(of_runs, [*SETTING, "seed"], figure, target).rename({"_at": "comparisons"})
        each = means(one, list(SETTING), ["comparisons"]).with_columns(
            n_reached=one.group_by(list(SETTING), maintain_order=True).agg(pl.col("comparisons").count())["comparisons"]
        )
        average = _crossings(of_means, list(SETTING), figure, target).rename({"_at": "on_average"})
        table = each.join(average, on=list(SETTING), how="left", maintain_order="left")
        figures_of = ["on_average", "n_reached", "comparisons", "comparisons_lower", "comparisons_upper"]
        table = table.select(*SETTING, "n_runs", *figures_of)
        if self.baseline is None:
            return table
        base = table.filter(pl.col("selector") == self.baseline).select(*_SAME, pl.col("on_average").alias("_base"))
        joined = table.join(base, on=list(_SAME), how="left", maintain_order="left")
        return joined.with_columns(of_baseline=pl.col("on_average") / pl.col("_base")).drop("_base")


def _crossings(table: pl.DataFrame, by: Sequence[str], figure: str, target: float) -> pl.DataFrame:
    rows = [
        (*key, crossing(part["comparisons"].to_list(), part[figure].to_list(), target))
        for key, part in table.group_by(by, maintain_order=True)
    ]
    return pl.DataFrame(rows, schema={name: table.schema[name] for name in by} | {"_at": pl.Float64()}, orient="row")


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
    judges: Sequence[Mapping[str, float]] | Mapping[str, Mapping[str, float]] | None = None,
    concurrency: int | Sequence[int] = (1,),
    per_item: float | None = None,
    stop_early: bool | None = None,
    checkpoints: Sequence[float] | None = None,
    baseline: str | None = None,
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
        judges: Several judges instead: mappings with some of ``bias``, ``lapse`` and ``invalid_rate``, or a mapping of
            such mappings by names of your own.
        concurrency: Questions open at once; one number or several.
        per_item: Continue to so many comparisons per item, whatever the stop rule says; by default runs end at the stop
            rule, or after 100 comparisons per item.
        stop_early: Whether runs end at the stop rule; by default they do unless ``per_item`` is given.
        checkpoints: Where to measure, in comparisons per item; by default 1, 2, 3 and so on.
        baseline: The selector to compare with; by default ``random`` where it takes part.
        reliability: EAP reliability that the stop rule asks for; 0.9 by default.
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
    chosen = _selectors(selector)
    baseline = optional(require_choice, baseline, "baseline", chosen)
    base = baseline or ("random" if "random" in chosen and len(chosen) > 1 else None)
    faults = _judges(judges, {"bias": bias, "lapse": lapse, "invalid_rate": invalid_rate})
    spreads = [require_number(one, "sd", above=0) for one in _several(sd, "sd")]
    flights = [require_int(k, "concurrency", least=1) for k in _several(concurrency, "concurrency")]
    limit = optional(require_number, per_item, "per_item", above=0)
    stops = limit is None if stop_early is None else stop_early
    reliability = optional(require_number, reliability, "reliability", above=0, below=1)
    marks = optional(require_list, checkpoints, "checkpoints", require_number, above=0)
    adaptive, model = resolve_preset(preset, adaptive_config, stopping_at(reliability, btl_config))
    for n in sizes:  # refused before any run
        btl = BTLConfig.for_items(n, model)
        AdaptiveConfig.for_items(n, adaptive, refit_pairs_target=btl.refit_pairs_target)
    seed = require_int(seed, "seed", least=0)
    seeds = require_int(seeds, "seeds", least=1)
    n_jobs = require_jobs(n_jobs)
    same = {"stop_early": stops, "fit_fn": fit, "adaptive_config": adaptive, "btl_config": model}
    tasks = [
        (
            {"n_items": n, "ability_sd": spread, "judge": judge, "concurrency": k, "selector": name, "seed": at},
            faults[judge] | _lengths(n, limit, marks) | same | {"selector": chosen[name]},
        )
        for n, spread, judge, k, at, name in product(sizes, spreads, faults, flights, range(seed, seed + seeds), chosen)
    ]
    done = simulate_all([_options(*task) for task in tasks], n_jobs, progress)
    settings = {
        "items": sizes, "selector": list(chosen), "seeds": seeds, "seed": seed, "sd": spreads, "judges": faults,
        "concurrency": flights, "per_item": limit, "stop_early": stops, "preset": preset,
    }  # fmt: skip
    return _gathered([labels for labels, _ in tasks], done, base, settings)


def _lengths(n: int, limit: float | None, marks: Sequence[float] | None) -> dict[str, Any]:
    """Where runs of so many items end and are measured, in comparisons."""
    return {
        "max_comparisons": None if limit is None else max(1, round(limit * n)),
        "checkpoints": None if marks is None else sorted({max(1, round(at * n)) for at in marks}),
    }


def _options(labels: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run: its labels, of which ``judge`` is a name, and what goes with them."""
    return {name: value for name, value in labels.items() if name != "judge"} | dict(options)


def _gathered(
    labels: Sequence[dict[str, Any]],
    done: Sequence[Done[SimulatedRun]],
    baseline: str | None,
    settings: Mapping[str, Any],
) -> SimulationStudy:
    runs = values_of(done, "run")
    ends = pl.DataFrame([label | _end(one) for label, one in zip(labels, done, strict=True)], schema=RUNS)
    labels = [label for label, one in zip(labels, done, strict=True) if one.error is None]
    ends = ends.with_columns(
        per_item=pl.col("comparisons") / pl.col("n_items"),
        excess=pl.col("reliability_claimed") - pl.col("reliability_true"),
    )
    curves = _stacked(labels, (run.curve for run in runs), CURVE)
    refits = _stacked(labels, (run.refits for run in runs), REFITS).with_columns(
        excess=pl.col("reliability_claimed") - pl.col("reliability_true")
    )
    by = _sorting(settings)
    good = ends.filter(pl.col("error").is_null())
    return SimulationStudy(
        runs=ends,
        curves=curves,
        refits=refits,
        summary=_of_all(_means_of_curves(curves, baseline), good).sort(by),
        stops=_means_of_ends(good).sort(by[:-1]),
        reliability=_of_all(_means_of_refits(refits), good).sort(by),
        baseline=baseline,
        settings=settings,
    )


def _sorting(settings: Mapping[str, Any]) -> list[pl.Expr]:
    """Settings, selectors and judges in the order in which they were given; then comparisons."""
    judge = pl.col("judge").cast(pl.Enum(list(settings["judges"])))
    selector = pl.col("selector").cast(pl.Enum(settings["selector"]))
    return [pl.col("n_items"), pl.col("ability_sd"), judge, pl.col("concurrency"), selector, pl.col("comparisons")]


def _of_all(table: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """The means to which all runs of their setting contribute."""
    all_runs = ends.group_by(list(SETTING)).agg(_all=pl.len().cast(pl.Int64))
    joined = table.join(all_runs, on=list(SETTING), how="left", maintain_order="left")
    return joined.filter(pl.col("n_runs") == pl.col("_all")).drop("_all")


def _means_of_curves(curves: pl.DataFrame, baseline: str | None) -> pl.DataFrame:
    """Means at the checkpoints; with a baseline, also those of the differences to it."""
    figures = list(FIGURES)
    if baseline is not None:
        curves = differences(curves, [*_SAME, "seed", "comparisons"], FIGURES, baseline, "_gain")
        figures += [f"{name}_gain" for name in FIGURES]
    return means(curves, _POINT, figures)


def _means_of_refits(refits: pl.DataFrame) -> pl.DataFrame:
    """Means at the refits; closing ones come at other counts."""
    figures = ["reliability_claimed", "reliability_true", "spearman_eap", "excess"]
    return means(refits.filter(~pl.col("is_closing")), _POINT, figures)


def _means_of_ends(ends: pl.DataFrame) -> pl.DataFrame:
    figures = ["comparisons", "per_item", "spearman_eap", "reliability_claimed", "reliability_true", "excess"]
    stopped = ends.group_by(list(SETTING), maintain_order=True).agg(
        n_stopped=pl.col("stopped_at").count().cast(pl.Int64)
    )
    joined = means(ends, list(SETTING), figures).join(stopped, on=list(SETTING), maintain_order="left")
    first = [*SETTING, "n_runs", "n_stopped"]
    return joined.select(*first, pl.exclude(*first))


def _end(done: Done[SimulatedRun]) -> dict[str, Any]:
    run = done.value
    if run is None:
        return {"error": done.error}
    last = run.refits.row(-1, named=True) if run.refits.height else {}
    known = {name: last.get(name) for name in ("spearman_eap", "reliability_claimed", "reliability_true")}
    mine = {name: getattr(run, name) for name in ("comparisons", "asked", "stop_reason", "stopped_at")}
    return mine | known


def _stacked(
    labels: Sequence[dict[str, Any]], tables: Iterable[pl.DataFrame], schema: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """The tables of all runs in one, each row with the setting of its run."""
    names = SETTING | {"seed": pl.Int64()}
    parts = [
        table.select(*(pl.lit(label[name], dtype=kind).alias(name) for name, kind in names.items()), pl.all())
        for label, table in zip(labels, tables, strict=True)
    ]
    stacked = pl.concat([pl.DataFrame(schema=names | dict(schema)), *parts])
    return stacked.with_columns(per_item=pl.col("comparisons") / pl.col("n_items"))


# What is asked for


def _selectors(given: Any) -> dict[str, str | OwnSelector]:
    """Every selector, by the name that the tables give it."""
    several = [given] if isinstance(given, str) or callable(given) else list(given)
    return {selector_name(one): one for one in map(named_selector, several)}


def _several(value: Any, name: str) -> list[Any]:
    values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if not values:
        raise InputError(f"{name} must hold one number or more")
    return list(dict.fromkeys(values))


def _judges(judges: Any, one: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The faults of every judge, by its name; ``one`` are those of the only judge, where there are not several."""
    faulty = {name: value for name, value in _faults(one, "judge").items() if value}
    if judges is None:
        return {_named(faulty): faulty}
    if faulty:
        raise InputError(f"{next(iter(faulty))} belongs to a single judge; with judges=, give it in their mappings")
    if isinstance(judges, Mapping):
        found = {str(name): _faults(faults, "each of judges") for name, faults in judges.items()}
    else:
        found = {_named(faults): faults for faults in require_list(judges, "judges", _faults)}
    if not found:
        raise InputError("judges must hold one mapping of faults or more; {} is a judge without any")
    return found


def _faults(faults: Any, name: str) -> dict[str, float]:
    if not isinstance(faults, Mapping) or not set(faults) <= set(_FAULTS):
        raise InputError(f"{name} must be a mapping with some of {listed(_FAULTS)}, not {shown(faults)}")
    judge = SimulatedJudge("truth", **faults)
    return {fault: getattr(judge, fault) for fault in faults}


def _named(faults: Mapping[str, float]) -> str:
    said = [f"{name.removesuffix('_rate')} {value:g}" for name, value in faults.items() if value]
    return ", ".join(said) or "clean"
