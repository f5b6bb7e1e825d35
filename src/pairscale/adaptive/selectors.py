"""Ways to choose the next pair, behind one seam: at random, of closest ability, or one of your own.

A selector is told everything that happens, in order, and asked for a pair. What it answers depends on that sequence and
on the random numbers it is handed, on nothing else: so a run can be replayed from its log. Who of the two stands first
is the ledger's affair, not the selector's.

A pair may be chosen when it is neither in flight, resting nor given up, when neither of its items is set aside, and
when it has been answered fewer than ``max_obs`` times.

A selector of your own is a function that is shown a :class:`Situation` and returns two items; see
:class:`OwnSelector`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias

import numpy as np

from pairscale.adaptive.config import ORDER
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.tables import listed
from pairscale.judges.build import imported

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.adaptive.engine import Engine
    from pairscale.adaptive.logs import Columns
    from pairscale.adaptive.selection.ledger import Flags, Ledger, Pair, Rng
    from pairscale.core.arrays import Floats, Ints

SELECTORS = ("random", "nearest", "information")
"""The names that :func:`make_selector` knows."""

UNLIMITED = 255
"""More answers to a pair are not counted."""

POLLITT = "pollitt"
"""The selector that the engine has in itself."""


# Of your own


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Situation:
    """All that is known when a pair is chosen. Items are numbers from 0; arrays are for reading only.

    Attributes:
        ids: the items' ids, by their numbers.
        mu: per item, the TrueSkill mean.
        sigma: per item, the TrueSkill standard deviation.
        theta: per item, the mean score of the last refit whose diagnostics passed; None when there is none yet.
        degree: per item, comparisons so far, those being asked right now included.
        seen: per pair (in both orders), answers so far.
        allowed: per pair (in both orders), whether it may be asked now; at least one may.
        history: the comparisons in their order, a row each: first item, second item, 1 when the first won, 0 when the
            second did, -1 for a tie (which only a run with the setting ``ties="half"`` has).
        rng: random numbers of this step; the only ones to use.
        repeat_agreement: how far repeats agree beyond what the scores explain, 0 to 1; 0 when repeats are not
            discounted. From 0.95 on no pair is allowed that has an answer.
    """

    ids: Sequence[str]
    mu: Floats
    sigma: Floats
    theta: Floats | None
    degree: Ints
    seen: npt.NDArray[np.uint8]
    allowed: Flags
    history: npt.NDArray[np.int32]
    rng: Rng
    repeat_agreement: float = 0.0

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """The pairs that may be asked, each once, as two arrays of items."""
        first, second = np.nonzero(np.triu(self.allowed))
        return first, second


class OwnSelector(Protocol):
    """A selector of your own: a function, or an object that can be called.

    It is shown a :class:`Situation`, and returns the two items to ask about, in any order; or None when it wants none
    of those that are allowed. Then, and when none is, it is shown pairs that were answered more often; if it wants
    none of these either, the round is over. It must go by nothing but the situation, and remember nothing: a run that
    is taken up is not shown again what was chosen before. The log calls it by its ``name``, if it has one, else by
    that of its function or class.

    Example:
        >>> def most_uncertain(now):
        ...     first, second = now.pairs
        ...     best = np.argmax(now.sigma[first] + now.sigma[second])
        ...     return first[best], second[best]
    """

    def __call__(self, now: Situation, /) -> Pair | None:
        """Choose."""
        ...


@dataclass(frozen=True, slots=True)
class MissingSelector:
    """In the place of one that was not given again: what a run holds can be looked at, and the run cannot continue."""

    name: str

    def __call__(self, _now: Situation | None = None, /) -> NoReturn:
        """Refuse."""
        raise InputError(
            f"the pairs of this run are chosen by {self.name!r}, which is none of pairscale's own selectors; "
            "give it again (selector=, or --selector module:function)"
        )


def named_selector(selector: str | OwnSelector) -> str | OwnSelector:
    """A selector as it is, checked; ``module:function`` is imported.

    Raises:
        UnknownNameError: that lists the names there are.
        InputError: when it is neither a name nor anything that can be called.
    """
    builtin = (POLLITT, *SELECTORS)
    if isinstance(selector, str):
        if selector in builtin:
            return selector
        module, _, function = selector.partition(":")
        if not module or not function:
            names = f"{listed(builtin)}, or module:function"
            raise UnknownNameError(f"selector: no selector {selector!r}; there are {names}")
        selector = imported(module, function, selector, "selector")
    if not callable(selector) or isinstance(selector, type):
        raise InputError(
            f"selector must be one of {listed(builtin)}, or a function of a Situation, not {selector!r:.80}"
        )
    if selector_name(selector) in (*builtin, "warm_start", "reverse"):
        raise InputError(f"a selector of your own needs a name of its own, not {selector_name(selector)!r}")
    return selector


def selector_for(selector: str | OwnSelector | None, goal: str) -> str | OwnSelector:
    """The selector that was given, or else that of the goal.

    Args:
        selector: what the user gave; None leaves it to the goal.
        goal: ``order`` or ``top:K``.
    """
    if selector is None:
        return POLLITT if goal == ORDER else "information"
    return selector


def selector_name(selector: str | OwnSelector) -> str:
    """What the log calls a selector."""
    return selector if isinstance(selector, str) else getattr(selector, "name", None) or name_of(selector)


def name_of(thing: Any) -> str:
    """Module and name of a function, or of an object's class; a partial's with what it binds.

    Example:
        >>> name_of(partial(sorted, reverse=True))
        'builtins.sorted(reverse=True)'
    """
    if isinstance(thing, partial):
        bound = [repr(value) for value in thing.args]
        bound += [f"{name}={value!r}" for name, value in sorted(thing.keywords.items())]
        where_it_is = re.compile(r" at 0x[0-9a-fA-F]+")  # in memory: another one in every process
        return where_it_is.sub("", f"{name_of(thing.func)}({', '.join(bound)})")
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


# All of them


class Attempt(NamedTuple):
    """What came of looking for a pair: the two items, or None; and columns of the step log."""

    pair: Pair | None
    fields: Columns


@dataclass(frozen=True, slots=True)
class Choice:
    """The pair that a selector chose.

    Attributes:
        i: one item.
        j: the other; the order says nothing.
        n_candidates: how many allowed pairs it was chosen from.
    """

    i: int
    j: int
    n_candidates: int


Chooser: TypeAlias = "Callable[[Ledger, int, Rng], Choice | None]"


class Selector:
    """Chooses pairs. The other methods tell it what has happened, after the ledger was told; most remember nothing.

    Args:
        chooser: what chooses, for a selector that remembers nothing.
    """

    def __init__(self, chooser: Chooser | None = None) -> None:
        self._chooser = chooser

    def choose(self, ledger: Ledger, max_obs: int, rng: Rng) -> Choice | None:
        """The next pair, or None when no pair is allowed.

        Args:
            ledger: what was asked and answered so far.
            max_obs: how many answers a pair may have at the most after this one.
            rng: the random numbers of this step.
        """
        assert self._chooser is not None  # noqa: S101
        return self._chooser(ledger, max_obs, rng)

    def opened(self, ledger: Ledger, a: int, b: int) -> None:
        """A pair is being asked, a first."""

    def committed(self, ledger: Ledger, a: int, b: int, y: float) -> None:
        """A valid answer: a stood first, and won when y is 1; 0.5 is a tie."""

    def dropped(self, ledger: Ledger, a: int, b: int) -> None:
        """A pair that was being asked came back without a valid answer."""

    def joined(self, ledger: Ledger) -> None:
        """More items came in."""


def allowed_pairs(ledger: Ledger, max_obs: int) -> Flags:
    """Per pair (in both orders), whether it may be asked about."""
    gone = ledger.set_aside
    allowed: Flags = ~(ledger.closed | gone | gone[:, None]) & (ledger.seen < max_obs)
    return allowed


def _most_answers(ledger: Ledger, config: AdaptiveConfig, fallback: str) -> int:
    """How many answers a pair may have.

    Where a run for the top discounts repeats, the few pairs at the border are asked on as soon as the judge has given
    another answer to a pair that was asked before.
    """
    if ledger.repeats_are_worthless:
        return 1
    if config.top is not None and config.discount_repeats:
        return UNLIMITED if ledger.repeats.n_repeats > ledger.repeats.n_agreeing else 2
    return config.dup_max_obs if fallback == "base" else config.dup_max_obs_relaxed


def choose_by(selector: Selector, ledger: Ledger, config: AdaptiveConfig, seeds: Pair) -> Attempt:
    """The pair that a selector chooses, or None when there is none; with the columns of the step log that tell how.

    Pairs that were asked often enough come only when nothing else is left (§5.3.2).

    Args:
        selector: who chooses.
        ledger: what was asked and answered so far.
        config: how many answers a pair may have.
        seeds: the run's seed and the step.
    """
    choice = None
    path = list[str]()
    for fallback in ("base", "dup_relax"):
        path.append(fallback)
        limit = _most_answers(ledger, config, fallback)
        choice = selector.choose(ledger, limit, np.random.default_rng((*seeds, limit)))
        if choice is not None:
            break
    names = ("generated", "after_hard_filters", "after_duplicates", "after_star_caps", "scored")
    fields = {
        **dict.fromkeys((f"n_candidates_{name}" for name in names), 0 if choice is None else choice.n_candidates),
        "star_cap_rejects": 0, "star_cap_reject_items": 0, "star_override_used": False, "repeats_allowed": False,
        "is_explore_step": False, "candidate_starved": choice is None,
        "fallback_used": path[-1], "fallback_path": ">".join(path),
        "starvation_reason": "no_candidates" if choice is None else None,
    }  # fmt: skip
    return Attempt(None if choice is None else (choice.i, choice.j), fields)


def make_selector(selector: str | OwnSelector, engine: Engine) -> Selector:
    """The selector of that name, or one around a function of the user's; one that does nothing for rounds.

    Args:
        selector: from :func:`named_selector`.
        engine: the engine that asks, which knows the ids and the scores of the last refit, for a :class:`Situation`.
    """
    if selector == POLLITT:
        return Selector()
    if selector == "random":
        return Selector(_fair)
    if selector == "nearest":
        return Selector(_nearest)
    if selector == "information":
        from pairscale.adaptive.selection.information import InformationSelector

        return InformationSelector()
    assert not isinstance(selector, str)  # noqa: S101
    return Selector(_own(selector, engine))


def _fair(ledger: Ledger, max_obs: int, rng: Rng) -> Choice | None:
    """At random, but fair: an item compared least often so far, with a partner compared least often; ties at random.

    Where repeats are discounted, partners that it has met are left out as often as repeats agree.
    """
    least_seen = _least_seen(ledger, max_obs, rng)
    if least_seen is None:
        return None
    i, partners = least_seen
    fresh = partners[ledger.seen[i, partners] == 0]
    if ledger.discount and fresh.size and rng.random() < ledger.discount:
        partners = fresh
    degree = (ledger.degree + ledger.open_degree)[partners]
    j = rng.choice(partners[degree == degree.min()])
    return Choice(i, int(j), len(partners))


def _nearest(ledger: Ledger, max_obs: int, rng: Rng) -> Choice | None:
    """An item compared least often so far (ties at random), with the partner of the closest TrueSkill mean.

    Partners it has not met come before those it has: a second answer on the same pair says less than one on the next
    best, as it joins nothing new. Partners as close are told apart by chance.
    """
    least_seen = _least_seen(ledger, max_obs, rng)
    if least_seen is None:
        return None
    i, partners = least_seen
    times = ledger.seen[i, partners]
    fresh = partners[times == times.min()]
    distance: Floats = np.abs(ledger.mu[fresh] - ledger.mu[i])
    j = rng.choice(fresh[distance == distance.min()])
    return Choice(i, int(j), len(partners))


def _own(selector: OwnSelector, engine: Engine) -> Chooser:
    """Around a function of the user's: it is shown copies, and what it returns is checked."""

    def choose(ledger: Ledger, max_obs: int, rng: Rng) -> Choice | None:
        allowed = allowed_pairs(ledger, max_obs)
        if not allowed.any():
            return None
        belief = engine.belief
        situation = Situation(
            ids=tuple(engine.ids),
            mu=ledger.mu.copy(),
            sigma=ledger.sigma.copy(),
            theta=None if belief is None else belief.theta_mean.copy(),
            degree=ledger.degree + ledger.open_degree,
            seen=ledger.seen.copy(),
            allowed=allowed.copy(),
            history=ledger.history,
            rng=rng,
            repeat_agreement=ledger.discount,
        )
        chosen: Any = selector(situation)
        if chosen is None:
            return None
        try:
            i, j = map(index, chosen)
        except (TypeError, ValueError):
            raise InputError(
                f"selector {selector_name(selector)} must return the numbers of two items, or None, not {chosen!r:.80}"
            ) from None
        if not (0 <= i < ledger.n and 0 <= j < ledger.n and allowed[i, j]):
            raise InputError(
                f"selector {selector_name(selector)} chose {i} and {j}, which may not be asked about now; see now.pairs"
            )
        return Choice(i, j, int(np.count_nonzero(allowed)) // 2)

    return choose


def _least_seen(ledger: Ledger, max_obs: int, rng: Rng) -> tuple[int, Ints] | None:
    """An item of the fewest comparisons (those being asked included) among those with a partner, and its partners."""
    degree = ledger.degree + ledger.open_degree
    present = np.flatnonzero(~ledger.set_aside)
    # The first in this order is almost always the one: no item has met all others until the very end.
    order = rng.permutation(present)
    for i in order[np.argsort(degree[order], kind="stable")]:
        partners = np.flatnonzero(~(ledger.closed[i] | ledger.set_aside) & (ledger.seen[i] < max_obs))
        if partners.size:
            return int(i), partners
    return None
