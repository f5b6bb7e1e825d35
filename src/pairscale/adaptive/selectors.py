"""Ways to choose the next pair, behind one seam, and the two plain ones: at random, and of closest ability.

A selector is told everything that happens, in order, and asked for a pair. What it answers depends on that sequence and
on the random numbers it is handed, on nothing else: so a run can be replayed from its log. Who of the two stands first
is the ledger's affair, not the selector's.

A pair may be chosen when it is neither in flight, resting nor given up, when neither of its items is set aside, and
when it has been answered fewer than ``max_obs`` times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pairscale.errors import UnknownNameError
from pairscale.tables import listed

if TYPE_CHECKING:
    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.adaptive.ledger import Flags, Ledger
    from pairscale.models._counts import Floats, Ints

__all__ = [
    "SELECTORS",
    "Choice",
    "NearestSelector",
    "RandomSelector",
    "Selector",
    "allowed_partners",
    "choose_by",
    "look",
    "make_selector",
]

SELECTORS = ("random", "nearest", "information")
"""The names that :func:`make_selector` knows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The pair that a selector chose.

    Attributes:
        i: one item.
        j: the other; the order says nothing.
        n_candidates: how many allowed pairs it was chosen from.
        score: what it was chosen by, the greater the better; 0 when by nothing but chance.
    """

    i: int
    j: int
    n_candidates: int
    score: float


class Selector(Protocol):
    """Chooses pairs. Everything but :meth:`choose` tells it what has happened, after the ledger was told."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def choose(self, ledger: Ledger, max_obs: int, rng: np.random.Generator) -> Choice | None:
        """The next pair, or None when no pair is allowed.

        Args:
            ledger: what was asked and answered so far.
            max_obs: how many answers a pair may have at the most after this one.
            rng: the random numbers of this step.
        """
        ...

    def opened(self, ledger: Ledger, a: int, b: int) -> None:
        """A pair is being asked, a first."""
        ...

    def committed(self, ledger: Ledger, a: int, b: int, y: int) -> None:
        """A valid answer: a stood first, and won when y is 1."""
        ...

    def dropped(self, ledger: Ledger, a: int, b: int) -> None:
        """A pair that was being asked came back without a valid answer."""
        ...

    def joined(self, ledger: Ledger) -> None:
        """More items came in."""
        ...


def allowed_partners(ledger: Ledger, i: int, max_obs: int) -> Flags:
    """Per item, whether it may be asked about together with i."""
    if ledger.set_aside[i]:
        return np.zeros(ledger.n, dtype=np.bool_)
    allowed: Flags = ~(ledger.closed[i] | ledger.set_aside) & (ledger.seen[i] < max_obs)
    return allowed


def look(
    selector: Selector, ledger: Ledger, config: AdaptiveConfig, seeds: tuple[int, int], fallback: str
) -> Choice | None:
    """What a selector chooses under one fallback, ``base`` or ``dup_relax``, with the random numbers of this step."""
    limit = config.dup_max_obs if fallback == "base" else config.dup_max_obs_relaxed
    return selector.choose(ledger, limit, np.random.default_rng((*seeds, limit)))


def choose_by(
    selector: Selector, ledger: Ledger, config: AdaptiveConfig, seeds: tuple[int, int]
) -> tuple[tuple[int, int] | None, dict[str, Any]]:
    """The pair that a selector chooses, or None when there is none; with the columns of the step log that tell how.

    Pairs that were asked often enough come only when nothing else is left (§5.3.2).

    Args:
        selector: who chooses.
        ledger: what was asked and answered so far.
        config: how many answers a pair may have.
        seeds: the run's seed and the step.
    """
    found, path = None, list[str]()
    for fallback in ("base", "dup_relax"):
        path.append(fallback)
        found = look(selector, ledger, config, seeds, fallback)
        if found is not None:
            break
    n = 0 if found is None else found.n_candidates
    names = ("generated", "after_hard_filters", "after_duplicates", "after_star_caps", "scored")
    fields = {
        **{f"n_candidates_{name}": n for name in names},
        "star_cap_rejects": 0, "star_cap_reject_items": 0, "star_override_used": False, "repeats_allowed": False,
        "is_explore_step": False, "candidate_starved": found is None,
        "fallback_used": path[-1], "fallback_path": ">".join(path),
        "starvation_reason": "no_candidates" if found is None else None,
    }  # fmt: skip
    return (None if found is None else (found.i, found.j)), fields


