"""``pairscale simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, show_table
from pairscale.cli.from_verb import from_verb

if TYPE_CHECKING:
    import polars as pl


@from_verb(
    "simulation.study.simulate",
    "",
    hidden="stop_early baseline adaptive_config btl_config preset invalid_rate seed fit reliability",
)
def command(arguments: Arguments, emit: Output) -> None:
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

    Examples:
        pairscale simulate --items 100 --selector pollitt --selector random
        pairscale simulate --items 50 --seeds 10 --bias 0.3 --lapse 0.05
        pairscale simulate --items 60 --per-item 8 --sd 1,2.5
        pairscale simulate --items 60 --concurrency 1,32 --out c.csv
    """
    study = ps.simulate(**arguments)

    def show() -> None:
        show_table(_figures(study.summary, "per_item spearman_map kendall_map spearman_map_gain"), most=100)
        echo()
        show_table(_figures(study.stops, "n_stopped per_item reliability_claimed reliability_true excess"))
        echo(f"\n{study}")

    emit(fields(study, "settings baseline summary stops reliability runs"), study.summary, show)


def _figures(table: pl.DataFrame, names: str) -> pl.DataFrame:
    """What tells the rows apart, and these figures, with the ends of their intervals."""
    settings = [name for name in ("n_items", "ability_sd", "judge", "concurrency") if table[name].n_unique() > 1]
    figures = [f"{name}{end}" for name in names.split() for end in ("", "_lower", "_upper")]
    return table.select("selector", *settings, "n_runs", *(name for name in figures if name in table.columns))
