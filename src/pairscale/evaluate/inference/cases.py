"""The cases of a comparison of two variants as numbers: scores, counts of outcomes, and sums by task.

A case is scored for variant B: 1 when B won, 0 when A won, ½ for a tie and for a flip (the judge changed its mind with
the order). A graded case has a preference instead, the probability that B is better, which is its score. Abstentions
and errors have no score; they are counted, and never taken for ties.
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
from pairscale.core.tables import Table, as_text, require_columns, require_ids, row_numbers, to_frame

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

Ties: TypeAlias = Literal["half", "excluded"]
"""What a tie and a flip are worth: half a win, or nothing, so that decided cases alone count."""

Texts: TypeAlias = tuple[str, ...]
"""Several texts, such as names or notices."""
Ends: TypeAlias = tuple[float, float]
"""The lower and the upper end of an interval."""
ArrayPair: TypeAlias = "tuple[Floats, Floats]"
"""Two arrays that belong together: lower and upper ends, or scores and how often each occurred."""

USED: dict[str, Texts] = {"half": ("win", "tie", "flip"), "excluded": ("win",)}
"""The outcomes that a statistic rests on, by how it treats ties."""

_REQUIRED = {"task_id": pl.String, "outcome": pl.String, "winner": pl.String}
_HALF = ("tie", "flip")


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores that a statistic uses: one per task, the mean over its cases, so that every task counts once.

    The cases of a task are not independent. Weighed by their number, one popular task could decide alone.

    Attributes:
        means: the mean score of each task.
        n: cases.
    """

    means: Floats
    n: int

    @property
    def tasks(self) -> int:
        """Tasks."""
        return len(self.means)

    @property
    def mean(self) -> float | None:
        """The rate; None without a case."""
        return float(self.means.mean()) if self.n else None

    @property
    def variance(self) -> float:
        """The variance of the means, divided by their number less 1; 0 with fewer than two."""
        return float(self.means.var(ddof=1)) if self.tasks > 1 else 0.0

    @property
    def skewness(self) -> float:
        """Of the rate; 0 where the means do not vary."""
        rest = self.means - self.means.mean()
        spread = float(rest @ rest)
        return float((rest**3).sum()) / spread**1.5 if spread > 1e-12 else 0.0

    @property
    def halves(self) -> float:
        """The share of the means that are ½."""
        return float((self.means == 0.5).mean())

    @property
    def graded(self) -> bool:
        """Whether some means are none of 0, ½ and 1."""
        return not np.isin(self.means, (0.0, 0.5, 1.0)).all()

    @property
    def repeated(self) -> bool:
        """Whether some task has several cases."""
        return self.n > self.tasks


def hard_winner(preference: float) -> Literal["a", "b", "tie"]:
    """The hard verdict of a graded preference for B: ``b`` above ½, ``a`` below ½, ``tie`` at exactly ½.

    Example:
        >>> hard_winner(0.83), hard_winner(0.5)
        ('b', 'tie')
    """
    return "b" if preference > 0.5 else "a" if preference < 0.5 else "tie"


def score_of(outcome: str, winner: str | None, preference: float | None = None) -> float | None:
    """What a case is worth to B: its graded preference, else 1, ½ or 0; None for an abstention or an error.

    Example:
        >>> score_of("win", "b"), score_of("flip", None), score_of("error", None), score_of("win", "b", 0.83)
        (1.0, 0.5, None, 0.83)
    """
    kind = Outcome(outcome)
    if preference is not None and kind.is_answer:
        return preference
    if kind is Outcome.WIN:
        if winner not in {"a", "b"}:
            raise InputError(f"the winner of a case is {winner!r}; it must be 'a' or 'b'")
        return float(winner == "b")
    return 0.5 if kind.is_answer else None


