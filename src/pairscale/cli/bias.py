"""``pairscale bias``."""

from __future__ import annotations

from typing import Any

import pairscale as ps
from pairscale.cli._common import Output, echo, fields
from pairscale.cli.from_verb import from_verb


@from_verb(
    "checks.verbs.bias",
    "FORWARD [REVERSE]",
    "pairscale bias forward.csv reverse.csv",
    "pairscale bias run.db",
    "pairscale bias forward.csv reverse.csv --out pairs.xlsx --json",
    hidden="level seed encoding",
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
    document = fields(bias, "verdict notices details") | {"summary": row, "effect_method": bias.effect.method}

    def show() -> None:
        same = row["n_pairs"] - row["n_inconsistent"]
        echo(
            f"consistency {row['prop_consistent']:.3f} ({same:,} of {row['n_pairs']:,} pairs; 95 % interval "
            f"{row['boot_lwr']:.3f} to {row['boot_upr']:.3f})"
        )
        echo(f"first position won {row['total_pos1_wins']:,} of {row['total_comparisons']:,} comparisons")
        echo(bias.verdict)

    emit(document, bias.details, show)
