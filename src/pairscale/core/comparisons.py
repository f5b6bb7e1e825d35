"""What a comparison is: its outcome, the condition it was made under, its keys, and the tables models take.

Five things stay five things: a **win**, a **tie**, an order **flip** (two orders, two answers), an **abstention**
(refused, or a label that is missing) and an **error**. None is ever counted as another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.columns import JUDGE_COLUMNS
from pairscale.core.errors import TableError
from pairscale.core.notices import notice
from pairscale.core.options import checked, require_choice, require_int
from pairscale.core.provenance import fingerprint
from pairscale.core.results import ORDER_KNOWN, as_comparisons, read_form
from pairscale.core.tables import CANONICAL, Table, row_numbers, times_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ERROR_CODES = (
    "http_error",
    "timeout",
    "rate_limited",
    "parse_error",
    "invalid_winner",
    "refusal",
    "cancelled",
    "judge_error",
    "content_filter",
    "truncated",
    "empty_answer",
)
"""Why an attempt gave no answer. ``judge_error``: the judge's own code raised an exception."""

PHASES = ("phase1", "phase2", "phase3")


class Outcome(StrEnum):
    """The five kinds of outcome."""

    WIN = "win"
    TIE = "tie"
    FLIP = "flip"
    ABSTENTION = "abstention"
    ERROR = "error"

    @property
    def is_answer(self) -> bool:
        """Whether the judge answered the question; an abstention or an error may be asked again."""
        return self is Outcome.WIN or self is Outcome.TIE or self is Outcome.FLIP


@dataclass(frozen=True, slots=True)
class Condition:
    """Everything besides the pair that may change an answer; answers are looked up and resumed by it.

    Attributes:
        judge_id: who judges, as users write it (``lexical``, ``openai:gpt-5.1``).
        backend: the family (``offline``, ``openai``, …).
        model: the model's name, where there is one.
        trait: what is judged.
        template_id: the prompt template's name, where there is one.
        settings: all the rest, such as the temperature or the hash of the template's text.
    """

    judge_id: str
    backend: str = "offline"
    model: str | None = None
    trait: str | None = None
    template_id: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def condition_id(self) -> str:
        """A digest of all the fields: equal conditions have equal ids, in every process."""
        return fingerprint([self.judge_id, self.backend, self.model, self.trait, self.template_id, dict(self.settings)])


# Keys. An id may contain the separators; they are escaped in keys only, so that no two pairs ever share a key.

_ESCAPES = (("%", "%25"), (":", "%3A"), ("#", "%23"))


PANEL = "panel"
"""The backend of a condition of several judges, and the name of the setting that holds the names of its members."""


def panel_member(first: str, second: str, size: int) -> int:
    """Which member of a panel answers about two texts: the same in both orders, in every process."""
    low, high = sorted((first, second))
    return int(fingerprint([low, high])[:12], 16) % size


