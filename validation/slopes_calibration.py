"""Simulation-based calibration of the model of several judges: is the truth ranked uniformly among posterior draws?

Truths are drawn from the prior: 8 texts, 3 judges, 90 comparisons. Data sets are kept in
``validation/data/slopes_calibration.csv``, one row each, so that ``python -m validation.slopes_calibration`` continues
where it stopped.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from pairscale.models.bayes.density import slope_basis
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.bayes.model import SLOPE_SD, Answers, count_outcomes
from validation.judges_slopes import made_by
from validation.rows import DATA, KeptRows

PARAMETERS = ("score", "spread", "first_slope", "last_slope", "position")
ROWS = KeptRows(
    DATA / "slopes_calibration.csv",
    ("number", *PARAMETERS, *(f"{name}_covered" for name in PARAMETERS), "diagnostics"),
)
SETS = 300
_TEXTS, _PAIRS, _JUDGES, _DRAWS = 8, 90, 3, 200


def calibrated(number: int) -> dict[str, Any]:
    """One data set: per parameter, the share of draws below the truth, and whether 90 % intervals hold it."""
    rng = np.random.default_rng((20261118, number))
    names = np.array([f"S{at}" for at in range(_TEXTS)])
    judge = rng.permutation(np.arange(_PAIRS) % _JUDGES)
    first = rng.integers(0, _TEXTS, _PAIRS)
    second = (first + rng.integers(1, _TEXTS, _PAIRS)) % _TEXTS
    basis = slope_basis(count_outcomes(Answers(first, second, np.ones(_PAIRS), _TEXTS, judge=judge), position=True))
    assert basis is not None
    slopes = 1 + basis @ rng.normal(0, SLOPE_SD, _JUDGES - 1)
    eta, b, spread = rng.normal(0, 1, _TEXTS), rng.normal(0, 0.5, _JUDGES), abs(rng.normal(0, 2.5))
    logit = spread * slopes[judge] * (eta[first] - eta[second]) + b[judge]
    won = rng.random(_PAIRS) < 1 / (1 + np.exp(-logit))
    ids = {"ID1": names[first], "ID2": names[second], "better_id": names[np.where(won, first, second)]}
    rows = pl.DataFrame({**ids, "judge_id": [f"J{one}" for one in judge]})
    fit = fit_btl(rows, list(names), "btl_b", seed=number, prior_sd="learned")
    assert fit.judges is not None
    assert fit.slopes is not None
    at = {name: place for place, name in enumerate(fit.judges["judge_id"])}
    assert fit.posterior.b is not None
    known = {
        "score": (fit.posterior.theta[:, 0], spread * (eta[0] - eta.mean())),
        "spread": (fit.prior_sd, spread),
        "first_slope": (fit.slopes[:, at["J0"]], slopes[0]),
        "last_slope": (fit.slopes[:, at["J2"]], slopes[2]),
        "position": (fit.posterior.b, b.mean()),
    }
    row: dict[str, Any] = {"number": number, "diagnostics": int(bool(fit.diagnostics.diagnostics_pass))}
    for name, (draws, value) in known.items():
        low, high = np.quantile(draws, (0.05, 0.95))
        row[name] = float((draws[:: max(len(draws) // _DRAWS, 1)] < value).mean())
        row[f"{name}_covered"] = int(low <= value <= high)
    return row


def kept() -> list[dict[str, Any]]:
    """The data sets of the present model."""
    return [row for row in ROWS.read() if row["made_by"] == made_by()]


def run(sets: int, until: float = math.inf) -> list[dict[str, Any]]:
    """Make the data sets that are missing, and return all."""
    done = {row["number"] for row in kept()}
    for number in range(sets):
        if number not in done and time.time() < until:
            ROWS.append(calibrated(number), made_by())
    return [row for row in kept() if row["number"] < sets]


def figures(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Per parameter, the p of uniform ranks (Kolmogorov-Smirnov), and the share of truths in 90 % intervals."""
    return {
        name: (
            float(stats.kstest([row[name] for row in rows], "uniform").pvalue),
            float(np.mean([row[f"{name}_covered"] for row in rows])),
        )
        for name in PARAMETERS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=SETS, help="how many data sets, those kept included")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start none after so many seconds")
    given = parser.parse_args()
    rows = run(given.sets, time.time() + given.seconds)
    print("| parameter | p of uniform ranks | covered by 90 % |\n| --- | --- | --- |")
    for name, (p, share) in figures(rows).items():
        print(f"| {name.replace('_', ' ')} | {p:.3f} | {share:.3f} |")
    print(f"\n{len(rows)} data sets; diagnostics pass in {sum(row['diagnostics'] for row in rows)}.")


if __name__ == "__main__":
    main()
