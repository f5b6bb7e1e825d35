"""The cases of a comparison of two variants as numbers: scores, counts of outcomes, and sums by task.

A case is scored for variant B: 1 when B won, 0 when A won, ½ for a tie and for a flip (the judge changed its mind with
the order). Abstentions and errors have no score; they are counted, and never taken for ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError, TableError
from pairscale.core.options import require_choice
from pairscale.core.tables import Table, as_text, listed, require_columns, require_ids, row_numbers, to_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "USED",
    "Scores",
    "Tally",
    "Ties",
    "by_task",
    "normal_quantile",
    "read_cases",
    "score_of",
    "tally",
    "task_means",
    "used_cases",
]

Ties: TypeAlias = Literal["half", "excluded"]
"""What a tie and a flip are worth: half a win, or nothing, so that decided cases alone count."""

USED: dict[str, tuple[str, ...]] = {"half": ("win", "tie", "flip"), "excluded": ("win",)}
"""The outcomes that a statistic rests on, by how it treats ties."""

_REQUIRED = {"task_id": pl.String(), "outcome": pl.String(), "winner": pl.String()}
_HALF = ("tie", "flip")


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cases came out how.

    Attributes:
        wins: B won.
        losses: A won.
        ties: neither.
        flips: another answer in the other order.
        abstentions: no answer was given.
        errors: something went wrong.
    """

    wins: int
    losses: int
    ties: int
    flips: int
    abstentions: int
    errors: int


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores that a statistic uses, summed by task.

    Attributes:
        sizes: cases of each task.
        sums: of their scores.
        squares: the sum of all squared scores.
        halves: how many scores are ½.
    """

    sizes: Floats
    sums: Floats
    squares: float
    halves: int

    @property
    def n(self) -> int:
        """Cases."""
        return int(self.sizes.sum())

    @property
    def tasks(self) -> int:
        """Tasks."""
        return len(self.sizes)

    @property
    def mean(self) -> float | None:
        """The rate, over cases; None without one."""
        return float(self.sums.sum() / self.sizes.sum()) if self.n else None

    @property
    def repeated(self) -> bool:
        """Whether some task has several cases, which then are not independent."""
        return self.n > self.tasks


def score_of(outcome: str, winner: str | None) -> float | None:
    """What a case is worth to B: 1, ½ or 0; None for an abstention or an error.

    Example:
        >>> score_of("win", "b"), score_of("flip", None), score_of("error", None)
        (1.0, 0.5, None)
    """
    kind = Outcome(outcome)
    if kind is Outcome.WIN:
        if winner not in {"a", "b"}:
            raise InputError(f"the winner of a case is {winner!r}; it must be 'a' or 'b'")
        return float(winner == "b")
    return 0.5 if kind.is_answer else None


def read_cases(cases: Table, what: str = "cases") -> pl.DataFrame:
    """Cases with their column ``score``, checked; other columns are kept.

    Args:
        cases: ``task_id``, ``outcome`` (win, tie, flip, abstention, error), ``winner`` (a or b, of a win).
        what: its name in an error message.

    Raises:
        TableError: when a column is missing, or an outcome or a winner is none of these.
    """
    frame = to_frame(cases, what)
    if not frame.columns:
        frame = pl.DataFrame(schema=_REQUIRED)
    require_columns(frame, list(_REQUIRED), what)
    frame = require_ids(frame, ["task_id"], what)
    frame = frame.with_columns(as_text(frame[name], what) for name in ("outcome", "winner"))
    unknown = ~frame["outcome"].is_in([str(kind) for kind in Outcome]).fill_null(value=False)
    if unknown.any():
        raise TableError(
            f"{what}: outcome {listed(frame['outcome'].filter(unknown).unique(maintain_order=True).to_list())} in "
            f"{row_numbers(unknown)}; it must be one of {', '.join(Outcome)}"
        )
    open_wins = (frame["outcome"] == "win") & ~frame["winner"].is_in(["a", "b"]).fill_null(value=False)
    if open_wins.any():
        raise TableError(f"{what}: a win has the winner 'a' or 'b'; {row_numbers(open_wins)} has neither")
    outcome = pl.col("outcome")
    score = pl.when(outcome == "win").then((pl.col("winner") == "b").cast(pl.Float64))
    return frame.with_columns(score=score.when(outcome.is_in(_HALF)).then(0.5))


def used_cases(frame: pl.DataFrame, ties: str) -> pl.DataFrame:
    """Those of the cases that count when ties are treated so.

    Raises:
        UnknownNameError: for another treatment.
    """
    return frame.filter(pl.col("outcome").is_in(USED[require_choice(ties, "ties", USED)]))


def tally(frame: pl.DataFrame) -> Tally:
    """Count the outcomes of cases that were read."""
    counts = dict(frame["outcome"].value_counts().iter_rows())
    won = int(frame["score"].eq(1).sum())
    return Tally(won, counts.get("win", 0) - won, *(counts.get(str(kind), 0) for kind in list(Outcome)[1:]))


def by_task(used: pl.DataFrame) -> Scores:
    """Scores summed by task, in the order in which tasks come."""
    sums = used.group_by("task_id", maintain_order=True).agg(size=pl.len(), sum=pl.col("score").sum())
    score = used["score"]
    return Scores(
        sums["size"].cast(pl.Float64).to_numpy(),
        sums["sum"].to_numpy(),
        float((score * score).sum()),
        int(score.eq(0.5).sum()),
    )


def task_means(cases: Table, what: str) -> pl.DataFrame:
    """The mean score of each task, ties and flips as half: ``task_id score``.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``.
        what: they are called in messages.
    """
    used = used_cases(read_cases(cases, what), "half")
    return used.group_by("task_id", maintain_order=True).agg(pl.col("score").mean())


def normal_quantile(level: float) -> float:
    """How many standard deviations a two-sided normal interval of this level reaches."""
    return NormalDist().inv_cdf((1 + level) / 2)
