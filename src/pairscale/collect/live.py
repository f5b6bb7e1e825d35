"""Live judging: many pairs, one judge, bounded concurrency, nothing lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pairscale.collect._plan import Plan, make_plan, named_pairs, say_unnamed
from pairscale.collect._saved import SavedResults
from pairscale.core.display import ReprMixin
from pairscale.core.errors import JudgeError
from pairscale.core.options import FilePath, ProgressMode, checked, optional, require_int, require_progress
from pairscale.core.provenance import Provenance
from pairscale.core.tables import ANSWER_COLUMNS, RESULTS
from pairscale.judges.base import AnyJudge, Judge, judge_member
from pairscale.judges.build import make_judge
from pairscale.runtime import (
    CONCURRENCY,
    RETRIES,
    TIMEOUT,
    Budget,
    LogRows,
    Progress,
    Question,
    Recorded,
    RunOptions,
    Runtime,
    awaitable,
    blocking,
    close,
    record_prices,
    require_prices,
)
from pairscale.store.policies import GroupCommitWriter
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.writer import Entry

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table
    from pairscale.core.traits import AnyTrait


@dataclass(frozen=True, slots=True, repr=False)
class SubmitResult(ReprMixin, table="results", columns=ANSWER_COLUMNS):
    """What judging a table of pairs gave.

    Attributes:
        results: one row per pair that was answered (a win, a tie or a flip), in the order of the pairs.
        failed_pairs: the pairs without an answer, with the reason of the last attempt.
        failed_attempts: every attempt without an answer, also those that a later one made good.
        condition_id: the condition they were judged under.
        asked: how many attempts this call made; 0 when everything was known already.
        provenance: how it was done.
        cached: how many answers of this call came from the answer cache, for nothing.
        saved: US dollars that asking for them would have cost, as far as prices are known.
    """

    results: pl.DataFrame
    failed_pairs: pl.DataFrame
    failed_attempts: pl.DataFrame
    condition_id: str
    asked: int
    provenance: Provenance
    cached: int = 0
    saved: float = 0.0

    @property
    def n_answered(self) -> int:
        """How many pairs were answered."""
        return self.results.height

    @property
    def n_failed(self) -> int:
        """How many pairs have no answer after being asked."""
        return self.failed_pairs.height

    def __str__(self) -> str:
        counts = f"{self.n_answered:,} pairs answered, {self.n_failed:,} failed, {self.asked:,} asked now"
        return f"{counts}, {self.cached:,} from the cache" if self.cached else counts


@blocking("run", "save_path")
@checked
async def submit_pairs(
    pairs: Table,
    judge: AnyJudge,
    *,
    run: FilePath | None = None,
    concurrency: int = CONCURRENCY,
    progress: ProgressMode = True,
    retries: int = RETRIES,
    retry_wait: float = 1.0,
    timeout: float | None = TIMEOUT,
    save_path: FilePath | None = None,
    include_raw: bool = False,
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    judge_call_args: Mapping[str, Any] | None = None,
    max_cost: float | None = None,
    status_every: int | None = None,
) -> SubmitResult:
    """Have pairs judged, and keep every answer.

    An answer is on the disk before it is used. The same call again asks only what is missing *under the same
    condition* (judge, model, template, trait, settings): it resumes after a crash, a Ctrl-C or a power cut, and asks
    again what failed.

    Args:
        pairs: ``ID1 text1 ID2 text2``; a column ``c1`` with its ``c2`` reaches the judge as the samples' column
            ``c``. A pair that occurs twice is asked about twice. ``pair_uid``, when there, names the pairs.
        judge: a name, a callable or a :class:`Judge`; see :func:`pairscale.make_judge`.
        run: Path of the run file (created when missing), or a database URL; None keeps nothing.
        concurrency: Questions open at once.
        progress: Show progress on standard error: a bar in a terminal, lines elsewhere.
        retries: How often to ask again after a transient failure.
        retry_wait: Seconds before the first retry, where the provider does not say; doubled each time, with jitter.
        timeout: Seconds that one answer may take; None for no limit.
        save_path: a CSV that is kept up to date too, and taken up again when it exists.
        include_raw: Add ``raw_response`` to the results.
        trait: what to judge; see :func:`pairscale.make_judge`, also for the next three.
        template: the prompt template.
        judge_args: settings of the judge.
        judge_call_args: keyword arguments of every call of a callable.
        max_cost: US dollars that the run may spend, all calls and resumptions together. A model without a known price
            is refused with it; a judge of your own that does not say what its answers cost is stopped.
        status_every: Print a line on standard error per this many pairs, instead of the bar.

    Returns:
        A :class:`SubmitResult` with ``results``, ``failed_pairs`` and ``failed_attempts``.

    Raises:
        InputError: the pairs or the judge cannot be used.
        JudgeError: the judge cannot be asked (a wrong key, an unknown model), or fails in the same way on ten different
            questions in a row; every answer that came before is stored, and is in ``result`` of the exception.
        StoreError: the run file cannot be used; what was answered before is kept.

    Example:
        >>> pairs = [{"ID1": "a", "text1": "Yes.", "ID2": "b", "text2": "No, because it rains."}]
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> submit_pairs(pairs, longer).results["better_id"].to_list()
        ['b']
    """
    options = RunOptions(concurrency, retries, retry_wait, timeout, max_cost)
    optional(require_int, status_every, "status_every", least=1)
    judge = make_judge(judge, trait=trait, template=template, judge_args=judge_args, judge_call_args=judge_call_args)
    say_unnamed(judge, run or save_path)
    require_prices([judge], max_cost)
    with open_run(run, write=True) as store:
        return await submit_into(
            store, pairs, judge, options, progress=progress, status_every=status_every, save_path=save_path,
            include_raw=include_raw,
        )  # fmt: skip


@awaitable(submit_pairs)
async def submit_pairs_async(*args: Any, **settings: Any) -> Any:
    """The same as :func:`submit_pairs`, to be awaited.

    Example:
        >>> import asyncio
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(3)
        >>> asyncio.run(ps.submit_pairs_async(pairs, "lexical", progress=False))
        <SubmitResult: 3 pairs answered, 0 failed, 3 asked now>
    """


async def submit_into(
    store: RunFile,
    pairs: Table,
    judge: Judge,
    options: RunOptions,
    *,
    progress: ProgressMode = True,
    status_every: int | None = None,
    save_path: FilePath | None = None,
    include_raw: bool = False,
) -> SubmitResult:
    """The same as :func:`submit_pairs_async`, into a run file that is open for writing, with a judge that is made.

    Args:
        store: the run file.
        pairs: as in :func:`submit_pairs`, and so are those not named here.
        judge: the judge.
        options: how to ask.
        progress: show progress.
        status_every: print a line per this many pairs.
        save_path: the CSV.
        include_raw: Add ``raw_response``.
    """
    plan = make_plan(store, named_pairs(pairs), judge.condition)
    record_prices(store, [judge])
    saved = None if save_path is None else SavedResults(save_path)
    try:
        if saved is not None:
            saved.append(plan.take_up(store, saved.rows))
        budget = Budget.of(store, options.max_cost)
        also = None if saved is None else partial(_append, saved, plan, store)
        show = require_progress(progress) != "none" or status_every is not None
        with Progress(plan.total, plan.n_answered(), show=show, every=status_every, prices=budget.prices) as bar:
            source = PairSource(plan, judge, store)
            async with GroupCommitWriter(store, also=also) as writer:
                runtime = Runtime(source, writer, options, budget=budget, progress=bar)
                try:
                    await runtime.run()
                except JudgeError as error:
                    await writer.drain()
                    error.result = _result(plan, store, runtime, options, include_raw)
                    raise
    finally:
        await close(judge)
        if saved is not None:
            saved.close()
    return _result(plan, store, runtime, options, include_raw)


def _result(plan: Plan, store: RunFile, runtime: Runtime, options: RunOptions, raw: bool) -> SubmitResult:
    settings = {"run": store.name}
    settings |= {name: getattr(options, name) for name in ("concurrency", "retries", "retry_wait")}
    provenance = Provenance("submit_pairs", settings, inputs={"condition": plan.condition_id})
    tables = plan.outcome(store, raw=raw)
    return SubmitResult(*tables, plan.condition_id, runtime.asked, provenance, runtime.cached, runtime.saved)


class PairSource:
    """Given pairs as a source of questions."""

    def __init__(self, plan: Plan, judge: Judge, store: RunFile) -> None:
        repeats = store.repeats() if judge_member(judge, "uses_cache") else {}
        self._questions = plan.questions(judge, repeats)

    def next(self) -> Question | None:
        """The next pair without an answer."""
        return next(self._questions, None)

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:  # noqa: ARG002
        """Nothing is to be written beside an answer."""
        return ()


def _append(saved: SavedResults, plan: Plan, store: RunFile, entries: Sequence[Entry]) -> None:
    """Add the answers of a transaction to the CSV."""
    asked = [entry.asked for entry in entries if entry.asked is not None and entry.asked.comparison is not None]
    answers = plan.answers(store, [question.pair_id for question in asked if question.pair_id is not None])
    saved.append(answers.select(*RESULTS))
