"""People's scale of texts, from a judge's scale and answers of people.

The judge's scores z of the texts have a normal posterior. People's scores follow them as far as the judge is valid::

    h_i = b z_i + u_i,    u_i ~ N(0, tau²),    b = S r / sd(z),    tau = S sqrt(1 - r²)

and an answer of person p, who sees texts i and j, is logistic in ``slope_p (h_i - h_j) + position``. The slopes are
estimated in turn with the scores; their mean is 1. The correlation r is uniform from -1 to 1, and the spread S of
people's scores half-normal; both are integrated out on a grid. Given them, Newton's steps fit the answers, and
the normal distribution around the mode gives draws of h; those of z follow by Matheron's rule. The validity is the
correlation of h and z over these texts, draw by draw, so that an unreliable ranking is not called invalid, and one that
is known well is not called valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from pairscale.core.arrays import Floats, Ints

LEVEL = 0.95
"""Of the intervals."""

_N_DRAWS = 2000
_R_NODES = 29
_SPREADS = np.linspace(0.25, 6.0, 12)
_SPREAD_SCALE = 2.5  # of the half-normal prior of people's spread
_POSITION_SD = 0.3
_SLOPE_SD = 0.5
_SLOPE_ROUNDS = 2
_SLOPE_DRAWS = 200
_LEAST_SLOPE = 0.05
_MAX_STEPS = 25
_SETTLED = 1e-3
_LONGEST_STEP = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class JudgeScale:
    """The judge's posterior.

    Attributes:
        ids: the texts.
        draws: of their scores, each draw centred; (draws, texts).
    """

    ids: tuple[str, ...]
    draws: Floats

    @property
    def mean(self) -> Floats:
        """The posterior means."""
        return np.asarray(self.draws.mean(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class PeopleAnswers:
    """Answers of people.

    Attributes:
        first: per answer, the text that was shown first, as its place among the judge's texts.
        second: the other one.
        result: 1 where the first is better, 0 where the second is, .5 for a tie.
        person: who answered, by number.
        n_people: how many people there are.
        order_known: whether it is known which text was shown first.
    """

    first: Ints
    second: Ints
    result: Floats
    person: Ints
    n_people: int
    order_known: bool = True

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, slots=True, eq=False)
class PeopleScale:
    """Draws from the joint posterior.

    Attributes:
        judge: draws of the judge's scores, centred; (draws, texts).
        people: draws of people's scores, centred.
        validity: per draw, the correlation of the two over the texts.
        slopes: draws of each person's slope; (draws, people), all 1 for one person.
    """

    judge: Floats
    people: Floats
    validity: Floats
    slopes: Floats

    def interval(self) -> tuple[float, float]:
        """The shortest interval that holds the validity with a probability of 95 %.

        The validity of a good judge is near 1, where an interval that leaves out as much above as below would leave out
        the most probable values.
        """
        draws = np.sort(self.validity)
        size = math.ceil(LEVEL * len(draws))
        widths = draws[size - 1 :] - draws[: len(draws) - size + 1]
        start = int(np.argmin(widths))
        return float(draws[start]), float(draws[start + size - 1])


@dataclass(slots=True, eq=False)
class _Node:
    """The answers given one value of the correlation and of the spread."""

    b: float
    tau: float
    log_evidence: float
    mode: Floats
    factor: Floats = field(repr=False)


def people_scale(judge: JudgeScale, answers: PeopleAnswers, seed: int = 1) -> PeopleScale:
    """Draws of people's scores and of the validity, given their answers; without answers, from the prior.

    Args:
        judge: the judge's posterior.
        answers: of people.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    slopes = np.ones(answers.n_people)
    scale = _drawn(judge, answers, slopes, rng)
    if answers.n_people == 1:
        return scale
    for _ in range(_SLOPE_ROUNDS):
        slopes, _ = _slopes(scale, answers)
        scale = _drawn(judge, answers, slopes / slopes.mean(), rng)
    slopes, sd = _slopes(scale, answers)
    return replace(scale, slopes=rng.normal(slopes, sd, size=(_N_DRAWS, answers.n_people)))


