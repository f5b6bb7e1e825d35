"""How reliable scores are, from the draws of a posterior; and correlations.

The reliability of a Bayesian fit is the squared correlation of the posterior means with the scores, as far as it is
known: its mean over the draws, with an interval. It trusts the prior, which is normal. A few texts far outside (a blank
page among essays) do not go with that: nearly every draw agrees with them, whatever it says of the others. They are
named, how far out they are counts as not told, and the reliability is given without them, too. Of texts that fall into
two groups, a normal prior would take the noise within each group for an order; so two groups are allowed for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pairscale.core.display import ReprMixin
from pairscale.models.bayes.convergence import BLOCK, by_rank
from pairscale.models.bayes.normal import DENSE, N_DRAWS, Normal, Target, around_center, draw_around

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.bayes.model import Cells, JudgeParameters

_MOST_OUTSIDE = 10  # texts for each one that may lie outside: more are no outliers but a second group
_WON_LITTLE = 0.2  # of their comparisons with the others, the texts outside won surely less than this
_FAR = 3.2  # standard deviations of the others' scores
_GAP = 0.7  # the same, to the next text
_OF_NORMAL_HALVES = 2 / np.pi  # the share of the variance of a normal distribution that lies between its halves
_GROUP_STEPS = 3  # towards the distance of the two centres
_LONGEST_STEP = 1.0
_UNLIKELY = 0.01  # two groups of texts that are less probable change nothing
_SEED = 20261118
_POSITIONS = np.linspace(-20.0, 6.0, 521)


@dataclass(frozen=True, slots=True, repr=False)
class ReliabilityOfDraws(ReprMixin):
    """How reliable the scores of a posterior are.

    Attributes:
        estimate: the posterior mean of the squared correlation of the posterior means with the scores; None where all
            posterior means are equal.
        lower: the lower end of its 95 % interval, from the draws.
        upper: the upper end.
        eap: ``Var(E[theta]) / (Var(E[theta]) + E[Var(theta)])``, EAP reliability.
        rank_correlation: the expected rank correlation of the order by posterior means with that by the scores.
        without_outliers: the estimate for the other texts; None where no text lies outside.
        outliers: the texts whose distance from the others is not told, as columns of the draws.
        p_two_groups: how probable it is that the texts fall into two groups; all figures but ``eap`` allow for it.
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    eap: float | None
    rank_correlation: float | None
    without_outliers: float | None
    outliers: tuple[int, ...]
    p_two_groups: float = 0.0

    def __str__(self) -> str:
        if self.estimate is None:
            return "no reliability: all scores are equal"
        return f"reliability {self.estimate:.3f} (95 % interval {self.lower:.3f} to {self.upper:.3f})"

    @property
    def columns(self) -> dict[str, float | None]:
        """By the names of a run's summary."""
        return {
            "reliability": self.estimate,
            "reliability_lower": self.lower,
            "reliability_upper": self.upper,
            "reliability_eap": self.eap,
            "rank_correlation": self.rank_correlation,
            "reliability_without_outliers": self.without_outliers,
        }


def reliability_of_draws(
    draws: Floats, cells: Cells | None = None, model: JudgeParameters | None = None
) -> ReliabilityOfDraws:
    """How reliable the scores of a posterior are.

    Args:
        draws: of the scores, one row per draw and one column per text.
        cells: the answers that they are the posterior of, of winners; without them, no text lies outside.
        model: which parameters it has.
    """
    means = draws.mean(axis=0)
    if not np.ptp(means):
        return ReliabilityOfDraws(None, None, None, None, None, None, ())
    mixed = draws
    p_two_groups = 0.0
    without = None
    outside = np.zeros(len(means), dtype=bool)
    if cells is not None and model is not None:
        mixed, p_two_groups = _with_groups(draws, cells, model)
        outside = outlying(means, cells)
        if outside.any():
            without = _without(outside, cells, model)
    squares = np.square(_correlations(mixed, means))
    lower, upper = np.quantile(squares, [0.025, 0.975])
    return ReliabilityOfDraws(
        estimate=float(squares.mean()),
        lower=float(lower),
        upper=float(upper),
        eap=eap_reliability(means, draws.var(axis=0, ddof=1)),
        rank_correlation=expected_rank_correlation(mixed, means),
        without_outliers=without,
        outliers=tuple(np.flatnonzero(outside).tolist()),
        p_two_groups=p_two_groups,
    )


