"""The selectors random, nearest and information: against slow and obvious versions, and by properties."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from pairscale.adaptive.config import AdaptiveConfig
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection import information
from pairscale.adaptive.selection.information import InformationSelector, Laplace, expected_information
from pairscale.adaptive.selection.ledger import Ledger
from pairscale.adaptive.selectors import SELECTORS, Choice, Selector, make_selector


def selector_of(name: str) -> Selector:
    return make_selector(name, Engine(["a", "b"]))


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


class Run:
    """A ledger and a selector that are told the same."""

    def __init__(self, selector: Selector, n: int, seed: int = 0, sd: float = 1.5) -> None:
        self.ledger, self.selector, self.rng = Ledger(n, 50), selector, rng(seed)
        self.theta = self.rng.normal(0, sd, n)
        self.flight: list[tuple[int, int]] = []

    def choose(self, max_obs: int = 2) -> Choice | None:
        return self.selector.choose(self.ledger, max_obs, self.rng)

    def ask(self, i: int, j: int) -> None:
        a, b = self.ledger.order(i, j)
        self.ledger.open(a, b)
        self.selector.opened(self.ledger, a, b)
        self.flight.append((a, b))

    def answer(self, at: int = 0) -> None:
        a, b = self.flight.pop(at)
        y = int(self.rng.random() < expit(self.theta[a] - self.theta[b]))
        self.ledger.commit(a, b, y)
        self.selector.committed(self.ledger, a, b, y)

    def refuse(self, at: int = 0, item_limit: int = 10) -> None:
        a, b = self.flight.pop(at)
        limits = AdaptiveConfig.for_items(self.ledger.n, {"max_invalid_per_item": item_limit})
        self.ledger.reject(a, b, limits, is_error=False)
        self.selector.dropped(self.ledger, a, b)

    def join(self, more: int) -> None:
        self.ledger.join(more, 50)
        self.theta = np.concatenate([self.theta, self.rng.normal(0, 1.5, more)])
        self.selector.joined(self.ledger)

    def steps(self, count: int, max_obs: int = 2) -> Run:
        for _ in range(count):
            choice = self.choose(max_obs)
            assert choice is not None
            self.ask(choice.i, choice.j)
            self.answer()
        return self


def allowed_pairs(ledger: Ledger, max_obs: int) -> set[tuple[int, int]]:
    """One by one, from the rule as it is written."""
    return {
        (i, j)
        for i in range(ledger.n)
        for j in range(i + 1, ledger.n)
        if not ledger.closed[i, j]
        and not ledger.set_aside[i]
        and not ledger.set_aside[j]
        and ledger.seen[i, j] < max_obs
    }


# Every selector


@pytest.mark.parametrize("name", SELECTORS)
@settings(max_examples=15)
@given(data=st.data())
def test_only_allowed_pairs_and_none_exactly_when_there_is_none(name: str, data: st.DataObject) -> None:
    run = Run(selector_of(name), data.draw(st.integers(2, 9)), data.draw(st.integers(0, 99)))
    for _ in range(data.draw(st.integers(1, 60))):
        does = data.draw(st.sampled_from(["ask", "ask", "ask", "answer", "answer", "refuse", "wake", "join"]))
        if does == "ask":
            max_obs = data.draw(st.integers(1, 3))
            allowed, choice = allowed_pairs(run.ledger, max_obs), run.choose(max_obs)
            assert (choice is None) == (not allowed)
            if choice is not None:
                assert tuple(sorted((choice.i, choice.j))) in allowed
                assert 1 <= choice.n_candidates <= 2 * len(allowed)
                run.ask(choice.i, choice.j)
        elif does == "wake":
            run.ledger.wake()
        elif does == "join" and run.ledger.n < 12:
            run.join(data.draw(st.integers(1, 2)))
        elif run.flight:
            at = data.draw(st.integers(0, len(run.flight) - 1))
            run.answer(at) if does == "answer" else run.refuse(at, item_limit=3)


def test_nearest_takes_the_closest_it_has_not_met() -> None:
    ledger = Ledger(5, 10, mu=np.array([20.0, 25.0, 25.5, 27.0, 40.0]))
    ledger.degree[:] = [3, 1, 3, 3, 3]
    choice = selector_of("nearest").choose(ledger, 2, rng(0))
    assert choice == Choice(1, 2, 4)
    ledger.seen[1, 2] = ledger.seen[2, 1] = 1
    assert selector_of("nearest").choose(ledger, 2, rng(0)) == Choice(1, 3, 4)
    ledger.seen[1], ledger.seen[:, 1] = 1, 1
    assert selector_of("nearest").choose(ledger, 2, rng(0)) == Choice(1, 2, 4)


# information: what is believed


@pytest.mark.parametrize("m", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("v", [0.01, 0.5, 2.0, 12.0])
def test_expected_information_is_the_mean_over_the_difference(m: float, v: float) -> None:
    sd = v**0.5
    mean = quad(lambda z: expit(m + sd * z) * expit(-m - sd * z) * np.exp(-z * z / 2), -9, 9)[0] / (2 * np.pi) ** 0.5
    assert expected_information(np.array(m), np.array(v)) == pytest.approx(mean, rel=0.12)


def counted(belief: Laplace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    i, j = np.array(list(belief._answers)).T
    return i, j, *np.array(list(belief._answers.values())).T


def precision(belief: Laplace, theta: np.ndarray, sd: float, *, in_flight: bool = False) -> np.ndarray:
    """Prior precision plus the sum of w (e_i - e_j)(e_i - e_j)', pair by pair."""
    total = np.eye(belief.n) / sd**2
    i, j, times, _ = counted(belief)
    edges = [
        (a, b, k * expit(theta[a] - theta[b]) * expit(theta[b] - theta[a])) for a, b, k in zip(i, j, times, strict=True)
    ]
    if in_flight:
        edges += [(a, b, weight) for (a, b), weight in belief._open.items()]
    for a, b, weight in edges:
        unit = np.zeros(belief.n)
        unit[[a, b]] = 1, -1
        total += weight * np.outer(unit, unit)
    return total


