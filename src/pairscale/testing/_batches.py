"""The providers' batch APIs, simulated: files, batches that advance, results in any order, and what goes wrong."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aiohttp import web

from pairscale.providers.base import Fields, JsonObject
from pairscale.testing._formats import RefusedError

if TYPE_CHECKING:
    from pairscale.testing.simulator import ProviderSimulator

_ENDS = ("done", "expired", "failed", "cancelled")
_FINISHED = 0.5  # of the requests of a batch that expires or is cancelled
_DAY_S = 86_400


class _Result(NamedTuple):
    """What became of one request: ``succeeded``, ``errored``, ``expired`` or ``cancelled``, and a document."""

    custom_id: str
    fate: str
    status: int
    document: Any


Fate: TypeAlias = int | str
"""What happens to a request: a status of HTTP, or a word for what goes wrong on the way."""


@dataclass(slots=True)
class _SimulatedBatch:
    """A batch: who works it off, what is in it, and how far it is."""

    id: str
    provider: str
    body: JsonObject
    model: str
    source: str | None
    requests: list[tuple[str, JsonObject]]
    created: float = field(default_factory=time.time)
    state: str = "validating"
    looks: int = 0
    cancelled: bool = False
    results: list[_Result] = field(default_factory=list)
    output: str | None = None
    errors: str | None = None
    message: str = "simulated: the batch failed validation"

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDS

    @property
    def kind(self) -> str:
        """The format of its requests."""
        if str(self.body.get("endpoint")).endswith("/responses"):
            return "responses"
        return _DIALECTS[self.provider].kind

    def count(self, fate: str) -> int:
        return sum(result.fate == fate for result in self.results)


class Call(NamedTuple):
    """A request of a batch API.

    ``name`` is the file, batch or model that its path names, ``counted`` the faults that it may meet.
    """

    request: web.Request
    provider: str
    server: ProviderSimulator
    name: str
    handle: Callable[[Batches, Call], Awaitable[web.Response]]
    counted: str

    @property
    def kind(self) -> str:
        return _DIALECTS[self.provider].kind


@dataclass(slots=True)
class Batches:
    """How the simulated batches behave; the batches themselves are in ``jobs``.

    A batch is validating, then running, then finishing, then it ends: one state further each time that a client looks
    at it, or, with ``seconds``, by the clock. Of a batch that expires or is cancelled, half of the requests are
    answered.

    Attributes:
        looks: how often one has to look until it has ended; at the most three states come before.
        seconds: how long it takes instead.
        ends: how batches end: ``done``, ``expired``, ``failed`` or ``cancelled``; one for all, or one for each of the
            first, in order.
        failing: the share of requests that end in an error of their own; drawn by the batch and their place in it.
        gone: the share of requests of which the results say nothing; drawn likewise.
        garbage: how many lines of each file of results are no JSON.
        create_faults: what happens to the first creations: a status, ``lost`` (it is created, and the connection is
            cut), ``reset`` (it is not), or ``ok``.
        look_faults: what happens to the first looks.
        download_faults: what happens to the first downloads.
        upload_faults: what happens to the first uploads.
        jobs: every batch by its id.
        created: how many were created.
    """

    looks: int = 2
    seconds: float | None = None
    ends: str | Sequence[str] = "done"
    failing: float = 0.0
    gone: float = 0.0
    garbage: int = 0
    create_faults: Sequence[Fate] = ()
    look_faults: Sequence[Fate] = ()
    download_faults: Sequence[Fate] = ()
    upload_faults: Sequence[Fate] = ()
    jobs: dict[str, _SimulatedBatch] = field(default_factory=dict, init=False, repr=False)
    created: int = field(default=0, init=False)
    _files: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)
    _counts: Counter[str] = field(default_factory=Counter[str], init=False, repr=False)

    def call_of(self, request: web.Request, server: ProviderSimulator) -> Call | None:
        """What a request that is about batches asks for; None when it is about something else."""
        path = re.sub(r"^/together|^/download|/v1(?:beta)?|/messages", "", request.path)
        for method, pattern, handler, counted in _ROUTES:
            match = re.fullmatch(pattern, path)
            if method == request.method and match is not None:
                return Call(request, _provider_of(request), server, match[match.lastindex or 0], handler, counted)
        return None

    def fate(self, counted: str) -> Fate:
        """What happens to this request, the next of its sort."""
        faults: Sequence[Fate] = getattr(self, f"{counted}_faults", ())
        self._counts[counted] += 1
        return [*faults, "ok"][min(self._counts[counted] - 1, len(faults))]

    # Files

    async def _upload(self, call: Call) -> web.Response:
        form = await call.request.post()
        part = form.get("file")
        if isinstance(part, web.FileField):
            return web.json_response(self._file_document(self._stored("file-b", part.file.read())))
        name = self._stored("file-")  # Together says where to put the content
        headers = {"Location": f"{call.server.url}/together/upload/{name}", "X-Together-File-Id": name}
        return web.Response(status=302, headers=headers)

    async def _start_upload(self, call: Call) -> web.Response:
        """Begin Gemini's upload in two steps."""
        where = f"{call.server.url}/upload/{self._stored('files/f')}"
        return web.json_response({}, headers={"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"})

    async def _put(self, call: Call) -> web.Response:
        """The content of a file."""
        self._files[call.name] = self._file(call.name) + await call.request.read()
        return web.json_response({"file": self._file_document(call.name)}, headers={"X-Goog-Upload-Status": "final"})

    async def _describe(self, call: Call) -> web.Response:
        return web.json_response(self._file_document(call.name))

    async def _content(self, call: Call) -> web.Response:
        name = call.name
        if name in self.jobs:
            name = str(self.jobs[name].output)
        return web.Response(body=self._file(name), content_type="application/octet-stream")

    def _file(self, name: str) -> bytes:
        if name not in self._files:
            raise RefusedError(404, f"no such file: {name}")
        return self._files[name]

    def _file_document(self, name: str) -> Fields:
        """A file as its provider describes it."""
        size = len(self._file(name))
        if name.startswith("files/"):
            return {"name": name, "sizeBytes": str(size), "state": "ACTIVE"}
        document = {"id": name, "object": "file", "bytes": size, "created_at": 1, "filename": "requests.jsonl"}
        purpose = "batch" if name.startswith("file-b") else "batch-api"  # OpenAI's and Together's
        return document | {"purpose": purpose, "status": "processed", "FileType": "jsonl", "Processed": True}

    def _stored(self, prefix: str, content: bytes = b"") -> str:
        name = f"{prefix}{len(self._files) + 1:06d}"
        self._files[name] = content
        return name

    # Batches

    async def _create(self, call: Call) -> web.Response:
        body = await call.request.json()
        try:
            source, requests = self._requests(body)
            model = str(requests[0][1].get("model", call.name))
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise RefusedError(400, f"the batch cannot be made: {error}") from None
        self.created += 1
        name = f"{_DIALECTS[call.provider].prefix}{self.created:06d}"
        batch = _SimulatedBatch(name, call.provider, body, model, source, requests)
        self.jobs[name] = batch
        document = _document(batch, call.server)
        return web.json_response({"job": document} if call.provider == "together" else document)

    def _requests(self, body: JsonObject) -> tuple[str | None, list[tuple[str, Any]]]:
        """The file with the requests, if there is one, and the requests by their names."""
        if "requests" in body:
            return None, [(row["custom_id"], row["params"]) for row in body["requests"]]
        config = body.get("batch", {}).get("inputConfig", {})
        source = body.get("input_file_id") or config.get("fileName")
        if source is None:
            return None, [(row["metadata"]["key"], row["request"]) for row in config["requests"]["requests"]]
        rows = [json.loads(line) for line in self._file(source).splitlines() if line.strip()]
        return source, [(row.get("custom_id") or row["key"], row.get("body") or row["request"]) for row in rows]

    async def _get(self, call: Call) -> web.Response:
        batch = self._batch(call.name)
        self._advance(batch, call.server)
        return web.json_response(_document(batch, call.server))

    async def _list(self, call: Call) -> web.Response:
        mine = [batch for batch in reversed(self.jobs.values()) if batch.provider == call.provider]
        rows: Any = [_document(batch, call.server) for batch in mine]
        if call.provider != "together":
            rows = {"object": "list", "data": rows, "operations": rows, "has_more": False}
        return web.json_response(rows)

    async def _cancel(self, call: Call) -> web.Response:
        batch = self._batch(call.name)
        batch.cancelled = not batch.has_ended
        return web.json_response({} if call.provider == "gemini" else _document(batch, call.server))

    def _batch(self, name: str) -> _SimulatedBatch:
        if name not in self.jobs:
            raise RefusedError(404, f"no such batch: {name}")
        return self.jobs[name]

    # Working off

    def _advance(self, batch: _SimulatedBatch, server: ProviderSimulator) -> None:
        if batch.has_ended:
            return
        batch.looks += 1
        share = batch.looks / max(1, self.looks)
        if self.seconds is not None:
            share = (time.time() - batch.created) / max(self.seconds, 1e-9)
        if batch.cancelled or share >= 1:
            batch.state = self._ending(batch)
            self._end(batch, server)
        else:
            batch.state = "running" if share < 0.8 else "finishing"

    def _ending(self, batch: _SimulatedBatch) -> str:
        if batch.cancelled:
            return "cancelled"
        if isinstance(self.ends, str):
            return self.ends
        place = list(self.jobs).index(batch.id)
        return [*self.ends, "done"][min(place, len(self.ends))]

    def _end(self, batch: _SimulatedBatch, server: ProviderSimulator) -> None:
        if batch.state == "failed":
            return
        draw = random.Random(f"{server.behaviour.seed}|{batch.id}")  # noqa: S311 - a simulation, not a secret
        n = len(batch.requests)
        answered = set(draw.sample(range(n), n if batch.state == "done" else int(_FINISHED * n)))
        for place, (name, body) in enumerate(batch.requests):
            result = _Result(name, batch.state, 0, {"code": 1, "message": batch.state})
            if place in answered:
                result = self._result(batch, server, name, body, place + 1)
            if draw.random() >= self.gone:
                batch.results.append(result)
        is_inline = batch.provider == "gemini" and batch.source is None
        if not is_inline:
            draw.shuffle(batch.results)
            self._write(batch)

    def _result(
        self, batch: _SimulatedBatch, server: ProviderSimulator, name: str, body: JsonObject, number: int
    ) -> _Result:
        # By its place, not by its name: another name is made up at each submission.
        draw = random.Random(f"{server.behaviour.seed}|{batch.id}|{number}")  # noqa: S311 - a simulation, not a secret
        try:
            if draw.random() < self.failing:
                raise RefusedError(500, "simulated failure of this request")
            return _Result(name, "succeeded", 200, server._reply(batch.kind, batch.model, body, number))
        except RefusedError as refusal:
            document = refusal.body(batch.kind)
            if batch.provider == "gemini":
                document = document["error"]
            return _Result(name, "errored", refusal.status, document)

    def _write(self, batch: _SimulatedBatch) -> None:
        """The files of results: output and errors apart where the provider keeps them so."""
        dialect = _DIALECTS[batch.provider]
        has_two = dialect.line is _openai_line
        good: list[str] = []
        bad: list[str] = []
        for result in batch.results:
            lines = bad if has_two and result.fate != "succeeded" else good
            lines.append(json.dumps(dialect.line(result), ensure_ascii=False))
        good += ['{"custom_id": "torn'] * self.garbage
        prefix = "files/r" if batch.provider == "gemini" else "file-"
        if good or not has_two:
            batch.output = self._stored(prefix, "\n".join(good).encode())
        if bad:
            batch.errors = self._stored(prefix, "\n".join(bad).encode())


