"""Live judging: many pairs, one judge, bounded concurrency, nothing lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.collect._asking import Stopwatch, ask, close, pause
from pairscale.collect._background import run_sync
from pairscale.collect._clerk import Clerk
from pairscale.collect._plan import Plan, Question, make_plan
from pairscale.collect._progress import Bar
from pairscale.collect._purse import Purse, TooDear
from pairscale.collect._saved import SavedResults
from pairscale.display import Shown
from pairscale.errors import InputError
from pairscale.judges.base import Judge, Verdict
from pairscale.judges.resolve import make_judge
from pairscale.notices import notice
from pairscale.provenance import Provenance
from pairscale.store import Answer, RunFile, open_run
from pairscale.tables import ANSWER_COLUMNS

if TYPE_CHECKING:
    import os

    import polars as pl

    from pairscale.tables import Table
    from pairscale.traits import Trait

__all__ = ["SubmitResult", "require_options", "submit_into", "submit_pairs", "submit_pairs_async"]


@dataclass(frozen=True, slots=True, repr=False)
class SubmitResult(Shown, table="results", columns=ANSWER_COLUMNS):
    """What judging a table of pairs gave.

    Attributes:
        results: one row a pair that was answered (a win, a tie or a flip), in the order of the pairs.
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

    def __str__(self) -> str:
        counts = (
            f"{self.results.height:,} pairs answered, {self.failed_pairs.height:,} failed, {self.asked:,} asked now"
        )
        return f"{counts}, {self.cached:,} from the cache" if self.cached else counts


def submit_pairs(
    pairs: Table,
    judge: str | Judge | Callable[..., Any],
    *,
    run: str | os.PathLike[str] | None = None,
    concurrency: int = 1,
    progress: bool = True,
    retries: int = 3,
    retry_wait: float = 1.0,
    save_path: str | os.PathLike[str] | None = None,
    include_raw: bool = False,
    trait: str | Trait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    judge_call_args: Mapping[str, Any] | None = None,
    on_answer: Callable[[Mapping[str, Any]], None] | None = None,
    max_cost: float | None = None,
    status_every: int | None = None,
) -> SubmitResult:
    """Have pairs judged, and keep every answer.

    An answer is on the disk before it is used. The same call again asks only what is missing *under the same
    condition* (judge, model, template, trait, settings): it resumes after a crash, a Ctrl-C or a power cut, and asks
    again what failed.

    Args:
        pairs: ``ID1 text1 ID2 text2``; a column ``c1`` with its ``c2`` reaches the judge as the samples' column
            ``c``. A pair that stands twice is asked twice. ``pair_uid``, when there, names the pairs.
        judge: a name, a callable or a :class:`Judge`; see :func:`pairscale.make_judge`.
        run: the run file (made when missing), or a database URL; None keeps nothing.
        concurrency: how many questions may be open at once.
        progress: show a bar in a terminal; elsewhere, a line on standard error after five seconds, and then every half
            minute.
        retries: how often to ask again when the judge says that an error may pass.
        retry_wait: seconds before the first of these; doubled each time, with jitter, at most a minute.
        save_path: a CSV that is kept up to date too, and taken up again when it exists.
        include_raw: add ``raw_response`` to the results.
        trait: what to judge; see :func:`pairscale.make_judge`, also for the next three.
        template: the prompt template.
        judge_args: settings of the judge.
        judge_call_args: keyword arguments of every call of a callable.
        on_answer: called with each new result, after it is on the disk.
        max_cost: stop before the answers of this call cost more US dollars, as far as the judge says what they cost;
            the next answer is taken to cost as much as the dearest so far, and so is each that is under way.
        status_every: print a line on standard error per so many pairs, in place of the bar.

    Returns:
        A :class:`SubmitResult` with ``results``, ``failed_pairs`` and ``failed_attempts``.

    Raises:
        InputError: the pairs or the judge cannot be used.
        StoreError: the run file cannot be used; what was answered before is kept.

    Example:
        >>> pairs = [{"ID1": "a", "text1": "Yes.", "ID2": "b", "text2": "No, because it rains."}]
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> submit_pairs(pairs, longer).results["better_id"].to_list()
        ['b']
    """
    return run_sync(
        lambda: submit_pairs_async(
            pairs,
            judge,
            run=run,
            concurrency=concurrency,
            progress=progress,
            retries=retries,
            retry_wait=retry_wait,
            save_path=save_path,
            include_raw=include_raw,
            trait=trait,
            template=template,
            judge_args=judge_args,
            judge_call_args=judge_call_args,
            on_answer=on_answer,
            max_cost=max_cost,
            status_every=status_every,
        )
    )


