"""The model's win rate, corrected by the labels that people gave to some of the tasks.

With scores y by people and f by the model on n labelled tasks, and f alone on N others (Angelopoulos, Duchi and Zrnic
2023, "PPI++"):

    rate = mean(y) + w (mean of f on the others - mean of f on the labelled)

The estimate is honest for every w. The best w makes its variance least; with a model that says nothing about people's
choices it is 0, and what is left is the mean of the labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import require_level
from pairscale.core.tables import Table
from pairscale.evaluate.inference.cases import Ends, Texts, task_means
from pairscale.evaluate.inference.score import NO_SPREAD, graded_limits, half_share, score_interval

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

_IMAGINED = 0.25  # of a task on which model and people disagree, each way
_WORTHWHILE = 1.1  # times the labels that people gave: below, the model does not help


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
        notices: what to be careful with.
        graded: whose scores are graded preferences: ``model``, ``people``, both or none of them.
    """

    level: float
    model_rate: float | None
    unlabelled: int
    unmatched: int
    rate: float | None = None
    ci: Ends | None = None
    human_rate: float | None = None
    human_ci: Ends | None = None
    weight: float = 0.0
    helps: bool = False
    labels: int = 0
    effective_labels: float = 0.0
    notices: Texts = ()
    graded: Texts = ()


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
    corrected = CorrectedWinRate(
        level,
        model_rate=float(model["score"].to_numpy().mean()) if model.height else None,
        unlabelled=len(rest),
        unmatched=human.height - both.height,
        graded=tuple(who for who, scores in (("model", model), ("people", human)) if scores["graded"].any()),
    )
    if both.is_empty():
        why = f"no corrected win rate: there is no {'label' if model.height else 'verdict of the model'}"
        return replace(corrected, notices=(why,))
    people = both["score"].to_numpy()
    judged = both["score_model"].to_numpy()
    by_grades = "people" in corrected.graded
    rate, weight, size, ci, worth = correct(people, judged, rest, level, graded=by_grades)
    n = len(people)
    mean = float(people.mean())
    notices = []
    if rest.size and size == n:
        notices.append(
            notice(
                f"the verdicts of the model do not help: with them, {n} labels would be worth {worth:.1f}. The "
                "rate is that of the labels alone; label more tasks, or find a model that agrees better with people"
            )
        )
    if corrected.unmatched:
        notices.append(f"{corrected.unmatched} labelled tasks have no verdict of the model and were left out")
    return replace(
        corrected,
        rate=rate,
        ci=ci,
        human_rate=mean,
        human_ci=_limits(mean, people, float(n), level, graded=by_grades),
        weight=weight,
        helps=size > n,
        labels=n,
        effective_labels=size,
        notices=tuple(notices),
    )


def correct(
    people: Floats, judged: Floats, rest: Floats, level: float, *, graded: bool = False
) -> tuple[float, float, float, Ends, float]:
    """Rate, weight, effective labels, both ends, and what labels would be worth if the model were used anyway.

    Args:
        people: the scores by people of the labelled tasks.
        judged: those by the model of the same tasks.
        rest: those by the model of all other tasks.
        level: of the interval.
        graded: whether labels are graded, so that they may vary less than wins, ties and losses do.
    """
    n = len(people)
    mean = float(people.mean())
    alone = float(people.var()) / max(1, n - 1)
    worth = float(n)
    weight = 0.0
    if n > 2 and rest.size and alone > 0:
        # The imagined disagreements (1, 0) and (0, 1) enter all second moments, of people and model alike.
        centre = np.array([mean, judged.mean()])
        off = np.column_stack([people, judged]) - centre
        imagined = np.eye(2) - centre
        moments = (off.T @ off + _IMAGINED * imagined.T @ imagined) / (n - 1 + 2 * _IMAGINED)
        weight = float(np.clip(moments[0, 1] / (moments[1, 1] * (1 + n / len(rest))), 0, 1))
        combined = np.array([1, -weight])
        residual = combined @ moments @ combined * (n - 1) / (n - 2)
        variance = residual / n + weight**2 * rest.var() / len(rest)
        worth = float(n * alone / variance)
    rate = mean
    size = float(n)
    if worth < _WORTHWHILE * n:
        weight = 0.0
    else:
        rate = float(np.clip(mean + weight * (rest.mean() - judged.mean()), 0, 1))
        size = worth
    return rate, weight, size, _limits(rate, people, size, level, graded=graded), worth


def _limits(rate: float, people: Floats, size: float, level: float, *, graded: bool) -> Ends:
    """Both ends for a rate of labels that spread as these do, as if there were ``size`` of them."""
    mean, variance, n = people.mean(), people.var(), len(people)
    if not graded:
        halves = min(float(half_share(mean, variance)), 1 - abs(2 * rate - 1))
        return score_interval(rate, halves, size, level)
    off = people - mean
    skew = (off**3).sum() / max((off**2).sum(), NO_SPREAD) ** 1.5 * math.sqrt(n / size)
    spread = np.array([variance * n / max(1, n - 1)])
    lower, upper = graded_limits(np.array([rate]), spread, n, np.array([size]), level, np.array([skew]))
    return float(lower[0]), float(upper[0])
