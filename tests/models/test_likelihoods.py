"""One family of models: winners, judges with slopes, probabilities. Everything here holds of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit, log_expit

from pairscale.models.bayes import density as density_module
from pairscale.models.bayes.coordinates import Coordinates
from pairscale.models.bayes.density import Density
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.bayes.model import (
    DF,
    LOG_PRIORS,
    Answers,
    Cells,
    JudgeParameters,
    Probabilities,
    Winners,
    count_outcomes,
)
from pairscale.models.bayes.normal import Target
from pairscale.models.bayes.precision import Precision

N = 6
WINNERS = [JudgeParameters(lapse, position, sd) for lapse in (0, 1) for position in (0, 1) for sd in (1.0, None)]
SLOPES = [JudgeParameters(False, position, None, judges=3) for position in (0, 1)]
PROBABILITIES = [JudgeParameters(False, position, sd, probabilities=True) for position in (0, 1) for sd in (2.0, None)]
MODELS = [*WINNERS, *SLOPES, *PROBABILITIES]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)
pooled_models = pytest.mark.parametrize("model", [*WINNERS, *PROBABILITIES], ids=str)  # the approximation has no slopes


@dataclass
class Rows:
    """Rows as they come: who stood first and second, who won, who judged, and the logit with its kind."""

    first: np.ndarray
    second: np.ndarray
    won: np.ndarray
    judge: np.ndarray
    z: np.ndarray
    kind: np.ndarray


def answers(m: int = 40, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, N, m)
    second = (first + rng.integers(1, N, m)) % N
    theta = rng.normal(size=N)
    won = rng.random(m) < expit(theta[first] - theta[second] + 0.2)
    judge = np.append(np.arange(3), rng.choice(3, m - 3, p=(0.6, 0.3, 0.1)))
    kind = rng.choice([0, 0, 0, 1, -1], m)
    z = np.where(kind == 0, rng.normal(0, 2, m), kind * rng.choice([0.0, 5.0], m))
    return Rows(first, second, won, judge, z, kind)


def cells_of(rows: Rows, model: JudgeParameters) -> Cells:
    if model.probabilities:
        ones = np.ones(len(rows.z))
        return Cells(rows.first, rows.second, ones, ones, N, z=rows.z, kind=rows.kind)
    judge = rows.judge if model.judges > 1 else None
    given = Answers(rows.first, rows.second, rows.won.astype(float), N, judge=judge)
    return count_outcomes(given, position=bool(model.position))


def slow_density(x: np.ndarray, rows: Rows, model: JudgeParameters, slopes: np.ndarray) -> float:
    """The model as it is written down, one answer after the other."""
    at = dict(zip(model.names, x[N:], strict=True))
    tau = np.exp(at["t"]) if "t" in at else model.prior_sd
    theta = x[:N]
    total = stats.norm.logpdf(theta, 0, tau).sum()
    eps = expit(at["u"]) if "u" in at else 0.0
    for row in range(len(rows.first)):
        judge = rows.judge[row] if model.judges > 1 else 0
        b = at.get("b", at.get(f"b{judge}", 0.0))
        eta = slopes[judge] * (theta[rows.first[row]] - theta[rows.second[row]]) + b
        if model.probabilities:
            error = stats.t(DF, eta, np.exp(at["s"]))
            z, kind = rows.z[row], rows.kind[row]
            total += error.logpdf(z) if kind == 0 else error.logsf(z) if kind > 0 else error.logcdf(z)
        else:
            p = (1 - eps) * expit(eta) + eps / 2
            total += np.log(p if rows.won[row] else 1 - p)
    sd = 1.0 if model.probabilities else 0.5 if model.judges > 1 else 0.3
    total += sum(stats.norm.logpdf(value, 0, sd) for name, value in at.items() if name[0] == "b")
    total += sum(stats.norm.logpdf(value, 0, 0.75) for name, value in at.items() if name[0] == "a")
    if "u" in at:
        total += stats.beta(2, 20).logpdf(eps) + np.log(eps * (1 - eps))
    if "s" in at:
        total += stats.norm.logpdf(at["s"], *LOG_PRIORS["s"])
        total += stats.norm.logpdf(at["t"], *LOG_PRIORS["t"]) if "t" in at else 0.0
    elif "t" in at:
        total += stats.halfnorm(0, 2.5).logpdf(tau) + at["t"]
    return float(total)


def slopes_by_differences(function: Any, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient of the values of a density, by differences."""
    steps = step * np.eye(len(x))
    pairs = [(function(x + one[:, None], value=True)[0], function(x - one[:, None], value=True)[0]) for one in steps]
    return np.array([(up - down) / (2 * step) for up, down in pairs])


