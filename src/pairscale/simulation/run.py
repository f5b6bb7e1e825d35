"""One adaptive run with a judge of known truth, as fast as the engine goes: no files, no clock, no waiting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.optimize import minimize_scalar
from scipy.special import stdtrit

from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.refits import FitFn, RefitRequest, refit
from pairscale.adaptive.selectors import POLLITT, OwnSelector
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import Done, run_tasks
from pairscale.core.options import ProgressMode, optional, require_int, require_number, require_probability
from pairscale.judges.simulated import SimulatedJudge
from pairscale.models.prior_mode import prior_mode
from pairscale.models.reliability import kendall, pearson, spearman
from pairscale.runtime import Progress

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints

CURVE: dict[str, pl.DataType] = {"comparisons": pl.Int64()} | dict.fromkeys(
    ("spearman_mu", "kendall_mu", "spearman_map", "kendall_map"), pl.Float64()
)
"""The columns of a run's curve."""

REFITS: dict[str, pl.DataType] = (
    dict.fromkeys(("refit_id", "comparisons"), pl.Int64())
    | dict.fromkeys(("reliability_claimed", "reliability_true", "spearman_eap"), pl.Float64())
    | dict.fromkeys(("diagnostics_pass", "stop_decision", "is_closing"), pl.Boolean())
)
"""The columns of a run's refits."""

FIGURES = ("reliability_claimed", "reliability_true", "spearman_eap")
"""Those that measure the ranking."""

MOST_PER_ITEM = 100
"""Comparisons per item after which a run without a limit of its own ends."""

