"""Does a judge favour a position? The same pairs in both orders, compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pairscale.checks.effect import PairedEffect, leaning, position_effect, sign_test
from pairscale.checks.orders import KEY, by_pair, count_votes, decided_rows, split_orders, votes_of
from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.notices import notice
from pairscale.core.options import require_int, require_level
from pairscale.core.provenance import Provenance
from pairscale.core.tables import Table, as_text, require_columns, require_ids, to_frame
from pairscale.pairing.table import generator

_DETAILS = (
    "key", "better_id_main", "ID1_main", "ID2_main", "n_main_votes", "n_main_A", "n_main_B", "is_main_tie",
    "better_id_rev", "ID1_rev", "ID2_rev", "n_rev_votes", "n_rev_A", "n_rev_B", "is_rev_tie", "is_consistent",
)  # fmt: skip
_SHOWN = ("ID1_main", "ID2_main", "better_id_main", "better_id_rev", "is_consistent")
_NEEDED = ("key", "ID1_main", "ID2_main", "better_id_main", "ID1_rev", "ID2_rev", "better_id_rev", "is_consistent")


@dataclass(frozen=True, slots=True, repr=False)
class ReverseConsistency(ReprMixin, table="details", columns=_SHOWN):
    """Whether the same sample won in both orders, pair by pair.

    Attributes:
        summary: one row, ``n_pairs n_consistent prop_consistent``; the share is null when there is no pair.
        details: one row per pair with a majority winner in both directions: who won each, in which order they stood,
            and the votes (``A`` for the sample shown first in that direction, ``B`` for the second).
        votes: one row per pair of either table, also those left out of ``details``: how often ``ID1`` (the lesser id)
            stood first and won then (``n_first won_first``), and stood second and won then.
        only_main: pairs that the reverse results lack.
        only_reverse: pairs that the main results lack.
        tied: pairs left out because a direction has as many votes for one as for the other.
        without_winner: rows left out because they name no winner of their pair.
        notices: what was left out, and what to be careful with.
    """

    summary: pl.DataFrame
    details: pl.DataFrame
    votes: pl.DataFrame
    only_main: int
    only_reverse: int
    tied: int
    without_winner: int
    notices: tuple[str, ...]

    def __repr__(self) -> str:
        n, same, share = self.summary.row(0)
        return f"<ReverseConsistency: {same:,} of {n:,} pairs consistent{f' ({share:.1%})' if n else ''}>"


@dataclass(frozen=True, slots=True, repr=False)
class PositionalBias(ReprMixin, ReportMixin, table="summary"):
    """What two orders say of a judge's preference for a position.

    Attributes:
        summary: one row with the manual's columns ``n_pairs prop_consistent boot_mean boot_lwr boot_upr p_sample1_main
            p_sample1_rev p_sample1_overall total_pos1_wins total_comparisons n_inconsistent n_inconsistent_pos1_bias
            n_inconsistent_pos2_bias``, and behind them ``prop_pos1 p_paired effect effect_lower effect_upper``.
        details: the input's rows with ``winner_pos_main winner_pos_rev is_pos1_bias is_pos2_bias``; the last two are
            null for a consistent pair, as in the R package.
        effect: the position effect in logits.
        p_paired: of the exact sign test among the inconsistent pairs: is one position favoured? It takes into account
            that both orders ask about the same two samples; ``p_sample1_overall`` counts them as independent.
        notices: what to be careful with.
        provenance: how to get the same again.
        consistency: the comparison of the two orders that it rests on; None when it was made from a table.
    """

    summary: pl.DataFrame
    details: pl.DataFrame
    effect: PairedEffect
    p_paired: float | None
    notices: tuple[str, ...]
    provenance: Provenance
    consistency: ReverseConsistency | None = None

    def __str__(self) -> str:
        return self.verdict

    @property
    def verdict(self) -> str:
        """The finding in plain words."""
        row = self.summary.row(0, named=True)
        first = row["n_inconsistent_pos1_bias"]
        second = row["n_inconsistent_pos2_bias"]
        total = first + second
        if total == 0:
            return f"no sign of position bias: of {_pairs(row['n_pairs'])} none went to one position in both orders"
        found = (
            f"of {_pairs(total)} that went to the same position in both orders, {first:,} went to the first "
            f"and {second:,} to the second (p = {_p(self.p_paired)})"
        )
        leans = leaning(first, second, self.effect.level)
        if leans in {"first", "second"}:
            return f"position bias: the {leans} position is favoured: {found}; {_size(self.effect)}"
        if leans == "few":
            return f"too few pairs to tell: {found}"
        return f"no sign of position bias: {found}; {_size(self.effect)}"


def _pairs(count: int) -> str:
    return f"{count:,} pair{'s' * (count != 1)}"


def _p(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.3f}" if value >= 0.001 else "below 0.001"


def _size(effect: PairedEffect) -> str:
    if effect.estimate is None or effect.even_chance is None:
        return "no effect can be estimated"
    return (
        f"effect {effect.estimate:+.2f} logits ({100 * effect.level:g}% interval {effect.lower:+.2f} to "
        f"{effect.upper:+.2f}): the first of two equal samples wins {effect.even_chance:.0%}"
    )


def compute_reverse_consistency(main_results: Table, reverse_results: Table) -> ReverseConsistency:
    """Compare the winners of pairs with the winners of the same pairs the other way round.

    A pair that was asked several times in a direction has the winner that most votes name; with as many votes for one
    as for the other it has none and is left out. Where a direction shows a pair in both orders, the more frequent
    order is the one that is reported.

    Args:
        main_results: results of any shape that says which sample stood first.
        reverse_results: the same for the reversed pairs.

    Returns:
        A :class:`ReverseConsistency`; rows without a winner are left out and counted, with a notice.

    Raises:
        TableError: when the columns are of no known shape, or do not say which sample stood first.

    Example:
        >>> main = [{"ID1": "a", "ID2": "b", "better_id": "a"}, {"ID1": "a", "ID2": "c", "better_id": "a"}]
        >>> back = [{"ID1": "b", "ID2": "a", "better_id": "a"}, {"ID1": "c", "ID2": "a", "better_id": "c"}]
        >>> compute_reverse_consistency(main, back).summary.row(0)
        (2, 1, 0.5)
    """
    compared = compare_orders(main_results, reverse_results)
    for message in compared.notices:
        notice(message)
    return compared


def compare_orders(main_results: Table, reverse_results: Table) -> ReverseConsistency:
    """The same as :func:`compute_reverse_consistency`, for callers who pass the notices on themselves."""
    frames: list[pl.DataFrame] = []
    notices: list[str] = []
    without_winner = 0
    for results, what in ((main_results, "main_results"), (reverse_results, "reverse_results")):
        frame, total = decided_rows(results, what)
        frames.append(frame)
        if frame.height < total:
            missing = total - frame.height
            without_winner += missing
            notices.append(f"{what}: left out {missing:,} of {total:,} rows, which name no winner of their pair")
    main = by_pair(frames[0], "main")
    reverse = by_pair(frames[1], "rev")
    pair = ["low", "high"]
    is_tied = pl.any_horizontal("is_main_tie", "is_rev_tie")
    both = main.join(reverse, on=pair, how="inner")
    tied = both.filter(is_tied).height
    details = (
        both.filter(~is_tied)
        .with_columns(key=KEY, is_consistent=pl.col("better_id_main") == pl.col("better_id_rev"))
        .sort("key", "low")
    )
    only_main = main.height - both.height
    only_reverse = reverse.height - both.height
    same_order = both.filter(pl.col("ID1_main") == pl.col("ID1_rev")).height
    mixed = both.filter(pl.any_horizontal("mixed_main", "mixed_rev")).height
    for count, reason in (
        (only_main + only_reverse, "left out, judged in one direction only"),
        (tied, "left out, no majority winner in a direction"),
        (same_order, "in the same order in both tables, which says nothing of position"),
        (mixed, "in both orders within one table, of which the more frequent was taken"),
    ):
        if count:
            notices.append(f"{reason}: {_pairs(count)}")
    consistent = int(details["is_consistent"].sum())
    summary = pl.DataFrame(
        {
            "n_pairs": [details.height],
            "n_consistent": [consistent],
            "prop_consistent": [consistent / details.height if details.height else None],
        },
        schema={"n_pairs": pl.Int64, "n_consistent": pl.Int64, "prop_consistent": pl.Float64},
    )
    return ReverseConsistency(
        summary,
        details.select(_DETAILS),
        count_votes(pl.concat(frames)),
        only_main,
        only_reverse,
        tied,
        without_winner,
        tuple(notices),
    )


def check_positional_bias(
    consistency: ReverseConsistency | Mapping[str, Any] | Table,
    n_boot: int = 1000,
    conf_level: float = 0.95,
    seed: int | None = None,
) -> PositionalBias:
    """Test whether a position is favoured, and say how sure the consistency is.

    ``p_sample1_*`` are exact two-sided binomial tests of position 1 winning half of the comparisons, as in the R
    package. They count every comparison as an independent toss, which forward and reverse of one pair are not: a
    consistent pair gives position 1 exactly one win of two, always. ``p_paired`` and ``effect`` respect that.

    Args:
        consistency: what :func:`compute_reverse_consistency` gave, a table like its ``details``, or results that hold
            both orders.
        n_boot: bootstrap resamples of the pairs, for the interval of the consistency (percentiles).
        conf_level: of that interval and of the effect's.
        seed: makes the bootstrap reproducible.

    Raises:
        InputError: when there is no pair to look at, or an argument is out of range.

    Example:
        >>> main = [{"ID1": "a", "ID2": "b", "better_id": "a"}]
        >>> back = [{"ID1": "b", "ID2": "a", "better_id": "b"}]
        >>> check_positional_bias(compute_reverse_consistency(main, back), seed=1).verdict
        'too few pairs to tell: of 1 pair that went to the same position in both orders, 1 went to the first and 0 \
to the second (p = 1.000)'
    """
    n_boot = require_int(n_boot, "n_boot", least=1)
    conf_level = require_level(conf_level, "conf_level")
    if not hasattr(consistency, "details") and not (isinstance(consistency, Mapping) and "details" in consistency):
        table = to_frame(consistency, "details")
        if {"ID1", "ID2", "better_id"} <= set(table.columns):
            consistency = compute_reverse_consistency(*split_orders(table))
    details = _positioned(_details(consistency))
    votes = consistency.votes if isinstance(consistency, ReverseConsistency) else votes_of(details)
    share = float(details["is_consistent"].mean())  # type: ignore[arg-type]
    n_pairs = details.height
    # Drawing n pairs with replacement and counting the consistent ones is drawing from a binomial distribution.
    drawn = generator(seed).binomial(n_pairs, share, n_boot) / n_pairs
    tail = (1 - conf_level) / 2
    lower, upper = np.quantile(drawn, [tail, 1 - tail])
    wins = {side: int((details[f"winner_pos_{side}"] == "pos1").sum()) for side in ("main", "rev")}
    valid = {side: details[f"winner_pos_{side}"].count() for side in ("main", "rev")}
    total_wins = sum(wins.values())
    total = sum(valid.values())
    first = int(details["is_pos1_bias"].sum())
    second = int(details["is_pos2_bias"].sum())
    effect = position_effect(votes, conf_level)
    p_paired = sign_test(first, first + second)
    row = {
        "n_pairs": n_pairs,
        "prop_consistent": share,
        "boot_mean": float(drawn.mean()),
        "boot_lwr": float(lower),
        "boot_upr": float(upper),
        "p_sample1_main": sign_test(wins["main"], valid["main"]),
        "p_sample1_rev": sign_test(wins["rev"], valid["rev"]),
        "p_sample1_overall": sign_test(total_wins, total),
        "total_pos1_wins": total_wins,
        "total_comparisons": total,
        "n_inconsistent": int((~details["is_consistent"]).sum()),
        "n_inconsistent_pos1_bias": first,
        "n_inconsistent_pos2_bias": second,
        "prop_pos1": total_wins / total if total else None,
        "p_paired": p_paired,
        "effect": effect.estimate,
        "effect_lower": effect.lower,
        "effect_upper": effect.upper,
    }
    counts = {name for name in row if name.startswith(("n_", "total_"))}
    summary = pl.DataFrame([row], schema={name: pl.Int64() if name in counts else pl.Float64() for name in row})
    settings = {"n_boot": n_boot, "conf_level": conf_level, "bootstrap": "percentile, over pairs"}
    provenance = Provenance("check_positional_bias", settings, seed)
    both = consistency if isinstance(consistency, ReverseConsistency) else None
    notices = () if both is None else both.notices
    return PositionalBias(summary, details, effect, p_paired, notices, provenance, both)


def _details(consistency: Any) -> pl.DataFrame:
    """The details as a checked table, whatever they came in."""
    if isinstance(consistency, Mapping) and "details" in consistency:
        consistency = consistency["details"]
    elif hasattr(consistency, "details"):
        consistency = consistency.details
    frame = to_frame(consistency, "details")
    require_columns(frame, _NEEDED, "details")
    if frame.height == 0:
        raise InputError("no pair has a winner in both directions; there is nothing to check")
    frame = require_ids(frame, [name for name in _NEEDED if name.startswith("ID")], "details")
    frame = frame.with_columns(as_text(frame[name], "details") for name in ("key", "better_id_main", "better_id_rev"))
    if frame["is_consistent"].dtype != pl.Boolean or frame["is_consistent"].null_count():
        raise TableError("details: column 'is_consistent' must be true or false in every row")
    return frame


def _positioned(details: pl.DataFrame) -> pl.DataFrame:
    """The details with who won by position, and which pairs went to one position twice."""
    for side in ("main", "rev"):
        better, first, second = (pl.col(f"{name}_{side}") for name in ("better_id", "ID1", "ID2"))
        position = pl.when(better == first).then(pl.lit("pos1")).when(better == second).then(pl.lit("pos2"))
        details = details.with_columns(position.alias(f"winner_pos_{side}"))
    if details["is_consistent"].all():  # R's left join has nothing to join then, and says FALSE
        return details.with_columns(is_pos1_bias=pl.lit(value=False), is_pos2_bias=pl.lit(value=False))
    return details.with_columns(
        pl.when(~pl.col("is_consistent"))
        .then((pl.col("winner_pos_main") == f"pos{n}") & (pl.col("winner_pos_rev") == f"pos{n}"))
        .alias(f"is_pos{n}_bias")
        for n in (1, 2)
    )
