"""OpenAI's batches: a file goes up, a batch is created from it, and two files come down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairscale.core.files import open_private
from pairscale.providers import _read
from pairscale.providers.base import HTTPCall
from pairscale.providers.batch_http import MOST_RESULTS, BatchHTTP
from pairscale.providers.batches import (
    BatchJob,
    BatchLimits,
    Draft,
    Line,
    name_of,
    reading,
    require_next,
    seconds_of,
    state_of,
)

__all__ = ["METADATA_KEY", "OpenAIBatches", "joined", "read_line"]

METADATA_KEY = "pairscale"
"""The name in a batch's metadata under which our own key stands."""


class OpenAIBatches:
    """OpenAI's batch API."""

    name = "openai"
    limits = BatchLimits(50_000, 200_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> dict[str, Any]:
        """One request of the file."""
        return {"custom_id": custom_id, "method": call.method, "url": self.endpoint(call), "body": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go."""
        return f"/v1{call.path}"

    async def upload(self, http: BatchHTTP, draft: Draft) -> str:
        """Upload the file."""
        document = await self.upload_file(http, draft.path, f"{draft.key}.jsonl")
        with reading(self.name, document):
            return name_of(document)

    async def upload_file(self, http: BatchHTTP, path: Path, name: str = "", purpose: str = "batch") -> dict[str, Any]:
        """Upload a file, and return what the provider says of it."""
        document = await http.json("POST", "/files", data=lambda: http.form({"purpose": purpose}, path, name))
        return dict(_read.items(document))

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch; our key stands in its metadata."""
        body = {
            "input_file_id": draft.file_id,
            "endpoint": draft.endpoint,
            "completion_window": "24h",
            "metadata": {**draft.metadata, METADATA_KEY: draft.key},
        }
        return self.job(await http.json("POST", "/batches", body, again=False))

    async def get(self, http: BatchHTTP, job_id: str) -> BatchJob:
        """Where a batch stands."""
        return self.job(await http.json("GET", f"/batches/{quote(job_id, safe='')}"))

    async def cancel(self, http: BatchHTTP, job_id: str) -> None:
        """Ask for an end."""
        await http.json("POST", f"/batches/{quote(job_id, safe='')}/cancel")

    async def find(self, http: BatchHTTP, draft: Draft, known: Collection[str]) -> list[BatchJob]:  # noqa: ARG002 - the key decides
        """The batch with our key in its metadata."""
        after, seen = "", set[str]()
        while True:
            page = _read.items(await http.json("GET", f"/batches?limit=100{after}"))
            rows = _read.objects(page.get("data"))
            for row in rows:
                if _read.items(row.get("metadata")).get(METADATA_KEY) == draft.key:
                    return [self.job(row)]
            with reading(self.name, page):
                oldest = seconds_of(rows[-1].get("created_at")) if rows else None
            if not page.get("has_more") or not rows or (oldest is not None and oldest < draft.prepared_at - 86_400):
                return []
            after = f"&after={quote(str(rows[-1].get('id')), safe='')}"
            require_next(seen, after, self.name)

    async def download(self, http: BatchHTTP, job: BatchJob, target: Path, most: int = MOST_RESULTS) -> None:
        """Output and errors, one after the other."""
        await joined(http, [f"/files/{quote(file, safe='')}/content" for file in job.outputs], target, most)

    def job(self, document: Any) -> BatchJob:
        """A batch as OpenAI describes it."""
        found = _read.items(document)
        counts = _read.items(found.get("request_counts"))
        errors = _read.objects(_read.items(found.get("errors")).get("data"))
        with reading(self.name, document):
            failed = _read.number(counts.get("failed"))
            return BatchJob(
                id=name_of(found),
                state=state_of(found.get("status"), lost=failed),
                total=_read.number(counts.get("total")),
                succeeded=_read.number(counts.get("completed")),
                failed=failed,
                key=_read.items(found.get("metadata")).get(METADATA_KEY),
                created_at=seconds_of(found.get("created_at")),
                expires_at=seconds_of(found.get("expires_at")),
                message=_read.words((error.get("message") for error in errors[:3]), "; "),
                outputs=tuple(str(found[name]) for name in ("output_file_id", "error_file_id") if found.get(name)),
                raw=found,
            )

    def read(self, document: Mapping[str, Any]) -> Line:
        """One line of an output or an error file."""
        return read_line(document)


def read_line(document: Mapping[str, Any]) -> Line:
    """One line of OpenAI's or Together's output or error file."""
    custom_id = document.get("custom_id")
    if not isinstance(custom_id, str):
        raise ValueError("it has no custom_id")
    response, error = _read.items(document.get("response")), document.get("error")
    status, body = _read.number(response.get("status_code")), response.get("body")
    if error:
        problem = _read.problem(status or 0, {"error": error})
        code = problem.code or ""
        if "expired" in code:
            return Line(custom_id, "expired", status, document, problem.message)
        if "cancel" in code:
            return Line(custom_id, "cancelled", status, document, problem.message)
        known = document if body is None else body
        return Line(custom_id, "errored", status, known, problem.message, parameter=problem.parameter)
    if status is not None and 200 <= status < 300:
        return Line(custom_id, "succeeded", status, body)
    if status is None and body is None:
        raise ValueError("it has neither a response nor an error")
    problem = _read.problem(status or 0, body)
    return Line(custom_id, "errored", status, body, problem.message, parameter=problem.parameter)


async def joined(http: BatchHTTP, paths: list[str], target: Path, most: int) -> None:
    """Several downloads as one file, whole or not at all."""
    parts = []
    for number, path in enumerate(paths):
        parts.append(target.with_name(f"{target.name}.{number}"))
        await http.fetch(path, parts[-1], most)
    whole = target.with_name(f"{target.name}.part")
    with open_private(whole) as file:
        for part in parts:
            last = b"\n"
            with part.open("rb") as source:
                while chunk := source.read(1024 * 1024):
                    file.write(chunk)
                    last = chunk[-1:]
            if last != b"\n":
                file.write(b"\n")
    whole.replace(target)
    for part in parts:
        part.unlink()