async def submit_pairs_async(
    pairs: Table,
    judge: str | Judge | Callable[..., Any],
    *,
    run: str | os.PathLike[str] | None = None,
    concurrency: int = 1,
    progress: bool = True,
    retries: int = 3,
    retry_wait: float = 1.0,
    save_path: str | os.PathLike[str] | None = None,
    include_raw: bool = False,
    trait: str | Trait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    judge_call_args: Mapping[str, Any] | None = None,
    on_answer: Callable[[Mapping[str, Any]], None] | None = None,
    max_cost: float | None = None,
    status_every: int | None = None,
) -> SubmitResult:
    """The same as :func:`submit_pairs`, to be awaited.

    Example:
        >>> import asyncio
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(3)
        >>> asyncio.run(ps.submit_pairs_async(pairs, "lexical", progress=False))
        <SubmitResult: 3 pairs answered, 0 failed, 3 asked now>
    """
    require_options(concurrency, retries, retry_wait, max_cost, status_every)
    judge = make_judge(judge, trait=trait, template=template, judge_args=judge_args, judge_call_args=judge_call_args)
    if "instance" in judge.condition.settings and (run or save_path):
        notice("this judge has no name, so its answers will not be found again; give it one: FunctionJudge(f, name=…)")
    with open_run(run, write=True) as store:
        return await submit_into(
            store, pairs, judge, concurrency=concurrency, progress=progress, retries=retries, retry_wait=retry_wait,
            save_path=save_path, include_raw=include_raw, on_answer=on_answer, max_cost=max_cost,
            status_every=status_every,
        )  # fmt: skip


