"""Simulated judges that behave as the models do not assume.

The answer to a question depends on the truth, the seed, the pair and how often the pair was asked before. So runs of
one seed differ by the pairs that they choose, not by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["JUDGES", "World", "make_world"]

JUDGES = ("clean", "repeatable", "half_repeatable", "position_lapse", "pair_effects", "noisy_texts")
"""The judges that :func:`make_world` knows."""


@dataclass(eq=False)
class World:
    """Texts of known ability, and the judge that compares them.

    Attributes:
        truth: Ability per text.
        logit: Log-odds that the first of two texts is better, without the effect of position.
        seed: Seed of the answers.
        bias: Preference for the text shown first, in logits.
        lapse: Share of answers that are the toss of a coin.
        repeats: Probability that a repeated question, in either order, gets the answer of the first one again.
    """

    truth: np.ndarray
    logit: Callable[[int, int], float]
    seed: int
    bias: float = 0.0
    lapse: float = 0.0
    repeats: float = 0.0
    _first: dict[tuple[int, int], int] = field(default_factory=dict)
    _asked: dict[tuple[int, int], int] = field(default_factory=dict)

    def answer(self, first: int, second: int) -> int:
        """1 when the text shown first wins, 0 when the other does."""
        key = (min(first, second), max(first, second))
        turn = self._asked.get(key, 0)
        self._asked[key] = turn + 1
        copied, luck, lapsed, coin = np.random.default_rng((self.seed, 7, *key, turn)).random(4)
        if turn and copied < self.repeats:
            return int(self._first[key] == first)
        chance = 1 / (1 + np.exp(-(self.logit(first, second) + self.bias)))
        y = int(coin < 0.5) if lapsed < self.lapse else int(luck < chance)
        self._first.setdefault(key, first if y else second)
        return y


def make_world(judge: str, n: int, sd: float, seed: int) -> World:
    """Texts whose abilities are normal with standard deviation ``sd``, and one of :data:`JUDGES`.

    ``repeatable`` gives the same pair the same answer in either order, ``half_repeatable`` with probability one half.
    ``position_lapse`` prefers the first text by .3 logits and tosses a coin in one of twenty questions.
    ``pair_effects`` adds a normal effect of SD 1 to every pair, and ``noisy_texts`` sees less than a third of the
    difference when one of six texts takes part.
    """
    truth = np.random.default_rng((seed, 1)).normal(0, sd, n)
    effects, damping = np.zeros((n, n)), np.ones(n)
    if judge == "pair_effects":
        effects = np.triu(np.random.default_rng((seed, 2)).normal(0, 1, (n, n)), 1)
        effects = effects - effects.T
    elif judge == "noisy_texts":
        damping[np.random.default_rng((seed, 3)).choice(n, 6, replace=False)] = 0.3

    def logit(i: int, j: int) -> float:
        return float((truth[i] - truth[j]) * min(damping[i], damping[j]) + effects[i, j])

    settings: dict[str, dict[str, float]] = {
        "repeatable": {"repeats": 1.0},
        "half_repeatable": {"repeats": 0.5},
        "position_lapse": {"bias": 0.3, "lapse": 0.05},
    }
    return World(truth, logit, seed, **settings.get(judge, {}))
