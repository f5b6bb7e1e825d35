"""``pairscale bias``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, show_table
from pairscale.cli._groups import ResultCols, with_groups

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = (
    "pairscale bias forward.csv reverse.csv",
    "pairscale bias run.db",
    "pairscale bias forward.csv reverse.csv --out pairs.xlsx --json",
)


@with_groups
def command(
    forward: Annotated[
        str,
        typer.Argument(metavar="FORWARD", help="Results of the pairs: a table, or a run file (also of both orders)."),
    ],
    reverse: Annotated[
        str | None,
        typer.Argument(
            metavar="REVERSE", help="Results of the reversed pairs; not needed if FORWARD holds both orders."
        ),
    ] = None,
    n_boot: Annotated[int, typer.Option(min=1, metavar="N", help="Bootstrap resamples of the pairs.")] = 1000,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same bootstrap.")] = 1,
    condition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="If the run file has several: the judge or the condition to use."),
    ] = None,
    columns: ResultCols = ResultCols(),
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Tell whether a judge favours a position.

    Ask every pair in both orders: `pairscale pairs pairs.csv --reverse --out reversed.csv` swaps them. A pair is
    consistent when the same text wins both times. Where it is not, one position won twice, and if it is nearly always
    the same one, the judge favours it.

    The effect is in logits: 0 is none, above 0 the first position is favoured. --out writes one row per pair.
    """
    bias = ps.bias(forward, reverse, n_boot=n_boot, level=level, seed=seed, condition=condition, **vars(columns))
    consistency = bias.consistency
    assert consistency is not None  # noqa: S101 - the verb compares two orders
    row = bias.summary.row(0, named=True)
    document = {
        "verdict": bias.verdict,
        "summary": row,
        "level": level,
        "effect_method": bias.effect.method,
        "one_direction_only": consistency.only_main + consistency.only_reverse,
        "tied": consistency.tied,
        "without_winner": consistency.without_winner,
        "notices": bias.notices,
        "details": bias.details,
    }

    def show() -> None:
        same = row["n_pairs"] - row["n_inconsistent"]
        typer.echo(
            f"consistency {row['prop_consistent']:.3f} ({same:,} of {row['n_pairs']:,} pairs; {100 * level:g}% "
            f"interval {row['boot_lwr']:.3f} to {row['boot_upr']:.3f}, {n_boot:,} bootstrap resamples)"
        )
        typer.echo(f"first position won {row['total_pos1_wins']:,} of {row['total_comparisons']:,} comparisons")
        typer.echo(f"{bias.verdict}\n")
        show_table(_shown(bias.summary))

    emit(document, bias.details, as_json=as_json, out=out, show=show)


def _shown(summary: pl.DataFrame) -> pl.DataFrame:
    """The tests, one per row, with what each says."""
    import polars as pl

    rows = [
        ("forward", "first position wins half", "p_sample1_main"),
        ("reverse", "first position wins half", "p_sample1_rev"),
        ("both, as if independent", "first position wins half", "p_sample1_overall"),
        ("both, pair by pair", "no position is favoured", "p_paired"),
    ]
    return pl.DataFrame(
        [{"comparisons": name, "is tested": what, "p": summary[column][0]} for name, what, column in rows],
        schema={"comparisons": pl.String, "is tested": pl.String, "p": pl.Float64},
    )
