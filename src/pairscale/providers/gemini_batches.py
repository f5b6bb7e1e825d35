"""Gemini's batches: small ones inline, large ones by a file; results come the same way back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping
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
from pairscale.providers.client import ProviderError

__all__ = ["GeminiBatches"]

_INLINE = 18_000_000  # of 20 MB, which the batch's own fields share
_GIVES_UP = 48 * 3600  # seconds after which a batch expires, which it does not say of itself


class GeminiBatches:
    """Gemini's batch API."""

    name = "gemini"
    limits = BatchLimits(100_000, 1_000_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> dict[str, Any]:
        """One request of the file."""
        return {"key": custom_id, "request": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go: the model's own batch address."""
        return call.path.rpartition(":")[0] + ":batchGenerateContent"

    async def upload(self, http: BatchHTTP, draft: Draft) -> str | None:
        """Upload a file that is too large to go inline."""
        size = draft.path.stat().st_size
        if size <= _INLINE:
            return None
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(size),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        about = {"file": {"displayName": draft.key, "mimeType": "application/jsonl"}}
        _, headers, _ = await http.call("POST", f"/upload/{_version(http)}/files", about, headers=start)
        where = headers.get("X-Goog-Upload-URL")
        if not where:
            raise ProviderError("parse_error", "gemini: no place to upload the file to")
        send = {
            "X-Goog-Upload-Command": "upload, finalize",
            "X-Goog-Upload-Offset": "0",
            "Content-Length": str(size),
            "Content-Type": "application/jsonl",
        }
        lines = lambda: http.lines(draft.path, tail=b"\n")  # noqa: E731
        _, _, document = await http.call("POST", where, data=lines, headers=send, is_signed=True)
        with reading(self.name, document):
            return name_of(_read.items(_read.items(document).get("file")), "name")

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch; our key is its display name."""
        if draft.file_id is not None:
            source: dict[str, Any] = {"fileName": draft.file_id}
            body = {"batch": {"displayName": draft.key, "inputConfig": source}}
            return self.job(await http.json("POST", draft.endpoint, body, again=False))
        document = await http.json(
            "POST",
            draft.endpoint,
            data=lambda: _inline(http.lines(draft.path), draft.key),
            headers={"Content-Type": "application/json"},
            again=False,
        )
        return self.job(document)

    async def get(self, http: BatchHTTP, job_id: str) -> BatchJob:
        """Where a batch stands."""
        return self.job(await http.json("GET", f"/{_version(http)}/{quote(job_id)}"))

    async def cancel(self, http: BatchHTTP, job_id: str) -> None:
        """Ask for an end."""
        await http.json("POST", f"/{_version(http)}/{quote(job_id)}:cancel")

    async def find(self, http: BatchHTTP, draft: Draft, known: Collection[str]) -> list[BatchJob]:  # noqa: ARG002 - the key decides
        """The batch with our key as its display name."""
        token, seen = "", set[str]()
        while True:
            page = _read.items(await http.json("GET", f"/{_version(http)}/batches?pageSize=100{token}"))
            jobs = [self.job(row) for row in _read.objects(page.get("operations") or page.get("batches"))]
            if mine := [job for job in jobs if job.key == draft.key]:
                return mine
            if not page.get("nextPageToken"):
                return []
            token = f"&pageToken={quote(str(page['nextPageToken']), safe='')}"
            require_next(seen, token, self.name)

    async def download(self, http: BatchHTTP, job: BatchJob, target: Path, most: int = MOST_RESULTS) -> None:
        """The results: a file as it is, or the inline ones as lines of one."""
        if job.outputs:
            await http.fetch(f"/{_version(http)}/{quote(job.outputs[0])}:download?alt=media", target, most)
            return
        part = target.with_name(f"{target.name}.part")
        with open_private(part, "w", encoding="utf-8") as file:
            for row in inline_responses(job.raw):
                file.write(json.dumps(_line(row), ensure_ascii=False) + "\n")
        part.replace(target)

    def job(self, document: Any) -> BatchJob:
        """A batch as Gemini describes it: an operation whose metadata is the batch, or the batch itself."""
        found = _read.items(document)
        about = _read.items(found.get("metadata")) or found
        error = _read.items(found.get("error") or about.get("error"))
        file = next((one["responsesFile"] for one in _outputs(found) if one.get("responsesFile")), None)
        with reading(self.name, document):
            stats = {name: _count(value) for name, value in _read.items(about.get("batchStats")).items()}
            failed, created = stats.get("failedRequestCount", 0 if stats else None), seconds_of(about.get("createTime"))
            state = state_of(about.get("state"), lost=failed)
            return BatchJob(
                id=name_of(found, "name"),
                state="failed" if error and state == "running" else state,
                total=stats.get("requestCount"),
                succeeded=stats.get("successfulRequestCount", 0 if stats else None),
                failed=failed,
                key=about.get("displayName"),
                created_at=created,
                expires_at=None if created is None else created + _GIVES_UP,
                message=_read.words([error.get("message")]),
                outputs=(str(file),) if file else (),
                raw=found,
            )

    def read(self, document: Mapping[str, Any]) -> Line:
        """One line of the results, in Gemini's shape or in the manual's (``custom_id`` and ``result``)."""
        custom_id = document.get("custom_id") or document.get("key")
        if not isinstance(custom_id, str):
            raise ValueError("it has no key")
        result = _read.items(document.get("result")) or document
        kind = result.get("type") or ("errored" if result.get("error") else "succeeded")
        response, error = _read.items(result.get("response")), result.get("error")
        if kind == "succeeded" and response and not response.get("error"):
            return Line(custom_id, "succeeded", 200, response, result_type=str(kind))
        error = error or response.get("error")
        code = _read.number(_read.items(error).get("code"))
        status = code if code is not None and code >= 100 else _RPC.get(code or 0)
        if not error:
            return Line(custom_id, "errored", status, dict(result), "there is no response", str(kind))
        problem = _read.problem(status or 0, {"error": error})
        return Line(custom_id, "errored", status, error, problem.message, str(kind), problem.parameter)


_RPC = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
"""Google's codes of remote calls, which stand in some results instead of those of HTTP."""


def _outputs(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    about = _read.items(document.get("metadata"))
    places = (document.get("response"), about.get("output"), document.get("output"), document.get("dest"))
    return [_read.items(place) for place in places if place]


def inline_responses(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results that stand in the batch itself, in the order of its requests."""
    for place in _outputs(document):
        found = place.get("inlinedResponses")
        if rows := _read.objects(_read.items(found).get("inlinedResponses") if isinstance(found, Mapping) else found):
            return rows
    return []


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    custom_id = _read.items(row.get("metadata")).get("key")
    return result_line(custom_id, row)


def result_line(custom_id: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """A result in the manual's shape."""
    if row.get("response") and not row.get("error"):
        return {"custom_id": custom_id, "result": {"type": "succeeded", "response": row["response"]}}
    return {"custom_id": custom_id, "result": {"type": "errored", "error": row.get("error")}}


async def _inline(chunks: AsyncIterator[bytes], key: str) -> AsyncIterator[bytes]:
    name = json.dumps(key)
    yield f'{{"batch":{{"displayName":{name},"inputConfig":{{"requests":{{"requests":['.encode()
    first = True
    async for chunk in chunks:
        for line in chunk.split(b"\n"):
            if not line:
                continue
            row = json.loads(line)
            one = {"request": row["request"], "metadata": {"key": row["key"]}}
            yield (b"" if first else b",") + json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode()
            first = False
    yield b"]}}}}"


def _version(http: BatchHTTP) -> str:
    return str(getattr(http.provider, "api_version", "v1beta"))


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float | str) and str(value).isdecimal() else 0
