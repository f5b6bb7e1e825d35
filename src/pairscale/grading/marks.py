"""Marks of texts, from a judge's scale and a few texts whose marks are known.

The judge's scores of the texts have a posterior with mean m and covariance S. The known marks y follow them on a line::

    y = a + c m + error,    error ~ N(0, c² S + E + t² I)

where E is the covariance of the errors of the known marks, and t the scatter of true marks about the line, which is
there as far as the judge sees something else than those who gave the marks. Given c and t everything is normal and a
is known in closed form; c and t are integrated out on a grid. Draws of the other texts' marks follow by Matheron's
rule, so that the uncertainty of the known marks, of the scale and of the line all reach them.

From 15 known texts on, the line may bend: the scores are first taken through a monotone curve of two parameters,
which are integrated out as well. A known text has drifted if its mark is improbable given all the others; leaving it
out costs nothing, as the posterior without one of them follows from the one with all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import log_ndtr, logsumexp, ndtri, ndtri_exp

from pairscale.core.arrays import Floats, Ints
from pairscale.validity.scale import JudgeScale, covariances

FEWEST_FOR_CURVE = 15
"""With fewer known texts, marks follow the scores on a straight line."""
FEWEST_FOR_DRIFT = 4
"""With fewer known texts, none of them can be called drifted."""

_N_DRAWS = 2000
_N_SLOPES = 41
_WIDEST_SLOPES = 2.5  # how far the grid of slopes goes at most, in logarithms
_LEAST_CORRELATION = 0.2
_SCATTERS = np.array([0.0, 0.1, 0.2, 0.3, 0.45, 0.7])  # in standard deviations of the known marks
_SCATTER_PRIOR = np.array([0.8, 0.06, 0.05, 0.04, 0.03, 0.02])
_BENDS = (-0.6, -0.3, 0.0, 0.3, 0.6)
_ENDS = (0.35, 0.6, 1.0, 1.4)
_FALSE_ALARMS = 0.085  # of a run with many known texts none of which has drifted


@dataclass(frozen=True, slots=True, eq=False)
class KnownMarks:
    """Texts whose marks are known.

    Attributes:
        texts: their places among the judge's texts.
        marks: their marks.
        errors: the covariance of the errors of the marks.
    """

    texts: Ints
    marks: Floats
    errors: Floats


@dataclass(frozen=True, slots=True, eq=False)
class MarkScale:
    """Draws from the joint posterior of scores and marks.

    Attributes:
        known: the texts whose marks are known.
        theta: draws of the judge's scores, given the known marks too; (draws, texts).
        marks: draws of the true marks; (draws, texts).
        predicted: per known text, its mark as the others predict it.
        z: per known text, how far its mark is from that, as a standard normal deviate.
        lines: the line or curve of each draw.
        p_scatter: how probable it is that true marks scatter about it.
    """

    known: KnownMarks
    theta: Floats
    marks: Floats
    predicted: Floats
    z: Floats
    lines: list[_Line]
    p_scatter: float

    def theta_at(self, mark: float) -> Floats:
        """Draws of the score whose text would have this mark."""
        return np.array([line.curve.back((mark - line.intercept) / line.slope) for line in self.lines])

    def marks_at(self, theta: Floats) -> Floats:
        """Draws of the mark at a score, of which there is one for each draw."""
        pairs = zip(self.lines, theta.tolist(), strict=True)
        return np.array([line.intercept + line.slope * line.curve.forward(np.array(score)) for line, score in pairs])


@dataclass(frozen=True, slots=True)
class _Curve:
    """A monotone curve of the scores: straight with a bend of 0 and ends of 1."""

    bend: float
    ends: float
    centre: float
    spread: float

    def forward(self, theta: Floats) -> Floats:
        z = (theta - self.centre) / self.spread
        if self.bend == 0 and self.ends == 1:
            return z
        return np.sinh(self.ends * np.arcsinh(z) + self.bend)

    def back(self, value: float) -> float:
        return self.centre + self.spread * math.sinh((math.asinh(value) - self.bend) / self.ends)


@dataclass(frozen=True, slots=True)
class _Line:
    """How marks follow scores in one draw."""

    intercept: float
    slope: float
    curve: _Curve


def drift_threshold(n_known: int) -> float:
    """The deviate beyond which a known text has drifted: of runs without drift, at most 10 in 100 name one.

    With few texts, the others say little about the line, so that a deviation counts for less.
    """
    share = _FALSE_ALARMS * (1 - 2 / n_known)
    return float(ndtri((1 + (1 - share) ** (1 / n_known)) / 2))


def mark_scale(judge: JudgeScale, known_marks: KnownMarks, seed: int = 1) -> MarkScale:
    """Draws of the marks of all texts, and each known text beside what the others say.

    Args:
        judge: the judge's posterior.
        known_marks: at least two texts with their marks.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    means = judge.mean[known_marks.texts]
    centre = means.mean()
    spread = means.std()
    shapes = [(0.0, 1.0)]
    if len(known_marks.texts) >= FEWEST_FOR_CURVE:
        shapes = [(bend, ends) for bend in _BENDS for ends in _ENDS]
    grids = []
    for bend, ends in shapes:
        curve = _Curve(bend, ends, centre, spread)
        scores = curve.forward(judge.draws[:, known_marks.texts])
        for scatter, prior in zip(_SCATTERS * known_marks.marks.std(), _SCATTER_PRIOR, strict=True):
            grids.append(_LineGrid(curve, scores, known_marks, scatter, math.log(prior), len(judge.ids)))
    log_weights = np.concatenate([grid.log_weight for grid in grids])
    weights = np.exp(log_weights - logsumexp(log_weights)).reshape(len(grids), -1)
    theta = []
    marks = []
    lines: list[_Line] = []
    counts = rng.multinomial(_N_DRAWS, weights.ravel() / weights.sum()).reshape(weights.shape)
    for grid, by_slope in zip(grids, counts, strict=True):
        if by_slope.any():
            drawn = grid.draw(judge, known_marks, by_slope, rng)
            theta.append(drawn[0])
            marks.append(drawn[1])
            lines += drawn[2]
    predicted, z = _left_out(grids, log_weights, known_marks.marks)
    p_scatter = weights[[grid.scatter > 0 for grid in grids]].sum()
    return MarkScale(known_marks, np.concatenate(theta), np.concatenate(marks), predicted, z, lines, p_scatter)


