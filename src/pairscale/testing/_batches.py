"""The providers' batch APIs, simulated: files, batches that advance, results in any order, and what goes wrong."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pairscale.core.errors import InputError
from pairscale.testing._formats import error_body, read_request, reply_body
from pairscale.testing._judging import answer

if TYPE_CHECKING:
    from pairscale.testing.simulator import ProviderSimulator

_KINDS = {"openai": "chat", "together": "chat", "anthropic": "messages", "gemini": "gemini"}
_PREFIXES = {"openai": "batch_", "together": "batch_", "anthropic": "msgbatch_", "gemini": "batches/b"}
_ENDS = ("done", "expired", "failed", "cancelled")
_DAY = 86_400


@dataclass(slots=True)
class _File:
    """A file that was uploaded, or that came of a batch."""

    id: str
    name: str
    purpose: str
    content: bytes
    created: float


@dataclass(frozen=True, slots=True)
class _Result:
    """What became of one request: ``succeeded``, ``errored``, ``expired`` or ``cancelled``, and a document."""

    custom_id: str
    fate: str
    status: int
    document: Any


@dataclass(slots=True)
class _SimulatedBatch:
    """A batch: who works it off, what is in it, and how far it is."""

    id: str
    provider: str
    model: str
    name: str
    endpoint: str
    requests: list[tuple[str, Mapping[str, Any]]]
    created: float
    source: str | None
    metadata: Mapping[str, Any] | None
    state: str = "validating"
    looks: int = 0
    cancelled: bool = False
    results: list[_Result] = field(default_factory=list[_Result])
    output: str | None = None
    errors: str | None = None
    message: str | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDS

    def count(self, fate: str) -> int:
        return sum(result.fate == fate for result in self.results)


@dataclass(frozen=True, slots=True)
class _Call:
    """A request, whose API it is for, the server, and the file, batch or model that its path names."""

    request: web.Request
    provider: str
    server: ProviderSimulator
    name: str = ""

    def refuse(self, status: int, message: str) -> web.Response:
        """An error in the provider's format."""
        return web.json_response(error_body(_KINDS[self.provider], status, message), status=status)