# What a stream of random numbers is for.
_TRUTH = 1
_LUCK = 2
_ARRIVAL = 3
_DF = 4  # degrees of freedom of a logit's error
_CUT = 5.0  # where logits are cut
# The width of the abilities: its log-normal prior, and its bounds.
_SD_MIDDLE = 1.5
_SD_SPREAD = 0.75
_SD_LOW = 0.3
_SD_HIGH = 6.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulatedRun(ReprMixin, table="refits"):
    """A run whose truth is known.

    Attributes:
        n_items: how many items there were.
        selector: who chose the pairs.
        seed: of the abilities, of the judge's luck and of the choices.
        abilities: per item, the truth.
        theta: per item, the mean of the last posterior (EAP).
        history: the comparisons, a row each: number of the first, number of the second, 1 when the first won.
        curve: one row per checkpoint: Spearman's and Kendall's correlation with the truth, of TrueSkill (``_mu``) and
            of one estimate for all selectors (``_map``: Bradley–Terry with a normal prior whose width is learned).
        refits: one row per refit: the reliability that the run claims, the true one (the squared correlation of the
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
    history: Ints
    curve: pl.DataFrame
    refits: pl.DataFrame
    stop_reason: str
    comparisons: int
    stopped_at: int | None
    asked: int

    @property
    def end(self) -> dict[str, Any]:
        """Where and why it ended, and the figures of its last refit."""
        last = self.refits.row(-1, named=True) if self.refits.height else {}
        ended = {name: getattr(self, name) for name in ("comparisons", "asked", "stop_reason", "stopped_at")}
        return ended | {name: last.get(name) for name in FIGURES}

    def __str__(self) -> str:
        return f"{self.n_items:,} items, {self.selector}, {self.comparisons:,} comparisons, {self.stop_reason}"


def simulate_run(
    n_items: int,
    selector: str | OwnSelector = POLLITT,
    seed: int = 0,
    *,
    ability_sd: float = 1.0,
    bias: float = 0.0,
    lapse: float = 0.0,
    invalid_rate: float = 0.0,
    repeats: float = 0.0,
    error: float | None = None,
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
        repeats: probability that a pair that is asked again, in either order, gets its first answer again.
        error: the scale of the errors of the judge's logits, Student's t with four degrees of freedom; an error belongs
            to the pair, and is the same at every repeat. The judge then says a probability with each winner. By
            default winners are drawn by their true probability.
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
    n = require_int(n_items, "n_items", least=2)
    seed = require_int(seed, "seed", least=0)
    if abilities is None:
        sd = require_number(ability_sd, "ability_sd", above=0)
        truth = np.random.default_rng((seed, _TRUTH)).normal(0, sd, n)
    else:
        truth = np.array(abilities, dtype=np.float64)
        if truth.shape != (n,) or not np.isfinite(truth).all():
            raise InputError(f"abilities must be {n:,} numbers, one for each item")
    like = SimulatedJudge("truth", bias=bias, lapse=lapse, invalid_rate=invalid_rate, error=error)  # validates them
    limit = optional(require_int, max_comparisons, "max_comparisons", least=1) or MOST_PER_ITEM * n
    marks = range(n, limit + 1, n) if checkpoints is None else checkpoints
    ids = [f"i{number:0{len(str(n))}d}" for number in range(1, n + 1)]
    engine = Engine(ids, seed=seed, selector=selector, adaptive_config=adaptive_config, btl_config=btl_config)
    engine.set_lag(require_int(concurrency, "concurrency", least=1))
    judge = _Judge(truth, seed, like, require_probability(repeats, "repeats"))
    drive = _Drive(engine, judge, fit_fn, set(marks), stop_early)
    reason = drive.run(concurrency, limit)
    return SimulatedRun(
        n_items=n,
        selector=engine.selector,
        seed=seed,
        abilities=truth,
        theta=drive.theta,
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


@dataclass(eq=False)
class _Judge:
    """Answers by the truth; its luck depends on the pair and on how often the pair was asked, not on who asks."""

    truth: Floats
    seed: int
    like: SimulatedJudge
    repeats: float = 0.0

    def __post_init__(self) -> None:
        self._first_winner: dict[int, int] = {}
        self._asked: Counter[int] = Counter()
        self._luck: list[list[Floats]] = []  # per asking, for every pair: answer, silence and copy

    def answer(self, first: int, second: int) -> tuple[int | None, float | None]:
        """1 when the first wins, 0 when the second does, None when it declines; and the probability it states."""
        like = self.like
        n = len(self.truth)
        i = min(first, second)
        j = max(first, second)
        pair = i * (2 * n - i - 1) // 2 + j - i - 1
        turn = self._asked[pair]
        self._asked[pair] += 1
        while turn >= len(self._luck):
            rng = np.random.default_rng((self.seed, _LUCK, len(self._luck)))
            size = n * (n - 1) // 2
            needed = [size, size if like.invalid_rate else 0, size if self.repeats else 0]
            self._luck.append([rng.random(numbers) for numbers in needed])
        luck, silence, copy = self._luck[turn]
        if like.invalid_rate and silence[pair] < like.invalid_rate:
            return None, None
        d = self.truth[first] - self.truth[second] + like.bias
        if like.error is not None:  # the error of its logit belongs to the pair
            luck = self._luck[0][0]
            away = like.error * float(stdtrit(_DF, luck[pair]))
            if like.lapse and luck[pair - 1] < like.lapse:  # another pair's number: it goes by the error alone
                d = 0.0
            logit = min(_CUT, max(-_CUT, d + (away if first == i else -away)))
            return int(logit > 0), 0.5 * (1 + math.tanh(logit / 2))
        if self.repeats and pair in self._first_winner and copy[pair] < self.repeats:
            return int(self._first_winner[pair] == first), None
        chance = (1 - like.lapse) * 0.5 * (1 + math.tanh(d / 2)) + like.lapse / 2
        # Low is good for the item of the lower number.
        y = int(luck[pair] < chance) if first == i else int(luck[pair] >= 1 - chance)
        self._first_winner.setdefault(pair, first if y else second)
        return y, None


@dataclass(eq=False)
class _Drive:
    """Does what the runner does: keeps questions open, records answers, refits in time; and measures."""

    engine: Engine
    judge: _Judge
    fit_fn: FitFn | str | None
    marks: set[int]
    stop_early: bool
    warm: Any = None
    stopped_at: int | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        n_items = self.engine.ledger.n
        self._arrival = np.random.default_rng((self.engine.seed, _ARRIVAL))
        self._map = MapEstimate(n_items)
        self.theta: Floats = np.zeros(n_items)
        self.curve: list[tuple[Any, ...]] = []
        self.refits: list[dict[str, Any]] = []

    def run(self, concurrency: int, limit: int) -> str:
        """Until nothing is left to do; and why that is so."""
        engine = self.engine
        while True:
            paused = engine.is_failing or engine.is_flipping
            has_room = len(engine.open) < min(concurrency, limit - engine.committed)
            proposal = engine.propose() if has_room and not paused else None
            if proposal is not None:
                self.asked += not isinstance(proposal, Starved)
            elif engine.pending is not None and (engine.must_apply or not engine.open):
                self._refit(engine.pending)
            elif engine.open:
                self._answer()
            else:
                break
        fitted = self.refits[-1]["comparisons"] if self.refits else 0
        if engine.can_fit and engine.committed > fitted:
            self._refit(replace(engine.refit_request(), refit_id=len(self.refits) + 1, is_closing=True))
        if engine.stop_reason is None and paused:
            return "judge_failing" if engine.is_failing else "judge_flips"
        return engine.stop_reason or "max_comparisons"

    def _answer(self) -> None:
        engine = self.engine
        at = 0 if len(engine.open) == 1 else int(self._arrival.integers(len(engine.open)))
        proposal = engine.open[sorted(engine.open)[at]]
        y, stated = self.judge.answer(proposal.first, proposal.second)
        engine.record(proposal.step_id, y, invalid_reason="simulated refusal", probability=stated)
        if y is not None and engine.committed in self.marks:
            truth = self.judge.truth
            estimates = (engine.ledger.mu, self._map.fit(engine.ledger.history))
            figures = [measure(estimate, truth) for estimate in estimates for measure in (spearman, kendall)]
            self.curve.append((engine.committed, *figures))

    def _refit(self, request: RefitRequest) -> None:
        """Refit and measure; a closing refit guides no choice."""
        outcome = refit(request, self.fit_fn, self.warm)
        row = outcome.row
        self.theta = outcome.belief.theta_mean
        r = pearson(self.theta, self.judge.truth)
        figures = {
            "comparisons": row["total_pairs_done"],
            "reliability_claimed": row["reliability"],
            "reliability_true": None if r is None else r**2,
            "spearman_eap": spearman(self.theta, self.judge.truth),
        }
        self.refits.append({name: row.get(name) for name in REFITS} | figures)
        if request.is_closing:
            return
        self.warm = outcome.warm
        if row["stop_decision"]:
            self.stopped_at = self.stopped_at or row["total_pairs_done"]
        self.engine.apply(outcome.belief, stop_reason=row["stop_reason"] if self.stop_early else None)


class MapEstimate:
    """One estimate of the abilities for every selector, so that studies compare pairs and not estimators.

    Bradley–Terry with the prior N(0, s²) for every item; the mode is found by Newton's method, and each fit begins
    where the last one ended. The width s is the one of the highest marginal likelihood (in Laplace's approximation)
    times a wide prior, log s ~ N(log 1.5, 0.75²), between 0.3 and 6. It knows nothing of the judge's faults.

    Attributes:
        theta: per item, the estimate.
        sd: the width of the prior that was found.
    """

    def __init__(self, n_items: int) -> None:
        self.theta: Floats = np.zeros(n_items)
        self.sd = _SD_MIDDLE

    def fit(self, history: npt.NDArray[Any]) -> Floats:
        """The estimate for these comparisons.

        Args:
            history: a row each: number of the first, number of the second, 1 when the first won.
        """
        n = len(self.theta)
        first, second, y = history.astype(np.int64).T
        at, slot = np.unique(np.minimum(first, second) * n + np.maximum(first, second), return_inverse=True)
        times = np.bincount(slot).astype(np.float64)
        won = np.bincount(slot, np.where(first < second, y, 1.0 - y)).astype(np.float64)
        pairs = (at // n, at % n, times, won)

        def depth(log_sd: float) -> float:
            found = prior_mode(*pairs, prior=math.exp(-2 * log_sd), start=self.theta)
            self.theta = found.theta
            marginal = found.height - n * log_sd - float(np.log(np.diag(found.factor)).sum())
            return -(marginal - 0.5 * ((log_sd - math.log(_SD_MIDDLE)) / _SD_SPREAD) ** 2)

        ends = (math.log(_SD_LOW), math.log(_SD_HIGH))
        best = minimize_scalar(depth, bounds=ends, method="bounded", options={"xatol": 0.02}).x
        self.sd = math.exp(best)
        self.theta = prior_mode(*pairs, prior=self.sd**-2, start=self.theta).theta
        return self.theta
