"""The Bradley–Terry model: from who beat whom to one scale.

In the model the odds that item i beats item j are ``exp(theta_i - theta_j)``. Only differences of theta mean something,
so their mean is set to 0, and only items that a chain of comparisons joins can be put on one scale.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from pairscale.core.arrays import Floats, Ints
from pairscale.core.comparisons import says_who_stood_first
from pairscale.core.errors import FitError, InputError, UnknownNameError
from pairscale.core.jobs import require_jobs
from pairscale.core.notices import notice
from pairscale.core.options import (
    checked,
    require_choice,
    require_flag,
    require_int,
    require_level,
    require_number,
    require_number_or,
    require_seed,
)
from pairscale.core.provenance import Provenance
from pairscale.core.tables import Table, listed, require_ids, to_frame
from pairscale.models._bt_fit import BTFit, BTSolution, PositionEffect, TieEffect, WinProbability
from pairscale.models._counts import Counts, aggregate, connected_parts, named_parts, read_decided
from pairscale.models._engines import ENGINES, FitEngine
from pairscale.models._evidence import Chosen, say_chosen, say_copies_of, weigh_evidence
from pairscale.models._information import PROBE_SEED, is_exact
from pairscale.models._rows import Decided, Ties
from pairscale.models._uncertainty import Interval, Requested, Uncertainty, assess, seed_used

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pairscale.models.bayes.settings import Repeats
    from pairscale.models.likelihood import Root

__all__ = [
    "BTFit",
    "BTSolution",
    "Chosen",
    "PositionEffect",
    "TieEffect",
    "Ties",
    "Unconnected",
    "WinProbability",
    "fit_bt_model",
    "summarize_bt_fit",
]

Unconnected = Literal["error", "separate"]
"""What to do with parts that no comparison joins."""

_SAME_THETA = 1e-9
_LEARNED: tuple[Literal["learned"]] = ("learned",)


@checked
def fit_bt_model(
    bt_data: Table,
    *,
    engine: str = "auto",
    ids: Iterable[Any] | None = None,
    eps: float = 0.3,
    prior_sd: float | Literal["learned"] = 1.0,
    reference: str | None = None,
    position: bool = False,
    ties: Ties = "drop",
    weights: str | Sequence[float] | None = None,
    level: float = 0.95,
    se: bool = True,
    covariance: bool = False,
    cluster: str | Sequence[Any] | None = None,
    bootstrap: int = 0,
    rank_intervals: bool = False,
    interval: Interval | Literal["auto"] = "auto",
    seed: int | None = None,
    unconnected: Unconnected = "error",
    repeats: Repeats = "independent",
    chosen: Chosen = "beforehand",
    verbose: bool = False,
    n_jobs: int | None = None,
) -> BTFit:
    """Fit a Bradley–Terry model: a score for every item, from comparisons of two.

    ``P(i beats j) = 1 / (1 + exp(theta_j - theta_i))``, with mean(theta) = 0. The engines:

    - ``sirt`` gives the figures of R's ``sirt::btm(fix.eta = 0, ignore.ties = TRUE)``: an item's wins w in M
      comparisons are moved towards the middle, ``eps + (M - 2 eps) / M * w``, so that one that won everything still has
      a finite score; ``se = 1 / sqrt(I)`` with I the item's own information. That ``se`` leaves out that the opponents'
      scores are uncertain too; ``se_mean`` does not, and the interval is made with it.
    - ``mle``: maximum likelihood. It exists when every item can be reached from every other along wins; if not, the
      error names the items that stand in the way.
    - ``map``: the mode with a prior N(0, prior_sd²) for every score, which exists always and is drawn to the middle.
    - ``firth``: the likelihood times the root of the information's determinant (Jeffreys' prior), which exists always
      and is nearly unbiased; for two items, half a win more each.

    Args:
        bt_data: ``object1 object2 result`` with 1 when the first won and 0 when the second did, three such columns
            under other names, or results of any shape that :func:`pairscale.build_bt_data` takes. Rows without a winner
            are left out, with a notice.
        engine: ``sirt``, ``mle``, ``map`` or ``firth``; ``auto`` is ``sirt``.
        ids: all items there are, so that those that were never compared are reported. Every id of the data must
            then be among them.
        eps: the adjustment of the wins for ``sirt``, above 0 and at most 0.5.
        prior_sd: for ``map``: the standard deviation of the prior, or ``learned`` from the comparisons, where the
            evidence for it is largest.
        reference: an item whose score is set to 0, as in R's BradleyTerry2: ``theta``, ``se`` and the interval are
            then of differences to it. Not for ``sirt``.
        position: add an effect of being the first: ``logit P(first wins) = theta_1 - theta_2 + b``.
        ties: ``drop`` leaves them out, ``half`` counts half a win for each side, and ``davidson`` models them:
            ``P(tie) = nu sqrt(p_1 p_2) / (p_1 + p_2 + nu sqrt(p_1 p_2))`` with p = exp(theta). A tie is a result of
            0.5, or no winner and the ``outcome`` tie.
        weights: what each comparison counts: a column, or one number per row. Twice the weight is twice the comparison,
            also for standard errors (robust and bootstrap ones excepted).
        level: of the intervals.
        se: whether standard errors and intervals are wanted; without them, large data are faster.
        covariance: keep the full covariance, which :meth:`BTFit.win_probability` needs for its interval.
        cluster: a column (such as ``judge_id``) or one name per row: comparisons of a cluster may depend on each other.
            Adds ``se_robust``, from the sandwich formula, and a bootstrap draws whole clusters.
        bootstrap: rounds of resampling; adds ``se_bootstrap``. ``sirt`` is given multinomial weights, the others
            exponential ones (the Bayesian bootstrap), with which no round loses an item or its only loss.
        rank_intervals: add ``rank_lower`` and ``rank_upper``, from the bootstrap or else from the normal approximation.
        interval: which standard error intervals are made with, ``theta`` ± z · it: ``model`` (``se_mean``), ``robust``
            or ``bootstrap``; ``auto`` is the bootstrap if there is one, else robust if there are clusters, else the
            model.
        seed: for what is random; one fixed number by default, so that equal input gives equal output.
        unconnected: what to do when the comparisons fall into parts that were never compared with each other:
            ``error``, or ``separate`` to fit each part on its own scale.
        repeats: how to count repeats of a pair: ``independent``, each is new evidence, as in R; ``learned``, by how far
            repeats agree beyond what the scores explain; or that excess agreement, from 0 (independent) to 1 (nothing
            new). A pair asked n times then weighs 1 + (n - 1)(1 - repeats).
        chosen: ``adaptive`` when pairs were chosen by what earlier answers said; a notice then says that the intervals
            are too narrow, except with ``map``, a learned prior and learned repeats.
        verbose: say how the engine went.
        n_jobs: processes for the bootstrap, -1 for all cores; by default one, or what ``joblib.parallel_config`` says.

    Returns:
        The scores with their standard errors, the reliability, and how they were found. Equal input gives equal output,
        in whatever order the rows come. With ``weights`` or kept ties, ``wins`` (half a win for a tie) and
        ``comparisons`` are not whole numbers any more.

    Raises:
        TableError: when the columns are of no known shape, an id is missing, or a result is not 1, 0, 0.5 or missing.
        InputError: when the data have ids that are not in ``ids``, or an option is out of range.
        UnknownNameError: when there is no such engine.
        FitError: when there is nothing to fit, the engine has no finite answer, or the comparisons fall into parts and
            ``unconnected`` is ``error``.

    Example:
        >>> rows = [("a", "b", 1), ("b", "c", 1), ("a", "c", 1), ("c", "a", 1)]
        >>> fit = fit_bt_model([{"object1": x, "object2": y, "result": z} for x, y, z in rows])
        >>> fit.theta["ID"].to_list()
        ['a', 'b', 'c']
    """
    options = {name: value for name, value in dict(locals()).items() if name not in ("bt_data", "ids", "verbose")}
    frame = to_frame(bt_data, "results")
    if position:
        _require_sides(frame)
    method = _engine(engine, eps, prior_sd, position, ties)
    asked = _asked(level, se, interval, covariance, cluster is not None, bootstrap, rank_intervals, seed, n_jobs)
    require_choice(unconnected, "unconnected", get_args(Unconnected))
    decided = read_decided(frame, ties=ties, weights=weights, cluster=cluster)
    expected = _all_ids(ids, decided.ids)
    decided, agreement = weigh_evidence(decided, repeats)
    everyone = aggregate(decided, ties=ties, ordered=position)
    counts, said = _compared(everyone, method)
    notices = [*decided.notices, *said, *say_copies_of(decided, agreement)]
    if asked.se and (method.prior_sd != "learned" or agreement is None):
        notices += say_chosen(require_choice(chosen, "chosen", get_args(Chosen)), method)
    unjudged, said = _unjudged(expected, counts)
    notices += said
    parts = connected_parts(counts)
    if len(parts) > 1:
        notices.append(_say_parts(counts, parts, unconnected))
        _require_one_scale(method, asked, reference, cluster is not None)
    asked = replace(asked, reference=_place(counts, reference, method))
    method = method.fixed(counts)
    pieces = [counts.part(part) for part in parts] if len(parts) > 1 else [counts]
    roots, known, said = _solved(pieces, decided, method, asked)
    notices += said
    whole = decided.weight is None and ties == "drop"
    tables = [
        _table(piece, root, one, method, asked.reference, whole=whole)
        for piece, root, one in zip(pieces, roots, known, strict=True)
    ]
    solution = _solution(pieces, roots, method)
    if verbose:
        _say_how(method, solution)
    exact = all(is_exact(piece) for piece in pieces)
    settings = method.settings | _settings(options, asked, exact=exact)
    order = None if len(tables) > 1 else _order(tables[0], counts)
    return BTFit(
        theta=tables[0] if len(tables) == 1 else _stacked(tables),
        reliability=_reliability(tables[0], reference) if len(roots) == 1 else None,
        engine=method.name,
        fit=solution,
        components=tuple(piece.ids for piece in pieces),
        unjudged=unjudged,
        notices=tuple(notices),
        provenance=Provenance(method.name, settings, seed_used(asked, exact=exact), {"comparisons": everyone.digest}),
        position=_position(roots[0], known[0]) if position else None,
        ties=_tie_effect(roots[0], known[0]) if ties == "davidson" else None,
        covariance=None if known[0].covariance is None else known[0].covariance[np.ix_(order, order)],  # type: ignore[arg-type]
        prior_sd=method.spread if method.name == "map" else None,
        repeat_agreement=agreement,
        comparisons=frame,
        options=options,
    )


def with_rank_intervals(fit: BTFit) -> BTFit:
    """The same fit with rank intervals, made again where it has none."""
    if "rank_lower" in fit.theta.columns:
        return fit
    if fit.comparisons is None:
        raise InputError("this fit has no rank intervals; fit_bt_model(..., rank_intervals=True) makes them")
    return fit_bt_model(fit.comparisons, **{**fit.options, "rank_intervals": True})


def _solved(
    pieces: Sequence[Counts], decided: Decided, method: FitEngine, asked: Requested
) -> tuple[list[Root], list[Uncertainty], list[str]]:
    """The maximum of every piece, how sure it is, and the notices of both."""
    answers = [method.answer(piece) for piece in pieces]
    roots = [root for root, _ in answers]
    known = [assess(piece, root, decided, method, asked) for piece, root in zip(pieces, roots, strict=True)]
    said = [*(notices for _, notices in answers), *(one.notices for one in known)]
    return roots, known, [text for notices in said for text in notices]


def _settings(options: Mapping[str, Any], asked: Requested, *, exact: bool) -> dict[str, Any]:
    """The options of a fit for the provenance."""
    return {
        "level": options["level"], "unconnected": options["unconnected"],
        "se_mean": ("exact" if exact else "probes") if options["se"] else None, "reference": options["reference"],
        "position": options["position"], "ties": options["ties"], "weights": _named(options["weights"]),
        "cluster": _named(options["cluster"]), "bootstrap": options["bootstrap"],
        "interval": asked.interval if options["se"] else None, "repeats": options["repeats"],
    }  # fmt: skip


def _named(column: str | Sequence[Any] | None) -> str | None:
    """The column for the provenance; values that were given one by one are only said to be there."""
    return column if column is None or isinstance(column, str) else "given"


def _require_sides(bt_data: Table) -> None:
    if not says_who_stood_first(bt_data):
        raise InputError(
            "the results list winners and losers without saying who stood first, so there is no position effect to "
            "estimate; leave out `position=`"
        )


def _unjudged(expected: Sequence[str], counts: Counts) -> tuple[tuple[str, ...], list[str]]:
    """The items that no comparison decided, and what is said of them."""
    judged = set(counts.ids)
    found = tuple(name for name in expected if name not in judged)
    return found, [notice(f"no score, because no comparison was decided: {listed(found)}")] if found else []


def _say_how(method: FitEngine, solution: BTSolution) -> None:
    end = "converged" if solution.converged else "did not converge"
    notice(f"{method.name}: {end} after {solution.iterations} steps, log-likelihood {solution.log_likelihood:.4f}")


@checked
def summarize_bt_fit(fit: BTFit, decreasing: bool = True, verbose: bool = True) -> pl.DataFrame:
    """The scores of a fit as one table, with the engine and the reliability on every row.

    Args:
        fit: from :func:`fit_bt_model`.
        decreasing: give rank 1 to the highest score; else to the lowest.
        verbose: say why there are no ranks, where there are none.

    Returns:
        ``ID``, ``theta``, ``se``, ``rank``, ``engine``, ``reliability``, ``se_mean``, ``lower``, ``upper``, ``wins``,
        ``comparisons``, what else was asked for, and ``component`` where parts were fitted separately; in order of
        rank. Equal scores share the smaller rank.

    Example:
        >>> import pairscale as ps
        >>> summarize_bt_fit(ps.fit_bt_model(ps.example_writing_results)).select("ID", "rank", "engine").row(0)
        ('S20', 1, 'sirt')
    """
    table = fit.theta
    parts = len(fit.components)
    if parts > 1:
        if verbose:
            notice(f"no ranks: the {parts:,} parts of this fit are on scales of their own")
        table = table.sort("component", pl.col("theta") * (-1 if decreasing else 1), "ID")
    elif not decreasing:
        table = table.with_columns(rank=_ranks(-table["theta"].to_numpy())).sort("rank", "ID")
        if "rank_lower" in table.columns:
            # What was the worst place is now the best one.
            last = table.height + 1
            table = table.with_columns(rank_lower=last - pl.col("rank_upper"), rank_upper=last - pl.col("rank_lower"))
    return table.select(
        "ID",
        "theta",
        "se",
        "rank",
        pl.lit(fit.engine).alias("engine"),
        pl.lit(fit.reliability, dtype=pl.Float64).alias("reliability"),
        pl.exclude("ID", "theta", "se", "rank"),
    )


def _engine(engine: str, eps: float, prior_sd: float | Literal["learned"], position: bool, ties: Ties) -> FitEngine:
    name = next((known for known in ENGINES if known == ("sirt" if engine == "auto" else engine)), None)
    if name is None:
        raise UnknownNameError(f"there is no engine {engine!r}; there are {listed(('auto', *ENGINES))}")
    eps = require_number(eps, "eps", above=0, most=0.5)
    prior_sd = require_number_or(prior_sd, "prior_sd", _LEARNED, above=0)
    if prior_sd == "learned" and name != "map":
        raise InputError(f"prior_sd='learned' is for engine='map', not {name!r}")
    ties = require_choice(ties, "ties", get_args(Ties))
    return FitEngine(name, eps, prior_sd, require_flag(position, "position"), ties)


def _asked(
    level: float,
    se: bool,
    interval: str,
    covariance: bool,
    clusters: bool,
    bootstrap: int,
    ranks: bool,
    seed: int | None,
    n_jobs: int | None,
) -> Requested:
    level, bootstrap = require_level(level), require_int(bootstrap, "bootstrap", least=0)
    if bootstrap:
        require_int(bootstrap, "bootstrap", least=2)
    best: Interval = "bootstrap" if bootstrap else "robust" if clusters else "model"
    asked = require_choice(interval, "interval", ("auto", *get_args(Interval)))
    kind: Interval = best if asked == "auto" else asked
    if (kind == "robust" and not clusters) or (kind == "bootstrap" and not bootstrap):
        raise InputError(f"interval={kind!r} needs {'cluster' if kind == 'robust' else 'bootstrap'}=")
    if not se and (covariance or clusters or bootstrap or ranks):
        raise InputError("se=False leaves nothing for covariance, cluster, bootstrap or rank_intervals to be made of")
    number = require_seed(seed)
    return Requested(
        n_jobs=require_jobs(n_jobs),
        level=level,
        se=bool(se),
        interval=kind,
        covariance=bool(covariance),
        bootstrap=bootstrap,
        ranks=bool(ranks),
        seed=PROBE_SEED if number is None else number,
        reference=None,
    )


def _all_ids(ids: Iterable[Any] | None, seen: Sequence[str]) -> Sequence[str]:
    """All items in code-point order: those given, which must include those seen."""
    if ids is None:
        return seen
    if isinstance(ids, str):
        raise InputError(f"ids is the string {ids!r}; give a list of ids")
    given = set(require_ids(to_frame({"ID": list(ids)}), ["ID"], "ids")["ID"])
    strange = [name for name in seen if name not in given]
    if strange:
        raise InputError(f"the results have {len(strange):,} ids that are not in ids: {listed(strange)}")
    return sorted(given)


def _compared(counts: Counts, method: FitEngine) -> tuple[Counts, list[str]]:
    """The counts of items that met another one, and what is to be said of comparisons of an item with itself."""
    met = np.flatnonzero(counts.comparisons > 2 * counts.self_pairs)
    own = [counts.ids[at] for at in np.flatnonzero(counts.self_pairs)]
    if not len(met):
        raise FitError(f"no comparison is between two different items, only of {listed(own)} with itself")
    said = []
    if own:
        what = "each count as a win and a loss, as in sirt" if method.keeps_self_pairs else "are left out"
        said.append(notice(f"self-comparisons of {listed(own)} ({counts.self_pairs.sum():,g}) {what}"))
    kept = counts if method.keeps_self_pairs or not own else counts.without_self_pairs()
    if kept.tied is not None and not kept.tied.any():
        said.append(notice("there are no ties: nu is 0, and the model is that without ties"))
        kept = replace(kept, tied=None)
    return (kept if len(met) == kept.n_items else kept.part(met)), said


def _say_parts(counts: Counts, parts: Sequence[Ints], unconnected: Unconnected) -> str:
    names = named_parts(counts.ids, parts)
    what = f"the comparisons fall into {len(parts):,} parts never compared with each other: {names}"
    if unconnected == "error":
        raise FitError(
            f"{what}. Their scores share no scale: add comparisons between these parts, or fit each on its own with "
            '`unconnected="separate"`'
        )
    return notice(f"{what}. Each has a scale of its own, so there are no ranks across them")


def _require_one_scale(method: FitEngine, asked: Requested, reference: str | None, clusters: bool) -> None:
    options = {
        "reference": reference is not None,
        "position": method.position,
        "prior_sd='learned'": method.prior_sd == "learned",
        "ties='davidson'": method.ties == "davidson",
        "covariance": asked.covariance,
        "cluster": clusters,
        "bootstrap": asked.bootstrap > 0,
        "rank_intervals": asked.ranks,
    }
    given = [name for name, there in options.items() if there]
    if given:
        raise FitError(f"{', '.join(given)}: only for comparisons that hang together; fit each part by itself")


def _place(counts: Counts, reference: str | None, method: FitEngine) -> int | None:
    if reference is None:
        return None
    if method.name == "sirt":
        raise InputError("reference is for the engines 'mle', 'map' and 'firth'; sirt's scores have the mean 0")
    if reference not in counts.ids:
        raise InputError(f"reference {reference!r} is none of the compared items {listed(counts.ids)}")
    return counts.ids.index(reference)


def _table(
    counts: Counts, root: Root, known: Uncertainty, method: FitEngine, reference: int | None, *, whole: bool
) -> pl.DataFrame:
    def column(values: Floats | None) -> pl.Series:
        return pl.Series([None] * counts.n_items if values is None else values, dtype=pl.Float64)

    theta = root.at.theta if reference is None else root.at.theta - root.at.theta[reference]
    own = 1 / np.sqrt(root.diagonal) if method.name == "sirt" else known.se_mean
    number = np.int64 if whole else np.float64
    table = pl.DataFrame(
        {
            "ID": pl.Series(counts.ids, dtype=pl.String),
            "theta": theta,
            "se": column(own if reference is None else known.se_reference),
            "rank": _ranks(theta),
            "se_mean": column(known.se_mean),
            "lower": column(known.lower),
            "upper": column(known.upper),
            "wins": counts.wins.astype(number),
            "comparisons": counts.comparisons.astype(number),
            **dict(known.columns),
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


def _order(table: pl.DataFrame, counts: Counts) -> Ints:
    """Each row of the table as its place in the counts."""
    place = {name: at for at, name in enumerate(counts.ids)}
    return np.array([place[name] for name in table["ID"]], dtype=np.int64)


def _stacked(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    numbered = [table.with_columns(component=pl.lit(at, dtype=pl.Int64)) for at, table in enumerate(tables, 1)]
    return pl.concat(numbered).with_columns(rank=pl.lit(None, dtype=pl.Int64))


def _reliability(table: pl.DataFrame, reference: str | None) -> float | None:
    theta, se = table["theta"].to_numpy(), table["se"].to_numpy()
    if reference is not None or len(theta) < 3 or np.ptp(theta) <= _SAME_THETA or not np.isfinite(se).all():
        return None
    return 1 - float(np.mean(se**2)) / float(np.var(theta, ddof=1))


def _solution(pieces: Sequence[Counts], roots: Sequence[Root], method: FitEngine) -> BTSolution:
    scores = [
        pl.DataFrame({"ID": piece.ids, "score": root.score, "expected": root.expected, "information": root.diagonal})
        for piece, root in zip(pieces, roots, strict=True)
    ]
    return BTSolution(
        iterations=max(root.iterations for root in roots),
        converged=all(root.converged for root in roots),
        log_likelihood=sum(root.log_likelihood for root in roots),
        eps=method.eps if method.name == "sirt" else None,
        drift=tuple(root.drift for root in roots if root.drift is not None),
        scores=pl.concat(scores),
    )


def _position(root: Root, known: Uncertainty) -> PositionEffect:
    se, lower, upper = (
        None if values is None else float(values[0])
        for values in (known.extra_se, known.extra_lower, known.extra_upper)
    )
    return PositionEffect(root.at.b, se, lower, upper)


def _tie_effect(root: Root, known: Uncertainty) -> TieEffect:
    if not root.at.ties:
        return TieEffect(0.0, None, None, None)
    nu = root.at.nu
    if known.extra_se is None or known.extra_lower is None or known.extra_upper is None:
        return TieEffect(nu, None, None, None)
    lower, upper = np.exp(known.extra_lower[-1]), np.exp(known.extra_upper[-1])
    return TieEffect(nu, nu * float(known.extra_se[-1]), float(lower), float(upper))
