"""A server that speaks the providers' APIs and judges by a hidden quality: rehearse a study without paying for it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from pairscale.core.errors import InputError
from pairscale.providers.base import Fields, JsonObject
from pairscale.testing._batches import Batches, Fate
from pairscale.testing._formats import RefusedError, read_request, reply_body
from pairscale.testing._judging import Behaviour, answer

_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
_KINDS = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    "/api/generate": "ollama",
}
_FAULTS: dict[str, Fate] = {
    "rate_limited": 429, "server_error": 500, "overloaded": 529,
    "reset": "reset", "truncated": "truncated", "slow": "slow",
}  # fmt: skip
_GEMINI = re.compile(r"/(?:v1|v1beta)/models/([^:]+):generateContent")


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong on the way, as shares of the requests; drawn by the request's number and the seed.

    Attributes:
        rate_limited: 429 with ``retry_after``.
        server_error: 500.
        overloaded: 529.
        reset: the connection is cut without an answer.
        truncated: half of the JSON document.
        slow: the answer comes after ``slow_s`` seconds.
        retry_after: the header of a 429 as it is sent: seconds, or a date; empty for none.
        slow_s: how slow is slow.
        script: what happens to the first requests, in order: a status (429), ``reset``, ``truncated``, ``slow``
            or ``ok``.
    """

    rate_limited: float = 0.0
    server_error: float = 0.0
    overloaded: float = 0.0
    reset: float = 0.0
    truncated: float = 0.0
    slow: float = 0.0
    retry_after: str = "0"
    slow_s: float = 1.0
    script: Sequence[Fate] = ()

    def fate(self, number: int, seed: int) -> Fate:
        """What happens to a request."""
        if number <= len(self.script):
            return self.script[number - 1]
        draw = random.Random(f"{seed}|fault|{number}").random()  # noqa: S311 - a simulation, not a secret
        for name, kind in _FAULTS.items():
            share = getattr(self, name)
            if draw < share:
                return kind
            draw -= share
        return "ok"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One request that the simulator got.

    Attributes:
        number: which one, from 1.
        method: of HTTP.
        path: with its query.
        headers: without the key.
        body: the JSON document, or None.
        status: of the answer; 0 when the connection was cut.
        fault: what went wrong, or ``ok``.
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    status: int
    fault: str


