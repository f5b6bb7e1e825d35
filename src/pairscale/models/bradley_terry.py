"""The Bradley–Terry model: from who beat whom to one scale.

In the model the odds that item i beats item j are ``exp(theta_i - theta_j)``. Only differences of theta mean something,
so their mean is set to 0, and only items that a chain of comparisons joins can be put on one scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl
import polars.selectors as cs

from pairscale.core.arrays import Floats, Ints
from pairscale.core.comparisons import AS_NEW, is_bare, say_copies
from pairscale.core.display import PlotMixin, ReportMixin
from pairscale.core.errors import FitError, InputError, UnknownNameError
from pairscale.core.jobs import require_jobs
from pairscale.core.notices import notice
from pairscale.core.options import (
    checked,
    require_choice,
    require_int,
    require_level,
    require_number,
    require_number_or,
    require_seed,
)
from pairscale.core.provenance import Provenance
from pairscale.core.results import Results
from pairscale.core.tables import Table, listed
from pairscale.models.bayes.model import Answers, JudgeParameters, count_outcomes
from pairscale.models.bayes.repeats import RepeatAgreement, repeat_agreement, repeat_weights
from pairscale.models.bayes.settings import Repeats, require_repeats
from pairscale.models.data import (
    Counts,
    Outcomes,
    Ties,
    as_results,
    count_pairs,
    named_parts,
    order_is_known,
    read_outcomes,
    require_all,
)
from pairscale.models.engines import ENGINES, FitEngine, Root
from pairscale.models.linalg import PROBE_SEED, is_exact
from pairscale.models.uncertainty import Uncertainty, assess
from pairscale.pairing.table import linked_groups, numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pairscale.models.bayes.settings import Repeats

Chosen = Literal["beforehand", "adaptive"]
"""How the pairs were chosen: independently of the answers, or by what earlier answers said."""

Unconnected = Literal["error", "separate"]
"""What to do with parts that no comparison joins."""

_SAME_THETA = 1e-9
_LEARNED: tuple[Literal["learned"]] = ("learned",)
_TOO_NARROW = (
    "Then intervals are too narrow: of sirt, mle and firth, 95 % ones covered 65 to 92 % in simulations. Use "
    'model="bayes", or engine="map" with prior_sd="learned" and repeats="learned"'
)

_NO_RELIABILITY = (
    "no reliability: scores from adaptively chosen pairs lie too far apart for one to be read off them; that of these "
    "answers is the reliability of model='bayes'"
)


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """How much it helps to be the first of a pair.

    Attributes:
        b: added to the first item's log-odds to win; above 0, the first is favoured.
        se: its standard error, of the kind that the intervals of the scores are made with.
        lower: the lower end of its interval.
        upper: the upper end of its interval.
    """

    b: float
    se: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class BTSolution:
    """How the scores were found.

    Attributes:
        iterations: steps taken; of several parts, the most.
        converged: whether the engine's equations hold. If not, no finite scores solve them, the scores are those of the
            engine's own steps when it gave up, and a notice names the groups whose distance is open.
        scores: per item, ``ID``, ``score`` (the wins that the engine went by, for ``sirt`` the adjusted ones),
            ``expected`` (E) and ``information`` (I).
    """

    iterations: int
    converged: bool
    scores: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BTFit(PlotMixin, ReportMixin, table="theta", charts=("scores", "ranks", "judges")):
    """Bradley–Terry scores of items, and what is known about them.

    Attributes:
        theta: one row per item, best first: ``ID``, ``theta``, ``se`` (the engine's own standard error), ``rank``,
            ``se_mean`` (the standard error of the difference to the mean of all items), ``lower`` and ``upper``,
            ``wins``, ``comparisons``. Then, where asked for, ``se_robust``, ``se_bootstrap``, ``rank_lower`` and
            ``rank_upper``. Parts that were fitted separately have no ``rank`` and a further column ``component``,
            counted from 1.
        reliability: ``1 - mean(se²) / var(theta)``, the share of the variance that is not error. None for fewer than
            three items, equal scores, separate parts, a reference item or pairs that were chosen adaptively: there it
            means nothing.
        engine: the engine that was used.
        fit: how the scores were found.
        components: the items of each part that comparisons join; one part unless ``unconnected="separate"``.
        unjudged: items without a decided comparison with another item; they have no score.
        notices: what was left out, and what to be careful with.
        provenance: how to get the same again.
        position: the position effect, where it was asked for.
        covariance: where asked for, the covariance of the differences to the mean, of the kind that the intervals are
            made with; rows and columns in the order of ``theta``.
        prior_sd: the standard deviation of the prior of ``map``, also where it was learned; None for other engines.
        repeat_agreement: how far repeats of a pair agree, and how they were counted; None when each counted as new
            evidence.
        comparisons: the comparisons that it was made of.
        outcomes: the same, those that could be used.
        options: the options that it was made with.
    """

    theta: pl.DataFrame
    reliability: float | None
    engine: str
    fit: BTSolution
    components: tuple[tuple[str, ...], ...]
    unjudged: tuple[str, ...]
    notices: tuple[str, ...]
    provenance: Provenance
    position: PositionEffect | None
    covariance: Floats | None
    prior_sd: float | None
    repeat_agreement: RepeatAgreement | None
    comparisons: pl.DataFrame
    outcomes: Outcomes
    options: Mapping[str, Any]

    def __repr__(self) -> str:
        n_comparisons = int(self.theta["comparisons"].sum() / 2)
        facts = [f"{self.theta.height:,} items", f"{n_comparisons:,} comparisons"]
        if len(self.components) > 1:
            facts.append(f"{len(self.components):,} separate parts")
        else:
            reliability = "none" if self.reliability is None else f"{self.reliability:.3f}"
            facts += [f"reliability {reliability}", f"best {listed(self.theta['ID'].head(3).to_list())}"]
        return f"<BTFit by {self.engine}: {', '.join(facts)}>"


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
    weights: str | None = None,
    level: float = 0.95,
    covariance: bool = False,
    cluster: str | None = None,
    bootstrap: int = 0,
    rank_intervals: bool = False,
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
        ties: ``drop`` leaves them out, ``half`` counts half a win for each side. A tie is a result of 0.5, or no
            winner and the ``outcome`` tie.
        weights: the column of what each comparison counts. Twice the weight is twice the comparison, also for standard
            errors (robust and bootstrap ones excepted).
        level: of the intervals, which are ``theta`` ± z times a standard error: of the bootstrap if there is one, else
            the robust one if there are clusters, else ``se_mean``.
        covariance: keep the full covariance.
        cluster: a column, such as ``judge_id``: comparisons of a cluster may depend on each other. Adds ``se_robust``,
            from the sandwich formula, and a bootstrap draws whole clusters.
        bootstrap: rounds of resampling; adds ``se_bootstrap``. ``sirt`` is given multinomial weights, the others
            exponential ones (the Bayesian bootstrap), with which no round loses an item or its only loss.
        rank_intervals: add ``rank_lower`` and ``rank_upper``, from the bootstrap or else from the normal approximation.
        seed: for what is random; one fixed number by default, so that equal input gives equal output.
        unconnected: what to do when the comparisons fall into parts that were never compared with each other:
            ``error``, or ``separate`` to fit each part on its own scale.
        repeats: how to count repeats of a pair: ``independent``, each is new evidence, as in R; ``learned``, by how far
            repeats agree beyond what the scores explain; or that excess agreement, from 0 (independent) to 1 (nothing
            new). A pair asked n times then weighs 1 + (n - 1)(1 - repeats).
        chosen: ``adaptive`` when pairs were chosen by what earlier answers said. There is no reliability then, and a
            notice says that the intervals are too narrow, except with ``map``, a learned prior and learned repeats.
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
    results = as_results(bt_data)
    ordered = order_is_known(results.table)
    if position and not ordered:
        raise InputError(
            "the results list winners and losers without saying who stood first, so there is no position effect to "
            "estimate; leave out `position=`"
        )
    method = _engine(engine, eps, prior_sd, position)
    for name, choices in (("ties", Ties), ("unconnected", Unconnected), ("chosen", Chosen)):
        require_choice(options[name], name, get_args(choices))
    options["level"] = require_level(level)
    options["bootstrap"] = require_int(bootstrap, "bootstrap", least=2 if bootstrap else 0)
    options["n_jobs"] = require_jobs(n_jobs)
    options["seed"] = PROBE_SEED if seed is None else require_seed(seed)
    outcomes = read_outcomes(results, ties=ties, weights=weights, cluster=cluster)
    expected = require_all(ids, outcomes.ids)
    outcomes, agreement = _weighed(outcomes, repeats, ordered=ordered)
    with_self = method.name == "sirt" and not position
    everyone, units = count_pairs(outcomes, ordered=position, with_self=with_self)
    counts = _compared(everyone)
    notices = [*outcomes.notices, *_say_self_pairs(outcomes, with_self), *_say_copies(outcomes, everyone, agreement)]
    if chosen == "adaptive" and (method.prior_sd != "learned" or agreement is None):
        notices.append(notice(f"the pairs were chosen by what earlier answers said. {_TOO_NARROW}"))
    if chosen == "adaptive":
        notices.append(notice(_NO_RELIABILITY))
    unjudged = tuple(sorted(set(expected) - set(counts.ids)))
    if unjudged:
        notices.append(notice(f"no score, because no comparison was decided: {listed(unjudged)}"))
    pieces = _pieces(counts, options, notices)
    place = None if reference is None else _place(counts, reference, method)
    method = method.fixed(counts)
    roots = []
    uncertainties = []
    tables = []
    for piece in pieces:
        root, root_notices = method.answer(piece)
        uncertainty = assess(piece, units, root, method, options, place)
        roots.append(root)
        uncertainties.append(uncertainty)
        tables.append(_table(piece, root, uncertainty, method, place))
        notices += [*root_notices, *uncertainty.notices]
    theta = _stacked(tables)
    if outcomes.weight is None and ties == "drop":
        theta = theta.cast({"wins": pl.Int64, "comparisons": pl.Int64})
    solution = _solution(pieces, roots)
    if verbose:
        end = "converged" if solution.converged else "did not converge"
        notice(f"{method.name}: {end} after {solution.iterations} steps")
    reliability = None
    if len(pieces) == 1 and reference is None and chosen != "adaptive":
        reliability = _reliability(theta)
    return BTFit(
        theta=theta,
        reliability=reliability,
        engine=method.name,
        fit=solution,
        components=tuple(piece.ids for piece in pieces),
        unjudged=unjudged,
        notices=tuple(notices),
        provenance=_provenance(method, options, everyone.digest, exact=all(map(is_exact, pieces))),
        position=_position(roots[0], uncertainties[0]) if position else None,
        covariance=_in_order(uncertainties[0].covariance, theta, counts),
        prior_sd=method.prior_sd if method.name == "map" and method.prior_sd != "learned" else None,
        repeat_agreement=agreement,
        comparisons=results.table,
        outcomes=outcomes,
        options=options,
    )


def with_rank_intervals(fit: BTFit) -> BTFit:
    """The same fit with rank intervals, made again where it has none."""
    if "rank_lower" in fit.theta.columns:
        return fit
    return fit_bt_model(Results(fit.comparisons), **{**fit.options, "rank_intervals": True})


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


def _engine(engine: str, eps: float, prior_sd: float | Literal["learned"], position: bool) -> FitEngine:
    name = "sirt" if engine == "auto" else engine
    if name not in ENGINES:
        raise UnknownNameError(f"there is no engine {engine!r}; there are {listed(('auto', *ENGINES))}")
    eps = require_number(eps, "eps", above=0, most=0.5)
    prior_sd = require_number_or(prior_sd, "prior_sd", _LEARNED, above=0)
    if prior_sd == "learned" and name != "map":
        raise InputError(f"prior_sd='learned' is for engine='map', not {name!r}")
    return FitEngine(name, eps, prior_sd, position)


def _weighed(outcomes: Outcomes, repeats: Repeats, *, ordered: bool) -> tuple[Outcomes, RepeatAgreement | None]:
    """The comparisons with each repeat weighed for what it adds, and how far repeats agree; None when independent."""
    if require_repeats(repeats) == "independent":
        return outcomes, None
    apart = outcomes.first != outcomes.second
    answers = Answers(
        outcomes.first[apart],
        outcomes.second[apart],
        outcomes.result[apart],
        len(outcomes.ids),
        None if outcomes.times is None else outcomes.times[apart],
    )
    model = JudgeParameters(lapse=True, position=ordered)
    agreement = repeat_agreement(answers, count_outcomes(answers, position=ordered), model, repeats)
    share = np.ones(len(apart))
    share[apart] = repeat_weights(answers, agreement.rho)
    weight = share if outcomes.weight is None else outcomes.weight * share
    return replace(outcomes, weight=weight), agreement


def _say_copies(outcomes: Outcomes, counts: Counts, agreement: RepeatAgreement | None) -> list[str]:
    """Say how many rows repeat others, and how they are counted; without an agreement, each counts as new evidence."""
    if is_bare(outcomes.table) and ((counts.won > 0) & (counts.won < counts.times)).any():
        return []  # answers that disagree were given apart; this needs no look at the rows
    apart = outcomes.first != outcomes.second
    counted = AS_NEW
    if agreement is not None and outcomes.weight is not None:
        counted = f"the {apart.sum():,} comparisons count as {outcomes.weight[apart].sum():,.0f}"
    return say_copies(outcomes.table.filter(apart), counted)


def _say_self_pairs(outcomes: Outcomes, with_self: bool) -> list[str]:
    with_itself = outcomes.first == outcomes.second
    if not with_itself.any():
        return []
    names = listed(outcomes.table.filter(with_itself)["ID1"].unique().sort().to_list())
    what = "each count as a win and a loss, as in sirt" if with_self else "are left out"
    return [notice(f"self-comparisons of {names} {what}")]


def _compared(counts: Counts) -> Counts:
    """The counts of items that met another one."""
    compared = np.flatnonzero(counts.comparisons > 2 * counts.self_pairs)
    if not len(compared):
        raise FitError("no comparison is between two different items")
    return counts if len(compared) == counts.n_items else counts.part(compared)


def _pieces(counts: Counts, options: Mapping[str, Any], notices: list[str]) -> list[Counts]:
    """The counts of each part that comparisons hold together."""
    parts = linked_groups(counts.first, counts.second, counts.n_items)
    if len(parts) == 1:
        return [counts]
    names = named_parts(counts.ids, parts)
    what = f"the comparisons fall into {len(parts):,} parts never compared with each other: {names}"
    if options["unconnected"] == "error":
        raise FitError(
            f"{what}. Their scores share no scale: add comparisons between these parts, or fit each on its own with "
            '`unconnected="separate"`'
        )
    notices.append(notice(f"{what}. Each has a scale of its own, so there are no ranks across them"))
    joined = ("reference", "position", "covariance", "cluster", "bootstrap", "rank_intervals")
    if any(options[name] for name in joined) or options["prior_sd"] == "learned":
        raise FitError(
            f"{', '.join(joined)} and prior_sd='learned' are only for comparisons that hang together; fit each part by "
            "itself"
        )
    return [counts.part(part) for part in parts]


def _place(counts: Counts, reference: str, method: FitEngine) -> int:
    if method.name == "sirt" or reference not in counts.ids:
        raise InputError(
            f"reference {reference!r} must be one of the compared items, and the engine 'mle', 'map' or 'firth'"
        )
    return counts.ids.index(reference)


def _table(
    counts: Counts, root: Root, uncertainty: Uncertainty, method: FitEngine, reference: int | None
) -> pl.DataFrame:
    theta = root.at.theta if reference is None else root.at.theta - root.at.theta[reference]
    margin = uncertainty.z * uncertainty.interval_se
    table = pl.DataFrame(
        {
            "ID": pl.Series(counts.ids, dtype=pl.String),
            "theta": theta,
            "se": 1 / np.sqrt(root.now.diagonal) if method.name == "sirt" else uncertainty.se,
            "rank": _ranks(theta),
            "se_mean": uncertainty.se_mean,
            "lower": theta - margin,
            "upper": theta + margin,
            "wins": counts.wins,
            "comparisons": counts.comparisons,
            **uncertainty.columns,
        }
    )
    return table.with_columns(cs.float().fill_nan(None)).sort("rank", "ID")


def _stacked(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The tables of all parts as one; ranks mean nothing across parts."""
    if len(tables) == 1:
        return tables[0]
    parts = [table.with_columns(component=pl.lit(at, dtype=pl.Int64)) for at, table in enumerate(tables, 1)]
    return pl.concat(parts).with_columns(rank=pl.lit(None, dtype=pl.Int64))


def _ranks(theta: Floats) -> Ints:
    """1 for the highest; scores that follow each other within the rounding share the smaller rank."""
    order = np.argsort(-theta, kind="stable")
    falls = np.concatenate([[True], -np.diff(theta[order]) > _SAME_THETA])
    ranks = np.empty(len(theta), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(np.where(falls, np.arange(1, len(theta) + 1), 0))
    return ranks


def _in_order(covariance: Floats | None, table: pl.DataFrame, counts: Counts) -> Floats | None:
    """The covariance with rows and columns in the order of the table."""
    if covariance is None:
        return None
    order = numbered(table["ID"], pl.Series(counts.ids))
    return covariance[np.ix_(order, order)]


def _reliability(table: pl.DataFrame) -> float | None:
    theta = table["theta"].to_numpy()
    if len(theta) < 3 or np.ptp(theta) <= _SAME_THETA or table["se"].has_nulls():
        return None
    return 1 - float(np.mean(table["se"].to_numpy() ** 2)) / float(np.var(theta, ddof=1))


def _solution(pieces: Sequence[Counts], roots: Sequence[Root]) -> BTSolution:
    scores = [
        pl.DataFrame(
            {"ID": piece.ids, "score": root.score, "expected": root.now.expected, "information": root.now.diagonal}
        )
        for piece, root in zip(pieces, roots, strict=True)
    ]
    return BTSolution(
        iterations=max(root.iterations for root in roots),
        converged=all(root.converged for root in roots),
        scores=pl.concat(scores),
    )


def _provenance(method: FitEngine, options: Mapping[str, Any], digest: str, *, exact: bool) -> Provenance:
    """How to get the same again."""
    settings: dict[str, Any] = {}
    if method.name == "sirt":
        settings["eps"] = method.eps
    if method.name == "map":
        settings["prior_sd"] = method.prior_sd
    for name in ("level", "unconnected", "reference", "position", "ties", "weights", "cluster", "bootstrap", "repeats"):
        settings[name] = options[name]
    settings["se_mean"] = "exact" if exact else "probes"
    seed = None if exact else PROBE_SEED
    if options["bootstrap"] or options["rank_intervals"]:
        seed = options["seed"]
    return Provenance(method.name, settings, seed, {"comparisons": digest})


def _position(root: Root, uncertainty: Uncertainty) -> PositionEffect:
    b = root.at.b
    se = float(uncertainty.further_se[0])
    return PositionEffect(b, se, b - uncertainty.z * se, b + uncertainty.z * se)
