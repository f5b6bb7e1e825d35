"""Fits the weights of the lexical judge to synthetic essays, and reports how they do on essays they have not seen.

Run as ``python -m benchmarks.fit_lexical``. It prints the ``WEIGHTS`` of ``pairscale.judges.lexical``, which are pasted
there by hand, and then the held-out figures.

The method, in order:

1. Essays of the seeds in ``FIT``, each also cut to its first 1 to 5 sentences, because users try short answers too. The
   means and standard deviations of the features come from these texts together (a deviation is at least 0.1), so that
   no feature is scaled to a spread that only long texts have.
2. Pairs of texts of one kind (whole, or cut to the same number of sentences) and of different quality level; the
   outcome is which level is higher.
3. A logistic regression of the outcome on the difference of standardised features, each turned so that more is better.
   A feature that points the wrong way in these pairs gets 0. No coefficient may be negative, and all are drawn strongly
   to their common mean: equal weights travel better to texts of another kind than those that fit one generator best.
4. One factor on all coefficients, so that the probabilities are calibrated on whole essays of ``FIT``.
"""

from __future__ import annotations

import re
import time

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import spearmanr

from pairscale.datasets.synthetic import synthetic_essays
from pairscale.judges.lexical import WEIGHTS, lexical_features, lexical_score

FIT, HELD_OUT = (1, 2, 3), (11, 12, 13)
ESSAYS = 200
PAIRS = 4000
CUTS = (None, 1, 2, 3, 5)  # sentences kept; None is all
SHRINK = 3000.0  # strength of the pull to equal weights, in pairs
LEAST_SD = 0.1  # a feature that hardly varies in these essays must not decide everything elsewhere
NAMES = tuple(WEIGHTS)
SIGNS = np.array([-1.0 if WEIGHTS[name].weight < 0 else 1.0 for name in NAMES])


def first_sentences(text: str, count: int | None) -> str:
    """The beginning of a text; a plain cut after end marks is enough here."""
    return text if count is None else " ".join(re.split(r"(?<=[.!?])\s+", text)[:count])


def essays(seed: int) -> tuple[list[str], np.ndarray]:
    """The texts and quality levels of a seed."""
    table = synthetic_essays(ESSAYS, seed=seed)
    return table["text"].to_list(), table["quality_level"].to_numpy().astype(float)


def feature_matrix(texts: list[str]) -> np.ndarray:
    """Features of texts, one row each."""
    return np.array([list(lexical_features(text).values()) for text in texts])


def random_pairs(level: np.ndarray, rng: np.random.Generator, count: int = PAIRS) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different level, in random order."""
    first, second = rng.integers(0, len(level), size=(2, 3 * count))
    keep = np.flatnonzero(level[first] != level[second])[:count]
    return first[keep], second[keep]


def log_loss(margin: np.ndarray) -> float:
    """Mean of -log P of what happened, from its log-odds."""
    return float(np.logaddexp(0, -margin).mean())


def fit_shape(margins: np.ndarray) -> np.ndarray:
    """Coefficients of standardised features, not negative, drawn to their mean; 0 if it points the wrong way."""
    right = margins.mean(0) > 0
    margins = margins[:, right]

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        z = margins @ beta
        spread = beta - beta.mean()
        gradient = -(margins * (1 / (1 + np.exp(z)))[:, None]).mean(0)
        strength = SHRINK * len(beta) / len(margins)
        return log_loss(z) + strength * float(spread @ spread) / 2, gradient + strength * spread

    start = np.full(margins.shape[1], 0.3)
    beta = np.zeros(len(right))
    beta[right] = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start)).x
    return beta


def fit() -> dict[str, tuple[float, float, float]]:
    """The weights, means and standard deviations, rounded as they are written down."""
    rng = np.random.default_rng(20240601)
    rows, margins, whole = [], [], []
    for seed in FIT:
        texts, level = essays(seed)
        for cut in CUTS:
            x = feature_matrix([first_sentences(text, cut) for text in texts])
            a, b = random_pairs(level, rng)
            difference = (x[a] - x[b]) * SIGNS * np.sign(level[a] - level[b])[:, None]
            rows.append(x)
            margins.append(difference)
            if cut is None:
                whole.append(difference)
    x = np.concatenate(rows)
    mean, sd = x.mean(0), np.maximum(x.std(0), LEAST_SD)
    beta = fit_shape(np.concatenate(margins) / sd)
    z = np.concatenate(whole) / sd @ beta
    factor = minimize_scalar(lambda c: log_loss(c * z), bounds=(0.05, 5), method="bounded").x
    return {
        name: (round(float(w), 2), round(float(m), 2), round(float(s), 2))
        for name, w, m, s in zip(NAMES, SIGNS * beta * factor, mean, sd, strict=True)
    }


def report_held_out() -> None:
    """Spearman, accuracy and calibration of the weights that pairscale has, on the seeds that were held out."""
    rng = np.random.default_rng(7)
    for cut in CUTS:
        rho, margins, words = [], [], []
        for seed in HELD_OUT:
            texts, level = essays(seed)
            short = [first_sentences(text, cut) for text in texts]
            score = np.array([lexical_score(text) for text in short])
            rho.append(float(spearmanr(score, level).statistic))
            a, b = random_pairs(level, rng)
            margins.append((score[a] - score[b]) * np.sign(level[a] - level[b]))
            words += [len(text.split()) for text in short]
        z = np.concatenate(margins)
        slope = minimize_scalar(lambda c, z=z: log_loss(c * z), bounds=(0.01, 5), method="bounded").x
        kind = "whole essays" if cut is None else f"sentences: {cut}"
        print(
            f"{kind:14} words {np.mean(words):5.0f}  Spearman {' '.join(f'{r:.3f}' for r in rho)}  "
            f"accuracy {(z > 0).mean():.3f}  log loss {log_loss(z):.3f}  slope {slope:.2f}"
        )
        if cut is None:
            report_calibration(z)


def report_calibration(z: np.ndarray) -> None:
    """How often the likelier text was the better one, by the probability that it had."""
    p = 1 / (1 + np.exp(-np.abs(z)))
    for low, high in ((0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.0)):
        cell = (p >= low) & (p < high)
        if cell.any():
            print(f"    said {p[cell].mean():.2f}  was {(z[cell] > 0).mean():.2f}  of {cell.sum():,} pairs")


def main() -> None:
    """Prints the fitted weights, whether pairscale has them, and the held-out figures."""
    fitted = fit()
    for name, (weight, mean, sd) in fitted.items():
        print(f'        "{name}": ({weight}, {mean}, {sd}),')
    same = all(tuple(WEIGHTS[name]) == fitted[name] for name in NAMES)
    print(f"these {'are' if same else 'are NOT'} the weights in pairscale.judges.lexical; held out with those there:")
    report_held_out()
    texts, _ = essays(HELD_OUT[0])
    start = time.process_time()
    for text in texts:
        lexical_score(text)
    print(f"{(time.process_time() - start) / len(texts) * 1e6:.0f} µs of CPU to score a whole essay")


if __name__ == "__main__":
    main()
