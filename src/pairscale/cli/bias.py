"""``pairscale bias``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields
from pairscale.cli.from_verb import from_verb
from pairscale.core.notices import plural


@from_verb("checks.verbs.bias", "FORWARD [REVERSE]", hidden="level encoding")
def command(arguments: Arguments, emit: Output) -> None:
    """Tell whether a judge favours a position.

    Ask every pair in both orders: `pairscale pairs pairs.csv --reverse --out reversed.csv` swaps them. A pair is
    consistent when the same text wins both times. Where it is not, one position won twice, and if it is nearly always
    the same one, the judge favours it.

    The effect is in logits: 0 is none, above 0 the first position is favoured; it comes from a Bradley–Terry model, and
    is left out where the data do not tell it. --out writes one row per pair.

    Examples:
        pairscale bias forward.csv reverse.csv
        pairscale bias run.db
        pairscale bias forward.csv reverse.csv --out pairs.xlsx --json
    """
    bias = ps.bias(**arguments)
    row = bias.summary.row(0, named=True)
    document = fields(bias, "verdict level why notices details") | {"summary": row}

    def show() -> None:
        echo(
            f"consistency {row['prop_consistent']:.3f} ({100 * bias.level:g} % confidence interval "
            f"{row['consistent_lower']:.3f} to {row['consistent_upper']:.3f}; {plural(row['n_pairs'], 'pair')})"
        )
        echo(f"first position won {100 * row['prop_pos1']:.1f} % of the answers")
        echo(bias.verdict)

    emit(document, bias.details, show)
