"""Elo ratings, as R's EloChoice gives them: every decision moves two ratings, averaged over random orders.

All ratings start equal. When item w beats item l, w takes points from l, the more the less it was expected::

    gain = round(k (1 - p))      p = 1 / (1 + 10 ** ((R_l - R_w) / 400))

Ratings depend on the order of the decisions, and decisions about texts have none, so the whole is repeated in random
orders and the ratings are averaged. EloChoice keeps its ratings in whole points, and so does this: it is visible in the
reliability (two items are "equal" more often), and it makes ratings exact, so that no result hangs on rounding errors.

A game can only be rated after the last one of either item, so an order is a plain loop over games: 0.3 s of CPU for a
million of them, less than it takes to find out which of them could be rated together.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl

from pairscale.core.arrays import Ints
from pairscale.core.comparisons import DROP_COPIES, say_copies
from pairscale.core.display import PlotMixin
from pairscale.core.notices import notice
from pairscale.core.options import checked, require_int, require_number, require_seed
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.tables import Table, listed
from pairscale.models.data import named_parts
from pairscale.models.rows import read_rows
from pairscale.pairing.table import linked_groups, numbered

AS_GAMES = f"each of them counts as a further game. {DROP_COPIES}"
_SCALE = 400.0
_LARGEST_K = 1_000_000
_PER_RUN = ("reliability", "reliability_weighted")


@dataclass(frozen=True, slots=True, eq=False)
class EloRuns:
    """How the ratings were found.

    Attributes:
        runs: random orders.
        games: decisions, the same in every order.
        k: the most points that a decision can move.
        start: the rating that every item starts with.
        per_run: ``reliability reliability_weighted``, one row per order with a decision between unequal items.
    """

    runs: int
    games: int
    k: int
    start: float
    per_run: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EloFit(PlotMixin, table="elo", charts=("scores",)):
    """Elo ratings of items, and how consistent the decisions are with them.

    Attributes:
        elo: one row per item, best first: ``ID``, ``elo`` (the mean over orders), ``rank`` (equal ratings share the
            smaller one), ``elo_sd`` (the standard deviation over orders; null for one order). ``elo_sd`` says how much
            the order matters for one run, not how sure the rating is.
        reliability: the share of decisions that went to the item with the higher rating at that moment, among those
            between items of unequal rating, averaged over orders; 0.5 is chance. None when there were no such.
        reliability_weighted: the same with every decision weighted by the difference of the ratings.
        engine: ``EloChoice``, whose figures these are.
        fit: how the ratings were found.
        notices: what was left out, and what to be careful with.
        provenance: how to get the same again; its seed is the one that was used, also where none was given.
    """

    elo: pl.DataFrame
    reliability: float | None
    reliability_weighted: float | None
    engine: str
    fit: EloRuns
    notices: tuple[str, ...]
    provenance: Provenance

    def __repr__(self) -> str:
        reliability = "none" if self.reliability is None else f"{self.reliability:.3f}"
        facts = [f"{self.elo.height:,} items", f"{self.fit.games:,} decisions in {self.fit.runs:,} random orders"]
        best = listed(self.elo["ID"].head(3).to_list())
        return f"<EloFit by {self.engine}: {', '.join(facts)}, reliability {reliability}, best {best}>"


@checked
def fit_elo_model(
    elo_data: Table,
    runs: int = 5,
    *,
    k: int = 100,
    start: float = 0,
    seed: int | None = None,
    verbose: bool = False,
) -> EloFit:
    """Fit Elo ratings: every decision moves the ratings of its two items, averaged over random orders.

    ``gain = round(k (1 - p))`` with ``p = 1 / (1 + 10 ** ((R_loser - R_winner) / 400))``, the figures of R's
    ``EloChoice::elochoice``. Where EloChoice takes the order of the rows as its first order, here all are random: the
    order of the rows means nothing, and does not change the result.

    Args:
        elo_data: ``winner loser``, or results of any shape that :func:`pairscale.build_elo_data` takes. Ties, rows
            without a winner and comparisons of an item with itself are left out, with a notice.
        runs: random orders. The first ones of a seed are the same for any number; 1,000 bring the error of the
            reliability below 0.001 for most sessions.
        k: the most points that a decision can move, a whole number.
        start: the rating that every item starts with, and the mean of all ratings.
        seed: makes it reproducible; without one, the one used is in the provenance.
        verbose: say how it went.

    Returns:
        The ratings, their reliability, and how they were found.

    Raises:
        TableError: when the columns are of no known shape or an id is missing.
        InputError: when an option is out of range.
        FitError: when no decision is between two items.

    Example:
        >>> games = [{"winner": "a", "loser": "b"}, {"winner": "b", "loser": "c"}, {"winner": "a", "loser": "c"}]
        >>> fit_elo_model(games, seed=1).elo["ID"].to_list()
        ['a', 'b', 'c']
    """
    runs = require_int(runs, "runs", least=1)
    k = require_int(k, "k", least=1, most=_LARGEST_K)  # ratings are in whole points
    start = require_number(start, "start")
    given_seed = require_seed(seed)
    seed = secrets.randbits(48) if given_seed is None else given_seed
    rows, ids, notices = read_rows(elo_data, None, "drop")
    notices += say_copies(rows, AS_GAMES)
    names = pl.Series(ids)
    first = numbered(rows["ID1"], names)
    second = numbered(rows["ID2"], names)
    winner = numbered(rows["better_id"], names)
    parts = linked_groups(first, second, len(ids))
    if len(parts) > 1:
        listing = named_parts(ids, parts)
        notices.append(
            notice(f"ratings compare only within each of the {len(parts):,} parts never compared: {listing}")
        )
    # Sorted, so that neither the order of the rows nor the locale changes a result.
    games = np.sort(winner * len(ids) + first + second - winner)
    total, squares, consistency = _averaged(games, len(ids), _gains(k), runs, seed)
    per_run = pl.DataFrame(consistency, schema=dict.fromkeys(_PER_RUN, pl.Float64), orient="row")
    mean = total / runs
    spread = np.sqrt(np.maximum(squares - total * mean, 0) / max(runs - 1, 1))
    elo = pl.DataFrame(
        {
            "ID": ids,
            "elo": start + mean,
            "rank": pl.Series(-total).rank("min").cast(pl.Int64),
            "elo_sd": pl.Series(spread if runs > 1 else [None] * len(ids), dtype=pl.Float64),
        }
    ).sort("rank", "ID")
    if verbose:
        notice(f"EloChoice: {len(games):,} decisions of {len(ids):,} items in {runs:,} random orders, k {k}")
    return EloFit(
        elo=elo,
        reliability=cast("float | None", per_run["reliability"].mean()),
        reliability_weighted=cast("float | None", per_run["reliability_weighted"].mean()),
        engine="EloChoice",
        fit=EloRuns(runs=runs, games=len(games), k=k, start=float(start), per_run=per_run),
        notices=tuple(notices),
        provenance=Provenance(
            method="EloChoice",
            settings={"runs": runs, "k": k, "start": start},
            seed=seed,
            inputs={"comparisons": fingerprint([ids, hashlib.sha256(games.astype("<i8").tobytes()).hexdigest()])},
        ),
    )


def _gains(k: int) -> Ints:
    """The points a winner gets, for every whole difference of ratings from -d to d, beyond which they stay the same."""
    far = math.ceil(_SCALE * math.log10(2 * k)) + 1
    return np.floor(k / (1 + 10 ** (np.arange(-far, far + 1) / _SCALE)) + 0.5).astype(np.int64)


def _averaged(
    games: Ints, n_items: int, gains: Ints, runs: int, seed: int
) -> tuple[Ints, Ints, list[tuple[float, float]]]:
    """Per item, the sum of the ratings over all orders and of their squares; per order, how often the leader won.

    That is the share of the games between unequal items, plain and weighted by the lead; not of an order without any.
    """
    total = np.zeros(n_items, dtype=np.int64)
    squares = np.zeros(n_items, dtype=np.int64)
    consistency = []
    for run in range(runs):
        order = np.random.default_rng([seed, run]).permutation(games)
        ratings, lead = _rate_in_turn(order, n_items, gains)
        total += ratings
        squares += ratings * ratings
        unequal = lead[lead != 0]
        if len(unequal):
            ahead = unequal > 0
            consistency.append((float(ahead.mean()), float(unequal[ahead].sum() / np.abs(unequal).sum())))
    return total, squares, consistency


def _rate_in_turn(order: Ints, n_items: int, gains: Ints) -> tuple[Ints, Ints]:
    """The ratings after one order, and the winner's lead before each game of it."""
    far = len(gains) // 2
    gain = np.roll(gains, -far).tolist()  # as Python counts: a lead of -1 is the last one
    rating = [0] * n_items
    leads: list[int] = []
    note = leads.append
    winners, losers = np.divmod(order, n_items)
    for winner, loser in zip(winners.tolist(), losers.tolist(), strict=True):
        up = rating[winner]
        down = rating[loser]
        lead = up - down
        note(lead)
        if lead > far:
            lead = far
        elif lead < -far:
            lead = -far
        points = gain[lead]
        rating[winner] = up + points
        rating[loser] = down - points
    return np.array(rating, dtype=np.int64), np.array(leads, dtype=np.int64)
