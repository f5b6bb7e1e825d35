"""Simulated pull requests: gates on many suites at once, by the functions that a gate uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairscale.evaluate.inference.gate import log_capital_above, log_capital_below, two_sided
from pairscale.evaluate.inference.score import careful_limits, graded_limits

SCORES = np.array([0.0, 0.5, 1.0])
GRADES = np.linspace(0, 1, 11)


@dataclass(frozen=True)
class Scenario:
    """What is true of B, and how large the suite is.

    Attributes:
        rate: B's win rate over the tasks that both answered.
        ties: share of these without a winner.
        tasks: in the suite.
        margin: of the gate.
        failing: share of the tasks on which A fails, and on which B does.
        graded: scores between 0 and 1 in steps of a tenth, instead of wins.
    """

    rate: float
    ties: float = 0.0
    tasks: int = 400
    margin: float = 0.1
    failing: tuple[float, float] = (0.0, 0.0)
    graded: bool = False

    @property
    def values(self) -> np.ndarray:
        return GRADES if self.graded else SCORES

    @property
    def shares(self) -> np.ndarray:
        if not self.graded:
            return np.array([1 - self.rate - self.ties / 2, self.ties, self.rate - self.ties / 2])
        # Binomial grades have the rate as their mean, and less spread than wins.
        from scipy.stats import binom

        return binom.pmf(np.arange(len(GRADES)), len(GRADES) - 1, self.rate)

    @property
    def counted_rate(self) -> float:
        """The rate if a failure is a loss."""
        a, b = self.failing
        return (1 - a) * (1 - b) * self.rate + a * (1 - b) + a * b / 2


def drawn(scenario: Scenario, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of each run and task, the number of its value (as a loss counts), and whether a variant failed."""
    values = rng.choice(len(scenario.values), size=(runs, scenario.tasks), p=scenario.shares)
    a, b = (rng.random((runs, scenario.tasks)) < share for share in scenario.failing)
    top = len(scenario.values) - 1
    values = np.where(a & ~b, top, np.where(b & ~a, 0, np.where(a & b, top // 2, values)))
    return values.astype(np.int8), a | b


@dataclass(frozen=True)
class Gates:
    """What came of many gates: the verdict and the number of tasks of each."""

    verdicts: np.ndarray
    tasks: np.ndarray

    def share(self, *verdicts: str) -> float:
        return float(np.isin(self.verdicts, verdicts).mean())


def sequential(scenario: Scenario, values: np.ndarray, failed: np.ndarray, *, level=0.95, better=False) -> Gates:
    """Gates that look after every task; ``better`` for those that ask whether B is better."""
    runs, tasks = values.shape
    margin, bar, size = scenario.margin, -np.log(1 - level), len(scenario.values)
    ways = 2 if failed.any() else 1
    counts = np.zeros((ways, runs, size))
    shown = np.zeros((ways, 4, runs), dtype=bool)  # better, not worse, no gain, worse
    verdicts, ends = np.full(runs, "inconclusive", dtype="<U12"), np.full(runs, tasks)
    tests = (
        (0.5, log_capital_above),
        (0.5 - margin, log_capital_above),
        (0.5 + margin, log_capital_below),
        (0.5, log_capital_below),
    )
    active = np.arange(runs)
    for at in range(tasks):
        for way in range(ways):
            taken = active if way == 0 else active[~failed[active, at]]
            counts[way, taken, values[taken, at]] += 1
            some = active[counts[way, active].sum(axis=1) > 0]
            if not len(some):
                continue
            for test, (mean, capital) in enumerate(tests):
                open_ = some[~shown[way, test, some]]
                if len(open_):
                    shown[way, test, open_] = capital(mean, margin, scenario.values, counts[way, open_]) >= bar
        every = shown[:, :3].all(axis=0)
        found = np.select(
            [every[0], every[1] & every[2], every[1], shown[0, 3]],
            ["better", "equivalent", "not-worse", "worse"],
            "inconclusive",
        )
        done = (found != "inconclusive") & ~((found == "not-worse") & better)
        stop = active[done[active]]
        verdicts[stop], ends[stop] = found[stop], at + 1
        active = active[~done[active]]
        if not len(active):
            break
    if len(active) and better:
        verdicts[active] = found[active]
    return Gates(verdicts, ends)


def fixed(scenario: Scenario, values: np.ndarray, failed: np.ndarray, *, level=0.95) -> Gates:
    """Gates that look once, after all tasks."""
    runs, tasks = values.shape
    shown = []
    for kept in (np.ones_like(failed), ~failed) if failed.any() else (np.ones_like(failed),):
        scores, n = scenario.values[values], kept.sum(axis=1)
        mean = (scores * kept).sum(axis=1) / n
        size, margin = n.astype(float), scenario.margin
        if scenario.graded:
            second, third = (((scores - mean[:, None]) ** power * kept).sum(axis=1) for power in (2, 3))
            limits = graded_limits(mean, second / (n - 1), tasks, size, two_sided(level), third / second**1.5)
        else:
            limits = careful_limits(mean, ((scores == 0.5) & kept).sum(axis=1) / n, size, two_sided(level))
        lower, upper = limits
        shown.append([lower > 0.5, lower > 0.5 - margin, upper < 0.5 + margin, upper < 0.5])
    every = np.all(np.array(shown), axis=0)
    verdicts = np.select(
        [every[0], every[1] & every[2], every[1], shown[0][3]],
        ["better", "equivalent", "not-worse", "worse"],
        "inconclusive",
    )
    return Gates(verdicts, np.full(runs, tasks))
