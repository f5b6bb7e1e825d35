"""Sums over pairs are the same to the last digit with NumPy alone, for few items, as with SciPy."""

import numpy as np
import polars as pl

from pairscale.models import _information
from pairscale.models.data import as_results, count_pairs, read_outcomes


def test_sums_of_few_items_are_those_of_many(monkeypatch):
    random = np.random.default_rng(3)
    first = random.integers(0, 20, 300)
    second = (first + 1 + random.integers(0, 19, 300)) % 20
    rows = pl.DataFrame({"object1": first, "object2": second, "result": random.integers(0, 2, 300)})
    counts, _ = count_pairs(read_outcomes(as_results(rows)))
    values = random.normal(size=len(counts.times))

    def sums():
        return [sums_of(counts, values) for sums_of in (_information.row_sums, _information.column_sums)]

    few = sums()
    monkeypatch.setattr(_information, "WITHOUT_SCIPY", 0)
    np.testing.assert_array_equal(few, sums())
