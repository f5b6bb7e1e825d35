"""Are a judge's probabilities right? They are held against people, or against its own answers in the other order.

An answer states q, the probability that the text shown first is better; y is 1 when the first is chosen by whom it is
held against, 0 when the second is, 0.5 for a tie. Shown are a reliability diagram (answers in bins of equal width by q,
and the mean of y in each), the Brier score (mean of ``(q - y)²``, where a tie is half of each), the expected
calibration error (mean distance of q and y over the bins, weighted by answers), and a logistic recalibration ``logit
P(y) = intercept + slope logit q``: a slope of 1 and an intercept of 0 are right, a slope below 1 is a judge that is
more certain than it should be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl
import scipy

from pairscale.checks.effect import wilson
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.options import FilePath, checked, require_int, require_level, require_probability
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints
    from pairscale.core.tables import Table
    from pairscale.store.runfile import RunFile

__all__ = ["Calibration", "answers_of", "calibrate", "calibrations_of", "check_calibration"]

Against: TypeAlias = Literal["people", "reversed"]

BINS: dict[str, pl.DataType] = {
    "from": pl.Float64(), "to": pl.Float64(), "n": pl.Int64(), "stated": pl.Float64(), "observed": pl.Float64(),
    "lower": pl.Float64(), "upper": pl.Float64(),
}  # fmt: skip
"""One row per bin with an answer: its ends, how many answers, the mean of q and of y, and Wilson's interval of y."""

FEW = 20
"""Of fewer pairs nothing is concluded."""

