"""How honest fits are with repeats, ties and adaptively chosen pairs: ``python -m benchmarks.evidence [runs]``.

Prints the tables of docs/validation.md. 40 texts; the Bayesian model by its normal approximation, spread and repeats
learned.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit
from scipy.stats import rankdata

import pairscale as ps
from pairscale.models.bayes.fit import fit_btl_laplace

N = 40
IDS = [f"{at:02}" for at in range(N)]
COPIES = {"independent": 0.0, "half repeatable": 0.5, "repeatable": 1.0}
TIES = {"Davidson, nu .5": ("davidson", 0.5), "Davidson, nu 1": ("davidson", 1.0), "threshold 1": ("threshold", 1.0)}


def claims(theta: Any, draws: Any) -> tuple[float, float, float]:
    """Claimed less true reliability; share of theta (on its own scale) and of ranks that are covered."""
    mean = draws.mean(axis=0)
    between, within = mean.var(ddof=1), draws.var(axis=0).mean()
    low, high = np.quantile(draws, [0.025, 0.975], axis=0) * (mean @ theta) / (mean @ mean)
    ranks, true = rankdata(-draws, axis=1), rankdata(-theta)
    first, last = np.quantile(ranks, [0.025, 0.975], axis=0, method="inverted_cdf")
    claimed = between / (between + within) - np.corrcoef(mean, theta)[0, 1] ** 2
    return claimed, ((low <= theta) & (theta <= high)).mean(), ((first <= true) & (true <= last)).mean()


def pairs(rng: np.random.Generator, n: int, share: float) -> tuple[Any, Any]:
    """Random pairs in random order, a share of which are repeats of others."""
    i, j = np.triu_indices(N, 1)
    once = rng.choice(len(i), round(n * (1 - share)), replace=False)
    asked = np.concatenate([once, rng.choice(once, n - len(once))])
    turned = rng.random(n) < 0.5
    return np.where(turned, j[asked], i[asked]), np.where(turned, i[asked], j[asked])


def frame(first: Any, second: Any, result: Any) -> pl.DataFrame:
    names = np.array(IDS)
    better = [None if y == 0.5 else str(names[a if y else b]) for a, b, y in zip(first, second, result, strict=True)]
    return pl.DataFrame({"ID1": names[first], "ID2": names[second], "better_id": better})


def repeats(runs: int, seed: int) -> None:
    print("\n| judge | SD | comparisons, repeats | rho (SD) | claimed - true | theta, ranks covered | counted as new |")
    for judge, copies in COPIES.items():
        for sd in (1.0, 2.5):
            for n, share in ((400, 0.1), (400, 0.3), (900, 0.4)):
                found = []
                for run in range(runs):
                    rng = np.random.default_rng([seed, run])
                    theta = rng.normal(0, sd, N)
                    first, second = pairs(rng, n, share)
                    result = rng.random(n) < expit(theta[first] - theta[second])
                    before: dict[tuple[int, int], int] = {}
                    for at, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
                        key = (min(a, b), max(a, b))
                        if key in before and rng.random() < copies:
                            result[at] = before[key] == a
                        before.setdefault(key, a if result[at] else b)
                    table = frame(first, second, result)
                    fits = [
                        fit_btl_laplace(table, IDS, seed=1, prior_sd="learned", repeats=how)  # type: ignore[arg-type]
                        for how in ("learned", "independent")
                    ]
                    figures = [claims(theta - theta.mean(), fit.posterior.theta) for fit in fits]
                    found.append((fits[0].repeat_agreement.rho, *figures[0], *figures[1]))
                m, s = np.mean(found, axis=0), np.std(found, axis=0)
                cell = f"| {judge} | {sd:g} | {n}, {share:.0%} | {m[0]:.2f} ({s[0]:.2f}) | {m[1]:+.3f} "
                print(f"{cell}| {m[2]:.3f}, {m[3]:.3f} | {m[4]:+.3f}; {m[5]:.3f}, {m[6]:.3f} |", flush=True)


def ties(runs: int, seed: int) -> None:
    print("\n| judge | SD | ties | half a win, weighed | left out |")
    for judge, (kind, size) in TIES.items():
        for sd in (1.0, 2.5):
            found = []
            for run in range(runs):
                rng = np.random.default_rng([seed, run])
                theta = rng.normal(0, sd, N)
                theta -= theta.mean()
                first, second = pairs(rng, 500, 0)
                gap = theta[first] - theta[second]
                if kind == "davidson":
                    odds = np.stack([np.exp(gap / 2), np.full(len(gap), size), np.exp(-gap / 2)])
                    at = (rng.random(len(gap)) * odds.sum(axis=0) > np.cumsum(odds, axis=0)).sum(axis=0)
                    result = 1 - at / 2
                else:
                    noisy = gap + rng.logistic(size=len(gap))
                    result = np.where(noisy > size, 1.0, np.where(noisy < -size, 0.0, 0.5))
                table = frame(first, second, result)
                kept = [table, table.drop_nulls("better_id")]
                draws = [fit_btl_laplace(t, IDS, seed=1, prior_sd="learned").posterior.theta for t in kept]
                found.append(((result == 0.5).mean(), *np.ravel([claims(theta, drawn) for drawn in draws])))
            m = np.mean(found, axis=0)
            cells = " | ".join(f"{m[k]:+.3f}; {m[k + 1]:.3f}, {m[k + 2]:.3f}" for k in (1, 4))
            print(f"| {judge} | {sd:g} | {m[0]:.0%} | {cells} |", flush=True)


ENGINES: dict[str, dict[str, Any]] = {
    "sirt": {},
    "mle": {"engine": "mle"},
    "map, sd 1": {"engine": "map"},
    "map, learned": {"engine": "map", "prior_sd": "learned", "repeats": "learned"},
}


def adaptive(runs: int, seed: int) -> None:
    print(f"\n| judge | selector | SD | {' | '.join(ENGINES)} |")
    for repeatable in (False, True):
        for selector in ("pollitt", "information"):
            for sd in (1.0, 2.5):
                found: dict[str, list[float]] = {name: [] for name in ENGINES}
                for run in range(runs):
                    theta, history = _adaptive_run(seed + run, sd, selector, repeatable)
                    for name, options in ENGINES.items():
                        try:
                            items = ps.fit_bt_model(history, ids=IDS, **options).theta.sort("ID")
                        except ps.PairscaleError:
                            continue  # no maximum of the likelihood
                        inside = (items["lower"].to_numpy() <= theta) & (theta <= items["upper"].to_numpy())
                        found[name].append(float(inside.mean()))
                cells = " | ".join(f"{np.mean(values):.3f}" for values in found.values())
                print(f"| {'repeatable' if repeatable else 'clean'} | {selector} | {sd:g} | {cells} |", flush=True)


def _adaptive_run(seed: int, sd: float, selector: str, repeatable: bool) -> tuple[Any, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    theta, before = rng.normal(0, sd, N), dict[tuple[int, int], int]()

    def judge(first: Any, second: Any, state: Any = None, **_: Any) -> dict[str, Any]:
        a, b = int(first["ID"]), int(second["ID"])
        won = before.get((min(a, b), max(a, b))) if repeatable else None
        if won is None:
            won = a if rng.random() < expit(theta[a] - theta[b]) else b
        before.setdefault((min(a, b), max(a, b)), won)
        return {"is_valid": True, "Y": int(won == a), "invalid_reason": None}

    samples = pl.DataFrame({"ID": IDS, "text": IDS})
    done = ps.adaptive_rank(
        samples, judge=judge, n_steps=600, seed=seed, selector=selector, progress="none", fit_fn="laplace",
        btl_config={"eap_reliability_min": 0.9999},
    )  # fmt: skip
    return theta - theta.mean(), ps.adaptive_results_history(done.state)


if __name__ == "__main__":
    logging.getLogger("pairscale").setLevel("ERROR")
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    repeats(times, 31)
    ties(times, 32)
    adaptive(max(times // 4, 2), 33_000)
