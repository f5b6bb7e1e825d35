"""Bringing a prepared batch to its provider, exactly once, whatever is interrupted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.collect.batch import _steps
from pairscale.collect.batch.registry import RegistryEntry, append, event
from pairscale.core.errors import JudgeError
from pairscale.core.notices import notice
from pairscale.core.provenance import utc_now
from pairscale.providers.batches import BatchFormat, BatchJob, Draft
from pairscale.providers.client import ProviderError

if TYPE_CHECKING:
    from pairscale.providers.batch_http import BatchHTTP
    from pairscale.store.runfile import RunFile

_LONGEST_WAIT = 60.0


@dataclass(frozen=True, slots=True)
class _Place:
    """One batch on its way."""

    store: RunFile
    form: BatchFormat
    http: BatchHTTP
    entry: RegistryEntry
    known: Collection[str]

    def note(self, kind: str, **values: Any) -> None:
        append(self.store, [event(kind, self.entry.key, **values)])
        self.entry.happened(kind, values)

    def draft(self) -> Draft:
        entry = self.entry
        return Draft(
            entry.key, entry.model, entry.endpoint, Path(entry.input_path), entry.n_requests,
            datetime.fromisoformat(entry.prepared_at).timestamp(), entry.file_id, entry.metadata,
        )  # fmt: skip


async def place(
    store: RunFile,
    form: BatchFormat,
    http: BatchHTTP,
    entry: RegistryEntry,
    known: Collection[str],
    *,
    retries: int = 4,
) -> None:
    """Create the batch of an entry, unless it is there already; the provider's id is written down before all else.

    Args:
        store: the run file, open for writing.
        form: the provider's batch API.
        http: the way to it.
        entry: what is to be created.
        known: batches that belong to other entries.
        retries: how often to try again what may pass.

    Raises:
        JudgeError: the provider does not take it.
    """
    at = _Place(store, form, http, entry, known)
    for turn in range(retries + 1):
        # A call that got this far may have created it: with no answer, or with no time to write the answer down.
        if entry.state == "creating" and (job := await _found(at)) is not None:
            notice(f"batch {entry.key}: found again as {job.id}, which is not created twice")
            _numbered(at, job, is_guess=job.key != entry.key)
            return
        try:
            job = await _created(at)
        except ProviderError as error:
            wait = _refused(at, error, last=turn == retries)
            await http.sleep(min(wait if wait is not None else 2.0**turn, _LONGEST_WAIT))
        else:
            _steps.reached("created")
            _numbered(at, job)
            return


async def is_placed(
    store: RunFile, form: BatchFormat, http: BatchHTTP, entry: RegistryEntry, known: Collection[str]
) -> bool:
    """Whether the batch of an entry is there; one whose creation was interrupted is looked for, and gets its id.

    Raises:
        JudgeError: it cannot be looked for.
    """
    if entry.batch_id is None and entry.state == "creating":
        at = _Place(store, form, http, entry, known)
        if (job := await _found(at)) is not None:
            _numbered(at, job, is_guess=job.key != entry.key)
    return entry.batch_id is not None


async def _found(at: _Place) -> BatchJob | None:
    try:
        jobs = await at.form.find(at.http, at.draft(), {*at.known, *at.entry.foreign})
    except ProviderError as error:
        raise JudgeError(f"batch {at.entry.key} cannot be looked for: {error.message}; resume later") from None
    return jobs[0] if jobs else None


async def _created(at: _Place) -> BatchJob:
    if at.entry.file_id is None and (file_id := await at.form.upload(at.http, at.draft())) is not None:
        at.note("uploaded", file_id=file_id)
        _steps.reached("uploaded")
    at.note("creating", state="creating")
    _steps.reached("creating")
    return await at.form.create(at.http, at.draft())


def _refused(at: _Place, error: ProviderError, *, last: bool) -> float | None:
    """What a failed creation means: the seconds to wait, or an exception."""
    key = at.entry.key
    if error.failure == "transient":
        if error.status == 429:  # it was refused, so it cannot be there
            at.note("refused", state="prepared")
        if not last:
            return error.retry_after
        raise JudgeError(f"batch {key} could not be created: {error.message}; resume later")
    if error.failure == "judge" and error.status != 404:  # a wrong key, an empty account: the batch is fine
        at.note("refused", state="prepared")
        raise JudgeError(f"batch {key} was not created: {error.message}; fix that, and resume")
    at.note("dropped", state="dropped", message=error.message)
    raise JudgeError(f"batch {key} was not created: {error.message}")


def _numbered(at: _Place, job: BatchJob, *, is_guess: bool = False) -> None:
    at.note("created", batch_id=job.id, created_at=utc_now(), is_guess=is_guess, **seen(job))
    _steps.reached("numbered")


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
