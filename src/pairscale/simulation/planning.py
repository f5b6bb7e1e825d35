"""How many comparisons will be needed? Answered by runs that have not happened yet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl

from pairscale.adaptive.config import OURS, Preset, require_goal, resolve_preset, top_of, with_goal
from pairscale.adaptive.selectors import OwnSelector, selector_for
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import values_of
from pairscale.core.options import (
    ProgressMode,
    checked,
    optional,
    require_choice,
    require_int,
    require_list,
    require_number,
    require_probability,
)
from pairscale.judges.simulated import SimulatedJudge
from pairscale.models.bayes.settings import Answer
from pairscale.simulation.run import MOST_PER_ITEM, simulate_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.simulation.run import SimulatedRun

LARGEST = 100
"""So many items are simulated at most; the comparisons per item hardly depend on their number."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparisonPlan(ReprMixin, table="runs"):
    """What a run will probably need, to reach a reliability and its stop rule.

    A run that ends before that (at the limit of comparisons, or because no pair is left) would need more than it had.
    So it counts as larger than any number, and what is known of the median is a lower bound when too many end so.

    Attributes:
        n_items: how many items will be ranked.
        reliability: the reliability to reach, the squared correlation to expect with the truth; None where the goal is
            ``top:K``.
        selector: who chooses the pairs.
        comparisons: comparisons needed, the median over all simulated runs; None when it is not known, because half of
            the runs or more did not get there.
        at_least: what the median is at least: ``comparisons`` where that is known, else the median of how far runs got.
        fewest: of the run that needed fewest; None when none got there.
        most: of the one that needed most; None when some did not get there.
        per_item: comparisons divided by the number of items. An item takes part in twice as many.
        questions: questions to ask; more than ``comparisons`` when the judge declines some.
        cost: what they cost, when a price was given.
        minutes: how long they take, when the seconds of an answer were given.
        reliability_true: the mean true reliability of all runs at their end (squared correlation with the truth).
        spearman: the mean rank correlation with the truth there.
        n_seeds: how many runs were simulated.
        n_reached: how many of them got there.
        simulated_items: how many items they had.
        notices: what to know about these figures.
        runs: one row per run: ``seed comparisons per_item stop_reason reliability_claimed reliability_true spearman``.
        preset: The settings that the runs started from.
        goal: What the runs were for: ``order`` or ``top:K``.
        repeats: Probability that their judge repeated its first answer to a pair that was asked again.
        repeating: The same plan for a judge that repeats itself; None where ``repeats`` was given.
        top_right: The mean number of texts of the true top K among those that the runs named; None for the order.
        answer: What was evidence in them: ``winner`` or ``probability``.
    """

    n_items: int
    reliability: float | None
    selector: str
    comparisons: int | None
    at_least: int
    fewest: int | None
    most: int | None
    per_item: float | None
    questions: int | None
    cost: float | None
    minutes: float | None
    reliability_true: float | None
    spearman: float | None
    n_seeds: int
    n_reached: int
    simulated_items: int
    notices: tuple[str, ...]
    runs: pl.DataFrame
    preset: Preset = OURS
    goal: str = "order"
    top_right: float | None = None
    answer: str = "winner"
    repeats: float = 0.0
    repeating: ComparisonPlan | None = None

    def __str__(self) -> str:
        if self.repeating is None:
            return self._line()
        again = self.repeating
        line = again._line()
        if again.comparisons is None:
            pairs = again.simulated_items * (again.simulated_items - 1) // 2
            share = again.n_reached / again.n_seeds
            line = f"at most {pairs:,} different pairs: {share:.0%} of such runs get there"
        return f"a judge that varies: {self._line()}\na judge that repeats itself: {line}"

    def _line(self) -> str:
        aim = f"the goal {self.goal}" if self.reliability is None else f"reliability {self.reliability:g}"
        share = f"{self.n_reached} of {self.n_seeds} simulated runs got there"
        if self.comparisons is None:
            return f"{self.n_items:,} items to {aim}: more than {self.at_least:,} comparisons; {share}"
        most = "more" if self.most is None else f"{self.most:,}"
        said = f"{self.n_items:,} items to {aim}: about {self.comparisons:,} comparisons ({self.fewest:,} to {most})"
        said += f", {self.per_item:.1f} per item"
        if self.cost is not None:
            said += f", cost {self.cost:,.2f}"
        if self.minutes is not None:
            said += f", {self.minutes:,.0f} minutes" if self.minutes < 120 else f", {self.minutes / 60:,.1f} hours"
        return said if self.most is not None else f"{said}; {share}"


