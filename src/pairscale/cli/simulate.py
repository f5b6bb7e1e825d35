"""``pairscale simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._common import Output, chart_look, echo, require_chart, say, show_table
from pairscale.cli.from_verb import from_verb

if TYPE_CHECKING:
    import polars as pl


@from_verb(
    "simulate",
    "",
    "pairscale simulate --items 100 --selector pollitt --selector random",
    "pairscale simulate --items 50 --seeds 10 --bias 0.3 --lapse 0.05",
    "pairscale simulate --items 60 --per-item 8 --sd 1,2.5 --chart a.svg",
    "pairscale simulate --items 60 --concurrency 1,32 --out c.csv",
    hidden="stop_early baseline adaptive_config btl_config",
)
def command(
    arguments: dict[str, Any],
    emit: Output,
    *,
    chart: str | Path | None = None,
    width: int | None = None,
    font_size: float | None = None,
    no_title: bool = False,
) -> None:
    """Try ways of choosing pairs on simulated judges whose truth is known.

    The engine of `pairscale rank` runs against judges that know the abilities and make the errors that you set. The
    result shows how close the ranking is to the truth after how many comparisons (Spearman, Kendall), where the stop
    rule ends the run, and whether the reliability that the run claims is the true one, the squared correlation with
    the truth.

    Runs of one seed share abilities and luck, so that selectors differ by their pairs alone. The file that --out
    writes has the means of every checkpoint with their 95% intervals.

    Args:
        items: How many items; several with commas, or repeated.
        selector: As in `pairscale rank`; can be repeated.
        sd: Standard deviation of the abilities, in logits; several with commas, or repeated.
        concurrency: Questions open at once; several with commas, or repeated.
        fit: laplace (fast, approximate), or exact (the sampler of real runs).
        chart: Draw the study: svg, png, pdf, html or json, by the ending.
        width: With --chart: the width of a panel in pixels.
        font_size: With --chart: the size of names and numbers in pixels.
        no_title: With --chart: neither title nor notes.
    """
    if chart is not None:
        require_chart(chart)
    study = ps.simulate(**arguments)
    if chart is not None:
        study.plot(chart, **chart_look(width, font_size, no_title))
        say(f"wrote the chart to {chart}")

    def show() -> None:
        show_table(_figures(study.summary, "per_item spearman_map kendall_map spearman_map_gain"), most=100)
        echo()
        show_table(_figures(study.stops, "n_stopped per_item reliability_claimed reliability_true excess"))
        echo(f"\n{study}")

    names = ("settings", "baseline", "summary", "stops", "reliability", "runs")
    emit({name: getattr(study, name) for name in names}, study.summary, show)


def _figures(table: pl.DataFrame, names: str) -> pl.DataFrame:
    """What tells the rows apart, and these figures, with the ends of their intervals."""
    settings = [name for name in ("n_items", "ability_sd", "judge", "concurrency") if table[name].n_unique() > 1]
    figures = [f"{name}{end}" for name in names.split() for end in ("", "_lower", "_upper")]
    return table.select("selector", *settings, "n_runs", *(name for name in figures if name in table.columns))
