"""The batch machine: prepare, submit, poll, collect, cancel, submit again; from any process, at any time.

The run file is opened for each step and given back while there is only waiting to do, so that others may read and
write it meanwhile. What is in it decides everything: this process may be the one that began, or another.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pairscale.collect._plan import Plan, make_plan, named_pairs
from pairscale.collect.batch import registry
from pairscale.collect.batch.files import count_results, even_sizes, ingest_results, pairs_from, write_parts
from pairscale.collect.batch.registry import (
    RegistryEntry,
    append,
    entries,
    event,
    judge_of,
    registry_table,
    remember_judge,
    rest_of,
    results_of,
    status_table,
)
from pairscale.core.errors import InputError, JudgeError, StoreBusyError, StoreGoneError
from pairscale.core.notices import notice
from pairscale.core.options import checked, optional, require_int, require_number
from pairscale.core.provenance import utc_now
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import BatchJudge, calls_of, restored
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import ENDED, BatchJob, BatchLimits, Draft, batch_format
from pairscale.providers.client import ProviderError
from pairscale.runtime import Budget, record_prices, recorded_prices, require_prices
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import write_json

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table

_LONGEST_WAIT = 60.0
_LONGEST_INTERVAL = 600.0
_DOWNLOADS = 3
_RESULTS = 64 * 1024**2  # bytes that a file of results may have
_RESULT = 1024**2  # and more per request


class _Creation:
    """Brings a prepared batch to its provider, exactly once, whatever is interrupted.

    Args:
        store: the run file, open for writing.
        http: the way to the provider.
        entry: what is to be created.
        known: batches that belong to other entries.
    """

    def __init__(self, store: RunFile, http: BatchHTTP, entry: RegistryEntry, known: Collection[str]) -> None:
        self._store = store
        self._form = batch_format(entry.provider)
        self._http = http
        self._entry = entry
        self._known = known

    async def create(self, retries: int) -> None:
        """Create the batch, unless it is there already; the provider's id is written down before all else.

        Raises:
            JudgeError: the provider does not take it.
        """
        entry = self._entry
        for turn in range(retries + 1):
            if await self.is_found():
                notice(f"batch {entry.key}: found again as {entry.batch_id}, which is not created twice")
                return
            try:
                if not Path(entry.input_path).is_file():
                    raise InputError(
                        f"batch {entry.key} was not created, and its file of requests, {entry.input_path}, is gone; "
                        "cancel it by its key, and submit the pairs again"
                    )
                if entry.file_id is None:
                    file_id = await self._form.upload(self._http, self._draft())
                    if file_id is not None:
                        self._note("uploaded", file_id=file_id)
                        registry.reached("uploaded")
                self._note("creating", state="creating")
                registry.reached("creating")
                job = await self._form.create(self._http, self._draft())
            except ProviderError as error:
                wait = self._refused(error, last=turn == retries)
                await self._http.sleep(min(2.0**turn if wait is None else wait, _LONGEST_WAIT))
            else:
                registry.reached("created")
                self._number(job, is_guess=False)
                return

    async def is_found(self) -> bool:
        """Whether the batch is there: a creation that was interrupted may have succeeded, and is looked for.

        Raises:
            JudgeError: it cannot be looked for.
        """
        entry = self._entry
        if entry.batch_id is None and entry.state == "creating":
            try:
                jobs = await self._form.find(self._http, self._draft(), {*self._known, *entry.foreign})
            except ProviderError as error:
                raise JudgeError(f"batch {entry.key} cannot be looked for: {error.message}; resume later") from None
            if jobs:
                self._number(jobs[0], is_guess=jobs[0].key != entry.key)
        return entry.batch_id is not None

    def _refused(self, error: ProviderError, *, last: bool) -> float | None:
        """What a failed creation means: the seconds to wait, or an exception."""
        key = self._entry.key
        if error.failure == "transient":
            if error.status == 429:  # it was refused, so it cannot be there
                self._note("refused", state="prepared")
            if not last:
                return error.retry_after
            raise JudgeError(f"batch {key} could not be created: {error.message}; resume later")
        if error.failure == "judge" and error.status != 404:  # a wrong key, an empty account: the batch is fine
            self._note("refused", state="prepared")
            raise JudgeError(f"batch {key} was not created: {error.message}; fix that, and resume")
        self._note("dropped", state="dropped", message=error.message)
        raise JudgeError(f"batch {key} was not created: {error.message}")

    def _number(self, job: BatchJob, *, is_guess: bool) -> None:
        self._note("created", batch_id=job.id, created_at=utc_now(), is_guess=is_guess, **_seen(job))
        registry.reached("numbered")

    def _note(self, kind: str, **values: Any) -> None:
        append(self._store, [event(kind, self._entry.key, **values)])
        self._entry.happened(kind, values)

    def _draft(self) -> Draft:
        entry = self._entry
        return Draft(
            entry.key, entry.model, entry.endpoint, Path(entry.input_path), entry.n_requests,
            datetime.fromisoformat(entry.prepared_at).timestamp(), entry.file_id, entry.metadata,
        )  # fmt: skip


def _seen(job: BatchJob) -> dict[str, Any]:
    """What is remembered of a batch each time that it is looked at."""
    names = ("state", "succeeded", "failed", "expires_at", "message")
    return {name: getattr(job, name) for name in names} | {"seen_at": utc_now()}


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
            was said when the batch was submitted.
    """

    @checked
    def __init__(
        self,
        run: str | os.PathLike[str],
        *,
        folder: str | os.PathLike[str] | None = None,
        api_key: str | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
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
        self._failure: JudgeError | None = None
        self._was_open = False  # so that a run file that is deleted meanwhile is not made again, empty
        self._unknown: set[str] = set()  # batches that the provider did not know when they were last looked at

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        for judge in self._judges.values():
            await judge.aclose()

    # What there is

    def entries(self, keys: Collection[str] | None = None) -> list[RegistryEntry]:
        """The batches, in the order in which they were prepared."""
        with self._open() as store:
            return self._entries(store, keys)

    def registry(self, keys: Collection[str] | None = None) -> pl.DataFrame:
        """The batches in the manual's columns."""
        return registry_table(self.entries(keys))

    def status(self, keys: Collection[str] | None = None) -> pl.DataFrame:
        """The batches with their states, counts, ages and the time they have left."""
        return status_table(self.entries(keys), self._clock())

    @checked
    def results(self, keys: Collection[str] | None = None, *, raw: bool = False) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The answers to the pairs of these batches, and every attempt at them that gave none."""
        with self._open() as store:
            return results_of(store, self._entries(store, keys), raw=raw)

    def rest(self, keys: Collection[str] | None = None) -> pl.DataFrame:
        """The pairs of batches that are done with that have no answer, and why."""
        with self._open() as store:
            return rest_of(store, [entry for entry in self._entries(store, keys) if not entry.open])

    # Small things

    def _entries(self, store: RunFile, keys: Collection[str] | None = None) -> list[RegistryEntry]:
        return entries(store, keys, self.folder)

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[RunFile]:
        if self._was_open and "://" not in str(self._run) and not Path(self._run).exists():
            raise StoreGoneError(f"{self._run} was deleted while its batches were under way; restore it from a copy")
        with open_run(self._run, write=write) as store:
            self._was_open = True
            yield store

    def _judge(self, store: RunFile, condition_id: str) -> BatchJudge:
        if condition_id not in self._judges:
            description = judge_of(store, condition_id)
            if description is None:
                raise InputError(f"{store.name} does not say which judge the condition {condition_id} was")
            self._judges[condition_id] = restored(description, self._key)
        return self._judges[condition_id]

    def _http(self, judge: BatchJudge) -> BatchHTTP:
        return BatchHTTP(judge.client, sleep=self._sleep, retries=self._retries)

    # Submitting

    async def submit(
        self,
        pairs: Table,
        judge: BatchJudge,
        *,
        batch_size: int | None = None,
        n_segments: int | None = None,
        limits: BatchLimits | None = None,
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
            limits: other limits than the provider's own.
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
        about = {"metadata": dict(metadata or {}), "keep_jsonl": bool(keep_jsonl), "include_raw": bool(include_raw)}
        with self._open(write=True) as store:
            plan = make_plan(store, named_pairs(pairs), judge.condition)
            judge = self._judges.setdefault(plan.condition_id, judge)
            record_prices(store, [judge])
            remember_judge(store, plan.condition_id, judge.describe())
            busy = self._under_way(store, plan.condition_id)
            questions: Iterable[tuple[int, JudgePair]] = (
                (q.pair_id, q.pair()) for q in plan.questions(judge, besides=busy) if q.pair_id is not None
            )
            missing = plan.missing(besides=busy)
            if max_cost is not None:
                questions = self._affordable(store, judge, questions, max_cost)
                missing = len(questions)
            sizes = even_sizes(missing, n_segments) if n_segments else repeat(batch_size or missing)
            keys = self._prepare(store, judge, plan.condition_id, questions, sizes, about, limits)
            await self._place_all(store, keys)
            return plan, self._entries(store, keys)

    async def resume(self) -> list[RegistryEntry]:
        """Create the batches that were prepared and not created when an earlier call was interrupted."""
        with self._open(write=True) as store:
            waiting = [entry.key for entry in self._entries(store) if entry.open and entry.batch_id is None]
            await self._place_all(store, waiting)
            return self._entries(store, waiting)

    async def resubmit(self) -> list[RegistryEntry]:
        """Put what failed, expired, was cancelled or given up into new batches, and nothing else."""
        made: list[str] = []
        with self._open(write=True) as store:
            ended = [entry for entry in self._entries(store) if not entry.open]
            for condition_id in dict.fromkeys(entry.condition_id for entry in ended):
                done = store.progress(condition_id).answered | self._under_way(store, condition_id)
                mine = [entry for entry in ended if entry.condition_id == condition_id]
                numbers = dict.fromkeys(number for entry in mine for number in entry.pair_ids)
                again = [number for number in numbers if number not in done]
                about = {
                    "keep_jsonl": all(entry.keep_jsonl for entry in mine),
                    "include_raw": any(entry.include_raw for entry in mine),
                }
                questions = pairs_from(store, again).items()
                judge = self._judge(store, condition_id)
                made += self._prepare(store, judge, condition_id, questions, repeat(len(again)), about)
            await self._place_all(store, made)
            return self._entries(store, made)

    def _under_way(self, store: RunFile, condition_id: str) -> set[int]:
        """Pairs in batches that are prepared, created or not yet collected."""
        return {
            number
            for entry in self._entries(store)
            if entry.open and entry.condition_id == condition_id
            for number in entry.pair_ids
        }

    def _affordable(
        self, store: RunFile, judge: BatchJudge, questions: Iterable[tuple[int, JudgePair]], max_cost: float
    ) -> list[tuple[int, JudgePair]]:
        """The questions, in their order, that cannot make the run cost more than it may; the rest is said."""
        under_way = sum(entry.max_cost or 0.0 for entry in self._entries(store) if entry.open)
        budget = Budget(max_cost, store.spent() + under_way)
        chosen: list[tuple[int, JudgePair]] = []
        for number, pair in questions:
            calls = calls_of(judge, pair)
            n_bytes = sum(len(write_json(call.body).encode()) for call in calls)
            most = judge.cost_of_bytes(n_bytes, len(calls), batch=True) or 0.0
            if not budget.may_ask("", most):
                reserved = f", and ${under_way:.4f} are reserved for batches under way" if under_way else ""
                notice(
                    f"{len(chosen):,} pairs are submitted; more might pass `max_cost=`: ${store.spent():.4f} of "
                    f"${max_cost:g} are spent{reserved}{recorded_prices(store)}. Run it again to continue, later or "
                    "with a higher limit"
                )
                break
            budget.spent += most
            chosen.append((number, pair))
        return chosen

    def _prepare(
        self,
        store: RunFile,
        judge: BatchJudge,
        condition_id: str,
        questions: Iterable[tuple[int, JudgePair]],
        sizes: Iterator[int],
        about: Mapping[str, Any],
        limits: BatchLimits | None = None,
    ) -> list[str]:
        """Write the files, then write down that they are batches to be."""
        parts = list(write_parts(judge, batch_format(judge.provider), questions, self.folder, sizes, limits))
        registry.reached("written")
        common = {"provider": judge.provider, "model": judge.model, "condition_id": condition_id, **about}
        for segment, part in enumerate(parts, start=1):
            most = judge.cost_of_bytes(part["bytes"], part["n_requests"], batch=True)
            part |= {"segment": segment, "max_cost": most, **common}
        append(store, [event("prepared", **part) for part in parts])
        registry.reached("prepared")
        return [part["key"] for part in parts]

    async def _place_all(self, store: RunFile, keys: Collection[str]) -> None:
        everything = self._entries(store)
        for entry in everything:
            if entry.key in keys and entry.batch_id is None and entry.open:
                await self._creation(store, entry, everything).create(self._retries)

    def _creation(self, store: RunFile, entry: RegistryEntry, everything: Sequence[RegistryEntry]) -> _Creation:
        known = {other.batch_id for other in everything if other.batch_id is not None}
        return _Creation(store, self._http(self._judge(store, entry.condition_id)), entry, known)

    # Looking and collecting

    async def look(self, keys: Collection[str] | None = None, *, delay: float = 0.0) -> bool:
        """Ask how the batches stand that have not ended; True when something has changed."""
        changed = False
        for number, (entry, judge) in enumerate(self._placed(keys, ended=False)):
            if number and delay:
                await self._sleep(delay)
            now = await self._looked_at(entry, judge)
            if now is None or all(getattr(entry, name) == value for name, value in now.items() if name != "seen_at"):
                continue
            changed = True
            with self._open(write=True) as store:
                append(store, [event("seen", entry.key, **now)])
            registry.reached("seen")
        return changed

    def _placed(self, keys: Collection[str] | None, *, ended: bool) -> list[tuple[RegistryEntry, BatchJudge]]:
        """The batches that their provider has and that are not collected, by whether they have ended."""
        with self._open() as store:
            return [
                (entry, self._judge(store, entry.condition_id))
                for entry in self._entries(store, keys)
                if entry.open and entry.batch_id is not None and (entry.state in ENDED) is ended
            ]

    async def _looked_at(self, entry: RegistryEntry, judge: BatchJudge) -> dict[str, Any] | None:
        try:
            job = await batch_format(entry.provider).get(self._http(judge), str(entry.batch_id))
        except ProviderError as error:
            self._say_problem(entry, error)
            return None
        self._unknown.discard(entry.key)
        return _seen(job)

    def _say_problem(self, entry: RegistryEntry, error: ProviderError) -> None:
        """Say that a batch cannot be asked about now.

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

    async def collect(self, keys: Collection[str] | None = None) -> list[RegistryEntry]:
        """Download what has ended and enter it into the run file; those entries.

        Raises:
            JudgeError: the model failed in the same way on ten different questions in a row; all of it is stored.
        """
        done = await self._collect(keys)
        self._raise()
        return done

    def _raise(self) -> None:
        failure = self._failure
        self._failure = None
        if failure is not None:
            raise failure

    async def _collect(self, keys: Collection[str] | None) -> list[RegistryEntry]:
        ready = self._placed(keys, ended=True)
        done = [entry.key for entry, judge in ready if await self._collected(entry, judge)]
        return self.entries(done)

    async def _collected(self, entry: RegistryEntry, judge: BatchJudge) -> bool:
        """Download the results of a batch and enter them; False when that has to wait, or was done by another."""
        form = batch_format(entry.provider)
        path = Path(entry.output_path)
        if not await self._download(entry, judge):
            return False
        with self._open(write=True) as store:
            [entry] = self._entries(store, [entry.key])  # another process may have been here meanwhile
            if not entry.open or entry.batch_id is None:
                return False
            if entry.is_guess and path.is_file() and count_results(path, form, entry.key)[0] == 0:
                append(store, [event("foreign", entry.key, batch_id=entry.batch_id)])
                path.unlink()
                notice(f"batch {entry.batch_id} is not {entry.key}, as was assumed; searching further")
                return False
            failure = ingest_results(store, form, judge, entry)
        self._failure = self._failure or failure
        if not (entry.keep_jsonl if self._keep is None else self._keep):
            Path(entry.input_path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        return True

    async def _download(self, entry: RegistryEntry, judge: BatchJudge) -> bool:
        """Get the results, unless they are here; False when that has to wait.

        Providers answer with pages of a proxy, with files that are cut off, and with nothing at all, and say that it
        is a success. Results with too few requests are downloaded again. A file with none of the batch is none: what
        was paid for is still there, and the batch stays as it is until the provider gives it.
        """
        path = Path(entry.output_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        own = 0
        for turn in range(_DOWNLOADS):
            if turn:
                path.unlink()
                await self._sleep(2.0 ** (turn - 1))
            if not path.is_file() and not await self._fetched(entry, judge):
                return False
            if not path.is_file():
                return True
            own, others = count_results(path, batch_format(entry.provider), entry.key)
            if own >= _promised(entry) or (entry.is_guess and others and not own):
                return True
        if own == 0:
            path.unlink()
            notice(
                f"batch {entry.batch_id} is {entry.state}, but what {entry.provider} gives as its results holds none "
                "of its requests; it is kept, and tried again later. Cancel it by its id to give it up"
            )
        return own > 0

    async def _fetched(self, entry: RegistryEntry, judge: BatchJudge) -> bool:
        """Download the results; False when that has to wait, and True without a file when there will be none."""
        form = batch_format(entry.provider)
        http = self._http(judge)
        job = None
        try:
            job = await form.get(http, str(entry.batch_id))
            if not job.ended:
                notice(f"batch {entry.batch_id} was {entry.state}, and is {job.state} now; tried again later")
                return False
            if job.outputs or job.state != "failed":
                await form.download(http, job, Path(entry.output_path), _RESULTS + entry.n_requests * _RESULT)
        except ProviderError as error:
            if error.status == 404 and job is not None:  # the key is the right one
                notice(f"batch {entry.batch_id}: {entry.provider} does not have its results any more")
                return True
            self._say_problem(entry, error)
            return False
        registry.reached("downloaded")
        return True

    async def wait(
        self,
        keys: Collection[str] | None = None,
        *,
        interval: float = 60.0,
        timeout: float | None = None,
        rounds: float = math.inf,
        delay: float = 0.0,
        told: Callable[[Sequence[RegistryEntry]], None] | None = None,
    ) -> list[RegistryEntry]:
        """Look and collect until every batch is done with, or the time is over; returns the entries as they are then.

        A batch that its provider does not know is not waited for.

        Args:
            keys: only these batches.
            interval: seconds between two looks; longer while nothing changes, at most ten times, or ten minutes.
            timeout: seconds to wait in all; a look that has begun is finished.
            rounds: how often to look.
            delay: seconds between two batches of one look.
            told: called after each look.
        """
        interval = require_number(interval, "interval", least=0)
        delay = require_number(delay, "delay", least=0)
        timeout = optional(require_number, timeout, "timeout", least=0, infinite=True)
        rounds = require_number(rounds, "rounds", least=0, infinite=True)
        end = math.inf if timeout is None else self._clock() + timeout
        longest = max(interval, min(10 * interval, _LONGEST_INTERVAL))
        pause = interval
        turn = 0
        while True:
            changed = await self._round(keys, delay)
            current = self.entries(keys)
            if told is not None:
                told(current)
            turn += 1
            left = end - self._clock()
            waiting = any(entry.open and entry.key not in self._unknown for entry in current)
            if not waiting or turn >= rounds or left <= 0:
                self._raise()
                return current
            pause = interval if changed else min(pause * 1.5, longest)
            await self._sleep(min(pause, left))

    async def _round(self, keys: Collection[str] | None, delay: float) -> bool:
        try:
            if any(entry.open and entry.batch_id is None for entry in self.entries(keys)):
                await self.resume()
            changed = await self.look(keys, delay=delay)
            return bool(await self._collect(keys)) or changed
        except StoreBusyError as error:
            notice(f"{error}; tried again at the next look")
            return False

    # Ending

    async def cancel(self, keys: Collection[str] | None = None) -> list[RegistryEntry]:
        """Ask the providers to end batches; what was answered until then can be collected.

        A batch that was never created, and one that its provider does not know, is dropped. One that has ended is
        collected, or else given up, when its key is given.
        """
        for entry in self.entries(keys):
            if entry.open and (entry.state not in ENDED or keys is not None):
                await self._cancel(entry)
        await self.look(keys)
        return self.entries(keys)

    async def _cancel(self, entry: RegistryEntry) -> None:
        if entry.state in ENDED:
            await self._collect([entry.key])
            if self.entries([entry.key])[0].open:
                self._drop(entry, "given up: its results could not be had")
            return
        with self._open(write=True) as store:
            creation = self._creation(store, entry, self._entries(store))
            if not await creation.is_found():
                append(store, [event("dropped", entry.key, state="dropped", message="cancelled before creation")])
                return
            http = self._http(self._judge(store, entry.condition_id))
        try:
            await batch_format(entry.provider).cancel(http, str(entry.batch_id))
        except ProviderError as error:
            if error.failure == "judge" and error.status != 404:
                raise JudgeError(error.message) from None
            notice(f"batch {entry.batch_id} could not be cancelled: {error.message}")
            if error.status == 404:
                self._drop(entry, f"{entry.provider} does not know the batch")

    def _drop(self, entry: RegistryEntry, message: str) -> None:
        with self._open(write=True) as store:
            append(store, [event("dropped", entry.key, state="dropped", message=message)])


def _promised(entry: RegistryEntry) -> int:
    """Requests whose results there must be: all of a batch that was worked off, else those that were answered."""
    if entry.state in ("done", "partly"):
        return entry.n_requests
    return min(entry.succeeded or 0, entry.n_requests)
