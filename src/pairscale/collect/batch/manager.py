"""The batch machine: prepare, submit, poll, collect, cancel, submit again; from any process, at any time.

The run file is opened for each step and given back while there is only waiting to do, so that others may read and
write it meanwhile. What is in it decides everything: this process may be the one that began, or another.
"""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pairscale.collect._plan import Plan, make_plan, named_pairs
from pairscale.collect.batch import registry
from pairscale.collect.batch._affordable import affordable
from pairscale.collect.batch.files import (
    count_results,
    even_sizes,
    ingest_results,
    is_anothers,
    is_foreign,
    pairs_from,
    write_parts,
)
from pairscale.collect.batch.registry import (
    RegistryEntry,
    append,
    entries,
    event,
    halves_of,
    judge_of,
    registry_table,
    remember_judge,
    rest_of,
    results_of,
    status_table,
)
from pairscale.core.errors import InputError, JudgeError, StoreBusyError, StoreGoneError
from pairscale.core.notices import notice
from pairscale.core.options import checked, optional, require_flag, require_int, require_number
from pairscale.core.provenance import utc_now
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import BatchJudge, is_both_orders, max_batch_cost, restored
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import ENDED, BatchJob, BatchLimits, Draft, batch_format
from pairscale.providers.client import ProviderError
from pairscale.runtime import record_prices, require_prices
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table

_LONGEST_WAIT = 60.0


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
        for turn in range(retries + 1):
            if await self.is_found():
                notice(f"batch {self._entry.key}: found again as {self._entry.batch_id}, which is not created twice")
                return
            try:
                if not Path(self._entry.input_path).is_file():
                    raise InputError(
                        f"batch {self._entry.key} was not created, and its file of requests, {self._entry.input_path}, "
                        "is gone; cancel it by its key, and submit the pairs again"
                    )
                if self._entry.file_id is None:
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
        self._note("created", batch_id=job.id, created_at=utc_now(), is_guess=is_guess, **seen(job))
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


def seen(job: BatchJob) -> dict[str, Any]:
    """What is remembered of a batch each time that it is looked at."""
    return {
        "state": job.state,
        "succeeded": job.succeeded,
        "failed": job.failed,
        "expires_at": job.expires_at,
        "message": job.message,
        "seen_at": utc_now(),
    }


_LONGEST_INTERVAL = 600.0
_DOWNLOADS_AGAIN = 2
_RESULTS, _RESULT = 64 * 1024**2, 1024**2  # bytes that a file of results may have, and more per request


def _folder_of(run: str | os.PathLike[str] | None) -> Path:
    if run is None or "://" in str(run):
        return Path(tempfile.mkdtemp(prefix="pairscale-batches-"))
    return Path(f"{os.fspath(run)}.batches")


