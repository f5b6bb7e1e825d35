"""What is known beforehand: the density beside a slow one, the fits beside each other, and what a column may hold."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import pairscale as ps
from pairscale.adaptive.information import SD_SPREAD, SD_START, Laplace
from pairscale.core.errors import InputError
from pairscale.models._btl import BTLDensity
from pairscale.models._cells import Cells, JudgeParameters
from pairscale.models._coordinates import Coordinates
from pairscale.models._normal import Target
from pairscale.models._normal_sparse import SparseTarget
from pairscale.models.bayes import fit_btl
from pairscale.models.known import known_by_id, known_numbers, standardised
from pairscale.models.laplace import fit_btl_laplace
from pairscale.models.prior_mode import prior_mode
from pairscale.models.warm_start import warm_from_bytes, warm_of, warm_to_bytes

N, CELLS = 9, 40
MODELS = [(lapse, position, sd) for lapse in (False, True) for position in (False, True) for sd in (1.5, None)]


def made(seed: int = 0) -> tuple[Cells, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    winner = rng.integers(0, N, CELLS)
    loser = (winner + rng.integers(1, N, CELLS)) % N
    times = rng.integers(1, 4, CELLS).astype(float)
    return Cells(winner, loser, rng.choice([-1.0, 1.0], CELLS), times, N), standardised(rng.normal(size=N)), rng


def slow_density(x: np.ndarray, cells: Cells, model: JudgeParameters, known: np.ndarray) -> float:
    """The log density of one position, one comparison after the other, in terms of the abilities themselves."""
    found = dict(zip(model.names, x[N:], strict=True))
    slope, b = found["g"], found.get("b", 0.0)
    eps = float(expit(found["u"])) if "u" in found else 0.0
    tau = math.exp(found["t"]) if "t" in found else model.prior_sd
    assert tau is not None
    theta = [x[at] + slope * known[at] for at in range(N)]
    total = -0.5 * slope**2
    for winner, loser, sign, times in zip(cells.winner, cells.loser, cells.sign, cells.times, strict=True):
        total += times * math.log((1 - eps) * expit(theta[winner] - theta[loser] + sign * b) + eps / 2)
    for at in range(N):
        total -= math.log(tau) + 0.5 * ((theta[at] - slope * known[at]) / tau) ** 2
    if "u" in found:
        total += 2 * math.log(eps) + 20 * math.log(1 - eps)
    if "b" in found:
        total -= 0.5 * (b / 0.3) ** 2
    if "t" in found:
        total += found["t"] - 0.5 * (tau / 2.5) ** 2
    return total


def differentiated(function, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    moves = step * np.eye(len(x))
    return np.array([(function(x + move) - function(x - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize(("lapse", "position", "sd"), MODELS)
def test_density_and_gradient_are_those_of_the_slow_one(lapse, position, sd):
    cells, known, rng = made()
    model = JudgeParameters(lapse, position, sd, tuple(known))
    density = BTLDensity(cells, model)
    x = 0.5 * rng.normal(size=(density.size, 2))
    value, gradient = density(x, value=True)
    assert value is not None
    slow = [slow_density(column, cells, model, known) for column in x.T]
    assert value[0] - value[1] == pytest.approx(slow[0] - slow[1], abs=1e-10)
    for at, column in enumerate(x.T):
        by_steps = differentiated(lambda one: slow_density(one, cells, model, known), column)
        np.testing.assert_allclose(gradient[:, at], by_steps, atol=1e-6)


@pytest.mark.parametrize(("lapse", "position", "sd"), MODELS)
def test_coordinates_change_variables_and_back(lapse, position, sd):
    cells, known, rng = made(1)
    density = BTLDensity(cells, JudgeParameters(lapse, position, sd, tuple(known)))
    coordinates = Coordinates.around(density, 0.3 * rng.normal(size=(density.size, 1)))
    z = rng.normal(size=(density.size, 3))
    np.testing.assert_allclose(coordinates.to_z(coordinates.to_x(z)), z, atol=1e-10)
    gradient = coordinates(z, value=True)[1]

    def value(one: np.ndarray) -> float:
        found = coordinates(one[:, None], value=True)[0]
        assert found is not None
        return float(found[0])

    np.testing.assert_allclose(gradient[:, 0], differentiated(value, z[:, 0]), atol=1e-5)


def test_the_matrices_of_the_approximation_are_those_of_the_whole_density():
    cells, known, rng = made(2)
    model = JudgeParameters(False, True, 1.3, tuple(known))
    target, large, density = Target(cells, model), SparseTarget(cells, model), BTLDensity(cells, model)
    at = 0.4 * rng.normal(size=target.size)
    precision = target.precision(np.empty(0))
    _, slope, curvature, _ = target.averages(at, None, 0.0)
    x = at[:, None]
    np.testing.assert_allclose(target.gradient(slope, at, precision), density(x, value=False)[1][:, 0], atol=1e-10)
    hessian = differentiated(lambda one: density(one[:, None], value=False)[1][:, 0], at)
    found = target.factor(curvature, precision)
    np.testing.assert_allclose(found @ found.T, -hessian, atol=1e-5)
    graph = large.factor(curvature, precision)
    np.testing.assert_allclose(graph.times(np.eye(target.size)), -hessian, atol=1e-5)
    covariance = np.linalg.inv(-hessian)
    rows = np.zeros((CELLS, target.size))
    rows[np.arange(CELLS), cells.winner] += 1
    rows[np.arange(CELLS), cells.loser] -= 1
    rows[:, N], rows[:, N + 1] = cells.sign, known[cells.winner] - known[cells.loser]
    variance, spread = target.variances(found)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-4)
    np.testing.assert_allclose(spread, np.einsum("ki,ij,kj->k", rows, covariance, rows), rtol=1e-4)


def test_the_belief_of_the_selector_has_the_prior_of_the_model():
    _, known, rng = made(3)
    belief = Laplace()
    belief.join(N, known)
    np.testing.assert_allclose(belief.covariance.whole(), SD_START**2 * np.eye(N) + np.outer(known, known))
    for _ in range(40):
        a, b = (int(at) for at in rng.choice(N, 2, replace=False))
        belief.answer(a, b, int(rng.random() < expit(known[a] - known[b])))
    belief.solve()
    used = len(belief._slot)
    pairs = (*belief._pairs[:, :used], belief._times[:used], belief._won[:used])

    def marginal(log_sd: float) -> float:
        """Laplace's approximation of the evidence of log s, times its prior, by determinants."""
        found = prior_mode(*pairs, prior=math.exp(-2 * log_sd), start=np.zeros(N), known=known)
        prior = math.exp(2 * log_sd) * np.eye(N) + np.outer(known, known)
        log = found.height - np.linalg.slogdet(prior)[1] / 2 - np.log(np.diag(found.factor)).sum()
        return float(log) - 0.5 * ((log_sd - math.log(SD_START)) / SD_SPREAD) ** 2

    log_sd = math.log(belief.sd)
    slope = (marginal(log_sd + 1e-4) - marginal(log_sd - 1e-4)) / 2e-4
    inverse = np.linalg.inv(belief.sd**2 * np.eye(N) + np.outer(known, known))
    told = belief.sd**2 * (np.trace(inverse) - np.trace(belief.covariance.whole() @ inverse @ inverse))
    step = slope / (2 * told**2 / N + SD_SPREAD**-2)
    assert math.log(belief._next_sd) - log_sd == pytest.approx(step, rel=1e-3)


