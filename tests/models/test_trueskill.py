"""TrueSkill against the R package's recorded run, against more digits, and at distances where that package gave NaN."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.models import trueskill as module
from pairscale.models.trueskill import BETA, MU, SIGMA, update, win_probability

GOLDEN = Path(__file__).parents[1] / "golden"
MEANS = st.floats(-1e6, 1e6)
SIGMAS = st.floats(1e-6, 1e12)


def golden(name: str) -> dict[str, object]:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def test_recorded_run() -> None:
    mu, sigma = dict.fromkeys("abcde", MU), dict.fromkeys("abcde", SIGMA)
    steps = golden("trueskill")["output"]
    assert len(steps) == 20
    for step in steps:
        w, l = step["winner"], step["loser"]  # noqa: E741
        p = win_probability(mu[w], sigma[w], mu[l], sigma[l])
        assert p == pytest.approx(step["p_winner_before"], abs=1e-10)
        after = update(mu[w], sigma[w], mu[l], sigma[l])
        mu[w], sigma[w], mu[l], sigma[l] = after
        assert mu == pytest.approx(step["mu"], abs=1e-10)
        assert sigma == pytest.approx(step["sigma"], abs=1e-10)


def exact_tail(x: float) -> tuple[Decimal, Decimal]:
    """v and 1 - u at t = -x from the continued fraction of the Mills ratio, to many digits."""
    with localcontext() as context:
        context.prec = 80
        v = Decimal(x)
        for n in range(4_000, 0, -1):
            v = Decimal(x) + Decimal(n) / v
        return v, 1 - v * (v - Decimal(x))


def test_recorded_extreme_upset_is_a_number_here() -> None:
    there = golden("trueskill_extreme_upset")
    assert there["output"]["mu"] == [None, None]  # NaN, in R
    (mu_a, mu_b), (sigma_a, sigma_b) = there["input"]["mu"], there["input"]["sigma"]
    after = update(mu_a, sigma_a, mu_b, sigma_b)
    c = math.sqrt(sigma_a**2 + sigma_b**2 + 2 * BETA**2)
    v, rest = (float(value) for value in exact_tail((mu_b - mu_a) / c))
    assert after.mu_winner == pytest.approx(mu_a + v / c, rel=1e-12)
    assert after.mu_loser == pytest.approx(mu_b - v / c, rel=1e-12)
    assert after.sigma_winner == after.sigma_loser == pytest.approx(math.sqrt(1 - (1 - rest) / c**2), rel=1e-12)


@pytest.mark.parametrize("x", [5, 20, 37, 38, 49.99, 50, 50.01, 80, 1e3, 1e5, 1e8])
def test_far_tail_to_nine_digits(x: float) -> None:
    v, rest = module._surprise(-x)
    exact_v, exact_rest = exact_tail(x)
    assert v == pytest.approx(float(exact_v), rel=1e-14)
    assert rest == pytest.approx(float(exact_rest), rel=2e-9)


@given(MEANS, SIGMAS, MEANS, SIGMAS)
def test_every_belief_stays_one(mu_w: float, sigma_w: float, mu_l: float, sigma_l: float) -> None:
    after = update(mu_w, sigma_w, mu_l, sigma_l)
    assert all(np.isfinite(value) for value in after)
    assert after.mu_winner >= mu_w
    assert after.mu_loser <= mu_l
    assert 0 < after.sigma_winner <= sigma_w
    assert 0 < after.sigma_loser <= sigma_l
    p = win_probability(mu_w, sigma_w, mu_l, sigma_l)
    assert 0 <= p <= 1
    assert p + win_probability(mu_l, sigma_l, mu_w, sigma_w) == pytest.approx(1)