class BatchManager:
    """All batches of one run file: prepares, submits, polls, collects and cancels them.

    Args:
        run: the run file; None keeps everything in memory, for as long as this object lives.
        folder: where the files of requests and results go; by default beside the run file.
        api_key: the key; by default those of the environment.
        base_url: where the provider is now, when it has moved since.
        sleep: how to wait.
        clock: tells the time, in seconds.
        retries: how often to try again what may pass.
        keep_jsonl: whether files of requests and results stay when the results are in the run file; by default as it
            was said when the batch was submitted.
    """

    @checked
    def __init__(
        self,
        run: str | os.PathLike[str] | None,
        *,
        folder: str | os.PathLike[str] | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
        retries: int = 4,
        keep_jsonl: bool | None = None,
    ) -> None:
        self._retries = require_int(retries, "retries", least=0)
        self._run = run
        self._keep = keep_jsonl
        self._memory = open_run(None, write=True) if run is None else None
        self.folder = Path(folder) if folder is not None else _folder_of(run)
        self._key = api_key
        self._base_url = base_url
        self._sleep = sleep
        self._clock = clock
        self._judges: dict[str, BatchJudge] = {}
        self._failure: JudgeError | None = None
        self._unknown: set[str] = set()  # batches that the provider did not know when they were last looked at
        self._was_open = False  # so that a run file that is deleted meanwhile is not made again, empty

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections, and the run file if it is in memory."""
        for judge in self._judges.values():
            await judge.aclose()
        if self._memory is not None:
            self._memory.close()
            self._memory = None

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
        """The pairs of collected batches that have no answer, and why."""
        with self._open() as store:
            return rest_of(store, [entry for entry in self._entries(store, keys) if entry.collected_at is not None])

    # Small things

    def _entries(self, store: RunFile, keys: Collection[str] | None = None) -> list[RegistryEntry]:
        return entries(store, keys, self.folder)

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[RunFile]:
        if self._memory is not None:
            yield self._memory
            return
        if self._was_open and "://" not in str(self._run) and not Path(str(self._run)).exists():
            raise StoreGoneError(f"{self._run} was deleted while its batches were under way; restore it from a copy")
        with open_run(self._run, write=write) as store:
            self._was_open = True
            yield store

    def _judge(self, store: RunFile, condition_id: str) -> BatchJudge:
        if condition_id not in self._judges:
            description = judge_of(store, condition_id)
            if description is None:
                raise InputError(f"{store.name} does not say which judge the condition {condition_id} was")
            self._judges[condition_id] = restored(description, self._key, self._base_url)
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
        metadata: Mapping[str, str] | None = None,
        max_cost: float | None = None,
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
            metadata: names and values that the provider keeps with the batch, where it does.
            max_cost: US dollars that the run may spend, with what is under way and all earlier calls; pairs beyond it
                are left for a call with a higher limit.
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
        require_flag(keep_jsonl, "keep_jsonl")
        require_flag(include_raw, "include_raw")
        batch_format(judge.provider)
        require_prices([judge], max_cost)
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
                questions = affordable(store, judge, questions, max_cost, self._entries(store))
                missing = len(questions)
            sizes = even_sizes(missing, n_segments) if n_segments else repeat(batch_size or missing)
            about = {"metadata": dict(metadata or {}), "keep_jsonl": keep_jsonl, "include_raw": include_raw}
            keys = self._prepare(store, judge, plan.condition_id, questions, sizes, about, limits)
            await self._place_all(store, keys)
            return plan, self._entries(store, keys)

    async def resume(self) -> list[RegistryEntry]:
        """Create the batches that were prepared and not created when an earlier call was interrupted."""
        with self._open(write=True) as store:
            waiting = [entry.key for entry in self._entries(store) if entry.open and entry.batch_id is None]
            await self._place_all(store, waiting)
            return self._entries(store, waiting)

    async def resubmit(self, keys: Collection[str] | None = None) -> list[RegistryEntry]:
        """Put what failed, expired or was cancelled in collected batches into new ones, and nothing else."""
        made: list[str] = []
        with self._open(write=True) as store:
            chosen = [entry for entry in self._entries(store, keys) if entry.collected_at is not None]
            for condition_id in dict.fromkeys(entry.condition_id for entry in chosen):
                answered = store.progress(condition_id).answered
                busy = self._under_way(store, condition_id)
                mine = [entry for entry in chosen if entry.condition_id == condition_id]
                numbers = list(dict.fromkeys(n for entry in mine for n in entry.pair_ids))
                again = [number for number in numbers if number not in answered and number not in busy]
                judge = self._judge(store, condition_id)
                about = {
                    "keep_jsonl": all(entry.keep_jsonl for entry in mine),
                    "include_raw": any(entry.include_raw for entry in mine),
                }
                sizes = repeat(len(again))
                made += self._prepare(store, judge, condition_id, pairs_from(store, again), sizes, about)
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
        form = batch_format(judge.provider)
        halves = halves_of(self._entries(store), condition_id) if is_both_orders(judge) else {}
        parts = list(write_parts(judge, form, questions, self.folder, sizes, limits, halves))
        registry.reached("written")
        common = {"provider": judge.provider, "model": judge.model, "condition_id": condition_id, **about}
        for segment, part in enumerate(parts, start=1):
            most = max_batch_cost(judge, part["bytes"], part["n_requests"])
            part |= {"segment": segment, "max_cost": most, **common}
        append(store, [event("prepared", **part) for part in parts])
        registry.reached("prepared")
        return [part["key"] for part in parts]

    async def _place_all(self, store: RunFile, keys: Collection[str]) -> None:
        everything = self._entries(store)
        known = {entry.batch_id for entry in everything if entry.batch_id is not None}
        for entry in everything:
            if entry.key not in keys or entry.batch_id is not None or not entry.open:
                continue
            judge = self._judge(store, entry.condition_id)
            await _Creation(store, self._http(judge), entry, known).create(self._retries)
            known.add(str(entry.batch_id))

    # Looking and collecting

    async def look(self, keys: Collection[str] | None = None, *, delay: float = 0.0) -> bool:
        """Ask how the batches stand that have not ended; True when something has changed."""
        delay = require_number(delay, "delay", least=0)
        changed = False
        with self._open() as store:
            waiting = [e for e in self._entries(store, keys) if e.open and e.batch_id and e.state not in ENDED]
            judges = {entry.key: self._judge(store, entry.condition_id) for entry in waiting}
        for number, entry in enumerate(waiting):
            if number and delay:
                await self._sleep(delay)
            now = await self._seen(entry, judges[entry.key])
            if now is None or all(getattr(entry, name) == value for name, value in now.items() if name != "seen_at"):
                continue
            changed = True
            with self._open(write=True) as store:
                append(store, [event("seen", entry.key, **now)])
            registry.reached("seen")
        return changed

    async def _seen(self, entry: RegistryEntry, judge: BatchJudge) -> dict[str, Any] | None:
        try:
            job = await batch_format(entry.provider).get(self._http(judge), str(entry.batch_id))
        except ProviderError as error:
            if error.status == 404:
                self._is_unknown(entry)
                return None
            if error.failure == "judge":
                raise JudgeError(error.message) from None
            notice(f"batch {entry.batch_id}: {error.message}; it is asked again later")
            return None
        self._unknown.discard(entry.key)
        return seen(job)

    def _is_unknown(self, entry: RegistryEntry) -> None:
        """The provider says 404, and so it does of a batch of another project: that may be paid for, and is kept."""
        if entry.key not in self._unknown:
            notice(
                f"batch {entry.batch_id}: {entry.provider} does not know it; is this the key of the project that it is "
                "of? It is kept, and asked about again by the next call; cancel it by its id to give it up"
            )
        self._unknown.add(entry.key)

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
        with self._open() as store:
            ready = [e for e in self._entries(store, keys) if e.open and e.batch_id is not None and e.state in ENDED]
            judges = {entry.key: self._judge(store, entry.condition_id) for entry in ready}
        done = [entry.key for entry in ready if await self._collected(entry, judges[entry.key])]
        with self._open() as store:
            return self._entries(store, done)

    async def _collected(self, entry: RegistryEntry, judge: BatchJudge) -> bool:
        """Download the results of a batch and enter them; False when that has to wait, or was done by another."""
        form = batch_format(entry.provider)
        if not await self._download(entry, judge):
            return False
        with self._open(write=True) as store:
            [entry] = self._entries(store, [entry.key])  # another process may have been here meanwhile
            if not entry.open or entry.batch_id is None:
                return False
            if is_foreign(store, form, entry):
                notice(f"batch {entry.batch_id} is not {entry.key}, as was assumed; searching further")
                return False
            failure = ingest_results(store, form, judge, entry)
        self._failure = self._failure or failure
        keep = entry.keep_jsonl if self._keep is None else self._keep
        if not keep:
            Path(entry.input_path).unlink(missing_ok=True)
            Path(entry.output_path).unlink(missing_ok=True)
        return True

    async def _download(self, entry: RegistryEntry, judge: BatchJudge) -> bool:
        """Get the results, unless they are here; False when that has to wait.

        Providers answer with pages of a proxy, with files that are cut off, and with nothing at all, and say that it
        is a success. Results with too few requests are downloaded again. A file with none of the batch is none: what
        was paid for is still there, and the batch stays as it is until the provider gives it.
        """
        path = Path(entry.output_path)
        form = batch_format(entry.provider)
        path.parent.mkdir(parents=True, exist_ok=True)
        for turn in range(min(self._retries, _DOWNLOADS_AGAIN) + 1):
            if turn:
                path.unlink()
                await self._sleep(2.0 ** (turn - 1))
            if not path.is_file() and not await self._fetched(entry, judge):
                return False
            if entry.given_up or not path.is_file():
                return True
            found = count_results(path, form, entry)
            if found.own >= _promised(entry) or is_anothers(found, entry):
                return True
        if found.own == 0:
            path.unlink()
            notice(
                f"batch {entry.batch_id} is {entry.state}, but what {entry.provider} gives as its results holds none "
                "of its requests; it is kept, and tried again later. Cancel it by its id to give it up"
            )
        return found.own > 0

    async def _fetched(self, entry: RegistryEntry, judge: BatchJudge) -> bool:
        """Download the results; False when that has to wait, and True without a file when there will be none."""
        path = Path(entry.output_path)
        form = batch_format(entry.provider)
        http = self._http(judge)
        job = None
        try:
            job = await form.get(http, str(entry.batch_id))
            if not job.ended:
                notice(f"batch {entry.batch_id} was {entry.state}, and is {job.state} now; tried again later")
                return False
            if job.outputs or job.state != "failed":
                await form.download(http, job, path, _RESULTS + entry.n_requests * _RESULT)
        except ProviderError as error:
            if error.status == 404 and job is not None:  # the key is the right one
                notice(f"batch {entry.batch_id}: {entry.provider} does not have its results any more")
                return True
            if error.status == 404:
                given_up = entry.state == "failed" and entry.cancel_asked
                if not given_up:
                    self._is_unknown(entry)
                return given_up
            if error.failure == "judge":
                raise JudgeError(error.message) from None
            notice(f"batch {entry.batch_id}: its results cannot be downloaded: {error.message}; tried again later")
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
        pause = interval
        turn = 0
        while True:
            changed = await self._round(keys, delay)
            found = self.entries(keys)
            if told is not None:
                told(found)
            turn += 1
            left = end - self._clock()
            waiting = any(entry.open and entry.key not in self._unknown for entry in found)
            if not waiting or turn >= rounds or left <= 0:
                self._raise()
                return found
            pause = interval if changed else min(pause * 1.5, max(interval, min(10 * interval, _LONGEST_INTERVAL)))
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

        A batch that was never created is dropped, and one that the provider does not know is given up: it counts as
        failed. One that has ended is looked at for that alone, when its key is given.
        """
        with self._open(write=True) as store:
            everything = self._entries(store)
            for entry in everything:
                ended = entry.state in ENDED
                is_wanted = not ended if keys is None else entry.key in keys
                if not is_wanted or not entry.open:
                    continue
                judge = self._judge(store, entry.condition_id)
                form = batch_format(entry.provider)
                known = {other.batch_id for other in everything if other.batch_id is not None}
                if not await _Creation(store, self._http(judge), entry, known).is_found():
                    append(store, [event("dropped", entry.key, state="dropped", message="cancelled before creation")])
                    continue
                append(store, [event("cancelling", entry.key, cancel_asked=True, given_up=ended)])
                try:
                    await (form.get if ended else form.cancel)(self._http(judge), str(entry.batch_id))
                except ProviderError as error:
                    if error.failure == "judge" and error.status != 404:
                        raise JudgeError(error.message) from None
                    notice(f"batch {entry.batch_id} could not be cancelled: {error.message}")
                    if error.status == 404:
                        message = f"{entry.provider} does not know the batch"
                        gone = BatchJob(str(entry.batch_id), "failed", message=message)
                        append(store, [event("seen", entry.key, **seen(gone))])
        await self.look(keys)
        return self.entries(keys)


def _promised(entry: RegistryEntry) -> int:
    """Requests whose results there must be: all of a batch that was worked off, else those that were answered."""
    if entry.state in ("done", "partly"):
        return entry.n_requests
    return min(entry.succeeded or 0, entry.n_requests)
