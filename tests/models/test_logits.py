"""Scores from probabilities, beside a slow reference and against known truth."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from tests.models.logit_gibbs import gibbs, log_density

import pairscale as ps
from pairscale.core.comparisons import as_comparisons
from pairscale.core.errors import FitError, InputError, TableError
from pairscale.models import logits as module
from pairscale.models._cells import JudgeParameters
from pairscale.models._logit_density import LogitDensity
from pairscale.models._logit_target import LogitTarget, SparseLogitTarget
from pairscale.models._logits import DF, LOG_PRIORS, POSITION_SCALE, SATURATED, Logits, logit_terms, t_below
from pairscale.models.laplace import around_center
from pairscale.models.logits import LogitFit, fit_logits, fit_logits_laplace

LEARNED = JudgeParameters(lapse=False, position=True, prior_sd=None)


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


def some_logits(seed: int = 1, n: int = 5, m: int = 14) -> Logits:
    """Answers of all three kinds, some of which count less than once."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    kind = rng.choice([0, 0, 0, 1, -1], m)
    z = np.where(kind == 0, rng.normal(0, 2, m), kind * rng.choice([0.0, 5.0], m))
    return Logits(first, second, z, kind, np.where(kind == 0, rng.choice([0.5, 1.0], m), 1.0), n)


# The likelihood


def test_terms_are_those_of_students_t() -> None:
    logits = some_logits(m=40)
    expected = np.random.default_rng(2).normal(0, 4, 40)
    error = stats.t(DF, expected, 1.3)
    wanted = np.select(
        [logits.kind == 0, logits.kind > 0], [error.logpdf(logits.z), error.logsf(logits.z)], error.logcdf(logits.z)
    )
    found = logit_terms(expected, logits.z, logits.kind, np.log(1.3))
    assert found.value == pytest.approx(wanted, abs=1e-12)
    h = 1e-5
    higher, lower = (logit_terms(expected + step, logits.z, logits.kind, np.log(1.3)) for step in (h, -h))
    assert found.slope == pytest.approx((higher.value - lower.value) / (2 * h), abs=1e-6)
    assert found.curvature == pytest.approx(-(higher.slope - lower.slope) / (2 * h), abs=1e-6)
    wider, narrower = (logit_terms(expected, logits.z, logits.kind, np.log(1.3) + step) for step in (h, -h))
    assert found.in_error == pytest.approx((wider.value - narrower.value) / (2 * h), abs=1e-6)
    assert (found.weight >= 0).all()


@given(st.floats(-1e6, 1e6))
def test_the_distribution_function_is_exact_in_both_tails(v: float) -> None:
    assert t_below(np.array([v]))[0] == pytest.approx(stats.t(DF).cdf(v), rel=1e-9)


def test_the_density_is_that_of_the_reference() -> None:
    logits = some_logits()
    density = LogitDensity(logits, LEARNED)
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, (density.size, 4))
    value, gradient = density(x, value=True)
    wanted = [log_density(logits, column[:5], *column[5:]) for column in x.T]
    assert value is not None
    assert np.diff(value) == pytest.approx(np.diff(wanted), abs=1e-9)
    for row in range(density.size):
        moved = x.copy()
        moved[row] += 1e-6
        higher, _ = density(moved, value=True)
        assert higher is not None
        assert (higher - value) / 1e-6 == pytest.approx(gradient[row], abs=2e-4)


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
    read = module._read(rows, ids, "btl_b", "learned", 0.5)
    assert {0, 1} <= set(read.logits.kind.tolist())
    assert (read.logits.times < 1).any()
    wanted = gibbs(read.logits, read.model, 6_000, 1)[500:]
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


def test_many_items_need_no_dense_matrix() -> None:
    rows, ids, _ = answered(60, 500, 8)
    read = module._read(rows, ids, "btl_b", "learned", "independent")
    dense, _ = around_center(LogitTarget(read.logits, read.model))
    loose, _ = around_center(SparseLogitTarget(read.logits, read.model))
    assert loose.judge == pytest.approx(dense.judge, abs=0.02)
    assert loose.mean == pytest.approx(dense.mean, abs=0.03)


def covered(fit: LogitFit, truth: np.ndarray) -> np.ndarray:
    found = fit.posterior.items.theta
    centred = truth - truth.mean()
    return np.asarray((found["p2.5"] <= centred) & (centred <= found["p97.5"]))


def test_intervals_cover_and_parameters_are_found() -> None:
    inside = []
    for seed in range(8):
        rows, ids, truth = answered(40, 320, 100 + seed, cut=SATURATED)
        fit = fit_logits_laplace(rows, ids, seed=1)
        inside.append(covered(fit, truth).mean())
        assert float(fit.error.mean()) == pytest.approx(0.82, abs=0.12)  # the scale of t that is nearest to N(0, 1)
        assert fit.posterior.b is not None
        assert float(fit.posterior.b.mean()) == pytest.approx(0.3, abs=0.25)
        assert np.corrcoef(fit.posterior.items.theta_mean, truth)[0, 1] > 0.97
    assert 0.91 < np.mean(inside) < 0.985


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


