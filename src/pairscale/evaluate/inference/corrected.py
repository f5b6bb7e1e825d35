"""The model's win rate, corrected by the labels that people gave to some of the tasks.

With scores y by people and f by the model on n labelled tasks, and f alone on N others (Angelopoulos, Duchi and Zrnic
2023, "PPI++"):

    rate = mean(y) + w (mean of f on the others - mean of f on the labelled)

The estimate is honest for every w. The best w makes its variance least; with a model that says nothing about people's
choices it is 0, and what is left is the mean of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import require_level
from pairscale.core.tables import Table
from pairscale.evaluate.inference.cases import USED, task_means
from pairscale.evaluate.inference.score import graded_limits, half_share, score_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_IMAGINED = 0.25  # of a task on which model and people disagree, each way
_NO_SPREAD = 1e-12  # of labels that are equal, but for rounding
_WORTHWHILE = 1.1  # times the labels that people gave: below, the model is said not to help


@dataclass(frozen=True, slots=True)
class CorrectedWinRate:
    """B's win rate as people would see it, from a few labels and many verdicts of a model.

    Attributes:
        rate: the corrected rate; that of the labels alone when the model does not help. None without a label.
        ci: its interval.
        human_rate: the mean of the labels.
        human_ci: its interval, from the labels alone.
        model_rate: the model's own rate over all of its tasks, uncorrected.
        weight: w, how far the model's verdicts are trusted: 0 to 1.
        helps: whether they are worth at least a tenth more labels.
        labels: tasks with a label and a verdict.
        unlabelled: tasks with a verdict only.
        unmatched: tasks with a label only; not used.
        effective_labels: how many labels alone would give an interval as narrow.
        level: of the intervals.
        interval: how they were made.
        used: the outcomes that count, of people and of the model.
        notices: what to be careful with.
        graded: whose scores are graded preferences: ``model``, ``people``, both or none of them.
    """

    level: float
    model_rate: float | None
    unlabelled: int
    unmatched: int
    rate: float | None = None
    ci: tuple[float, float] | None = None
    human_rate: float | None = None
    human_ci: tuple[float, float] | None = None
    weight: float = 0.0
    helps: bool = False
    labels: int = 0
    effective_labels: float = 0.0
    interval: str = "wilson"
    used: tuple[str, ...] = USED["half"]
    notices: tuple[str, ...] = ()
    graded: tuple[str, ...] = ()


def corrected_win_rate(
    model_cases: Table, human_cases: Table, *, level: float = 0.95, graded: bool = True
) -> CorrectedWinRate:
    """Correct a model's win rate by people's labels.

    The labelled tasks must be a random part of all tasks. Several verdicts or labels of a task are averaged first, and
    the rate is a mean over tasks; ties and flips are half. The interval is the score interval of
    :func:`~pairscale.evaluate.inference.win_rate` with ``effective_labels`` in the place of n, which is n times the
    variance of the mean label over that of the corrected rate.

    With few labels and a good model there may be no disagreement to see, and the variance would come out as nearly
    nothing. So half a task is imagined on which they disagree, a quarter each way. That makes intervals a little wider,
    which shows where labels are few.

    Scores of either may be graded. A judge's graded preferences often follow people's choices more closely than its
    hard verdicts do, and are then worth more labels.

    Args:
        model_cases: the model's cases: ``task_id``, ``outcome``, ``winner``, and ``preference`` where they are graded.
        human_cases: people's, of some of the same tasks.
        level: of the intervals.
        graded: count preferences where cases have them; False for hard verdicts.

    Raises:
        TableError: when the cases lack a column or hold another outcome.
        InputError: when labels and verdicts have no task in common.
    """
    level = require_level(level)
    model = task_means(model_cases, "model_cases", graded=graded)
    human = task_means(human_cases, "human_cases", graded=graded)
    both = human.join(model, on="task_id", suffix="_model")
    if both.is_empty() and model.height and human.height:
        raise InputError("model_cases and human_cases have no task in common; check the column 'task_id' of both")
    rest = model.join(human, on="task_id", how="anti")["score"].to_numpy()
    found = CorrectedWinRate(
        level,
        model_rate=float(model["score"].to_numpy().mean()) if model.height else None,
        unlabelled=len(rest),
        unmatched=human.height - both.height,
        graded=tuple(who for who, scores in (("model", model), ("people", human)) if scores["graded"].any()),
    )
    if both.is_empty():
        why = f"no corrected win rate: there is no {'label' if model.height else 'verdict of the model'}"
        return replace(found, notices=(why,))
    moments = ScoreMoments.of(both["score"].to_numpy()[None, :], both["score_model"].to_numpy()[None, :], rest[None, :])
    by_grades = "people" in found.graded
    rate, weight, size, lower, upper, worth = (float(part[0]) for part in correct(moments, level, graded=by_grades))
    labels = np.array([float(moments.n)])
    alone = _limits(moments.mean_y, moments, labels, level, graded=by_grades)
    notices = []
    if size == moments.n and moments.others:
        notices.append(
            notice(
                f"the verdicts of the model do not help: with them, {moments.n} labels would be worth {worth:.1f}. The "
                "rate is that of the labels alone; label more tasks, or find a model that agrees better with people"
            )
        )
    if found.unmatched:
        notices.append(f"{found.unmatched} labelled tasks have no verdict of the model and were left out")
    return replace(
        found,
        rate=rate,
        ci=(lower, upper),
        human_rate=float(moments.mean_y[0]),
        human_ci=(float(alone[0][0]), float(alone[1][0])),
        weight=weight,
        helps=size > moments.n,
        labels=moments.n,
        effective_labels=size,
        notices=tuple(notices),
    )


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """What the correction needs to know of the scores; every array has an entry for each data set.

    Attributes:
        n: labelled tasks.
        others: tasks with a verdict only.
        mean_y: of the labels.
        mean_f: of the verdicts on labelled tasks.
        mean_other: of the verdicts on the others.
        spread_y: the variance of the labels (by n).
        spread_f: of the verdicts on labelled tasks (by n).
        cross: the covariance of both (by n).
        spread_other: the variance of the verdicts on the others (by N).
        skew_y: the skewness of the mean label.
    """

    n: int
    others: int
    mean_y: Floats
    mean_f: Floats
    mean_other: Floats
    spread_y: Floats
    spread_f: Floats
    cross: Floats
    spread_other: Floats
    skew_y: Floats

    @classmethod
    def of(cls, y: Floats, f: Floats, other: Floats) -> ScoreMoments:
        """From scores, one row per data set."""
        n, others = y.shape[1], other.shape[1]
        mean_y, mean_f = y.mean(axis=1), f.mean(axis=1)
        cross = (y * f).mean(axis=1) - mean_y * mean_f
        none = np.zeros(len(y))
        mean_other, spread_other = (other.mean(axis=1), other.var(axis=1)) if others else (none, none)
        rest = y - mean_y[:, None]
        spread = np.maximum((rest**2).sum(axis=1), _NO_SPREAD)
        skew = (rest**3).sum(axis=1) / spread**1.5
        return cls(n, others, mean_y, mean_f, mean_other, y.var(axis=1), f.var(axis=1), cross, spread_other, skew)


def correct(
    moments: ScoreMoments, level: float, *, graded: bool = False
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Rate, weight, effective labels, both ends, and what labels would be worth if the model were used anyway.

    Args:
        moments: of the scores.
        level: of the interval.
        graded: whether labels are graded, so that they may vary less than wins, ties and losses do.
    """
    n, others = moments.n, moments.others
    y, f = moments.mean_y, moments.mean_f
    weight, ratio = np.zeros_like(y), np.ones_like(y)
    if others and n > 2:
        # The imagined disagreements (1, 0) and (0, 1) enter all second moments, of y and f alike.
        k, total = _IMAGINED, n - 1 + 2 * _IMAGINED
        s_yy = (n * moments.spread_y + k * ((1 - y) ** 2 + y**2)) / total
        s_ff = (n * moments.spread_f + k * ((1 - f) ** 2 + f**2)) / total
        s_yf = (n * moments.cross - k * ((1 - y) * f + y * (1 - f))) / total
        weight = np.clip(s_yf / (s_ff * (1 + n / others)), 0, 1)
        rest = (s_yy - 2 * weight * s_yf + weight**2 * s_ff) * (n - 1) / (n - 2)
        variance = rest / n + weight**2 * moments.spread_other / others
        alone = moments.spread_y / (n - 1)
        ratio = np.where(alone > 0, variance / np.where(alone > 0, alone, 1), 1)
    worth = n / ratio
    helps = worth >= _WORTHWHILE * n
    weight, size = np.where(helps, weight, 0.0), np.where(helps, worth, float(n))
    rate = np.clip(y + weight * (moments.mean_other - f), 0, 1)
    lower, upper = _limits(rate, moments, size, level, graded=graded)
    return rate, weight, size, lower, upper, worth


def _limits(rate: Floats, moments: ScoreMoments, size: Floats, level: float, *, graded: bool) -> tuple[Floats, Floats]:
    """Both ends for a rate of labels that spread as these do, as if there were so many of them."""
    if graded:
        skew = moments.skew_y * np.sqrt(moments.n / size)
        return graded_limits(rate, moments.spread_y * moments.n / max(1, moments.n - 1), moments.n, size, level, skew)
    halves = np.minimum(half_share(moments.mean_y, moments.spread_y), 1 - np.abs(2 * rate - 1))
    return score_limits(rate, halves, size, level)
