"""Our sampler against nutpie's recorded posteriors: every variant, on random, near-neighbour and adaptive designs.

``benchmarks/nutpie_parity.py`` recorded them, and says how the data are made and what the figures mean.
"""

import json

import numpy as np
import pytest
from benchmarks import nutpie_parity as parity
from tests.strategies import GOLDEN

from pairscale.models.bayes import model

pytestmark = pytest.mark.slow

RECORDED = json.loads((GOLDEN / "nutpie_posteriors.json").read_text())


def compared(variant, design, draws, seed):
    """Figures of agreement of one case; the draws are exact, so only Monte-Carlo error may be between the two."""
    data = parity.make_data(design)
    assert parity.digest(*data) == RECORDED["data"]["sha256"][design], "NumPy makes other data of this seed now"
    draws = parity.draws_for(variant, draws)
    sample, divergences, _ = parity.ours(variant, data, parity.N_ITEMS, draws=draws, seed=seed)
    assert divergences == 0
    return parity.compare(parity.figures(sample), RECORDED["cases"][f"{variant} {design}"], parity.correlations(sample))


def test_the_record_has_every_case():
    assert list(RECORDED["cases"]) == [f"{variant} {design}" for variant, design in parity.CASES]
    assert RECORDED["data"]["recipe"] == parity.RECIPE
    for (variant, _), known in zip(parity.CASES, RECORDED["cases"].values(), strict=True):
        names = parity.parameter_names(variant, parity.N_ITEMS)
        assert {len(known[name]) for name in ("mean", "sd", "mcse", "sd_mcse")} == {len(names)}
        assert abs(np.mean(known["mean"][: parity.N_ITEMS])) < 1e-5


@pytest.mark.parametrize(("variant", "design"), [case for case in parity.CASES if case[1] == "adaptive"])
def test_posteriors_are_those_of_nutpie(variant, design):
    found = compared(variant, design, draws=1500, seed=11)
    assert not parity.failures(found), parity.case_row(variant, design, found)


@pytest.mark.parametrize(
    ("name", "wrong"), [("LAPSE_PRIOR", (2.0, 15.0)), ("LAPSE_PRIOR", (1.0, 20.0)), ("POSITION_SD", 0.2)]
)
def test_another_prior_would_be_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(model, name, wrong)
    assert "largest z of the means" in parity.failures(compared("btl_e_b", "near", draws=1500, seed=11))


def test_another_prior_of_the_spread_would_be_noticed(monkeypatch):
    monkeypatch.setattr(model, "LEARNED_SCALE", 1.0)
    assert parity.failures(compared("btl_e_b+learned", "adaptive", draws=1500, seed=11))


def test_another_count_of_repeats_would_be_noticed(monkeypatch):
    monkeypatch.setattr(parity, "RHO", 0.2)
    assert parity.failures(compared("btl+learned", "near", draws=1500, seed=11))


@pytest.mark.validate
@pytest.mark.parametrize(("variant", "design"), parity.CASES)
def test_posteriors_are_those_of_nutpie_with_many_draws(variant, design):
    found = compared(variant, design, draws=5_000, seed=12)
    print(f"\n{parity.case_row(variant, design, found)}")
    assert not parity.failures(found)