def _provider_of(request: web.Request) -> str:
    if request.path.startswith("/together/"):
        return "together"
    if "x-goog-api-key" in request.headers or "key" in request.query or request.path.startswith("/upload/"):
        return "gemini"
    return "anthropic" if request.path.startswith("/v1/messages/") else "openai"


_BATCH = r"/(?:(batches/b\d+)|batches/([^/:]+))"
_FILE = r"/(?:(files/[fr]\d+)|files/([^/:]+))"
_ROUTES = [
    ("POST", r"/batches|/models/([^:]+):batchGenerateContent", Batches._create, "create"),
    ("GET", r"/batches", Batches._list, ""),
    ("GET", _BATCH, Batches._get, "look"),
    ("POST", rf"{_BATCH}[:/]cancel", Batches._cancel, ""),
    ("GET", r"/batches/([^/]+)/results", Batches._content, "download"),
    ("POST", r"/files", Batches._upload, "upload"),
    ("GET", rf"{_FILE}(?:/content|:download)", Batches._content, "download"),
    ("GET", _FILE, Batches._describe, ""),
    ("POST", rf"{_FILE}/preprocess", Batches._describe, ""),
    ("POST", r"/upload/files", Batches._start_upload, "upload"),
    ("POST", r"/upload/(files/.+)", Batches._put, ""),
    ("PUT", r"/upload/(.+)", Batches._put, ""),
]
"""Method, path without version, what answers, and which of the faults it is counted for."""


