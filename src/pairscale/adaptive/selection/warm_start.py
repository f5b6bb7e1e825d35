"""The warm start (§3.1): a shuffled chain through all items, mended where the judge will not answer.

Where the pairs that follow are chosen for the top K, every other link of the chain is enough: each item is compared
once, and half of them have won. Which of them to look at next is better chosen than left to chance, and the prior
holds together what no comparison does.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pairscale.pairing.edges import linked_groups

if TYPE_CHECKING:
    from pairscale.adaptive.selection.ledger import Ledger
    from pairscale.core.arrays import Ints

_LINKS = 3  # comparisons that tie an item to the others when it joins late


class WarmStart:
    """Comparisons that come before all choosing, so that everything is connected.

    Args:
        n_items: how many items there are.
        rng: random numbers.
        is_chain: whether everything must be connected; if not, each item is compared once.

    Attributes:
        queue: the pairs still to be asked, in their order.
    """

    def __init__(self, n_items: int, rng: np.random.Generator, *, is_chain: bool = True) -> None:
        chain = rng.permutation(n_items).tolist()
        links = list(pairwise(chain))
        if not is_chain:
            links = links[::2] + (links[-1:] if n_items % 2 else [])
        self.queue: list[tuple[int, int]] = links
        self._links: list[tuple[int, int]] = list(self.queue)  # answered, open or waiting: what holds all together
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

    def _replace(self, link: tuple[int, int], ledger: Ledger) -> None:
        self._links.remove(link)
        if not self._is_chain:
            return  # what is known too little of will be chosen
        ends = np.array(self._links, dtype=np.int64).reshape(-1, 2)
        part = {item: group for group in linked_groups(ends[:, 0], ends[:, 1], ledger.n) for item in group.tolist()}
        left, right = np.sort(part[link[0]]), np.sort(part[link[1]])
        if link[1] in left:
            return  # joined by way of other links
        other = self._other(link, left, right, ledger)
        if other is not None:  # else all pairs between the two parts are given up
            self.queue.append(other)
            self._links.append(other)

    def _other(self, link: tuple[int, int], left: Ints, right: Ints, ledger: Ledger) -> tuple[int, int] | None:
        """The pair between the two parts that is nearest to the link; one that rests only when there is no other."""
        left, right = left[~ledger.set_aside[left]], right[~ledger.set_aside[right]]
        free = ~ledger.closed[np.ix_(left, right)]
        if not free.any():
            free = ledger.resting(left, right)
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
        shares = (np.arange(min(_LINKS, len(order))) + 0.5) / min(_LINKS, len(order))
        for turn, item in enumerate(new.tolist()):
            # Each new item a little further along, so that not all are tied to the same few.
            at = ((shares * len(order)).astype(np.int64) + turn) % len(order)
            links = [(item, int(partner)) for partner in dict.fromkeys(order[at].tolist())]
            self.queue += links
            self._links += links
