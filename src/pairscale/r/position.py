"""The manual's check of positional bias, with R's figures; ours is :func:`pairscale.bias`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from pairscale.checks.effect import sign_test
from pairscale.checks.position import ReverseConsistency
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.notices import plural
from pairscale.core.options import require_int, require_level
from pairscale.core.tables import Table, require_columns, to_frame
from pairscale.pairing.table import generator

_NEEDED = ("key", "ID1_main", "ID2_main", "better_id_main", "ID1_rev", "ID2_rev", "better_id_rev", "is_consistent")


@dataclass(frozen=True, slots=True, repr=False)
class RPositionalBias(ReprMixin, table="summary"):
    """What R's ``check_positional_bias`` gives.

    Attributes:
        summary: one row: ``n_pairs prop_consistent boot_mean boot_lwr boot_upr p_sample1_main p_sample1_rev
            p_sample1_overall total_pos1_wins total_comparisons n_inconsistent n_inconsistent_pos1_bias
            n_inconsistent_pos2_bias``.
        details: the input's rows with ``winner_pos_main winner_pos_rev is_pos1_bias is_pos2_bias``; the last two are
            null for a consistent pair, as in the R package.
    """

    summary: pl.DataFrame
    details: pl.DataFrame

    def __str__(self) -> str:
        n_pairs, share = self.summary.row(0)[:2]
        return f"{plural(n_pairs, 'pair')}, {share:.1%} consistent"


def check_positional_bias(
    consistency: ReverseConsistency | Mapping[str, Any] | Table,
    n_boot: int = 1000,
    conf_level: float = 0.95,
    seed: int | None = None,
) -> RPositionalBias:
    """The figures that R's pairwiseLLM gives of positional bias; :func:`pairscale.bias` says more, and says it safely.

    ``p_sample1_*`` are exact two-sided binomial tests of position 1 winning half of the comparisons. They count every
    comparison as an independent toss, which forward and reverse of one pair are not: a consistent pair gives position 1
    exactly one win of two, always. The bootstrap interval of the consistency is 1 to 1 when all pairs are consistent,
    however few they are.

    Args:
        consistency: what :func:`compute_reverse_consistency` gave, or a table like its ``details``.
        n_boot: bootstrap resamples of the pairs, for the interval of the consistency (percentiles).
        conf_level: of that interval.
        seed: makes the bootstrap reproducible.

    Raises:
        InputError: when there is no pair to look at, or an argument is out of range.

    Example:
        >>> import pairscale as ps
        >>> main = [{"ID1": "a", "ID2": "b", "better_id": "a"}]
        >>> back = [{"ID1": "b", "ID2": "a", "better_id": "b"}]
        >>> found = check_positional_bias(ps.compute_reverse_consistency(main, back), seed=1)
        >>> found.summary["n_inconsistent_pos1_bias"].item()
        1
    """
    n_boot = require_int(n_boot, "n_boot", least=1)
    conf_level = require_level(conf_level, "conf_level")
    details = _positioned(_details(consistency))
    n_pairs = details.height
    is_consistent = pl.col("is_consistent")
    # Drawing n pairs with replacement and counting the consistent ones is drawing from a binomial distribution.
    drawn = generator(seed).binomial(n_pairs, float(details["is_consistent"].sum()) / n_pairs, n_boot) / n_pairs
    tail = (1 - conf_level) / 2
    main, rev = details["winner_pos_main"], details["winner_pos_rev"]
    both = pl.concat([main, rev])
    summary = details.select(
        n_pairs=pl.len(), prop_consistent=is_consistent.mean(), boot_mean=drawn.mean(),
        boot_lwr=np.quantile(drawn, tail), boot_upr=np.quantile(drawn, 1 - tail), p_sample1_main=_first_wins(main),
        p_sample1_rev=_first_wins(rev), p_sample1_overall=_first_wins(both),
        total_pos1_wins=pl.lit((both == "pos1").sum()), total_comparisons=pl.lit(both.count()),
        n_inconsistent=(~is_consistent).sum(), n_inconsistent_pos1_bias=pl.col("is_pos1_bias").sum(),
        n_inconsistent_pos2_bias=pl.col("is_pos2_bias").sum(),
    )  # fmt: skip
    return RPositionalBias(summary.with_columns(cs.integer().cast(pl.Int64)), details)


def _first_wins(positions: pl.Series) -> pl.Expr:
    """The p-value of the first position winning half of the comparisons."""
    return pl.lit(sign_test(int((positions == "pos1").sum()), positions.count()), pl.Float64)


def _details(consistency: Any) -> pl.DataFrame:
    """The details as a checked table, whatever they came in."""
    if isinstance(consistency, Mapping):
        consistency = consistency.get("details", consistency)
    frame = to_frame(getattr(consistency, "details", consistency), "details")
    require_columns(frame, _NEEDED, "details")
    if frame.height == 0:
        raise InputError("no pair has a winner in both directions; there is nothing to check")
    if frame["is_consistent"].dtype != pl.Boolean or frame["is_consistent"].null_count():
        raise TableError("details: column 'is_consistent' must be true or false in every row")
    return frame.with_columns(pl.col(_NEEDED[:-1]).cast(pl.String))


def _positioned(details: pl.DataFrame) -> pl.DataFrame:
    """The details with who won by position, and which pairs went to one position twice."""
    for side in ("main", "rev"):
        better = pl.col(f"better_id_{side}")
        first = pl.when(better == pl.col(f"ID1_{side}")).then(pl.lit("pos1"))
        position = first.when(better == pl.col(f"ID2_{side}")).then(pl.lit("pos2"))
        details = details.with_columns(position.alias(f"winner_pos_{side}"))
    # Of a consistent pair nothing is said, unless all are: R's left join has nothing to join then, and says FALSE.
    otherwise = pl.lit(value=False) if details["is_consistent"].all() else None
    for n in (1, 2):
        is_biased = pl.all_horizontal(pl.col("winner_pos_main", "winner_pos_rev") == f"pos{n}")
        biased = pl.when(~pl.col("is_consistent")).then(is_biased).otherwise(otherwise)
        details = details.with_columns(biased.alias(f"is_pos{n}_bias"))
    return details
