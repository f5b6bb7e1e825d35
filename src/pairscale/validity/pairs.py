"""Which pairs should people look at next? Those whose answers tell most about the validity."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import entr, expit

from pairscale.core.arrays import Floats, Ints
from pairscale.validity.scale import PeopleScale

_N_CANDIDATES = 4000
_N_DRAWS = 1000
_N_GROUPS = 10


def next_pairs(scale: PeopleScale, answered: set[tuple[int, int]], size: int, seed: int = 1) -> list[tuple[int, int]]:
    """The pairs to ask people about, the most telling first.

    What a pair tells is the mutual information between its answer and the validity: the entropy of the answer, less
    what is left of it where the validity is known. No text is in more than its share of the pairs, so that the answers
    do not repeat each other.

    Args:
        scale: what is known so far.
        answered: pairs that were answered, the lower number first.
        size: how many.
        seed: of the candidates, and of which text is shown first.
    """
    rng = np.random.default_rng(seed)
    first, second = _candidates(scale.people.shape[1], answered, rng)
    information = _information(scale, first, second, rng)
    limit = 1 + math.ceil(2 * size / scale.people.shape[1])
    uses = np.zeros(scale.people.shape[1], dtype=int)
    chosen: list[tuple[int, int]] = []
    for place in np.argsort(-information, kind="stable").tolist():
        i = int(first[place])
        j = int(second[place])
        if len(chosen) < size and max(uses[i], uses[j]) < limit:
            uses[[i, j]] += 1
            chosen.append((i, j) if rng.random() < 0.5 else (j, i))
    return chosen


def _candidates(n: int, answered: set[tuple[int, int]], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Pairs that were not answered yet, all of them or a random part."""
    total = n * (n - 1) // 2
    if total <= _N_CANDIDATES:
        first, second = np.triu_indices(n, k=1)
    else:
        first = rng.integers(n, size=2 * _N_CANDIDATES)
        second = (first + rng.integers(1, n, size=len(first))) % n
        pairs = np.unique(np.stack([np.minimum(first, second), np.maximum(first, second)]), axis=1)
        first, second = pairs[:, rng.permutation(pairs.shape[1])]
        first = first[:_N_CANDIDATES]
        second = second[:_N_CANDIDATES]
    is_new = np.array([pair not in answered for pair in zip(first.tolist(), second.tolist(), strict=True)], dtype=bool)
    return first[is_new].astype(np.int64), second[is_new].astype(np.int64)


def _information(scale: PeopleScale, first: Ints, second: Ints, rng: np.random.Generator) -> Floats:
    """Per pair, the mutual information of its answer and the validity."""
    chosen = rng.choice(len(scale.validity), min(_N_DRAWS, len(scale.validity)), replace=False)
    ordered = chosen[np.argsort(scale.validity[chosen])]
    chance = expit(scale.people[np.ix_(ordered, first)] - scale.people[np.ix_(ordered, second)])
    groups = np.array_split(chance, _N_GROUPS)
    left = np.mean([_entropy(group.mean(axis=0)) for group in groups], axis=0)
    return np.asarray(_entropy(chance.mean(axis=0)) - left)


def _entropy(chance: Floats) -> Floats:
    return entr(chance) + entr(1 - chance)
