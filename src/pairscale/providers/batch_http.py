"""HTTP for batches: small calls that are tried again, large files that are streamed, and creations that are not."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pairscale.core.files import open_private
from pairscale.core.notices import notice
from pairscale.providers.client import LLMClient, ProviderError, joined

if TYPE_CHECKING:
    import aiohttp

    from pairscale.providers.base import Provider

__all__ = ["MOST_RESULTS", "BatchHTTP"]

T = TypeVar("T")
_CHUNK = 1024 * 1024
_LONGEST_WAIT = 60.0
_MOST_JSON = 256 * 1024 * 1024
MOST_RESULTS = 16 * 1024**3
"""Bytes that a file of results may have where it is not known how many requests there were."""
_NOT_OURS = frozenset({402, 403, 404})  # of a call about a batch they never concern one question


class BatchHTTP:
    """Speaks to one provider about batches, with the address and the key of a client.

    Args:
        client: whose address and key.
        sleep: how to wait before trying again.
        retries: how often to try again what may be tried again.
        timeout: seconds that one call may take; files are large.
    """

    def __init__(
        self,
        client: LLMClient,
        *,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        retries: int = 4,
        timeout: float = 1800.0,
    ) -> None:
        self._client, self.sleep, self._retries, self._timeout = client, sleep, retries, timeout
        self._opened: list[IO[bytes]] = []
        self._said = ""  # the last problem that the user knows of

    @property
    def base_url(self) -> str:
        """Where the provider is."""
        return self._client.base_url

    @property
    def provider(self) -> Provider:
        """Whose wire format is spoken."""
        return self._client.provider

    async def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        data: Callable[[], Any] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> Any:
        """Make a call and return the JSON document that comes back.

        Args:
            method: of HTTP.
            path: behind the base URL, or a whole address.
            body: a JSON document to send.
            data: makes another kind of body, once per try.
            headers: besides those of the client.
            again: whether a failure that may pass is tried again.

        Raises:
            ProviderError: there is no answer, or it says no.
        """
        _, _, document = await self.call(method, path, body, data=data, headers=headers, again=again)
        return document

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        data: Callable[[], Any] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
        accept: tuple[int, ...] = (),
        is_signed: bool = False,
    ) -> tuple[int, Mapping[str, str], Any]:
        """The same with status and headers; redirects are not followed.

        Args:
            method: as above, like the next five.
            path: behind the base URL, or a whole address.
            body: a JSON document to send.
            data: makes another kind of body.
            headers: besides those of the client.
            again: whether a failure that may pass is tried again.
            accept: statuses that are no failure.
            is_signed: whether the address itself says who may use it, so that no key is sent.

        Raises:
            ProviderError: there is no answer, or it says no.
        """

        async def once() -> tuple[int, Mapping[str, str], Any]:
            payload = data() if data is not None else None if body is None else json.dumps(body).encode()
            kind = {"Content-Type": "application/json"} if data is None and method != "GET" else {}
            more = {**kind, **(headers or {})}
            async with self._request(method, path, payload, more, is_signed=is_signed) as response:
                content = await self._content(response)
                if not (200 <= response.status < 300 or response.status in accept):
                    raise self._refused(response.status, response.headers, content)
                return response.status, response.headers, self._document(content, response.status)

        return await self._tried(once, again=again)

    async def _content(self, response: aiohttp.ClientResponse) -> bytes:
        pieces, size = [], 0
        async for piece in response.content.iter_any():
            size += len(piece)
            self._require_size(size, response.status, _MOST_JSON)
            pieces.append(piece)
        return b"".join(pieces)

    def _require_size(self, size: int, status: int, most: int) -> None:
        if size > most:  # it may pass: what was to be created may be there, and is looked for
            words = f"{self.provider.name}: the answer is larger than {most:,} bytes"
            raise ProviderError("parse_error", words, status=status, failure="transient")

    async def fetch(self, path: str, target: Path, most: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Download a file of lines, of ``most`` bytes, whole or not at all, a piece at a time, and without keys."""
        part = target.with_name(f"{target.name}.part")

        async def once() -> None:
            async with self._request("GET", path, None, headers or {}) as response:
                if not 200 <= response.status < 300:
                    raise self._refused(response.status, response.headers, await response.content.read(_CHUNK))
                with open_private(part) as file:
                    rest, size = b"", 0
                    async for chunk in response.content.iter_chunked(_CHUNK):
                        size += len(chunk)
                        self._require_size(size, response.status, most)
                        *lines, rest = (rest + chunk).split(b"\n")
                        file.writelines(self._client.redactor.line(line + b"\n") for line in lines)
                        self._require_size(len(rest), response.status, _MOST_JSON)
                    file.write(self._client.redactor.line(rest))
                    file.flush()
                    os.fsync(file.fileno())
            part.replace(target)

        try:
            await self._tried(once, again=True)
        finally:
            part.unlink(missing_ok=True)

    async def _tried(self, once: Callable[[], Awaitable[T]], *, again: bool) -> T:
        for turn in range(self._retries + 1):
            try:
                return await self._told(once)
            except ProviderError as error:
                if not again or error.failure != "transient" or turn == self._retries:
                    raise
                wait = min(error.retry_after if error.retry_after is not None else 2.0**turn, _LONGEST_WAIT)
                if turn:  # one failure is nothing to speak of
                    self._say(error.message, wait)
                await self.sleep(wait)
        raise AssertionError

    def _say(self, problem: str, wait: float) -> None:
        """That it is tried again, so that the pause is explained; the problem in full when it is new."""
        if problem == self._said:
            notice(f"{self.provider.name}: the same again; trying again in {wait:g} s")
        else:
            notice(f"{problem}; trying again in {wait:g} s; Ctrl-C breaks off, and the same call continues later")
        self._said = problem

    async def _told(self, once: Callable[[], Awaitable[T]]) -> T:
        """Failures of the network in the words of the client."""
        import aiohttp

        where = f"{self.provider.name} at {self.base_url}"
        try:
            return await once()
        except TimeoutError:
            raise ProviderError("timeout", f"{where}: no answer in time", failure="transient") from None
        except aiohttp.ClientError as error:
            words = self._client.redactor.text(f"{type(error).__name__}: {error}")
            raise ProviderError("http_error", f"{where}: {words}", failure="transient") from None
        except OSError as error:
            if error.filename is not None:  # ours: the file of requests, or the disk
                raise
            raise ProviderError("http_error", f"{where}: {error}", failure="transient") from None
        finally:
            self._close_files()

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, payload: Any, headers: Mapping[str, str], *, is_signed: bool = False
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp

        url = path if "://" in path else joined(self.base_url, path)
        own = await self._client.headers() if self._is_own(url) and not is_signed else {}
        own.pop("Content-Type", None)
        async with self._client.session().request(
            method,
            url,
            data=payload,
            headers={**own, **headers},
            skip_auto_headers=("Content-Type",) if is_signed else (),  # one that is not signed may be refused
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=30.0),
        ) as response:
            yield response

    def _is_own(self, url: str) -> bool:
        """Whether an address is the provider's own: the key goes nowhere else."""
        one, other = urlsplit(url), urlsplit(self.base_url)
        return (one.scheme, one.netloc) == (other.scheme, other.netloc)

    def _refused(self, status: int, headers: Mapping[str, str], content: bytes) -> ProviderError:
        try:
            body: Any = json.loads(content)
        except ValueError:
            body = content.decode("utf-8", "replace")
        error = self._client.refused(status, headers, body)
        if status in _NOT_OURS:
            error.failure = "judge"
        return error

    def _document(self, content: bytes, status: int) -> Any:
        """The JSON document of an answer, without keys: what it says is written down."""
        found = self._client.redactor.document(content) if content.strip() else {}
        if not isinstance(found, str):
            return found
        if status >= 300:
            return {}
        raise ProviderError(
            "parse_error",
            f"{self.provider.name}: the answer is not JSON: {found[:200]!r}",
            status=status,
            failure="transient",
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def form(self, fields: Mapping[str, str], path: Path | None = None, name: str = "") -> aiohttp.FormData:
        """A multipart form, with a file that is read while it is sent."""
        import aiohttp

        form = aiohttp.FormData(default_to_multipart=True)
        for key, value in fields.items():
            form.add_field(key, value)
        if path is not None:
            form.add_field("file", self._reading(path), filename=name or path.name, content_type="application/jsonl")
        return form

    def lines(self, path: Path, head: bytes = b"", tail: bytes = b"", between: bytes = b"\n") -> AsyncIterator[bytes]:
        """A file of lines, a piece at a time, with other bytes before, after and in place of its line ends."""
        return _chunks(self._reading(path), head, tail, between)

    def _reading(self, path: Path) -> IO[bytes]:
        """A file that is closed when the call is over, however it ends."""
        self._opened.append(path.open("rb"))
        return self._opened[-1]

    def _close_files(self) -> None:
        for file in self._opened:
            file.close()
        self._opened.clear()


async def _chunks(file: IO[bytes], head: bytes, tail: bytes, between: bytes) -> AsyncIterator[bytes]:
    yield head
    kept, size, first = [], 0, True
    for line in file:
        kept.append(line.rstrip(b"\n") if first else between + line.rstrip(b"\n"))
        first = False
        size += len(line)
        if size >= _CHUNK:
            yield b"".join(kept)
            kept, size = [], 0
    yield b"".join(kept)
    yield tail
