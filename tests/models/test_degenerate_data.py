"""Tiny, separated, disconnected and repeated data for every model and engine, with a bound on the work.

Work is counted (gradients, likelihoods, steps), not timed. The Bayesian posteriors are held against draws from the
prior, weighted by the likelihood: with so few comparisons that is exact enough, and it shares no line with the sampler.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import pairscale as ps
from pairscale.core.errors import FitError, InputError, SamplerError
from pairscale.models import engines
from pairscale.models.bayes import sampler as sampling
from pairscale.models.bayes.coordinates import Coordinates
from pairscale.models.bayes.fit import fit_btl, fit_btl_laplace
from pairscale.models.bayes.normal import Target
from pairscale.models.bayes.settings import MCMCSettings

VARIANTS = ("btl", "btl_e", "btl_b", "btl_e_b")
MODELS = [(variant, prior_sd) for prior_sd in (1.0, "learned") for variant in VARIANTS]
SHORT = MCMCSettings(iter_sampling=40, extend=1)

CASES = {
    "one comparison": ("ab", ["ab"]),
    "one comparison, many items": ("abcdefgh", ["ab"]),
    "two in a row": ("abc", ["ab", "bc"]),
    "a circle": ("abc", ["ab", "bc", "ca"]),
    "a win each": ("ab", ["ab", "ba"]),
    "separated": ("abcd", ["ac", "ad", "bc", "bd"] * 5),
    "one always wins": ("abc", ["ab", "ac"] * 40),
    "a long chain": ("abcdefghij", ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"]),
    "two islands": ("abcd", ["ab", "ab", "cd"]),
    "islands of one": ("abcdef", ["ab", "cd"]),
    "one pair, repeated": ("ab", ["ab"] * 200),
    "one pair, evenly": ("ab", ["ab", "ba"] * 100),
    "a thread between two groups": ("abcdef", ["ab", "ba", "bc", "cb", "de", "ed", "ef", "fe", "cd"] * 3),
    "upsets": ("abcd", ["ab", "bc", "cd"] * 20 + ["da"] * 3),
}


def table(pairs, first="winner"):
    """Comparisons, winner before loser; who stood first is the winner, the loser, or either in turn."""
    swapped = [first == "loser" or (first == "either" and at % 2 == 1) for at in range(len(pairs))]
    rows = [(p[1], p[0], p[0]) if swap else (p[0], p[1], p[0]) for p, swap in zip(pairs, swapped, strict=True)]
    return pl.DataFrame(rows, schema=["ID1", "ID2", "better_id"], orient="row")


def bound(settings, size):
    """Gradients that a fit may compute: its transitions, two more warm-ups, and the longest path of each."""
    steps = int(np.ceil(6 * 1.3 * 1.7 / min(1.8 * size**-0.25, 0.9)))
    return (3 * settings.iter_warmup + settings.extend * settings.iter_sampling) * steps + 3


def check_sampled(ids, pairs, first, variant, prior_sd, settings=SHORT):
    fit = fit_btl(table(pairs, first), list(ids), variant, settings, seed=1, prior_sd=prior_sd)
    assert np.isfinite(fit.posterior.theta).all()
    assert fit.posterior.theta.std(axis=0).min() > 0.01
    assert 0 < fit.n_gradients <= bound(settings, len(ids) + 3)
    assert not [text for text in fit.notices if "collapsed" in text]
    assert fit.provenance.settings["coordinates"] == "learned"
    return fit


# The sampler


@pytest.mark.slow_except("two in a row-*", "*-btl_e_b-learned")
@pytest.mark.slow_except("*-btl-1.0", "*-btl_e_b-learned")
@pytest.mark.parametrize(("variant", "prior_sd"), MODELS)
@pytest.mark.parametrize("case", CASES)
def test_the_sampler_ends(case, variant, prior_sd):
    check_sampled(*CASES[case], "either", variant, prior_sd)


@pytest.mark.validate_except("btl-1.0")
@pytest.mark.slow
@pytest.mark.parametrize(("variant", "prior_sd"), MODELS)
def test_two_hundred_random_data_sets(variant, prior_sd):
    """The default settings: within a sixth of the bound, on average, and the diagnostics pass."""
    rng, passed = np.random.default_rng(7), []
    settings = MCMCSettings()
    for _ in range(200 // len(MODELS)):
        ids = "abcdef"[: rng.integers(2, 7)]
        pairs = ["".join(rng.permutation(list(ids))[:2]) for _ in range(rng.integers(1, 9))]
        fit = check_sampled(ids, pairs, "winner", variant, prior_sd, settings)
        assert fit.n_gradients < bound(settings, len(ids) + 3) / 6
        passed.append(fit.diagnostics.diagnostics_pass)
    assert np.mean(passed) >= 0.95


def test_a_warm_start_from_almost_nothing_ends():
    rows = table(["ab", "bc", "cd", "da", "ac", "bd"], "either")
    fit = None
    for size in range(1, rows.height + 1):
        fit = fit_btl(rows[:size], list("abcd"), "btl_e_b", SHORT, seed=size, prior_sd="learned", warm=fit)
        assert fit.provenance.settings["warm"] == (size > 1)
        assert fit.n_gradients <= bound(SHORT, 7)


# What happens when the coordinates do not fit


def spoiled(monkeypatch, spoil):
    """Coordinates that draws teach, with ``spoil`` done to them."""
    learn = Coordinates.learn

    def learned(self, x):
        center, shape = learn(self, x)
        return center, spoil(shape)

    monkeypatch.setattr(Coordinates, "learn", learned)


def steep(shape):
    return replace(shape, mix=np.full_like(shape.mix, 1e12))


def not_finite(shape):
    return replace(shape, widen=np.full_like(shape.widen, np.nan))


@pytest.mark.validate_except("steep")
@pytest.mark.slow
@pytest.mark.parametrize("spoil", [steep, not_finite])
def test_learned_coordinates_that_do_not_fit_are_left_aside(monkeypatch, spoil, caplog):
    rows = table(["ab", "bc", "ca", "ab"])
    settings = MCMCSettings(iter_sampling=1500, extend=1)
    fine = fit_btl(rows, list("abc"), "btl_e", settings, seed=1)
    spoiled(monkeypatch, spoil)
    fit = fit_btl(rows, list("abc"), "btl_e", settings, seed=1)
    assert fit.notices == (sampling._UNLEARNED,)
    assert sampling._UNLEARNED in caplog.text
    assert fit.provenance.settings["coordinates"] == "unlearned"
    assert fit.n_gradients <= bound(settings, 4)
    assert fit.diagnostics.divergences == 0
    np.testing.assert_allclose(fit.posterior.theta.mean(axis=0), fine.posterior.theta.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(fit.posterior.theta.std(axis=0), fine.posterior.theta.std(axis=0), rtol=0.05)
    # Its start is spoiled as well; a later fit begins without it.
    later = fit_btl(table(["ab", "bc", "ca", "ab", "ac"]), list("abc"), "btl_e", SHORT, seed=1, warm=fit)
    assert later.notices == (sampling._COLD, sampling._UNLEARNED)
    assert not later.provenance.settings["warm"]
    assert later.n_gradients <= bound(SHORT, 4)


def test_a_step_that_collapses_everywhere_is_an_error_with_a_name(message_snapshot, monkeypatch):
    computed = []

    def rugged(self, z, *, value):
        computed.append(1)
        rng = np.random.default_rng(len(computed))
        return rng.normal(size=z.shape[1]) * 1e6, rng.normal(size=z.shape) * 1e9

    monkeypatch.setattr(Coordinates, "__call__", rugged)
    with pytest.raises(SamplerError) as refused:
        fit_btl(table(["ab", "bc"]), list("abc"), "btl_e", SHORT, seed=1)
    message_snapshot(refused)
    assert len(computed) <= bound(SHORT, 4)
    assert issubclass(SamplerError, FitError)


# The posterior


def from_prior(ids, pairs, first, variant, prior_sd, size=400_000, seed=1):
    """Means and standard deviations, from draws of the prior weighted by the likelihood."""
    rng = np.random.default_rng(seed)
    tau = np.abs(rng.normal(0, 2.5, size)) if prior_sd == "learned" else np.ones(size)
    raw = rng.normal(size=(len(ids), size)) * tau
    eps = rng.beta(2, 20, size) if "_e" in variant else np.zeros(size)
    b = rng.normal(0, 0.3, size) if variant.endswith("_b") else np.zeros(size)
    log = np.zeros(size)
    for one, two, better in table(pairs, first).iter_rows():
        chance = (1 - eps) * expit(raw[ids.index(one)] - raw[ids.index(two)] + b) + eps / 2
        log += np.log(np.maximum(chance if better == one else 1 - chance, 1e-300))
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 20_000
    values = dict(zip(ids, raw - raw.mean(axis=0), strict=True))
    values |= {"eps": eps} if "_e" in variant else {}
    values |= {"position": b} if variant.endswith("_b") else {}
    values |= {"tau": tau} if prior_sd == "learned" else {}
    mean = {name: float(weight @ value) for name, value in values.items()}
    return {name: (mean[name], float(np.sqrt(weight @ (value - mean[name]) ** 2))) for name, value in values.items()}


@pytest.mark.validate_except("two in a row-btl_e_b-*")
@pytest.mark.slow
@pytest.mark.parametrize(("variant", "prior_sd"), MODELS)
@pytest.mark.parametrize("case", ["one comparison", "two in a row", "a circle", "two islands", "a few"])
def test_posteriors_of_tiny_data_are_those_of_weighted_draws_from_the_prior(case, variant, prior_sd):
    ids, pairs = {**CASES, "a few": ("abcd", ["ab", "ab", "cb", "dc", "da", "bd", "ac", "ab"])}[case]
    settings = MCMCSettings(iter_sampling=3000, extend=1)
    fit = fit_btl(table(pairs, "either"), list(ids), variant, settings, seed=2, prior_sd=prior_sd)
    found = dict(zip(ids, fit.posterior.theta.T, strict=True))
    found |= {"eps": fit.posterior.epsilon, "position": fit.posterior.b, "tau": fit.prior_sd}
    exact = from_prior(ids, pairs, "either", variant, prior_sd)
    assert fit.diagnostics.divergences == 0
    for name, (mean, sd) in exact.items():
        assert found[name].mean() == pytest.approx(mean, abs=0.05 * sd), name
        # A learned spread has a long tail, so that standard deviations of 24,000 draws vary more.
        assert found[name].std() == pytest.approx(sd, rel=0.12 if prior_sd == "learned" else 0.06), name


# The normal approximation, and the other models


@pytest.fixture
def work(monkeypatch):
    """How often the likelihood of all comparisons was gone through, by any of the models."""
    counted = {"n": 0}

    def count(owner, name):
        inner = getattr(owner, name)

        def outer(*args, **kwargs):
            counted["n"] += 1
            return inner(*args, **kwargs)

        monkeypatch.setattr(owner, name, outer)

    count(Target, "averages")
    count(engines, "moments")
    return counted


@pytest.mark.slow_except("*-btl-1.0", "*-btl_e_b-learned")
@pytest.mark.parametrize(("variant", "prior_sd"), MODELS)
@pytest.mark.parametrize("case", [*CASES, "nothing"])
def test_the_normal_approximation_ends(work, case, variant, prior_sd):
    ids, pairs = {**CASES, "nothing": ("abc", [])}[case]
    found = fit_btl_laplace(table(pairs, "either"), list(ids), variant, seed=1, prior_sd=prior_sd)
    assert np.isfinite(found.posterior.theta).all()
    assert found.posterior.theta.std(axis=0).min() > 0.01
    assert 0 < work["n"] <= 300  # 60 for the mode, 40 of 4 for the judge, 8 of 4 for the ends, and the start


OPTIONS = [
    {},
    {"position": True},
    {"ties": "half"},
    {"unconnected": "separate"},
]


def check_scores(rows, engine, options):
    """Finite scores, or None for an error with a name; never another exception, never a NaN among the scores."""
    try:
        fit = ps.fit_bt_model(rows, engine=engine, **options)
    except (FitError, InputError):
        return None
    theta = fit.theta["theta"].to_numpy()
    assert np.isfinite(theta).all()
    assert fit.fit.iterations <= 400
    return fit


@pytest.mark.parametrize("engine", ["sirt", "mle", "map", "firth"])
@pytest.mark.parametrize("case", CASES)
def test_every_engine_ends(work, case, engine):
    _, pairs = CASES[case]
    for options in OPTIONS:
        before = work["n"]
        fit = check_scores(table(pairs, "either"), engine, options)
        connected = case not in ("two islands", "islands of one") or "unconnected" in options
        if engine in ("map", "firth") and connected and set(options) <= {"unconnected"}:
            assert fit is not None  # both always have an answer
            assert fit.fit.converged
        assert work["n"] - before <= 600