@checked
def plan(
    items: int,
    *,
    goal: str = "order",
    reliability: float | None = None,
    sd: float = 1.0,
    bias: float = 0.0,
    lapse: float = 0.0,
    invalid_rate: float = 0.0,
    repeats: float | None = None,
    answer: Answer = "winner",
    error: float | None = None,
    judge_slopes: Sequence[float] | None = None,
    selector: str | OwnSelector | None = None,
    preset: Preset = OURS,
    price: float | None = None,
    seconds: float | None = None,
    concurrency: int = 1,
    seeds: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressMode = True,
) -> ComparisonPlan:
    """Simulate runs like the one you plan, and see how many comparisons they need to stop.

    What it rests on is the spread of the abilities: how often the better text wins. At a standard deviation of 1, the
    better of two texts drawn at random wins 73 of 100 comparisons; at 2, 83; at 0.5, 63. A judge of whom nothing
    is known should be tried on some pairs first.

    Args:
        items: How many items there will be. More than 100 are planned from runs of 100, by comparisons per item.
        goal: What the run is for, as in :func:`rank`: ``order``, or ``top:K`` for the K best texts. More than 100 items
            are then planned from runs of 100 for the same share of them.
        reliability: The reliability to stop at, the squared correlation to expect between the scores and the judge's
            true scale; 0.9 by default. It belongs to the goal ``order``.
        sd: Standard deviation of the abilities, in logits.
        bias: The judge's preference for the first position, in logits.
        lapse: Share of answers that the judge gives at random.
        invalid_rate: Share of questions that the judge declines.
        repeats: Probability that a pair that is asked again, in either order, gets its first answer again. Without it,
            runs are simulated for a judge that varies, and for one that repeats itself.
        answer: What is evidence, as in :func:`rank`: the ``winner``, or the ``probability`` that the judge states. The
            spread ``sd`` is then that of the judge's logits.
        error: With ``answer="probability"``: the scale of the errors of the judge's logits, 1 by default. A trial tells
            it: ``ps.fit(trial, "bayes", answer="probability").fit.error``. Errors belong to the pair: asking it again
            tells nothing new.
        judge_slopes: Of several judges who share the comparisons, as in :func:`rank`: how much of a difference between
            texts each of them sees, such as ``(1.5, 1, 0.5, 0)``. ``sd`` is for a judge of slope 1.
        selector: What chooses the pairs, as in :func:`rank`.
        preset: The settings to start from, as in :func:`rank`: ``pairscale`` or ``pairwiseLLM``.
        price: Price of one question, in any currency.
        seconds: Seconds that one answer takes.
        concurrency: Questions open at once.
        seeds: How many runs to simulate.
        seed: Seed of the first run; the others count up from it.
        n_jobs: How many runs at once, in processes of their own, as in :func:`simulate`.
        progress: Show progress on standard error.

    Returns:
        A :class:`ComparisonPlan`.

    Raises:
        InputError: If a setting is out of range.

    Example:
        >>> import pairscale as ps
        >>> found = ps.plan(20, reliability=0.7, seeds=2, price=0.002, progress=False)
        >>> found.n_reached, found.cost == found.questions * 0.002
        (2, True)
    """
    n = require_int(items, "items", least=2)
    wanted = optional(require_number, reliability, "reliability", above=0, below=1)
    top = top_of(require_goal(goal))
    if top is not None and top >= n:
        raise InputError(f"goal {goal!r} needs more than {top:,} items, and there are {n:,}")
    price = optional(require_number, price, "price", least=0)
    seconds = optional(require_number, seconds, "seconds", least=0)
    repeats = optional(require_probability, repeats, "repeats")
    seed = require_int(seed, "seed", least=0)
    seeds = require_int(seeds, "seeds", least=1)
    SimulatedJudge("truth", bias=bias, lapse=lapse, invalid_rate=invalid_rate)  # validates them
    simulated = min(n, LARGEST)
    size = None if top is None else max(1, round(top * simulated / n))
    target = None
    model: dict[str, Any] = {"answer": require_choice(answer, "answer", get_args(Answer))}
    if size is None:
        target = wanted or 0.9
        model["eap_reliability_min"] = target
    if (error if answer == "winner" else judge_slopes) is not None:
        raise InputError("error belongs to answer='probability', and judge_slopes belongs to answer='winner'")
    if answer == "probability":
        error = require_number(1.0 if error is None else error, "error", above=0)
    if judge_slopes is not None:
        judge_slopes = require_list(judge_slopes, "judge_slopes", require_number)
        if len(judge_slopes) < 2:
            raise InputError(f"judge_slopes must be those of two judges or more, not {len(judge_slopes)}")
        model["judges"] = "slopes"
    adaptive, btl = resolve_preset(preset, with_goal("order" if size is None else f"top:{size}", None, wanted), model)
    options = {
        "n_items": simulated, "selector": selector_for(selector, adaptive.get("goal", "order")),
        "ability_sd": require_number(sd, "sd", above=0), "bias": bias, "lapse": lapse, "invalid_rate": invalid_rate,
        "concurrency": require_int(concurrency, "concurrency", least=1), "checkpoints": (),
        "adaptive_config": adaptive, "btl_config": btl, "error": error, "judge_slopes": judge_slopes,
    }  # fmt: skip
    # The errors of probabilities belong to the pair: asking again tells nothing new, whatever the judge.
    judges = [0.0, 1.0] if repeats is None and answer == "winner" else [repeats or 0.0]
    tasks = [options | {"seed": number, "repeats": share} for share in judges for number in range(seed, seed + seeds)]
    runs = values_of(simulate_all(tasks, n_jobs, progress), "run")
    plans = []
    for at, share in enumerate(judges):
        own = runs[at * seeds : (at + 1) * seeds]
        plan = replace(_plan(n, target, own, price, seconds, concurrency), answer=answer, preset=preset, repeats=share)
        plans.append(plan if top is None or size is None else _for_top(plan, own, top, size))
    return plans[0] if len(plans) == 1 else replace(plans[0], repeating=plans[1])


