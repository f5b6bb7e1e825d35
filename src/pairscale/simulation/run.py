"""One adaptive run with a judge of known truth, as fast as the engine goes: no files, no clock, no waiting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.refits import FitFn, RefitOutcome, refit
from pairscale.adaptive.selectors import POLLITT, OwnSelector
from pairscale.core.comparisons import panel_member
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import Done, run_tasks
from pairscale.core.options import ProgressMode, optional, require_int, require_list, require_number
from pairscale.judges.simulated import SimulatedJudge
from pairscale.models.correlations import kendall, pearson, spearman
from pairscale.runtime import Progress
from pairscale.simulation._estimate import MapEstimate
from pairscale.simulation._summary import three_decimals

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

__all__ = ["CURVE", "REFITS", "SimulatedRun", "simulate_run"]

CURVE: dict[str, pl.DataType] = {
    "comparisons": pl.Int64(),
    "spearman_mu": pl.Float64(),
    "kendall_mu": pl.Float64(),
    "spearman_map": pl.Float64(),
    "kendall_map": pl.Float64(),
}
"""The columns of a run's curve."""

REFITS: dict[str, pl.DataType] = {
    "refit_id": pl.Int64(),
    "comparisons": pl.Int64(),
    "reliability_claimed": pl.Float64(),
    "reliability_true": pl.Float64(),
    "spearman_eap": pl.Float64(),
    "diagnostics_pass": pl.Boolean(),
    "stop_decision": pl.Boolean(),
    "is_closing": pl.Boolean(),
}
"""The columns of a run's refits."""

MOST_PER_ITEM = 100
"""A run without a limit of its own ends after so many comparisons per item."""

_TRUTH, _LUCK, _ARRIVAL = 1, 2, 3  # what a stream of random numbers is for
_DF, _CUT = 4, 5.0  # degrees of freedom of a logit's error, and where logits are cut


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulatedRun(ReprMixin, table="refits"):
    """A run whose truth is known.

    Attributes:
        n_items: how many items there were.
        selector: who chose the pairs.
        seed: of the abilities, of the judge's luck and of the choices.
        abilities: per item, the truth.
        theta: per item, the mean of the last posterior (EAP).
        mu: per item, the TrueSkill mean at the end.
        history: the comparisons, a row each: number of the first, number of the second, 1 when the first won.
        curve: one row per checkpoint: Spearman's and Kendall's correlation with the truth, of TrueSkill (``_mu``) and
            of one estimate for all selectors (``_map``: Bradley–Terry with a normal prior whose width is learned).
        refits: one row per refit: the EAP reliability that the run claims, the true one (the squared correlation of the
            posterior means with the truth), and whether the stop rule held.
        stop_reason: why it ended: ``btl_converged``, ``max_comparisons``, ``candidate_starvation``,
            ``pairs_exhausted``, ``judge_failing``, ``judge_flips``.
        comparisons: comparisons at the end.
        stopped_at: comparisons when the stop rule first held; None when it never did.
        asked: questions asked, also those without a valid answer.
    """

    n_items: int
    selector: str
    seed: int
    abilities: Floats
    theta: Floats
    mu: Floats
    history: Ints
    curve: pl.DataFrame
    refits: pl.DataFrame
    stop_reason: str
    comparisons: int
    stopped_at: int | None
    asked: int

    def __str__(self) -> str:
        said = f"{self.n_items:,} items, {self.selector}, {self.comparisons:,} comparisons, {self.stop_reason}"
        if self.refits.height == 0:
            return said
        claimed, true = (three_decimals(self.refits[name][-1]) for name in ("reliability_claimed", "reliability_true"))
        return f"{said}, reliability {claimed} claimed, {true} true"


