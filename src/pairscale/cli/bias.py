"""``pairscale bias``."""

from __future__ import annotations

from typing import Any

import pairscale as ps
from pairscale.cli._common import Output, echo, show_table
from pairscale.cli.from_verb import from_verb

_TESTS = {
    "p_sample1_main": ("forward", "first position wins half"),
    "p_sample1_rev": ("reverse", "first position wins half"),
    "p_sample1_overall": ("both, as if independent", "first position wins half"),
    "p_paired": ("both, pair by pair", "no position is favoured"),
}


@from_verb(
    "bias",
    "FORWARD [REVERSE]",
    "pairscale bias forward.csv reverse.csv",
    "pairscale bias run.db",
    "pairscale bias forward.csv reverse.csv --out pairs.xlsx --json",
)
def command(arguments: dict[str, Any], emit: Output) -> None:
    """Tell whether a judge favours a position.

    Ask every pair in both orders: `pairscale pairs pairs.csv --reverse --out reversed.csv` swaps them. A pair is
    consistent when the same text wins both times. Where it is not, one position won twice, and if it is nearly always
    the same one, the judge favours it.

    The effect is in logits: 0 is none, above 0 the first position is favoured. --out writes one row per pair.
    """
    bias = ps.bias(**arguments)
    row = bias.summary.row(0, named=True)
    level = arguments["level"]
    document = {
        "verdict": bias.verdict,
        "summary": row,
        "level": level,
        "effect_method": bias.effect.method,
        "notices": bias.notices,
        "details": bias.details,
    }

    def show() -> None:
        import polars as pl

        same = row["n_pairs"] - row["n_inconsistent"]
        echo(
            f"consistency {row['prop_consistent']:.3f} ({same:,} of {row['n_pairs']:,} pairs; {100 * level:g}% "
            f"interval {row['boot_lwr']:.3f} to {row['boot_upr']:.3f}, {arguments['n_boot']:,} bootstrap resamples)"
        )
        echo(f"first position won {row['total_pos1_wins']:,} of {row['total_comparisons']:,} comparisons")
        echo(f"{bias.verdict}\n")
        tests = [(*words, row[column]) for column, words in _TESTS.items()]
        schema = {"comparisons": pl.String, "is tested": pl.String, "p": pl.Float64}
        show_table(pl.DataFrame(tests, schema, orient="row"))

    emit(document, bias.details, show)
