"""Does the model hold for these answers? Three checks that stay valid when earlier answers chose the later pairs.

Each check adds up, over the answers in the order in which they came, how far an answer was from its probability, times
a feature that was known before the answer was given::

    Z(theta) = sum(f * (y - P(theta))) / sqrt(sum(f² P (1 - P)))

At the true scores the terms are surprises, so Z has mean 0 and variance 1 however the pairs were chosen. The draws of
the posterior stand for the true scores; by the law of total variance, the mean of Z over the draws has variance
1 - Var(Z | answers), and that is what it is measured by. The features come from scores fitted to earlier answers only:

- **distance**: one logit means the same for near and for far pairs. The feature is the square of the distance, less
  what a wider or narrower scale would explain.
- **circles**: if A beat B and B beat C, how often does A beat C? The feature counts the chains from one text to the
  other that were there before they were compared. Below 0 there are more circular triads than the model expects.
- **drift**: do the answers of the last third follow the scale of the first? Below 0 they follow it less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy

from pairscale.core.comparisons import OF_ITS_PAIR
from pairscale.core.notices import without_notices
from pairscale.pairing.table import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.bayes.fit import BTLFit
    from pairscale.models.bayes.posterior import Posterior
    from pairscale.models.bayes.settings import Repeats

MAX_ANSWERS = 20_000
"""More answers are not checked: with enough of them, every model fails."""
_FEWEST_PER_ITEM = 3
_LEVELS = {"distance": 0.03, "circles": 0.03, "drift": 0.05}
"""Of a warning; at most six in a hundred checks of a clean judge are flagged by chance (docs/validation.md)."""
_N_DRAWS = 400
_FURTHEST = 4.0  # logits: beyond, answers hardly depend on the distance
_LEAST_VARIANCE = 0.05
_REPEATS_ITSELF = 0.25

_WORDS = {
    "distance": (
        "one logit means the same for near and for far pairs",
        "one logit does not mean the same for near and for far pairs",
    ),
    "circles": (
        "there are no more circular triads than the scores explain",
        "there are more circular triads than the scores explain: the judge may go by more than one quality",
    ),
    "drift": (
        "the last third of the answers follows the scale of the first",
        "the last third of the answers follows the scale of the first less than it should: the judge may have drifted",
    ),
}


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """One check.

    Attributes:
        name: ``distance``, ``circles`` or ``drift``.
        meaning: what holds when the check passes.
        warning: what does not hold when it fails.
        z: how far the answers are from what the model expects, in standard deviations.
        p: how probable so much or more is when the model holds.
        passes: whether that is no reason to doubt the model.
    """

    name: str
    meaning: str
    warning: str
    z: float
    p: float
    passes: bool

    @property
    def p_text(self) -> str:
        """The probability as the field writes it."""
        return "< 0.001" if self.p < 0.001 else f"= {self.p:.3f}"


def check_model(rows: pl.DataFrame, seed: int = 1) -> list[ModelCheck]:
    """The three checks, of answers in the order in which they came.

    Where the judge repeats itself, only the first answer to each pair is looked at.

    Args:
        rows: ``ID1 ID2 better_id``; rows without a winner are left out.
        seed: of the draws.

    Returns:
        None of them for fewer than three answers a text, or for more than :data:`MAX_ANSWERS`.
    """
    answers = rows.filter(OF_ITS_PAIR).select("ID1", "ID2", "better_id")
    ids = sorted(set(answers["ID1"]) | set(answers["ID2"]))
    if not max(1, _FEWEST_PER_ITEM * len(ids)) <= answers.height <= MAX_ANSWERS:
        return []
    full = _fitted(answers, ids, seed, "learned")
    if full.repeat_agreement.rho > _REPEATS_ITSELF:
        smaller = pl.min_horizontal("ID1", "ID2")
        larger = pl.max_horizontal("ID1", "ID2")
        answers = answers.filter(pl.struct(smaller.alias("a"), larger.alias("b")).is_first_distinct())
    return _checks(answers, full.posterior, seed)


def _fitted(answers: pl.DataFrame, ids: Sequence[str], seed: int, repeats: Repeats) -> BTLFit:
    from pairscale.models.bayes.fit import fit_btl

    with without_notices():
        return fit_btl(answers, ids, "btl_e_b", seed=seed, prior_sd="learned", repeats=repeats, approximate=True)


def _checks(answers: pl.DataFrame, posterior: Posterior, seed: int) -> list[ModelCheck]:
    """All checks whose feature says something."""
    names = pl.Series(posterior.ids)
    first = numbered(answers["ID1"], names)
    second = numbered(answers["ID2"], names)
    won = (answers["better_id"] == answers["ID1"]).cast(pl.Float64).to_numpy()
    third = len(won) // 3
    middle = slice(third, 2 * third)
    last = slice(2 * third, len(won))
    distances = []
    for size in (third, 2 * third):
        scores = _fitted(answers[:size], posterior.ids, seed, "independent").posterior.theta.mean(axis=0)
        distances.append(scores[first] - scores[second])
    early = distances[0]
    later = distances[1]
    distance = np.zeros(len(won))
    distance[middle] = _curved(early[middle], early[:third])
    distance[last] = _curved(later[last], later[: 2 * third])
    drift = np.zeros(len(won))
    drift[last] = 2 * early[last] - later[last]  # where the first third and the middle disagree, it counts most
    chance = _chances(posterior, first, second, seed)
    made = [
        _check("distance", distance, won, chance, two_sided=True),
        _check("circles", _chains(first, second, won, posterior.n_items), won, chance, two_sided=False),
        _check("drift", drift, won, chance, two_sided=False),
    ]
    return [check for check in made if check is not None]


def _chances(posterior: Posterior, first: Ints, second: Ints, seed: int) -> Floats:
    """Per draw and answer, the probability that the first wins."""
    chosen = np.random.default_rng(seed).integers(posterior.n_draws, size=_N_DRAWS)
    theta = posterior.theta[chosen]
    predictor = theta[:, first] - theta[:, second]
    if posterior.b is not None:
        predictor += posterior.b[chosen, None]
    chance = scipy.special.expit(predictor)
    if posterior.epsilon is not None:
        lapse = posterior.epsilon[chosen, None]
        chance = (1 - lapse) * chance + lapse / 2
    return chance


def _chains(first: Ints, second: Ints, won: Floats, n_items: int) -> Floats:
    """Per answer to a new pair, the signed root of how many more chains led from its first text than to it."""
    beat = np.zeros((n_items, n_items), dtype=bool)
    feature = np.zeros(len(won))
    for place, (one, two) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if not beat[one, two] and not beat[two, one]:
            surplus = int((beat[one] & beat[:, two]).sum()) - int((beat[two] & beat[:, one]).sum())
            feature[place] = np.sign(surplus) * np.sqrt(abs(surplus))
        if won[place]:
            beat[one, two] = True
        else:
            beat[two, one] = True
    return feature


def _check(name: str, feature: Floats, won: Floats, chance: Floats, *, two_sided: bool) -> ModelCheck | None:
    variance = (chance * (1 - chance)) @ np.square(feature)
    if variance.min() <= 0:
        return None
    scores = (won - chance) @ feature / np.sqrt(variance)
    z = float(scores.mean() / np.sqrt(max(1 - scores.var(), _LEAST_VARIANCE)))
    p = float(2 * scipy.special.ndtr(-abs(z)) if two_sided else scipy.special.ndtr(z))
    return ModelCheck(name, *_WORDS[name], z, p, p >= _LEVELS[name])


def _curved(distance: Floats, before: Floats) -> Floats:
    """The signed square of the distances, less the multiple of the distance that fits it best among earlier answers."""
    weight = scipy.special.expit(before) * scipy.special.expit(-before)
    linear = np.square(before) @ weight
    factor = (_squared(before) * before) @ weight / linear if linear > 0 else 0.0
    return _squared(distance) - factor * distance


def _squared(distance: Floats) -> Floats:
    return distance * np.minimum(np.abs(distance), _FURTHEST)
