"""Does a judge favour a position? The same pairs in both orders, compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pairscale.checks.effect import leaning, p_words, sign_test, wilson
from pairscale.checks.orders import KEY, by_pair, decided_rows
from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.errors import FitError, InputError
from pairscale.core.notices import notice, plural

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.models.bradley_terry import PositionEffect

_DETAILS = (
    "key", "better_id_main", "ID1_main", "ID2_main", "n_main_votes", "n_main_A", "n_main_B", "is_main_tie",
    "better_id_rev", "ID1_rev", "ID2_rev", "n_rev_votes", "n_rev_A", "n_rev_B", "is_rev_tie", "is_consistent",
)  # fmt: skip
_SHOWN = ("ID1_main", "ID2_main", "better_id_main", "better_id_rev", "is_consistent")

FEW = 20
"""Of fewer pairs the size of an effect is not told."""


@dataclass(frozen=True, slots=True, repr=False)
class ReverseConsistency(ReprMixin, table="details", columns=_SHOWN):
    """Whether the same sample won in both orders, pair by pair.

    Attributes:
        summary: one row, ``n_pairs n_consistent prop_consistent``; the share is null when there is no pair.
        details: one row per pair with a majority winner in both directions: who won each, in which order they stood,
            and the votes (``A`` for the sample shown first in that direction, ``B`` for the second).
        comparisons: every answer with a winner to a pair that was asked in both directions: ``ID1 ID2 better_id key``.
        without_winner: rows left out because they name no winner of their pair.
        notices: what was left out, and what to be careful with.
    """

    summary: pl.DataFrame
    details: pl.DataFrame
    comparisons: pl.DataFrame
    without_winner: int
    notices: tuple[str, ...]

    def __str__(self) -> str:
        n_pairs, n_consistent, share = self.summary.row(0)
        words = f"{n_consistent:,} of {n_pairs:,} pairs consistent"
        return f"{words} ({share:.1%})" if n_pairs else words


@dataclass(frozen=True, slots=True, repr=False)
class PositionalBias(ReprMixin, ReportMixin, table="summary"):
    """What two orders say of a judge's preference for a position.

    Attributes:
        summary: one row. ``n_pairs``; ``prop_decided decided_lower decided_upper``: the share of pairs that position
            decided, because the winner changed with the order; ``n_both_first n_both_second``: how many of them went to
            the first position both times, and to the second; ``p_paired``: the exact sign test between the two;
            ``prop_consistent consistent_lower consistent_upper``: the share of pairs with the same winner in both
            orders; ``prop_pos1``: the share of answers for the first position; ``effect effect_lower effect_upper``: in
            logits, null where these data do not tell it. Intervals of shares are Wilson's.
        details: one row per pair, as :func:`compute_reverse_consistency` gives them, and ``position``: ``first`` or
            ``second`` where that position won both times.
        effect: the effect of being the first in a Bradley–Terry model, with ``b se lower upper``; None where these data
            do not tell it.
        level: Level of the intervals.
        consistency: the comparison of the two orders that it rests on.
        why: why there is no effect; None where there is one.
    """

    summary: pl.DataFrame
    details: pl.DataFrame
    effect: PositionEffect | None
    level: float
    consistency: ReverseConsistency
    why: str | None = None

    @property
    def notices(self) -> tuple[str, ...]:
        """What was left out, and what to be careful with."""
        return self.consistency.notices

    def __str__(self) -> str:
        return self.verdict

    @property
    def verdict(self) -> str:
        """The finding in plain words."""
        row = self.summary.row(0, named=True)
        first = row["n_both_first"]
        second = row["n_both_second"]
        leans = leaning(first, second, self.level)
        if leans in {"first", "second"}:
            finding = f"position bias: the {leans} position is favoured; position decided"
        elif leans == "few":
            finding = "too few pairs to tell; the winner changed with the order in"
        else:
            finding = "no sign of position bias; the winner changed with the order in"
        decided, lower, upper = (100 * row[name] for name in ("prop_decided", "decided_lower", "decided_upper"))
        finding += (
            f" {decided:.0f} % of {plural(row['n_pairs'], 'pair')} ({100 * self.level:g} % confidence interval "
            f"{lower:.0f} to {upper:.0f} %)"
        )
        if first + second:
            finding += f": {first:,} went to the first both times, {second:,} to the second, {p_words(row['p_paired'])}"
        if self.effect is None:
            return f"{finding}; the effect in logits is not told: {self.why}"
        return (
            f"{finding}; effect {self.effect.b:+.2f} logits ({self.effect.lower:+.2f} to {self.effect.upper:+.2f}): "
            f"the first of two equal texts wins {100 / (1 + math.exp(-self.effect.b)):.0f} %"
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
    notices: list[str] = []
    rows = []
    without_winner = 0
    for results, what in ((main_results, "main_results"), (reverse_results, "reverse_results")):
        frame, missing = decided_rows(results, what)
        rows.append(frame)
        without_winner += missing
        if missing:
            total = frame.height + missing
            notices.append(f"{what}: left out {missing:,} of {total:,} rows, which name no winner of their pair")
    main = by_pair(rows[0], "main")
    reverse = by_pair(rows[1], "rev")
    pair = ["low", "high"]
    both = main.join(reverse, on=pair).with_columns(
        key=KEY, is_consistent=pl.col("better_id_main") == pl.col("better_id_rev")
    )
    details = both.drop_nulls("is_consistent").sort("key", "low")
    n_pairs = {
        "left out, judged in one direction only": main.height + reverse.height - 2 * both.height,
        "left out, no majority winner in a direction": both.height - details.height,
        "in the same order in both tables, which says nothing of position": both.filter(
            pl.col("ID1_main") == pl.col("ID1_rev")
        ).height,
        "in both orders within one table, of which the more frequent was taken": both.filter(
            pl.col("mixed_main") | pl.col("mixed_rev")
        ).height,
    }
    notices += [f"{reason}: {plural(count, 'pair')}" for reason, count in n_pairs.items() if count]
    consistent = pl.col("is_consistent")
    counts = {"n_pairs": pl.len(), "n_consistent": consistent.sum()}
    summary = details.select(
        **{name: count.cast(pl.Int64) for name, count in counts.items()}, prop_consistent=consistent.mean()
    )
    comparisons = pl.concat(rows).join(both.select(*pair, "key"), on=pair)
    return ReverseConsistency(summary, details.select(_DETAILS), comparisons, without_winner, tuple(notices))


def measure_bias(consistency: ReverseConsistency, level: float) -> PositionalBias:
    """Test whether a position is favoured, say how many pairs it decided, and how large the effect is.

    Raises:
        InputError: when no pair has a winner in both directions.
    """
    if consistency.details.height == 0:
        raise InputError("no pair has a winner in both directions; there is nothing to check")
    first_won = pl.col("better_id_main") == pl.col("ID1_main")
    is_by_position = ~pl.col("is_consistent") & (first_won == (pl.col("better_id_rev") == pl.col("ID1_rev")))
    details = consistency.details.with_columns(
        position=pl.when(is_by_position).then(pl.when(first_won).then(pl.lit("first")).otherwise(pl.lit("second")))
    )
    n_pairs = details.height
    n_first = details.filter(position="first").height
    n_second = details.filter(position="second").height
    n_same = int(details["is_consistent"].sum())
    effect = None
    why: str | None = "no winner changed with the order"  # any small effect fits; the sandwich would be certain of 0
    if n_first + n_second:
        effect, why = _effect(consistency.comparisons, level)
    decided = wilson(n_first + n_second, n_pairs, level)
    same = wilson(n_same, n_pairs, level)
    row = {
        "n_pairs": n_pairs,
        "prop_decided": (n_first + n_second) / n_pairs,
        "decided_lower": decided[0],
        "decided_upper": decided[1],
        "n_both_first": n_first,
        "n_both_second": n_second,
        "p_paired": sign_test(n_first, n_first + n_second),
        "prop_consistent": n_same / n_pairs,
        "consistent_lower": same[0],
        "consistent_upper": same[1],
        "prop_pos1": 0.5 + (n_first - n_second) / (2 * n_pairs),
        "effect": getattr(effect, "b", None),
        "effect_lower": getattr(effect, "lower", None),
        "effect_upper": getattr(effect, "upper", None),
    }
    schema = {name: pl.Int64() if name.startswith("n_") else pl.Float64() for name in row}
    return PositionalBias(pl.DataFrame([row], schema=schema), details, effect, level, consistency, why)


def _effect(comparisons: pl.DataFrame, level: float) -> tuple[PositionEffect | None, str | None]:
    """The effect of being the first in a Bradley–Terry model, or why these data do not tell it.

    The answers to one pair may depend on each other, as those of a judge that repeats itself do, so that the standard
    error is the sandwich's over pairs. The spread of the texts is learned; otherwise few answers for each of many texts
    would make every effect too large.
    """
    from pairscale.models.bradley_terry import fit_bt_model

    first_won = (comparisons["better_id"] == comparisons["ID1"]).mean()
    if comparisons["key"].n_unique() < FEW:
        return None, f"it takes {FEW} pairs"
    if first_won in (0, 1):
        return None, "every answer names the same position"
    try:
        fit = fit_bt_model(comparisons, engine="map", prior_sd="learned", position=True, cluster="key", level=level)
    except FitError:
        return None, "the pairs do not join all texts"
    return fit.position, None