def _with_groups(draws: Floats, cells: Cells, model: JudgeParameters) -> tuple[Floats, float]:
    """Draws of the scores that allow for two groups of texts, and how probable two groups are."""
    groups = two_groups(draws.mean(axis=0), cells, model)
    if groups is None or groups.probability < _UNLIKELY:
        return draws, 0.0
    size = len(groups.draws)
    n_grouped = round(groups.probability * size)
    others = np.linspace(0, len(draws) - 1, size - n_grouped).astype(np.intp)
    return np.concatenate([groups.draws[:n_grouped], draws[others]]), groups.probability


# Two groups of texts. Another prior is held against the normal one: each text belongs to one of two groups, with a
# centre each and one spread within them. Groups are cut where the scores of the normal prior part best; the evidence of
# both priors, a half each beforehand, says how probable the groups are.


@dataclass(frozen=True, slots=True, eq=False)
class TwoGroups:
    """Two groups of texts, as far as the answers show them.

    Attributes:
        probability: that there are two groups.
        draws: of the scores, if there are; one row per draw.
    """

    probability: float
    draws: Floats


class _AroundCentres(Target):
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
    upper, between = _two_halves(means)
    if between <= _OF_NORMAL_HALVES:
        return None
    share = upper.mean()
    across = upper[cells.winner].astype(np.float64) - upper[cells.loser]
    distance = means[upper].mean() - means[~upper].mean()
    for _ in range(_GROUP_STEPS):
        centres = distance * (upper - share)
        target = _AroundCentres(cells, model, centres)
        center, _ = around_center(target)
        distance += _distance_step(target, center, across)
    one, _ = around_center(Target(cells, model))
    log_odds = center.evidence - one.evidence + n * scipy.special.xlogy([share, 1 - share], [share, 1 - share]).sum()
    log_odds -= 0.5 * np.log(cells.times.sum())  # the distance was chosen to suit the answers
    theta, _ = draw_around(target, N_DRAWS, np.random.default_rng(_SEED))
    return TwoGroups(float(scipy.special.expit(log_odds)), theta[:, :n] + centres)


def _two_halves(means: Floats) -> tuple[npt.NDArray[np.bool_], float]:
    """The better group of the two that differ most, and the share of the variance that lies between them."""
    order = np.sort(means - means.mean())
    size = np.arange(1, len(order))
    squares = np.square(np.cumsum(order)[:-1]) * len(order) / (size * (len(order) - size))
    best = int(squares.argmax())
    return means - means.mean() > order[best], float(squares[best] / np.square(order).sum())


def _distance_step(target: Target, center: Normal, across: Floats) -> float:
    """A Newton step for the distance of the centres."""
    terms = target.averages(center.mean, center.spread, center.judge)
    times = target.cells.times
    slope = float((across * terms.slope) @ times)
    curvature = float((np.square(across) * terms.curvature) @ times)
    return float(np.clip(slope / max(curvature, 1e-9), -_LONGEST_STEP, _LONGEST_STEP))


def expected_r2(draws: Floats, means: Floats) -> float:
    """The mean over draws of the squared correlation with the posterior means."""
    return float(np.square(_correlations(draws, means)).mean())


