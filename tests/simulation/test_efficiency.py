"""Adaptive ranking, measured: against the curves of the R package, and claimed against true reliability."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from pairscale.models.reliability import spearman
from pairscale.simulation.run import MapEstimate, simulate_run

GOLDEN = Path(__file__).parents[1] / "golden/adaptive"
JUDGES = {"clean": {}, "bias03_lapse05": {"bias": 0.3, "lapse": 0.05}}
SELECTORS = ("pollitt", "random", "nearest", "information")
R_SEEDS = (1, 2, 3)
JUDGE_SEEDS = 8
RELIABILITY_SEEDS = 24
SAMPLER_SEEDS = 5


def theta(n: int, seed: int) -> np.ndarray:
    return pl.read_csv(GOLDEN / f"theta_N{n}_s{seed}.csv")["theta_true"].to_numpy()


def recorded(n: int, seed: int, judge: str) -> pl.DataFrame:
    return pl.read_csv(GOLDEN / f"eff_pairwiseLLM_N{n}_s{seed}_{judge}.csv")


def test_our_estimate_is_as_good_as_the_recorded_one_on_the_same_comparisons():
    """So that a difference between the curves is one of the pairs."""
    history = pl.read_csv(GOLDEN / "seq_pairwiseLLM_N50_s1_clean.csv").select("A", "B", "Y").to_numpy()
    history = history - [1, 1, 0]
    estimate, curve = MapEstimate(50), recorded(50, 1, "clean")
    ours = [spearman(estimate.fit(history[:at]), theta(50, 1)) for at in curve["comparisons"]]
    assert np.abs(np.array(ours) - curve["spearman_map"].to_numpy()).max() < 0.01


@pytest.mark.validate
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("n", [50, 200])
def test_pollitt_is_at_least_as_good_as_the_recorded_engine(n, judge):
    curves = {seed: recorded(n, seed, judge) for seed in R_SEEDS}
    at = curves[1]["comparisons"].to_list()
    ours: dict[int, list[pl.DataFrame]] = {seed: [] for seed in R_SEEDS}
    for seed in R_SEEDS:
        for judge_seed in range(JUDGE_SEEDS):
            run = simulate_run(
                n, seed=judge_seed, abilities=theta(n, seed), max_comparisons=at[-1], checkpoints=at, stop_early=False,
                **JUDGES[judge],
            )  # fmt: skip
            assert run.curve["comparisons"].to_list() == at
            ours[seed].append(run.curve)
    print(f"\nN={n}, {judge}: {JUDGE_SEEDS} judge seeds for each of {len(R_SEEDS)} sets of abilities")
    chosen = np.array(at) >= n  # before, both engines go through a shuffled chain and choose nothing
    worst = {}
    for name in ("spearman_mu", "spearman_map"):
        there = np.array([curve[name].to_numpy() for curve in curves.values()])
        here = np.array([np.mean([curve[name].to_numpy() for curve in ours[seed]], axis=0) for seed in R_SEEDS])
        noise = float(np.sqrt(there.var(axis=0, ddof=1)[chosen].mean() / len(R_SEEDS)))
        less = here.mean(axis=0) - there.mean(axis=0)
        after = np.where(chosen, less, np.inf)
        print(
            f"{name}: ours minus R {less[chosen].mean():+.4f} on average, worst {after.min():+.4f} at "
            f"{at[int(after.argmin())]}, in the chain (at {at[0]}) {less[0]:+.4f}; 2 standard errors of R's mean "
            f"{2 * noise:.4f}; {(after[chosen] >= 0).sum()} of {chosen.sum()} checkpoints not below R"
        )
        for where in (1, 3, 7, 11, 15, 19, 23):
            print(f"  {at[where]:5d}: R {there.mean(axis=0)[where]:.3f}, ours {here.mean(axis=0)[where]:.3f}")
        worst[name] = float(after.min()) + 2 * noise
    assert min(worst.values()) >= 0, worst


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval."""
    mean, size = float(np.mean(values)), len(values)
    half = float(t.ppf(0.975, size - 1) * np.std(values, ddof=1) / np.sqrt(size)) if size > 1 else float("nan")
    return mean, mean - half, mean + half


@pytest.mark.validate
@pytest.mark.parametrize(("fit_fn", "seeds"), [("laplace", RELIABILITY_SEEDS), (None, SAMPLER_SEEDS)])
@pytest.mark.parametrize("selector", SELECTORS)
def test_the_claimed_reliability_is_the_true_one(selector, fit_fn, seeds):
    less, ends, true = [], [], []
    for seed in range(seeds):
        run = simulate_run(100, selector, seed, fit_fn=fit_fn)
        assert run.stop_reason == "btl_converged"
        last = run.refits.row(-1, named=True)
        less.append(last["reliability_claimed"] - last["reliability_true"])
        true.append(last["reliability_true"])
        ends.append(run.comparisons)
    mean, low, high = interval(less)
    print(
        f"\n{selector}, {'sampler' if fit_fn is None else fit_fn}, {seeds} seeds: stop at {np.mean(ends):,.0f} "
        f"comparisons ({min(ends):,} to {max(ends):,}); true {np.mean(true):.3f}; claimed minus true {mean:+.4f} "
        f"({low:+.4f} to {high:+.4f})"
    )
    assert abs(mean) <= 0.03
