"""The information selector beside a slow and obvious one (``make validate``).

The slow one finds the mode and the covariance anew after every answer, knows the spread of the abilities, and takes the
mean of p (1 - p) over a difference by quadrature. What it gains over random pairs is what the criterion holds: nothing
that our selector approximates can be to blame for the rest.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata

from pairscale.adaptive.selection.ledger import Ledger
from tests.adaptive.test_selector_efficiency import MARKS, N, curves

SEEDS = 100
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
UPPER = np.triu_indices(N, 1)


def solved(history: np.ndarray, sd: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mode of the posterior with prior N(0, sd²), and the inverse of its curvature."""
    a, b, y = history.T.astype(np.int64)
    theta = start
    while True:
        p = expit(theta[a] - theta[b])
        slope = np.bincount(a, y - p, N) - np.bincount(b, y - p, N) - theta / sd**2
        curvature = -np.bincount(a * N + b, p * (1 - p), N * N).reshape(N, N)
        curvature += curvature.T
        curvature[np.diag_indices(N)] = sd**-2 - curvature.sum(axis=1)
        covariance = np.linalg.inv(curvature)
        step = covariance @ slope
        theta = theta + step
        if np.abs(step).max() < 1e-5:
            return theta, covariance


def best_pair(mode: np.ndarray, covariance: np.ndarray, allowed: np.ndarray) -> tuple[int, int]:
    """The pair with the greatest expected reduction of the log-determinant."""
    i, j = UPPER
    variance = np.diag(covariance)
    v = variance[i] + variance[j] - 2 * covariance[UPPER]
    p = expit((mode[i] - mode[j])[:, None] + np.sqrt(v)[:, None] * POINTS)
    w = (p * (1 - p)) @ WEIGHTS / WEIGHTS.sum()
    at = int(np.argmax(np.where(allowed[UPPER], w * v, -1)))
    return int(i[at]), int(j[at])


def slow_curve(sd: float, seed: int) -> list[float]:
    """As ``curve`` of the efficiency tests, with the same abilities, chain and luck."""
    theta = np.random.default_rng([seed, 0]).normal(0, sd, N)
    luck = np.random.default_rng([seed, 1]).random(N * MARKS[-1])
    chain = np.random.default_rng([seed, 2]).permutation(N).tolist()
    ledger, mode, covariance = Ledger(N, 200), np.zeros(N), np.eye(N)
    found = []
    for asked in range(N * MARKS[-1]):
        i, j = (
            (chain[asked], chain[asked + 1])
            if asked < N - 1
            else best_pair(mode, covariance, ~ledger.closed & (ledger.seen < 2))
        )
        a, b = ledger.order(i, j)
        ledger.open(a, b)
        ledger.commit(a, b, int(luck[asked] < expit(theta[a] - theta[b])))
        if asked >= N - 2:
            mode, covariance = solved(ledger.history, sd, mode)
        if (asked + 1) % N == 0 and (asked + 1) // N in MARKS:
            found.append(float(np.corrcoef(rankdata(mode), rankdata(theta))[0, 1]))
    return found


@pytest.mark.validate
@pytest.mark.parametrize("sd", [1.0, 2.5])
def test_our_selector_is_as_good_as_the_slow_one(sd):
    slow = np.array([slow_curve(sd, seed) for seed in range(SEEDS)])
    ours = curves("information", sd)
    random = curves("random", sd) if sd == 1 else curves("random", sd, long=True)[:, : len(MARKS)]
    difference = (ours - slow).mean(axis=1)
    error = difference.std(ddof=1) / SEEDS**0.5
    gain, at_4n = (slow - random).mean(axis=1), (slow - random)[:, MARKS.index(4)]
    print(
        f"\nSD {sd}: slow D-optimal, mean over 2N to 8N {slow.mean():.4f}; ours less slow {difference.mean():+.4f}",
        end="",
    )
    print(f" (se {error:.4f}); slow less random {gain.mean():+.4f} (se {gain.std(ddof=1) / SEEDS**0.5:.4f})", end="")
    print(f"; at 4N {at_4n.mean():+.4f} (se {at_4n.std(ddof=1) / SEEDS**0.5:.4f})")
    assert difference.mean() > -0.003 - 2 * error
