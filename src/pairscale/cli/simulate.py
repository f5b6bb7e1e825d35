"""``pairscale simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import chart_file, emit, say, show_table
from pairscale.core.options import require_choice

if TYPE_CHECKING:
    import polars as pl

    from pairscale.simulation.study import SimulationStudy

EXAMPLES = (
    "pairscale simulate --items 100 --selector pollitt --selector random",
    "pairscale simulate --items 50 --seeds 10 --bias 0.3 --lapse 0.05",
    "pairscale simulate --items 60 --per-item 8 --sd 1 --sd 2.5 --chart a.svg",
    "pairscale simulate --items 60 --concurrency 1 --concurrency 32 --out c.csv",
)

_Items = Annotated[list[int] | None, typer.Option(min=2, metavar="N", help="How many items (100); can be repeated.")]
_Selector = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_names.selectors,
        help="As in `pairscale rank` (pollitt and random); can be repeated.",
    ),
]
_Sd = Annotated[
    list[float] | None,
    typer.Option(metavar="SD", help="Standard deviation of the abilities, in logits (1); can be repeated."),
]
_Concurrency = Annotated[
    list[int] | None,
    typer.Option(min=1, metavar="N", help="Questions open at once (1); can be repeated."),
]
_PerItem = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Continue to this many comparisons per item; by default, follow the stop rule.",
    ),
]
_Reliability = Annotated[
    float | None, typer.Option(metavar="R", help="EAP reliability that the stop rule asks for; 0.9 by default.")
]
_Fit = Annotated[
    str, typer.Option(metavar="HOW", help="laplace (fast, approximate), or exact (the sampler of real runs).")
]
_Chart = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=chart_file, help="Draw the study: svg, png, html or json, by the ending."),
]


def command(
    items: _Items = None,
    selector: _Selector = None,
    preset: opt.PresetName = "pairscale",
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each combination.")] = 20,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The first seed; the others count up from it.")] = 0,
    sd: _Sd = None,
    bias: Annotated[float, typer.Option(metavar="LOGITS", help="The judge's preference for the first position.")] = 0.0,
    lapse: Annotated[float, typer.Option(metavar="SHARE", help="Share of answers that are a coin toss.")] = 0.0,
    invalid_rate: Annotated[float, typer.Option(metavar="SHARE", help="Share of questions that it declines.")] = 0.0,
    concurrency: _Concurrency = None,
    per_item: _PerItem = None,
    reliability: _Reliability = None,
    fit: _Fit = "laplace",
    n_jobs: opt.NJobs = None,
    chart: _Chart = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Try ways of choosing pairs on simulated judges whose truth is known.

    The engine of `pairscale rank` runs against judges that know the abilities and make the errors that you set. The
    result shows how close the ranking is to the truth after how many comparisons (Spearman, Kendall), where the stop
    rule ends the run, and whether the reliability that the run claims is the true one, the squared correlation with
    the truth.

    Runs of one seed share abilities and luck, so that selectors differ by their pairs alone. The file that --out
    writes has the means of every checkpoint with their 95% intervals.
    """
    require_choice(fit, "--fit", ("exact", "laplace"))
    study = ps.simulate(
        items or (100,),
        selector=tuple(selector or ("pollitt", "random")),
        preset=preset,  # type: ignore[arg-type]
        seeds=seeds,
        seed=seed,
        sd=sd or (1.0,),
        bias=bias,
        lapse=lapse,
        invalid_rate=invalid_rate,
        concurrency=concurrency or (1,),
        per_item=per_item,
        reliability=reliability,
        fit=fit,
        n_jobs=n_jobs,
    )
    if chart is not None:
        from pairscale.reporting.charts import save_chart, simulation_chart

        save_chart(simulation_chart(study), chart)
        say(f"wrote the chart to {chart}")

    def show() -> None:
        show_table(_told(study.summary, ("spearman_map", "kendall_map", "spearman_map_gain"), ("per_item",)), most=100)
        typer.echo()
        figures = ("per_item", "reliability_claimed", "reliability_true", "excess")
        show_table(_told(study.stops, figures, ("n_stopped",)))
        typer.echo(f"\n{_verdict(study)}")

    document = {
        "settings": dict(study.settings),
        "baseline": study.baseline,
        "summary": study.summary,
        "stops": study.stops,
        "reliability": study.reliability,
        "runs": study.runs,
    }
    emit(document, study.summary, as_json=as_json, out=out, show=show)


def _told(table: pl.DataFrame, figures: tuple[str, ...], more: tuple[str, ...]) -> pl.DataFrame:
    """What tells the rows apart, and these figures, each with half the width of its interval."""
    settings = ("n_items", "ability_sd", "judge", "concurrency")
    shown = table.select("selector", *(name for name in settings if table[name].n_unique() > 1), *more, "n_runs")
    for name in figures:
        if name in table.columns:
            shown = shown.with_columns(table[name])
        if f"{name}_upper" in table.columns:
            shown = shown.with_columns((table[f"{name}_upper"] - table[name]).alias(f"±{len(shown.columns)}"))
    return shown.rename({column: "±" + " " * at for at, column in enumerate(c for c in shown.columns if c[0] == "±")})


def _verdict(study: SimulationStudy) -> str:
    worst = max(study.stops["excess"].drop_nulls().to_list(), key=abs, default=None)
    runs = f"{study.runs.height:,} run{'s' * (study.runs.height != 1)}"
    if worst is None:
        return f"{runs}; no reliability was claimed"
    return f"{runs}; on average the claimed reliability is off the true one by at most {abs(worst):.3f}"
