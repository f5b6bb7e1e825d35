"""How the simulated providers describe their batches, files and results: each in its own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pairscale.testing._formats import error_body

Fate = Literal["succeeded", "errored", "expired", "cancelled"]
"""What became of a request."""

_DAY = 86_400


@dataclass(slots=True)
class Stored:
    """A file that was uploaded, or that came of a batch."""

    id: str
    name: str
    purpose: str
    content: bytes = b""
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one request: its name, how it ended, a status of HTTP, and a document."""

    custom_id: str
    fate: Fate
    status: int = 200
    document: Any = None


@dataclass(slots=True)
class Batch:
    """A batch: who works it off, what is in it, and how far it is."""

    id: str
    flavour: str
    model: str
    name: str
    endpoint: str
    requests: list[tuple[str, Mapping[str, Any]]]
    created: float
    source: str | None = None
    metadata: Mapping[str, Any] | None = None
    state: str = "validating"
    looks: int = 0
    cancelled: bool = False
    results: list[Result] = field(default_factory=list[Result])
    output: str | None = None
    errors: str | None = None
    message: str | None = None

    def count(self, *fates: Fate) -> int:
        """How many requests ended so."""
        return sum(result.fate in fates for result in self.results)


def requests_of(flavour: str, rows: list[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The requests by their names.

    Raises:
        KeyError: when one lacks something.
    """
    if flavour == "anthropic":
        return [(row["custom_id"], row["params"]) for row in rows]
    if flavour == "gemini":
        return [(row.get("key") or row["metadata"]["key"], row["request"]) for row in rows]
    return [(row["custom_id"], row["body"]) for row in rows]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def file_document(flavour: str, file: Stored) -> dict[str, Any]:
    """A file as its provider describes it."""
    if flavour == "gemini":
        about = {"name": file.id, "displayName": file.name, "sizeBytes": str(len(file.content)), "state": "ACTIVE"}
        return about | {"mimeType": "application/jsonl", "createTime": _time(file.created)}
    plain = {"id": file.id, "object": "file", "bytes": len(file.content), "created_at": int(file.created)}
    plain |= {"filename": file.name, "purpose": file.purpose}
    more = {"FileType": "jsonl", "Processed": True} if flavour == "together" else {"status": "processed"}
    return plain | more


def batch_document(batch: Batch, url: str) -> dict[str, Any]:
    """A batch as its provider describes it."""
    return _DOCUMENTS[batch.flavour](batch, url)


_OPENAI = {"running": "in_progress", "finishing": "finalizing", "done": "completed"}


def _openai(batch: Batch, _: str) -> dict[str, Any]:
    lost = batch.count("errored", "expired", "cancelled")
    counts = {"total": len(batch.requests), "completed": batch.count("succeeded"), "failed": lost}
    errors = {"object": "list", "data": [{"code": "invalid", "message": batch.message, "line": 1, "param": None}]}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "input_file_id": batch.source,
        "completion_window": "24h",
        "status": _OPENAI.get(batch.state, batch.state),
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + _DAY,
        "errors": errors if batch.message else None,
        "output_file_id": batch.output,
        "error_file_id": batch.errors,
        "request_counts": counts,
        "metadata": batch.metadata,
    }


def _together(batch: Batch, _: str) -> dict[str, Any]:
    names = {"running": "IN_PROGRESS", "finishing": "IN_PROGRESS", "done": "COMPLETED"}
    return {
        "id": batch.id,
        "user_id": "simulated",
        "input_file_id": batch.source,
        "endpoint": batch.endpoint,
        "status": names.get(batch.state, batch.state.upper()),
        "progress": 100.0 if batch.results else 0.0,
        "model_id": batch.model,
        "created_at": _time(batch.created),
        "job_deadline": _time(batch.created + _DAY),
        "error": batch.message,
        "output_file_id": batch.output,
        "error_file_id": batch.errors,
    }


def _anthropic(batch: Batch, url: str) -> dict[str, Any]:
    ended = batch.state not in {"validating", "running", "finishing"}
    going = "canceling" if batch.cancelled else "in_progress"
    fates: dict[str, Fate] = {"succeeded": "succeeded", "errored": "errored", "canceled": "cancelled"}
    fates["expired"] = "expired"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if ended else going,
        "request_counts": {
            "processing": 0 if ended else len(batch.requests),
            **{name: batch.count(fate) if ended else 0 for name, fate in fates.items()},
        },
        "created_at": _time(batch.created),
        "expires_at": _time(batch.created + _DAY),
        "ended_at": _time(batch.created + 1) if ended else None,
        "archived_at": None,
        "cancel_initiated_at": _time(batch.created) if batch.cancelled else None,
        "results_url": f"{url}/v1/messages/batches/{batch.id}/results" if ended else None,
    }


def _gemini(batch: Batch, _: str) -> dict[str, Any]:
    names = {"validating": "PENDING", "finishing": "RUNNING", "done": "SUCCEEDED"}
    ended = batch.state not in {"validating", "running", "finishing"}
    lost = batch.count("errored", "expired", "cancelled")
    stats = {"requestCount": str(len(batch.requests)), "successfulRequestCount": str(batch.count("succeeded"))}
    about = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": batch.id,
        "model": f"models/{batch.model}",
        "displayName": batch.name,
        "state": f"BATCH_STATE_{names.get(batch.state, batch.state.upper())}",
        "createTime": _time(batch.created),
        "updateTime": _time(batch.created),
        "batchStats": stats | {"failedRequestCount": str(lost)},
    }
    document: dict[str, Any] = {"name": batch.id, "metadata": about}
    if not ended:
        return document
    about["endTime"] = _time(batch.created + 1)
    output: dict[str, Any] = {"responsesFile": batch.output} if batch.output else {}
    if not batch.output and batch.results:
        rows = [_inline(result) for result in batch.results]
        output = {"inlinedResponses": {"inlinedResponses": rows}}
    about["output"] = output
    document |= {"done": True}
    if batch.message:
        return document | {"error": {"code": 3, "message": batch.message}}
    return document | {"response": output}


def _inline(result: Result) -> dict[str, Any]:
    kind = "response" if result.fate == "succeeded" else "error"
    return {kind: result.document, "metadata": {"key": result.custom_id}}


_DOCUMENTS: dict[str, Callable[[Batch, str], dict[str, Any]]] = {
    "openai": _openai,
    "together": _together,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def result_line(flavour: str, result: Result, number: int) -> dict[str, Any]:
    """One line of a file of results."""
    if flavour == "gemini":
        return {"key": result.custom_id, "response" if result.fate == "succeeded" else "error": result.document}
    if flavour == "anthropic":
        kind = {"cancelled": "canceled"}.get(result.fate, result.fate)
        inner = {"message": result.document} if kind == "succeeded" else {}
        inner = {"error": result.document} if kind == "errored" else inner
        return {"custom_id": result.custom_id, "result": {"type": kind, **inner}}
    line: dict[str, Any] = {"id": f"batch_req_{number}", "custom_id": result.custom_id}
    if result.fate in {"expired", "cancelled"}:
        words = f"This request could not be executed before the batch {result.fate}."
        return line | {"response": None, "error": {"code": f"batch_{result.fate}", "message": words}}
    response = {"status_code": result.status, "request_id": f"req_{number}", "body": result.document}
    return line | {"response": response, "error": None}


def failure(flavour: str, status: int, message: str) -> dict[str, Any]:
    """The error of one request."""
    document = error_body({"anthropic": "messages", "gemini": "gemini"}.get(flavour, "chat"), status, message)
    if flavour == "gemini":
        return {"code": status, "message": message}
    return document