def require_options(
    concurrency: Any, retries: Any, retry_wait: Any, max_cost: Any = None, status_every: Any = None
) -> None:
    """Refuse numbers that no judge can be asked by."""
    for name, value, kind, least in (
        ("concurrency", concurrency, Integral, 1),
        ("retries", retries, Integral, 0),
        ("retry_wait", retry_wait, Real, 0),
        ("max_cost", 0 if max_cost is None else max_cost, Real, 0),
        ("status_every", 1 if status_every is None else status_every, Integral, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, kind) or not float(value) >= least:
            what = "a whole number" if kind is Integral else "a number"
            raise InputError(f"{name} must be {what} from {least} up, not {value!r}")


async def submit_into(
    store: RunFile,
    pairs: Table,
    judge: Judge,
    *,
    concurrency: int = 1,
    progress: bool = True,
    retries: int = 3,
    retry_wait: float = 1.0,
    save_path: str | os.PathLike[str] | None = None,
    include_raw: bool = False,
    on_answer: Callable[[Mapping[str, Any]], None] | None = None,
    max_cost: float | None = None,
    status_every: int | None = None,
) -> SubmitResult:
    """The same as :func:`submit_pairs_async`, into a run file that is open for writing, by a judge that is made."""
    plan = make_plan(store, pairs, judge.condition)
    saved = None if save_path is None else SavedResults(save_path)
    try:
        if saved is not None:
            saved.append(plan.take_up(store, saved.rows))
        desk = _Desk(judge, store, plan, saved, on_answer, retries=retries, retry_wait=retry_wait, max_cost=max_cost)
        show, done = progress or status_every is not None, plan.total - plan.missing()
        with Bar(plan.total, done, show=show, every=status_every) as bar:
            await desk.work(concurrency, bar)
    finally:
        await close(judge)
        if saved is not None:
            saved.close()
    results, failed_pairs, failed_attempts = plan.outcome(store, raw=include_raw)
    settings = {"run": store.name, "concurrency": concurrency, "retries": retries, "retry_wait": retry_wait}
    provenance = Provenance("submit_pairs", settings, inputs={"condition": plan.condition_id})
    return SubmitResult(
        results, failed_pairs, failed_attempts, plan.condition_id, desk.asked, provenance, desk.cached, desk.saved
    )


_Given: TypeAlias = tuple[Answer, dict[str, Any] | None]
"""What goes into the run file, and the row for the csv, if it has one."""


class _Desk:
    """Asks the judge, writes down what it says, and only then goes on."""

    def __init__(
        self,
        judge: Judge,
        store: RunFile,
        plan: Plan,
        saved: SavedResults | None,
        on_answer: Callable[[Mapping[str, Any]], None] | None,
        *,
        retries: int,
        retry_wait: float,
        max_cost: float | None = None,
    ) -> None:
        self.asked, self.cached, self.saved = 0, 0, 0.0
        self._purse = Purse(max_cost)
        self._judge, self._store, self._plan, self._saved, self._on_answer = judge, store, plan, saved, on_answer
        self._retries, self._retry_wait = retries, retry_wait
        self._clerk = Clerk(self._write_down)
        self._too_dear = False
        self._jitter = random.Random(0)  # noqa: S311 - spreads retries, keeps no secret

    async def work(self, concurrency: int, bar: Bar) -> None:
        remembers = getattr(self._judge, "remembers", False)
        questions = self._plan.questions(self._store.repeats() if remembers else None)
        async with self._clerk:
            workers: list[asyncio.Task[None]] = []
            try:
                workers += [asyncio.create_task(self._worker(questions, bar)) for _ in range(concurrency)]
                await asyncio.gather(*workers)
                if self._too_dear:
                    spent = f"${self._purse.spent:.4f} of ${self._purse.limit:g} are spent"
                    notice(f"stopped before max_cost is passed: {spent}; the same call goes on")
            finally:
                for task in workers:
                    task.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _worker(self, questions: Iterator[Question], bar: Bar) -> None:
        for question in questions:
            if not await self._settle(question, bar):
                self._too_dear = True
                return

    async def _settle(self, question: Question, bar: Bar) -> bool:
        """Ask until there is an answer, or no more sense in asking; False when there is no money for it."""
        for turn in count():
            try:
                verdict, values = await self._paid(question, turn)
            except TooDear:
                break
            last = not verdict.passing or turn == self._retries
            await self._record(question, verdict, values, settles=last)
            if last:
                bar.advance(failed=not verdict.outcome.is_answer, cost=verdict.cost, cached=verdict.cached)
                return True
            await asyncio.sleep(pause(verdict.retry_after, turn, self._jitter, self._retry_wait))
        return False

    async def _paid(self, question: Question, turn: int) -> tuple[Verdict, dict[str, Any]]:
        """Ask once, when there is money for it.

        Raises:
            TooDear: when there is not.
        """
        if self._purse.limit is None:
            return await self._ask(question, turn)
        says = getattr(self._judge, "dearest", None)
        promised = await self._purse.promise("", None if says is None else says(question.pair(turn)))
        verdict: Verdict | None = None
        try:
            verdict, values = await self._ask(question, turn)
        finally:
            self._purse.pay(promised, verdict)
        return verdict, values

    async def _ask(self, question: Question, turn: int) -> tuple[Verdict, dict[str, Any]]:
        self.asked += 1
        number, watch = question.attempt + turn, Stopwatch()
        try:
            verdict, values = await ask(self._judge, question.pair(turn), number)
        except asyncio.CancelledError:
            stopped = Verdict.fail("cancelled", "interrupted before the answer came")
            # Nobody waits for this one to be written; its failure, if any, is that of all the others.
            answer = Answer(question.pair_id, watch.attempt(stopped, number), None)
            self._clerk.give((answer, None)).add_done_callback(_seen)
            raise
        self.saved += verdict.saved or 0.0
        if verdict.cached:
            self.asked -= 1
            self.cached += 1
        return verdict, values

    async def _record(self, question: Question, verdict: Verdict, values: dict[str, Any], *, settles: bool) -> None:
        comparison = question.comparison(verdict) if settles else None
        answer = Answer(question.pair_id, values, comparison, question.failed_before)
        row = None
        wanted = self._saved is not None or self._on_answer is not None
        if wanted and comparison is not None and verdict.outcome.is_answer:
            row = self._plan.result_row(question, comparison, values)
        await self._clerk.give((answer, row))
        if row is not None and self._on_answer is not None:
            self._on_answer(row)

    def _write_down(self, given: list[_Given]) -> None:
        """In the clerk's thread: what came in, in one transaction."""
        self._store.record([answer for answer, _ in given], self._plan.condition_id)
        if self._saved is not None:
            self._saved.append([row for _, row in given if row is not None])


def _seen(written: asyncio.Future[None]) -> None:
    if not written.cancelled():
        written.exception()
