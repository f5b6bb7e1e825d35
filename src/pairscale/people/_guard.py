"""Checks before every page: the host name it is served under, how much may be sent, and the headers for browsers."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 64 * 1024
"""Of a form: far more than a comment needs."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",  # the links are secrets
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_KEPT = {"cache-control": "public, max-age=86400"}  # pages ask for them by a digest


def signature(secret: str, *parts: object) -> str:
    """What a form carries to show that it comes from a page of ours, for this link and this purpose."""
    return hmac.new(secret.encode(), "|".join(map(str, parts)).encode(), sha256).hexdigest()


def is_signed(presented: str, secret: str, *parts: object) -> bool:
    """Whether a form carries the signature of a page of ours."""
    return hmac.compare_digest(presented.encode("utf-8", "replace"), signature(secret, *parts).encode())


class Guard:
    """Refuses foreign host names, posts from other sites and bodies that are too large; sets the headers.

    Args:
        app: what is guarded.
        hosts: the names that it is served under, besides ``localhost`` and addresses in numbers. Another site can
            make its own name point here, but never a number.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        sending = _with_headers(send, is_static=scope["path"].startswith("/static/"))
        refusal = self._refusal(scope["method"], headers)
        if refusal is not None:
            await refusal(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _refusal(self, method: str, headers: dict[str, str]) -> PlainTextResponse | None:
        if not _is_known(headers.get("host", ""), self._hosts):
            return PlainTextResponse("this page is not served under that name; see --url\n", 400)
        length = headers.get("content-length", "0")
        is_open_ended = "transfer-encoding" in headers  # whose body may be of any size
        if is_open_ended or not length.isdecimal() or int(length) > MOST_BYTES:
            return PlainTextResponse("this is too large\n", 413)
        # With no-referrer, browsers say "Origin: null"; this one they say truly, and no page can forge it.
        site = headers.get("sec-fetch-site", "same-origin")
        if method not in {"GET", "HEAD"} and site not in {"same-origin", "none"}:
            return PlainTextResponse("forms from other sites are not accepted\n", 403)
        return None


def _is_known(host: str, hosts: Collection[str]) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name.lower() in hosts:
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _with_headers(send: Send, *, is_static: bool) -> Send:
    headers = _HEADERS | _KEPT if is_static else _HEADERS

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            response = MutableHeaders(scope=message)
            for name, value in headers.items():
                response.setdefault(name, value)
        await send(message)

    return sending
