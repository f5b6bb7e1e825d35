"""How well the selectors order items of known ability, over 100 paired seeds (``make validate``).

N = 100 items of ability N(0, SD); the judge says first with probability logistic(theta_A - theta_B). Every run begins
with a shuffled chain of N - 1 comparisons; then the selector chooses, at most two answers a pair, and the ledger says
who stands first. ``uniform`` is uniformly random pairs from the first comparison on, without chain or balance: what
the reference curves call random. All selectors of a seed share abilities, chain and the judge's random numbers. The
estimate is the mode with prior N(0, SD²), for all alike; what is measured is its Spearman correlation with the truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata

from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection.ledger import Ledger
from pairscale.adaptive.selectors import make_selector

N, SEEDS = 100, range(100)
MARKS = range(2, 9)  # comparisons, in multiples of N


def mode(history: np.ndarray, n: int, sd: float) -> np.ndarray:
    """The highest point of the posterior with prior N(0, sd²), by Newton's method."""
    a, b, y = history.T.astype(np.int64)
    theta = np.zeros(n)
    for _ in range(50):
        p = expit(theta[a] - theta[b])
        slope = np.bincount(a, y - p, n) - np.bincount(b, y - p, n) - theta / sd**2
        weights = p * (1 - p)
        curvature = -np.bincount(a * n + b, weights, n * n).reshape(n, n)
        curvature += curvature.T
        curvature[np.diag_indices(n)] = sd**-2 - curvature.sum(axis=1)
        step = np.linalg.solve(curvature, slope)
        theta += step
        if np.abs(step).max() < 1e-6:
            break
    return theta


def curve(name: str, sd: float, seed: int, marks: range, in_flight: int = 1, n: int = N) -> list[float]:
    """Spearman with the truth after so many times n comparisons."""
    theta = np.random.default_rng([seed, 0]).normal(0, sd, n)
    luck = np.random.default_rng([seed, 1]).random(n * marks[-1])
    chain = np.random.default_rng([seed, 2]).permutation(n).tolist()
    random = np.random.default_rng([seed, 3])
    ledger, selector = Ledger(n, 200), None if name == "uniform" else make_selector(name, Engine(["a", "b"]))
    flight: list[tuple[int, int]] = []
    asked, found = 0, []
    while ledger.committed < n * marks[-1]:
        while len(flight) < in_flight and asked < n * marks[-1]:
            if selector is None:
                i, j = random.choice(n, 2, replace=False).tolist()
            elif asked < n - 1:
                i, j = chain[asked], chain[asked + 1]
            else:
                choice = selector.choose(ledger, 2, random)
                assert choice is not None
                i, j = choice.i, choice.j
            a, b = ledger.order(i, j)
            ledger.open(a, b)
            if selector is not None:
                selector.opened(ledger, a, b)
            flight.append((a, b))
            asked += 1
        a, b = flight.pop(0)
        y = int(luck[ledger.committed] < expit(theta[a] - theta[b]))
        ledger.commit(a, b, y)
        ledger.is_linked = ledger.committed >= n - 1
        if selector is not None:
            selector.committed(ledger, a, b, y)
        if ledger.committed % n == 0 and ledger.committed // n in marks:
            scores = rankdata(mode(ledger.history, n, sd))
            found.append(float(np.corrcoef(scores, rankdata(theta))[0, 1]))
    return found


def comparisons_to(target: float, means: np.ndarray, marks: range) -> float:
    """Where the mean curve reaches the target, in multiples of N, between marks by a straight line."""
    at = int(np.argmax(means >= target))
    assert means[at] >= target > means[0]
    return marks[at - 1] + (target - means[at - 1]) / (means[at] - means[at - 1])


PAIRED = range(200, 248)
REFERENCE = {1.0: (0.90, 0.95), 2.5: (0.95, 0.85)}
"""By spread of the abilities: the rank correlation to reach, and the largest share of random's calls that D-optimal
pairs may need. Measured outside the package (N = 100, 48 paired seeds): 0.85 with an upper 97.5 % limit of 0.95, and
0.80 with 0.85."""


def share_of_calls(mine: np.ndarray, theirs: np.ndarray, target: float, marks: range) -> tuple[float, float]:
    """Calls to reach the target as a share of the others', on the mean curves; and its upper 97.5 % limit.

    The limit is that of a bootstrap over seeds, each with both of its curves. A curve that does not reach the target
    counts as reaching it at the last mark.
    """
    means = [np.append(curve.mean(axis=0)[:-1], 1.0) for curve in (mine, theirs)]
    share = comparisons_to(target, means[0], marks) / comparisons_to(target, means[1], marks)
    rng, shares = np.random.default_rng(1), list[float]()
    for _ in range(2000):
        drawn = rng.integers(len(mine), size=len(mine))
        calls = [
            comparisons_to(target, np.append(curve[drawn].mean(axis=0)[:-1], 1.0), marks) for curve in (mine, theirs)
        ]
        shares.append(calls[0] / calls[1])
    return share, float(np.quantile(shares, 0.975))


def paired(name: str, sd: float, seeds: range, marks: range, n: int = N) -> np.ndarray:
    return np.array([curve(name, sd, seed, marks, n=n) for seed in seeds])


@pytest.mark.validate
@pytest.mark.parametrize("sd", REFERENCE)
def test_d_optimal_pairs_need_fewer_calls_than_random_ones(sd: float) -> None:
    """The reference gain, with seeds that nothing was tuned on."""
    target, most = REFERENCE[sd]
    marks = range(2, 17)
    share, upper = share_of_calls(
        paired("information", sd, PAIRED, marks), paired("random", sd, PAIRED, marks), target, marks
    )
    print(f"\ninformation to {target} at SD {sd}: {share:.3f} of random's calls, upper 97.5 % limit {upper:.3f}")
    assert upper <= most


@pytest.mark.validate
@pytest.mark.parametrize("sd", [1.0, 2.5])
def test_many_in_flight_lose_little(sd: float) -> None:
    many, one = (np.array([curve("information", sd, seed, MARKS, k) for seed in SEEDS]) for k in (32, 1))
    loss = (many - one).mean(axis=1)
    mean, error = loss.mean(), loss.std(ddof=1) / len(loss) ** 0.5
    print(f"\n32 in flight - sequential, SD {sd}, mean of 2N to 8N: {mean:+.4f} ± {1.96 * error:.4f}")
    assert mean - 1.96 * error >= -0.01
