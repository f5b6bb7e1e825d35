"""Goals of a run: scores beside slow and obvious ones, stops, logs, audits, and settings."""

from __future__ import annotations

import math
import zlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import pairscale as ps
from pairscale.adaptive.config import require_goal, top_of
from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.gates import may_stop, stop_decision, stop_gates
from pairscale.adaptive.messages import stop_meaning
from pairscale.adaptive.selection.information import (
    InformationSelector,
    expected_information,
    expected_wrong,
    rank_errors,
    top_errors,
    top_probabilities,
)
from pairscale.adaptive.selection.ledger import Ledger
from pairscale.core.errors import InputError, StoreMismatchError
from pairscale.models.bayes.posterior import Posterior
from tests.adaptive.driving import drive, mu_belief

TRUTH = np.random.default_rng(5).normal(0, 2, 30)
TRUTH[np.argsort(-TRUTH)[:5]] += 1.5  # so that the five best can be told from the others


def texts(n: int = 30) -> list[dict[str, object]]:
    return [{"ID": f"t{at:02d}", "text": f"text {at}"} for at in range(n)]


def judge(A, B):
    first, second = int(A["ID"][1:]), int(B["ID"][1:])
    luck = np.random.default_rng(zlib.crc32(f"{first} {second}".encode())).random()
    return {"is_valid": True, "Y": int(luck < 1 / (1 + math.exp(TRUTH[second] - TRUTH[first])))}


# Choosing, beside slow and obvious versions


def believed(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n)) / math.sqrt(n)
    return rng.normal(0, 1.5, n), root @ root.T + 0.2 * np.eye(n)