def test_the_same_answers_again_are_no_new_evidence() -> None:
    rows, ids, _ = answered(12, 40, 9)
    low, high = pl.min_horizontal("ID1", "ID2").alias("low"), pl.max_horizontal("ID1", "ID2").alias("high")
    rows = rows.with_columns(low, high).unique(["low", "high"], maintain_order=True)
    once, ten = fit_logits_laplace(rows, ids, seed=1), fit_logits_laplace(pl.concat([rows] * 10), ids, seed=1)
    assert ten.repeat_agreement.rho > 0.99
    assert ten.posterior.items.theta_sd == pytest.approx(once.posterior.items.theta_sd, rel=0.05)
    new = fit_logits_laplace(pl.concat([rows] * 10), ids, seed=1, repeats="independent")
    assert new.posterior.items.theta_sd.mean() < 0.5 * once.posterior.items.theta_sd.mean()


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


def test_a_bound_that_is_repeated_is_no_new_evidence() -> None:
    rows, ids, _ = answered(6, 12, 15, cut=3.0)
    sure = rows.with_columns(probability=pl.when(pl.col("probability") > 0.9).then(1.0).otherwise("probability"))
    once = around_center(module._read(sure, ids, "btl_b", "learned", 1.0).target)[0]
    again = around_center(module._read(pl.concat([sure] * 5), ids, "btl_b", "learned", 1.0).target)[0]
    assert again.mean == pytest.approx(once.mean, abs=1e-6)
    assert again.variance == pytest.approx(once.variance, rel=1e-6)


@pytest.mark.slow
@given(st.integers(0, 50))
def test_who_stands_first_changes_only_the_sign_of_the_position_effect(seed: int) -> None:
    rows, ids, _ = answered(6, 15, seed)
    turned = rows.with_columns(ID1="ID2", ID2="ID1", probability=1 - pl.col("probability"))
    one, two = (around_center(module._read(table, ids, "btl_b", "learned", 0.5).target)[0] for table in (rows, turned))
    assert two.mean[:6] == pytest.approx(one.mean[:6], abs=1e-6)
    assert two.mean[6] == pytest.approx(-one.mean[6], abs=1e-6)


def test_an_outlier_hardly_moves_the_scores() -> None:
    rows, ids, _ = answered(10, 90, 11, sd=1.0)
    wrong = pl.DataFrame({"ID1": [ids[0]], "ID2": [ids[1]], "better_id": [ids[0]], "probability": [0.99]})
    before = fit_logits_laplace(rows, ids, seed=1).posterior.items
    after = fit_logits_laplace(pl.concat([rows, wrong]), ids, seed=1).posterior.items
    assert np.abs(after.theta_mean - before.theta_mean).max() < 0.5 * before.theta_sd.max()


# The verb


def test_fit_uses_probabilities_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    rows, _, truth = answered(15, 90, 12, cut=6.0)
    fit = ps.fit(rows, model="bayes", answer="probability", engine="laplace")
    assert isinstance(fit, ps.BayesFit)
    assert isinstance(fit.fit, LogitFit)
    assert fit.fit.n_saturated == (np.abs(np.log(rows["probability"] / (1 - rows["probability"]))) >= SATURATED).sum()
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


def test_winners_without_probabilities_count_as_winners() -> None:
    rows, ids, truth = answered(15, 200, 13)
    half = rows.with_columns(probability=pl.when(pl.int_range(pl.len()) % 2 == 0).then("probability"))
    fits = [fit_logits_laplace(table, ids, seed=1) for table in (rows, half, half.drop_nulls("probability"))]
    assert (fits[1].n_comparisons, fits[1].n_probabilities) == (200, 100)
    wide = [float(fit.posterior.items.theta_sd.mean()) for fit in fits]
    assert wide[0] < wide[1] < wide[2]
    assert "100 of 200 comparisons have no probability" in fits[1].notices[0]
    assert covered(fits[1], truth).mean() > 0.8


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


def test_nearly_nothing_is_fitted_without_an_error() -> None:
    for probability in ([0.8], [1.0], [0.5], [0.5, 0.5, 0.5], [1.0, 1.0, 1.0], [0.9, 0.2, 0.6]):
        n = len(probability)
        ids = ["a", "b", "c"]
        table = pl.DataFrame(
            {"ID1": ids[:n], "ID2": ["b", "c", "a"][:n], "better_id": ids[:n], "probability": probability}
        )
        for table_of in (table, pl.concat([table, table])):
            found = fit_logits_laplace(table_of, ids, seed=1).posterior.items
            assert np.isfinite(found.theta_mean).all()
            assert (found.theta_sd > 0).all()