# Fits


def results(
    n: int, m: int, correlation: float, seed: int = 3
) -> tuple[pl.DataFrame, list[str], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    known = standardised(rng.normal(size=n))
    theta = 1.5 * (correlation * known + math.sqrt(1 - correlation**2) * rng.normal(size=n))
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    won = rng.random(m) < expit(theta[first] - theta[second] + 0.2)
    names = pl.Series([f"t{at:03d}" for at in range(n)])
    columns = {"ID1": first, "ID2": second, "better_id": np.where(won, first, second)}
    return pl.DataFrame({name: names.gather(at) for name, at in columns.items()}), names.to_list(), known, theta


@pytest.mark.slow_except("30")
@pytest.mark.parametrize("n", [30, 210])  # dense, and sparse
def test_sampler_and_approximation_agree_and_the_column_helps(n):
    rows, ids, known, theta = results(n, 6 * n, 0.8)
    exact = fit_btl(rows, ids, seed=1, prior_sd="learned", known=100 + 7 * known)
    fast = fit_btl_laplace(rows, ids, seed=1, prior_sd="learned", known=known)
    without = fit_btl_laplace(rows, ids, seed=1, prior_sd="learned")
    assert exact.diagnostics.diagnostics_pass
    one, two = exact.posterior.items, fast.posterior.items
    assert np.abs((one.theta_mean - two.theta_mean) / one.theta_sd).max() < 0.35
    assert np.median(two.theta_sd / one.theta_sd) == pytest.approx(1, abs=0.12)
    assert exact.slope is not None
    assert fast.slope is not None
    assert exact.slope.mean() == pytest.approx(fast.slope.mean(), abs=0.5 * exact.slope.std())
    assert abs(exact.slope.mean() - 1.2) < 4 * exact.slope.std()
    found, plain = (np.corrcoef(fit.posterior.items.theta_mean, theta)[0, 1] for fit in (fast, without))
    assert found > plain


@pytest.mark.slow
def test_a_warm_start_is_that_of_the_same_column_alone():
    rows, ids, known, _ = results(20, 150, 0.8)
    first = fit_btl(rows[:100], ids, seed=1, known=known)
    again = warm_from_bytes(warm_to_bytes(warm_of(first)))
    assert fit_btl(rows, ids, seed=1, known=known, warm=again).provenance.settings["warm"] is True
    assert fit_btl(rows, ids, seed=1, known=-known, warm=again).provenance.settings["warm"] is False
    assert fit_btl(rows, ids, seed=1, warm=again).provenance.settings["warm"] is False


def test_fit_takes_a_mapping_a_table_or_a_file(message_snapshot, tmp_path):
    rows, ids, known, _ = results(12, 60, 0.8)
    table = pl.DataFrame({"ID": ids, "mark": known})
    table.write_csv(tmp_path / "marks.csv")
    options = {"model": "bayes", "engine": "laplace", "seed": 1}
    found = [
        ps.fit(rows, prior=prior, **options).round_log["prior_slope_mean"].item()
        for prior in (dict(zip(ids, known, strict=True)), table, str(tmp_path / "marks.csv"))
    ]
    assert found[0] == found[1] == found[2]
    assert found[0] > 0.3
    assert ps.fit(rows, **options).round_log["prior_slope_mean"].item() is None
    with pytest.raises(InputError) as refused:
        ps.fit(rows, prior="mark", **options)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.fit(rows, prior=table)
    message_snapshot(refused)


# What a column may hold


def test_missing_numbers_are_average_and_said(caplog):
    samples = pl.DataFrame({"ID": ["a", "b", "c", "d"], "mark": ["1", " 3 ", "", None]})
    values = known_numbers(samples, "mark", ["d", "b", "a", "c"])
    assert np.array_equal(values, [math.nan, 3, 1, math.nan], equal_nan=True)
    assert standardised(values).tolist() == [0, 1, -1, 0]
    assert "2 of 4 texts have no 'mark'" in caplog.text


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [("mark", ["good", "bad", "1"], "no numbers"), ("mark", [1.0, 1.0, 1.0], "all the same"),
     ("mark", [None, None, None], "holds no number"), ("mark", [1.0, math.inf, 2.0], "infinite"),
     ("mark", [[1], [2], [3]], "not numbers"), ("other", [1.0, 2.0, 3.0], "no column 'mark'")],
)  # fmt: skip
def test_columns_that_cannot_be_used(column, values, said):
    with pytest.raises(InputError, match=said):
        known_numbers(pl.DataFrame({"ID": ["a", "b", "c"], column: values}), "mark")