# How each provider describes them


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _document(batch: _SimulatedBatch, server: ProviderSimulator) -> Fields:
    """A batch as its provider describes it."""
    dialect = _DIALECTS[batch.provider]
    document = dialect.document(batch, dialect.states.get(batch.state, batch.state))
    if batch.provider == "anthropic" and batch.has_ended:
        document["results_url"] = f"{server.url}/v1/messages/batches/{batch.id}/results"
    return document


def _openai(batch: _SimulatedBatch, state: str) -> Fields:
    done = batch.count("succeeded")
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.body.get("endpoint"),
        "input_file_id": batch.source,
        "output_file_id": batch.output,
        "error_file_id": batch.errors,
        "completion_window": "24h",
        "status": state,
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + _DAY_S,
        "errors": {"data": [{"message": batch.message}]} if state == "failed" else None,
        "request_counts": {"total": len(batch.requests), "completed": done, "failed": len(batch.results) - done},
        "metadata": batch.body.get("metadata"),
    }


def _together(batch: _SimulatedBatch, state: str) -> Fields:
    return _openai(batch, state.upper()) | {
        "created_at": _time(batch.created),
        "job_deadline": _time(batch.created + _DAY_S),
        "error": batch.message if state == "failed" else None,
    }


def _anthropic(batch: _SimulatedBatch, state: str) -> Fields:
    counts = {fate.replace("ll", "l"): batch.count(fate) for fate in ("succeeded", "errored", "cancelled", "expired")}
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "canceling" if batch.cancelled and not batch.has_ended else state,
        "request_counts": {"processing": 0 if batch.has_ended else len(batch.requests), **counts},
        "created_at": _time(batch.created),
        "expires_at": _time(batch.created + _DAY_S),
        "results_url": None,
    }


