"""Refits: what may be decided on them, section by section of the design; and that a run can be taken up again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.gates import stop_decision, stop_gates
from pairscale.adaptive.refits import Belief, LagPoint, RefitRequest, refit
from pairscale.core.errors import FitError
from pairscale.models.bayes.diagnostics import DiagnosticsGate
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.models.bayes.logs import ROUND_LOG
from pairscale.models.bayes.posterior import Posterior
from pairscale.models.bayes.sampler import Warm
from pairscale.models.bayes.settings import MCMCSettings
from pairscale.models.warm_start import warm_from_bytes, warm_to_bytes
from tests.strategies import GOLDEN

NOW = [2.0, 1.0, -1.0, -2.0]
SURE = 0.05  # a posterior sd at which four such items are known perfectly well


class Fake:
    """A fit_fn whose draws have exactly these means and standard deviations; it remembers how it was called."""

    def __init__(self, mean: Any, sd: Any = SURE, ess: Any = 5000.0, divergences: int = 0, rhat: float = 1.0) -> None:
        self.mean, self.sd = np.asarray(mean, dtype=float), sd
        self.ess = list(ess) if isinstance(ess, list) else [ess]
        self.divergences, self.rhat = divergences, rhat
        self.calls: list[dict[str, Any]] = []
        self.fits: list[Any] = []

    def __call__(self, rows: pl.DataFrame, ids: Any, **options: Any) -> Any:
        self.calls.append({"rows": rows, "ids": ids, **options})
        z = np.random.default_rng(0).normal(size=(400, len(self.mean)))
        z = (z - z.mean(axis=0)) / z.std(axis=0, ddof=1)
        posterior = Posterior(tuple(ids), self.mean + self.sd * z, chains=4)
        gate = DiagnosticsGate(0, 0, 1e9, 10**9)  # whatever it says, the refit looks for itself
        figures = {"divergences": self.divergences, "max_rhat": self.rhat, "min_ess_bulk": self.ess[len(self.fits)]}
        self.fits.append(SimpleNamespace(posterior=posterior, diagnostics=gate.judge(**figures)))
        return self.fits[-1]


def request(n: int = 4, *, btl: dict[str, Any] | None = None, **given: Any) -> RefitRequest:
    first = np.arange(n)
    history = np.stack([first, (first + 1) % n, np.ones(n, dtype=int)], axis=1).astype(np.int32)
    known: dict[str, Any] = {
        "refit_id": 3,
        "ids": tuple(f"s{at}" for at in range(n)),
        "history": history,
        "mu": 25 - np.arange(n, dtype=float),
        "sigma": np.linspace(3, 4, n),
        "degree": np.full(n, 2),
        "first": np.full(n, 1),
        "second": np.full(n, 1),
        "n_unique_pairs": n,
        "step_id_at_refit": 12,
        "round_id_at_refit": 2,
        "new_pairs": 2,
        "seed": 7,
        "adaptive": AdaptiveConfig.for_items(n),
        "btl": BTLConfig.for_items(n, btl),
    }
    return RefitRequest(**known | given)


STABLE = LagPoint(1, np.array(NOW))


FAILURES = [{"divergences": 1}, {"rhat": 1.0101}, {"rhat": math.nan}, {"ess": 399.9}, {"ess": math.nan}]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_no_diagnostics_no_decisions(failure: dict[str, Any], known: bool) -> None:
    """§9.1.5, §8.2: whatever else the posterior says, nothing changes when one of the three fails."""
    found = refit(request(lag=STABLE, global_identified=known), Fake(NOW, **failure))
    assert found.row["diagnostics_pass"] is False
    assert (found.row["stop_decision"], found.row["stop_reason"]) == (False, None)
    assert found.row["global_identified"] is found.belief.global_identified is known
    assert found.row["phase3_entered"] is found.belief.near_stop is found.belief.passed is False
    parts = ("diagnostics_divergences_pass", "diagnostics_rhat_pass", "diagnostics_ess_pass")
    assert [found.row[name] for name in parts].count(False) == 1


# §8.3, §9.2: reliability


def test_reliability_is_that_of_the_reference() -> None:
    """§8.3: the figure of the reference implementation on the same draws."""
    golden = json.loads((GOLDEN / "reliability_EAP.json").read_text("utf-8"))
    draws = np.array(golden["input"]["draws"])
    n = draws.shape[1]

    def fit_fn(rows: pl.DataFrame, ids: Any, **options: Any) -> Any:
        judged = DiagnosticsGate(0, 0).judge(divergences=0, max_rhat=1.0, min_ess_bulk=5000)
        return SimpleNamespace(posterior=Posterior(tuple(ids), draws), diagnostics=judged)

    row = refit(request(n), fit_fn).row
    assert row["reliability_EAP"] == pytest.approx(golden["output"], abs=1e-12)
    assert row["theta_sd_eap"] == pytest.approx(draws.mean(axis=0).std(ddof=1), abs=1e-12)
    assert row["eap_pass"] is False


def reliable(value: float) -> float:
    """The posterior sd that gives NOW (of variance 10 / 3) this reliability."""
    return math.sqrt(10 / 3 * (1 - value) / value)


# §5.4: phase 3


@pytest.mark.parametrize(("value", "enters"), [(0.8501, True), (0.8499, False)])
def test_phase_3_begins_below_the_stop(value: float, enters: bool) -> None:
    """§5.4: from 0.05 below the reliability of a stop."""
    found = refit(request(), Fake(NOW, reliable(value)))
    assert found.row["phase3_entered"] is found.belief.near_stop is found.row["near_stop_active"] is enters
    assert found.row["ess_bulk_required"] == (1000 if enters else 400)


def test_phase_3_is_sticky() -> None:
    """§5.4: once entered it holds, also when reliability falls again; it is not entered twice."""
    for value in (0.3, 0.95):
        found = refit(request(near_stop=True), Fake(NOW, reliable(value)))
        assert found.belief.near_stop
        assert found.row["near_stop_active"]
        assert not found.row["phase3_entered"]


def test_a_refit_that_enters_with_too_few_draws_is_sampled_again() -> None:
    """§5.4: sampled again for the near-stop ESS, from where it was, with other random numbers."""
    fake = Fake(NOW, ess=[600.0, 1400.0])
    found = refit(request(lag=STABLE), fake, warm="from the refit before")
    assert [call["near_stop"] for call in fake.calls] == [False, True]
    assert fake.calls[0]["warm"] == "from the refit before"
    assert fake.calls[1]["warm"] is fake.fits[0]
    assert fake.calls[0]["seed"] != fake.calls[1]["seed"]
    expected = {"phase3_entered": True, "near_stop_active": True, "ess_bulk_required": 1000, "min_ess_bulk": 1400}
    assert {name: found.row[name] for name in expected} == expected
    assert found.row["stop_decision"]
    assert found.warm is fake.fits[1]


def test_a_refit_that_enters_and_falls_short_decides_nothing() -> None:
    """§5.4, §9.1.5: phase 3 is entered by the phase-2 gate, but such draws are not usable in it."""
    found = refit(request(lag=STABLE), Fake(NOW, ess=[600.0, 999.0]))
    assert found.row["phase3_entered"]
    assert found.belief.near_stop
    assert found.row["ess_bulk_required"] == 1000
    assert not found.row["diagnostics_pass"]
    assert not found.row["stop_decision"]
    assert not found.row["global_identified"]


# §9.3, §9.4: stability


def lagged(before: Any, now: Any = NOW, **given: Any) -> dict[str, Any]:
    return refit(request(len(now), lag=LagPoint(1, np.array(before)), **given), Fake(now)).row


def test_lag_figures_by_hand() -> None:
    """§9.3, §9.4: 9 / 10, no change of spread, and 1 - 6 · 2 / (4 · 15)."""
    row = lagged([1.0, 2.0, -1.0, -2.0])
    assert row["rho_theta"] == pytest.approx(0.9, abs=1e-12)
    assert row["delta_sd_theta"] == pytest.approx(0, abs=1e-12)
    assert row["rho_rank"] == pytest.approx(0.8, abs=1e-12)
    assert (row["theta_corr_pass"], row["delta_sd_theta_pass"], row["rho_rank_pass"]) == (False, True, False)
    assert (row["lag_eligible"], row["lag_refit_id"]) == (True, 1)
    limits = ("theta_corr_min", "theta_sd_rel_change_max", "rank_spearman_min")
    assert [row[name] for name in limits] == [0.95, 0.10, 0.95]


def test_late_items_are_left_out_of_the_comparison() -> None:
    """§9.3: pairwise complete; the lagged refit did not have the last two items."""
    row = lagged([1.0, 2.0, -1.0, -2.0], now=[2.5, 1.5, -0.5, -1.5, 7.0, -9.0])
    assert row["rho_theta"] == pytest.approx(0.9, abs=1e-12)
    assert row["delta_sd_theta"] == pytest.approx(0, abs=1e-12)
    assert row["rho_rank"] == pytest.approx(0.8, abs=1e-12)
    assert lagged([1.0], now=NOW)["rho_theta"] is None


# §4.5.1: the order counts as known


@pytest.mark.parametrize(
    ("value", "mu", "known"),
    [
        (0.81, [4, 3, 2, 1], True),
        (0.79, [4, 3, 2, 1], False),
        (0.99, [3, 4, 2, 1], False),  # rank correlation 0.8
        (0.99, [5, 5, 5, 5], False),  # not defined
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_global_identified(value: float, mu: list[float], known: bool, before: bool) -> None:
    """§4.5.1: reliable, and in the order of TrueSkill; asked anew at each refit that passes."""
    found = refit(request(mu=np.array(mu, dtype=float), global_identified=before), Fake(NOW, reliable(value)))
    assert found.row["global_identified"] is found.belief.global_identified is known
    limits = ("global_identified_reliability_min", "global_identified_rank_corr_min")
    assert [found.row[name] for name in limits] == [0.8, 0.9]


# §10.2, §10.3: the logs

HEALTH = {
    "proposed_pairs_mode": 12.0, "starve_rate_since_last_refit": 0.1, "fallback_rate_since_last_refit": 0.2,
    "fallback_used_mode": "base", "starvation_reason_mode": "few_candidates_generated",
    "star_cap_rejects_since_last_refit": 3, "star_cap_reject_rate_since_last_refit": 0.01,
    "recent_deg_median_since_last_refit": 2.0, "recent_deg_max_since_last_refit": 4,
    "n_reversed": 5, "n_flips": 1, "n_repeated_same_order": 2, "n_repeats_agreeing": 6, "first_win_rate": 0.51,
}  # fmt: skip


_NONE = (
    "epsilon_", "b_", "top_wrong", "prior_slope_", "judge_slopes", "weak_judges", "reliability_without_outliers"
)  # fmt: skip


def test_the_row_says_everything_that_is_known() -> None:
    """§10.2: every column has its value, but those of a judge without faults, and a share of cores nobody set."""
    adaptive = AdaptiveConfig.for_items(4)
    quotas = adaptive.quotas(2, 4, global_identified=True)
    degree = np.array([3, 2, 2, 1])
    asked = request(lag=STABLE, health=HEALTH, quotas=quotas, selector="pollitt", is_closing=True, degree=degree)
    row = refit(asked, Fake(NOW)).row
    assert list(row) == list(ROUND_LOG)
    # The draws of the fake have no epsilon and no b; the goal is the order, and nothing is known beforehand.
    missing = [name for name, value in row.items() if value is None and not name.startswith(_NONE)]
    assert set(missing) <= {"mcmc_core_fraction", "mcmc_cores_detected_physical", "repeat_agreement"}
    expected = HEALTH | {
        "refit_id": 3, "round_id_at_refit": 2, "step_id_at_refit": 12, "n_items": 4, "total_pairs_done": 4,
        "new_pairs_since_last_refit": 2, "n_unique_pairs_seen": 4, "model_variant": "btl_e_b", "selector": "pollitt",
        "is_closing": True, "mean_degree": 2.0, "min_degree": 1, "mcmc_chains": 4,
        **{name: value for name, value in quotas.items() if not name.endswith("_link")},
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert datetime.now(UTC) >= row["timestamp"]


# The stop, recomputed


def figure() -> st.SearchStrategy[float | None]:
    return st.none() | st.floats(0, 1.2) | st.sampled_from([0.9, 0.95, 0.1, 1.0, 1.01, math.nan])


@st.composite
def logged(draw: st.DrawFn) -> dict[str, Any]:
    """Rows of figures and limits, near to each other and to a stop; the verdicts in them are of no account."""
    rows = {
        "divergences": st.sampled_from([0, 0, 0, 1, None]), "divergences_max_allowed": st.sampled_from([0, 0, 1]),
        "max_rhat": st.sampled_from([1.0, 1.01, 1.02, None]), "max_rhat_allowed": st.just(1.01),
        "min_ess_bulk": st.sampled_from([399.0, 400.0, 1000.0, 1500.0, None]),
        "ess_bulk_required": st.sampled_from([400.0, 1000.0]),
        "reliability": figure() | st.just(0.95), "eap_reliability_min": st.sampled_from([0.9, 0.5]),
        "lag_eligible": st.sampled_from([True, True, False]),
        "rho_theta": figure() | st.just(0.99), "theta_corr_min": st.sampled_from([0.95, 0.5]),
        "delta_sd_theta": figure() | st.just(0.01), "theta_sd_rel_change_max": st.sampled_from([0.1, 0.9]),
        "rho_rank": figure() | st.just(0.99), "rank_spearman_min": st.sampled_from([0.95, 0.5]),
        "diagnostics_pass": st.booleans(), "eap_pass": st.booleans(), "stop_decision": st.booleans(),
    }  # fmt: skip
    return {name: draw(strategy) for name, strategy in rows.items()}


def slow_stop(row: dict[str, Any]) -> bool:
    """The stop as §9 says it, gate after gate."""

    def there(*names: str) -> bool:
        return all(row[name] is not None and not math.isnan(row[name]) for name in names)

    if not there("divergences", "max_rhat", "min_ess_bulk") or row["divergences"] > row["divergences_max_allowed"]:
        return False
    if row["max_rhat"] > row["max_rhat_allowed"] or row["min_ess_bulk"] < row["ess_bulk_required"]:
        return False
    if not there("reliability") or row["reliability"] < row["eap_reliability_min"]:
        return False
    if not row["lag_eligible"] or not there("rho_theta", "delta_sd_theta", "rho_rank"):
        return False
    if row["rho_theta"] < row["theta_corr_min"] or row["delta_sd_theta"] > row["theta_sd_rel_change_max"]:
        return False
    return bool(row["rho_rank"] >= row["rank_spearman_min"])


@given(logged())
def test_the_stop_is_that_of_the_figures(row: dict[str, Any]) -> None:
    """§9, §10: reproducible from the logged fields, whatever verdicts somebody wrote beside them."""
    stop = slow_stop(row)
    assert stop_decision(row) == (stop, "btl_converged" if stop else None)
    gates = stop_gates(row)
    lagged = ("theta_corr_pass", "delta_sd_theta_pass", "rho_rank_pass")
    if not row["lag_eligible"]:
        assert [gates[name] for name in lagged] == [None] * 3
    assert {gates["diagnostics_pass"], gates["eap_pass"]} <= {True, False}


@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=6),
    st.floats(0.01, 3),
    st.sampled_from([100.0, 500.0, 2000.0]),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.booleans(),
)
def test_a_row_holds_together(
    mean: list[float], sd: float, ess: float, divergences: int, near_stop: bool, has_lag: bool
) -> None:
    """§9, §5.4: the flags are those of the figures, and a stop only ever comes with the near-stop ESS."""
    lag = LagPoint(1, np.array(mean)) if has_lag else None
    asked = request(len(mean), near_stop=near_stop, lag=lag)
    row = refit(asked, Fake(mean, sd, ess=[ess, ess], divergences=divergences)).row
    assert {name: row[name] for name in stop_gates(row)} == stop_gates(row)
    assert (row["stop_decision"], row["stop_reason"]) == stop_decision(row)
    if row["stop_decision"]:
        assert row["near_stop_active"]
        assert row["min_ess_bulk"] >= 1000
    usable = divergences == 0 and ess >= 400
    assert row["phase3_entered"] is (not near_stop and usable and row["reliability_EAP"] >= 0.9 - 0.05)


# What a fit_fn is given, and gives


def test_what_a_fit_fn_is_called_with() -> None:
    asked = request(btl={"prior_sd": 2.0, "model_variant": "btl", "mcmc": {"chains": 2}})
    fake = Fake(NOW)
    refit(asked, fake)
    (call,) = fake.calls
    assert call["rows"].rows() == [("s0", "s1", "s0"), ("s1", "s2", "s1"), ("s2", "s3", "s2"), ("s3", "s0", "s3")]
    assert call["rows"].columns == ["ID1", "ID2", "better_id"]
    assert call["ids"] == ("s0", "s1", "s2", "s3")
    expected = {"model_variant": "btl", "prior_sd": 2.0, "warm": None, "near_stop": False, "gate": asked.btl.gate}
    assert {name: call[name] for name in expected} == expected
    assert call["settings"] == MCMCSettings(chains=2)
    lost = request(history=np.array([[0, 1, 0]], dtype=np.int32)).rows()
    assert lost.rows() == [("s0", "s1", "s1")]


def played(n: int, m: int, seed: int = 5) -> dict[str, Any]:
    """A request's share of a run of so many comparisons."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    theta = np.linspace(1.5, -1.5, n)
    y = rng.random(m) < 1 / (1 + np.exp(theta[second] - theta[first]))
    return {
        "history": np.stack([first, second, y], axis=1).astype(np.int32),
        "first": np.bincount(first, minlength=n),
        "second": np.bincount(second, minlength=n),
        "degree": np.bincount(first, minlength=n) + np.bincount(second, minlength=n),
    }


