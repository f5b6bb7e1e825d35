"""Reliabilities against published figures, against their definitions, and where there is nothing to say.

``golden/cj-sessions``: 24 sessions with their separation and split-half figures (Kinnear, Jones & Davies 2025,
osf.io/c9q3b; 100 random splits of the judges each). ``golden/reliability_EAP.json``: R pairwiseLLM 1.3.0.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core.errors import InputError
from pairscale.models.reliability import (
    eap_reliability,
    scale_separation_reliability,
)

GOLDEN = Path(__file__).parents[1] / "golden"
SESSIONS = sorted(path.stem for path in (GOLDEN / "cj-sessions").glob("*.csv"))


@cache
def published() -> dict[str, dict[str, float]]:
    summary = pl.read_csv(GOLDEN / "cj-sessions" / "published" / "summary.csv")
    return {row["judging_session"]: row for row in summary.iter_rows(named=True)}


# Scale separation


@pytest.mark.parametrize("name", SESSIONS)
def test_separation_of_published_scores(name: str) -> None:
    path = GOLDEN / "cj-sessions" / "published" / name / "sirt_btm.csv"
    scores = pl.read_csv(path, schema_overrides={"individual": pl.String})
    ours = scale_separation_reliability(scores["theta"], scores["se.theta"])
    assert ours.ssr == pytest.approx(published()[name]["ssr"], abs=1e-12)
    assert ours.separation == pytest.approx(published()[name]["sepG"], abs=1e-12)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 3)), min_size=2, max_size=9))
def test_separation_and_reliability_say_the_same(rows: list[tuple[float, float]]) -> None:
    theta, se = np.array(rows).T
    if np.ptp(theta) < 1e-6:
        return
    ours = scale_separation_reliability(theta, se)
    assert ours.ssr <= 1
    assert ours.ssr == pytest.approx(1 - 1 / ours.separation**2)
    expected = math.sqrt(ours.ssr / (1 - ours.ssr)) if ours.ssr > 0 else 0
    assert ours.true_separation == pytest.approx(expected, rel=1e-6, abs=1e-6)


# EAP


def test_eap_reliability_of_the_recorded_draws() -> None:
    golden = json.loads((GOLDEN / "reliability_EAP.json").read_text("utf-8"))
    draws = np.array(golden["input"]["draws"])
    assert eap_reliability(draws) == pytest.approx(golden["output"], abs=1e-13)
    assert eap_reliability(draws.mean(axis=0), draws.std(axis=0, ddof=1)) == pytest.approx(golden["output"], abs=1e-13)


@pytest.mark.parametrize(
    ("theta", "sds"),
    [([1, 2], None), ([[1, 2]], None), ([[1], [2]], None), ([1, 2], [1]), ([1, 2], [1, -1]), ([1, 1], [0, 0])],
)
def test_no_eap_reliability(theta: object, sds: object) -> None:
    with pytest.raises(InputError):
        eap_reliability(theta, sds)
