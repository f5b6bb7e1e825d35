"""A judge's win rate as people would see it, corrected by how far the judge agreed with people elsewhere.

Score a case for B: s of the judge and h of people, each 0, ½ or 1. Of the cases that people decide, let the judge
decide a share p alike and a share q the other way, whichever variant people prefer, and let it favour neither variant
where people do not. Then

    E[s] - ½  =  k (E[h] - ½)          k = p - q, the net agreement

so that the corrected rate is ½ + (rate - ½) / k (Rogan and Gladen 1978, for three outcomes). Both parts are uncertain:
the rate by the tasks of this run, k by the labelled pairs of the card. The interval holds every rate r for which

    (rate - ½) - k (r - ½)

could be 0, with the limits of both parts combined as by Zou and Donner (2008): squared distances to the limits add up.
A failed answer was put to no judge. It counts as it is, and k is not applied to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.options import require_int, require_level
from pairscale.core.tables import Table
from pairscale.evaluate.inference.cases import USED, Scores, read_cases, used_cases
from pairscale.evaluate.inference.score import effective_size, half_share, score_interval, score_limits
from pairscale.evaluate.inference.win_rate import win_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["ASSUMPTION", "CalibratedRate", "calibrate", "calibrated_rate"]

ASSUMPTION = (
    "assumes that the judge agrees with people here as often as on its card, "
    "and errs as often in favour of either variant"
)
"""What a corrected rate rests on."""

_HALVINGS = 60


@dataclass(frozen=True, slots=True, repr=False)
class CalibratedRate(ReprMixin):
    """B's win rate as people would see it, from a judge's verdicts and the judge's card.

    Attributes:
        rate: the corrected rate; None where the card does not show that the judge agrees with people.
        ci: its interval, with the uncertainty of the card; None likewise.
        raw_rate: the judge's own rate, ties and flips as half.
        raw_ci: its interval.
        net_agreement: of the pairs that people decided, the share that the judge decided alike minus the share that it
            decided the other way.
        net_ci: its interval.
        n: cases that count here.
        labels: pairs of the card that people decided.
        level: of the intervals.
        assumption: what the correction assumes.
        used: the outcomes that count.
        notices: what to be careful with.
    """

    rate: float | None
    ci: tuple[float, float] | None
    raw_rate: float | None
    raw_ci: tuple[float, float] | None
    net_agreement: float | None
    net_ci: tuple[float, float] | None
    n: int
    labels: int
    level: float
    assumption: str = ASSUMPTION
    used: tuple[str, ...] = USED["half"]
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rate is None or self.ci is None:
            return self.notices[0]
        return f"{self.rate:.3f} ({self.ci[0]:.3f} to {self.ci[1]:.3f}) as people would see it, {self.raw_rate:.3f} raw"


def calibrated_rate(
    cases: Table, *, agreed: int, against: int, undecided: int, level: float = 0.95, sequential: bool = False
) -> CalibratedRate:
    """Correct a judge's win rate by how often it agreed with people on other pairs.

    Args:
        cases: The judge's cases: ``task_id``, ``outcome``, ``winner``, and ``failed`` where variants failed.
        agreed: Pairs that people and the judge decided alike.
        against: Pairs that they decided differently.
        undecided: Pairs that people decided, and the judge did not (a tie or a flip).
        level: Level of the intervals.
        sequential: Whether the outcomes were looked at after every case; the interval then is that of the confidence
            sequence.

    Raises:
        TableError: If the cases lack a column or hold another outcome.
        InputError: If a count is negative.

    Example:
        >>> cases = [{"task_id": f"t{n}", "outcome": "win", "winner": "ab"[n % 10 > 2]} for n in range(200)]
        >>> found = calibrated_rate(cases, agreed=160, against=30, undecided=10)
        >>> round(found.raw_rate, 2), round(found.rate, 2)
        (0.7, 0.81)
    """
    level = require_level(level)
    counts = [require_int(n, name, least=0) for n, name in ((agreed, "agreed"), (against, "against"))]
    labels = sum(counts) + require_int(undecided, "undecided", least=0)
    frame = read_cases(cases)
    used = used_cases(frame, "half")
    raw = win_rate(frame, ties="half", level=level, interval="betting" if sequential else "wilson")
    known = (raw.rate, raw.ci)
    if not labels or used.is_empty():
        why = "no pair of the card was decided by people" if not labels else "no case was answered"
        return CalibratedRate(
            None, None, *known, None, None, raw.n, labels, level, notices=(f"no corrected rate: {why}",)
        )
    net = (counts[0] - counts[1]) / labels
    ends = score_interval((1 + net) / 2, undecided / labels, labels, level)
    net_ci = (2 * ends[0] - 1, 2 * ends[1] - 1)
    if net_ci[0] <= 0:
        why = (
            f"no corrected rate: the {labels:,} pairs of the card do not show that the judge agrees with people more "
            "often than it disagrees; label more pairs, or find a better judge"
        )
        return CalibratedRate(None, None, *known, net, net_ci, raw.n, labels, level, notices=(why,))
    failed = used["failed"].is_not_null().to_numpy() if "failed" in used.columns else np.zeros(used.height, dtype=bool)
    if sequential and failed.any():
        why = "no corrected rate: there is none for a run with stop_when in which a variant failed"
        return CalibratedRate(None, None, *known, net, net_ci, raw.n, labels, level, notices=(why,))
    centred = used["score"].to_numpy() - 0.5
    fixed = float(centred[failed].sum()) / len(centred)
    mean, lower, upper = _judged(used, np.where(failed, net, 1.0) * centred, level)
    if sequential and raw.ci is not None:
        lower, upper = raw.ci[0] - 0.5, raw.ci[1] - 0.5
    rest = mean - net * fixed  # of the cases that the judge decided
    parts = (np.array([value]) for value in (rest, mean - lower, upper - mean, net, *net_ci))
    rate, low, high = (float(part[0]) for part in calibrate(*parts))
    if not -0.5 <= fixed + high or not fixed + low <= 0.5:
        why = (
            f"no corrected rate: the judge's rate of {0.5 + mean:.2f} is farther from one half than its net agreement "
            f"of {net:.2f} allows, so that it does not agree with people here as on its card"
        )
        return CalibratedRate(None, None, *known, net, net_ci, raw.n, labels, level, notices=(why,))
    shifted = [float(np.clip(0.5 + fixed + value, 0, 1)) for value in (rate, low, high)]
    return CalibratedRate(shifted[0], (shifted[1], shifted[2]), *known, net, net_ci, raw.n, labels, level)


def _judged(used: pl.DataFrame, values: Floats, level: float) -> tuple[float, float, float]:
    """The mean of values between -½ and ½, and the limits of its score interval, by task."""
    scores = used.select("task_id").with_columns(value=pl.Series(values + 0.5))
    sums = scores.group_by("task_id", maintain_order=True).agg(size=pl.len(), sum=pl.col("value").sum())
    value = scores["value"].to_numpy()
    of_tasks = Scores(
        sums["size"].cast(pl.Float64).to_numpy(),
        sums["sum"].to_numpy(),
        float(value @ value),
        int((value == 0.5).sum()),
    )
    mean, size = np.array([value.mean()]), np.array([effective_size(of_tasks, level)])
    lower, upper = score_limits(mean, half_share(mean, np.array([value.var()])), size, level)
    return float(mean[0] - 0.5), float(lower[0] - 0.5), float(upper[0] - 0.5)


def calibrate(
    rest: Floats, below: Floats, above: Floats, net: Floats, net_lower: Floats, net_upper: Floats
) -> tuple[Floats, Floats, Floats]:
    """What a mean would be with a net agreement of 1: estimate, lower and upper end, for many data sets at once.

    Args:
        rest: the mean of the judge's scores, less ½.
        below: how far its lower limit lies below.
        above: how far its upper limit lies above.
        net: the net agreement.
        net_lower: its lower limit, above 0.
        net_upper: its upper limit.
    """

    def is_upper(value: Floats) -> NDArray[np.bool_]:
        """Whether a value is not too high: the upper limit of rest - net * value is at least 0."""
        reach = np.where(value > 0, net - net_lower, net_upper - net)
        return np.asarray(rest - net * value + np.hypot(above, value * reach) >= 0)

    def is_lower(value: Floats) -> NDArray[np.bool_]:
        reach = np.where(value > 0, net_upper - net, net - net_lower)
        return np.asarray(rest - net * value - np.hypot(below, value * reach) <= 0)

    middle = rest / net
    return middle, _end(middle, -1.0, is_lower), _end(middle, 1.0, is_upper)


def _end(middle: Floats, far: float, inside: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """The last value from the middle towards ``far`` that is inside; rates less ½ never get as far."""
    inner, outer = np.clip(middle, -1, 1), np.full_like(middle, far)
    for _ in range(_HALVINGS):
        half = (inner + outer) / 2
        good = inside(half)
        inner, outer = np.where(good, half, inner), np.where(good, outer, half)
    return np.asarray(inner)