def log_posterior(belief: Laplace, theta: np.ndarray, sd: float) -> float:
    i, j, times, won = counted(belief)
    d = theta[i] - theta[j]
    return float(won @ d - times @ np.logaddexp(0, d) - theta @ theta / (2 * sd**2))


def test_solving_finds_the_mode_and_the_inverse_of_its_curvature() -> None:
    belief = Run(InformationSelector(), 12).steps(60).selector.belief
    belief.solve()
    slow = minimize(lambda x: -log_posterior(belief, x, belief.sd), np.zeros(12), method="BFGS", options={"gtol": 1e-7})
    assert belief.mode == pytest.approx(slow.x, abs=1e-4)
    slow_covariance = np.linalg.inv(precision(belief, belief.mode, belief.sd))
    assert belief.covariance == pytest.approx(slow_covariance, abs=1e-10)
    assert np.diag(belief.covariance) == pytest.approx(np.diag(slow_covariance), abs=1e-10)


@pytest.mark.parametrize("sd", [0.8, 2.0])
def test_the_learned_sd_is_where_the_marginal_likelihood_is_highest(sd: float) -> None:
    run = Run(selector_of("random"), 60, 1, sd).steps(360)
    belief = Laplace()
    belief.join(60)
    for a, b, y in run.ledger.history:
        belief.answer(int(a), int(b), int(y))
    for _ in range(40):
        belief.solve()

    def evidence(s: float) -> float:
        fixed = copy.deepcopy(belief)
        fixed._next_sd = s
        fixed.solve()
        height = log_posterior(fixed, fixed.mode, s) - 60 * np.log(s)
        wide = -((np.log(s / information.SD_START) / information.SD_SPREAD) ** 2) / 2
        return float(height - np.linalg.slogdet(precision(fixed, fixed.mode, s))[1] / 2 + wide)

    best = minimize_scalar(lambda s: -evidence(s), bounds=(0.5, 5), method="bounded", options={"xatol": 1e-4})
    assert belief.sd == pytest.approx(best.x, rel=1e-3)
    assert belief.sd == pytest.approx(sd, rel=0.35)


def test_the_mean_is_that_of_the_posterior() -> None:
    """Of two items, from an integral; the mode is not."""
    for wins, sd in ((1, 1.5), (3, 1.5), (3, 1.0)):
        belief = Laplace()
        belief.join(2)
        for _ in range(wins):
            belief.answer(0, 1, 1)
        quick = belief.mean.copy()
        belief._next_sd = sd
        belief.solve()
        grid = np.linspace(-20, 20, 40_001)
        density = expit(grid) ** wins * np.exp(-(grid**2) / (4 * sd**2))
        exact = (grid * density).sum() / density.sum()
        assert belief.mean[0] - belief.mean[1] == pytest.approx(exact, rel=0.08)
        assert belief.mode[0] - belief.mode[1] < 0.95 * exact
        if sd == information.SD_START:
            assert quick[0] - quick[1] == pytest.approx(exact, rel=0.08)


