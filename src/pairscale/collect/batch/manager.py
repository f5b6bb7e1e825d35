"""The batch machine: prepare, submit, poll, collect, cancel, submit again; from any process, at any time.

The run file is opened for each step and given back while there is only waiting to do, so that others may read and
write it meanwhile. What is in it decides everything: this process may be the one that began, or another.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from pairscale.collect._plan import Plan, make_plan, named_pairs
from pairscale.collect.batch.files import even_sizes, ingest_results, pairs_from, read_lines, requests_of, write_parts
from pairscale.collect.batch.registry import (
    EVENTS,
    JUDGES,
    Keys,
    RegistryEntry,
    entries,
    event,
    judges_of,
    note,
    rest_of,
    results_of,
    status_table,
)
from pairscale.core.errors import InputError, JudgeError, StoreBusyError, StoreGoneError
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked, optional, require_int, require_number
from pairscale.core.provenance import utc_now
from pairscale.core.tables import Values
from pairscale.core.timelimit import Clock
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import BatchJudge, calls_of, restored
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import ENDED, BatchJob, Line, batch_format
from pairscale.providers.client import ProviderError
from pairscale.providers.limits import Sleep
from pairscale.runtime import Budget, record_prices, recorded_prices, require_prices
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import write_json

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table

Numbered: TypeAlias = tuple[int, JudgePair]
"""A pair with its number in the run file."""

_LONGEST_WAIT = 60.0
_DOWNLOADS = 3
_RESULTS = 64 * 1024**2  # bytes that a file of results may have
_RESULT = 1024**2  # and more per request


class BatchManager:
    """All batches of one run file: prepares, submits, polls, collects and cancels them; use it in ``async with``.

    Args:
        run: the run file.
        folder: where the files of requests and results go; by default beside the run file.
        api_key: the key; by default those of the environment.
        sleep: how to wait.
        clock: tells the time, in seconds.
        retries: how often to try again what may pass.
        keep_jsonl: whether files of requests and results stay when the results are in the run file; by default as it
            was chosen when the batch was submitted.
    """

    @checked
    def __init__(
        self,
        run: FilePath,
        *,
        folder: FilePath | None = None,
        api_key: str | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.time,
        retries: int = 4,
        keep_jsonl: bool | None = None,
    ) -> None:
        self._retries = require_int(retries, "retries", least=0)
        self._run = run
        self._keep = keep_jsonl
        if folder is None:
            folder = "batches" if "://" in str(run) else f"{os.fspath(run)}.batches"
        self.folder = Path(folder)
        self._key = api_key
        self._sleep = sleep
        self._clock = clock
        self._judges: dict[str, BatchJudge] = {}
        self._unknown: set[str] = set()  # batches that the provider did not know when it was last asked

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        for judge in self._judges.values():
            await judge.aclose()

    # Reading

    def entries(self, keys: Keys = None) -> list[RegistryEntry]:
        """The batches, in the order in which they were prepared."""
        with open_run(self._run) as store:
            return self._entries(store, keys)

    def status(self, keys: Keys = None) -> pl.DataFrame:
        """The batches with their states, counts, ages and the time they have left."""
        return status_table(self.entries(keys), self._clock())

    def results(self, keys: Keys = None, *, raw: bool = False) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The answers to the pairs of these batches, and every attempt at them that gave none."""
        with open_run(self._run) as store:
            return results_of(store, self._entries(store, keys), raw=raw)

    def rest(self, keys: Keys = None) -> pl.DataFrame:
        """The pairs of batches that are done with that have no answer, and why."""
        with open_run(self._run) as store:
            return rest_of(store, [entry for entry in self._entries(store, keys) if not entry.open])

    # Helpers

    def _entries(self, store: RunFile, keys: Keys = None) -> list[RegistryEntry]:
        return entries(store, keys, self.folder)

    def _judge(self, store: RunFile, condition_id: str) -> BatchJudge:
        """Who was asked: the judge of this process, or as an earlier one has described it."""
        if condition_id not in self._judges:
            self._judges[condition_id] = restored(judges_of(store)[condition_id], self._key)
        return self._judges[condition_id]

    @contextmanager
    def _writing(self) -> Iterator[RunFile]:
        """The run file, which must still exist: a new one would be empty."""
        if "://" not in str(self._run) and not Path(self._run).exists():
            raise StoreGoneError(f"{self._run} was deleted while its batches were under way; restore it from a copy")
        with open_run(self._run, write=True) as store:
            yield store

    def _http(self, entry: RegistryEntry) -> BatchHTTP:
        return BatchHTTP(self._judges[entry.condition_id].client, sleep=self._sleep, retries=self._retries)

    # Submitting

    async def submit(
        self,
        pairs: Table,
        judge: BatchJudge,
        *,
        batch_size: int | None = None,
        n_segments: int | None = None,
        max_cost: float | None = None,
        metadata: Mapping[str, str] | None = None,
        keep_jsonl: bool = True,
        include_raw: bool = False,
    ) -> tuple[Plan, list[RegistryEntry]]:
        """Create the batches that these pairs need: those without an answer, and in no batch that is under way.

        Args:
            pairs: ``ID1 text1 ID2 text2``.
            judge: a model of a provider that has batches.
            batch_size: pairs in a batch, at the most.
            n_segments: how many batches; by default as few as the provider takes.
            max_cost: US dollars that the run may spend, with what is under way and all earlier calls; pairs beyond it
                are left for a call with a higher limit.
            metadata: names and values that the provider keeps with the batch, where it does.
            keep_jsonl: whether the files of requests and results stay when the results are in the run file.
            include_raw: whether the results are wanted with the raw replies, for a later call that collects them.

        Returns:
            The plan, and the entries of this call, each with the provider's id.
        """
        if batch_size is not None and n_segments is not None:
            raise InputError("give batch_size or n_segments, not both")
        batch_size = optional(require_int, batch_size, "batch_size", least=1)
        n_segments = optional(require_int, n_segments, "n_segments", least=1)
        max_cost = optional(require_number, max_cost, "max_cost", least=0)
        batch_format(judge.provider)
        require_prices([judge], max_cost)
        about = {"metadata": dict(metadata or {}), "keep_jsonl": keep_jsonl, "include_raw": include_raw}
        with open_run(self._run, write=True) as store:
            plan = make_plan(store, named_pairs(pairs), judge.condition)
            judge = self._judges.setdefault(plan.condition_id, judge)
            record_prices(store, [judge])
            if plan.condition_id not in judges_of(store):
                store.log(JUDGES, [{"condition_id": plan.condition_id, "judge": judge.describe()}])
            busy = self._under_way(store, plan.condition_id)
            questions = [(q.pair_id, q.pair()) for q in plan.questions(judge, besides=busy) if q.pair_id is not None]
            if max_cost is not None:
                questions = self._affordable(store, judge, questions, max_cost)
            sizes = even_sizes(len(questions), n_segments or 1)
            if batch_size is not None:
                sizes = repeat(batch_size)
            keys = self._prepare(store, judge, plan.condition_id, questions, sizes, about)
            await self._place_all(store, keys)
            return plan, self._entries(store, keys)

    async def resume(self) -> list[RegistryEntry]:
        """Create the batches that were prepared and not created when an earlier call was interrupted."""
        with open_run(self._run, write=True) as store:
            waiting = [entry.key for entry in self._entries(store) if entry.open and entry.batch_id is None]
            await self._place_all(store, waiting)
            return self._entries(store, waiting)

    async def resubmit(self) -> list[RegistryEntry]:
        """Put what failed, expired, was cancelled or given up into new batches, and nothing else."""
        keys: list[str] = []
        with open_run(self._run, write=True) as store:
            ended = [entry for entry in self._entries(store) if not entry.open]
            for condition_id in dict.fromkeys(entry.condition_id for entry in ended):
                done = store.progress(condition_id).answered | self._under_way(store, condition_id)
                mine = [entry for entry in ended if entry.condition_id == condition_id]
                numbers = (number for entry in mine for number in entry.pair_ids if number not in done)
                again = list(dict.fromkeys(numbers))
                about = {name: getattr(mine[-1], name) for name in ("metadata", "keep_jsonl", "include_raw")}
                questions = pairs_from(store, again).items()
                judge = self._judge(store, condition_id)
                keys += self._prepare(store, judge, condition_id, questions, repeat(len(again)), about)
            await self._place_all(store, keys)
            return self._entries(store, keys)

    def _under_way(self, store: RunFile, condition_id: str) -> set[int]:
        """Pairs in batches that are prepared, created or not yet collected."""
        return {
            number
            for entry in self._entries(store)
            if entry.open and entry.condition_id == condition_id
            for number in entry.pair_ids
        }

    def _affordable(
        self, store: RunFile, judge: BatchJudge, questions: list[Numbered], max_cost: float
    ) -> list[Numbered]:
        """The questions, in their order, that cannot make the run cost more than it may; a notice names the rest."""
        spent = store.spent()
        reserved = sum(entry.max_cost or 0.0 for entry in self._entries(store) if entry.open)
        budget = Budget(max_cost, spent + reserved)
        for count, (_, pair) in enumerate(questions):
            calls = calls_of(judge, pair)
            n_bytes = sum(len(write_json(call.body).encode()) for call in calls)
            most = judge.cost_of_bytes(n_bytes, len(calls), batch=True) or 0.0
            if not budget.may_ask("", most):
                notice(
                    f"{count:,} pairs are submitted; more might pass `max_cost=`: ${spent:.4f} of ${max_cost:g} are "
                    f"spent, and ${reserved:.4f} are reserved for batches under way{recorded_prices(store)}. Run it "
                    "again to continue, later or with a higher limit"
                )
                return questions[:count]
            budget.spent += most
        return questions

    def _prepare(
        self,
        store: RunFile,
        judge: BatchJudge,
        condition_id: str,
        questions: Collection[Numbered],
        sizes: Iterator[int],
        about: Values,
    ) -> list[str]:
        """Write the files, then write down that they are batches to be."""
        parts = list(write_parts(judge, batch_format(judge.provider), questions, self.folder, sizes))
        common = {"provider": judge.provider, "model": judge.model, "condition_id": condition_id, **about}
        for segment, part in enumerate(parts, start=1):
            most = judge.cost_of_bytes(part["bytes"], part["n_requests"], batch=True)
            part |= {"segment": segment, "max_cost": most, **common}
        store.log(EVENTS, [event("prepared", **part) for part in parts])
        return [part["key"] for part in parts]

    async def _place_all(self, store: RunFile, keys: Collection[str]) -> None:
        for entry in self._entries(store, keys):
            await self._place(store, entry)

    async def _place(self, store: RunFile, entry: RegistryEntry) -> None:
        """Bring a prepared batch to its provider, exactly once, whatever is interrupted.

        Raises:
            JudgeError: the provider does not take it.
        """
        self._judge(store, entry.condition_id)
        form = batch_format(entry.provider)
        http = self._http(entry)
        for turn in range(self._retries + 1):
            if await self._is_placed(store, entry):
                notice(f"batch {entry.key}: found again as {entry.batch_id}, which is not created twice")
                return
            if not Path(entry.input_path).is_file():
                raise InputError(
                    f"batch {entry.key} was not created, and its file of requests, {entry.input_path}, is gone; "
                    "cancel it by its key, and submit the pairs again"
                )
            try:
                if entry.file_id is None:
                    file_id = await form.upload(http, entry.draft)
                    if file_id is not None:
                        note(store, entry, "uploaded", file_id=file_id)
                note(store, entry, "creating", state="creating")
                job = await form.create(http, entry.draft)
            except ProviderError as error:
                self._take_refusal(store, entry, error, is_last=turn == self._retries)
                delay = 2.0**turn if error.retry_after is None else error.retry_after
                await self._sleep(min(delay, _LONGEST_WAIT))
            else:
                _number(store, entry, job, is_guess=False)
                return

    async def _is_placed(self, store: RunFile, entry: RegistryEntry) -> bool:
        """Whether the batch is there: a creation that was interrupted may have succeeded, and is looked for.

        Raises:
            JudgeError: it cannot be looked for.
        """
        if entry.batch_id is None and entry.state == "creating":
            taken = {other.batch_id for other in self._entries(store) if other.batch_id is not None}
            try:
                jobs = await batch_format(entry.provider).find(
                    self._http(entry), entry.draft, taken.union(entry.foreign)
                )
            except ProviderError as error:
                raise JudgeError(f"batch {entry.key} cannot be looked for: {error.message}; resume later") from None
            if jobs:
                _number(store, entry, jobs[0], is_guess=jobs[0].key != entry.key)
        return entry.batch_id is not None

    def _take_refusal(self, store: RunFile, entry: RegistryEntry, error: ProviderError, *, is_last: bool) -> None:
        """Write down what a failed creation means; returns when it is to be tried again."""
        reason = f"batch {entry.key} was not created: {error.message}"
        is_of_account = error.failure == "judge" and error.status != 404  # a wrong key, say: the batch is fine
        if error.failure != "transient" and not is_of_account:
            note(store, entry, "dropped", state="dropped", message=error.message)
            raise JudgeError(reason)
        if is_of_account or error.status == 429:  # it was refused, so it cannot be there
            note(store, entry, "refused", state="prepared")
        if is_of_account or is_last:
            raise JudgeError(f"{reason}; resume once that is resolved")

    # Looking and collecting

    async def look(self, keys: Keys = None, *, delay: float = 0.0) -> None:
        """Ask for the state of the batches that have not ended."""
        for number, entry in enumerate(self._placed(keys, ended=False)):
            if number:
                await self._sleep(delay)
            job = await self._job(entry)
            if job is None:
                continue
            seen = _seen(job)
            if any(getattr(entry, name) != value for name, value in seen.items()):
                with self._writing() as store:
                    note(store, entry, "seen", **seen)

    def _placed(self, keys: Keys, *, ended: bool) -> list[RegistryEntry]:
        """The batches that their provider has and that are not collected, by whether they have ended."""
        with open_run(self._run) as store:
            placed = [
                entry
                for entry in self._entries(store, keys)
                if entry.open and entry.batch_id is not None and (entry.state in ENDED) is ended
            ]
            for entry in placed:
                self._judge(store, entry.condition_id)
        return placed

    async def _job(self, entry: RegistryEntry) -> BatchJob | None:
        """A batch as its provider sees it now; None when it cannot be asked about."""
        try:
            job = await batch_format(entry.provider).get(self._http(entry), str(entry.batch_id))
        except ProviderError as error:
            self._say_problem(entry, error)
            return None
        self._unknown.discard(entry.key)
        return job

    def _say_problem(self, entry: RegistryEntry, error: ProviderError) -> None:
        """Log that a batch cannot be asked about now.

        The provider says 404 also of a batch of another project: that may be paid for, and is kept.

        Raises:
            JudgeError: it cannot be asked about later either.
        """
        if error.status == 404:
            if entry.key not in self._unknown:
                notice(
                    f"batch {entry.batch_id}: {entry.provider} does not know it; is this the key of the project that "
                    "it is of? It is kept, and asked about again by the next call; cancel it by its id to give it up"
                )
            self._unknown.add(entry.key)
        elif error.failure == "judge":
            raise JudgeError(error.message) from None
        else:
            notice(f"batch {entry.batch_id}: {error.message}; it is asked again later")

    async def collect(self, keys: Keys = None) -> list[RegistryEntry]:
        """Download what has ended and enter it into the run file; those entries."""
        done = [entry.key for entry in self._placed(keys, ended=True) if await self._collected(entry)]
        return self.entries(done)

    async def _collected(self, entry: RegistryEntry) -> bool:
        """Download the results of a batch and enter them; False when that has to wait, or was done by another."""
        if not await self._download(entry):
            return False
        with self._writing() as store:
            [entry] = self._entries(store, [entry.key])  # another process may have been here meanwhile
            if not entry.open or entry.batch_id is None:
                return False
            ingest_results(store, batch_format(entry.provider), self._judges[entry.condition_id], entry)
        if not (entry.keep_jsonl if self._keep is None else self._keep):
            Path(entry.input_path).unlink(missing_ok=True)
            Path(entry.output_path).unlink(missing_ok=True)
        return True

    async def _download(self, entry: RegistryEntry) -> bool:
        """Get the results, unless they are here; False when that has to wait.

        With a status of success, providers send pages of a proxy, files that are cut off, or nothing at all. Results
        with too few requests are downloaded again. A file with no request of the batch does not count: what was paid
        for is still at the provider, and the batch stays as it is until it comes; or the batch is another's, which was
        mistaken for this one.
        """
        path = Path(entry.output_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        own = 0
        has_others = False
        for turn in range(_DOWNLOADS):
            if turn:
                path.unlink()
                await self._sleep(2.0 ** (turn - 1))
            if not path.is_file() and not await self._fetch(entry):
                return False
            if not path.is_file():
                return True
            lines = read_lines(path, batch_format(entry.provider))
            names = {line.custom_id for line in lines if isinstance(line, Line)}
            own = len(names & requests_of(entry).keys())
            has_others = len(names) > own
            promised = entry.n_requests
            if entry.state not in ("done", "partly"):  # it was not worked off, so only what was answered is there
                promised = min(entry.succeeded or 0, promised)
            if own >= promised:
                return True
        if own:
            return True
        path.unlink()
        if entry.is_guess and has_others:
            notice(f"batch {entry.batch_id} is not {entry.key}, as was assumed; searching further")
            with self._writing() as store:
                note(store, entry, "foreign", batch_id=entry.batch_id)
        else:
            notice(
                f"batch {entry.batch_id} is {entry.state}, but what {entry.provider} gives as its results holds none "
                "of its requests; it is kept, and tried again later. Cancel it by its id to give it up"
            )
        return False

    async def _fetch(self, entry: RegistryEntry) -> bool:
        """Download the results; False when that has to wait, and True without a file when there will be none."""
        job = await self._job(entry)
        if job is None or not job.ended:
            return False
        if job.state == "failed" and not job.outputs:
            return True
        most = _RESULTS + entry.n_requests * _RESULT
        try:
            await batch_format(entry.provider).download(self._http(entry), job, Path(entry.output_path), most)
        except ProviderError as error:
            if error.status != 404:
                self._say_problem(entry, error)
                return False
            notice(f"batch {entry.batch_id}: {entry.provider} does not have its results any more")
        return True

    async def wait(
        self,
        keys: Keys = None,
        *,
        interval: float = 60.0,
        timeout: float | None = None,
        rounds: float = math.inf,
        delay: float = 0.0,
        on_look: Callable[[Sequence[RegistryEntry]], None] | None = None,
    ) -> list[RegistryEntry]:
        """Look and collect until every batch is done with, or the time is over; returns the entries as they are then.

        A batch that its provider does not know is not waited for.

        Args:
            keys: only these batches.
            interval: seconds between two looks.
            timeout: seconds to wait in all; a look that has begun is finished, and 0 is one look.
            rounds: how often to look.
            delay: seconds between two batches of one look.
            on_look: called after each look.
        """
        interval = require_number(interval, "interval", least=0)
        delay = require_number(delay, "delay", least=0)
        timeout = optional(require_number, timeout, "timeout", least=0, infinite=True)
        rounds = require_number(rounds, "rounds", least=0, infinite=True)
        end = math.inf if timeout is None else self._clock() + timeout
        while True:
            await self._round(keys, delay)
            current = self.entries(keys)
            if on_look is not None:
                on_look(current)
            rounds -= 1
            left = end - self._clock()
            is_done = not any(entry.open and entry.key not in self._unknown for entry in current)
            if is_done or rounds <= 0 or left <= 0:
                return current
            await self._sleep(min(interval, left))

    async def _round(self, keys: Keys, delay: float) -> None:
        """Create what is only prepared, look at the others, and collect what has ended."""
        try:
            if any(entry.open and entry.batch_id is None for entry in self.entries(keys)):
                await self.resume()
            await self.look(keys, delay=delay)
            await self.collect(keys)
        except StoreBusyError as error:
            notice(f"{error}; tried again at the next look")

    # Ending

    async def cancel(self, keys: Keys = None) -> list[RegistryEntry]:
        """Ask the providers to end batches; what was answered until then can be collected.

        A batch that was never created, and one that its provider does not know, is dropped. One that has ended is
        collected, or else given up, when its key is given.
        """
        for entry in self.entries(keys):
            if entry.open and entry.state not in ENDED:
                await self._cancel(entry)
            elif entry.open and keys is not None and not await self.collect([entry.key]):
                with self._writing() as store:
                    message = "given up: its results could not be had"
                    note(store, entry, "dropped", state="dropped", message=message)
        await self.look(keys)
        return self.entries(keys)

    async def _cancel(self, entry: RegistryEntry) -> None:
        with self._writing() as store:
            self._judge(store, entry.condition_id)
            if not await self._is_placed(store, entry):
                note(store, entry, "dropped", state="dropped", message="cancelled before creation")
                return
            try:
                await batch_format(entry.provider).cancel(self._http(entry), str(entry.batch_id))
            except ProviderError as error:
                if error.failure == "judge" and error.status != 404:
                    raise JudgeError(error.message) from None
                notice(f"batch {entry.batch_id} could not be cancelled: {error.message}")
                if error.status == 404:
                    message = f"{entry.provider} does not know the batch"
                    note(store, entry, "dropped", state="dropped", message=message)


def _seen(job: BatchJob) -> Values:
    """The fields of an entry that are updated at each look."""
    return {name: getattr(job, name) for name in ("state", "succeeded", "failed", "expires_at", "message")}


def _number(store: RunFile, entry: RegistryEntry, job: BatchJob, *, is_guess: bool) -> None:
    """Write down the provider's id of a batch, before all else."""
    note(store, entry, "created", batch_id=job.id, created_at=utc_now(), is_guess=is_guess, **_seen(job))
