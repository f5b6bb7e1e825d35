"""R-hat and bulk ESS of every parameter, and the logs' figures, from draws of eight chains."""

from __future__ import annotations

import time

SIZES = ((100, 1_000), (1_000, 600), (2_000, 600), (2_000, 1_000))
CHAINS = 8


def run() -> list[dict[str, float]]:
    import numpy as np

    from pairscale.models.bayes.convergence import rhat_and_ess
    from pairscale.models.bayes.posterior import Posterior, item_log, round_figures

    rows = []
    for n_items, n_draws in SIZES:
        rng = np.random.default_rng(0)
        draws = rng.normal(size=(n_draws, CHAINS, n_items))
        for at in range(1, n_draws):
            draws[at] = 0.3 * draws[at - 1] + 0.95 * draws[at]
            rejected = rng.random(CHAINS) < 0.2
            draws[at, rejected] = draws[at - 1, rejected]
        draws += rng.normal(size=n_items)
        diagnosed = time.process_time()
        rhat, ess = rhat_and_ess(draws)
        diagnosed = time.process_time() - diagnosed
        first = rng.binomial(20, 0.5, n_items)
        posterior = Posterior(tuple(f"S{n:05d}" for n in range(n_items)), draws.reshape(-1, n_items))
        logged = time.process_time()
        item_log(posterior, 1, first * 0 + 20, first, 20 - first)
        round_figures(posterior, first * 0 + 20, first, 20 - first)
        logged = time.process_time() - logged
        rows.append(
            {
                "items": n_items,
                "draws": n_draws * CHAINS,
                "rhat_and_ess_cpu_s": round(diagnosed, 2),
                "logs_cpu_s": round(logged, 2),
                "max_rhat": round(float(rhat.max()), 4),
                "min_ess": round(float(ess.min())),
            }
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
