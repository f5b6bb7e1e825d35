"""Scores from probabilities, beside a slow reference and against known truth."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from tests.models.logit_gibbs import gibbs

import pairscale as ps
from pairscale.core.errors import FitError, InputError, TableError
from pairscale.models.bayes.fit import BTLFit, FitEvidence, fit_btl, fit_btl_laplace, read_evidence
from pairscale.models.bayes.model import DF, LOG_PRIORS, Cells, JudgeParameters, Probabilities, t_below

LEARNED = JudgeParameters(lapse=False, position=True, prior_sd=None)
POSITION_SCALE = 1.0
fit_logits = partial(fit_btl, model_variant="btl_b", prior_sd="learned", repeats="learned")
fit_logits_laplace = partial(fit_btl_laplace, model_variant="btl_b", prior_sd="learned", repeats="learned")


def read(rows: pl.DataFrame, ids: list[str], repeats: float) -> FitEvidence:
    return read_evidence(rows, ids, LEARNED, repeats)


def answered(
    n: int, m: int, seed: int, *, sd: float = 2.0, tau: float = 1.0, b: float = 0.3, cut: float = np.inf
) -> tuple[pl.DataFrame, list[str], np.ndarray]:
    """Comparisons by a judge with normal errors, the ids, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, sd, n)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    z = np.clip(truth[first] - truth[second] + b + rng.normal(0, tau, m), -cut, cut)
    names = pl.Series([f"S{at:03d}" for at in range(n)])
    ids = {"ID1": names.gather(first), "ID2": names.gather(second)}
    better = names.gather(np.where(z > 0, first, second))
    return pl.DataFrame({**ids, "better_id": better, "probability": expit(z)}), names.to_list(), truth


