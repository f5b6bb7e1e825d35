"""Chance that is the same everywhere: draws built on ``Random.random`` alone, and phrases expanded with them."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import TYPE_CHECKING, TypeVar

from pairscale.datasets._phrases import phrases

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


@cache
def _options(alternatives: str) -> tuple[str, ...]:
    return tuple(alternatives.split("|"))


class RandomChoices:
    """A stream of random choices that depends on its seed alone.

    ``Random.random`` is the only method whose stream Python promises to keep; the rest is built on it here.
    """

    def __init__(self, seed: str) -> None:
        self._random = Random(seed).random  # noqa: S311 - reproducible texts, not secrets

    def uniform(self) -> float:
        """A number from 0 up to 1."""
        return self._random()

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self._random() < probability

    def normal(self, limit: float) -> float:
        """A standard normal draw, cut off at ``limit`` either way."""
        # A sum of uniforms needs no logarithm or cosine, whose last digit varies between machines.
        total = 0.0
        for _ in range(12):
            total += self._random()
        return max(-limit, min(limit, total - 6.0))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self._random() * len(options))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""
        shuffled = list(items)
        for last in range(len(shuffled) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        return shuffled

    def tier(self, skill: float) -> int:
        """0, 1 or 2: what a writer of this skill (0..1) manages this time."""
        # The sum of two uniforms is bump enough, and this is drawn often.
        position = 3.0 * skill + 0.9 * (self._random() + self._random() - 1.0)
        if position < 1.0:
            return 0
        return 1 if position < 2.0 else 2

    def expand(self, phrase: str, vocabulary: float) -> str:
        """The phrase with its alternatives chosen, and its slots filled to the writer's vocabulary."""
        while "[" in phrase:
            phrase = _ALTERNATIVES.sub(lambda match: self.pick(_options(match[1])), phrase)
        return _SLOT.sub(lambda match: self.pick(phrases("lexicon")[match[1]][self.tier(vocabulary)]), phrase)
