"""What was asked and answered so far, as arrays: everything that a selector looks at.

Items are numbers from 0, in the order in which they came in. All counts are over committed comparisons (§2.1); pairs
that are being asked right now are counted beside them. Nothing here is computed from the history: each answer changes a
few cells, so a step costs the same at the start and after fifty thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pairscale.models import trueskill
from pairscale.pairing.table import linked_groups

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.adaptive.logs import Columns
    from pairscale.core.arrays import Floats, Ints

    Flags = npt.NDArray[np.bool_]
    Rng = np.random.Generator

Pair: TypeAlias = tuple[int, int]
"""Two items by their numbers."""

FIRST_ANSWERS = 10
"""A judge that is asked for probabilities and gives none in this many answers gives none."""

TIE = -1
"""A tie in the history, where a win of the first is 1 and one of the second 0."""

WORTHLESS = 0.90
"""From this agreement of repeats on, a pair that was asked is not worth asking again."""

ENOUGH_REPEATS = 30
"""Repeats that there must be before anything is decided on how they agree."""

_FLIP_LEVEL = 0.95
_LINKS = 3  # comparisons that tie an item to the others when it joins late


@dataclass(slots=True)
class RepeatCounts:
    """How the judge answers when a pair is asked again.

    An answer is compared with the last one on the same pair in the other order, and with the last one in the same
    order. A tie and a win neither agree nor contradict each other.

    Attributes:
        n_reversed: answers on a pair that had one in the other order.
        n_flips: of these, with the opposite winner.
        n_same_order: answers on a pair that had one in the same order.
        n_agreeing: of all these, with the same answer.
        points_of_first: comparisons won by the text shown first; a tie is half.
        once: the pairs with one answer, the lower number first. Its order is part of a run: reversed pairs are drawn
            from it.
    """

    n_reversed: int = 0
    n_flips: int = 0
    n_same_order: int = 0
    n_agreeing: int = 0
    points_of_first: float = 0.0
    once: list[Pair] = field(default_factory=list)
    _place: dict[Pair, int] = field(default_factory=dict)  # where a pair is in ``once``
    _last: dict[Pair, float] = field(default_factory=dict)  # Y, by first and second

    @property
    def n_repeats(self) -> int:
        """Answers on a pair that had one before, in either order."""
        return self.n_reversed + self.n_same_order

    def committed(self, a: int, b: int, y: float, *, times: int, orders_agree: bool | None) -> None:
        """Take in an answer.

        Args:
            a: the item that stood first.
            b: the other one.
            y: what the first got.
            times: answers on this pair before.
            orders_agree: of a judge that is asked in both orders at once, whether both gave the same answer.
        """
        self.points_of_first += y
        other = self._last.get((b, a))
        if other is not None:
            self.n_reversed += 1
            self.n_flips += abs(other + y - 1) == 1
            self.n_agreeing += other + y == 1
        same = self._last.get((a, b))
        if same is not None:
            self.n_same_order += 1
            self.n_agreeing += same == y
        if orders_agree is not None:
            self.n_reversed += 1
            self.n_flips += not orders_agree
            self.n_agreeing += orders_agree
        self._last[a, b] = y
        pair = pair_of(a, b)
        if times == 0:
            self._place[pair] = len(self.once)
            self.once.append(pair)
        elif times == 1:  # the last one takes its place, so that a step costs the same however long the run is
            place = self._place.pop(pair)
            last = self.once.pop()
            if last != pair:
                self.once[place] = last
                self._place[last] = place

    def columns(self, committed: int) -> Columns:
        """The columns of the round log."""
        return {
            "n_reversed": self.n_reversed,
            "n_flips": self.n_flips,
            "n_repeated_same_order": self.n_same_order,
            "n_repeats_agreeing": self.n_agreeing,
            "first_win_rate": self.points_of_first / committed if committed else None,
        }

    def flips_more_than(self, share: float) -> bool:
        """Whether the judge changes its answer with the order in more than this share of pairs, surely enough.

        It does if, after 30 reversed pairs or more, the lower 95 % limit of the share of flips is above it. The limit
        holds over all looks, because every answer is one: a judge whose chance of a flip never exceeds the share is
        paused in at most one of twenty runs, however long they are. The chance of a judge without a preference for a
        position is at most one half, for texts that are equally good.
        """
        if self.n_reversed < ENOUGH_REPEATS or share >= 1:
            return False
        from pairscale.checks.effect import surely_above

        return surely_above(self.n_flips, self.n_reversed, share, _FLIP_LEVEL)


def pair_of(i: int, j: int) -> Pair:
    """Two items, the lower number first."""
    return (i, j) if i < j else (j, i)


class Ledger:
    """The counts and beliefs of a run.

    Attributes:
        n: how many items there are.
        mu: per item, the TrueSkill mean.
        sigma: per item, the TrueSkill standard deviation.
        degree: per item, committed comparisons (``deg`` of the document).
        first: per item, those in which it stood first (``pos_count_A``).
        second: per item, those in which it stood second (``pos_count_B``).
        recent: per item, those among the last ``window`` (``recent_deg``).
        open_degree: per item, comparisons that are being asked right now.
        set_aside: per item, whether it is no longer asked about: the judge never answers, or it was withdrawn.
        withdrawn: per item, whether it was withdrawn.
        seen: per pair (in both orders), committed comparisons (``pair_obs_count``).
        closed: per pair (in both orders), whether it cannot be asked now: in flight, resting or given up.
        given_up: the pairs that are not asked any more, because there were too many invalid answers on them.
        committed: how many comparisons are committed.
        n_unique_pairs: how many different pairs are among them.
        probabilities: per committed comparison, the probability that the first is better; None where none was given.
        judged_by: per committed comparison, who of a panel judged; None where a run has one judge.
        repeats: how the answers on pairs that were asked again agree.
        discount: the share of its worth that a pair loses once it has an answer; 0 when repeats are not discounted.
        top: how many texts at the top the run is for; None when it is for the whole order.
        is_linked: whether the warm start is over.
        counts_ranks: whether pairs are chosen by the errors of ranks they remove, not by the determinant, where the
            selector is ``information``.
    """

    def __init__(self, n: int, window: int, mu: Floats | None = None, sigma: Floats | None = None) -> None:
        self.n = n
        self.mu = np.full(n, trueskill.MU) if mu is None else np.array(mu, dtype=np.float64)
        self.sigma = np.full(n, trueskill.SIGMA) if sigma is None else np.array(sigma, dtype=np.float64)
        for name in ("degree", "first", "second", "recent", "open_degree", "_open_lead", "_invalid_in_row"):
            setattr(self, name, np.zeros(n, dtype=np.int64))  # _open_lead: of those being asked, first less second
        self.set_aside = np.zeros(n, dtype=np.bool_)
        self.withdrawn = np.zeros(n, dtype=np.bool_)
        self.seen = np.zeros((n, n), dtype=np.uint8)
        self.closed = np.eye(n, dtype=np.bool_)
        self.given_up: set[Pair] = set()
        self.committed = 0
        self.n_unique_pairs = 0
        self.repeats = RepeatCounts()
        self.discount = 0.0
        self.top: int | None = None
        self.counts_ranks = False
        self.is_linked = True
        self._last_first = np.zeros((n, n), dtype=np.bool_)  # [i, j]: i stood first when the two last met
        self._window: Ints = np.zeros((window, 2), dtype=np.int64)
        self._resting: set[Pair] = set()
        self._invalid: Counter[Pair] = Counter()
        self._log: list[tuple[int, int, int]] = []
        self.probabilities: list[float | None] = []
        self.judged_by: list[str | None] = []

    degree: Ints
    first: Ints
    second: Ints
    recent: Ints
    open_degree: Ints
    _open_lead: Ints
    _invalid_in_row: Ints

    # What there is

    @property
    def history(self) -> npt.NDArray[np.int32]:
        """The committed comparisons in their order: first, second, 1 when the first won (0 if not, :data:`TIE`)."""
        return np.array(self._log, dtype=np.int32).reshape(-1, 3)

    @property
    def min_degree(self) -> int:
        """The fewest comparisons of an item that is still asked about."""
        degrees = self.degree[~self.set_aside]
        return int(degrees.min()) if degrees.size else 0

    @property
    def repeats_are_worthless(self) -> bool:
        """Whether the judge repeats itself so well that a pair with an answer is not asked again."""
        return self.discount >= WORTHLESS

    @property
    def busy(self) -> Ints:
        """Per item, recent comparisons and those being asked: what star caps go by."""
        return self.recent + self.open_degree

    def order(self, i: int, j: int) -> Pair:
        """Which of the two stands first (§7.6): the other than last time, else the one that stood second more often."""
        if self.seen[i, j]:
            return (j, i) if self._last_first[i, j] else (i, j)
        lead_i = self.first[i] - self.second[i] + self._open_lead[i]
        lead_j = self.first[j] - self.second[j] + self._open_lead[j]
        if lead_i == lead_j:
            return pair_of(i, j)
        return (i, j) if lead_i < lead_j else (j, i)

    def rests(self, i: int, j: int) -> bool:
        """Whether two rest, and may be asked again."""
        return pair_of(i, j) in self._resting

    def reversible(self) -> list[Pair]:
        """The pairs that were asked once and may be asked now."""
        aside = self.set_aside
        return [pair for pair in self.repeats.once if not (self.closed[pair] or aside[pair[0]] or aside[pair[1]])]

    def all_asked(self) -> bool:
        """Whether every pair of the items that are asked about has an answer, or was given up."""
        present = np.flatnonzero(~self.set_aside)
        if self.n_unique_pairs + len(self.given_up) < len(present) * (len(present) - 1) // 2:
            return False
        unasked = np.triu(self.seen == 0, 1)
        unasked[self.set_aside] = unasked[:, self.set_aside] = False
        return {(i, j) for i, j in np.argwhere(unasked).tolist()} <= self.given_up

    def times(self, first: int, second: int) -> int:
        """How often two were asked before, in either order, with an answer and in vain."""
        return int(self.seen[first, second]) + self._invalid[pair_of(first, second)]

    # What happens

    def open(self, a: int, b: int) -> None:
        """A pair is being asked: it and its items count as used."""
        self._close(a, b)
        self._resting.discard(pair_of(a, b))
        self.open_degree[[a, b]] += 1
        self._open_lead[a] += 1
        self._open_lead[b] -= 1

    def _close(self, a: int, b: int, *, value: bool = True) -> None:
        self.closed[a, b] = self.closed[b, a] = value

    def drop(self, a: int, b: int) -> None:
        """A pair is not being asked any more, and counts as if it had never been."""
        self._close(a, b, value=False)
        self.open_degree[[a, b]] -= 1
        self._open_lead[a] -= 1
        self._open_lead[b] += 1

    def commit(
        self,
        a: int,
        b: int,
        y: float,
        *,
        orders_agree: bool | None = None,
        probability: float | None = None,
        judge: str | None = None,
    ) -> None:
        """A valid answer: a stood first, and won when y is 1; 0.5 is a tie."""
        self.drop(a, b)
        self.repeats.committed(a, b, y, times=int(self.seen[a, b]), orders_agree=orders_agree)
        winner, loser = (a, b) if y else (b, a)
        moved = trueskill.update_tie if y == 0.5 else trueskill.update
        after = moved(*map(float, (self.mu[winner], self.sigma[winner], self.mu[loser], self.sigma[loser])))
        self.mu[winner] = after.mu_winner
        self.sigma[winner] = after.sigma_winner
        self.mu[loser] = after.mu_loser
        self.sigma[loser] = after.sigma_loser
        self.degree[[a, b]] += 1
        self.first[a] += 1
        self.second[b] += 1
        self.n_unique_pairs += not self.seen[a, b]
        self.seen[a, b] = self.seen[b, a] = min(255, int(self.seen[a, b]) + 1)
        self._last_first[a, b] = True
        self._last_first[b, a] = False
        self._invalid_in_row[[a, b]] = 0
        slot = self.committed % len(self._window)
        if self.committed >= len(self._window):
            self.recent[self._window[slot]] -= 1
        self._window[slot] = a, b
        self.recent[[a, b]] += 1
        self._log.append((a, b, TIE if y == 0.5 else int(y)))
        self.probabilities.append(probability)
        self.judged_by.append(judge)
        self.committed += 1

    def reject(self, a: int, b: int, config: AdaptiveConfig, *, is_error: bool) -> list[int]:
        """An answer that is none: the pair rests for the round, or is given up.

        An error (the judge could not be reached) makes the pair rest but counts against no text.

        Returns:
            Items that are set aside from now on.
        """
        self.drop(a, b)
        self._close(a, b)
        pair = pair_of(a, b)
        if is_error:
            self._resting.add(pair)
            return []
        self._invalid[pair] += 1
        is_resting = self._invalid[pair] < config.max_invalid_per_pair
        (self._resting if is_resting else self.given_up).add(pair)
        self._invalid_in_row[[a, b]] += 1
        limit = config.max_invalid_per_item
        fallen = [item for item in pair if self._invalid_in_row[item] >= limit and not self.set_aside[item]]
        self.set_aside[fallen] = True
        return fallen

    def wake(self) -> None:
        """A new round: pairs that rested may be asked again."""
        for pair in self._resting:
            self._close(*pair, value=False)
        self._resting.clear()

    def forgive(self, config: AdaptiveConfig) -> None:
        """Other limits on invalid answers: what is below them now may be asked about again, from the next round on."""
        below = {pair for pair in self.given_up if self._invalid[pair] < config.max_invalid_per_pair}
        self.given_up -= below
        self._resting |= below
        self.set_aside &= (self._invalid_in_row >= config.max_invalid_per_item) | self.withdrawn

    def withdraw(self, items: Sequence[int]) -> None:
        """Items are no longer asked about, whatever their answers were; these stay."""
        self.withdrawn[list(items)] = self.set_aside[list(items)] = True

    def join(self, more: int, window: int, mu: Floats | None = None, sigma: Floats | None = None) -> None:
        """More items, numbered behind the others; ``window`` is the new length of what counts as recent."""
        fresh = Ledger(more, 1, mu, sigma)
        for name, old in vars(self).items():
            if not isinstance(old, np.ndarray) or name == "_window":
                continue
            if old.ndim == 1:
                setattr(self, name, np.concatenate([old, getattr(fresh, name)]))
            else:
                setattr(self, name, np.pad(old, (0, more)))
        self.n += more
        np.fill_diagonal(self.closed, True)
        self.resize_window(window)

    def resize_window(self, window: int) -> None:
        """Another number of comparisons counts as recent: the one time that the history is read again."""
        self._window = np.zeros((window, 2), dtype=np.int64)
        self.recent = np.zeros(self.n, dtype=np.int64)
        for number in range(max(0, self.committed - window), self.committed):
            a, b, _ = self._log[number]
            self._window[number % window] = a, b
            self.recent[[a, b]] += 1


# The warm start (§3.1): a shuffled chain through all items, mended where the judge will not answer.
#
# Where the pairs that follow are chosen for the top K, every other link of the chain is enough: each item is compared
# once, and half of them have won. Which of them to look at next is better chosen than left to chance, and the prior
# holds together what no comparison does.


class WarmStart:
    """Comparisons that come before all choosing, so that everything is connected.

    Args:
        n_items: how many items there are.
        rng: random numbers.
        is_chain: whether everything must be connected; if not, each item is compared once.

    Attributes:
        queue: the pairs still to be asked, in their order.
    """

    def __init__(self, n_items: int, rng: Rng, *, is_chain: bool = True) -> None:
        chain = rng.permutation(n_items).tolist()
        links = list(pairwise(chain))
        if not is_chain:
            links = links[::2] + (links[-1:] if n_items % 2 else [])
        self.queue: list[Pair] = links
        self._links: list[Pair] = list(self.queue)  # answered, open or waiting: what holds all together
        self._is_chain = is_chain
        self._position: Ints = np.empty(n_items, dtype=np.int64)
        self._position[chain] = np.arange(n_items)
        self._open = 0

    @property
    def done(self) -> bool:
        """Whether every link was answered, or given up."""
        return not self.queue and not self._open

    def admit(self, i: int, j: int) -> None:
        """A pair of the queue is being asked."""
        self.queue.remove((i, j))
        self._open += 1

    def committed(self) -> None:
        """It was answered."""
        self._open -= 1

    def rejected(self, i: int, j: int, ledger: Ledger) -> None:
        """It was not: another pair that connects the same two parts takes its place, if there is one."""
        self._open -= 1
        self._replace((i, j), ledger)

    def mend(self, ledger: Ledger) -> None:
        """Items were set aside: the links to them that are still to be asked are replaced, too."""
        for link in [link for link in self.queue if ledger.set_aside[list(link)].any()]:
            self.queue.remove(link)
            self._replace(link, ledger)

    def _replace(self, link: Pair, ledger: Ledger) -> None:
        self._links.remove(link)
        if not self._is_chain:
            return  # what is known too little of will be chosen
        ends = np.array(self._links, dtype=np.int64).reshape(-1, 2)
        part = {item: group for group in linked_groups(ends[:, 0], ends[:, 1], ledger.n) for item in group.tolist()}
        left = np.sort(part[link[0]])
        right = np.sort(part[link[1]])
        if link[1] in left:
            return  # joined by way of other links
        other = self._other(link, left, right, ledger)
        if other is not None:  # else all pairs between the two parts are given up
            self.queue.append(other)
            self._links.append(other)

    def _other(self, link: Pair, left: Ints, right: Ints, ledger: Ledger) -> Pair | None:
        """The pair between the two parts that is nearest to the link; one that rests only when there is no other."""
        left = left[~ledger.set_aside[left]]
        right = right[~ledger.set_aside[right]]
        free = ~ledger.closed[np.ix_(left, right)]
        if not free.any():
            free = np.array([[ledger.rests(i, j) for j in right.tolist()] for i in left.tolist()], dtype=np.bool_)
        if not free.any():
            return None
        apart = np.abs(self._position[left][:, None] - self._position[link[0]]) + np.abs(
            self._position[right][None, :] - self._position[link[1]]
        )
        row, column = np.unravel_index(np.argmin(np.where(free, apart, np.iinfo(np.int64).max)), free.shape)
        return int(left[row]), int(right[column])

    def join(self, new: Ints, order: Ints) -> None:
        """Items that come late are compared with others spread over the scale.

        Args:
            new: the new items.
            order: those that were there before, best first.
        """
        self._position = np.concatenate([self._position, len(self._position) + np.arange(len(new))])
        if not len(order):  # no one is left to tie them to but each other
            order = new[:1]
            new = new[1:]
        n_links = min(_LINKS, len(order))
        shares = (np.arange(n_links) + 0.5) / n_links
        for turn, item in enumerate(new.tolist()):
            # Each new item a little further along, so that not all are tied to the same few.
            at = ((shares * len(order)).astype(np.int64) + turn) % len(order)
            links = [(item, int(partner)) for partner in dict.fromkeys(order[at].tolist())]
            self.queue += links
            self._links += links
