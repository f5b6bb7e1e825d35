"""The normal approximation may rule a stop out; the sampler alone grants one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from validation.judges import make_world

from pairscale.adaptive.config import resolve_preset
from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.gates import SCREEN_MARGINS, may_stop
from pairscale.adaptive.refits import LagPoint, RefitRequest, refit

PASSING: dict[str, Any] = {
    "lag_eligible": True, "reliability": 0.91, "eap_reliability_min": 0.9, "rho_theta": 0.99, "theta_corr_min": 0.95,
    "rho_rank": 0.99, "rank_spearman_min": 0.95,
}  # fmt: skip


def request_after(comparisons: int, seed: int = 1, **changes: Any) -> RefitRequest:
    """What a refit of a run of twenty texts is asked after so many comparisons."""
    world = make_world("clean", 20, 2.0, seed)
    adaptive, btl = resolve_preset("pairscale", None, {"refit_pairs_target": 10_000})
    engine = Engine([f"t{n:02d}" for n in range(20)], seed=seed, adaptive_config=adaptive, btl_config=btl)
    while engine.committed < comparisons:
        found = engine.propose()
        assert found is not None
        if not isinstance(found, Starved):
            engine.record(found.step_id, world.answer(found.first, found.second))
    lag = LagPoint(1, world.truth - world.truth.mean())
    return replace(engine.refit_request(), **{"lag": lag, **changes})


@pytest.mark.parametrize(("figure", "limit"), SCREEN_MARGINS)
def test_a_figure_rules_a_stop_out_only_beyond_its_margin(figure: str, limit: str) -> None:
    margin = SCREEN_MARGINS[figure, limit]
    assert may_stop(PASSING)
    assert may_stop(PASSING | {figure: PASSING[limit] - margin + 1e-9})
    assert not may_stop(PASSING | {figure: PASSING[limit] - margin - 1e-9})
    assert may_stop(PASSING | {figure: None})  # what is not known rules nothing out


def test_far_from_the_stop_nothing_is_sampled() -> None:
    outcome = refit(request_after(15, lag=None))
    assert outcome.row["screened"]
    assert not outcome.row["stop_decision"]
    assert "laplace" in outcome.row["mcmc_engine_version"]
    assert outcome.warm is None
    assert outcome.belief.passed  # it guides the choice of pairs


@pytest.mark.slow
def test_where_a_stop_is_possible_the_sampler_decides() -> None:
    request = request_after(350)
    assert may_stop(refit(request, "laplace").row)
    outcome = refit(request)
    assert not outcome.row["screened"]
    assert "laplace" not in outcome.row["mcmc_engine_version"]
    assert outcome.row["stop_decision"]
    assert outcome.warm is not None


@pytest.mark.validate
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("judge", ["clean", "repeatable", "position_lapse"])
def test_no_screened_refit_would_have_been_a_stop(judge: str, seed: int) -> None:
    """At every refit that the approximation screened, the sampler would not have granted a stop either."""
    from validation.screening import screened_refits

    checked = list(screened_refits(judge, 24, 2.0, 500 + seed))
    assert len(checked) > 3
    assert not any(row["stop_decision"] for row in checked)


def test_the_claimed_reliability_does_not_depend_on_the_unit_of_the_scale() -> None:
    from pairscale.models.bayes.posterior import Posterior, round_figures

    rng = np.random.default_rng(5)
    draws = rng.normal(0, 1, 8) + rng.normal(0, 0.5, (400, 8))
    draws -= draws.mean(axis=1, keepdims=True)
    stretched = draws * np.exp(rng.normal(0, 0.4, (400, 1)))
    figures = []
    for theta in (draws, 3 * draws, stretched):
        posterior = Posterior(tuple("abcdefgh"), theta, None, None, 1)
        figures.append(round_figures(posterior, np.ones(8), np.ones(8), np.zeros(8)))
    plain, tripled, uncertain = (row["reliability_r2"] for row in figures)
    assert plain == pytest.approx(tripled, abs=1e-12)
    assert uncertain == pytest.approx(plain, abs=0.02)
    assert figures[2]["reliability_EAP"] < figures[0]["reliability_EAP"] - 0.02
    by_hand = np.mean([np.corrcoef(draw, draws.mean(axis=0))[0, 1] ** 2 for draw in draws])
    assert plain == pytest.approx(by_hand, abs=1e-12)