def with_members(results: pl.DataFrame, panels: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Results with ``judge_id`` the member who answered, where a panel did.

    Args:
        results: ``ID1 ID2 judge_id condition_id``.
        panels: by the condition of a panel, the names of its members.
    """
    if not panels or not results.height:
        return results
    names = [
        panels[condition][panel_member(first, second, len(panels[condition]))] if condition in panels else judge
        for first, second, judge, condition in results.select("ID1", "ID2", "judge_id", "condition_id").iter_rows()
    ]
    return results.with_columns(pl.Series("judge_id", names, dtype=pl.String))


def ordered_key(first: str, second: str) -> str:
    """The key of an ordered pair, ``first:second``."""
    return f"{_escaped(first)}:{_escaped(second)}"


def _escaped(name: str) -> str:
    for plain, escaped in _ESCAPES:
        name = name.replace(plain, escaped)
    return name


def key_expressions(first: str, second: str) -> tuple[pl.Expr, pl.Expr]:
    """Polars expressions for the ordered and the unordered key of two id columns."""
    names = [pl.col(first), pl.col(second)]
    for plain, escaped in _ESCAPES:
        names = [name.str.replace_all(plain, escaped, literal=True) for name in names]
    ordered = pl.concat_str(names, separator=":")
    turned = pl.concat_str(names[::-1], separator=":")
    return ordered, pl.when(pl.col(first) <= pl.col(second)).then(ordered).otherwise(turned)


def occurrence(key: pl.Expr) -> pl.Expr:
    """1 for the first row with its value of ``key``, 2 for the second, and so on."""
    return pl.int_range(1, pl.len() + 1).over(key)


def pair_names() -> pl.Expr:
    """A name for each row with ``ID1`` and ``ID2``: its ordered key, and which occurrence of it this is."""
    ordered, _ = key_expressions("ID1", "ID2")
    return pl.format("{}#{}", ordered, occurrence(ordered))


OF_ITS_PAIR = ((pl.col("better_id") == pl.col("ID1")) | (pl.col("better_id") == pl.col("ID2"))).fill_null(value=False)
"""Whether a row has a winner of its own pair."""


def decided(results: Table) -> tuple[pl.DataFrame, list[str]]:
    """The rows with a winner of their own pair, and the notices about the rows that are left out."""
    frame = as_comparisons(results)
    kept = frame.filter(OF_ITS_PAIR)
    return kept, say_left_out(frame, kept, "a tie, no winner, or a winner that is not of the pair")


def say_left_out(frame: pl.DataFrame, kept: pl.DataFrame, why: str) -> list[str]:
    """How many rows were left out and why; nothing when all were kept."""
    if kept.height == frame.height:
        return []
    rows = _n_comparisons(frame)
    return [notice(f"left out {rows - _n_comparisons(kept):,} of {rows:,} rows: {why}")]


def _n_comparisons(table: pl.DataFrame) -> int:
    times = times_of(table)
    return table.height if times is None else int(times.sum())


DROP_COPIES = "Leave copies out"
AS_NEW = (
    "each of them counts as new evidence, and precision and reliability look better than they are. "
    f'{DROP_COPIES}, or give repeats="learned", which counts repeats of a pair by what they add'
)
"""How a model counts repeats when it takes each of them for new evidence."""
BY_ADDED = "they count by what they add"
"""How a model counts repeats when it weighs them by their agreement."""

_ANSWERS = {
    "ID1", "ID2", "A_id", "B_id", "object1", "object2", "winner", "loser", "candidate_chosen", "candidate_not_chosen",
    "better_id", "better_sample", "result", "winner_pos", "outcome", "text1", "text2", ORDER_KNOWN, *JUDGE_COLUMNS,
}  # fmt: skip
_MOST_COMPARED = 1_000_000  # rows; to compare more would take longer than to fit them
_COPIED = 0.05  # share of rows
_FEW = 20  # repeats of bare answers that all agree may well be chance


def is_bare(table: pl.DataFrame) -> bool:
    """Whether a table holds nothing but answers: no text, time or reply tells two equal ones apart."""
    return _ANSWERS.issuperset(_plain_columns(table))


def _plain_columns(table: pl.DataFrame) -> list[str]:
    return [name for name, kind in table.schema.items() if not kind.is_nested() and kind != pl.Object]


def say_copies(table: pl.DataFrame, counted: str = AS_NEW) -> list[str]:
    """A notice when rows repeat others word for word, else nothing; bare answers must all agree to be taken for copies.

    Args:
        table: ``ID1 ID2 better_id`` of the comparisons that are fitted, and all columns that tell them apart.
        counted: how the model counts them, and what to do about it.
    """
    n = table.height
    if n > _MOST_COMPARED or times_of(table) is not None:
        return []
    copies = n - table.select(_plain_columns(table)).n_unique() if n else 0
    if copies == 0 or copies < _COPIED * n:
        return []
    if is_bare(table):
        sides = pl.min_horizontal("ID1", "ID2").alias("low"), pl.max_horizontal("ID1", "ID2").alias("high")
        if copies < _FEW or table.select(*sides, "better_id").n_unique() > table.select(sides).n_unique():
            return []
    return [notice(f"{copies:,} of {n:,} rows repeat another row word for word; {counted}")]


def says_who_stood_first(results: Table) -> bool:
    """Whether results tell which sample was shown first; lists of winners and losers do not.

    A column ``order_known`` says it row by row.
    """
    frame = to_frame(results, "results")
    by_row = ORDER_KNOWN in frame.columns
    try:
        table = read_form(frame if by_row else frame.clear()).table
    except TableError:  # three columns under any names, or what the model will refuse
        return True
    if ORDER_KNOWN not in table.columns:
        return True
    return by_row and bool(table[ORDER_KNOWN].fill_null(value=True).all())


def build_bt_data(results: Table) -> pl.DataFrame:
    """The input of :func:`pairscale.fit_bt_model` from results of any shape.

    Args:
        results: see :func:`as_comparisons`. Rows without a winner of their own pair are left out, with a notice.

    Returns:
        ``object1`` (the first sample), ``object2`` (the second), ``result`` (1.0 when the first won, else 0.0).

    Example:
        >>> build_bt_data([{"ID1": "a", "ID2": "b", "better_id": "b"}]).rows()
        [('a', 'b', 0.0)]
    """
    kept, _ = decided(results)
    return kept.select(object1="ID1", object2="ID2", result=(pl.col("better_id") == pl.col("ID1")).cast(pl.Float64))


def build_elo_data(results: Table) -> pl.DataFrame:
    """The winners and losers of results of any shape, in order.

    Returns:
        ``winner`` and ``loser``; rows without a winner of their own pair are left out, with a notice.

    Example:
        >>> build_elo_data([{"ID1": "a", "ID2": "b", "better_id": "b"}]).rows()
        [('b', 'a')]
    """
    first_won = pl.col("better_id") == pl.col("ID1")
    loser = pl.when(first_won).then("ID2").otherwise("ID1")
    return decided(results)[0].select(winner="better_id", loser=loser)


@checked
def build_btl_results_data(
    results: Table,
    phase: str = "phase2",
    backend: str = "non_adaptive_import",
    model: str = "unknown",
    iter_start: int = 1,
    received_at_start: datetime | None = None,
) -> pl.DataFrame:
    """Results of any shape as the canonical results table, with deterministic keys.

    Args:
        results: see :func:`as_comparisons`; every row must have a winner.
        phase: ``phase1``, ``phase2`` or ``phase3``, for every row.
        backend: the label to record.
        model: the label to record.
        iter_start: the first value of ``iter``.
        received_at_start: the time of the first row (default 1970-01-01; UTC unless it says otherwise); each row is
            one second later.

    Returns:
        ``pair_uid`` (the unordered key, ``#`` and which occurrence of it this is), ``unordered_key`` (``min:max``),
        ``ordered_key`` (``A:B``), ``A_id``, ``B_id``, ``better_id``, ``winner_pos`` (1 or 2), ``phase``, ``iter``,
        ``received_at``, ``backend``, ``model``.

    Raises:
        TableError: when a winner is missing or is not of its pair; use :func:`build_bt_data` to leave such rows out.

    Example:
        >>> build_btl_results_data([{"ID1": "a", "ID2": "b", "better_id": "b"}]).select("pair_uid", "winner_pos").rows()
        [('a:b#1', 2)]
    """
    require_choice(phase, "phase", PHASES)
    first = require_int(iter_start, "iter_start")
    frame = as_comparisons(results)
    wrong = ~frame.select(OF_ITS_PAIR).to_series()
    if wrong.any():
        rows = f"{row_numbers(wrong)} (first {frame['better_id'].filter(wrong)[0]!r})"
        raise TableError(f"results: better_id is not of its pair, or missing, in {rows}; leave those rows out first")
    ordered, unordered = key_expressions("ID1", "ID2")
    start = received_at_start or datetime(1970, 1, 1, tzinfo=UTC)
    start = start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)
    steps = pl.int_range(0, pl.len(), dtype=pl.Int64)
    return (
        frame.with_columns(ordered_key=ordered, unordered_key=unordered)
        .select(
            pair_uid=pl.format("{}#{}", "unordered_key", occurrence(pl.col("unordered_key"))),
            unordered_key="unordered_key",
            ordered_key="ordered_key",
            A_id="ID1",
            B_id="ID2",
            better_id="better_id",
            winner_pos=pl.when(pl.col("better_id") == pl.col("ID1")).then(1).otherwise(2),
            phase=pl.lit(phase),
            iter=steps + first,
            received_at=pl.lit(start) + pl.duration(seconds=steps),
            backend=pl.lit(backend),
            model=pl.lit(model),
        )
        .cast(CANONICAL)  # type: ignore[arg-type]
    )
