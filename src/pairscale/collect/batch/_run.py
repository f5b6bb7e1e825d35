"""The batches of one run file, as it has them; it is open for a step, and given back while there is only waiting."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.collect.batch.registry import RegistryEntry, entries, judge_of, left_out_of, registry_table, status_table
from pairscale.collect.batch.rest import rest_of, results_of
from pairscale.core.errors import InputError, JudgeError, StoreGoneError
from pairscale.core.options import checked, require_int
from pairscale.judges.batched import BatchJudge, restored
from pairscale.providers.batch_http import BatchHTTP
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    import polars as pl


class BatchRun:
    """All batches of one run file, and the judges that they ask.

    The arguments are those of :class:`pairscale.collect.batch.manager.BatchManager`.
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
        retries = require_int(retries, "retries", least=0)
        self._run, self._keep = run, keep_jsonl
        self._memory = open_run(None, write=True) if run is None else None
        self.folder = Path(folder) if folder is not None else _folder_of(run)
        self._key, self._base_url, self._retries = api_key, base_url, retries
        self._sleep, self._clock = sleep, clock
        self._judges: dict[str, BatchJudge] = {}
        self._failure: JudgeError | None = None
        self._unknown: set[str] = set()  # batches that the provider did not know when they were last looked at
        self._born: str | None = None  # when the run file was made, so that another one is noticed

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
        if self._born is not None and "://" not in str(self._run) and not Path(str(self._run)).exists():
            raise StoreGoneError(f"{self._run} was deleted while its batches were under way; restore it from a copy")
        with open_run(self._run, write=write) as store:
            born = store.get_meta("created_at")
            if self._born not in (None, born):
                raise StoreGoneError(
                    f"{self._run} was replaced while its batches were under way; restore it from a copy"
                )
            self._born = born
            yield store

    def _judge(self, store: RunFile, condition_id: str) -> BatchJudge:
        if condition_id not in self._judges:
            description = judge_of(store, condition_id)
            if description is None:
                raise InputError(f"{store.name} does not say which judge the condition {condition_id} was")
            self._judges[condition_id] = restored(description, self._key, self._base_url)
            self._learned(store, condition_id, self._judges[condition_id])
        return self._judges[condition_id]

    @staticmethod
    def _learned(store: RunFile, condition_id: str, judge: BatchJudge) -> None:
        """What results of batches said that the model does not take."""
        judge.client.leave_out(judge.model, *left_out_of(store, condition_id))

    def _http(self, judge: BatchJudge) -> BatchHTTP:
        return BatchHTTP(judge.client, sleep=self._sleep, retries=self._retries)


def _folder_of(run: str | os.PathLike[str] | None) -> Path:
    if run is None or "://" in str(run):
        return Path(tempfile.mkdtemp(prefix="pairscale-batches-"))
    return Path(f"{os.fspath(run)}.batches")