def _for_top(found: ComparisonPlan, runs: list[SimulatedRun], top: int, size: int) -> ComparisonPlan:
    """The plan of a run for the top, from runs for the top ``size``."""
    notices = found.notices
    if size != top:
        notices += (f"they were for the top {size:,} of {found.simulated_items:,}: about the same share",)
    right = [len(np.intersect1d(np.argsort(-run.theta)[:size], np.argsort(-run.abilities)[:size])) for run in runs]
    return replace(found, goal=f"top:{top}", top_right=float(np.mean(right)) * top / size, notices=notices)


def _plan(
    n: int,
    reliability: float | None,
    runs: list[SimulatedRun],
    price: float | None,
    seconds: float | None,
    in_flight: int,
) -> ComparisonPlan:
    size = runs[0].n_items
    ends = [math.ceil(run.comparisons * n / size) for run in runs]
    needed = [end if run.stopped_at is not None else math.inf for end, run in zip(ends, runs, strict=True)]
    middle = median(needed)
    there = sum(map(math.isfinite, needed))
    table = _table(runs)
    known: dict[str, Any] = dict.fromkeys(("comparisons", "per_item", "questions", "cost", "minutes"))
    if math.isfinite(middle):
        comparisons = round(middle)
        asked_for_each = sum(run.asked for run in runs) / max(1, sum(run.comparisons for run in runs))
        questions = math.ceil(comparisons * asked_for_each)
        known |= {"comparisons": comparisons, "per_item": comparisons / n, "questions": questions}
        known["cost"] = None if price is None else questions * price
        known["minutes"] = None if seconds is None else questions * seconds / in_flight / 60
    return ComparisonPlan(
        n_items=n,
        reliability=reliability,
        selector=runs[0].selector,
        at_least=known["comparisons"] or round(median(ends)),
        fewest=int(min(needed)) if there else None,
        most=int(max(needed)) if there == len(runs) else None,
        reliability_true=table["reliability_true"].mean(),  # type: ignore[arg-type]
        spearman=table["spearman"].mean(),  # type: ignore[arg-type]
        n_seeds=len(runs),
        n_reached=there,
        simulated_items=size,
        notices=tuple(_notices(n, runs)),
        runs=table,
        **known,
    )


def _table(runs: list[SimulatedRun]) -> pl.DataFrame:
    figures = ("reliability_claimed", "reliability_true", "spearman_eap")
    rows = []
    for run in runs:
        last = run.refits.row(-1, named=True) if run.refits.height else {}
        row = {"seed": run.seed, "comparisons": run.comparisons, "per_item": run.comparisons / run.n_items}
        rows.append(row | {"stop_reason": run.stop_reason} | {name: last.get(name) for name in figures})
    table = pl.DataFrame(rows, schema_overrides=dict.fromkeys(figures, pl.Float64()))
    return table.rename({"spearman_eap": "spearman"})


def _notices(n: int, runs: list[SimulatedRun]) -> list[str]:
    size = runs[0].n_items
    said = []
    if n > size:
        said.append(f"runs of {size:,} items were simulated, and their comparisons per item taken for {n:,}")
    short = [run.stop_reason for run in runs if run.stopped_at is None]
    if short:
        reasons = " or ".join(_SHORT.get(reason, reason) for reason in sorted(set(short)))
        said.append(f"{len(short)} of {len(runs)} runs did not get there: {reasons}")
    return said


_SHORT = {
    "max_comparisons": f"{MOST_PER_ITEM} comparisons per item were not enough",
    "candidate_starvation": "every pair was asked as often as is allowed",
    "pairs_exhausted": "every pair was asked once, and repeats tell nothing new",
    "judge_failing": "the judge declined too often",
    "judge_flips": "the judge went by position",
}