def simulate_run(
    n_items: int,
    selector: str | OwnSelector = POLLITT,
    seed: int = 0,
    *,
    ability_sd: float = 1.0,
    bias: float = 0.0,
    lapse: float = 0.0,
    invalid_rate: float = 0.0,
    error: float | None = None,
    judge_slopes: Sequence[float] | None = None,
    concurrency: int = 1,
    max_comparisons: int | None = None,
    stop_early: bool = True,
    fit_fn: FitFn | str | None = "laplace",
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    checkpoints: Sequence[int] | None = None,
    abilities: Sequence[float] | Floats | None = None,
) -> SimulatedRun:
    """Run the engine against a judge of known truth: P(first wins) = (1 - lapse) logistic(a - b + bias) + lapse / 2.

    Runs of one seed share their luck: what comes out when a pair is asked for the k-th time depends on the seed, the
    pair, k and the order alone. So selectors, compared seed by seed, differ by their pairs and not by the dice.

    Args:
        n_items: how many items.
        selector: ``pollitt``, ``random``, ``nearest``, ``information``, or one of your own, as in a real run.
        seed: of everything random.
        ability_sd: standard deviation of the abilities, which are normal.
        bias: the judge's preference for the first position, in logits.
        lapse: share of answers that are a coin toss.
        invalid_rate: share of questions that it declines.
        error: the scale of the errors of the judge's logits, Student's t with four degrees of freedom; an error belongs
            to the pair, and is the same at every repeat. The judge then says a probability with each winner. By
            default winners are drawn by their true probability.
        judge_slopes: of several judges who share the comparisons: by how much each of them multiplies a difference.
        concurrency: judgements in flight. Which of them is answered next is left to chance, as if every answer took
            its exponentially distributed time.
        max_comparisons: end there; by default after 100 per item.
        stop_early: end when the stop rule holds. If not, the run continues to its limit, and only notes where it held.
        fit_fn: what refits: ``laplace``, the fast approximation; ``exact``, the sampler of real runs; or your own.
        adaptive_config: settings of the engine, as in a real run.
        btl_config: settings of the refits and of the stop rule.
        checkpoints: comparisons at which to measure; by default after every N.
        abilities: the truth, instead of drawing it.

    Raises:
        InputError: when a setting is impossible.

    Example:
        >>> run = simulate_run(20, seed=1, max_comparisons=60)
        >>> run.comparisons, run.curve["comparisons"].to_list(), run.stop_reason
        (60, [20, 40, 60], 'max_comparisons')
    """
    n, seed = require_int(n_items, "n_items", least=2), require_int(seed, "seed", least=0)
    truth = _truth(n, seed, ability_sd, abilities)
    slopes = None if judge_slopes is None else require_list(judge_slopes, "judge_slopes", require_number)
    judge = _Judge(truth, seed, bias, lapse, invalid_rate, error, slopes)
    limit = optional(require_int, max_comparisons, "max_comparisons", least=1) or MOST_PER_ITEM * n
    marks = (
        range(n, limit + 1, n)
        if checkpoints is None
        else require_list(checkpoints, "checkpoints", require_int, least=1)
    )
    ids = [f"i{number:0{len(str(n))}d}" for number in range(1, n + 1)]
    engine = Engine(ids, seed=seed, selector=selector, adaptive_config=adaptive_config, btl_config=btl_config)
    drive = _Drive(
        engine, judge, require_int(concurrency, "concurrency", least=1), limit, set(marks), fit_fn, stop_early
    )
    reason = drive.run()
    return SimulatedRun(
        n_items=n,
        selector=engine.selector,
        seed=seed,
        abilities=truth,
        theta=drive.theta,
        mu=engine.ledger.mu.copy(),
        history=engine.ledger.history.astype(np.int64),
        curve=pl.DataFrame(drive.curve, schema=CURVE, orient="row"),
        refits=pl.DataFrame(drive.refits, schema=REFITS, orient="row"),
        stop_reason=reason,
        comparisons=engine.committed,
        stopped_at=drive.stopped_at,
        asked=drive.asked,
    )