@dataclass(slots=True)
class Batches:
    """How the simulated batches behave; the batches themselves are in ``jobs``.

    A batch is validating, then running, then finishing, then it ends: one state further each time that somebody looks
    at it, or, with ``seconds``, by the clock.

    Attributes:
        looks: how often one has to look until it has ended; at the most three states come before.
        seconds: how long it takes instead, by ``clock``.
        clock: tells the time.
        ends: how batches end: ``done``, ``expired``, ``failed`` or ``cancelled``; one for all, or one for each of the
            first, in order.
        finished: of a batch that expires or is cancelled, the share of requests that were answered before, rounded
            down.
        failing: the share of requests that end in an error of their own; drawn by the batch and their place in it.
        gone: the share of requests of which the results say nothing; drawn likewise.
        unordered: whether results come in another order than requests.
        garbage: how many lines of each file of results are no JSON.
        create_faults: what happens to the first creations: a status, ``lost`` (it is created, and the connection is
            cut), ``reset`` (it is not), or ``ok``.
        look_faults: what happens to the first looks.
        download_faults: what happens to the first downloads.
        upload_faults: what happens to the first uploads.
        page: how many batches a page of a list shows, at the most.
        jobs: every batch by its id.
        created: how many were created.
    """

    looks: int = 2
    seconds: float | None = None
    clock: Callable[[], float] = time.time
    ends: str | Sequence[str] = "done"
    finished: float = 0.5
    failing: float = 0.0
    gone: float = 0.0
    unordered: bool = True
    garbage: int = 0
    create_faults: Sequence[int | str] = ()
    look_faults: Sequence[int | str] = ()
    download_faults: Sequence[int | str] = ()
    upload_faults: Sequence[int | str] = ()
    page: int = 20
    jobs: dict[str, _SimulatedBatch] = field(default_factory=dict[str, _SimulatedBatch], init=False, repr=False)
    created: int = field(default=0, init=False)
    _files: dict[str, _File] = field(default_factory=dict[str, _File], init=False, repr=False)
    _counts: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False)

    def __post_init__(self) -> None:
        ends = [self.ends] if isinstance(self.ends, str) else self.ends
        unknown = sorted(set(ends) - set(_ENDS))
        if unknown:
            raise InputError(f"batches end as {', '.join(_ENDS)}, not as {', '.join(unknown)}")

    async def answer(self, request: web.Request, server: ProviderSimulator, number: int) -> web.StreamResponse | None:
        """Answer a request that is about batches; None when it is not."""
        provider = _provider_of(request)
        path = request.path.removeprefix("/together")
        for method, pattern, handler, counted in _ROUTES:
            match = re.fullmatch(pattern, path)
            if method != request.method or match is None:
                continue
            fate = self._fate(counted)
            refused = server._refused(request, _KINDS[provider], fate)
            if refused is not None:
                server._note(number, request, None, refused[0], str(fate))
                return web.json_response(refused[1], status=refused[0], headers=refused[2])
            if fate == "reset":
                server._note(number, request, None, 0, "reset")
                return cut(request)
            response: web.Response = await handler(self, _Call(request, provider, server, *match.groups()))
            server._note(number, request, None, response.status, str(fate))
            return cut(request) if fate == "lost" else response
        return None

    def _fate(self, counted: str) -> int | str:
        """What happens to this request, the next of its sort."""
        if not counted:
            return "ok"
        faults: Sequence[int | str] = getattr(self, f"{counted}_faults")
        count = self._counts.get(counted, 0)
        self._counts[counted] = count + 1
        return faults[count] if count < len(faults) else "ok"

    # Files

    async def _upload(self, call: _Call) -> web.Response:
        form = await call.request.post()
        purpose = str(form.get("purpose"))
        if call.provider == "together":  # which says where to put the content
            file = self._stored("file-", str(form.get("file_name")), purpose)
            headers = {"Location": f"{call.server.url}/together/upload/{file.id}", "X-Together-File-Id": file.id}
            return web.Response(status=302, headers=headers)
        part = form.get("file")
        if not isinstance(part, web.FileField):
            return call.refuse(400, "there is no file in the form")
        return web.json_response(_file_document(self._stored("file-", part.filename, purpose, part.file.read())))

    async def _put(self, call: _Call) -> web.Response:
        self._files[call.name].content = await call.request.read()
        return web.Response()

    async def _start(self, call: _Call) -> web.Response:
        """Begin Gemini's upload in two steps."""
        described = await call.request.json() if call.request.can_read_body else {}
        about = described.get("file") or {}
        file = self._stored("files/f", str(about.get("displayName") or about.get("display_name") or ""), "batch")
        where = f"{call.server.url}/upload/session/{file.id}"
        return web.json_response({}, headers={"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"})

    async def _chunk(self, call: _Call) -> web.Response:
        file = self._files[call.name]
        file.content += await call.request.read()
        if "finalize" not in call.request.headers.get("X-Goog-Upload-Command", ""):
            return web.json_response({}, headers={"X-Goog-Upload-Status": "active"})
        return web.json_response({"file": _file_document(file)}, headers={"X-Goog-Upload-Status": "final"})

    async def _file(self, call: _Call) -> web.Response:
        if call.name not in self._files:
            return call.refuse(404, f"no such file: {call.name}")
        return web.json_response(_file_document(self._files[call.name]))

    async def _list_files(self, _call: _Call) -> web.Response:
        return web.json_response({"object": "list", "data": [_file_document(file) for file in self._files.values()]})

    async def _content(self, call: _Call) -> web.Response:
        if call.name not in self._files:
            return call.refuse(404, f"there is nothing to download of {call.name}")
        return web.Response(body=self._files[call.name].content, content_type="application/octet-stream")

    def _stored(self, prefix: str, name: str, purpose: str, content: bytes = b"") -> _File:
        file = _File(f"{prefix}{len(self._files) + 1:06d}", name, purpose, content, self.clock())
        self._files[file.id] = file
        return file

    # Batches

    async def _create(self, call: _Call) -> web.Response:
        body = await call.request.json()
        try:
            batch = self._made(call.provider, body, call.name)
        except (KeyError, ValueError, TypeError) as error:
            return call.refuse(400, f"the batch cannot be made: {error}")
        self.jobs[batch.id] = batch
        self.created += 1
        document = _document(batch, call.server.url)
        return web.json_response({"job": document} if call.provider == "together" else document)

    def _made(self, provider: str, body: Mapping[str, Any], model: str) -> _SimulatedBatch:
        name = ""
        if provider == "anthropic":
            source = None
            requests = [(row["custom_id"], row["params"]) for row in body["requests"]]
        elif provider == "gemini":
            name = str(body["batch"].get("displayName", ""))
            config = body["batch"]["inputConfig"]
            source = config.get("fileName")
            if source is not None:
                requests = [(row["key"], row["request"]) for row in self._rows(source)]
            else:
                inline = enumerate(config["requests"]["requests"])
                requests = [(row.get("metadata", {}).get("key", f"request-{n}"), row["request"]) for n, row in inline]
        else:
            source = body["input_file_id"]
            requests = [(row["custom_id"], row["body"]) for row in self._rows(source)]
        if not requests or len(dict(requests)) != len(requests):
            raise ValueError("there are no requests, or two of one name")
        batch_id = f"{_PREFIXES[provider]}{self.created + 1:06d}"
        model = str(requests[0][1].get("model", model))
        endpoint = str(body.get("endpoint", ""))
        return _SimulatedBatch(
            batch_id, provider, model, name, endpoint, requests, self.clock(), source, body.get("metadata")
        )

    def _rows(self, file_id: str) -> list[Any]:
        if file_id not in self._files:
            raise ValueError(f"no such file: {file_id}")
        return [json.loads(line) for line in self._files[file_id].content.splitlines() if line.strip()]

    async def _get(self, call: _Call) -> web.Response:
        batch = self.jobs.get(call.name)
        if batch is None:
            return call.refuse(404, f"no such batch: {call.name}")
        self._advance(batch, call.server)
        return web.json_response(_document(batch, call.server.url))

    async def _list(self, call: _Call) -> web.Response:
        mine = [batch for batch in reversed(self.jobs.values()) if batch.provider == call.provider]
        rows = [_document(batch, call.server.url) for batch in mine]
        if call.provider == "together":
            return web.json_response(rows)
        names = [batch.id for batch in mine]
        query = call.request.query
        after = query.get("after") or query.get("after_id") or query.get("pageToken")
        start = names.index(after) + 1 if after in names else 0
        end = start + min(self.page, int(query.get("limit") or query.get("pageSize") or self.page))
        more = end < len(mine)
        if call.provider == "gemini":
            document: dict[str, Any] = {"operations": rows[start:end]}
            if more:
                document["nextPageToken"] = names[end - 1]
        else:
            document = {"object": "list", "data": rows[start:end], "has_more": more}
            if start < len(names):
                document |= {"first_id": names[start], "last_id": names[start:end][-1]}
        return web.json_response(document)

    async def _cancel(self, call: _Call) -> web.Response:
        batch = self.jobs.get(call.name)
        if batch is None:
            return call.refuse(404, f"no such batch: {call.name}")
        if not batch.has_ended:
            batch.cancelled = True
        return web.json_response({} if call.provider == "gemini" else _document(batch, call.server.url))

    async def _results(self, call: _Call) -> web.Response:
        batch = self.jobs.get(call.name)
        if batch is None or batch.output is None:
            return call.refuse(404, f"there is nothing to download of {call.name}")
        return web.Response(body=self._files[batch.output].content, content_type="application/x-jsonl")

    # Working off

    def _advance(self, batch: _SimulatedBatch, server: ProviderSimulator) -> None:
        if batch.has_ended:
            return
        batch.looks += 1
        if self.seconds is None:
            share = batch.looks / max(1, self.looks)
        else:
            share = (self.clock() - batch.created) / max(self.seconds, 1e-9)
        if batch.cancelled or share >= 1:
            self._end(batch, server)
        elif share < 0.8:
            batch.state = "running"
        else:
            batch.state = "finishing"

    def _end(self, batch: _SimulatedBatch, server: ProviderSimulator) -> None:
        index = list(self.jobs).index(batch.id)
        batch.state = "done"
        if batch.cancelled:
            batch.state = "cancelled"
        elif isinstance(self.ends, str):
            batch.state = self.ends
        elif index < len(self.ends):
            batch.state = self.ends[index]
        if batch.state == "failed" and batch.provider != "anthropic":
            batch.message = "simulated: the batch failed validation"
            return
        fails = batch.state == "failed"
        if fails:  # Anthropic's fail request by request
            batch.state = "done"
        draw = random.Random(f"{server.behaviour.seed}|{batch.id}")  # noqa: S311 - a simulation, not a secret
        n = len(batch.requests)
        answered = set(draw.sample(range(n), n if batch.state == "done" else int(self.finished * n)))
        for place, (name, body) in enumerate(batch.requests):
            if fails:
                result = self._failed(batch, name, 400, "simulated: this request failed validation")
            elif place in answered:
                result = self._result(batch, server, name, body, place + 1)
            else:
                result = _Result(name, batch.state, 0, {"code": 1, "message": batch.state})
            if draw.random() >= self.gone:
                batch.results.append(result)
        is_inline = batch.provider == "gemini" and batch.source is None
        if is_inline:
            return
        if self.unordered:
            draw.shuffle(batch.results)
        self._write(batch)

    @staticmethod
    def _failed(batch: _SimulatedBatch, name: str, status: int, message: str) -> _Result:
        document: dict[str, Any] = {"code": status, "message": message}
        if batch.provider != "gemini":
            document = error_body(_KINDS[batch.provider], status, message)
        return _Result(name, "errored", status, document)

    def _result(
        self, batch: _SimulatedBatch, server: ProviderSimulator, name: str, body: Mapping[str, Any], number: int
    ) -> _Result:
        # By its place, not by its name: another name is made up at each submission.
        draw = random.Random(f"{server.behaviour.seed}|{batch.id}|{number}")  # noqa: S311 - a simulation, not a secret
        if draw.random() < self.failing:
            return self._failed(batch, name, 500, "simulated failure of this request")
        kind = "responses" if batch.endpoint.endswith("/responses") else _KINDS[batch.provider]
        asked = read_request(kind, body, batch.model)
        problem = server._problem(kind, asked, body)
        if problem is not None:
            status, document = problem
            return _Result(name, "errored", status, document["error"] if batch.provider == "gemini" else document)
        reply = answer(asked.prompt, server.behaviour, structured=asked.structured)
        return _Result(name, "succeeded", 200, reply_body(kind, asked, reply, number, body))

    def _write(self, batch: _SimulatedBatch) -> None:
        """The files of results: output and errors apart where the provider keeps them so."""
        apart = batch.provider in {"openai", "together"}
        good: list[str] = []
        bad: list[str] = []
        for number, result in enumerate(batch.results, start=1):
            lines = bad if apart and result.fate != "succeeded" else good
            lines.append(json.dumps(_result_line(batch.provider, result, number), ensure_ascii=False))
        good += ['{"custom_id": "torn'] * self.garbage
        prefix = "files/r" if batch.provider == "gemini" else "file-"
        if good or not apart:
            batch.output = self._stored(prefix, "results.jsonl", "batch_output", "\n".join(good).encode()).id
        if bad:
            batch.errors = self._stored(prefix, "errors.jsonl", "batch_output", "\n".join(bad).encode()).id