def test_a_run_that_is_taken_up_again_draws_the_same() -> None:
    """Two refits, with the process ended between them: rows, items and belief are the same, bit for bit."""
    mcmc = {"chains": 4, "iter_warmup": 60, "iter_sampling": 60, "extend": 1}
    asked = [request(8, refit_id=at, btl={"mcmc": mcmc}, **played(8, 80 * at)) for at in (1, 2)]
    first = refit(asked[0])
    assert isinstance(first.warm, Warm)
    data = warm_to_bytes(first.warm)
    assert data is not None
    straight, resumed = refit(asked[1], warm=first.warm), refit(asked[1], warm=warm_from_bytes(data))
    cold = refit(asked[1])
    assert straight.items.equals(resumed.items)
    assert not straight.items.equals(cold.items)
    assert {**straight.row, "timestamp": None} == {**resumed.row, "timestamp": None}
    assert straight.belief.to_bytes() == resumed.belief.to_bytes()


# Beliefs


def test_few_draws_say_what_many_do() -> None:
    rng = np.random.default_rng(3)
    theta = np.linspace(1, -1, 12) + 0.8 * rng.normal(size=(4800, 12))
    belief = Belief.of(
        Posterior(tuple("abcdefghijkl"), theta, chains=8), 1, passed=True, near_stop=False, global_identified=True
    )
    assert belief.draws is not None
    assert belief.draws.shape == (256, 12)
    i, j = np.triu_indices(12, 1)
    exact = np.array([(theta[:, a] > theta[:, b]).mean() for a, b in zip(i, j, strict=True)])
    assert np.abs(belief.p_above(i, j) - exact).max() < 4 * math.sqrt(0.25 / 256)