def simulate_all(
    tasks: Sequence[Mapping[str, Any]], n_jobs: int | None, progress: ProgressMode
) -> list[Done[SimulatedRun]]:
    """Runs with these options of :func:`simulate_run`, ``n_jobs`` at a time."""
    done = []
    with Progress(len(tasks), 0, show=progress, label="simulating") as bar:
        for run in run_tasks(_simulate, tasks, n_jobs):
            done.append(run)
            bar.count(failed=run.error is not None, cost=None)
    return done


def _simulate(options: Mapping[str, Any]) -> SimulatedRun:
    return simulate_run(**options)


class _Judge:
    """Answers by the truth and by luck that depends on the pair and on how often it was asked, not on when."""

    def __init__(
        self,
        truth: Floats,
        seed: int,
        bias: float,
        lapse: float,
        invalid_rate: float,
        error: float | None = None,
        slopes: Sequence[float] | None = None,
    ) -> None:
        like = SimulatedJudge("truth", bias=bias, lapse=lapse, invalid_rate=invalid_rate, error=error)  # validates them
        self._error = like.error
        self._slopes = slopes
        self.truth = truth
        self._seed = seed
        self._n = len(truth)
        self._bias = like.bias
        self._lapse = like.lapse
        self._invalid = like.invalid_rate
        self._asked: dict[int, int] = {}
        self._luck: list[Floats] = []  # per asking, a number for every pair
        self._silence: list[Floats] = []

    def name(self, first: int, second: int) -> str | None:
        """The name of the one who answers; None where there is one judge."""
        return None if self._slopes is None else f"judge {self.member(first, second) + 1}"

    def member(self, first: int, second: int) -> int:
        """Who of several judges answers."""
        return 0 if self._slopes is None else panel_member(str(first), str(second), len(self._slopes))

    def answer(self, first: int, second: int) -> tuple[int | None, float | None]:
        """1 when the first wins, 0 when the second does, None when it declines; and the probability it states."""
        i, j = (first, second) if first < second else (second, first)
        pair = i * (2 * self._n - i - 1) // 2 + j - i - 1
        turn = self._asked.get(pair, 0)
        self._asked[pair] = turn + 1
        while turn >= len(self._luck):
            self._draw()
        if self._invalid and self._silence[turn][pair] < self._invalid:
            return None, None
        slope = 1.0 if self._slopes is None else self._slopes[self.member(first, second)]
        d = slope * (self.truth[first] - self.truth[second]) + self._bias
        if self._error is not None:
            return self._stated(d, pair, 1 if first == i else -1)
        chance = (1 - self._lapse) * 0.5 * (1 + math.tanh(d / 2)) + self._lapse / 2
        luck = self._luck[turn][pair]  # low is good for the item of the lower number
        return (int(luck < chance) if first == i else int(luck >= 1 - chance)), None

    def _stated(self, d: float, pair: int, side: int) -> tuple[int, float]:
        """The winner and the probability of a judge whose logit has an error that belongs to the pair."""
        assert self._error is not None  # noqa: S101 - it is asked for by it
        away = side * self._error * float(stdtrit(_DF, self._luck[0][pair]))
        if self._lapse and self._luck[0][pair - 1] < self._lapse:  # another pair's number: it goes by the error alone
            d = 0.0
        logit = min(_CUT, max(-_CUT, d + away))
        return int(logit > 0), 0.5 * (1 + math.tanh(logit / 2))

    def _draw(self) -> None:
        rng = np.random.default_rng((self._seed, _LUCK, len(self._luck)))
        size = self._n * (self._n - 1) // 2
        self._luck.append(rng.random(size))
        if self._invalid:
            self._silence.append(rng.random(size))


