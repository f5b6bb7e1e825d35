"""The provider simulator gives probabilities in every form, and the official SDK takes its decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.testing import ProviderSimulator
from pairscale.testing._judging import Behaviour

TEXTS = [f"text number {at}" for at in range(8)]
QUALITY = dict(zip(TEXTS, np.random.default_rng(2).normal(0, 1.5, 8).tolist(), strict=True))
SAMPLES = pl.DataFrame({"ID": [f"t{at}" for at in range(8)], "text": TEXTS})


@pytest.fixture
def simulator() -> Any:
    with ProviderSimulator(Behaviour(quality=QUALITY, error=0.7, seed=1)) as running:
        yield running


@pytest.mark.parametrize("settings", [{"reasoning": "none"}, {"answer": "confidence"}])
def test_all_forms_say_the_same(simulator: ProviderSimulator, settings: dict[str, Any]) -> None:
    found = ps.judge(
        ps.make_pairs(SAMPLES), judge="openai:gpt-5.1", judge_args={"api_key": "k", **settings},
        base_url=f"{simulator.url}/v1", answer="probability", cache=False, progress=False,
    ).results  # fmt: skip
    place = dict(zip(SAMPLES["ID"], TEXTS, strict=True))
    d = np.array([QUALITY[place[a]] - QUALITY[place[b]] for a, b in found.select("ID1", "ID2").rows()])
    p = np.clip(found["probability"].to_numpy(), 0.005, 0.995)
    errors = np.log(p / (1 - p)) - d
    assert found.height == 28
    assert 0.4 < np.std(errors) < 1.1
