"""What a Bradley–Terry fit is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.core.display import PlotMixin, ReportMixin, ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.options import require_level
from pairscale.core.tables import listed
from pairscale.models.likelihood import outcome_probabilities

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.arrays import Floats
    from pairscale.core.provenance import Provenance
    from pairscale.models.bayes.repeats import RepeatAgreement

__all__ = ["BTFit", "BTSolution", "PositionEffect", "TieEffect", "WinProbability"]


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
    se: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class TieEffect:
    """How often equals tie: with probability ``nu / (2 + nu)``.

    Attributes:
        nu: Davidson's parameter, 0 or more.
        se: its standard error; None when there is no tie, so that nu is 0.
        lower: the lower end of its interval, which is made for log nu.
        upper: the upper end of its interval.
    """

    nu: float
    se: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, repr=False)
class WinProbability(ReprMixin):
    """The probability that one item beats another, neither of them being favoured by its place.

    Attributes:
        probability: that it wins.
        lower: the lower end of the interval; None when the fit did not keep its covariance.
        upper: the upper end of the interval.
        tie: the probability of a tie; 0 unless ties are modelled.
    """

    probability: float
    lower: float | None
    upper: float | None
    tie: float

    def __str__(self) -> str:
        interval = "" if self.lower is None or self.upper is None else f", {self.lower:.3f} to {self.upper:.3f}"
        return f"wins with probability {self.probability:.3f}{interval}{f', ties {self.tie:.3f}' if self.tie else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class BTSolution:
    """How the scores were found.

    Attributes:
        iterations: steps taken; of several parts, the most.
        converged: whether the engine's equations hold. If not, no finite scores solve them, the scores are those of the
            engine's own steps when it gave up, and a notice names the groups whose distance is open.
        log_likelihood: of the comparisons, at these scores; without adjustment, prior or penalty.
        eps: the adjustment of the wins; None for another engine than ``sirt``.
        drift: for ``sirt``, per part, how far the adjusted wins are from the expected ones, in units of the information
            (c in ``s - E = c I``).
        scores: per item, ``ID``, ``score`` (the wins that the engine went by, for ``sirt`` the adjusted ones),
            ``expected`` (E) and ``information`` (I).
    """

    iterations: int
    converged: bool
    log_likelihood: float
    eps: float | None
    drift: tuple[float, ...]
    scores: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BTFit(PlotMixin, ReportMixin, table="theta", charts=("scores", "ranks", "wins")):
    """Bradley–Terry scores of items, and what is known about them.

    Attributes:
        theta: one row per item, best first: ``ID``, ``theta``, ``se`` (the engine's own standard error), ``rank``,
            ``se_mean`` (the standard error of the difference to the mean of all items), ``lower`` and ``upper``,
            ``wins``, ``comparisons``. Then, where asked for, ``se_robust``, ``se_bootstrap``, ``rank_lower`` and
            ``rank_upper``. Parts that were fitted separately have no ``rank`` and a further column ``component``,
            counted from 1.
        reliability: ``1 - mean(se²) / var(theta)``, the share of the variance that is not error. None for fewer than
            three items, equal scores, separate parts or a reference item: there it means nothing.
        engine: the engine that was used.
        fit: how the scores were found.
        components: the items of each part that comparisons join; one part unless ``unconnected="separate"``.
        unjudged: items without a decided comparison with another item; they have no score.
        notices: what was left out, and what to be careful with.
        provenance: how to get the same again.
        position: the position effect, where it was asked for.
        ties: the tie parameter, where ties were modelled.
        covariance: where asked for, the covariance of the differences to the mean, of the kind that the intervals are
            made with; rows and columns in the order of ``theta``.
        prior_sd: the standard deviation of the prior of ``map``, also where it was learned; None for other engines.
        repeat_agreement: how far repeats of a pair agree, and how they were counted; None when each counted as new
            evidence.
        comparisons: the comparisons that it was made of.
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
    position: PositionEffect | None = None
    ties: TieEffect | None = None
    covariance: Floats | None = None
    prior_sd: float | None = None
    repeat_agreement: RepeatAgreement | None = None
    comparisons: pl.DataFrame | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        n_comparisons = int(self.theta["comparisons"].sum() / 2)
        facts = [f"{self.theta.height:,} items", f"{n_comparisons:,} comparisons"]
        if len(self.components) > 1:
            facts.append(f"{len(self.components):,} separate parts")
        else:
            reliability = "none" if self.reliability is None else f"{self.reliability:.3f}"
            facts += [f"reliability {reliability}", f"best {listed(self.theta['ID'].head(3).to_list())}"]
        return f"<BTFit by {self.engine}: {', '.join(facts)}>"

    def win_probability(self, i: str, j: str, *, level: float = 0.95) -> WinProbability:
        """The probability that item ``i`` beats item ``j`` where neither is favoured by its place.

        The interval is that of ``theta_i - theta_j``, of which the probability is a function (with modelled ties, nu
        is taken as known); it needs a fit with ``covariance=True``.

        Raises:
            InputError: when an item has no score, or the two are on scales of their own.
        """
        level = require_level(level)
        ids = self.theta["ID"].to_list()
        strange = [name for name in (i, j) if name not in ids]
        if strange:
            raise InputError(f"no score for {listed(strange)}")
        at, other = ids.index(i), ids.index(j)
        if len(self.components) > 1 and self.theta["component"][at] != self.theta["component"][other]:
            raise InputError(f"{i!r} and {j!r} are of parts never compared with each other")
        gap = self.theta["theta"][at] - self.theta["theta"][other]
        nu = self.ties.nu if self.ties else 0.0
        wide = None
        if self.covariance is not None:
            c = self.covariance
            z = NormalDist().inv_cdf((1 + level) / 2)
            wide = z * float(np.sqrt(max(c[at, at] + c[other, other] - 2 * c[at, other], 0.0)))
        gaps = np.array([gap] if wide is None else [gap, gap - wide, gap + wide])
        won, _, tie = outcome_probabilities(gaps, nu)
        return WinProbability(
            probability=float(won[0]),
            lower=None if wide is None else float(won[1]),
            upper=None if wide is None else float(won[2]),
            tie=0.0 if tie is None else float(tie[0]),
        )