def some_logits(seed: int = 1, n: int = 5, m: int = 14) -> Cells:
    """Answers of all three kinds, some of which count less than once."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    kind = rng.choice([0, 0, 0, 1, -1], m)
    z = np.where(kind == 0, rng.normal(0, 2, m), kind * rng.choice([0.0, 5.0], m))
    times = np.where(kind == 0, rng.choice([0.5, 1.0], m), 1.0)
    return Cells(first, second, np.ones(m), times, n, z=z, kind=kind)


# The likelihood


def test_terms_are_those_of_students_t() -> None:
    logits = some_logits(m=40)
    likelihood = Probabilities(logits)
    expected = np.random.default_rng(2).normal(0, 4, 40)
    error = stats.t(DF, expected, 1.3)
    wanted = np.select(
        [logits.kind == 0, logits.kind > 0], [error.logpdf(logits.z), error.logsf(logits.z)], error.logcdf(logits.z)
    )
    found = likelihood.terms(expected, np.log(1.3))
    assert found.value == pytest.approx(wanted, abs=1e-12)
    h = 1e-5
    higher, lower = (likelihood.terms(expected + step, np.log(1.3)) for step in (h, -h))
    assert found.slope == pytest.approx((higher.value - lower.value) / (2 * h), abs=1e-6)
    assert found.curvature == pytest.approx(-(higher.slope - lower.slope) / (2 * h), abs=1e-6)
    wider, narrower = (likelihood.terms(expected, np.log(1.3) + step) for step in (h, -h))
    assert found.in_noise == pytest.approx((wider.value - narrower.value) / (2 * h), abs=1e-6)
    assert (likelihood.information(expected, np.log(1.3)) >= 0).all()


@given(st.floats(-1e6, 1e6))
def test_the_distribution_function_is_exact_in_both_tails(v: float) -> None:
    assert t_below(np.array([v]))[0] == pytest.approx(stats.t(DF).cdf(v), rel=1e-9)


# The posterior


@pytest.mark.slow
def test_the_sampler_draws_what_the_reference_draws() -> None:
    """Bounds, winners without probabilities and repeats that count half, against 6,000 sweeps of Gibbs sampling."""
    rows, ids, _ = answered(6, 24, 5, cut=4.0)
    p, pair = pl.col("probability"), pl.concat_list(pl.min_horizontal("ID1", "ID2"), pl.max_horizontal("ID1", "ID2"))
    once = pl.len().over(pair.list.join(" ")) == 1  # the reference knows no part of a bound
    first_of = pl.int_range(pl.len()) < 12
    rows = rows.with_columns(
        probability=pl.when(once & first_of).then(None).when(once & (p > 0.9)).then(1.0).otherwise(p)
    )
    fit = fit_logits(rows, ids, seed=1, repeats=0.5)
    evidence = read(rows, ids, 0.5)
    assert {0, 1} <= set(evidence.cells.kind.tolist())
    assert (evidence.cells.times < 1).any()
    wanted = gibbs(evidence.cells, evidence.model, 6_000, 1)[500:]
    assert fit.diagnostics.diagnostics_pass
    found = np.concatenate([fit.posterior.theta, fit.posterior.b[:, None]], axis=1)  # type: ignore[index]
    sd = wanted[:, :7].std(axis=0)
    assert np.abs((found.mean(axis=0) - wanted[:, :7].mean(axis=0)) / sd).max() < 0.12
    assert found.std(axis=0) / sd == pytest.approx(np.ones(7), abs=0.1)
    assert np.log(fit.error).mean() == pytest.approx(wanted[:, -1].mean(), abs=0.06)
    assert np.log(fit.prior_sd).mean() == pytest.approx(wanted[:, -2].mean(), abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [np.inf, 3.0])
def test_the_approximation_is_near_the_sampler(cut: float) -> None:
    rows, ids, _ = answered(30, 180, 7, cut=cut)
    near, exact = fit_logits_laplace(rows, ids, seed=1), fit_logits(rows, ids, seed=1)
    assert exact.diagnostics.diagnostics_pass
    one, two = near.posterior.items, exact.posterior.items
    assert np.abs((one.theta_mean - two.theta_mean) / two.theta_sd).max() < 0.25
    assert one.theta_sd / two.theta_sd == pytest.approx(np.ones(30), abs=0.15)
    assert float(np.mean(one.theta_sd / two.theta_sd)) == pytest.approx(1, abs=0.04)


@pytest.mark.validate
def test_the_posterior_is_calibrated_by_simulation() -> None:
    """Truths drawn from the prior are uniform among the draws of their posteriors (SBC), with bounds and outliers."""
    ranks: dict[str, list[float]] = {name: [] for name in ("theta", "b", "spread", "error")}
    for seed in range(400):
        rng = np.random.default_rng((20261117, seed))
        n, m = 8, 40
        spread, error = (float(np.exp(rng.normal(*LOG_PRIORS[name]))) for name in ("t", "s"))
        theta, b = rng.normal(0, spread, n), float(rng.normal(0, POSITION_SCALE))
        first = rng.integers(0, n, m)
        second = (first + rng.integers(1, n, m)) % n
        z = theta[first] - theta[second] + b + error * rng.standard_t(DF, m)
        names = np.array([f"S{at}" for at in range(n)])
        rows = pl.DataFrame(
            {"ID1": names[first], "ID2": names[second], "better_id": names[np.where(z > 0, first, second)]}
        )
        fit = fit_logits(rows.with_columns(probability=expit(z)), list(names), seed=seed, repeats="independent")
        thin = slice(None, None, max(fit.posterior.n_draws // 200, 1))
        known = {
            "theta": (fit.posterior.theta[thin, 0], theta[0] - theta.mean()), "b": (fit.posterior.b[thin], b),  # type: ignore[index]
            "spread": (fit.prior_sd[thin], spread), "error": (fit.error[thin], error),  # type: ignore[index]
        }  # fmt: skip
        for name, (draws, value) in known.items():
            ranks[name].append(float((draws < value).mean()))
    for name, values in ranks.items():
        print(name, stats.kstest(values, "uniform").pvalue)
        assert stats.kstest(values, "uniform").pvalue > 0.01, name


# Repeats


def test_repeats_with_errors_of_their_own_are_evidence() -> None:
    one, ids, truth = answered(12, 60, 10)
    rng = np.random.default_rng(1)
    place = {name: at for at, name in enumerate(ids)}
    d = truth[[place[name] for name in one["ID1"]]] - truth[[place[name] for name in one["ID2"]]]
    rounds = [one.with_columns(probability=expit(d + rng.normal(0, 1, len(d)))) for _ in range(4)]
    fit = fit_logits_laplace(pl.concat(rounds), ids, seed=1)
    assert fit.repeat_agreement.rho < 0.25
    assert (
        fit.posterior.items.theta_sd.mean()
        < 0.75 * fit_logits_laplace(one, ids, seed=1).posterior.items.theta_sd.mean()
    )


# The verb


def test_fit_uses_probabilities_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    rows, _, truth = answered(15, 90, 12, cut=6.0)
    fit = ps.fit(rows, model="bayes", answer="probability", engine="laplace")
    assert isinstance(fit, ps.BayesFit)
    assert isinstance(fit.fit, BTLFit)
    assert np.corrcoef(fit.item_summary["theta_mean"], truth)[0, 1] > 0.97
    alone = ps.fit(rows.drop("better_id"), model="bayes", answer="probability", engine="laplace")
    assert isinstance(alone, ps.BayesFit)
    assert alone.item_summary["theta_mean"].to_list() == fit.item_summary["theta_mean"].to_list()
    caplog.clear()
    ps.fit(rows)
    assert "90 comparisons have a probability, which is not used" in caplog.text
    caplog.clear()
    ps.fit(rows.with_columns(probability=pl.lit(1.0)))
    assert "probability" not in caplog.text  # nothing that a winner does not say


def test_what_is_refused(message_snapshot) -> None:
    rows, ids, _ = answered(4, 8, 14)
    with pytest.raises(InputError) as refused:
        ps.fit(rows, answer="probability")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.fit(rows, model="bayes", answer="probability", ties="half")
    message_snapshot(refused)
    with pytest.raises(TableError) as refused:
        ps.fit(rows.with_columns(probability=pl.lit(1.5)), model="bayes", answer="probability")
    message_snapshot(refused)
    with pytest.raises(TableError, match="probability"):
        ps.fit(rows.drop("probability"), model="bayes", answer="probability")
    with pytest.raises(FitError) as refused:
        fit_logits_laplace(rows.with_columns(probability=pl.lit(None, pl.Float64())), ids)
    message_snapshot(refused)
