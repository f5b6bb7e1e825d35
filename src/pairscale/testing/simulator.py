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
from pairscale.core.options import require_number
from pairscale.testing._batches import Batches, cut
from pairscale.testing._formats import ReadRequest, error_body, read_request, reply_body
from pairscale.testing._judging import Behaviour, answer

_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
_KINDS = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/decisions": "decisions",
    "/messages": "messages",
    "/api/chat": "ollama",
    "/api/generate": "ollama",
}
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
        dripping: half of the answer comes at once, and the rest after ``slow_s`` seconds.
        retry_after: the header of a 429, as it stands there: seconds, or a date; empty for none.
        retry_after_ms: the header ``retry-after-ms`` of a 429; empty for none.
        slow_s: how slow is slow.
        script: what happens to the first requests, in order: a status (429), ``reset``, ``truncated``, ``slow``,
            ``dripping`` or ``ok``.
    """

    rate_limited: float = 0.0
    server_error: float = 0.0
    overloaded: float = 0.0
    reset: float = 0.0
    truncated: float = 0.0
    slow: float = 0.0
    dripping: float = 0.0
    retry_after: str = "0"
    retry_after_ms: str = ""
    slow_s: float = 1.0
    script: Sequence[int | str] = ()

    def fate(self, number: int, seed: int) -> int | str:
        """What happens to a request."""
        if number <= len(self.script):
            return self.script[number - 1]
        draw = random.Random(f"{seed}|fault|{number}").random()  # noqa: S311 - a simulation, not a secret
        shares = (
            (self.rate_limited, 429), (self.server_error, 500), (self.overloaded, 529), (self.reset, "reset"),
            (self.truncated, "truncated"), (self.slow, "slow"), (self.dripping, "dripping"),
        )  # fmt: skip
        for share, kind in shares:
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

    It speaks OpenAI's chat completions, responses and decisions (Together's and every compatible server's form, too),
    Anthropic's messages, Gemini's generateContent (v1 and v1beta), and Ollama's generate, chat, ps and tags; and the
    batches and files of all but Ollama. Together is under ``/together``. The official SDKs work against it unchanged.

    Attributes:
        behaviour: how it judges: hidden quality, position bias, lapses, refusals.
        faults: what goes wrong on the way.
        latency_s: seconds before each answer.
        models: the models there are; any other is a 404. None: every model is there.
        keys: the keys that are accepted; None accepts any.
        rejects: fields that a model refuses with a 400 that names them, by a pattern of its name.
        headers: further headers of every answer, such as those of rate limits.
        repeats_keys: whether it repeats the key in whatever it says, as a careless provider might.
        batches: how the batch APIs behave.
        host: the address to listen on.
        port: the port; 0 takes a free one.
        keep: how many requests the journal keeps.
        journal: what it was asked, the last request last.
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
    rejects: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    repeats_keys: bool = False
    batches: Batches = field(default_factory=Batches)
    host: str = "127.0.0.1"
    port: int = 0
    keep: int = 100_000
    journal: deque[JournalEntry] = field(init=False, repr=False)
    served: int = field(default=0, init=False)
    loaded: list[str] = field(default_factory=list[str], init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False, repr=False)
    _thread: threading.Thread | None = field(default=None, init=False, repr=False)
    _stop: asyncio.Event | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        require_number(self.latency_s, "latency_s", least=0)
        self.journal = deque(maxlen=self.keep)

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
            addresses = runner.addresses
            self.port = int(addresses[0][1])
            if started is not None:
                started.set_result(self.port)
            await self._stop.wait()
        finally:
            await runner.cleanup()

    # Answering

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.served += 1
        number = self.served
        batched = await self.batches.answer(request, self, number)
        if batched is not None:
            return batched
        try:
            body = await request.json() if request.can_read_body else None
        except ValueError:
            body = None
        gemini = _GEMINI.fullmatch(request.path)
        kind = "gemini" if gemini else _KINDS.get(request.path.removeprefix("/together").removeprefix("/v1"), "")
        fate = self.faults.fate(number, self.behaviour.seed) if kind else "ok"
        await asyncio.sleep(self.latency_s + (self.faults.slow_s if fate == "slow" else 0))
        if fate == "reset":
            self._note(number, request, body, 0, "reset")
            return cut(request)
        refused = self._refused(request, kind, fate)
        headers: Mapping[str, str] = {}
        if refused is not None:
            status, document, headers = refused
        elif kind:
            status, document = self._answer(kind, gemini[1] if gemini else "", body, number)
            headers = {"x-request-id": f"req_{number}"}
        else:
            status, document = self._other(request.path)
        if self.repeats_keys:
            document = _with_key(document, self._key(request))
        text = json.dumps(document, ensure_ascii=False)
        if fate == "truncated":
            text = text[: len(text) // 2]
        self._note(number, request, body, status, str(fate))
        headers = {**self.headers, **headers}
        if fate == "dripping":
            return await self._drip(request, text.encode(), headers)
        return web.Response(status=status, text=text, content_type="application/json", headers=headers)

    async def _drip(self, request: web.Request, content: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={**headers, "Content-Type": "application/json"})
        response.content_length = len(content)
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        await asyncio.sleep(self.faults.slow_s)
        await response.write(content[len(content) // 2 :])
        await response.write_eof()
        return response

    def _answer(self, kind: str, model: str, body: Any, number: int) -> tuple[int, dict[str, Any]]:
        try:
            asked = read_request(kind, body, model)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            return 400, error_body(kind, 400, f"the body of the request lacks something: {error}")
        problem = self._problem(kind, asked, body)
        if problem is not None:
            return problem
        if kind == "ollama" and self._unloads(asked, body):
            return 200, {"model": asked.model, "response": "", "done": True, "done_reason": "unload"}
        reply = answer(asked.prompt, self.behaviour, structured=asked.structured)
        return 200, reply_body(kind, asked, reply, number, body)

    def _refused(
        self, request: web.Request, kind: str, fate: int | str
    ) -> tuple[int, dict[str, Any], dict[str, str]] | None:
        """Why a request is not even read."""
        if self.keys is not None and kind not in {"", "ollama"} and self._key(request) not in self.keys:
            status = 400 if kind == "gemini" else 401
            return status, error_body(kind, status, "API key not valid. Please pass a valid API key."), {}
        if isinstance(fate, str):
            return None
        headers = {}
        if fate == 429:
            waits = {"Retry-After": self.faults.retry_after, "retry-after-ms": self.faults.retry_after_ms}
            headers = {name: value for name, value in waits.items() if value}
        return fate, error_body(kind, fate, f"simulated fault {fate}"), headers

    def _unloads(self, asked: ReadRequest, body: Mapping[str, Any]) -> bool:
        """Load a model that is asked, as Ollama does; whether it is to be forgotten instead."""
        forgets = body.get("keep_alive") == 0 and not asked.prompt
        if asked.model in self.loaded:
            self.loaded.remove(asked.model)
        if not forgets:
            self.loaded.append(asked.model)
        return forgets

    def _problem(self, kind: str, asked: ReadRequest, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Why a request that can be read is not answered."""
        if self.models is not None and asked.model not in self.models:
            more = ", try pulling it first" if kind == "ollama" else ""
            return 404, error_body(kind, 404, f"model '{asked.model}' not found{more}")
        inner = {**body, **(body.get("generationConfig") or {}), **(body.get("options") or {})}
        for pattern, names in self.rejects.items():
            for name in names:
                if name in inner and re.search(pattern, asked.model):
                    message = f"Unsupported parameter: '{name}' is not supported with this model."
                    return 400, error_body(kind, 400, message, name)
        return None

    def _other(self, path: str) -> tuple[int, dict[str, Any]]:
        """Models that there are, and those that Ollama has loaded."""
        names = list(self.models or ("simulated-1",))
        if path in {"/v1/models", "/models"}:
            return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
        if path in {"/api/tags", "/api/ps"}:
            shown = names if path == "/api/tags" else self.loaded
            return 200, {"models": [{"name": name, "model": name} for name in shown]}
        return 404, {"error": {"message": f"no such address: {path}", "type": "invalid_request_error"}}

    def _key(self, request: web.Request) -> str:
        sent = [request.headers[name] for name in _KEY_HEADERS if name in request.headers]
        return (sent or [request.query.get("key", "")])[0].removeprefix("Bearer ")

    def _note(self, number: int, request: web.Request, body: Any, status: int, fault: str) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        shown = {name: "[key]" if name in _KEY_HEADERS else value for name, value in headers.items()}
        self.journal.append(JournalEntry(number, request.method, request.path_qs, shown, body, status, fault))


def _with_key(document: Any, key: str) -> Any:
    """A document with the key in each of its longer texts."""
    if isinstance(document, str):
        return f"{document} (your key is {key})" if " " in document or "<" in document else document
    if isinstance(document, dict):
        return {name: _with_key(value, key) for name, value in document.items()}
    return [_with_key(value, key) for value in document] if isinstance(document, list) else document
