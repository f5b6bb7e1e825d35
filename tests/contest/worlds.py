"""Simulated contests with a known best, and successive halving to hold ours against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairscale.contest.engine import Contest


@dataclass(frozen=True)
class World:
    """Candidates with known strengths, and a judge who answers by them.

    ``fixed`` is a judge with one answer per pair; the other one draws every answer anew.
    """

    strengths: np.ndarray
    fixed: bool
    rng: np.random.Generator
    answers: np.ndarray

    def wins(self, first: int, second: int) -> bool:
        """Whether the judge prefers the first."""
        low, high = sorted((first, second))
        draw = self.answers[low, high] if self.fixed else self.rng.random()
        return (draw < 1 / (1 + math.exp(self.strengths[high] - self.strengths[low]))) == (first == low)

    def regret(self, chosen: int) -> float:
        """By how many logits the chosen one is worse than the best."""
        return float(self.strengths.max() - self.strengths[chosen])


def world(n: int, number: int, *, fixed: bool, spread: float = 1.5) -> World:
    """A world by its number; the strengths are the same whoever judges."""
    rng = np.random.default_rng((n, number))
    return World(rng.normal(0, spread, n), fixed, np.random.default_rng((n, number, 1)), rng.random((n, n)))


def play(of: World, calls: int, number: int, **settings: object) -> tuple[Contest, list[tuple[int, int]]]:
    """A contest with at most so many calls, and the pairs it asked about."""
    contest = Contest(len(of.strengths), seed=(number,), **settings)
    asked = []
    while len(asked) < calls and (pair := contest.next_pair()) is not None:
        contest.open(*pair)
        contest.record(*pair, float(of.wins(*pair)))
        asked.append(pair)
    contest.shares()  # with the last answer
    return contest, asked


def halving(of: World, calls: int, number: int) -> int:
    """Successive halving: equal calls a round between random pairs of those left, and the better half stays."""
    rng = np.random.default_rng((number, 2))
    left = list(range(len(of.strengths)))
    rounds = math.ceil(math.log2(len(left)))
    for done in range(rounds):
        won = dict.fromkeys(left, 0)
        games = dict.fromkeys(left, 0)
        order: list[int] = []
        for _ in range(calls // rounds + (done < calls % rounds)):
            if len(order) < 2:
                order = rng.permutation(left).tolist()
            first, second = order.pop(), order.pop()
            won[first if of.wins(first, second) else second] += 1
            games[first] += 1
            games[second] += 1
        left.sort(key=lambda one: -won[one] / max(games[one], 1))
        left = left[: math.ceil(len(left) / 2)]
    return left[0]