def make_selector(name: str) -> Selector:
    """The selector of that name.

    Raises:
        UnknownNameError: that lists the names there are.
    """
    if name == "random":
        return RandomSelector()
    if name == "nearest":
        return NearestSelector()
    if name == "information":
        from pairscale.adaptive.information import InformationSelector

        return InformationSelector()
    raise UnknownNameError(f"selector: no selector {name!r}; there are {listed(('pollitt', *SELECTORS))}")


class RandomSelector:
    """At random, but fair: an item compared least often so far, with a partner compared least often; ties at random."""

    __slots__ = ()
    name = "random"

    def choose(self, ledger: Ledger, max_obs: int, rng: np.random.Generator) -> Choice | None:
        """The next pair, or None when no pair is allowed."""
        found = _least_seen(ledger, max_obs, rng)
        if found is None:
            return None
        i, partners = found
        degree = (ledger.degree + ledger.open_degree)[partners]
        j = rng.choice(partners[degree == degree.min()])
        return Choice(i, int(j), len(partners), 0.0)

    def opened(self, ledger: Ledger, a: int, b: int) -> None:
        """Nothing to remember: the ledger says it all."""

    def committed(self, ledger: Ledger, a: int, b: int, y: int) -> None:
        """Nothing to remember: the ledger says it all."""

    def dropped(self, ledger: Ledger, a: int, b: int) -> None:
        """Nothing to remember: the ledger says it all."""

    def joined(self, ledger: Ledger) -> None:
        """Nothing to remember: the ledger says it all."""


class NearestSelector:
    """An item compared least often so far (ties at random), with the partner of the closest TrueSkill mean.

    Partners it has not met come before those it has: a second answer on the same pair says less than one on the next
    best, as it joins nothing new. Partners as close are told apart by chance.
    """

    __slots__ = ()
    name = "nearest"

    def choose(self, ledger: Ledger, max_obs: int, rng: np.random.Generator) -> Choice | None:
        """The next pair, or None when no pair is allowed."""
        found = _least_seen(ledger, max_obs, rng)
        if found is None:
            return None
        i, partners = found
        times = ledger.seen[i, partners]
        fresh = partners[times == times.min()]
        distance: Floats = np.abs(ledger.mu[fresh] - ledger.mu[i])
        j = rng.choice(fresh[distance == distance.min()])
        return Choice(i, int(j), len(partners), -float(distance.min()))

    def opened(self, ledger: Ledger, a: int, b: int) -> None:
        """Nothing to remember: the ledger says it all."""

    def committed(self, ledger: Ledger, a: int, b: int, y: int) -> None:
        """Nothing to remember: the ledger says it all."""

    def dropped(self, ledger: Ledger, a: int, b: int) -> None:
        """Nothing to remember: the ledger says it all."""

    def joined(self, ledger: Ledger) -> None:
        """Nothing to remember: the ledger says it all."""


def _least_seen(ledger: Ledger, max_obs: int, rng: np.random.Generator) -> tuple[int, Ints] | None:
    """An item of the fewest comparisons (those being asked included) among those with a partner, and its partners."""
    degree = ledger.degree + ledger.open_degree
    there = np.flatnonzero(~ledger.set_aside)
    # The first in this order is almost always the one: nobody has met everybody until the very end.
    order = rng.permutation(there)
    for i in order[np.argsort(degree[order], kind="stable")]:
        partners = np.flatnonzero(allowed_partners(ledger, int(i), max_obs))
        if partners.size:
            return int(i), partners
    return None