@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize(("m", "v"), [(0.0, 2.0), (-3.0, 0.1), (-8.0, 50.0), (8.0, 50.0), (0.3, 1e-6)])
def test_an_answer_moves_the_difference_to_its_mode(m: float, v: float, y: int) -> None:
    x, weight = information._mode(m, v, y)
    assert x == pytest.approx(m + v * (y - expit(x)), abs=1e-9)
    assert weight == pytest.approx(expit(x) * expit(-x))


def test_one_answer_is_taken_in_exactly_and_many_nearly() -> None:
    """After a single answer nothing is approximate; after many the mode has moved a little from where it was."""
    belief = Laplace()
    belief.join(4)
    belief.answer(2, 0, 1)
    quick = belief.mean.copy(), belief.covariance.copy()
    belief.solve()
    assert quick[0] == pytest.approx(belief.mean, abs=1e-5)
    assert quick[1] == pytest.approx(belief.covariance, abs=1e-5)
    belief = Run(InformationSelector(), 40, 2).steps(167).selector.belief  # seven answers after it was solved
    quick = belief.mean.copy(), np.diag(belief.covariance).copy()
    belief._next_sd = belief.sd
    belief.solve()
    assert np.abs(quick[0] - belief.mean).max() < 0.1
    assert quick[1] == pytest.approx(np.diag(belief.covariance), rel=0.1)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 999),
    opened=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=1, max_size=50, unique=True),
    order=st.randoms(use_true_random=False),
)
def test_pairs_in_flight_leave_no_trace(seed: int, opened: list[tuple[int, int]], order: object) -> None:
    belief = Run(InformationSelector(), 15, seed).steps(40).selector.belief
    before, variance = belief.covariance.copy(), np.diag(belief.covariance).copy()
    pairs = sorted({(min(pair), max(pair)) for pair in opened if pair[0] != pair[1]})
    for pair in pairs:
        belief.open(*pair)
    order.shuffle(pairs)
    if pairs:
        assert np.linalg.slogdet(belief.covariance)[1] < np.linalg.slogdet(before)[1]
    for pair in pairs:
        belief.drop(*pair[::-1])
    assert belief.covariance == pytest.approx(before, abs=1e-8)
    assert np.diag(belief.covariance) == pytest.approx(variance, abs=1e-8)


# information: what is chosen


def slow_choice(run: Run, max_obs: int) -> tuple[int, int, float]:
    """D-optimal, as in a textbook: for every pair, the log-determinant with it less the log-determinant without."""
    belief, best = run.selector.belief, (-1, -1, -1.0)
    now = np.linalg.inv(belief.covariance)
    start = np.linalg.slogdet(now)[1]
    covariance = np.linalg.inv(now)
    for i, j in sorted(allowed_pairs(run.ledger, max_obs)):
        unit = np.zeros(belief.n)
        unit[[i, j]] = 1, -1
        v = unit @ covariance @ unit
        k = (1 + np.pi * v / 8) ** -0.5
        p = expit(k * (belief.mean[i] - belief.mean[j]))
        gain = np.linalg.slogdet(now + k * p * (1 - p) * np.outer(unit, unit))[1] - start
        if gain > best[2] + 1e-9:
            best = i, j, float(gain)
    return best


@pytest.mark.parametrize("in_flight", [0, 6])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_pair_is_d_optimal(seed: int, in_flight: int) -> None:
    run = Run(InformationSelector(), 12, seed, sd=2.0)
    for step in range(70):
        choice = run.choose()
        assert choice is not None
        i, j, gain = slow_choice(run, 2)
        assert (choice.i, choice.j) == (i, j), step
        assert np.log1p(run.selector.gains(run.ledger)[i, j]) == pytest.approx(gain, abs=1e-8)
        assert choice.n_candidates == len(allowed_pairs(run.ledger, 2))
        run.ask(i, j)
        while len(run.flight) > in_flight:
            run.answer()


def test_the_covariance_is_the_explicit_inverse_all_along() -> None:
    """It is that of the prior plus the sum of w (e_i - e_j)(e_i - e_j)', w as it was when the answer came."""
    belief, random = Laplace(), rng(4)
    belief.join(9)
    explicit = np.eye(9) / belief.sd**2
    for _ in range(100):
        a, b = random.choice(9, 2, replace=False)
        unit = np.zeros(9)
        unit[[a, b]] = 1, -1
        y = int(random.integers(2))
        _, weight = information._mode(float(unit @ belief.mean), float(unit @ np.linalg.inv(explicit) @ unit), y)
        belief.answer(int(a), int(b), y)
        explicit += weight * np.outer(unit, unit)
        assert np.diag(belief.covariance) == pytest.approx(np.diag(np.linalg.inv(explicit)), abs=1e-8)
    assert belief.covariance == pytest.approx(np.linalg.inv(explicit), abs=1e-8)