def expected_rank_correlation(draws: Floats, scores: Floats) -> float:
    """The mean over draws of the rank correlation with some scores."""
    in_order = np.arange(2.0, 2 * len(scores) + 1)  # twice the ranks
    rank = by_rank(scores[None], in_order)[0]
    blocks = np.array_split(draws, 1 + draws.size // BLOCK)
    return float(np.concatenate([_correlations(by_rank(block, in_order), rank) for block in blocks]).mean())


def _correlations(rows: Floats, column: Floats) -> Floats:
    """Of each row with one column."""
    centred = column - column.mean()
    squares = rows.var(axis=1) * rows.shape[1] * (centred @ centred)
    return np.asarray(rows @ centred / np.sqrt(np.maximum(squares, 1e-300)))


def outlying(means: Floats, cells: Cells) -> npt.NDArray[np.bool_]:
    """The few texts, at either end, that lost or won nearly everything against the others and lie far from them.

    A posterior mean is drawn to the middle by the prior, so that it does not show how far out a text is. What shows it
    is where these comparisons alone would place the group, with half a win more. Of several groups at one end, the one
    with the widest gap to the next text is taken.
    """
    outside = np.zeros(len(means), dtype=bool)
    if cells.z is not None:  # logits say how far
        return outside
    for side, upper, lower in ((1.0, cells.winner, cells.loser), (-1.0, cells.loser, cells.winner)):
        scores = side * means
        order = np.argsort(scores)
        gaps = np.diff(scores[order])[: len(means) // _MOST_OUTSIDE]
        for last in np.argsort(-gaps, kind="stable"):
            members = np.zeros(len(means), dtype=bool)
            members[order[: last + 1]] = True
            if _far_below(scores, members, upper, lower, cells.times):
                outside |= members
                break
    return outside


def _far_below(scores: Floats, members: npt.NDArray[np.bool_], winner: Ints, loser: Ints, times: Floats) -> bool:
    """Whether members of a group won surely little, and their comparisons with the others place them far below."""
    rest = scores[~members]
    sd = rest.std()
    if rest.min() - scores[members].max() <= _GAP * sd:
        return False
    across = members[winner] != members[loser]
    weight = times[across]
    won = weight @ members[winner[across]]
    lost = weight.sum() - won
    if lost <= 0 or scipy.special.betaincinv(won + 1, lost, 0.95) > _WON_LITTLE:
        return False
    member = np.where(members[winner], winner, loser)[across]
    other = np.where(members[winner], loser, winner)[across]
    gaps = scores[member] - scores[members].mean() - scores[other]
    expected = scipy.special.expit(_POSITIONS[:, None] + gaps) @ weight
    position = np.interp(won + 0.5, expected, _POSITIONS)
    return bool(position < rest.mean() - _FAR * sd)


def _without(outside: npt.NDArray[np.bool_], cells: Cells, model: JudgeParameters) -> float | None:
    """The reliability of the other texts by their own comparisons: those outside widen the prior of all."""
    number = np.cumsum(~outside) - 1
    kept = ~(outside[cells.winner] | outside[cells.loser])
    rest = replace(
        cells,
        winner=number[cells.winner[kept]],
        loser=number[cells.loser[kept]],
        sign=cells.sign[kept],
        times=cells.times[kept],
        n_items=int((~outside).sum()),
        judge=None,
    )
    theta, _ = draw_around(Target(rest, model), N_DRAWS, np.random.default_rng(_SEED))
    return reliability_of_draws(theta[:, : rest.n_items]).estimate


def eap_reliability(means: Floats, variances: Floats) -> float:
    """The share of the variance of true scores that a posterior knows, from its means and variances."""
    between = float(means.var(ddof=1))
    return between / (between + float(variances.mean()))


def pearson(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Pearson's correlation."""
    if _is_flat(x) or _is_flat(y):
        return None
    scaled = []
    for values in (x, y):
        apart = values - values.mean(dtype=np.float64)
        apart = apart / np.abs(apart).max()  # so that no square is lost
        scaled.append(apart / np.sqrt(apart @ apart))
    return float(np.clip(scaled[0] @ scaled[1], -1, 1))


def spearman(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Spearman's rank correlation."""
    if len(x) < 2:
        return None
    in_order = np.arange(2.0, 2 * len(x) + 1)
    return pearson(by_rank(x[None], in_order)[0], by_rank(y[None], in_order)[0])


def kendall(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Kendall's tau-b."""
    from scipy.stats import kendalltau  # which takes most of a second to import

    return None if _is_flat(x) or _is_flat(y) else float(kendalltau(x, y).statistic)


def _is_flat(values: npt.NDArray[Any]) -> bool:
    return len(values) < 2 or bool(values.min() == values.max())