@pytest.mark.parametrize("value", [0.5, 0.99])
def test_a_belief_survives_as_bytes(value: float) -> None:
    belief = refit(request(near_stop=True), Fake(NOW, reliable(value))).belief
    belief = replace(belief, repeat_agreement=value)
    again = Belief.from_bytes(belief.to_bytes())
    for name in ("refit_id", "passed", "near_stop", "global_identified", "repeat_agreement"):
        assert getattr(again, name) == getattr(belief, name)
        assert type(getattr(again, name)) is type(getattr(belief, name))
    for name in ("theta_mean", "theta_sd", "rank", "draws"):
        np.testing.assert_array_equal(getattr(again, name), getattr(belief, name))
    assert again.to_bytes() == belief.to_bytes()


# Repeats of a pair


def _repeated(n: int = 6) -> Any:
    """Every pair of neighbours twice, in both orders, with the same winner."""
    first = np.arange(n)
    once = np.stack([first, (first + 1) % n, first < n - 1], axis=1)
    again = np.stack([once[:, 1], once[:, 0], 1 - once[:, 2]], axis=1)
    return np.concatenate([once, again]).astype(np.int32)


@pytest.mark.parametrize(("repeats", "said"), [("independent", None), (0.25, 0.25), ("learned", None)])
def test_how_repeats_count_is_configured_passed_on_logged_and_kept(repeats: Any, said: float | None) -> None:
    asked = request(6, btl={"repeats": repeats}, history=_repeated())
    found = refit(asked, "laplace")
    fit = fit_btl_laplace(
        asked.rows(), asked.ids, seed=asked.seed_of(), near_stop=False, gate=asked.btl.gate, repeats=repeats
    )
    np.testing.assert_array_equal(found.belief.theta_mean, fit.posterior.items.theta_mean)
    if repeats == "learned":
        said = fit.repeat_agreement.rho
        assert said > 0.5
    assert found.row["repeat_agreement"] == said
    assert found.belief.repeat_agreement == (said or 0.0)


def test_a_fit_function_must_say_how_repeats_counted(message_snapshot) -> None:
    assert refit(request(), Fake(NOW)).row["repeat_agreement"] is None
    with pytest.raises(FitError) as refused:
        refit(request(btl={"repeats": "learned"}), Fake(NOW))
    message_snapshot(refused)
