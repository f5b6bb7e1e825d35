"""The providers' batch APIs, simulated: files, batches that advance, results in any order, and what goes wrong."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from pairscale.core.errors import InputError
from pairscale.testing._batch_formats import (
    Batch,
    Fate,
    Result,
    Stored,
    batch_document,
    failure,
    file_document,
    requests_of,
    result_line,
)
from pairscale.testing._formats import ReadRequest, asked_by, error_body, reply_body
from pairscale.testing._judging import Behaviour, answer

_KINDS = {"openai": "chat", "together": "chat", "anthropic": "messages", "gemini": "gemini"}
_ENDS = ("done", "expired", "failed", "cancelled")
_STOPPED: dict[str, Fate] = {"expired": "expired", "cancelled": "cancelled"}


class Server(Protocol):
    """What the batches need of the simulator."""

    behaviour: Behaviour

    @property
    def url(self) -> str:
        """Where it is."""
        ...

    def _problem(self, kind: str, asked: ReadRequest, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]] | None: ...

    def _refused(
        self, request: web.Request, kind: str, fate: int | str
    ) -> tuple[int, dict[str, Any], dict[str, str]] | None: ...

    def _note(self, number: int, request: web.Request, body: Any, status: int, fault: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Ask:
    """What somebody wants: the request, whose API it is for, the server, and the file, batch or model it names."""

    request: web.Request
    flavour: str
    server: Server
    name: str = ""

    def no(self, status: int, message: str) -> web.Response:
        """A refusal, in the provider's words."""
        return web.json_response(error_body(_KINDS[self.flavour], status, message), status=status)


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
    jobs: dict[str, Batch] = field(default_factory=dict[str, Batch], init=False, repr=False)
    created: int = field(default=0, init=False)
    _files: dict[str, Stored] = field(default_factory=dict[str, Stored], init=False, repr=False)
    _counts: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False)

    def __post_init__(self) -> None:
        ends = [self.ends] if isinstance(self.ends, str) else self.ends
        if unknown := sorted(set(ends) - set(_ENDS)):
            raise InputError(f"batches end as {', '.join(_ENDS)}, not as {', '.join(unknown)}")

    async def answer(self, request: web.Request, server: Server, number: int) -> web.StreamResponse | None:
        """Answer a request that is about batches; None when it is not."""
        flavour = _flavour(request)
        path = request.path.removeprefix("/together")
        for method, pattern, name, counted in _ROUTES[flavour]:
            found = pattern.fullmatch(path)
            if method != request.method or found is None:
                continue
            fate = self._fate(counted)
            refused = server._refused(request, _KINDS[flavour], fate)
            if refused is None and fate == "reset":
                server._note(number, request, None, 0, "reset")
                return _cut(request)
            if refused is not None:
                server._note(number, request, None, refused[0], str(fate))
                return web.json_response(refused[1], status=refused[0], headers=refused[2])
            ask = _Ask(request, flavour, server, *found.groups())
            response: web.Response = await getattr(self, name)(ask)
            server._note(number, request, None, response.status, str(fate))
            return _cut(request) if fate == "lost" else response
        return None

    def _fate(self, counted: str) -> int | str:
        faults: Sequence[int | str] = getattr(self, f"{counted}_faults") if counted else ()
        self._counts[counted] = self._counts.get(counted, 0) + 1
        at = self._counts[counted]
        return faults[at - 1] if at <= len(faults) else "ok"

    # Files

    async def _upload(self, ask: _Ask) -> web.Response:
        form = await ask.request.post()
        if ask.flavour == "together":
            file = self._stored("file", str(form.get("file_name")), str(form.get("purpose")))
            headers = {"Location": f"{ask.server.url}/together/upload/{file.id}", "X-Together-File-Id": file.id}
            return web.Response(status=302, headers=headers)
        part = form.get("file")
        if not isinstance(part, web.FileField):
            return ask.no(400, "there is no file in the form")
        file = self._stored("file", part.filename, str(form.get("purpose")), part.file.read())
        return web.json_response(file_document(ask.flavour, file))

    async def _put(self, ask: _Ask) -> web.Response:
        if ask.name not in self._files:
            return ask.no(404, f"no such file: {ask.name}")
        self._files[ask.name].content = await ask.request.read()
        return web.Response()

    async def _start(self, ask: _Ask) -> web.Response:
        about = (await ask.request.json()).get("file") or {} if ask.request.can_read_body else {}
        name = about.get("displayName") or about.get("display_name") or ""
        file = self._stored("files/f", str(name), "batch")
        where = f"{ask.server.url}/upload/session/{file.id}"
        return web.json_response({}, headers={"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"})

    async def _chunk(self, ask: _Ask) -> web.Response:
        file = self._files[ask.name]
        file.content += await ask.request.read()
        final = "finalize" in ask.request.headers.get("X-Goog-Upload-Command", "")
        headers = {"X-Goog-Upload-Status": "final" if final else "active"}
        return web.json_response({"file": file_document(ask.flavour, file)} if final else {}, headers=headers)

    async def _file(self, ask: _Ask) -> web.Response:
        file = self._files.get(ask.name)
        if file is None:
            return ask.no(404, f"no such file: {ask.name}")
        return web.json_response(file_document(ask.flavour, file))

    async def _files_list(self, ask: _Ask) -> web.Response:
        rows = [file_document(ask.flavour, file) for file in self._files.values()]
        return web.json_response({"files": rows} if ask.flavour == "gemini" else {"object": "list", "data": rows})

    async def _content(self, ask: _Ask) -> web.Response:
        return self._sent(ask, ask.name, "application/octet-stream")

    def _sent(self, ask: _Ask, file_id: str | None, kind: str) -> web.Response:
        if file_id not in self._files:
            return ask.no(404, f"there is nothing to download of {ask.name}")
        return web.Response(body=self._files[file_id].content, content_type=kind)

    def _stored(self, prefix: str, name: str, purpose: str, content: bytes = b"") -> Stored:
        dash = "" if prefix.startswith("files/") else "-"
        file = Stored(f"{prefix}{dash}{len(self._files) + 1:06d}", name, purpose, content, self.clock())
        self._files[file.id] = file
        return file

    # Batches

    async def _create(self, ask: _Ask) -> web.Response:
        body = await ask.request.json()
        try:
            batch = self._made(ask.flavour, body, ask.name)
        except (KeyError, ValueError, TypeError) as error:
            return ask.no(400, f"the batch cannot be made: {error}")
        self.jobs[batch.id] = batch
        self.created += 1
        document = batch_document(batch, ask.server.url)
        return web.json_response({"job": document} if ask.flavour == "together" else document)

    def _made(self, flavour: str, body: Mapping[str, Any], model: str) -> Batch:
        source, name, metadata, endpoint = None, "", None, str(body.get("endpoint", ""))
        if flavour == "anthropic":
            rows = body["requests"]
        elif flavour == "gemini":
            config = body["batch"]["inputConfig"]
            name, source = str(body["batch"].get("displayName", "")), config.get("fileName")
            rows = config["requests"]["requests"] if source is None else self._rows(source)
        else:
            source, metadata = body["input_file_id"], body.get("metadata")
            rows = self._rows(source)
        if flavour == "gemini" and source is None:
            for number, row in enumerate(rows):
                row.setdefault("metadata", {}).setdefault("key", f"request-{number}")
        requests = requests_of(flavour, rows)
        if not requests or len({custom_id for custom_id, _ in requests}) != len(requests):
            raise ValueError("there are no requests, or two of one name")
        prefix = {"anthropic": "msgbatch_", "gemini": "batches/b"}.get(flavour, "batch_")
        first = str(requests[0][1].get("model", model))
        return Batch(
            f"{prefix}{self.created + 1:06d}", flavour, first, name, endpoint, requests, self.clock(), source, metadata
        )

    def _rows(self, file_id: str) -> list[Any]:
        if file_id not in self._files:
            raise ValueError(f"no such file: {file_id}")
        return [json.loads(line) for line in self._files[file_id].content.splitlines() if line.strip()]

    async def _get(self, ask: _Ask) -> web.Response:
        if (batch := self._batch(ask)) is None:
            return ask.no(404, f"no such batch: {ask.name}")
        self._advance(batch, ask.server)
        return web.json_response(batch_document(batch, ask.server.url))

    async def _list(self, ask: _Ask) -> web.Response:
        mine = [batch for batch in reversed(self.jobs.values()) if batch.flavour == ask.flavour]
        if ask.flavour == "together":
            return web.json_response([batch_document(batch, ask.server.url) for batch in mine])
        query = ask.request.query
        after = query.get("after") or query.get("after_id") or query.get("pageToken")
        names = [batch.id for batch in mine]
        start = names.index(after) + 1 if after in names else 0
        size = min(self.page, int(query.get("limit") or query.get("pageSize") or self.page))
        shown = mine[start : start + size]
        rows = [batch_document(batch, ask.server.url) for batch in shown]
        more = start + size < len(mine)
        if ask.flavour == "gemini":
            return web.json_response({"operations": rows} | ({"nextPageToken": shown[-1].id} if more else {}))
        ends = {"first_id": shown[0].id if shown else None, "last_id": shown[-1].id if shown else None}
        return web.json_response({"object": "list", "data": rows, **ends, "has_more": more})

    async def _cancel(self, ask: _Ask) -> web.Response:
        if (batch := self._batch(ask)) is None:
            return ask.no(404, f"no such batch: {ask.name}")
        if batch.state in {"validating", "running", "finishing"}:
            batch.cancelled = True
        return web.json_response({} if ask.flavour == "gemini" else batch_document(batch, ask.server.url))

    async def _results(self, ask: _Ask) -> web.Response:
        batch = self._batch(ask)
        return self._sent(ask, None if batch is None else batch.output, "application/x-jsonl")

    def _batch(self, ask: _Ask) -> Batch | None:
        batch = self.jobs.get(ask.name)
        return batch if batch is not None and batch.flavour == ask.flavour else None

    # Working off

    def _advance(self, batch: Batch, server: Server) -> None:
        if batch.state in _ENDS:
            return
        batch.looks += 1
        if self.seconds is None:
            share = batch.looks / max(1, self.looks)
        else:
            share = (self.clock() - batch.created) / max(self.seconds, 1e-9)
        if batch.cancelled or share >= 1:
            self._end(batch, server)
        else:
            batch.state = "running" if share < 0.8 else "finishing"

    def _end(self, batch: Batch, server: Server) -> None:
        ends = [self.ends] * self.created if isinstance(self.ends, str) else list(self.ends)
        at = int(re.sub(r"\D", "", batch.id)) - 1
        batch.state = "cancelled" if batch.cancelled else ends[at] if at < len(ends) else "done"
        if batch.state == "failed" and batch.flavour == "anthropic":  # which fails request by request
            batch.state = "done"
            error = failure(batch.flavour, 400, "simulated: this request failed validation")
            batch.results = [Result(name, "errored", 400, error) for name, _ in batch.requests]
            self._write(batch)
            return
        if batch.state == "failed":
            batch.message = "simulated: the batch failed validation"
            return
        draw = random.Random(f"{server.behaviour.seed}|{batch.id}")  # noqa: S311 - a simulation, not a secret
        answered = len(batch.requests)
        if batch.state in _STOPPED:
            answered = int(self.finished * answered)
        before = set(draw.sample(range(1, len(batch.requests) + 1), answered))
        results = [
            self._result(batch, server, name, body, number) if number in before else self._stopped(batch, name)
            for number, (name, body) in enumerate(batch.requests, start=1)
        ]
        batch.results = [result for result in results if draw.random() >= self.gone]
        if self.unordered and not (batch.flavour == "gemini" and batch.source is None):
            draw.shuffle(batch.results)
        self._write(batch)

    @staticmethod
    def _stopped(batch: Batch, name: str) -> Result:
        document = {"code": 1, "message": batch.state} if batch.flavour == "gemini" else None
        return Result(name, _STOPPED[batch.state], 0, document)

    def _result(self, batch: Batch, server: Server, name: str, body: Mapping[str, Any], number: int) -> Result:
        # By its place, not by its name: another name is made up at each submission.
        draw = random.Random(f"{server.behaviour.seed}|{batch.id}|{number}")  # noqa: S311 - a simulation, not a secret
        if draw.random() < self.failing:
            return Result(name, "errored", 500, failure(batch.flavour, 500, "simulated failure of this request"))
        kind = "responses" if batch.endpoint.endswith("/responses") else _KINDS[batch.flavour]
        asked = asked_by(kind, body, batch.model)
        if (problem := server._problem(kind, asked, body)) is not None:
            status, document = problem
            return Result(name, "errored", status, document["error"] if batch.flavour == "gemini" else document)
        said = answer(asked.prompt, server.behaviour, structured=asked.structured)
        return Result(name, "succeeded", 200, reply_body(kind, asked, said, number, body))

    def _write(self, batch: Batch) -> None:
        """The files of results: output and errors apart where the provider keeps them so."""
        if batch.flavour == "gemini" and batch.source is None:
            return
        apart = batch.flavour in {"openai", "together"}
        good: list[str] = []
        bad: list[str] = []
        for number, result in enumerate(batch.results, start=1):
            line = json.dumps(result_line(batch.flavour, result, number), ensure_ascii=False)
            (bad if apart and result.fate != "succeeded" else good).append(line)
        good += ['{"custom_id": "torn'] * self.garbage
        prefix = "files/r" if batch.flavour == "gemini" else "file"
        if good or not apart:
            text = "\n".join(good)
            batch.output = self._stored(prefix, "results.jsonl", "batch_output", text.encode()).id
        if bad:
            batch.errors = self._stored(prefix, "errors.jsonl", "batch_output", "\n".join(bad).encode()).id


