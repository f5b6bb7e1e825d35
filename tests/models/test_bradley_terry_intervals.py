"""Covariance, sandwich, bootstrap, ranks and probabilities, against explicit formulas and simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from pairscale.core.errors import FitError
from pairscale.models.bradley_terry import BTFit, fit_bt_model


def simulated(
    n_items: int, n_games: int, seed: Any, *, judges: int = 0, taste: float = 0.0
) -> tuple[pl.DataFrame, Any]:
    """Comparisons of known truth; with ``taste``, each judge has scores of their own around it."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    truth -= truth.mean()
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    judge = rng.integers(0, max(judges, 1), n_games)
    own = truth + taste * rng.normal(size=(max(judges, 1), n_items))
    ahead = rng.random(n_games) < 1 / (1 + np.exp(own[judge, second] - own[judge, first]))
    names = np.array([f"{at:03d}" for at in range(n_items)])
    data = {"object1": names[first], "object2": names[second], "result": ahead * 1.0}
    return pl.DataFrame({**data, "judge_id": [f"j{at}" for at in judge]}), truth


def column(fit: BTFit, name: str) -> Any:
    return fit.theta.sort("ID")[name].to_numpy()


def by_id(fit: BTFit) -> Any:
    assert fit.covariance is not None
    order = fit.theta["ID"].arg_sort().to_numpy()
    return fit.covariance[np.ix_(order, order)]


def explicit_sandwich(data: pl.DataFrame, fit: BTFit, *, position: bool) -> Any:
    """The sandwich on the design matrix, with the last score as minus the sum of the others."""
    names = sorted({*data["object1"], *data["object2"]})
    design = np.zeros((data.height, len(names)))
    for row, (one, two) in enumerate(data.select("object1", "object2").iter_rows()):
        design[row, names.index(one)], design[row, names.index(two)] = 1, -1
    lift = np.vstack([np.eye(len(names) - 1), -np.ones(len(names) - 1)])
    x = design @ lift
    d = design @ column(fit, "theta")
    if position:
        assert fit.position is not None
        x, d = np.column_stack([x, np.ones(len(x))]), d + fit.position.b
    p = 1 / (1 + np.exp(-d))
    bread = np.linalg.inv((x.T * (p * (1 - p))) @ x)
    score = x * (data["result"].to_numpy() - p)[:, None]
    clusters = data["judge_id"].unique().to_list()
    sums = np.array([score[(data["judge_id"] == name).to_numpy()].sum(axis=0) for name in clusters])
    full = bread @ sums.T @ sums @ bread * len(clusters) / (len(clusters) - 1)
    size = len(names) - 1
    return lift @ full[:size, :size] @ lift.T, full[size:, size:]


@pytest.mark.parametrize("position", [False, True])
def test_sandwich_as_the_formula(position: bool) -> None:
    data, _ = simulated(8, 900, 1, judges=25, taste=0.8)
    fit = fit_bt_model(data, engine="mle", cluster="judge_id", covariance=True, position=position)
    theta, extra = explicit_sandwich(data, fit, position=position)
    assert column(fit, "se_robust") == pytest.approx(np.sqrt(np.diag(theta)), rel=1e-7)
    assert by_id(fit) == pytest.approx(theta, abs=1e-9)
    width = column(fit, "upper") - column(fit, "lower")
    assert width == pytest.approx(2 * 1.959964 * column(fit, "se_robust"), rel=1e-6)
    if position:
        assert fit.position is not None
        assert fit.position.se == pytest.approx(float(np.sqrt(extra[0, 0])), rel=1e-7)


def test_reference_goes_through_everything() -> None:
    data, _ = simulated(8, 900, 3, judges=25)
    options: Any = {"engine": "mle", "cluster": "judge_id", "covariance": True}
    plain, to_one = fit_bt_model(data, **options), fit_bt_model(data, reference="003", **options)
    c = by_id(plain)
    assert by_id(to_one) == pytest.approx(c)
    apart = np.sqrt(np.diag(c) + c[3, 3] - 2 * c[3])
    assert column(to_one, "se_robust") == pytest.approx(apart, abs=1e-9)
    assert column(to_one, "theta") == pytest.approx(column(plain, "theta") - column(plain, "theta")[3])
    assert column(to_one, "lower") == pytest.approx(column(to_one, "theta") - 1.959964 * apart, abs=1e-6)
    drawn = fit_bt_model(data, engine="mle", reference="003", bootstrap=20)
    assert (column(drawn, "lower")[3], column(drawn, "upper")[3]) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sirt", "mle", "map", "firth"])