_WORDS = {
    "people": ("people", "people choose the same text"),
    "reversed": ("its own answers in the other order", "its answer in the other order is for the same text"),
}
_CHANCES = 200
_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibration(ReprMixin, table="bins"):
    """How far a judge's probabilities can be taken at their word.

    Attributes:
        against: ``people``, or ``reversed``: its own answers to the same pairs in the other order. These show whether
            it is as sure as it is consistent, not whether it is right.
        n: Answers with a probability.
        n_pairs: Pairs that they are about.
        brier: The mean of ``(q - y)²``, where a tie is half a win of each; 0.25 is that of "50 %" every time.
        ece: The expected calibration error.
        ece_by_chance: What it would be on average if every probability were right, with as many answers.
        slope: Of the logistic recalibration; None where it cannot be estimated.
        slope_lower: The lower end of its interval, by the pairs.
        slope_upper: The upper end.
        intercept: Of the same; below 0 the judge states too much for the text shown first.
        intercept_lower: The lower end of its interval.
        intercept_upper: The upper end.
        bins: The reliability diagram, one row per bin: ``from to n stated observed lower upper``.
        level: Of the intervals.
        why: Why there is no slope; None where there is one.
    """

    against: Against
    n: int
    n_pairs: int
    brier: float
    ece: float
    ece_by_chance: float
    bins: pl.DataFrame
    slope: float | None = None
    slope_lower: float | None = None
    slope_upper: float | None = None
    intercept: float | None = None
    intercept_lower: float | None = None
    intercept_upper: float | None = None
    level: float = 0.95
    why: str | None = None

    def agreeing(self, stated: float) -> float | None:
        """Where the judge gives a text this probability, how often that text is chosen, by the recalibration."""
        stated = min(max(require_probability(stated, "stated"), 1e-12), 1 - 1e-12)
        if self.slope is None or self.intercept is None:
            return None
        z = math.log(stated / (1 - stated))
        both = scipy.special.expit([self.slope * z + self.intercept, self.slope * z - self.intercept])
        return float(both.mean())

    @property
    def verdict(self) -> str:
        """The finding, in a sentence or two."""
        whose, one = _WORDS[self.against]
        about = f"{self.n:,} answers on {self.n_pairs:,} pairs"
        if self.n_pairs < FEW:
            return f"too few to tell whether the probabilities are right: {about}, held against {whose}"
        share = self.agreeing(0.9)
        if share is None or self.slope_lower is None or self.slope_upper is None:
            return f"no slope can be estimated from {about}, held against {whose}: {self.why}"
        if self.slope_lower <= 0:
            mood = "its probabilities are not shown to say anything"
        elif self.slope_upper < 1:
            mood = "it is more certain than it should be"
        elif self.slope_lower > 1:
            mood = "it is less certain than it could be"
        else:
            mood = "nothing speaks against its probabilities"
        place = ""
        if (self.intercept_lower or 0) > 0:
            place = "; it states too much for the text shown second"
        elif (self.intercept_upper or 0) < 0:
            place = "; it states too much for the text shown first"
        ends = f"{100 * self.level:g} % confidence interval {self.slope_lower:.2f} to {self.slope_upper:.2f}"
        return (
            f"where the judge says 90 %, {one} in {100 * share:.0f} %: {mood} (slope {self.slope:.2f}, {ends}; "
            f"{about}){place}"
        )

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        return {**asdict(self), "bins": self.bins.to_dicts()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Calibration:
        """What :meth:`to_dict` gave."""
        return cls(**{**document, "bins": pl.DataFrame(document["bins"], schema=BINS)})


@checked
def check_calibration(
    results: Table | str | Path | RunFile,
    labels: Table | str | Path | RunFile | None = None,
    *,
    bins: int = 10,
    level: float = 0.95,
    condition: str | None = None,
    key: FilePath | None = None,
) -> Calibration:
    """Tell whether a judge's probabilities are right: a reliability diagram, and the figures that go with it.

    Args:
        results: Answers with a column ``probability`` (that the first text is better): a table, a file or a run file.
        labels: What people said of the same pairs, in any form that ``ps.fit`` takes; of several people, the majority
            counts. Without labels, the judge's own answers in the other order take their place.
        bins: How many bins of equal width the diagram has.
        level: Level of the intervals.
        condition: Of a run file with several: a judge, or a condition (its beginning is enough).
        key: The key of labels that do not say what they compare.

    Returns:
        A :class:`Calibration` with ``verdict``, ``bins``, ``brier``, ``ece``, ``slope`` and ``intercept``.

    Raises:
        InputError: If no answer has a probability and something to hold it against.
        TableError: If the results or the labels cannot be read.

    Example:
        >>> import pairscale as ps
        >>> rows = [{"ID1": "a", "ID2": "b", "probability": 0.9}, {"ID1": "b", "ID2": "a", "probability": 0.2}]
        >>> ps.check_calibration(rows).bins["observed"].to_list()
        [0.0, 1.0]
    """
    bins = require_int(bins, "bins", least=2)
    level = require_level(level)
    table = read_comparisons(results, condition=condition).table
    people = None if labels is None else read_comparisons(labels, key=key).table
    answers = answers_of(table, people)
    if answers is None:
        raise InputError(
            "no answer has both a probability (answer='probability' asks for it) and something to compare it with: a "
            "label of the same pair, or the judge's own answer in the other order"
        )
    return calibrate(*answers, against="reversed" if labels is None else "people", bins=bins, level=level)


def answers_of(table: pl.DataFrame, people: pl.DataFrame | None = None) -> tuple[Floats, Floats, Ints] | None:
    """Stated probabilities, what they are held against, and the number of each answer's pair; None without any.

    Args:
        table: ``ID1 ID2 better_id probability``, and ``outcome`` and ``judge_id`` where there are any.
        people: The same of people, of whom the majority counts; None for the judge's own reversed answers.
    """
    if "probability" not in table.columns:
        return None
    answers = _placed(table).with_columns(q=pl.col("probability").cast(pl.Float64).fill_nan(None))
    if people is None:
        keys = ["judge", "low", "high", "low_first"]
        chosen = answers.drop_nulls("low_won").group_by(keys).agg(y=pl.col("low_won").mean())
        chosen = chosen.with_columns(~pl.col("low_first"))
    else:
        keys = ["low", "high"]
        votes = _placed(people).drop_nulls("low_won").group_by(keys).agg(y=pl.col("low_won").sum() - pl.len() / 2)
        chosen = votes.with_columns(y=(pl.col("y").sign() + 1) / 2)
    met = answers.drop_nulls("q").join(chosen, on=keys, how="inner", maintain_order="left")
    if not met.height:
        return None
    y = np.where(met["low_first"].to_numpy(), met["y"].to_numpy(), 1 - met["y"].to_numpy())
    pair = met.select(pl.struct("judge", "low", "high").rank("dense")).to_series().to_numpy().astype(np.int64) - 1
    return met["q"].to_numpy(), y, pair


def calibrations_of(table: pl.DataFrame, people: pl.DataFrame | None, level: float = 0.95) -> list[Calibration]:
    """Held against people and against the other order, as far as there is something; see :func:`answers_of`."""
    held: dict[Against, Any] = {"reversed": answers_of(table)}
    if people is not None:
        held = {"people": answers_of(table, people), **held}
    return [calibrate(*answers, against=against, level=level) for against, answers in held.items() if answers]


def _placed(table: pl.DataFrame) -> pl.DataFrame:
    """Answers by the two ids in their order: whether the lesser stood first, and how far it won (1, 0.5, 0 or null)."""
    first = pl.col("ID1").cast(pl.String)
    second = pl.col("ID2").cast(pl.String)
    better = pl.col("better_id").cast(pl.String)
    tie = pl.col("outcome") == "tie" if "outcome" in table.columns else pl.lit(value=False)
    low = pl.min_horizontal(first, second)
    high = pl.max_horizontal(first, second)
    won = pl.when(tie).then(0.5).when(better == low).then(1.0).when(better == high).then(0.0)
    judge = pl.col("judge_id").cast(pl.String).fill_null("") if "judge_id" in table.columns else pl.lit("")
    named = table.with_columns(low=low, high=high, low_first=first == low, low_won=won, judge=judge)
    return named.filter(first != second)


def calibrate(
    stated: Sequence[float] | Floats,
    observed: Sequence[float] | Floats,
    pair: Sequence[int] | Ints | None = None,
    *,
    against: Against = "people",
    bins: int = 10,
    level: float = 0.95,
) -> Calibration:
    """The figures of stated probabilities and what was observed.

    Args:
        stated: Per answer, q.
        observed: Per answer, y: 1, 0 or 0.5, or a share.
        pair: Per answer, the number of its pair; every answer is one of its own by default.
        against: What is observed.
        bins: Of the diagram.
        level: Of the intervals.
    """
    q = np.asarray(stated, dtype=np.float64)
    y = np.asarray(observed, dtype=np.float64)
    pairs = np.arange(len(q)) if pair is None else np.unique(np.asarray(pair), return_inverse=True)[1]
    places = np.minimum((q * bins).astype(np.int64), bins - 1)
    lucky = np.random.default_rng(1).random((_CHANCES, len(q))) < q
    line = _recalibrated(q, y, pairs, level)
    rows = []
    for place in np.unique(places).tolist():
        inside = places == place
        n = int(inside.sum())
        share = float(y[inside].mean())
        rows.append((place / bins, (place + 1) / bins, n, float(q[inside].mean()), share, *wilson(n * share, n, level)))
    return Calibration(
        against,
        len(q),
        int(pairs.max()) + 1,
        float(np.mean(y * (1 - q) ** 2 + (1 - y) * q**2)),
        _error(q, y, places, bins),
        float(np.mean([_error(q, chosen, places, bins) for chosen in lucky])),
        bins=pl.DataFrame(rows, schema=BINS, orient="row"),
        level=level,
        why=None if line else "the probabilities separate the choices, or do not vary",
        **line,
    )


def _error(q: Floats, y: Floats, places: Ints, bins: int) -> float:
    return float(np.abs(np.bincount(places, q - y, bins)).sum() / len(q))


def _recalibrated(q: Floats, y: Floats, pair: Ints, level: float) -> dict[str, Any]:
    """Slope and intercept, each with the ends of its interval by pairs behind it; nothing where they are not finite."""
    from pairscale.models.bayes.model import SATURATED

    with np.errstate(divide="ignore"):
        z = np.clip(np.log(q) - np.log1p(-q), -SATURATED, SATURATED)
    n_pairs = int(pair.max()) + 1
    up = z[y > 0]
    down = z[y < 1]
    is_above = up.min(initial=np.inf) >= down.max(initial=-np.inf)
    is_below = up.max(initial=-np.inf) <= down.min(initial=np.inf)
    if n_pairs < 3 or is_above or is_below:
        return {}
    x = np.stack([z, np.ones_like(z)], axis=1)
    beta = np.zeros(2)
    for _ in range(_STEPS):
        p = scipy.special.expit(x @ beta)
        inverse = np.linalg.inv(x.T @ (x * (p * (1 - p))[:, None]))
        step = inverse @ (x.T @ (y - p))
        size = float(np.abs(step).max())
        if size < 1e-9:
            break
        beta = beta + step / max(1.0, size)
    scores = np.stack([np.bincount(pair, column * (y - p), n_pairs) for column in x.T], axis=1)
    covariance = inverse @ (scores.T @ scores) @ inverse * n_pairs / (n_pairs - 1)
    half = float(scipy.special.stdtrit(n_pairs - 2, (1 + level) / 2)) * np.sqrt(np.diag(covariance))
    names = ("slope", "intercept", "slope_lower", "intercept_lower", "slope_upper", "intercept_upper")
    return dict(zip(names, np.concatenate([beta, beta - half, beta + half]).tolist(), strict=True))