@every_model
def test_density_and_gradient_are_those_of_the_model(model: JudgeParameters) -> None:
    rows = answers()
    density = Density(cells_of(rows, model), model)
    x = 0.7 * np.random.default_rng(2).normal(size=(density.size, 4))
    value, gradient = density(x, value=True)
    slow = np.array([slow_density(x[:, at], rows, model, density.slopes(x)[:, at]) for at in range(4)])
    np.testing.assert_allclose(value - value[0], slow - slow[0], atol=1e-9)  # type: ignore[operator, index]
    np.testing.assert_allclose(gradient, slopes_by_differences(density, x), atol=1e-6)
    assert density(x, value=False)[0] is None
    np.testing.assert_allclose(density(x, value=False)[1], gradient)


@every_model
@pytest.mark.parametrize("taught", [False, True])
def test_the_change_of_variables_is_exact(model: JudgeParameters, taught: bool) -> None:
    density = Density(cells_of(answers(60, seed=3), model), model)
    coordinates = Coordinates.around(density, density.start())
    rng = np.random.default_rng(4)
    if taught:
        center, learned = coordinates.learn(coordinates.to_x(rng.normal(size=(density.size, 400))))
        coordinates = Coordinates.around(density, center, learned)
    z = 1.5 * rng.normal(size=(density.size, 3))
    x = coordinates.to_x(z)
    np.testing.assert_allclose(coordinates.to_z(x), z, atol=1e-9)
    value, gradient = coordinates(z, value=True)
    np.testing.assert_allclose(gradient, slopes_by_differences(coordinates, z, 1e-6), atol=1e-4, rtol=1e-5)
    constant = np.log(coordinates.spread).sum() + np.linalg.slogdet(coordinates.root)[1]
    for column in range(3):
        # log density of z = log density of x + log |dx/dz|, with the Jacobian by differences
        here, steps = z[:, [column]], 1e-6 * np.eye(density.size)
        jacobian = (coordinates.to_x(here + steps) - coordinates.to_x(here - steps)) / 2e-6
        plain = density(x[:, [column]], value=True)[0][0]  # type: ignore[index]
        log_det = np.linalg.slogdet(jacobian)[1]
        assert value[column] == pytest.approx(plain + log_det - constant, abs=1e-5)  # type: ignore[index]


@every_model
def test_extreme_positions_give_no_warning_and_no_nan(model: JudgeParameters) -> None:
    density = Density(cells_of(answers(20), model), model)
    x = np.zeros((density.size, 2))
    x[0], x[1] = 900.0, -900.0
    value, gradient = density(x, value=True)
    assert np.isfinite(gradient).all()
    assert not np.isnan(value).any()  # type: ignore[arg-type]