def normal_density(distance: float, variance: float) -> float:
    return math.exp(-(distance**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def slow_top(mean, covariance, top, i, j):
    """What a comparison of i and j removes of the errors that count for the top, one text after the other."""
    n = len(mean)
    order = sorted(mean, reverse=True)
    between = (order[top - 1] + order[top]) / 2
    above = brentq(lambda at: sum(norm.sf(at, mean[k], covariance[k, k] ** 0.5) for k in range(n)) - top, -50, 50)
    cut = (between + above) / 2
    share = [normal_density(mean[k] - cut, covariance[k, k]) for k in range(n)]
    share = [one / sum(share) for one in share]
    total = 0.0
    for k in range(n):
        variance = covariance[k, k]
        with_pair = covariance[k, i] - covariance[k, j]
        for a in range(n):
            variance -= 2 * share[a] * covariance[k, a]
            with_pair -= share[a] * (covariance[a, i] - covariance[a, j])
            variance += share[a] * sum(share[b] * covariance[a, b] for b in range(n))
        total += normal_density(mean[k] - cut, variance) * with_pair**2
    return total


def slow_ranks(mean, covariance, i, j):
    """The same for the ranks of all texts."""
    n, total = len(mean), 0.0
    for k in range(n):
        around = sum(
            normal_density(mean[k] - mean[a], covariance[k, k] + covariance[a, a] - 2 * covariance[k, a])
            for a in range(n)
            if a != k
        )
        total += (around / n) ** 2 * (covariance[k, i] - covariance[k, j]) ** 2
    return total


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=20)
def test_what_errors_count_is_as_the_slow_one_says(seed, top):
    mean, covariance = believed(seed, 7)
    for found, slow in (
        (top_errors(mean, covariance, top, np.ones(7, dtype=bool)), lambda i, j: slow_top(mean, covariance, top, i, j)),
        (rank_errors(mean, covariance), lambda i, j: slow_ranks(mean, covariance, i, j)),
    ):
        assert found is not None
        every = found.of_pairs(covariance)
        for i in range(7):
            for j in range(7):
                assert every[i, j] == pytest.approx(slow(i, j), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("aim", ["top", "ranks"])
def test_the_selector_chooses_the_best_pair(aim):
    n, rng = 12, np.random.default_rng(3)
    ledger, selector = Ledger(n, 200), InformationSelector()
    ledger.top, ledger.counts_ranks = (4, False) if aim == "top" else (None, True)
    selector.joined(ledger)
    for _ in range(25):
        found = selector.choose(ledger, 2, rng)
        assert found is not None
        mean, covariance = selector.belief.mean, selector.belief.covariance
        scores = {}
        for i in range(n):
            for j in range(i + 1, n):
                if ledger.seen[i, j] < 2:
                    v = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
                    w = float(expected_information(np.array(mean[i] - mean[j]), np.array(v)))
                    slow = slow_top(mean, covariance, 4, i, j) if aim == "top" else slow_ranks(mean, covariance, i, j)
                    scores[i, j] = w / (1 + w * v) * slow
        assert scores[found.i, found.j] == pytest.approx(max(scores.values()), rel=1e-6)
        ledger.open(found.i, found.j)
        selector.opened(ledger, found.i, found.j)
        y = int(rng.random() < 1 / (1 + math.exp(TRUTH[found.j] - TRUTH[found.i])))
        ledger.commit(found.i, found.j, y)
        selector.committed(ledger, found.i, found.j, y)


# Figures


def test_probabilities_and_wrong_members_by_hand():
    theta = np.array([[3.0, 2.0, 1.0, 0.0], [3.0, 1.0, 2.0, 0.0], [0.0, 2.0, 3.0, 1.0], [3.0, 2.0, 0.0, 1.0]])
    posterior = Posterior(("a", "b", "c", "d"), theta, None, None, 1)
    found = top_probabilities(posterior, 2)
    assert found.tolist() == [0.75, 0.75, 0.5, 0.0]
    assert expected_wrong(found, np.array([3.0, 1.0, 2.0, 0.0]), 2) == pytest.approx(2 - 0.75 - 0.5)
    assert top_probabilities(posterior, 4).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("given", "goal", "top"), [("order", "order", None), ("top:10", "top:10", 10), ("TOP:3", "top:3", 3)]
)
def test_goals_in_words(given, goal, top):
    assert require_goal(given) == goal
    assert top_of(goal) == top


@pytest.mark.parametrize("goal", ["best", "top", "top:", "top:0", "top:-1", "top:1.5", "top:x", 10, None, "top:١"])
def test_goals_that_are_none(goal):
    with pytest.raises(InputError, match="goal"):
        require_goal(goal)


# Runs


def test_a_run_for_the_top_stops_by_wrong_members_and_is_audited(tmp_path):
    run = tmp_path / "run.db"
    options = {"judge": judge, "goal": "top:5", "run": run, "fit": "laplace", "progress": "none"}
    ps.rank(texts(), steps=90, **options)
    out = ps.rank(texts(), **options)
    last = out.refits.filter(~pl.col("is_closing")).row(-1, named=True)
    assert out.summary.select("goal", "last_stop_reason").row(0) == ("top:5", "btl_converged")
    assert last["top_wrong"] <= last["top_wrong_allowed"] == 0.5
    assert last["selector"] == "information"
    in_top = out.items["top_prob"]
    assert in_top.sum() == pytest.approx(5)
    assert 5 - in_top.head(5).sum() == pytest.approx(out.refits["top_wrong"][-1])
    assert len(set(out.items["ID"].head(5)) & {f"t{at:02d}" for at in np.argsort(-TRUTH)[:5]}) >= 4
    assert ps.audit(run).passed
    page = ps.report(run).read_text()
    assert "wrong members" in page
    assert "The run was for the 5 best texts" in page
    with pytest.raises(StoreMismatchError, match="goal"):
        ps.rank(texts(), **{**options, "goal": "order", "selector": "information", "run": paused(tmp_path)})


def paused(folder):
    run = folder / "paused.db"
    ps.rank(texts(), judge=judge, goal="top:5", run=run, fit="laplace", steps=40, progress="none")
    return run


ROW = {
    "goal": "top:10", "top_wrong": 0.9, "top_wrong_allowed": 1.0, "divergences": 0, "divergences_max_allowed": 0,
    "max_rhat": 1.0, "max_rhat_allowed": 1.01, "min_ess_bulk": 500, "ess_bulk_required": 400, "reliability": 0.2,
    "eap_reliability_min": 0.9, "rho_theta": None, "theta_corr_min": 0.95, "delta_sd_theta": None,
    "theta_sd_rel_change_max": 0.1, "rho_rank": None, "rank_spearman_min": 0.95, "lag_eligible": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "stops"),
    [({}, True), ({"top_wrong": 1.01}, False), ({"top_wrong": None}, False), ({"max_rhat": 1.02}, False),
     ({"goal": "order"}, False)],
)  # fmt: skip
def test_the_stop_of_a_run_for_the_top(changed, stops):
    assert stop_decision({**ROW, **changed}) == (stops, "btl_converged" if stops else None)


