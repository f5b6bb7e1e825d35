"""A server of OpenAI's chat completions and batches, and of people's choices, whose every reply a test decides.

It is written for these tests alone and shares no code with the package: what it counts, the package cannot miscount.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

__all__ = ["COST", "NO_USAGE", "PRICE", "USAGE", "Asked", "Reply", "Server", "better_of", "marks_in"]

PROMPT_TOKENS, COMPLETION_TOKENS = 200, 100
PRICE = {"input": 1.0, "output": 10.0, "batch": 1.0}
COST = (PROMPT_TOKENS * PRICE["input"] + COMPLETION_TOKENS * PRICE["output"]) / 1e6
"""What every reply with status 200 costs, in US dollars."""
USAGE = {
    "prompt_tokens": PROMPT_TOKENS,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
}
NO_USAGE = "left out"
"""As the ``usage`` of a reply: it has none."""

_MARK = re.compile(r"\[\[(t\d+)\]\]")
_DEADLINE_S = 600.0


def marks_in(text: str) -> tuple[str, ...]:
    """The names of the texts that a prompt holds, each once, in their order."""
    return tuple(dict.fromkeys(_MARK.findall(text)))


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, or one request of a batch.

    Attributes:
        kind: ``question``; or, of a batch, ``upload``, ``create``, ``list``, ``look`` or ``download``.
        number: which of its kind, from 1.
        texts: the two texts of a question, in their order.
        turn: which time these two texts are asked about in this order, from 1.
    """

    kind: str
    number: int
    texts: tuple[str, ...] = ()
    turn: int = 1


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server does with a request.

    Attributes:
        status: of HTTP.
        error: the ``error`` object of a status that is not 200.
        content: what the model says; None names the better text.
        finish: the ``finish_reason``.
        usage: the ``usage``, or ``NO_USAGE``.
        body: the whole reply instead.
        refusal: the ``refusal`` of the message.
        headers: further headers.
        fate: ``answer``; ``reset`` cuts the connection; ``never`` leaves the request open until the server ends.
        until: wait with the reply until this holds.
        delay: seconds to wait after that.
        leave: of a person: they answer, and nobody is there to answer any more.
    """

    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    content: str | None = None
    finish: str = "stop"
    usage: Any = field(default_factory=lambda: dict(USAGE))
    body: Any = None
    refusal: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fate: str = "answer"
    until: Callable[[Server], bool] | None = None
    delay: float = 0.0
    leave: bool = False


def better_of(texts: tuple[str, ...]) -> int:
    """Which of two texts is better, 1 or 2: the one with the higher number."""
    return 1 if texts[0] > texts[1] else 2


class Server:
    """Replies by a script; use it in a ``with`` block. Any thread may read its counts, and wait for them.

    Args:
        script: says what to do with a request; None answers it.

    Attributes:
        asked: every request, in the order in which they came in.
        good: the questions that got an answer with status 200: what a provider would charge for.
        bad: how many questions and calls got another status, or none.
        open: how many questions are waiting for their reply.
        batches: the batches that were created.
    """

    def __init__(self, script: Callable[[Asked], Reply | None] = lambda asked: None) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.good: list[Asked] = []
        self.bad = self.open = 0
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[str, bytes] = {}
        self._hold_after: float = float("inf")
        self._counts: Counter[Any] = Counter()
        self._changed = threading.Condition()

    @property
    def questions(self) -> list[Asked]:
        """The requests that are questions."""
        return [asked for asked in self.asked if asked.kind == "question"]

    def hold(self, after: int) -> None:
        """Answer so many questions, and leave the others (of a batch: the looks) open until :meth:`release`."""
        self._hold_after = after

    def release(self) -> None:
        """Reply to everything from now on."""
        self._hold_after = float("inf")
        self._notify()

    def wait(self, holds: Callable[[Self], bool], alive: Callable[[], bool] = lambda: True) -> None:
        """Wait until something holds; an error when ``alive`` ends before, or after ten minutes."""
        deadline = time.monotonic() + _DEADLINE_S
        with self._changed:
            while not holds(self):
                assert alive(), f"it ended before its time, after {len(self.asked)} requests"
                assert time.monotonic() < deadline, f"{len(self.asked)} requests came in, {len(self.good)} answered"
                self._changed.wait(0.05)

    # Running

    def __enter__(self) -> Self:
        started: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{started.result()}/v1"
        return self

    def __exit__(self, *_exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self, started: Future[int]) -> None:
        self._loop, self._stop, self._news = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/person", self._person)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._download)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._look)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        started.set_result(runner.addresses[0][1])
        await self._stop.wait()
        await runner.cleanup()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        self._loop.call_soon_threadsafe(self._news.set)

    # Deciding

    async def _decided(self, kind: str, texts: tuple[str, ...] = (), *, held: bool = True) -> tuple[Asked, Reply]:
        """Count a request, and say what to do with it when it is time."""
        self._counts[kind] += 1
        self._counts[kind, texts] += 1
        asked = Asked(kind, self._counts[kind], texts, self._counts[kind, texts])
        self.asked.append(asked)
        is_question = kind == "question"
        holds = held and asked.number > self._hold_after and (is_question or kind == "look")
        self.open += is_question
        self._notify()
        try:
            reply = self.script(asked) or Reply()
            async with asyncio.timeout(_DEADLINE_S / 2):  # a test that waits for what never happens fails in time
                while (holds and asked.number > self._hold_after) or not (reply.until is None or reply.until(self)):
                    self._news.clear()
                    await self._news.wait()
            await asyncio.sleep(reply.delay)
            while reply.fate == "never":
                await asyncio.sleep(3600)
        finally:
            self.open -= is_question
        if is_question and reply.status == 200 and reply.fate == "answer":
            self.good.append(asked)
        elif reply.status != 200 or reply.fate != "answer":
            self.bad += 1
        self._notify()
        return asked, reply

    async def _call(self, request: web.Request, kind: str) -> web.Response | None:
        """What a script wants instead of the usual answer to a call of the batch API."""
        _, reply = await self._decided(kind)
        return None if reply.status == 200 and reply.fate == "answer" else self._refused(request, reply)

    @staticmethod
    def _refused(request: web.Request, reply: Reply) -> web.Response:
        if reply.fate == "reset" and request.transport is not None:
            request.transport.abort()
        status = reply.status if reply.status != 200 else 500
        return web.json_response({"error": dict(reply.error)}, status=status, headers=reply.headers)

    # Live

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        asked, reply = await self._decided("question", _texts_of(body))
        if reply.status != 200 or reply.fate != "answer":
            return self._refused(request, reply)
        document = _completion(body, asked, reply) if reply.body is None else reply.body
        return web.json_response(document, headers=reply.headers)

    async def _person(self, request: web.Request) -> web.Response:
        shown = await request.json()
        texts = marks_in(shown["first"] + shown["second"])
        _, reply = await self._decided("question", texts)
        if reply.status != 200 or reply.content is not None or reply.refusal is not None:
            return web.json_response({"skip": reply.content or reply.refusal or str(reply.error.get("message"))})
        return web.json_response({"choice": str(better_of(texts)), "leave": reply.leave})

    # Batches

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        if (refused := await self._call(request, "upload")) is not None:
            return refused
        part = form["file"]
        assert isinstance(part, web.FileField)
        name = f"file-{len(self._files) + 1}"
        self._files[name] = part.file.read()
        return web.json_response({"id": name, "object": "file", "purpose": "batch", "filename": part.filename})

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if (refused := await self._call(request, "create")) is not None:
            return refused
        name = f"batch_{len(self.batches) + 1}"
        lines = self._files[body["input_file_id"]].splitlines()
        self.batches[name] = [json.loads(line) for line in lines]
        self._files[f"{name}.metadata"] = json.dumps(body.get("metadata") or {}).encode()
        return web.json_response(self._document(name))

    async def _list(self, request: web.Request) -> web.Response:
        if (refused := await self._call(request, "list")) is not None:
            return refused
        rows = [self._document(name) for name in reversed(self.batches)]
        return web.json_response({"object": "list", "data": rows, "has_more": False})

    async def _look(self, request: web.Request) -> web.Response:
        if (refused := await self._call(request, "look")) is not None:
            return refused
        name = request.match_info["id"]
        if f"{name}.output" not in self._files:
            await self._work_off(name)
        return web.json_response(self._document(name))

    async def _download(self, request: web.Request) -> web.Response:
        if (refused := await self._call(request, "download")) is not None:
            return refused
        return web.Response(body=self._files[request.match_info["id"]], content_type="application/jsonl")

    async def _work_off(self, name: str) -> None:
        """Decide on every request of a batch, as if each had come by itself."""
        good, bad = [], []
        for line in self.batches[name]:
            asked, reply = await self._decided("question", _texts_of(line["body"]), held=False)
            document = {"error": dict(reply.error)}
            if reply.status == 200:
                document = _completion(line["body"], asked, reply) if reply.body is None else reply.body
            response = {"status_code": reply.status, "request_id": f"req_{asked.number}", "body": document}
            row = {"id": f"r_{asked.number}", "custom_id": line["custom_id"], "response": response, "error": None}
            (good if reply.status == 200 else bad).append(json.dumps(row))
        self._files[f"{name}.output"] = "\n".join(good).encode()
        self._files[f"{name}.errors"] = "\n".join(bad).encode()

    def _document(self, name: str) -> dict[str, Any]:
        output, errors = (self._files.get(f"{name}.{part}") for part in ("output", "errors"))
        done = output is not None
        n_good, n_bad = (len((part or b"").splitlines()) for part in (output, errors))
        return {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "status": "completed" if done else "in_progress",
            "created_at": int(time.time()),
            "output_file_id": f"{name}.output" if n_good else None,
            "error_file_id": f"{name}.errors" if n_bad else None,
            "request_counts": {"total": len(self.batches[name]), "completed": n_good, "failed": n_bad},
            "metadata": json.loads(self._files[f"{name}.metadata"]),
        }


def _texts_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    return marks_in(json.dumps(body["messages"]))


def _completion(body: Mapping[str, Any], asked: Asked, reply: Reply) -> dict[str, Any]:
    """A reply of chat completions; each has words of its own, so that one that was replaced shows."""
    choice = f"Reply {asked.number}. <BETTER_SAMPLE>SAMPLE_{better_of(asked.texts)}</BETTER_SAMPLE>"
    message = {"role": "assistant", "content": choice if reply.content is None else reply.content}
    if reply.refusal is not None:
        message |= {"content": None, "refusal": reply.refusal}
    document = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
    }
    return document if reply.usage == NO_USAGE else {**document, "usage": reply.usage}