def _flavour(request: web.Request) -> str:
    if request.path.startswith("/together/"):
        return "together"
    if "x-goog-api-key" in request.headers or "key" in request.query or request.path.startswith("/upload/"):
        return "gemini"
    return "anthropic" if request.path.startswith("/v1/messages/") else "openai"


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


_Route = tuple[str, re.Pattern[str], str, str]


def _verbs(create: str, batches: str, batch: str, cancel: str) -> tuple[tuple[str, str, str, str], ...]:
    """What every provider has, each at its own addresses: create a batch, list them, look at one, ask for its end."""
    return (
        ("POST", create, "_create", "create"),
        ("GET", batches, "_list", ""),
        ("GET", batch, "_get", "look"),
        ("POST", cancel, "_cancel", ""),
    )


def _routes(*rows: tuple[str, str, str, str]) -> list[_Route]:
    return [(method, re.compile(pattern), name, counted) for method, pattern, name, counted in rows]


_V1, _MESSAGES, _BETA = r"(?:/v1)?", r"/v1/messages/batches", r"/v1(?:beta)?"
_OPENAI_ROUTES = _routes(
    *_verbs(rf"{_V1}/batches", rf"{_V1}/batches", rf"{_V1}/batches/([^/]+)", rf"{_V1}/batches/([^/]+)/cancel"),
    ("POST", rf"{_V1}/files", "_upload", "upload"),
    ("GET", rf"{_V1}/files", "_files_list", ""),
    ("POST", rf"{_V1}/files/([^/]+)/preprocess", "_file", ""),
    ("PUT", r"/upload/([^/]+)", "_put", ""),
    ("GET", rf"{_V1}/files/([^/]+)/content", "_content", "download"),
    ("GET", rf"{_V1}/files/([^/]+)", "_file", ""),
)
_ROUTES: dict[str, list[_Route]] = {
    "openai": _OPENAI_ROUTES,
    "together": _OPENAI_ROUTES,
    "anthropic": _routes(
        ("GET", rf"{_MESSAGES}/([^/]+)/results", "_results", "download"),
        *_verbs(_MESSAGES, _MESSAGES, rf"{_MESSAGES}/([^/]+)", rf"{_MESSAGES}/([^/]+)/cancel"),
    ),
    "gemini": _routes(
        *_verbs(
            rf"{_BETA}/models/([^:]+):batchGenerateContent",
            rf"{_BETA}/batches",
            rf"{_BETA}/(batches/[^/:]+)",
            rf"{_BETA}/(batches/[^/:]+):cancel",
        ),
        ("POST", rf"/upload{_BETA}/files", "_start", "upload"),
        ("POST", r"/upload/session/(files/[^/]+)", "_chunk", ""),
        ("GET", rf"(?:/download)?{_BETA}/(files/[^/:]+):download", "_content", "download"),
        ("GET", rf"{_BETA}/(files/[^/:]+)", "_file", ""),
    ),
}
"""Method, path, what answers, and which of the faults it is counted for."""