def test_ids_that_stand_twice_are_refused():
    with pytest.raises(InputError, match="more than once"):
        known_by_id([{"ID": "a", "mark": 1}, {"ID": "a", "mark": 2}], ["a", "b"])


# The whole: simulation-based calibration (make validate)


@pytest.mark.validate
def test_the_posterior_is_calibrated():
    """Truth drawn from the prior, comparisons from the truth: its ranks among the draws are uniform."""
    runs, kept, n, m = 300, 99, 8, 40
    ranks: dict[str, list[int]] = {"theta": [], "slope": [], "tau": [], "b": [], "eps": []}
    for seed in range(runs):
        rng = np.random.default_rng((seed, 20_000))
        known = standardised(rng.normal(size=n))
        eps, b, tau, slope = rng.beta(2, 20), rng.normal(0, 0.3), abs(rng.normal(0, 2.5)), rng.normal()
        theta = slope * known + tau * rng.normal(size=n)
        first = rng.integers(0, n, m)
        second = (first + rng.integers(1, n, m)) % n
        won = rng.random(m) < (1 - eps) * expit(theta[first] - theta[second] + b) + eps / 2
        names = pl.Series([f"t{at}" for at in range(n)])
        columns = {"ID1": first, "ID2": second, "better_id": np.where(won, first, second)}
        rows = pl.DataFrame({name: names.gather(at) for name, at in columns.items()})
        fit = fit_btl(rows, names.to_list(), seed=seed, prior_sd="learned", known=known)
        assert fit.prior_sd is not None
        assert fit.slope is not None
        at = np.linspace(0, fit.posterior.n_draws - 1, kept).astype(int)
        true = {"theta": theta[0] - theta.mean(), "slope": slope, "tau": tau, "b": b, "eps": eps}
        drawn = {
            "theta": fit.posterior.theta[:, 0], "slope": fit.slope, "tau": fit.prior_sd, "b": fit.posterior.b,
            "eps": fit.posterior.epsilon,
        }  # fmt: skip
        for name, value in true.items():
            ranks[name].append(int((drawn[name][at] < value).sum()))
    for name, found in ranks.items():
        counted = np.bincount(np.array(found) // 10, minlength=10)
        chi = float(((counted - runs / 10) ** 2 / (runs / 10)).sum())
        inside = np.mean([(5 <= rank) & (rank < 95) for rank in found])
        print(f"{name}: {counted.tolist()}, chi-square {chi:.1f} of 9 degrees, 90 % intervals cover {inside:.3f}")
        assert chi < 27.9, name  # one in a thousand