@pytest.mark.parametrize(
    ("asked", "changed", "stops"),
    [(629, {}, False), (631, {}, True), (631, {"max_rhat": 1.02}, False), (631, {"theta_sd_eap": 1.2}, False),
     (800, {"eap_reliability_min": 0.95}, False), (1332, {"eap_reliability_min": 0.95}, True),
     (631, {"goal": "order"}, False)],
)  # fmt: skip
def test_a_run_for_the_top_asks_no_more_than_one_for_the_order(asked, changed, stops):
    """50 texts of spread 1.5 take 25 times (7 + 41 / 2.25) comparisons, 630.6."""
    row = {**ROW, "top_wrong": 2.0, "n_items": 50, "theta_sd_eap": 1.5 * 0.8**0.5, "reliability_EAP": 0.8}
    row |= {"total_pairs_done": asked, **changed}
    assert stop_decision(row) == (stops, "btl_converged" if stops else None)
    assert may_stop(row) is (stops or bool(changed.get("max_rhat")))
    if stops:
        assert "takes more comparisons than to rank all texts" in stop_meaning("btl_converged", row | stop_gates(row))


@pytest.mark.parametrize(("agreement", "most"), [(1.0, 2), (0.0, None)])
def test_the_border_is_asked_on_only_where_repeats_differ(agreement, most):
    """Without a stop: a judge that repeats itself is asked nothing a third time, another one as often as it takes."""
    rng = np.random.default_rng(4)
    settings = {"goal": "top:2", "discount_repeats": True, "dup_max_obs": 1, "reverse_rate": 0.1}
    ids = [f"t{at:02d}" for at in range(12)]
    engine = Engine(ids, seed=2, selector="information", adaptive_config=settings, btl_config={"repeats": "learned"})
    answers = {}

    def answer(_engine, proposal):
        pair = frozenset((proposal.first, proposal.second))
        if pair not in answers or rng.random() >= agreement:
            chance = 1 / (1 + math.exp(0.3 * (proposal.first - proposal.second)))
            answers[pair] = proposal.first if rng.random() < chance else proposal.second
        return int(answers[pair] == proposal.first), False

    drive(engine, answer, steps=150, fit=lambda engine: (mu_belief(engine, agreement=0.5 * agreement), None))
    assert engine.ledger.seen.max() == most if most else engine.ledger.seen.max() > 4


@pytest.mark.parametrize(("wrong", "may"), [(1.0, True), (1.25, True), (1.3, False)])
def test_the_approximation_rules_a_stop_out_only_when_it_is_far(wrong, may):
    assert may_stop({**ROW, "top_wrong": wrong}) is may


def start_of(n: int, goal: str, selector: str, refuses: int = -1) -> list[tuple[int, int]]:
    """The pairs of the warm start; the judge gives no valid answer on one text."""
    engine = Engine([f"t{at}" for at in range(n)], seed=3, selector=selector, adaptive_config={"goal": goal})
    asked = []
    while engine.stage == "warm_start":
        found = engine.propose()
        assert found is not None
        assert not isinstance(found, Starved)
        asked.append((found.first, found.second))
        engine.record(found.step_id, None if refuses in asked[-1] else 1)
    return asked


@pytest.mark.parametrize("n", [9, 10])
def test_a_run_for_the_top_begins_with_half_of_the_chain(n):
    chain = {frozenset(pair) for pair in start_of(n, "order", "information")}
    pairs = start_of(n, "top:2", "information")
    assert len(chain) == n - 1
    assert len(pairs) == (n + 1) // 2
    assert {frozenset(pair) for pair in pairs} <= chain
    assert {item for pair in pairs for item in pair} == set(range(n))
    for selector in ("pollitt", "random", "nearest"):  # they do not aim, so they begin as always
        assert len(start_of(n, "top:2", selector)) == n - 1