def read_cases(cases: Table, what: str = "cases", *, graded: bool = True) -> pl.DataFrame:
    """Cases with their columns ``score`` and ``preference``, checked; other columns are kept.

    Args:
        cases: ``task_id``, ``outcome`` (win, tie, flip, abstention, error), ``winner`` (a or b, of a win), and
            ``preference`` (the probability that B is better) where cases are graded; or ``task_id`` and ``preference``
            alone, where a missing preference is an abstention.
        what: its name in an error message.
        graded: take a preference as the score; otherwise the score is that of the hard verdict.

    Raises:
        TableError: when a column is missing, or an outcome, a winner or a preference is none.
    """
    frame = to_frame(cases, what)
    frame = _with_preferences(frame if frame.columns else pl.DataFrame(schema=_REQUIRED), what)
    require_columns(frame, list(_REQUIRED), what)
    frame = require_ids(frame, ["task_id"], what)
    frame = frame.with_columns(as_text(frame[name], what) for name in ("outcome", "winner"))
    kind = frame["outcome"]
    winner = frame["winner"]
    preference = frame["preference"]
    agrees_a = (winner == "a") & (preference < 0.5).fill_null(value=True)
    agrees_b = (winner == "b") & (preference > 0.5).fill_null(value=True)
    fits = kind.is_in(list(Outcome)) & ((kind != "win") | agrees_a | agrees_b)
    wrong = ~fits.fill_null(value=False)
    if wrong.any():
        raise TableError(
            f"{what}: {row_numbers(wrong)}: outcome must be one of {', '.join(Outcome)}, and the winner of a win 'a' "
            "or 'b', as the preference (that B is better) says where there is one"
        )
    outcome = pl.col("outcome")
    frame = frame.with_columns(preference=pl.when(outcome.is_in(USED["half"])).then(pl.col("preference")))
    score = pl.when(outcome == "win").then((pl.col("winner") == "b").cast(pl.Float64))
    hard = score.when(outcome.is_in(_HALF)).then(0.5)
    return frame.with_columns(score=pl.coalesce("preference", hard) if graded else hard)


def _with_preferences(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """Cases with a checked column ``preference``; where that is all they have, with the hard verdicts that follow."""
    if "preference" not in frame.columns:
        return frame.with_columns(preference=pl.lit(None, pl.Float64))
    stated_column = frame["preference"]
    numbers = stated_column.cast(pl.Float64, strict=False).fill_nan(None)
    wrong = ~numbers.is_between(0, 1).fill_null(value=True)
    if wrong.any() or stated_column.dtype in {pl.Boolean, pl.String}:
        raise TableError(
            f"{what}: column 'preference' must hold numbers from 0 to 1, the probability that B is better; see "
            f"{row_numbers(wrong)} (subtract 1 from a scale of 1 to 2)"
        )
    frame = frame.with_columns(numbers)
    if {"outcome", "winner"} & set(frame.columns):
        return frame
    stated = pl.col("preference")
    kind = pl.when(stated == 0.5).then(pl.lit("tie")).when(stated.is_null()).then(pl.lit("abstention"))
    winner = pl.when(stated > 0.5).then(pl.lit("b")).when(stated < 0.5).then(pl.lit("a"))
    return frame.with_columns(outcome=kind.otherwise(pl.lit("win")), winner=winner)


def graded_count(frame: pl.DataFrame) -> int:
    """How many of the cases that were read have a graded preference."""
    return frame.height - frame["preference"].null_count()


def used_cases(frame: pl.DataFrame, ties: str) -> pl.DataFrame:
    """Those of the cases that count when ties are treated so.

    Raises:
        UnknownNameError: for another treatment.
    """
    return frame.filter(pl.col("outcome").is_in(USED[require_choice(ties, "ties", USED)]))


def tally(frame: pl.DataFrame) -> dict[str, int]:
    """Of cases that were read: ``wins`` and ``losses`` of B, and ``ties flips abstentions errors``."""
    kinds = frame["outcome"].to_list()
    wins = int(((frame["outcome"] == "win") & (frame["winner"] == "b")).sum())
    others = {"ties": "tie", "flips": "flip", "abstentions": "abstention", "errors": "error"}
    return {"wins": wins, "losses": kinds.count("win") - wins} | {name: kinds.count(others[name]) for name in others}


def by_task(used: pl.DataFrame) -> Scores:
    """The mean score of each task, in the order in which tasks come."""
    return Scores(_means(used)["score"].to_numpy(), used.height)


def _means(used: pl.DataFrame) -> pl.DataFrame:
    return used.group_by("task_id", maintain_order=True).agg(pl.col("score").mean())


def task_means(cases: Table, what: str, *, graded: bool = True) -> pl.DataFrame:
    """The mean score of each task, ties and flips as half: ``task_id score graded``.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``, and ``preference`` where they are graded.
        what: they are called in messages.
        graded: take preferences as scores.
    """
    used = used_cases(read_cases(cases, what, graded=graded), "half")
    return _means(used).with_columns(graded=pl.lit(graded and graded_count(used) > 0))


def normal_quantile(level: float) -> float:
    """How many standard deviations a two-sided normal interval of this level reaches."""
    return NormalDist().inv_cdf((1 + level) / 2)
