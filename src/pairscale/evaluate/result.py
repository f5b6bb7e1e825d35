"""What comparing two variants gave: the cases, the figures, and what has changed since another run."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.checks.agreement import LEAST_UNITS, agreement, two_raters
from pairscale.checks.effect import wilson
from pairscale.core.comparisons import Outcome
from pairscale.core.display import PlotMixin, ReportMixin, ReprMixin
from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError, UnknownNameError
from pairscale.core.files import replacing
from pairscale.core.notices import notice, plural, without_notices
from pairscale.core.options import checked
from pairscale.core.provenance import Provenance, utc_now
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import Winner, foreign_outcome
from pairscale.evaluate.diff import RunDiff, diff_runs
from pairscale.evaluate.inference.cases import score_of
from pairscale.evaluate.inference.control import ControlledRate, control_names, controlled_rate
from pairscale.evaluate.inference.failures import (
    Bounds,
    Failed,
    Failures,
    count_failure,
    count_failures,
    require_failures,
    ways_to_count,
)
from pairscale.evaluate.inference.win_rate import WinRate, win_rate
from pairscale.evaluate.tasks import Trace, Unmatched
from pairscale.evaluate.wording import summary_of, verdict_of

if TYPE_CHECKING:
    from pairscale.evaluate.inference.cases import Ties
    from pairscale.evaluate.inference.win_rate import Interval

# How far two comparators agree


@dataclass(frozen=True, slots=True, repr=False)
class PairwiseAgreement(ReprMixin):
    """How far two comparators agree, over the cases to which both gave a winner or a tie.

    Attributes:
        rate: the share of equal answers; None when there is no such case.
        cohen_kappa: the same beyond chance; None where it is not defined.
        n: such cases.
        disagreements: ``(task_id, winner_x, winner_y)``.
        ci: of kappa, 95 %; None where there is none.
        left_out: cases that one of them answered with a flip, an abstention or an error, or that none was asked about,
            because a variant failed.
        rate_ci: of the rate, 95 %, Wilson's.
        graded: the keys whose answers are graded. Their hard verdicts are compared: B above ½, A below, a tie at ½.
        correlation: Spearman's, of the preferences of both over all answered cases (a hard answer counts as 1, ½ or 0),
            where one of them is graded; None otherwise, or where one of them does not vary.
        confusion: how often which two answers met: ``x y n``, for every two of ``b``, ``tie`` and ``a``.
        notices: what to be careful with.
    """

    rate: float | None = None
    cohen_kappa: float | None = None
    n: int = 0
    disagreements: tuple[tuple[str, str, str], ...] = ()
    ci: tuple[float, float] | None = None
    left_out: int = 0
    rate_ci: tuple[float, float] | None = None
    graded: tuple[str, ...] = ()
    correlation: float | None = None
    confusion: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rate is None:
            return "no case that both answered"
        kappa = "undefined" if self.cohen_kappa is None else f"{self.cohen_kappa:.2f}"
        return f"agree on {self.rate * 100:.0f} % of {plural(self.n, 'case')}, kappa {kappa}"


def agreement_of(run: PairwiseRunResult, x: str, y: str) -> PairwiseAgreement:
    """How far two comparators of a run agree; see :meth:`PairwiseRunResult.agreement`."""
    of_y = {(case.task_id, case.repeat): case for case in run.of(y)}
    shared = [(case, of_y[case.task_id, case.repeat]) for case in run.of(x) if (case.task_id, case.repeat) in of_y]
    asked = [pair for pair in shared if run.failures == "shown" or pair[0].failed is None]
    both = [pair for pair in asked if pair[0].winner is not None and pair[1].winner is not None]
    graded = tuple(key for key in (x, y) if any(case.preference is not None for case in run.of(key)))
    correlation = _correlation(asked) if graded else None
    if not both:
        return PairwiseAgreement(left_out=len(shared), graded=graded, correlation=correlation)
    winners = [(str(case_x.winner), str(case_y.winner)) for case_x, case_y in both]
    with without_notices():  # the result carries them
        measured = agreement(two_raters(*(list(side) for side in zip(*winners, strict=True))), seed=1)
    kappa = measured.table.filter(statistic="cohen_kappa").row(0, named=True)
    notices: list[str] = []
