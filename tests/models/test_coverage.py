"""Do the intervals hold what they promise? Simulated judges of known truth, nothing tuned after looking."""

import numpy as np
import polars as pl
import pytest

import pairscale as ps

RUNS = 400


@pytest.mark.validate
@pytest.mark.parametrize(("n_items", "per_item"), [(20, 10), (20, 40), (100, 20)])
def test_intervals_cover_the_truth(n_items, per_item):
    names = pl.Series([f"S{n:03d}" for n in range(n_items)])
    covered, z = [], []
    for run in range(RUNS):
        rng = np.random.default_rng([n_items, per_item, run])
        truth = rng.normal(size=n_items)
        truth -= truth.mean()
        size = n_items * per_item // 2
        first = rng.integers(0, n_items, size)
        second = (first + rng.integers(1, n_items, size)) % n_items
        won = rng.random(size) < 1 / (1 + np.exp(truth[second] - truth[first]))
        data = pl.DataFrame({"object1": names.gather(first), "object2": names.gather(second), "result": won * 1.0})
        fit = ps.fit_bt_model(data)
        table = fit.theta.sort("ID").filter(pl.col("theta").is_not_null())
        true = pl.DataFrame({"ID": names, "true": truth}).join(table, on="ID")
        covered += true.select(pl.col("true").is_between("lower", "upper")).to_series().to_list()
        z += true.select((pl.col("theta") - pl.col("true")) / pl.col("se_mean")).to_series().to_list()
    share = float(np.mean(covered))
    print(f"\n{n_items} texts, {per_item} comparisons each: {share:.3f} inside 95 %, sd of z {np.std(z):.3f}")
    # Runs are independent, the texts within one are not: a wide margin around the promise.
    assert 0.92 <= share <= 0.98
