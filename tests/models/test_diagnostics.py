"""The diagnostics gate against the R package's limits, and what does not pass it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pairscale.models.bayes.convergence import rhat_and_ess
from pairscale.models.bayes.diagnostics import DiagnosticsGate, diagnose

GOOD = {"divergences": 0, "max_rhat": 1.005, "min_ess_bulk": 900.0}


def draws(n_params: int = 5, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(500, 4, n_params)) * scale


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, None),
        ({"max_rhat": 1.01}, None),
        ({"min_ess_bulk": 400.0}, None),
        ({"divergences": 1}, "diagnostics_divergences_pass"),
        ({"max_rhat": 1.0100001}, "diagnostics_rhat_pass"),
        ({"max_rhat": math.nan}, "diagnostics_rhat_pass"),
        ({"max_rhat": math.inf}, "diagnostics_rhat_pass"),
        ({"min_ess_bulk": 399.9}, "diagnostics_ess_pass"),
        ({"min_ess_bulk": math.nan}, "diagnostics_ess_pass"),
        ({"near_stop": True}, "diagnostics_ess_pass"),
    ],
)
def test_each_condition(change: dict[str, float], failed: str | None) -> None:
    found = DiagnosticsGate.for_items(100).judge(**{**GOOD, **change})
    flags = ("diagnostics_divergences_pass", "diagnostics_rhat_pass", "diagnostics_ess_pass")
    assert [name for name in flags if not getattr(found, name)] == ([failed] if failed else [])
    assert found.diagnostics_pass is (failed is None)
    assert len(found.reasons) == (failed is not None)


def test_the_worst_parameter_counts() -> None:
    theta, eps = draws(6), draws(1)
    theta[:, 0, 3] += 1
    found = diagnose([theta, eps], 0, near_stop=False, gate=DiagnosticsGate.for_items(6))
    assert (found.max_rhat, found.min_ess_bulk) == tuple(figures[3] for figures in rhat_and_ess(theta))
    assert not found.diagnostics_rhat_pass


def test_a_parameter_that_never_moved_does_not_pass() -> None:
    stuck = draws()
    stuck[:, :, 2] = 0
    found = diagnose([stuck], 0, near_stop=False, gate=DiagnosticsGate.for_items(5))
    assert math.isnan(found.max_rhat)
    assert math.isnan(found.min_ess_bulk)
    assert not found.diagnostics_pass
