"""Anthropic's message batches: the requests go up with the creation, and results come down in any order.

A batch carries no name of ours. A creation whose answer was lost is found again among the batches that were created
since, with the same number of requests; whether it is ours, its results say, because every request's id begins with our
key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairscale.core.failures import status_named
from pairscale.providers import _read
from pairscale.providers.base import HTTPCall
from pairscale.providers.batch_http import MOST_RESULTS, BatchHTTP
from pairscale.providers.batches import (
    BatchJob,
    BatchLimits,
    Draft,
    Line,
    LineKind,
    State,
    name_of,
    reading,
    require_next,
    seconds_of,
    state_of,
)

__all__ = ["AnthropicBatches"]

_PATH = "/v1/messages/batches"
_SLACK = 600.0  # seconds that two clocks may differ
_KINDS: dict[Any, LineKind] = {"errored": "errored", "expired": "expired", "canceled": "cancelled"}


class AnthropicBatches:
    """Anthropic's batch API."""

    name = "anthropic"
    limits = BatchLimits(100_000, 250_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> dict[str, Any]:
        """One request."""
        return {"custom_id": custom_id, "params": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go."""
        return call.path

    async def upload(self, http: BatchHTTP, draft: Draft) -> None:
        """There is nothing to upload."""

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch, with its requests read from the file while they are sent."""
        head, tail = b'{"requests":[', b"]}"
        size = len(head) + len(tail) + draft.path.stat().st_size - 1  # n lines with n ends become n - 1 commas
        headers = {**_version(http), "Content-Type": "application/json", "Content-Length": str(size)}
        document = await http.json(
            "POST", _PATH, data=lambda: http.lines(draft.path, head, tail, b","), headers=headers, again=False
        )
        return self.job(document)

    async def get(self, http: BatchHTTP, job_id: str) -> BatchJob:
        """Where a batch stands."""
        return self.job(await http.json("GET", f"{_PATH}/{quote(job_id, safe='')}", headers=_version(http)))

    async def cancel(self, http: BatchHTTP, job_id: str) -> None:
        """Ask for an end."""
        await http.json("POST", f"{_PATH}/{quote(job_id, safe='')}/cancel", headers=_version(http))

    async def find(self, http: BatchHTTP, draft: Draft, known: Collection[str]) -> list[BatchJob]:
        """Batches of this size that were created since and that belong to no known run, oldest first."""
        found: list[BatchJob] = []
        after, seen = "", set[str]()
        while True:
            page = _read.items(await http.json("GET", f"{_PATH}?limit=100{after}", headers=_version(http)))
            rows = [self.job(row) for row in _read.objects(page.get("data"))]
            since = [job for job in rows if (job.created_at or 0) >= draft.prepared_at - _SLACK]
            found += [job for job in since if job.total == draft.n_requests and job.id not in known]
            if not page.get("has_more") or len(since) < len(rows) or not rows:
                return found[::-1]
            after = f"&after_id={quote(rows[-1].id, safe='')}"
            require_next(seen, after, self.name)

    async def download(self, http: BatchHTTP, job: BatchJob, target: Path, most: int = MOST_RESULTS) -> None:
        """The results."""
        if not job.outputs:
            target.write_bytes(b"")
            return
        await http.fetch(f"{_PATH}/{quote(job.id, safe='')}/results", target, most, headers=_version(http))

    def job(self, document: Any) -> BatchJob:
        """A batch as Anthropic describes it."""
        found = _read.items(document)
        told = _read.items(found.get("request_counts"))
        with reading(self.name, document):
            counts = {name: _read.number(value) or 0 for name, value in told.items()}
            return BatchJob(
                id=name_of(found),
                state=_state(found.get("processing_status"), counts),
                total=sum(counts.values()),
                succeeded=counts.get("succeeded", 0),
                failed=sum(counts.get(name, 0) for name in ("errored", "canceled", "expired")),
                created_at=seconds_of(found.get("created_at")),
                expires_at=seconds_of(found.get("expires_at")),
                outputs=(str(found["results_url"]),) if found.get("results_url") else (),
                raw=found,
            )

    def read(self, document: Mapping[str, Any]) -> Line:
        """One line of the results; an error may be nested."""
        custom_id, result = document.get("custom_id"), _read.items(document.get("result"))
        if not isinstance(custom_id, str) or not result:
            raise ValueError("it has no custom_id or no result")
        kind = result.get("type")
        if kind == "succeeded":
            return Line(custom_id, "succeeded", 200, result.get("message"), result_type=kind)
        error = result.get("error")
        if not error:
            words = f"the request {_WORDS.get(kind, f'ended as {kind}')}"
            return Line(custom_id, _KINDS.get(kind, "errored"), None, error, words, str(kind))
        status = status_named(_read.problem(0, {"error": error}).code)
        problem = _read.problem(status or 0, {"error": error})
        fate = _KINDS.get(kind, "errored")
        return Line(custom_id, fate, status, error, problem.message, str(kind), problem.parameter)


_WORDS: dict[Any, str] = {
    "expired": "expired before it was worked off",
    "canceled": "was cancelled",
    "errored": "failed",
}


def _state(status: Any, counts: Mapping[str, int]) -> State:
    if status != "ended":
        return state_of(status)
    if counts.get("canceled"):
        return "cancelled"
    if counts.get("expired"):
        return "expired"
    return "partly" if counts.get("errored") else "done"


def _version(http: BatchHTTP) -> dict[str, str]:
    return {"anthropic-version": str(getattr(http.provider, "version", "2023-06-01"))}