def test_bootstrap_as_wide_as_the_model(engine: str) -> None:
    data, _ = simulated(6, 1_500, 4)
    fit = fit_bt_model(data, engine=engine, bootstrap=400, position=True)
    ratio = column(fit, "se_bootstrap") / column(fit, "se_mean")
    # The sd of 400 draws is off by 3.5 % itself.
    assert np.abs(ratio - 1).max() < 0.14
    width = column(fit, "upper") - column(fit, "lower")
    assert width == pytest.approx(2 * 1.959964 * column(fit, "se_bootstrap"), rel=1e-6)
    assert fit.position is not None
    model = fit_bt_model(data, engine=engine, position=True)
    assert model.position is not None
    assert fit.position.se == pytest.approx(model.position.se, rel=0.14)


def test_the_seed_and_nothing_else_matters() -> None:
    data, _ = simulated(6, 200, 7)
    options: Any = {"bootstrap": 20, "rank_intervals": True, "covariance": True}
    one, two = fit_bt_model(data, seed=3, **options), fit_bt_model(data[::-1], seed=3, **options)
    assert one.theta.equals(two.theta)
    assert (one.provenance.seed, one.provenance.settings["bootstrap"]) == (3, 20)
    assert not one.theta.equals(fit_bt_model(data, seed=4, **options).theta)
    assert fit_bt_model(data, **options).theta.equals(fit_bt_model(data, **options).theta)


def test_too_few_comparisons_to_resample(message_snapshot) -> None:
    tree = pl.DataFrame(
        {"object1": ["a", "b", "c", "d"], "object2": ["b", "c", "d", "e"], "result": [1.0, 0.0, 1.0, 0.0]}
    )
    with pytest.raises(FitError) as refused:
        fit_bt_model(tree, bootstrap=50)
    message_snapshot(refused)
    for engine in ("map", "firth"):
        assert np.isfinite(column(fit_bt_model(tree, engine=engine, bootstrap=20), "se_bootstrap")).all()


# Do the intervals hold what they promise?


def on_average(truth: Any, taste: float) -> Any:
    """The scores that judges of such tastes have together: closer to each other than the truth behind them."""
    points, share = np.polynomial.hermite_e.hermegauss(41)
    rows = []
    for one in range(len(truth)):
        for two in range(one):
            p = float(share @ (1 / (1 + np.exp(truth[two] - truth[one] + np.sqrt(2) * taste * points))) / share.sum())
            rows += [(f"{one:03d}", f"{two:03d}", 1.0, p), (f"{one:03d}", f"{two:03d}", 0.0, 1 - p)]
    table = pl.DataFrame(rows, schema=["object1", "object2", "result", "w"], orient="row")
    return column(fit_bt_model(table, engine="mle", weights="w"), "theta")


@pytest.mark.validate
@pytest.mark.parametrize(
    ("engine", "options", "runs"),
    [
        ("sirt", {}, 300),
        ("mle", {}, 300),
        ("firth", {}, 300),
        ("mle", {"bootstrap": 200}, 60),
        ("sirt", {"bootstrap": 200}, 60),
        ("mle", {"cluster": "judge_id"}, 200),
        ("sirt", {"cluster": "judge_id"}, 200),
        ("mle", {"cluster": "judge_id", "bootstrap": 200}, 60),
    ],
)
def test_coverage(engine: str, options: dict[str, Any], runs: int) -> None:
    """20 items, 60 comparisons each; with clusters, 10 items, 300 each, of 40 judges of different tastes (sd 1)."""
    clustered = "cluster" in options
    covered, ranked, z, without = [], [], [], 0
    for run in range(runs):
        data, truth = simulated(*((10, 1500) if clustered else (20, 600)), [12, run], judges=40, taste=1.0 * clustered)
        truth = on_average(truth, 1.0) if clustered else truth
        try:
            fit = fit_bt_model(data, engine=engine, rank_intervals=True, seed=run, **options)
        except FitError:
            assert engine == "mle"
            without += 1
            continue
        lower, upper = column(fit, "lower"), column(fit, "upper")
        covered.append(np.mean((lower <= truth) & (truth <= upper)))
        z.append(np.mean((upper - lower) / 2))
        true_rank = (-truth).argsort().argsort() + 1
        ranked.append(np.mean((column(fit, "rank_lower") <= true_rank) & (true_rank <= column(fit, "rank_upper"))))
    share, margin = float(np.mean(covered)), float(np.std(covered) / np.sqrt(len(covered)))
    what = " ".join([engine, *(f"{name}={value}" for name, value in options.items())])
    print(f"\n{what}: {share:.3f} (± {margin:.3f}) of the truths inside 95 %, half width {np.mean(z):.3f}, ", end="")
    print(f"true ranks inside {np.mean(ranked):.3f}; {without} of {runs} runs without a maximum")
    assert without < 0.05 * runs
    assert 0.92 <= share <= 0.98
