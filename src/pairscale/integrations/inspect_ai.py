"""A scorer for inspect_ai: is each sample's output better than that of a baseline?

It needs inspect_ai (``pip install inspect_ai``) when it is called, not when it is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeAlias

import polars as pl

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError, PairscaleError
from pairscale.core.options import FilePath
from pairscale.core.tables import Values
from pairscale.evaluate.comparators import PairwiseOutcome
from pairscale.evaluate.formats.reading import Answer, of_variant, read_answers
from pairscale.evaluate.inference.failures import Failures, count_failure, failed_sides, require_failures
from pairscale.evaluate.inference.win_rate import WinRate, win_rate
from pairscale.evaluate.judge import pairwise_judge
from pairscale.evaluate.run import NO_ANSWER
from pairscale.evaluate.tasks import Task, Trace, as_trace, id_key, id_of, input_key
from pairscale.judges.base import AnyJudge

_Baseline: TypeAlias = "FilePath | Mapping[str, Any] | Any"
_KEY = "pairwise"
_MOST_EPOCHS = 64


def pairwise_scorer(
    baseline: _Baseline,
    judge: AnyJudge,
    criterion: str,
    *,
    swap: bool = True,
    failures: Failures = "loss",
    judge_args: Mapping[str, Any] | None = None,
) -> Any:
    """A scorer of inspect_ai that compares each sample's output with the baseline's, in both orders.

    The score of a sample is 1 if its output is better, 0 if the baseline's is, and 0.5 for a tie or a flip (each order
    has another winner). Where the judge gives no answer, or the baseline has none to this sample, the sample is
    unscored. The metrics are ``win_rate``, ``win_rate_lower`` and ``win_rate_upper``, a 95 % interval which allows for
    epochs of a sample being alike. The metadata of a score have the outcome, what each order said, and the cost.

    Args:
        baseline: The outputs to compare with: a log of inspect_ai (its path, or the ``EvalLog``), any other file that
            :func:`pairscale.read_outputs` reads, or a mapping from sample id to output. Epochs are paired in their
            order; a baseline with fewer epochs is used again from its first.
        judge: ``provider:model``, a :class:`pairscale.Judge` or a callable ``judge(A, B)``; see
            :func:`pairscale.pairwise_judge`.
        criterion: What "better" means.
        swap: Ask in both orders.
        failures: How an output that is empty or an error counts: ``loss``, ``shown`` or ``excluded``; see
            :func:`pairscale.run_pairwise`.
        judge_args: Settings of the judge.

    Returns:
        The scorer, for ``Task(scorer=…)`` or ``inspect_ai.score(log, …)``.

    Raises:
        PairscaleError: inspect_ai is not installed.
        InputError: the baseline, the judge or a setting cannot be used.

    Example:
        ::

            from inspect_ai import Task, eval
            from pairscale.integrations.inspect_ai import pairwise_scorer

            scorer = pairwise_scorer("logs/old.eval", judge="openai:gpt-5.1", criterion="more helpful")
            eval(Task(dataset=dataset, solver=solver, scorer=scorer), model="openai/gpt-5.1-mini")
    """
    return _registered()(
        baseline=baseline, judge=judge, criterion=criterion, swap=swap, failures=failures, judge_args=judge_args
    )


def win_rate_of(scores: Mapping[str, float]) -> WinRate:
    """The win rate of samples with its interval, from their scores.

    Args:
        scores: by sample, its score: the mean over its epochs.

    Example:
        >>> rate = win_rate_of({"q1": 1.0, "q2": 0.5, "q3": 1.0})
        >>> round(rate.rate, 3), rate.n
        (0.833, 3)
    """
    # A mean of epochs is a number of wins, ties and losses with that mean; as many for every sample.
    size = next((n for n in range(1, _MOST_EPOCHS) if all(_is_whole(2 * n * score) for score in scores.values())), 32)
    rows: list[Values] = []
    for sample, score in scores.items():
        halves = round(2 * size * score)
        wins, is_odd = divmod(halves, 2)
        outcomes = [("win", "b")] * wins + [("tie", None)] * is_odd + [("win", "a")] * (size - wins - is_odd)
        rows += [{"task_id": sample, "outcome": kind, "winner": winner} for kind, winner in outcomes]
    schema = {"task_id": pl.String(), "outcome": pl.String(), "winner": pl.String()}
    return win_rate(pl.DataFrame(rows, schema=schema))


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-9


class _Baselines:
    """The outputs of a baseline, by sample and epoch."""

    def __init__(self, baseline: _Baseline) -> None:
        self._by_id: dict[str, list[Trace]] = {}
        self._by_input: dict[str, list[Trace]] = {}
        for answer in _answers(baseline):
            if answer.task_id:
                self._by_id.setdefault(id_key(answer.task_id), []).append(answer.trace)
            elif isinstance(asked := answer.trace.metadata.get("input"), str):
                self._by_input.setdefault(input_key(asked), []).append(answer.trace)
        if not self._by_id and not self._by_input:
            raise InputError("the baseline has no outputs with a sample's id or input")

    def find(self, sample_id: Any, sample_input: str, epoch: int) -> Trace | None:
        """The baseline's output for a sample; None when it has none."""
        traces = self._by_id.get(id_key(id_of(sample_id))) or self._by_input.get(input_key(sample_input))
        return traces[(epoch - 1) % len(traces)] if traces else None


