"""Together's batches: OpenAI's, with another way up, other words for the states, and no metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairscale.providers import _read
from pairscale.providers._openai_batches import joined, read_line
from pairscale.providers._wire import Wire
from pairscale.providers.base import HTTPCall
from pairscale.providers.batches import Draft, Job, Limits, Line, name_of, reading, seconds_of, state_of
from pairscale.providers.client import ProviderError

__all__ = ["TogetherBatches"]


class TogetherBatches:
    """Together's batch API."""

    name = "together"
    limits = Limits(50_000, 100_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> dict[str, Any]:
        """One request of the file."""
        return {"custom_id": custom_id, "body": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go."""
        return f"/v1{call.path}"

    async def upload(self, wire: Wire, draft: Draft) -> str:
        """Ask where the file is to go, put it there, and say that it is there."""
        fields = {"purpose": "batch-api", "file_name": f"{draft.key}.jsonl", "file_type": "jsonl"}
        fields["checksum"] = _checksum(draft.path)
        status, headers, document = await wire.call("POST", "/files", data=lambda: wire.form(fields), accept=(302, 409))
        if status == 409:  # the same file is there already
            with reading(self.name, document):
                return name_of(_read.items(document), "file_id")
        where, file_id = headers.get("Location"), headers.get("X-Together-File-Id")
        if not where or not file_id:
            raise ProviderError("parse_error", "together: no place to upload the file to", status=status)
        size = {"Content-Length": str(draft.path.stat().st_size), "Content-Type": "application/octet-stream"}
        await wire.call("PUT", where, data=lambda: wire.lines(draft.path, tail=b"\n"), headers=size)
        await wire.json("POST", f"/files/{quote(file_id, safe='')}/preprocess")
        return str(file_id)

    async def create(self, wire: Wire, draft: Draft) -> Job:
        """Create the batch; it is known again by the file it was made from."""
        body = {"input_file_id": draft.file_id, "endpoint": draft.endpoint, "completion_window": "24h"}
        document = _read.items(await wire.json("POST", "/batches", body, again=False))
        return self.job(document.get("job") or document)

    async def get(self, wire: Wire, job_id: str) -> Job:
        """Where a batch stands."""
        return self.job(await wire.json("GET", f"/batches/{quote(job_id, safe='')}"))

    async def cancel(self, wire: Wire, job_id: str) -> None:
        """Ask for an end."""
        await wire.json("POST", f"/batches/{quote(job_id, safe='')}/cancel")

    async def find(self, wire: Wire, draft: Draft, known: Collection[str]) -> list[Job]:
        """The batch that was made from our file, which nobody else has."""
        if draft.file_id is None:
            return []
        rows = await wire.json("GET", "/batches")
        jobs = _read.objects(rows if isinstance(rows, list) else _read.items(rows).get("data"))
        mine = [row for row in jobs if row.get("input_file_id") == draft.file_id and row.get("id") not in known]
        return [self.job(row) for row in mine]

    async def download(self, wire: Wire, job: Job, target: Path) -> None:
        """Output and errors, one after the other."""
        await joined(wire, [f"/files/{quote(file, safe='')}/content" for file in job.outputs], target)

    def job(self, document: Any) -> Job:
        """A batch as Together describes it; it counts nothing but the share that is done."""
        found = _read.items(document)
        with reading(self.name, document):
            return Job(
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
