"""Simulation-based calibration of the Bayesian model: is the truth ranked uniformly among its posterior draws?

Truths are drawn from the prior. Data sets are kept in ``validation/data/calibration.csv``, one row each, so that the
command continues where it stopped: ``python -m validation.calibration btl_e_b learned``.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import time
from typing import Any

import numpy as np
import polars as pl
from scipy import stats
from scipy.special import expit

from pairscale.models.bayes import model
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.bayes.settings import MCMCSettings
from validation.rows import DATA, KeptRows

SEED = 8
PARAMETERS = ("theta", "eps", "b", "tau")
COLUMNS = ("variant", "prior_sd", "number", *PARAMETERS, *(f"{name}_covered" for name in PARAMETERS), "size")
_SETTINGS = MCMCSettings(iter_warmup=120, iter_sampling=250, extend=1)
_ITEMS, _PAIRS, _THIN = 6, 40, 10


def calibrated(variant: str, number: int, seed: int, prior_sd: float | str = 1.0) -> dict[str, Any]:
    """One data set: per parameter, the rank of the truth among every tenth draw, and whether 90 % intervals hold it.

    Args:
        variant: of the model.
        number: of the data set.
        seed: of all data sets.
        prior_sd: of the abilities, or ``learned``.
    """
    rng = np.random.default_rng([seed, number])
    tau = abs(rng.normal(0, 2.5)) if prior_sd == "learned" else float(prior_sd)
    raw = tau * rng.normal(size=_ITEMS)
    eps = rng.beta(2, 20) if "e" in variant else 0.0
    b = rng.normal(0, 0.3) if variant.endswith("b") else 0.0
    first = rng.integers(0, _ITEMS, _PAIRS)
    second = (first + rng.integers(1, _ITEMS, _PAIRS)) % _ITEMS
    won = rng.random(_PAIRS) < (1 - eps) * expit(raw[first] - raw[second] + b) + eps / 2
    names = np.array([f"T{item}" for item in range(_ITEMS)])
    rows = pl.DataFrame(
        {"ID1": names[first], "ID2": names[second], "better_id": np.where(won, names[first], names[second])}
    )
    fit = fit_btl(rows, list(names), variant, _SETTINGS, seed=number, prior_sd=prior_sd)  # type: ignore[arg-type]
    truths = {"theta": (raw - raw.mean())[0], "eps": eps, "b": b, "tau": tau}
    posterior = fit.posterior
    draws = {"theta": posterior.theta[:, 0], "eps": posterior.epsilon, "b": posterior.b, "tau": fit.prior_sd}
    row: dict[str, Any] = {"variant": variant, "prior_sd": prior_sd, "number": number}
    for name, values in draws.items():
        if values is not None:
            low, high = np.quantile(values, (0.05, 0.95))
            row[name] = int((values[::_THIN] < truths[name]).sum())
            row[f"{name}_covered"] = int(low <= truths[name] <= high)
    return row | {"size": len(posterior.theta[::_THIN])}


def uniform_p(ranks: list[int], size: int, bins: int = 10) -> float:
    """The p of a chi-squared test that ranks among ``size`` draws are uniform."""
    counts = np.histogram(ranks, bins=np.linspace(-0.5, size + 0.5, bins + 1))[0]
    return float(stats.chisquare(counts).pvalue)


def made_by() -> str:
    """What rows of the present model say that they were made by."""
    settings = _SETTINGS.chains, _SETTINGS.iter_warmup, _SETTINGS.iter_sampling, _ITEMS, _PAIRS, _THIN
    told = repr((settings, model.LAPSE_PRIOR, model.POSITION_SD, model.LEARNED_SCALE))
    return hashlib.sha256(told.encode()).hexdigest()[:10]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=("btl", "btl_e", "btl_b", "btl_e_b"))
    parser.add_argument("prior_sd", choices=("1.0", "learned"))
    parser.add_argument("--sets", type=int, default=500, help="how many data sets, those kept included")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start none after so many seconds")
    given = parser.parse_args()
    rows, until = KeptRows(DATA / "calibration.csv", COLUMNS), time.time() + given.seconds
    prior_sd = given.prior_sd if given.prior_sd == "learned" else float(given.prior_sd)

    def fresh() -> list[dict[str, Any]]:
        wanted = given.variant, prior_sd, made_by()
        return [row for row in rows.read() if (row["variant"], row["prior_sd"], row["made_by"]) == wanted]

    done = {row["number"] for row in fresh()}
    for number in range(given.sets):
        if time.time() > until:
            break
        if number not in done:
            rows.append(calibrated(given.variant, number, SEED, prior_sd), made_by())
    found = fresh()
    for name in PARAMETERS:
        if found and found[0][name] != "":
            p = uniform_p([row[name] for row in found], found[0]["size"])
            share = np.mean([row[f"{name}_covered"] for row in found])
            print(f"{given.variant}, spread {prior_sd}, {len(found)} sets, {name}: p {p:.3f}, 90 % cover {share:.3f}")


if __name__ == "__main__":
    main()
