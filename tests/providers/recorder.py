"""A server on loopback that remembers requests, to compare what we send with what an SDK sends."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

__all__ = ["REPLIES", "Recorder", "Request", "flat"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came: ``path`` has no query, and the names of headers are in small letters."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The JSON document, the parts of a form by their names, the documents of a file of lines, or None."""
        kind = self.headers.get("content-type", "")
        if kind.startswith("multipart/"):
            return _form(kind, self.content)
        if not self.content.strip():
            return None
        try:
            return json.loads(self.content)
        except ValueError:
            return [json.loads(line) for line in self.content.splitlines() if line.strip()]


def _form(kind: str, content: bytes) -> dict[str, Any]:
    parsed = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + content)
    found: dict[str, Any] = {}
    for part in parsed.get_payload():
        assert isinstance(part, Message)
        name = str(part.get_param("name", header="content-disposition"))
        found[name] = part.get_payload(decode=True).decode()
        if (file := part.get_filename()) is not None:
            found[name] = [json.loads(line) for line in found[name].splitlines()]
            found |= {f"{name} name": file, f"{name} type": part.get_content_type()}
    return found


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of a document by their dotted names."""
    if isinstance(value, dict) and value:
        return {key: one for part, inner in value.items() for key, one in flat(inner, f"{name}.{part}").items()}
    if isinstance(value, list) and value:
        return {key: one for at, inner in enumerate(value) for key, one in flat(inner, f"{name}.{at}").items()}
    return {name: value}


class Recorder:
    """A server that remembers requests and answers with a minimal reply, or with that of a server behind it.

    Args:
        behind: address of the server that answers.
        change: makes another content out of that of its answers.

    Attributes:
        requests: all of them, in order.
        path: of the last one, with its query; ``body`` and ``headers`` likewise.
    """

    path: str | None = None
    body: Any = None
    headers: dict[str, str] | None = None

    def __init__(self, behind: str | None = None, change: Callable[[bytes], bytes] = bytes) -> None:
        recorder, self.requests = self, list[Request]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                content = self.content()
                headers = {name.lower(): value for name, value in self.headers.items()}
                place = urlsplit(self.path)
                asked = Request(self.command, place.path, dict(parse_qsl(place.query)), headers, content)
                recorder.requests.append(asked)
                recorder.path, recorder.headers = self.path, headers
                if behind is None or place.path.startswith("/_mark/"):
                    recorder.body = asked.body
                    status, more, data = 200, {}, json.dumps(_reply(place.path)).encode()
                else:
                    status, more, data = _from(behind, recorder.url, asked, self.path)
                    data = change(data)
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **more}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def content(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pieces = []
                while size := int(self.rfile.readline(), 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def taken(self) -> list[Request]:
        """The requests since this was called last."""
        found, self.requests = self.requests, []
        return found

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _from(behind: str, here: str, asked: Request, path: str) -> tuple[int, dict[str, str], bytes]:
    """What the server behind answers, with its own address replaced by ours."""
    left_out = {"host", "connection", "transfer-encoding", "content-length", "accept-encoding"}
    headers = {name: value for name, value in asked.headers.items() if name not in left_out}
    data = asked.content if asked.method != "GET" else None
    request = urllib.request.Request(behind + path, data, headers, method=asked.method)
    try:
        reply = urllib.request.build_opener(_Stay()).open(request)
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        content = reply.read().replace(behind.encode(), here.encode())
        hidden = {"content-length", "transfer-encoding", "connection", "date", "server"}
        kept = {name: value for name, value in reply.headers.items() if name.lower() not in hidden}
        return reply.status, {name: value.replace(behind, here) for name, value in kept.items()}, content


def _reply(path: str) -> Any:
    return REPLIES.get(path.rsplit("/", 1)[-1].rsplit(":", maxsplit=1)[-1], {})


REPLIES: dict[str, Any] = {
    "completions": {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []},
    "responses": {"id": "1", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "completed"},
    "messages": {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [],
                 "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
    "generateContent": {"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}}]},
    "generate": {"model": "m", "response": "x", "done": True},
}  # fmt: skip
