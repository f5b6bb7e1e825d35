"""A slow, obvious reference for scores from logits: a Gibbs sampler.

Student's t is a normal distribution with a random precision, and an answer of which only a bound is known has a value
that can be drawn. Given both, scores and position effect are normal and can be integrated out of the density of the
spread and of the error's scale. A sweep draws, each given the rest: spread and scale (Metropolis), scores and position
effect, values of bounded answers, precisions, and last spread and precisions along the direction in which the answers
do not change. An answer that counts w times has its density to the power of w.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from pairscale.models.bayes.model import DF, LOG_PRIORS, Cells, JudgeParameters

POSITION_SCALE = 1.0


def gibbs(logits: Cells, model: JudgeParameters, sweeps: int, seed: int) -> np.ndarray:
    """Draws of scores (centred), position effect, and the logarithms of spread and scale; a row each."""
    rng = np.random.default_rng(seed)
    n, size = logits.n_items, logits.n_items + 1
    k = len(logits.z)
    design = np.zeros((k, size))
    design[np.arange(k), logits.winner] += 1
    design[np.arange(k), logits.loser] -= 1
    design[:, n] = 1.0 if model.position else 0.0
    x, t, s = np.zeros(size), 0.5, 0.0
    draws = []

    def parts(weight: np.ndarray, z: np.ndarray, t: float, s: float) -> tuple[np.ndarray, np.ndarray, float]:
        precision = weight / math.exp(2 * s)
        prior = np.append(np.full(n, (model.prior_sd or math.exp(t)) ** -2), POSITION_SCALE**-2)
        lower = np.linalg.cholesky(design.T @ (precision[:, None] * design) + np.diag(prior))
        right = design.T @ (precision * z)
        mean = np.linalg.solve(lower.T, np.linalg.solve(lower, right))
        log = 0.5 * right @ mean - 0.5 * precision @ z**2 - np.log(np.diag(lower)).sum() - logits.times.sum() * s
        log += -n * t * (model.prior_sd is None)
        log += stats.norm.logpdf(t, *LOG_PRIORS["t"]) + stats.norm.logpdf(s, *LOG_PRIORS["s"])
        return lower, mean, float(log)

    def filled() -> tuple[np.ndarray, np.ndarray]:
        expected, z = design @ x, logits.z.copy()
        at, scale = np.flatnonzero(logits.kind), math.exp(s)
        side, share = logits.kind[at], rng.random(len(at))
        beyond = stats.t.sf(side * (z[at] - expected[at]) / scale, DF)  # the part of the distribution that is possible
        z[at] = expected[at] + side * scale * stats.t.isf(share * beyond, DF)
        u = (z - expected) / math.exp(s)
        return z, rng.gamma(0.5 * logits.times * (DF + 1)) / (0.5 * (DF + u**2))

    z, weight = filled()
    for _ in range(sweeps):
        here = parts(weight, z, t, s)
        for step in (0.15, 0.6):
            new_t, new_s = t + step * rng.standard_normal() * (model.prior_sd is None), s + step * rng.standard_normal()
            there = parts(weight, z, new_t, new_s)
            if math.log(rng.random()) < there[2] - here[2]:
                t, s, here = new_t, new_s, there
        x = here[1] + np.linalg.solve(here[0].T, rng.standard_normal(size))
        z, weight = filled()
        # The scale and all precisions together: c of both leaves the answers as they are.
        c = math.exp(0.5 * rng.standard_normal() / math.sqrt(max(logits.times.sum(), 1)))
        change = DF / 2 * logits.times.sum() * math.log(c) - 0.5 * DF * weight.sum() * (c - 1)
        new_s = s + 0.5 * math.log(c)
        change += stats.norm.logpdf(new_s, *LOG_PRIORS["s"]) - stats.norm.logpdf(s, *LOG_PRIORS["s"])
        if math.log(rng.random()) < change:
            s, weight = new_s, weight * c
        draws.append(np.concatenate([x[:n] - x[:n].mean(), x[n:], [t, s]]))
    return np.array(draws)
