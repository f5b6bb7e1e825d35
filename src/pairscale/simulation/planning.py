"""How many comparisons will be needed? Answered by runs that have not happened yet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl
from scipy.special import bdtr

from pairscale.adaptive.config import OURS, Preset, require_goal, resolve_preset, top_of, with_goal
from pairscale.adaptive.selectors import OwnSelector, selector_for
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import values_of
from pairscale.core.notices import plural
from pairscale.core.options import (
    ProgressMode,
    checked,
    optional,
    require_choice,
    require_int,
    require_number,
    require_probability,
)
from pairscale.judges.simulated import SimulatedJudge
from pairscale.models.bayes.settings import Answer
from pairscale.simulation.run import FIGURES, MOST_PER_ITEM, simulate_all

if TYPE_CHECKING:
    from pairscale.simulation.run import SimulatedRun

LARGEST = 100
"""So many items are simulated at most; the comparisons per item hardly depend on their number."""

SHARE = 0.8
"""The comparisons that a plan advises are enough for this share of runs."""

_CERTAINTY = 0.75


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparisonPlan(ReprMixin, table="runs"):
    """What a run will probably need, to reach a reliability and its stop rule.

    The comparisons advised are enough for 80 % of runs: as many as the longest of ten simulated runs needed, or the
    eighteenth of twenty, so that it holds with a certainty of at least 75 %. Runs that end before they get there (at
    the limit of comparisons, or because no pair is left) would need more than they had. Where they are more than 20 %,
    there is only a lower bound.

    Attributes:
        n_items: how many items will be ranked.
        reliability: the reliability to reach, the squared correlation to expect with the truth; None where the goal is
            ``top:K``.
        selector: who chooses the pairs.
        comparisons: comparisons that are enough for 80 % of runs; None when fewer of the simulated runs got there.
        at_least: what they are at least: ``comparisons`` where that is known, else how far as many runs got.
        half: comparisons that are enough for half of the runs; None when fewer got there.
        per_item: comparisons divided by the number of items. An item takes part in twice as many.
        questions: questions to ask; more than ``comparisons`` when the judge declines some.
        cost: what they cost, when a price was given.
        minutes: how long they take, when the seconds of an answer were given.
        n_seeds: how many runs were simulated.
        n_reached: how many of them got there.
        simulated_items: how many items they had.
        notices: what to know about these figures.
        runs: one row per run: ``seed comparisons per_item stop_reason reliability_claimed reliability_true spearman``.
        preset: The settings that the runs started from.
        goal: What the runs were for: ``order`` or ``top:K``.
        repeats: Probability that their judge repeated its first answer to a pair that was asked again.
        repeating: The same plan for a judge that repeats itself; None where ``repeats`` was given.
        answer: What was evidence in them: ``winner`` or ``probability``.
    """

    n_items: int
    reliability: float | None
    selector: str
    comparisons: int | None
    at_least: int
    half: int | None
    n_seeds: int
    n_reached: int
    simulated_items: int
    notices: tuple[str, ...]
    runs: pl.DataFrame
    per_item: float | None = None
    questions: int | None = None
    cost: float | None = None
    minutes: float | None = None
    preset: Preset = OURS
    goal: str = "order"
    answer: str = "winner"
    repeats: float = 0.0
    repeating: ComparisonPlan | None = None

    def __str__(self) -> str:
        if self.repeating is None:
            return self._line()
        return f"a judge that varies: {self._line()}\na judge that repeats itself: {self.repeating._line()}"

    def _line(self) -> str:
        aim = f"the goal {self.goal}" if self.reliability is None else f"reliability {self.reliability:g}"
        if self.comparisons is None and self.repeats == 1 and self.n_items == self.simulated_items:
            pairs = self.n_items * (self.n_items - 1) // 2
            share = 100 * self.n_reached / self.n_seeds
            return f"at most {pairs:,} different pairs: {share:.0f} % of such runs reach {aim}"
        start = f"{self.n_items:,} items to {aim}:"
        if self.comparisons is None:
            reached = f"{self.n_reached} of {self.n_seeds} simulated runs got there"
            return f"{start} more than {self.at_least:,} comparisons; {reached}"
        line = f"{start} {self.comparisons:,} comparisons "
        if _enough(self.n_seeds) is None:
            line += f"were enough in {plural(self.n_seeds, 'simulated run')}"
        else:
            line += f"are enough for {100 * SHARE:g} % of runs (half of them need {self.half:,})"
        line += f", {self.per_item:.1f} per item"
        if self.cost is not None:
            line += f", cost {self.cost:,.2f}"
        if self.minutes is not None:
            line += f", {self.minutes:,.0f} minutes" if self.minutes < 120 else f", {self.minutes / 60:,.1f} hours"
        return line


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
    selector: str | OwnSelector | None = None,
    preset: Preset = OURS,
    price: float | None = None,
    seconds: float | None = None,
    concurrency: int = 1,
    seeds: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressMode = True,
) -> ComparisonPlan:
    """Simulate runs like the one you plan, and see how many comparisons are enough for 80 % of them.

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
    if answer == "probability":
        error = require_number(1.0 if error is None else error, "error", above=0)
    elif error is not None:
        raise InputError("error belongs to answer='probability'")
    adaptive, btl = resolve_preset(preset, with_goal("order" if size is None else f"top:{size}", None, wanted), model)
    options = {
        "n_items": simulated, "selector": selector_for(selector, adaptive.get("goal", "order")),
        "ability_sd": require_number(sd, "sd", above=0), "bias": bias, "lapse": lapse, "invalid_rate": invalid_rate,
        "concurrency": require_int(concurrency, "concurrency", least=1), "checkpoints": (),
        "adaptive_config": adaptive, "btl_config": btl, "error": error,
    }  # fmt: skip
    # The errors of probabilities belong to the pair: asking again tells nothing new, whatever the judge.
    judges = [0.0, 1.0] if repeats is None and answer == "winner" else [repeats or 0.0]
    tasks = [options | {"seed": number, "repeats": share} for share in judges for number in range(seed, seed + seeds)]
    runs = values_of(simulate_all(tasks, n_jobs, progress), "run")
    plans = []
    for number, share in enumerate(judges):
        own = runs[number * seeds : (number + 1) * seeds]
        notices = _notices(n, own)
        if top != size:
            notices.append(f"they were for the top {size:,}: about the same share")
        said = {"goal": goal, "answer": answer, "preset": preset, "repeats": share, "notices": tuple(notices)}
        plans.append(_plan(n, own, price, seconds, concurrency, reliability=target, **said))
    return plans[0] if len(plans) == 1 else replace(plans[0], repeating=plans[1])