def _gemini(batch: _SimulatedBatch, state: str) -> Fields:
    done = batch.count("succeeded")
    about: Fields = {
        "name": batch.id,
        "displayName": batch.body["batch"].get("displayName", ""),
        "state": f"BATCH_STATE_{state.upper()}",
        "createTime": _time(batch.created),
        "batchStats": {
            "requestCount": str(len(batch.requests)),
            "successfulRequestCount": str(done),
            "failedRequestCount": str(len(batch.results) - done),
        },
    }
    document: Fields = {"name": batch.id, "metadata": about, "done": batch.has_ended}
    if state == "failed":
        document["error"] = {"code": 3, "message": batch.message}
    elif batch.has_ended:
        output: Fields = {"responsesFile": batch.output}
        if batch.output is None:
            rows = [{**_gemini_reply(result), "metadata": {"key": result.custom_id}} for result in batch.results]
            output = {"inlinedResponses": {"inlinedResponses": rows}}
        about["output"] = output
        document["response"] = output
    return document


def _gemini_reply(result: _Result) -> Fields:
    return {"response" if result.fate == "succeeded" else "error": result.document}


def _gemini_line(result: _Result) -> Fields:
    return {"key": result.custom_id, **_gemini_reply(result)}


def _anthropic_line(result: _Result) -> Fields:
    inner: Fields = {"type": result.fate.replace("ll", "l")}
    if result.fate in {"succeeded", "errored"}:
        inner["message" if result.fate == "succeeded" else "error"] = result.document
    return {"custom_id": result.custom_id, "result": inner}


def _openai_line(result: _Result) -> Fields:
    line: Fields = {"id": result.custom_id, "custom_id": result.custom_id, "response": None, "error": None}
    if result.fate in {"expired", "cancelled"}:
        message = f"This request could not be executed before the batch {result.fate}."
        line["error"] = {"code": f"batch_{result.fate}", "message": message}
    else:
        line["response"] = {"status_code": result.status, "request_id": "req", "body": result.document}
    return line


class _Dialect(NamedTuple):
    """How a provider speaks of batches.

    ``kind`` is the format of its requests, ``prefix`` begins its ids, and ``states`` are its names of our states.
    """

    kind: str
    prefix: str
    states: Mapping[str, str]
    document: Callable[[_SimulatedBatch, str], Fields]
    line: Callable[[_Result], Fields]


_ENDED = dict.fromkeys(_ENDS, "ended")
_RUNNING = dict.fromkeys(("validating", "running", "finishing"), "in_progress")
_OPENAI = {"running": "in_progress", "finishing": "finalizing", "done": "completed"}
_GEMINI = {"validating": "pending", "finishing": "running", "done": "succeeded"}
_DIALECTS = {
    "openai": _Dialect("chat", "batch_", _OPENAI, _openai, _openai_line),
    "together": _Dialect("chat", "batch_", _OPENAI | {"finishing": "in_progress"}, _together, _openai_line),
    "anthropic": _Dialect("messages", "msgbatch_", _RUNNING | _ENDED, _anthropic, _anthropic_line),
    "gemini": _Dialect("gemini", "batches/b", _GEMINI, _gemini, _gemini_line),
}
