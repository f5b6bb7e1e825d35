"""Do the intervals of kappa hold the truth, also where a label is rare?

The long version (``make validate``) prints the table of docs/validation.md; its seeds were not used for the choice of
the method.
"""

from itertools import product

import numpy as np
import pytest

import pairscale as ps
from pairscale.checks import coefficients
from pairscale.checks.coefficients import cell_codes, dirichlet_ends

SEED = 20261120


def labels(table, names="xyz"):
    """Two raters' labels from how often each two labels met."""
    rows = [(names[i], names[j]) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return {"ann": [one for one, _ in rows], "bob": [two for _, two in rows]}


def kappa_row(table, **options):
    found = ps.agreement(labels(table), **options)
    return found.table.filter(statistic="cohen_kappa", weights="unweighted").row(0, named=True), found


def test_kappa_of_a_rare_label_is_not_taken_for_certain():
    """A bootstrap says -0.09 to 0: it never draws the case that both find rare."""
    row, found = kappa_row([[36, 2], [2, 0]])
    assert row["interval"] == "dirichlet"
    assert row["lower"] < row["estimate"] < 0 < row["upper"]
    assert row["upper"] - row["lower"] > 0.5
    assert not found.notices


def test_perfect_agreement_has_an_interval_up_to_1():
    row, found = kappa_row([[15, 0], [0, 15]])
    assert row["estimate"] == row["upper"] == 1
    assert 0.6 < row["lower"] < 0.9
    assert not found.notices
    fewer, _ = kappa_row([[28, 0], [0, 2]])
    assert fewer["lower"] < row["lower"], "two labels of a kind say less than fifteen"


def test_too_few_units_and_no_draws_have_none():
    row, found = kappa_row([[5, 2], [1, 4]])
    assert row["lower"] is None
    assert found.notices == ("no intervals: 12 units are too few, it takes 20",)
    row, found = kappa_row([[50, 20], [10, 40]], n_boot=0)
    assert (row["lower"], found.notices) == (None, ())


def test_one_label_alone_is_undefined_and_has_none():
    row, found = kappa_row([[30, 0], [0, 0]])
    assert (row["estimate"], row["lower"]) == (None, None)
    assert found.notices == ("some statistics are undefined: the labels do not vary, so chance explains them all",)


def test_the_three_labels_of_cases_and_ordered_ones_have_them_too():
    table = [[30, 5, 2], [6, 20, 3], [1, 4, 9]]
    found = ps.agreement(labels(table), categories=list("xyz")).table
    assert found["interval"].to_list() == ["wilson", *["dirichlet"] * (found.height - 1)]
    assert (found["lower"] < found["estimate"]).all()
    assert (found["estimate"] < found["upper"]).all()


def test_units_with_one_label_leave_ac1_to_the_bootstrap():
    given = labels([[20, 5], [3, 12]])
    given["bob"][:5] = [None] * 5
    found = ps.agreement(given).table
    assert dict(found.select("statistic", "interval").iter_rows()) == {
        "percent_agreement": "wilson",
        "cohen_kappa": "dirichlet",
        "krippendorff_alpha": "dirichlet",
        "gwet_ac1": "bootstrap",
    }


def test_more_raters_are_resampled_and_a_rare_label_is_said():
    given = labels([[57, 1], [2, 2]])
    three = given | {"cleo": given["ann"]}
    found = ps.agreement(three, n_boot=100)
    assert set(found.table["interval"]) == {"bootstrap"}
    assert found.notices == (
        "a rater gave only 3 labels besides the most common one: resampled intervals may be too narrow",
    )


def coverage(prevalence, n, kappa, runs, seed):
    """Of data sets whose kappa is defined, the share whose interval holds the truth; and the mean width."""
    chance = prevalence * (1 - prevalence)
    shares = [prevalence**2 + kappa * chance, *[chance * (1 - kappa)] * 2, (1 - prevalence) ** 2 + kappa * chance]
    tables = np.random.default_rng(seed).multinomial(n, shares, runs)
    places = np.arange(2.0)
    of_cells = coefficients.kappa(cell_codes(2), places, "unweighted")
    held, width, defined = 0.0, 0.0, 0
    for table, times in zip(*np.unique(tables, axis=0, return_counts=True), strict=True):
        estimate = of_cells(table[None, :].astype(float))[0]
        if np.isnan(estimate):
            continue
        ends = dirichlet_ends(of_cells, table, 0.95, 1)
        held += times * (min(*ends, estimate) <= kappa <= max(*ends, estimate))
        width += times * (max(ends) - min(ends))
        defined += times
    return held / defined, width / defined


@pytest.mark.slow
def test_kappa_is_held_where_a_label_is_rare():
    for n, kappa in ((20, 0.3), (50, 0.6)):
        assert coverage(0.9, n, kappa, 250, [SEED, 1, n])[0] > 0.9


@pytest.mark.validate
def test_coverage_of_kappa(monkeypatch):
    monkeypatch.setattr(coefficients, "_DRAWS", 3000)
    lowest = 1.0
    for prevalence, n in product((0.5, 0.8, 0.9, 0.95), (20, 50, 100, 400)):
        row = [coverage(prevalence, n, kappa, 500, [SEED, 2, round(100 * prevalence), n, at])
               for at, kappa in enumerate((0.0, 0.3, 0.6, 0.9))]  # fmt: skip
        told = " / ".join(f"{share:.3f}" for share, _ in row), " / ".join(f"{width:.2f}" for _, width in row)
        print(f"| {prevalence} | {n} | {told[0]} | {told[1]} |", flush=True)
        lowest = min(lowest, *(share for share, _ in row))
    assert lowest > 0.9