def _plan(
    n: int, runs: list[SimulatedRun], price: float | None, seconds: float | None, in_flight: int, **said: Any
) -> ComparisonPlan:
    size = runs[0].n_items
    ends = sorted(math.ceil(run.comparisons * n / size) for run in runs)
    reached = sorted(math.ceil(run.comparisons * n / size) for run in runs if run.stopped_at is not None)
    enough = math.ceil(SHARE * len(runs))
    place = min(_enough(len(runs)) or len(runs), len(reached))
    middle = math.ceil(len(runs) / 2)
    comparisons = reached[place - 1] if len(reached) >= enough else None
    if comparisons is not None:
        asked_for_each = sum(run.asked for run in runs) / max(1, sum(run.comparisons for run in runs))
        questions = math.ceil(comparisons * asked_for_each)
        said |= {"per_item": comparisons / n, "questions": questions}
        if price is not None:
            said["cost"] = questions * price
        if seconds is not None:
            said["minutes"] = questions * seconds / in_flight / 60
    table = pl.DataFrame(
        [{"seed": run.seed, "per_item": run.comparisons / size} | run.end for run in runs],
        schema_overrides=dict.fromkeys(FIGURES, pl.Float64()),
    )
    return ComparisonPlan(
        n_items=n,
        selector=runs[0].selector,
        comparisons=comparisons,
        at_least=comparisons or ends[enough - 1],
        half=reached[middle - 1] if len(reached) >= middle else None,
        n_seeds=len(runs),
        n_reached=len(reached),
        simulated_items=size,
        runs=table.select("seed", "comparisons", "per_item", "stop_reason", *FIGURES[:2], spearman=FIGURES[2]),
        **said,
    )


def _enough(n_runs: int) -> int | None:
    """The place of the run, in order of what they needed, that is enough for most runs; None where they are too few."""
    certain = np.flatnonzero(bdtr(np.arange(n_runs), n_runs, SHARE) >= _CERTAINTY)
    return int(certain[0]) + 1 if len(certain) else None


def _notices(n: int, runs: list[SimulatedRun]) -> list[str]:
    size = runs[0].n_items
    notices = []
    if n > size:
        notices.append(f"runs of {size:,} items were simulated, and their comparisons per item taken for {n:,}")
    short = [run.stop_reason for run in runs if run.stopped_at is None]
    if short:
        reasons = " or ".join(_SHORT.get(reason, reason) for reason in sorted(set(short)))
        notices.append(f"{len(short)} of {len(runs)} runs did not get there: {reasons}")
    return notices


_SHORT = {
    "max_comparisons": f"{MOST_PER_ITEM} comparisons per item were not enough",
    "candidate_starvation": "every pair was asked as often as is allowed",
    "pairs_exhausted": "every pair was asked once, and repeats tell nothing new",
    "judge_failing": "the judge declined too often",
    "judge_flips": "the judge went by position",
}