def _left_out(grids: list[_LineGrid], log_weights: Floats, marks: Floats) -> tuple[Floats, Floats]:
    """Every known text's mark as the others predict it, and how far the mark is from that.

    The weight of a node without a text is its weight with it, divided by the density of the text given the others.
    """
    if len(marks) < FEWEST_FOR_DRIFT:
        return np.full(len(marks), np.nan), np.full(len(marks), np.nan)
    means = np.concatenate([grid.left_mean for grid in grids])
    sds = np.sqrt(np.concatenate([grid.left_variance for grid in grids]))
    deviates = (marks - means) / sds
    log_without = log_weights[:, None] + 0.5 * np.square(deviates) + np.log(sds)
    log_without -= logsumexp(log_without, axis=0)
    below = logsumexp(log_without + log_ndtr(deviates), axis=0)
    above = logsumexp(log_without + log_ndtr(-deviates), axis=0)
    z = np.where(below < above, ndtri_exp(below), -ndtri_exp(above))
    return (np.exp(log_without) * means).sum(axis=0), z


class _LineGrid:
    """The known marks given one curve and one scatter, for a row of slopes."""

    def __init__(
        self, curve: _Curve, scores: Floats, known_marks: KnownMarks, scatter: float, log_prior: float, n_texts: int
    ) -> None:
        self.curve = curve
        self.scatter = scatter
        self.mean = scores.mean(axis=0)
        count, size = scores.shape
        centred = scores - self.mean
        covariance = count / (count + n_texts) * centred.T @ centred / (count - 1)  # as in covariances()
        np.fill_diagonal(covariance, np.square(centred).sum(axis=0) / (count - 1) * (1 + 1e-9) + 1e-12)
        errors = known_marks.errors + scatter**2 * np.eye(size)
        # errors v = value covariance v, so that the covariance of the marks is diagonal for every slope at once
        values, vectors = eigh(errors, covariance)
        self.basis = vectors.T
        self.slopes = _slopes(self.mean, known_marks.marks)
        self.variances = np.square(self.slopes)[:, None] + np.maximum(values, 0.0)
        ones = self.basis.sum(axis=1)
        marks = self.basis @ known_marks.marks
        expected = self.basis @ self.mean
        residual = marks - self.slopes[:, None] * expected
        self.precision = (np.square(ones) / self.variances).sum(axis=1)
        self.intercepts = (ones * residual / self.variances).sum(axis=1) / self.precision
        residual = residual - self.intercepts[:, None] * ones
        fit = (np.square(residual) / self.variances).sum(axis=1)
        log_determinant = np.log(self.variances).sum(axis=1) - 2 * np.log(np.abs(np.linalg.det(self.basis)))
        self.log_weight = log_prior - 0.5 * (fit + log_determinant + np.log(self.precision))
        pull = (residual / self.variances) @ self.basis
        level = (ones / self.variances) @ self.basis
        diagonal = (1 / self.variances) @ np.square(self.basis)
        self.left_variance = 1 / np.maximum(diagonal - np.square(level) / self.precision[:, None], 1e-300)
        self.left_mean = known_marks.marks - pull * self.left_variance

    def draw(
        self, judge: JudgeScale, known_marks: KnownMarks, counts: Ints, rng: np.random.Generator
    ) -> tuple[Floats, Floats, list[_Line]]:
        """Draws of the scores, the marks and the line; ``counts`` says how many for each slope."""
        slope = np.repeat(self.slopes, counts)
        node = np.repeat(np.arange(len(counts)), counts)
        size = len(slope)
        intercept = rng.normal(self.intercepts[node], 1 / np.sqrt(self.precision[node]))
        theta = judge.draws[rng.integers(len(judge.draws), size=size)]
        curved = self.curve.forward(theta)
        values, vectors = np.linalg.eigh(known_marks.errors)  # which may be singular
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        errors = rng.standard_normal((size, len(known_marks.texts))) @ root.T
        scatter = self.scatter * rng.standard_normal(theta.shape)
        at_known = curved[:, known_marks.texts]
        residual = (
            known_marks.marks - intercept[:, None] - slope[:, None] * at_known - scatter[:, known_marks.texts] - errors
        )
        pull = (residual @ self.basis.T / self.variances[node]) @ self.basis
        curved += (slope[:, None] * pull) @ covariances(self.curve.forward(judge.draws), known_marks.texts).T
        scatter[:, known_marks.texts] += self.scatter**2 * pull
        marks = intercept[:, None] + slope[:, None] * curved + scatter
        lines = [_Line(float(a), float(c), self.curve) for a, c in zip(intercept, slope, strict=True)]
        return theta, marks, lines


def _slopes(scores: Floats, marks: Floats) -> Floats:
    """The grid: wide where the known texts say little, even in logarithms."""
    correlation = max(float(np.corrcoef(scores, marks)[0, 1]), _LEAST_CORRELATION)
    slope = correlation * float(marks.std() / scores.std())
    reach = _WIDEST_SLOPES
    if len(marks) > 2:
        error = math.sqrt((1 - correlation**2) / (len(marks) - 2)) / correlation
        reach = min(reach, 6 * error + 1.5 / math.sqrt(len(marks)))
    return slope * np.exp(np.linspace(-reach, reach, _N_SLOPES))