class _Drive:
    """Does what the runner does: keeps questions open, records answers, refits in time; and measures."""

    def __init__(
        self,
        engine: Engine,
        judge: _Judge,
        concurrency: int,
        limit: int,
        marks: set[int],
        fit_fn: FitFn | str | None,
        stop_early: bool,
    ) -> None:
        self._engine = engine
        self._judge = judge
        self._concurrency = concurrency
        self._limit = limit
        self._marks = marks
        self._fit_fn = fit_fn
        self._stop_early = stop_early
        self._arrival = np.random.default_rng((engine.seed, _ARRIVAL))
        self._map = MapEstimate(engine.ledger.n)
        self._warm: Any = None
        self._fitted_at = 0
        self.truth = judge.truth
        self.theta: Floats = np.zeros(engine.ledger.n)
        self.curve: list[dict[str, Any]] = []
        self.refits: list[dict[str, Any]] = []
        self.stopped_at: int | None = None
        self.asked = 0
        engine.set_lag(concurrency)

    def run(self) -> str:
        """Until nothing is left to do; and why that is so."""
        engine = self._engine
        while True:
            self._top_up()
            if engine.pending is not None and (engine.must_apply or not engine.open):
                outcome = refit(engine.pending, self._fit_fn, self._warm)
                self._warm = outcome.warm
                reason = self._note(outcome)
                engine.apply(outcome.belief, stop_reason=reason)
            elif engine.open:
                self._answer()
            else:
                break
        if engine.can_fit and engine.committed > self._fitted_at:  # the closing refit
            request = replace(engine.refit_request(), refit_id=len(self.refits) + 1, is_closing=True)
            self._note(refit(request, self._fit_fn, self._warm))
        if engine.stop_reason is not None:
            return engine.stop_reason
        return "judge_failing" if engine.is_failing else "judge_flips" if engine.is_flipping else "max_comparisons"

    def _top_up(self) -> None:
        engine = self._engine
        while (
            len(engine.open) < self._concurrency
            and engine.committed + len(engine.open) < self._limit
            and not engine.is_failing
            and not engine.is_flipping
        ):
            found = engine.propose()
            if found is None:
                return
            self.asked += not isinstance(found, Starved)

    def _answer(self) -> None:
        engine = self._engine
        at = 0 if len(engine.open) == 1 else int(self._arrival.integers(len(engine.open)))
        proposal = engine.open[sorted(engine.open)[at]]
        y, stated = self._judge.answer(proposal.first, proposal.second)
        who = self._judge.name(proposal.first, proposal.second) if y is not None else None
        reason = None if y is not None else "simulated refusal"
        engine.record(proposal.step_id, y, invalid_reason=reason, probability=stated, judge=who)
        if y is not None and engine.committed in self._marks:
            estimates = {"mu": engine.ledger.mu, "map": self._map.fit(engine.ledger.history)}
            figures: dict[str, Any] = {"comparisons": engine.committed}
            for name, estimate in estimates.items():
                figures[f"spearman_{name}"] = spearman(estimate, self.truth)
                figures[f"kendall_{name}"] = kendall(estimate, self.truth)
            self.curve.append(figures)

    def _note(self, outcome: RefitOutcome) -> str | None:
        """Measure a refit; the reason to stop at it, if there is one and it is heeded."""
        row, self.theta = outcome.row, outcome.belief.theta_mean
        self._fitted_at = row["total_pairs_done"]
        r = pearson(self.theta, self.truth)
        self.refits.append(
            {
                "refit_id": row["refit_id"],
                "comparisons": self._fitted_at,
                "reliability_claimed": row["reliability"],
                "reliability_true": None if r is None else r**2,
                "spearman_eap": spearman(self.theta, self.truth),
                "diagnostics_pass": row["diagnostics_pass"],
                "stop_decision": row["stop_decision"],
                "is_closing": row["is_closing"],
            }
        )
        if not row["stop_decision"] or row["is_closing"]:
            return None
        self.stopped_at = self.stopped_at or self._fitted_at
        return str(row["stop_reason"]) if self._stop_early else None


def _truth(n: int, seed: int, sd: float, given: Sequence[float] | Floats | None) -> Floats:
    if given is not None:
        truth = np.array(given, dtype=np.float64)
        if truth.shape != (n,) or not np.isfinite(truth).all():
            raise InputError(f"abilities must be {n:,} numbers, one for each item")
        return truth
    return np.random.default_rng((seed, _TRUTH)).normal(0, require_number(sd, "ability_sd", above=0), n)