def test_alpacaeval_s_weighted_win_rates_are_the_mean_probabilities() -> None:
    """Read as results with probabilities, the annotations give the published rates, to the rounding of the file."""
    folder = Path(__file__).parents[1] / "golden" / "alpaca"
    rows = pl.read_csv(folder / "annotations.csv.gz").select(
        pl.col("model").alias("ID1"), pl.lit("baseline").alias("ID2"), pl.col("preference").alias("probability")
    )
    found = as_comparisons(rows).group_by("ID1").agg(rate=100 * pl.col("probability").mean())
    published = pl.read_csv(folder / "published.csv")
    both = found.join(published, left_on="ID1", right_on="model")
    assert both.height == published.height
    assert both["rate"].to_numpy() == pytest.approx(both["win_rate"].to_numpy(), abs=5e-6)


# What is known beforehand


def _marked(seed: int = 1) -> tuple[pl.DataFrame, list[str], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, m = 30, 60
    mark = rng.normal(size=n)
    theta = 1.5 * mark + rng.normal(0, 1, n)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    z = theta[first] - theta[second] + 0.3 + rng.standard_t(4, m)
    names = np.array([f"S{at:02d}" for at in range(n)])
    ids = {"ID1": names[first], "ID2": names[second], "better_id": names[np.where(z > 0, first, second)]}
    return pl.DataFrame({**ids, "probability": expit(z)}), list(names), mark, theta


@pytest.mark.parametrize("prior_sd", [None, 2.0])
@pytest.mark.parametrize("position", [True, False])
def test_the_density_with_a_column_is_that_of_the_reference(position: bool, prior_sd: float | None) -> None:
    rng = np.random.default_rng(5)
    n, k = 6, 15
    first, second = rng.integers(0, 3, k), 3 + rng.integers(0, 3, k)
    logits = Logits(first, second, rng.normal(0, 2, k), rng.integers(-1, 2, k), rng.random(k), n)
    known = rng.normal(size=n)
    model = JudgeParameters(lapse=False, position=position, prior_sd=prior_sd, known=tuple(known.tolist()))
    density = LogitDensity(logits, model)
    x = rng.normal(size=(density.size, 2))
    values, gradient = density(x, value=True)
    assert values is not None
    found = []
    for column in x.T:
        at = density.row
        b, g, s = column[at["b"]] if position else 0.0, column[at["g"]], column[at["s"]]
        t = column[at["t"]] if prior_sd is None else math.log(prior_sd)
        total = stats.norm.logpdf(column[:n], 0, math.exp(t)).sum() + stats.norm.logpdf(g, 0, 2.0)
        total += stats.norm.logpdf(s, *LOG_PRIORS["s"]) + (stats.norm.logpdf(b) if position else 0.0)
        total += stats.norm.logpdf(t, *LOG_PRIORS["t"]) if prior_sd is None else 0.0
        score = column[:n] + g * known
        for i, j, z, kind, times in zip(first, second, logits.z, logits.kind, logits.times, strict=True):
            error = stats.t(DF, score[i] - score[j] + b, math.exp(s))
            total += times * (error.logpdf(z) if kind == 0 else error.logsf(z) if kind > 0 else error.logcdf(z))
        found.append(total)
    assert values[0] - values[1] == pytest.approx(found[0] - found[1])
    for at in range(density.size):
        step = 1e-6 * np.eye(density.size)[:, [at]]
        above, below = (density(x + sign * step, value=True)[0] for sign in (1, -1))
        assert above is not None
        assert below is not None
        assert (above - below) / 2e-6 == pytest.approx(gradient[at], abs=1e-5)


def test_a_column_that_says_something_is_used() -> None:
    rows, names, mark, theta = _marked()
    near = fit_logits_laplace(rows, names, seed=1, known=mark)
    assert near.slope is not None
    assert np.mean(near.slope) == pytest.approx(1.5, abs=0.6)
    without = fit_logits_laplace(rows, names, seed=1)
    assert without.slope is None
    gain = [np.corrcoef(fit.posterior.items.theta_mean, theta)[0, 1] for fit in (near, without)]
    assert gain[0] > gain[1]
    found = ps.fit(rows, "bayes", answer="probability", engine="laplace", prior=dict(zip(names, mark, strict=True)))
    assert found.round_log["prior_slope_mean"].item() == pytest.approx(float(np.mean(near.slope)), abs=0.05)


@pytest.mark.slow
def test_the_sampler_and_the_approximation_agree_with_a_column() -> None:
    rows, names, mark, _ = _marked()
    exact, near = (fit(rows, names, seed=1, known=mark) for fit in (fit_logits, fit_logits_laplace))
    assert exact.diagnostics.diagnostics_pass
    assert exact.slope is not None
    assert near.slope is not None
    assert np.mean(exact.slope) == pytest.approx(np.mean(near.slope), abs=0.1)
    assert exact.posterior.items.theta_mean == pytest.approx(near.posterior.items.theta_mean, abs=0.25)
    assert np.mean(exact.posterior.items.theta_sd / near.posterior.items.theta_sd) == pytest.approx(1, abs=0.1)
