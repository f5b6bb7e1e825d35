"""Whether the texts fall into two groups, and what the scores are then.

The prior of the scores is normal. Of texts that are either good or bad it takes the noise within each group for an
order, and a run claims to know more than it does. So another prior is held against it: each text belongs to one of two
groups, with a centre each and one spread within them. Groups are cut where the scores of the first prior part best; the
evidence of both priors, a half each beforehand, says how probable the groups are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, xlogy

from pairscale.core.arrays import Floats
from pairscale.models.bayes.model import Cells, JudgeParameters
from pairscale.models.bayes.normal import DENSE, N_DRAWS, Normal, Target, around_center, draw_around

if TYPE_CHECKING:
    import numpy.typing as npt

_OF_NORMAL_HALVES = 2 / np.pi
"""The share of the variance of a normal distribution that lies between its halves: scores with less are one group."""
_STEPS = 3  # towards the distance of the centres
_LONGEST = 1.0
_SEED = 20261120


@dataclass(frozen=True, slots=True, eq=False)
class TwoGroups:
    """Two groups of texts, as far as the answers show them.

    Attributes:
        probability: that there are two groups.
        draws: of the scores, if there are; one row per draw.
    """

    probability: float
    draws: Floats


class _Around(Target):
    """The posterior of how far each score is from the centre of its group."""

    def __init__(self, cells: Cells, model: JudgeParameters, centres: Floats) -> None:
        super().__init__(cells, model)
        self._apart = centres[cells.winner] - centres[cells.loser]

    def predictors(self, mean: Floats, judge: Floats) -> Floats:
        return super().predictors(mean, judge) + self._apart


def two_groups(means: Floats, cells: Cells, model: JudgeParameters) -> TwoGroups | None:
    """Whether texts fall into two groups; None where that is out of the question, or too many to tell.

    Args:
        means: posterior means of the scores under a normal prior.
        cells: the answers.
        model: which parameters that posterior has.
    """
    n = len(means)
    if n > DENSE or cells.z is not None or not np.ptp(means):
        return None
    upper, between = _cut(means)
    if between <= _OF_NORMAL_HALVES:
        return None
    share = upper.mean()
    across = upper[cells.winner].astype(np.float64) - upper[cells.loser]
    distance = means[upper].mean() - means[~upper].mean()
    for _ in range(_STEPS):
        centres = distance * (upper - share)
        target = _Around(cells, model, centres)
        center, _ = around_center(target)
        distance += _step(target, center, across)
    one, _ = around_center(Target(cells, model))
    log_odds = center.evidence - one.evidence + n * (xlogy(share, share) + xlogy(1 - share, 1 - share))
    log_odds -= 0.5 * np.log(cells.times.sum())  # the distance was chosen to suit the answers
    theta, _ = draw_around(target, N_DRAWS, np.random.default_rng(_SEED))
    return TwoGroups(float(expit(log_odds)), theta[:, :n] + centres)


def _cut(means: Floats) -> tuple[npt.NDArray[np.bool_], float]:
    """The better group of the two that differ most, and the share of the variance that lies between them."""
    order = np.sort(means - means.mean())
    size = np.arange(1, len(order))
    squares = np.square(np.cumsum(order)[:-1]) * len(order) / (size * (len(order) - size))
    best = int(squares.argmax())
    return means - means.mean() > order[best], float(squares[best] / np.square(order).sum())


def _step(target: Target, center: Normal, across: Floats) -> float:
    """A Newton step for the distance of the centres."""
    terms = target.averages(center.mean, center.spread, center.judge)
    times = target.cells.times
    slope = float((across * terms.slope) @ times)
    curvature = float((np.square(across) * terms.curvature) @ times)
    return float(np.clip(slope / max(curvature, 1e-9), -_LONGEST, _LONGEST))