@dataclass(slots=True)
class ProviderSimulator:
    """A real HTTP server on this machine; use it in a ``with`` block.

    It speaks OpenAI's chat completions, and responses (Together's and every compatible server's form, too),
    Anthropic's messages, Gemini's generateContent (v1 and v1beta), and Ollama's generate and ps; and the
    batches and files of all but Ollama. Together is under ``/together``. The official SDKs work against it unchanged.

    Attributes:
        behaviour: how it judges: hidden quality, position bias, lapses, refusals.
        faults: what goes wrong on the way.
        latency_s: seconds before each answer.
        models: the models there are; any other is a 404. None: every model is there.
        keys: the keys that are accepted; None accepts any.
        rejects: fields that a model refuses with a 400 that names them, by a pattern of its name.
        headers: further headers of every answer, such as those of rate limits.
        batches: how the batch APIs behave.
        host: the address to listen on.
        port: the port; 0 takes a free one.
        journal: the last 100,000 requests, the newest last.
        served: how many requests it got.
        loaded: the models that Ollama has in memory.

    Example:
        >>> import pairscale as ps
        >>> with ProviderSimulator(Behaviour(quality={"Yes.": 0.0, "No, because it rains.": 20.0})) as server:
        ...     judge = ps.make_judge("openai:gpt-4.1", judge_args={"base_url": server.url + "/v1", "api_key": "none"})
        ...     pairs = [{"ID1": "a", "text1": "Yes.", "ID2": "b", "text2": "No, because it rains."}]
        ...     ps.submit_pairs(pairs, judge, progress=False).results["better_id"].to_list()
        ['b']
    """

    behaviour: Behaviour = field(default_factory=Behaviour)
    faults: Faults = field(default_factory=Faults)
    latency_s: float = 0.0
    models: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    rejects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    batches: Batches = field(default_factory=Batches)
    host: str = "127.0.0.1"
    port: int = 0
    journal: deque[JournalEntry] = field(default_factory=lambda: deque(maxlen=100_000), init=False, repr=False)
    served: int = field(default=0, init=False)
    loaded: list[str] = field(default_factory=list, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False, repr=False)
    _thread: threading.Thread | None = field(default=None, init=False, repr=False)
    _stop: asyncio.Event | None = field(default=None, init=False, repr=False)

    @property
    def url(self) -> str:
        """Where it is; OpenAI's base URL is this with ``/v1``."""
        return f"http://{self.host}:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables that point pairscale and the official SDKs at it."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "ANTHROPIC_BASE_URL": self.url,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "TOGETHER_BASE_URL": f"{self.url}/together",
            "OLLAMA_HOST": self.url,
        } | {f"{name}_API_KEY": "simulated-key" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "TOGETHER")}

    # Running

    def __enter__(self) -> Self:
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._serve, args=(started,), name="pairscale-simulator", daemon=True)
        self._thread.start()
        self.port = started.result()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _serve(self, started: Future[int]) -> None:
        try:
            asyncio.run(self.serve(started))
        except BaseException as error:  # noqa: BLE001 - told where the server was started
            if not started.done():
                started.set_exception(error)

    async def serve(self, started: Future[int] | None = None) -> None:
        """Serve until told to stop, or cancelled."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self.host, self.port)
            try:
                await site.start()
            except OSError as error:
                raise InputError(f"cannot listen on {self.host}:{self.port}: {error.strerror or error}") from None
            self.port = int(runner.addresses[0][1])
            if started is not None:
                started.set_result(self.port)
            await self._stop.wait()
        finally:
            await runner.cleanup()

    # Answering

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.served += 1
        number = self.served
        call = self.batches.call_of(request, self)
        if call is not None:
            fate = self.batches.fate(call.counted)
            kind = call.kind
            body = None
        else:
            kind = self._kind(request.path)
            fate = self.faults.fate(number, self.behaviour.seed) if kind else "ok"
            body = await _json(request)
            await asyncio.sleep(self.latency_s + (self.faults.slow_s if fate == "slow" else 0))
        response: web.Response
        try:
            self._admit(request, kind, fate)
            if fate == "reset":
                response = web.Response(status=500)
            elif call is not None:
                response = await call.handle(self.batches, call)
            else:
                response = self._written(request, self._document(request, kind, body, number), fate)
                response.headers["x-request-id"] = f"req_{number}"
        except RefusedError as refusal:
            response = self._written(request, refusal.body(kind), fate)
            response.set_status(refusal.status)
            response.headers.update(refusal.headers or {})
        self._note(number, request, body, 0 if fate == "reset" else response.status, str(fate))
        if fate in {"reset", "lost"} and request.transport is not None:
            request.transport.abort()
        return response

    def _kind(self, path: str) -> str:
        """The format of a question, by its address; empty for an address that takes none."""
        if _GEMINI.fullmatch(path):
            return "gemini"
        return _KINDS.get(path.removeprefix("/together").removeprefix("/v1"), "")

    def _written(self, _request: web.Request, document: Any, fate: Fate) -> web.Response:
        text = json.dumps(document, ensure_ascii=False)
        if fate == "truncated":
            text = text[: len(text) // 2]
        return web.Response(text=text, content_type="application/json", headers=self.headers)

    def _document(self, request: web.Request, kind: str, body: Any, number: int) -> Fields:
        """The answer to a question, or the models that Ollama has loaded."""
        if request.path == "/api/ps":
            return {"models": [{"name": name, "model": name} for name in self.loaded]}
        if not kind:
            raise RefusedError(404, f"no such address: {request.path}")
        gemini = _GEMINI.fullmatch(request.path)
        try:
            return self._reply(kind, gemini[1] if gemini else "", body, number)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise RefusedError(400, f"the body of the request lacks something: {error}") from None

    def _reply(self, kind: str, model: str, body: JsonObject, number: int) -> Fields:
        """The answer to a question.

        Raises:
            RefusedError: There is no such model, or it does not take a field.
        """
        asked = read_request(kind, body, model)
        if self.models is not None and asked.model not in self.models:
            raise RefusedError(404, f"model '{asked.model}' not found")
        fields = {**body, **(body.get("generationConfig") or {}), **(body.get("options") or {})}
        for pattern, names in self.rejects.items():
            for name in names:
                if name in fields and re.search(pattern, asked.model):
                    raise RefusedError(400, f"Unsupported parameter: '{name}' is not supported with this model.", name)
        if kind == "ollama":
            if asked.model in self.loaded:
                self.loaded.remove(asked.model)
            if body.get("keep_alive") == 0 and not asked.prompt:
                return {"model": asked.model, "response": "", "done": True, "done_reason": "unload"}
            self.loaded.append(asked.model)
        return reply_body(kind, asked, answer(asked.prompt, self.behaviour, structured=asked.structured), number, body)

    def _admit(self, request: web.Request, kind: str, fate: Fate) -> None:
        """Refuse a request with a wrong key, and one that meets a fault."""
        if self.keys is not None and kind not in {"", "ollama"} and self._key(request) not in self.keys:
            raise RefusedError(400 if kind == "gemini" else 401, "API key not valid. Please pass a valid API key.")
        if isinstance(fate, int):
            is_told = fate == 429 and self.faults.retry_after
            headers = {"Retry-After": self.faults.retry_after} if is_told else {}
            raise RefusedError(fate, f"simulated fault {fate}", headers=headers)

    def _key(self, request: web.Request) -> str:
        sent = [request.headers[name] for name in _KEY_HEADERS if name in request.headers]
        return (sent or [request.query.get("key", "")])[0].removeprefix("Bearer ")

    def _note(self, number: int, request: web.Request, body: Any, status: int, fault: str) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        shown = {name: "[key]" if name in _KEY_HEADERS else value for name, value in headers.items()}
        self.journal.append(JournalEntry(number, request.method, request.path_qs, shown, body, status, fault))


async def _json(request: web.Request) -> Any:
    """The body of a request; None where it is no JSON."""
    try:
        return await request.json()
    except ValueError:
        return None
