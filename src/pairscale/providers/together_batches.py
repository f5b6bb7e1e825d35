"""Together's batches: OpenAI's, with another way up, other words for the states, and no metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairscale.providers import _read
from pairscale.providers.base import HTTPCall
from pairscale.providers.batch_http import MOST_RESULTS, BatchHTTP
from pairscale.providers.batches import BatchJob, BatchLimits, Draft, Line, name_of, reading, seconds_of, state_of
from pairscale.providers.client import ProviderError
from pairscale.providers.openai_batches import joined, read_line

__all__ = ["TogetherBatches"]


class TogetherBatches:
    """Together's batch API."""

    name = "together"
    limits = BatchLimits(50_000, 100_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> dict[str, Any]:
        """One request of the file."""
        return {"custom_id": custom_id, "body": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go."""
        return f"/v1{call.path}"

    async def upload(self, http: BatchHTTP, draft: Draft) -> str:
        """Ask where the file is to go, put it there, and say that it is there."""
        fields = {"purpose": "batch-api", "file_name": f"{draft.key}.jsonl", "file_type": "jsonl"}
        fields["checksum"] = _checksum(draft.path)
        status, headers, document = await http.call("POST", "/files", data=lambda: http.form(fields), accept=(302, 409))
        if status == 409:  # the same file is there already
            with reading(self.name, document):
                return name_of(_read.items(document), "file_id")
        where, file_id = headers.get("Location"), headers.get("X-Together-File-Id")
        if not where or not file_id:
            raise ProviderError("parse_error", "together: no place to upload the file to", status=status)
        size = {"Content-Length": str(draft.path.stat().st_size)}
        await http.call("PUT", where, data=lambda: http.lines(draft.path, tail=b"\n"), headers=size, is_signed=True)
        await http.json("POST", f"/files/{quote(file_id, safe='')}/preprocess")
        return str(file_id)

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch; it is known again by the file it was made from."""
        body = {"input_file_id": draft.file_id, "endpoint": draft.endpoint, "completion_window": "24h"}
        document = _read.items(await http.json("POST", "/batches", body, again=False))
        return self.job(document.get("job") or document)

    async def get(self, http: BatchHTTP, job_id: str) -> BatchJob:
        """Where a batch stands."""
        return self.job(await http.json("GET", f"/batches/{quote(job_id, safe='')}"))

    async def cancel(self, http: BatchHTTP, job_id: str) -> None:
        """Ask for an end."""
        await http.json("POST", f"/batches/{quote(job_id, safe='')}/cancel")

    async def find(self, http: BatchHTTP, draft: Draft, known: Collection[str]) -> list[BatchJob]:
        """The batch that was made from our file, which no other batch has."""
        if draft.file_id is None:
            return []
        rows = await http.json("GET", "/batches")
        jobs = _read.objects(rows if isinstance(rows, list) else _read.items(rows).get("data"))
        mine = [row for row in jobs if row.get("input_file_id") == draft.file_id and row.get("id") not in known]
        return [self.job(row) for row in mine]

    async def download(self, http: BatchHTTP, job: BatchJob, target: Path, most: int = MOST_RESULTS) -> None:
        """Output and errors, one after the other."""
        await joined(http, [f"/files/{quote(file, safe='')}/content" for file in job.outputs], target, most)

    def job(self, document: Any) -> BatchJob:
        """A batch as Together describes it; it counts nothing but the share that is done."""
        found = _read.items(document)
        with reading(self.name, document):
            return BatchJob(
                id=name_of(found),
                state=state_of(found.get("status"), lost=found.get("error_file_id")),
                created_at=seconds_of(found.get("created_at")),
                expires_at=seconds_of(found.get("job_deadline")),
                message=_read.words([found.get("error")]),
                outputs=tuple(str(found[name]) for name in ("output_file_id", "error_file_id") if found.get(name)),
                raw=found,
            )

    def read(self, document: Mapping[str, Any]) -> Line:
        """One line of an output or an error file."""
        return read_line(document)


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1024 * 1024):
            digest.update(chunk)
    return digest.hexdigest()