def _answers(baseline: _Baseline) -> Sequence[Answer]:
    if isinstance(baseline, str | os.PathLike):
        return of_variant(read_answers(baseline), None, str(baseline))
    if isinstance(baseline, Mapping):
        return [Answer(as_trace(output, f"sample {name!r}"), id_of(name)) for name, output in baseline.items()]
    dump = getattr(baseline, "model_dump", None)
    if dump is None or not hasattr(baseline, "samples"):
        raise InputError(
            f"baseline must be a log of inspect_ai, a file of answers, or a mapping from sample id to output, not "
            f"{type(baseline).__name__}"
        )
    return read_answers([dump(mode="json")])


@cache
def _registered() -> Callable[..., Any]:
    """The scorer as inspect_ai knows it, registered once."""
    try:
        from inspect_ai.scorer import Score, metric, scorer
    except ModuleNotFoundError as error:
        raise PairscaleError("this scorer needs inspect_ai: pip install inspect_ai") from error

    def figures(scores: Sequence[Any]) -> WinRate | None:
        values = [getattr(score, "score", score).value for score in scores]  # a SampleScore, or its Score
        scored = {f"{number}": float(value) for number, value in enumerate(values) if _is_known(value)}
        return win_rate_of(scored) if scored else None

    def figure(name: str, of: Callable[[WinRate], float | None]) -> Any:
        def metric_of_scores() -> Any:
            return lambda scores: _figure(figures(scores), of)

        return metric(name=name)(metric_of_scores)()

    metrics = [
        figure("win_rate", lambda rate: rate.rate),
        figure("win_rate_lower", lambda rate: None if rate.ci is None else rate.ci[0]),
        figure("win_rate_upper", lambda rate: None if rate.ci is None else rate.ci[1]),
    ]

    def compared(
        baseline: Any,
        judge: Any,
        criterion: str,
        swap: bool = True,
        failures: Failures = "loss",
        judge_args: Any = None,
    ) -> Any:
        baselines = _Baselines(baseline)
        comparator = pairwise_judge(judge, criterion=criterion, key=_KEY, swap=swap, judge_args=judge_args)
        way = require_failures(failures)

        async def score(state: Any, target: Any) -> Any:
            before = baselines.find(state.sample_id, state.input_text, state.epoch)
            if before is None:
                return Score.unscored(
                    reason="scoring_failed", explanation=f"the baseline has no output for sample {state.sample_id!r}"
                )
            now = Trace(state.output.completion or "", exception=state.output.error)
            task = Task({"input": state.input_text}, id_of(state.sample_id), target.text or None)
            outcome = await _outcome(comparator, task, before, now, way)
            more: Values = {
                "outcome": str(outcome.outcome),
                "winner": outcome.winner,
                "baseline": before.output,
            }
            more |= {"cost": outcome.cost, "orders": outcome.detail.get("orders")}
            if outcome.outcome in {Outcome.ERROR, Outcome.ABSTENTION}:
                return Score.unscored(reason="grader_failed", explanation=outcome.reasoning, metadata=more)
            value = {"b": 1.0, "a": 0.0}.get(str(outcome.winner), 0.5)
            return Score(value=value, answer=now.output, explanation=outcome.reasoning, metadata=more)

        return score

    registered: Callable[..., Any] = scorer(metrics=metrics, name="pairwise_scorer")(compared)
    return registered


async def _outcome(comparator: Any, task: Task, before: Trace, now: Trace, way: Failures) -> PairwiseOutcome:
    """What the judge says, or what a failure counts for."""
    why = (before.failure, now.failure)
    failed = failed_sides(*why)
    if failed is not None and way != "shown":
        kind, winner = count_failure(failed, Outcome.ERROR, None, way)
        words = "; ".join(
            f"{who} failed: {failure}"
            for who, failure in zip(("the baseline", "the output"), why, strict=True)
            if failure
        )
        return PairwiseOutcome(winner, words, outcome=kind)  # type: ignore[arg-type]
    a, b = (trace if failure is None else Trace(NO_ANSWER) for trace, failure in zip((before, now), why, strict=True))
    outcome: PairwiseOutcome = await comparator.compare(
        task=task, trace_a=a, trace_b=b, reference_outputs=task.reference_outputs
    )
    return outcome


def _is_known(value: Any) -> bool:
    return isinstance(value, int | float) and value == value  # noqa: PLR0124 - NaN is what is not scored


def _figure(rate: WinRate | None, of: Callable[[WinRate], float | None]) -> float:
    """A figure of a win rate; NaN where there is none."""
    value = None if rate is None else of(rate)
    return float("nan") if value is None else value


if find_spec("inspect_ai") is not None:
    _registered()  # so that inspect_ai finds it by its name, pairscale/pairwise_scorer
