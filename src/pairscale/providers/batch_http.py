"""HTTP for batches: small calls that are tried again, large files that are streamed, and creations that are not."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pairscale.core.files import open_private
from pairscale.providers.base import Headers
from pairscale.providers.client import LLMClient, ProviderError, joined, read_at_most, retrying
from pairscale.providers.limits import Sleep

if TYPE_CHECKING:
    import aiohttp

    from pairscale.providers.base import Provider


T = TypeVar("T")
_CHUNK = 1024 * 1024
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
        sleep: Sleep = asyncio.sleep,
        retries: int = 4,
        timeout: float = 1800.0,
    ) -> None:
        self._client = client
        self.sleep = sleep
        self._retries = retries
        self._timeout = timeout
        self._opened: list[IO[bytes]] = []

    @property
    def provider(self) -> Provider:
        """Whose wire format is spoken."""
        return self._client.provider

    async def json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON document that comes back from a call; ``options`` are those of :meth:`call`.

        Raises:
            ProviderError: there is no answer, or it says no.
        """
        return (await self.call(method, path, body, **options))[2]

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        data: Callable[[], Any] | None = None,
        headers: Headers | None = None,
        again: bool = True,
        accept: tuple[int, ...] = (),
        is_signed: bool = False,
    ) -> tuple[int, Headers, Any]:
        """Make a call; status, headers and JSON document of the answer. Redirects are not followed.

        Args:
            method: of HTTP.
            path: behind the base URL, or a whole address.
            body: a JSON document to send.
            data: makes another kind of body, once per try.
            headers: besides those of the client.
            again: whether a failure that may pass is tried again.
            accept: statuses that are no failure.
            is_signed: whether the address itself says who may use it, so that no key is sent.

        Raises:
            ProviderError: there is no answer, or it says no.
        """

        async def once() -> tuple[int, Headers, Any]:
            more = dict(headers or {})
            payload = None
            if data is not None:
                payload = data()
            elif method != "GET":
                more.setdefault("Content-Type", "application/json")
                payload = None if body is None else json.dumps(body).encode()
            async with await self._request(method, path, payload, more, is_signed=is_signed) as response:
                content = await read_at_most(response, _MOST_JSON)
                self._require_size(len(content), response.status, _MOST_JSON)
                if not (200 <= response.status < 300 or response.status in accept):
                    raise self._refused(response.status, response.headers, content)
                return response.status, response.headers, self._document(content, response.status)

        return await self._tried(once, again=again)

    def _require_size(self, size: int, status: int, most: int) -> None:
        if size > most:  # it may pass: what was to be created may be there, and is looked for
            words = f"{self.provider.name}: the answer is larger than {most:,} bytes"
            raise ProviderError("parse_error", words, status=status, failure="transient")

    async def fetch(self, paths: Iterable[str], target: Path, most: int) -> None:
        """Download files of lines into one, of ``most`` bytes each, whole or not at all, and without keys."""
        part = target.with_name(f"{target.name}.part")
        try:
            with open_private(part) as file:
                for path in paths:
                    await self._tried(partial(self._append, path, file, file.tell(), most), again=True)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    async def _append(self, path: str, file: IO[bytes], start: int, most: int) -> None:
        """Download a file to the end of another, a piece at a time; ``start`` is where that ended before."""
        file.seek(start)
        file.truncate()
        async with await self._request("GET", path, None, {}) as response:
            if not 200 <= response.status < 300:
                raise self._refused(response.status, response.headers, await response.content.read(_CHUNK))
            unfinished = b""
            async for chunk in response.content.iter_chunked(_CHUNK):
                *lines, unfinished = (unfinished + chunk).split(b"\n")
                file.writelines(self._client.redactor.line(line + b"\n") for line in lines)
                self._require_size(file.tell() - start + len(unfinished), response.status, most)
            if unfinished:
                file.write(self._client.redactor.line(unfinished + b"\n"))

    async def _tried(self, once: Callable[[], Awaitable[T]], *, again: bool) -> T:
        """Call once, or again while a failure may pass."""
        return await retrying(partial(self._explained, once), self._retries if again else 0, sleep=self.sleep)

    async def _explained(self, once: Callable[[], Awaitable[T]]) -> T:
        """Call once; a failure of the network becomes a :class:`ProviderError`."""
        import aiohttp

        code = "http_error"
        try:
            return await once()
        except TimeoutError:
            code = "timeout"
            words = "no answer in time"
        except (aiohttp.ClientError, OSError) as error:
            if getattr(error, "filename", None) is not None:  # ours: the file of requests, or the disk
                raise
            words = self._client.redactor.text(f"{type(error).__name__}: {error}")
        finally:
            for file in self._opened:
                file.close()
            self._opened.clear()
        raise ProviderError(code, f"{self._client.where}: {words}", failure="transient")

    async def _request(self, method: str, path: str, payload: Any, headers: Headers, *, is_signed: bool = False) -> Any:
        """A request, to be opened by ``async with``; the key goes to the provider's own address alone."""
        import aiohttp

        base = self._client.base_url
        url = path if "://" in path else joined(base, path)
        own: dict[str, str] = {}
        if urlsplit(url)[:2] == urlsplit(base)[:2] and not is_signed:
            own = await self._client.headers()
            del own["Content-Type"]
        return self._client.request(
            method,
            url,
            data=payload,
            headers={**own, **headers},
            skip_auto_headers=("Content-Type",) if is_signed else (),  # one that is not signed may be refused
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=30.0),
        )

    def _refused(self, status: int, headers: Headers, content: bytes) -> ProviderError:
        error = self._client.refused(status, headers, self._client.redactor.document(content))
        if status in _NOT_OURS:
            error.failure = "judge"
        return error

    def _document(self, content: bytes, status: int) -> Any:
        """The JSON document of an answer, without keys: what it says is written down."""
        document = self._client.redactor.document(content) if content.strip() else {}
        if isinstance(document, str) and status < 300:
            words = f"{self.provider.name}: the answer is not JSON: {document[:200]!r}"
            raise ProviderError("parse_error", words, status=status, failure="transient")
        return document

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


async def _chunks(file: IO[bytes], head: bytes, tail: bytes, between: bytes) -> AsyncIterator[bytes]:
    buffer = bytearray(head)
    separator = b""
    for line in file:
        buffer += separator + line.rstrip(b"\n")
        separator = between
        if len(buffer) >= _CHUNK:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer + tail)