def _drawn(judge: JudgeScale, answers: PeopleAnswers, slopes: Floats, rng: np.random.Generator) -> PeopleScale:
    """Draws of the scores and of the validity, given the people's slopes."""
    model = _Model(judge, answers, slopes)
    nodes, weights = model.nodes()
    chosen = rng.multinomial(_N_DRAWS, weights)
    z = []
    h = []
    for node, size in zip(nodes, chosen.tolist(), strict=True):
        if size:
            judge_part, people_part = model.draw(node, size, rng)
            z.append(judge_part)
            h.append(people_part)
    judge_draws = _centred(np.concatenate(z))
    people_draws = _centred(np.concatenate(h))
    shared = (judge_draws * people_draws).sum(axis=1)
    lengths = np.sqrt(np.square(judge_draws).sum(axis=1) * np.square(people_draws).sum(axis=1))
    return PeopleScale(judge_draws, people_draws, shared / lengths, np.ones((_N_DRAWS, answers.n_people)))


def _slopes(scale: PeopleScale, answers: PeopleAnswers) -> tuple[Floats, Floats]:
    """Every person's slope, the most probable one over the draws of the scores, and its standard deviation."""
    people = scale.people[:: _N_DRAWS // _SLOPE_DRAWS]
    gap = people[:, answers.first] - people[:, answers.second]
    slopes = np.ones(answers.n_people)
    curvature = np.ones(answers.n_people)
    for _ in range(_MAX_STEPS):
        chance = expit(slopes[answers.person] * gap)
        gradient = ((answers.result - chance) * gap).mean(axis=0)
        information = (chance * (1 - chance) * np.square(gap)).mean(axis=0)
        size = answers.n_people
        curvature = np.asarray(np.bincount(answers.person, information, size) + _SLOPE_SD**-2, dtype=np.float64)
        pull = np.bincount(answers.person, gradient, size) - (slopes - 1) / _SLOPE_SD**2
        slopes = np.maximum(slopes + pull / curvature, _LEAST_SLOPE)
    return slopes, 1 / np.sqrt(curvature)


class _Model:
    """The density of what is unknown: scores of the texts with answers, and the position effect."""

    def __init__(self, judge: JudgeScale, answers: PeopleAnswers, slopes: Floats) -> None:
        self.draws = judge.draws
        self.mean = judge.mean
        self.answers = answers
        self.texts = np.unique(np.concatenate([answers.first, answers.second])).astype(np.int64)
        self.size = len(self.texts)
        self.first = np.searchsorted(self.texts, answers.first)
        self.second = np.searchsorted(self.texts, answers.second)
        self.slope = slopes[answers.person]
        self.cross = covariances(judge.draws, self.texts)
        variances = judge.draws.var(axis=0, ddof=1)
        self.values, self.vectors = np.linalg.eigh(self.cross[self.texts])
        self.values = np.maximum(self.values, 0.0)
        self.sd = math.sqrt(np.mean(variances) + np.var(self.mean))

    def nodes(self) -> tuple[list[_Node], Floats]:
        """The grid of correlations and spreads, with the posterior weight of each node."""
        angles = np.linspace(-math.pi / 2, math.pi / 2, _R_NODES + 2)[1:-1]
        nodes: list[_Node] = []
        log_weights = []
        for spread in _SPREADS.tolist():
            mode: Floats | None = None
            for angle in angles.tolist():
                node = self._fitted(math.sin(angle), spread, mode)
                mode = node.mode
                nodes.append(node)
                log_prior = math.log(math.cos(angle)) - 0.5 * (spread / _SPREAD_SCALE) ** 2
                log_weights.append(node.log_evidence + log_prior)
        weights = np.exp(np.array(log_weights) - max(log_weights))
        return nodes, weights / weights.sum()

    def _fitted(self, r: float, spread: float, start: Floats | None) -> _Node:
        """Laplace's approximation given the correlation and the spread."""
        b = spread * r / self.sd
        tau = spread * math.sqrt(1 - r * r)
        if not self.size:
            return _Node(b, tau, 0.0, np.zeros(0), np.zeros((0, 0)))
        variances = b * b * self.values + tau * tau
        precision = (self.vectors / variances) @ self.vectors.T
        centre = np.append(b * self.mean[self.texts], 0.0)
        x = centre if start is None else start
        step = np.full(len(x), np.inf)
        value = self._log_density(x, centre, precision)
        for _ in range(_MAX_STEPS):
            gradient, information = self._slope(x, centre, precision)
            factor = cho_factor(information, lower=True)
            step = cho_solve(factor, gradient)
            step *= min(1.0, _LONGEST_STEP / max(np.abs(step).max(), 1e-300))
            moved = self._log_density(x + step, centre, precision)
            while moved < value - 1e-6 and np.abs(step).max() > _SETTLED:
                step /= 2
                moved = self._log_density(x + step, centre, precision)
            x = x + step
            value = moved
            if np.abs(step).max() < _SETTLED:
                break
        lower = np.tril(factor[0])
        log_determinant = 2 * np.log(np.diag(lower)).sum() + np.log(variances).sum()
        return _Node(b, tau, value - 0.5 * log_determinant, x, lower)

    def _predictor(self, x: Floats) -> Floats:
        """Per answer, its logit."""
        logit = self.slope * (x[self.first] - x[self.second])
        return logit + x[self.size] if self.answers.order_known else logit

    def _log_density(self, x: Floats, centre: Floats, precision: Floats) -> float:
        logit = self._predictor(x)
        scores = (x - centre)[: self.size]
        prior = scores @ precision @ scores + (x[self.size] / _POSITION_SD) ** 2
        return float((self.answers.result * logit - np.logaddexp(0.0, logit)).sum() - 0.5 * prior)

    def _slope(self, x: Floats, centre: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """The gradient of the log density, and the information."""
        chance = expit(self._predictor(x))
        design = np.zeros((len(chance), len(x)))
        rows = np.arange(len(chance))
        design[rows, self.first] += self.slope
        design[rows, self.second] -= self.slope
        if self.answers.order_known:
            design[:, self.size] = 1.0
        gradient = design.T @ (self.answers.result - chance)
        gradient[: self.size] -= precision @ (x - centre)[: self.size]
        gradient[self.size] -= x[self.size] / _POSITION_SD**2
        information = (design.T * (chance * (1 - chance))) @ design
        information[: self.size, : self.size] += precision
        information[self.size, self.size] += _POSITION_SD**-2
        return gradient, information

    def draw(self, node: _Node, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws of the judge's scores and of people's, given the correlation and the spread."""
        z = self.draws[rng.integers(len(self.draws), size=size)]
        if self.size:
            noise = rng.standard_normal((len(node.mode), size))
            x = node.mode[:, None] + solve_triangular(node.factor.T, noise, lower=False)
            h = x[: self.size].T
            before = node.b * z[:, self.texts] + node.tau * rng.standard_normal(h.shape)
            variances = node.b**2 * self.values + node.tau**2
            pull = ((h - before) @ self.vectors / variances) @ self.vectors.T
            z = z + node.b * pull @ self.cross.T
        people = node.b * z + node.tau * rng.standard_normal(z.shape)
        if self.size:
            people[:, self.texts] = h
        return z, people


def covariances(draws: Floats, texts: Ints) -> Floats:
    """The covariances of all texts' scores with those of some.

    Of draws, covariances between texts are noisy, and more so the more texts there are: these are shrunk.
    """
    centred = draws - draws.mean(axis=0)
    count, n = centred.shape
    cross: Floats = count / (count + n) * centred.T @ centred[:, texts] / (count - 1)
    cross[texts, np.arange(len(texts))] = draws.var(axis=0, ddof=1)[texts]
    return cross


def _centred(draws: Floats) -> Floats:
    return np.asarray(draws - draws.mean(axis=1, keepdims=True))
