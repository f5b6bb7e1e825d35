"""Bradley–Terry scores: from who beat whom to one scale.

In the model the odds that item i beats item j are ``exp(theta_i - theta_j)``. Only differences of theta mean something,
so their mean is set to 0, and only items that a chain of comparisons joins can be put on one scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from pairscale.errors import FitError, InputError, UnknownNameError
from pairscale.models._counts import Counts, Floats, Ints, aggregate, connected_parts, named_parts, read_decided
from pairscale.models._sirt import PROBE_SEED, Root, is_exact, mean_variances, solve_adjusted
from pairscale.notices import notice
from pairscale.provenance import Provenance
from pairscale.tables import Table, listed, require_ids, to_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["BTFit", "BTSolution", "Unconnected", "fit_bt_model", "summarize_bt_fit"]

Unconnected = Literal["error", "separate"]
"""What to do with parts that no comparison joins."""

_ENGINES = ("auto", "sirt")
_SAME_THETA = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class BTSolution:
    """How the scores were found.

    Attributes:
        iterations: steps taken; of several parts, the most.
        converged: whether the engine's equations hold. If not, no finite scores solve them, the scores are those of the
            engine's own steps when it gave up, and a notice names the groups whose distance is open.
        log_likelihood: of the comparisons, at these scores.
        eps: the adjustment of the wins.
        drift: per part, how far the adjusted wins are from the expected ones, in units of the information (c in
            ``s - E = c I``).
        scores: per item, ``ID``, ``score`` (the adjusted wins s), ``expected`` (E) and ``information`` (I).
    """

    iterations: int
    converged: bool
    log_likelihood: float
    eps: float
    drift: tuple[float, ...]
    scores: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BTFit:
    """Bradley–Terry scores of items, and what is known about them.

    Attributes:
        theta: one row an item, best first: ``ID``, ``theta``, ``se`` (the engine's own standard error), ``rank``,
            ``se_mean`` (the standard error of the difference to the mean of all items), ``lower`` and ``upper``
            (``theta`` ± z · ``se_mean``), ``wins``, ``comparisons``. Parts that were fitted separately have no ``rank``
            and a further column ``component``, counted from 1.
        reliability: ``1 - mean(se²) / var(theta)``, the share of the variance that is not error. None for fewer than
            three items, equal scores, or separate parts: there it means nothing.
        engine: the engine that was used.
        fit: how the scores were found.
        components: the items of each part that comparisons join; one part unless ``unconnected="separate"``.
        unjudged: items without a decided comparison with another item; they have no score.
        notices: what was left out, and what to be careful with.
        provenance: how to get the same again.
    """

    theta: pl.DataFrame
    reliability: float | None
    engine: str
    fit: BTSolution
    components: tuple[tuple[str, ...], ...]
    unjudged: tuple[str, ...]
    notices: tuple[str, ...]
    provenance: Provenance

    def __repr__(self) -> str:
        n_comparisons = int(self.theta["comparisons"].sum()) // 2
        facts = [f"{self.theta.height:,} items", f"{n_comparisons:,} comparisons"]
        if len(self.components) > 1:
            facts.append(f"{len(self.components):,} separate parts")
        else:
            reliability = "none" if self.reliability is None else f"{self.reliability:.3f}"
            facts += [f"reliability {reliability}", f"best {listed(self.theta['ID'].head(3).to_list())}"]
        return f"<BTFit by {self.engine}: {', '.join(facts)}>"


def fit_bt_model(
    bt_data: Table,
    *,
    engine: str = "auto",
    ids: Iterable[Any] | None = None,
    eps: float = 0.3,
    level: float = 0.95,
    unconnected: Unconnected = "error",
    verbose: bool = False,
) -> BTFit:
    """Fit a Bradley–Terry model: a score for every item, from comparisons of two.

    ``P(i beats j) = 1 / (1 + exp(theta_j - theta_i))``, with mean(theta) = 0. The engine ``sirt`` gives the figures of
    R's ``sirt::btm(fix.eta = 0, ignore.ties = TRUE)``: an item's wins w in M comparisons are moved towards the middle,
    ``eps + (M - 2 eps) / M * w``, so that one that won everything still has a finite score; ``se = 1 / sqrt(I)`` with I
    the item's own information. That ``se`` leaves out that the opponents' scores are uncertain too; ``se_mean`` does
    not, and the interval is made with it.

    Args:
        bt_data: ``object1 object2 result`` with 1 when the first won and 0 when the second did, three such columns
            under other names, or results of any shape that :func:`pairscale.build_bt_data` takes. Ties and rows without
            a winner are left out, and said.
        engine: ``sirt``; ``auto`` is the same.
        ids: all items there are, to be told which were never compared. Every id of the data must then be among them.
        eps: the adjustment of the wins, above 0 and at most 0.5.
        level: of the interval ``lower`` to ``upper``.
        unconnected: what to do when the comparisons fall into parts that were never compared with each other:
            ``error``, or ``separate`` to fit each part on its own scale.
        verbose: say how the engine went.

    Returns:
        The scores with their standard errors, the reliability, and how they were found. Equal input gives equal output,
        in whatever order the rows come.

    Raises:
        TableError: when the columns are of no known shape, an id is missing, or a result is not 1, 0, 0.5 or missing.
        InputError: when the data have ids that are not in ``ids``, or an option is out of range.
        UnknownNameError: when there is no such engine.
        FitError: when there is nothing to fit, or the comparisons fall into parts and ``unconnected`` is ``error``.

    Example:
        >>> rows = [("a", "b", 1), ("b", "c", 1), ("a", "c", 1), ("c", "a", 1)]
        >>> fit = fit_bt_model([{"object1": x, "object2": y, "result": z} for x, y, z in rows])
        >>> fit.theta["ID"].to_list()
        ['a', 'b', 'c']
    """
    _require_options(engine, eps, level, unconnected)
    decided = read_decided(bt_data)
    expected = _all_ids(ids, decided.seen)
    everyone = aggregate(decided)
    counts, said = _compared(everyone)
    notices = [*decided.notices, *said]

    judged = set(counts.ids)
    unjudged = tuple(name for name in expected if name not in judged)
    if unjudged:
        notices.append(notice(f"no score, for want of a decided comparison: {listed(unjudged)}"))
    parts = connected_parts(counts)
    if len(parts) > 1:
        notices.append(_say_parts(counts, parts, unconnected))
    pieces = [counts.part(part) for part in parts] if len(parts) > 1 else [counts]
    roots = [solve_adjusted(piece, eps) for piece in pieces]
    notices += [_say_open(piece, root) for piece, root in zip(pieces, roots, strict=True) if not root.converged]

    z = NormalDist().inv_cdf((1 + level) / 2)
    tables = [_table(piece, root, z) for piece, root in zip(pieces, roots, strict=True)]
    solution = _solution(pieces, roots, eps)
    if verbose:
        end = "converged" if solution.converged else "did not converge"
        notice(f"sirt: {end} after {solution.iterations} steps, log-likelihood {solution.log_likelihood:.4f}")
    exact = all(is_exact(piece) for piece in pieces)
    return BTFit(
        theta=tables[0] if len(tables) == 1 else _stacked(tables),
        reliability=_reliability(roots[0]) if len(roots) == 1 else None,
        engine="sirt",
        fit=solution,
        components=tuple(piece.ids for piece in pieces),
        unjudged=unjudged,
        notices=tuple(notices),
        provenance=Provenance(
            method="sirt",
            settings={
                "eps": eps,
                "level": level,
                "unconnected": unconnected,
                "se_mean": "exact" if exact else "probes",
            },
            seed=None if exact else PROBE_SEED,
            inputs={"comparisons": everyone.digest},
        ),
    )


def summarize_bt_fit(fit: BTFit, decreasing: bool = True, verbose: bool = True) -> pl.DataFrame:
    """The scores of a fit as one table, with the engine and the reliability on every row.

    Args:
        fit: from :func:`fit_bt_model`.
        decreasing: give rank 1 to the highest score; else to the lowest.
        verbose: say why there are no ranks, where there are none.

    Returns:
        ``ID``, ``theta``, ``se``, ``rank``, ``engine``, ``reliability``, ``se_mean``, ``lower``, ``upper``, ``wins``,
        ``comparisons``, and ``component`` where parts were fitted separately; in order of rank. Equal scores share the
        smaller rank.
    """
    table = fit.theta
    parts = len(fit.components)
    if parts > 1:
        if verbose:
            notice(f"no ranks: the {parts:,} parts of this fit are on scales of their own")
        table = table.sort("component", pl.col("theta") * (-1 if decreasing else 1), "ID")
    elif not decreasing:
        table = table.with_columns(rank=_ranks(-table["theta"].to_numpy())).sort("rank", "ID")
    return table.select(
        "ID",
        "theta",
        "se",
        "rank",
        pl.lit(fit.engine).alias("engine"),
        pl.lit(fit.reliability, dtype=pl.Float64).alias("reliability"),
        pl.exclude("ID", "theta", "se", "rank"),
    )


def _require_options(engine: str, eps: float, level: float, unconnected: str) -> None:
    if engine not in _ENGINES:
        raise UnknownNameError(f"there is no engine {engine!r}; there are {listed(_ENGINES)}")
    if not 0 < eps <= 0.5:
        raise InputError(f"eps is {eps}; it must be above 0 and at most 0.5")
    if not 0 < level < 1:
        raise InputError(f"level is {level}; it must be between 0 and 1, such as 0.95")
    if unconnected not in get_args(Unconnected):
        raise InputError(f"unconnected is {unconnected!r}; it must be one of {listed(get_args(Unconnected))}")


def _all_ids(ids: Iterable[Any] | None, seen: Sequence[str]) -> Sequence[str]:
    """All items in code-point order: those given, which must include those seen."""
    if ids is None:
        return seen
    if isinstance(ids, str):
        raise InputError(f"ids is the string {ids!r}; give a list of ids")
    given = set(require_ids(to_frame({"ID": list(ids)}), ["ID"], "ids")["ID"])
    strange = [name for name in seen if name not in given]
    if strange:
        raise InputError(f"bt_data has {len(strange):,} ids that are not in ids: {listed(strange)}")
    return sorted(given)


def _compared(counts: Counts) -> tuple[Counts, list[str]]:
    """The counts of items that met another one, and what is to be said of comparisons of an item with itself."""
    met = np.flatnonzero(counts.comparisons > 2 * counts.self_pairs)
    own = [counts.ids[at] for at in np.flatnonzero(counts.self_pairs)]
    if not len(met):
        raise FitError(f"no comparison is between two different items, only of {listed(own)} with itself")
    said = []
    if own:
        total = int(counts.self_pairs.sum())
        said = [notice(f"self-comparisons of {listed(own)} ({total:,}) each count as a win and a loss, as in sirt")]
    return (counts if len(met) == counts.n_items else counts.part(met)), said


def _say_parts(counts: Counts, parts: Sequence[Ints], unconnected: Unconnected) -> str:
    names = named_parts(counts.ids, parts)
    what = f"the comparisons fall into {len(parts):,} parts never compared with each other: {names}"
    if unconnected == "error":
        raise FitError(
            f"{what}. Their scores share no scale: add comparisons between these parts, or fit each on its own with "
            'pairscale.fit_bt_model(..., unconnected="separate")'
        )
    return notice(f"{what}. Each has a scale of its own, so there are no ranks across them")


def _say_open(counts: Counts, root: Root) -> str:
    which = f" between {named_parts(counts.ids, root.groups)}" if root.groups else ""
    return notice(
        f"no finite scores solve sirt's equations for these comparisons: the distance{which} is open. The scores are "
        f"those after {root.iterations} of sirt's own steps; more comparisons{which and ' between them'} settle it"
    )


def _table(counts: Counts, root: Root, z: float) -> pl.DataFrame:
    variance = mean_variances(counts, root.weights)
    se_mean = pl.Series([None] * counts.n_items if variance is None else np.sqrt(variance), dtype=pl.Float64)
    table = pl.DataFrame(
        {
            "ID": pl.Series(counts.ids, dtype=pl.String),
            "theta": root.theta,
            "se": 1 / np.sqrt(root.information),
            "rank": _ranks(root.theta),
            "se_mean": se_mean,
            "lower": root.theta - z * se_mean,
            "upper": root.theta + z * se_mean,
            "wins": counts.wins.astype(np.int64),
            "comparisons": counts.comparisons.astype(np.int64),
        }
    )
    return table.sort("rank", "ID")


def _ranks(theta: Floats) -> Ints:
    """1 for the highest; scores that follow each other within the rounding share the smaller rank."""
    order = np.argsort(-theta, kind="stable")
    falls = np.concatenate([[True], -np.diff(theta[order]) > _SAME_THETA])
    ranks = np.empty(len(theta), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(np.where(falls, np.arange(1, len(theta) + 1), 0))
    return ranks


def _stacked(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    numbered = [table.with_columns(component=pl.lit(at, dtype=pl.Int64)) for at, table in enumerate(tables, 1)]
    return pl.concat(numbered).with_columns(rank=pl.lit(None, dtype=pl.Int64))


def _reliability(root: Root) -> float | None:
    variance = float(np.var(root.theta, ddof=1))
    if len(root.theta) < 3 or np.ptp(root.theta) <= _SAME_THETA:
        return None
    return 1 - float(np.mean(1 / root.information)) / variance


def _solution(pieces: Sequence[Counts], roots: Sequence[Root], eps: float) -> BTSolution:
    scores = [
        pl.DataFrame({"ID": piece.ids, "score": root.score, "expected": root.expected, "information": root.information})
        for piece, root in zip(pieces, roots, strict=True)
    ]
    return BTSolution(
        iterations=max(root.iterations for root in roots),
        converged=all(root.converged for root in roots),
        log_likelihood=sum(root.log_likelihood for root in roots),
        eps=eps,
        drift=tuple(root.drift for root in roots),
        scores=pl.concat(scores),
    )