@pytest.mark.parametrize("model", WINNERS, ids=str)
def test_far_out_the_density_is_the_same_by_another_way(model: JudgeParameters, monkeypatch: Any) -> None:
    density = Density(cells_of(answers(60), model), model)
    x = 2.0 * np.random.default_rng(1).normal(size=(density.size, 5))
    near = density(x, value=True)
    monkeypatch.setattr(density_module, "_FAR", 0.0)
    monkeypatch.setattr(density_module.np, "minimum", lambda values, _limit: values)
    for one, other in zip(near, density(x, value=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pooled_models
@pytest.mark.parametrize("dense", [True, False])
def test_the_mode_of_the_approximation_is_that_of_the_density(model: JudgeParameters, dense: bool) -> None:
    cells = cells_of(answers(), model)
    density, target = Density(cells, model), Target(cells, model, dense=dense)
    x = density.start()
    mode = target.mode(target.start(), steps=200)
    x[:N, 0] = mode[:N]
    x[[density.row[name] for name in model.position_names], 0] = mode[N:]
    _, gradient = density(x, value=False)
    free = [*range(N), *(density.row[name] for name in model.position_names)]
    assert np.abs(gradient[free]).max() < 0.6  # it ends when a step is below .05
    averages = target.averages(mode, None, target.start())
    found = target.gradient(averages.slope, mode, target.start())
    np.testing.assert_allclose(found, gradient[free, 0], atol=1e-9)


@pooled_models
def test_the_matrix_of_the_approximation_is_the_curvature_of_the_density(model: JudgeParameters) -> None:
    cells = cells_of(answers(), model)
    density, target = Density(cells, model), Target(cells, model, dense=True)
    judge, x = target.start(), density.start()
    free = [*range(N), *(density.row[name] for name in model.position_names)]
    x[free] = 0.5 * np.random.default_rng(3).normal(size=(len(free), 1))
    curvature = target.likelihood.terms(target.predictors(x[free, 0], judge), target.noise(judge)).curvature
    factor = target.factor(np.ones(len(curvature)), judge)
    factor.weight = curvature * cells.times
    Precision.__init__(factor, cells, factor.weight, factor.slope, factor.columns, factor.prior, factor.linear_prior)
    found = factor.matrix()  # type: ignore[union-attr]
    for at, row in enumerate(free):
        step = 1e-5 * np.eye(density.size)[:, [row]]
        up, down = (density(x + sign * step, value=False)[1][free, 0] for sign in (1, -1))
        np.testing.assert_allclose(found[at, : at + 1], ((down - up) / 2e-5)[: at + 1], atol=1e-5)


@pooled_models
def test_the_slope_of_the_bound(model: JudgeParameters, monkeypatch: Any) -> None:
    """In the other parameters, by differences; with averages that are all but exact."""
    for likelihood in (Winners, Probabilities):
        monkeypatch.setattr(likelihood, "nodes", 25)
    target = Target(cells_of(answers(), model), model)
    if not target.names:
        return
    judge = target.start()
    here = target.around(judge, target.mode(judge), None, steps=30)
    for at in range(len(judge)):
        step = 1e-3 * np.eye(len(judge))[at]
        up, down = (target.around(judge + sign * step, here.mean, here.spread, steps=30) for sign in (1, -1))
        assert (up.evidence - down.evidence) / 2e-3 == pytest.approx(here.slope[at], abs=2e-3)


def simulated(kind: str, n: int, m: int, seed: int) -> tuple[pl.DataFrame, list[str], np.ndarray]:
    """Rows of winners, of judges or of probabilities, the ids, and the centred truth."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1.5, n)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    judge = rng.integers(0, 3, m)
    slope = np.array([1.4, 1.0, 0.6])[judge] if kind == "slopes" else 1.0
    z = slope * (theta[first] - theta[second]) + 0.3
    if kind == "probabilities":
        z = z + rng.standard_t(DF, m)
        won = z > 0
    else:
        won = np.log(rng.random(m)) < log_expit(z)
    names = np.array([f"S{at:02d}" for at in range(n)])
    rows = pl.DataFrame({"ID1": names[first], "ID2": names[second], "better_id": names[np.where(won, first, second)]})
    if kind == "slopes":
        rows = rows.with_columns(judge_id=pl.Series([f"J{number}" for number in judge]))
    if kind == "probabilities":
        rows = rows.with_columns(probability=expit(z))
    return rows, list(names), theta - theta.mean()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["winners", "slopes", "probabilities"])
def test_intervals_cover(kind: str) -> None:
    inside = []
    for seed in range(12):
        rows, ids, truth = simulated(kind, 20, 160, seed)
        fit = fit_btl(rows, ids, "btl_b", seed=1, prior_sd="learned", repeats=0.0)
        assert fit.diagnostics.diagnostics_pass
        found = fit.posterior.items.theta
        inside.append(((found["p5"] <= truth) & (truth <= found["p95"])).mean())
    assert np.mean(inside) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("kind", ["winners", "slopes", "probabilities"])
def test_a_warm_fit_agrees_with_a_cold_one(kind: str) -> None:
    rows, ids, _ = simulated(kind, 12, 150, 5)
    given: dict[str, Any] = {"model_variant": "btl_b", "prior_sd": "learned", "repeats": 0.0}
    earlier = fit_btl(rows[:130], ids, seed=1, **given)
    warm, cold = fit_btl(rows, ids, seed=2, warm=earlier, **given), fit_btl(rows, ids, seed=3, **given)
    assert warm.provenance.settings["warm"]
    assert warm.diagnostics.diagnostics_pass
    one, two = warm.posterior.items, cold.posterior.items
    assert np.abs((one.theta_mean - two.theta_mean) / two.theta_sd).max() < 0.2
    assert one.theta_sd / two.theta_sd == pytest.approx(np.ones(12), abs=0.15)