def _provider_of(request: web.Request) -> str:
    if request.path.startswith("/together/"):
        return "together"
    if "x-goog-api-key" in request.headers or "key" in request.query or request.path.startswith("/upload/"):
        return "gemini"
    return "anthropic" if request.path.startswith("/v1/messages/") else "openai"


def cut(request: web.Request) -> web.Response:
    """Cut the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


_FILES = r"(?:/v1)?/files"
_BATCHES = r"(?:(?:/v1)?|/v1/messages)/batches"
_BETA = r"/v1(?:beta)?"
_ROUTES = [
    ("POST", _BATCHES, Batches._create, "create"),
    ("POST", rf"{_BETA}/models/([^:]+):batchGenerateContent", Batches._create, "create"),
    ("GET", rf"{_BATCHES}|{_BETA}/batches", Batches._list, ""),
    ("GET", rf"{_BETA}/(batches/b\d+)", Batches._get, "look"),
    ("POST", rf"{_BETA}/(batches/[^/:]+):cancel", Batches._cancel, ""),
    ("GET", rf"{_BATCHES}/([^/]+)", Batches._get, "look"),
    ("POST", rf"{_BATCHES}/([^/]+)/cancel", Batches._cancel, ""),
    ("GET", r"/v1/messages/batches/([^/]+)/results", Batches._results, "download"),
    ("POST", _FILES, Batches._upload, "upload"),
    ("GET", _FILES, Batches._list_files, ""),
    ("POST", rf"{_FILES}/([^/]+)/preprocess", Batches._file, ""),
    ("GET", rf"{_FILES}/([^/]+)/content", Batches._content, "download"),
    ("GET", rf"(?:/download)?{_BETA}/(files/[^/:]+):download", Batches._content, "download"),
    ("GET", rf"{_BETA}/(files/[fr]\d+)", Batches._file, ""),
    ("GET", rf"{_FILES}/([^/]+)", Batches._file, ""),
    ("PUT", r"/upload/([^/]+)", Batches._put, ""),
    ("POST", rf"/upload{_BETA}/files", Batches._start, "upload"),
    ("POST", r"/upload/session/(files/[^/]+)", Batches._chunk, ""),
]
"""Method, path, what answers, and which of the faults it is counted for."""


# How each provider describes them


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _file_document(file: _File) -> dict[str, Any]:
    """A file as its provider describes it."""
    if file.id.startswith("files/"):
        return {
            "name": file.id,
            "displayName": file.name,
            "sizeBytes": str(len(file.content)),
            "state": "ACTIVE",
            "mimeType": "application/jsonl",
            "createTime": _time(file.created),
        }
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.content),
        "created_at": int(file.created),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "FileType": "jsonl",
        "Processed": True,
    }


def _document(batch: _SimulatedBatch, url: str) -> dict[str, Any]:
    """A batch as its provider describes it."""
    if batch.provider == "anthropic":
        return _anthropic(batch, url)
    if batch.provider == "gemini":
        return _gemini(batch)
    document = {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "input_file_id": batch.source,
        "output_file_id": batch.output,
        "error_file_id": batch.errors,
    }
    if batch.provider == "together":
        names = {"running": "IN_PROGRESS", "finishing": "IN_PROGRESS", "done": "COMPLETED"}
        return document | {
            "status": names.get(batch.state, batch.state.upper()),
            "progress": 100.0 if batch.results else 0.0,
            "model_id": batch.model,
            "created_at": _time(batch.created),
            "job_deadline": _time(batch.created + _DAY),
            "error": batch.message,
        }
    names = {"running": "in_progress", "finishing": "finalizing", "done": "completed"}
    done = batch.count("succeeded")
    return document | {
        "completion_window": "24h",
        "status": names.get(batch.state, batch.state),
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + _DAY,
        "errors": {"data": [{"code": "invalid", "message": batch.message}]} if batch.message else None,
        "request_counts": {
            "total": len(batch.requests), "completed": done, "failed": len(batch.results) - done,
        },
        "metadata": batch.metadata,
    }  # fmt: skip


def _anthropic(batch: _SimulatedBatch, url: str) -> dict[str, Any]:
    document = {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "canceling" if batch.cancelled else "in_progress",
        "request_counts": {
            "processing": 0 if batch.has_ended else len(batch.requests),
            "succeeded": batch.count("succeeded"),
            "errored": batch.count("errored"),
            "canceled": batch.count("cancelled"),
            "expired": batch.count("expired"),
        },
        "created_at": _time(batch.created),
        "expires_at": _time(batch.created + _DAY),
        "results_url": None,
    }
    if batch.has_ended:
        document["processing_status"] = "ended"
        document["ended_at"] = _time(batch.created + 1)
        document["results_url"] = f"{url}/v1/messages/batches/{batch.id}/results"
    return document


def _gemini(batch: _SimulatedBatch) -> dict[str, Any]:
    names = {"validating": "PENDING", "finishing": "RUNNING", "done": "SUCCEEDED"}
    done = batch.count("succeeded")
    about: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": batch.id,
        "model": f"models/{batch.model}",
        "displayName": batch.name,
        "state": f"BATCH_STATE_{names.get(batch.state, batch.state.upper())}",
        "createTime": _time(batch.created),
        "updateTime": _time(batch.created),
        "batchStats": {
            "requestCount": str(len(batch.requests)),
            "successfulRequestCount": str(done),
            "failedRequestCount": str(len(batch.results) - done),
        },
    }
    document: dict[str, Any] = {"name": batch.id, "metadata": about}
    if not batch.has_ended:
        return document
    document["done"] = True
    if batch.message:
        return document | {"error": {"code": 3, "message": batch.message}}
    if batch.output:
        output: dict[str, Any] = {"responsesFile": batch.output}
    else:
        rows = [{**_gemini_reply(result), "metadata": {"key": result.custom_id}} for result in batch.results]
        output = {"inlinedResponses": {"inlinedResponses": rows}}
    about["output"] = output
    return document | {"response": output}


def _gemini_reply(result: _Result) -> dict[str, Any]:
    return {"response" if result.fate == "succeeded" else "error": result.document}


def _result_line(provider: str, result: _Result, number: int) -> dict[str, Any]:
    """One line of a file of results."""
    if provider == "gemini":
        return {"key": result.custom_id, **_gemini_reply(result)}
    if provider == "anthropic":
        inner: dict[str, Any] = {"type": "canceled" if result.fate == "cancelled" else result.fate}
        if result.fate == "succeeded":
            inner["message"] = result.document
        if result.fate == "errored":
            inner["error"] = result.document
        return {"custom_id": result.custom_id, "result": inner}
    line: dict[str, Any] = {"id": f"batch_req_{number}", "custom_id": result.custom_id, "response": None, "error": None}
    if result.fate in {"expired", "cancelled"}:
        words = f"This request could not be executed before the batch {result.fate}."
        line["error"] = {"code": f"batch_{result.fate}", "message": words}
    else:
        line["response"] = {"status_code": result.status, "request_id": f"req_{number}", "body": result.document}
    return line
