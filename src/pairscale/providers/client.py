"""The one HTTP client: sends what a provider's module builds, and gives back its reply, or why there is none.

No retries here: an error says whether it may pass and how long to wait, and the caller decides (the collector, the
adaptive runner). The one exception is a field that the server says this model does not take: it is left out, logged
once, and remembered.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import orjson

from pairscale._version import __version__
from pairscale.core.errors import InputError, without_login, without_logins
from pairscale.core.failures import Failure, concerns_content, failure_of
from pairscale.core.notices import notice
from pairscale.core.options import require_number
from pairscale.providers.base import Headers, ReplyError
from pairscale.providers.keys import ApiKey, Key, Redactor, find_key, may_be_key
from pairscale.providers.limits import Breaker, RateLimiter, Sleep, retry_after

if TYPE_CHECKING:
    import aiohttp

    from pairscale.providers.base import HTTPCall, LLMRequest, Provider, ProviderProblem, Reply


_LARGEST = 32 * 1024 * 1024
_DOWN = frozenset({500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_BYTES_A_TOKEN = 4
_LONGEST_WAIT_S = 60.0
_SILENT_WAIT_S = 20.0
T = TypeVar("T")
_OWN_HEADERS = {"Content-Type": "application/json", "User-Agent": f"pairscale/{__version__}"}


@dataclass(eq=False)
class ProviderError(Exception):
    """There is no reply.

    Attributes:
        code: one of :data:`pairscale.core.comparisons.ERROR_CODES`.
        message: for the user, without keys.
        status: of HTTP, when there was any.
        failure: ``transient`` (asking again makes sense), ``question`` (this request cannot be answered) or ``judge``
            (no request can be answered: a wrong key, an unknown model).
        retry_after: seconds to wait before asking again.
        raw: the reply as it came, without keys.
        may_cost: whether the provider may charge for the request: it was sent, and not refused.
        cost: what it may have cost at most, in US dollars, where that is known.
    """

    code: str
    message: str
    _: KW_ONLY
    status: int | None = None
    failure: Failure = "question"
    retry_after: float | None = None
    raw: Any = None
    may_cost: bool = False
    cost: float | None = None

    def __str__(self) -> str:
        return self.message


class LLMClient:
    """Asks one provider; may be used from many tasks at once, and from one event loop after the other.

    Besides asking, it lends what others who speak to the same provider need: ``provider``, ``base_url``, ``redactor``,
    ``open_headers`` (the further headers without a secret), :meth:`headers`, :meth:`session` and :meth:`refused`.

    Args:
        provider: whose wire format to speak.
        api_key: the key, or a callable that gives a token before every request; by default that of the environment.
        base_url: where the provider is; by default as its own SDK finds it, then the provider's address.
        headers: further headers of every request.
        timeout: seconds that one reply may take.
        limiter: decides when requests may be sent.
        breaker: when to stop asking.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        headers: Headers | None = None,
        timeout: float = 120.0,
        limiter: RateLimiter | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.provider = provider
        self.base_url = base_url_of(provider, base_url)
        self._token = api_key if callable(api_key) else None
        self._key = None if callable(api_key) else find_key(provider, api_key)
        self._headers = dict(headers or {})
        secrets = [Key(value) for name, value in self._headers.items() if _SECRET.search(name)]
        self.open_headers = {name: value for name, value in self._headers.items() if not _SECRET.search(name)}
        self._proxy = _proxy_for(self.base_url)
        self.redactor = Redactor([self._key, *secrets, *_login_of(self._proxy)])
        self._timeout = require_number(timeout, "timeout", above=0)
        self.limiter = limiter or RateLimiter()
        self._breaker = breaker or Breaker(provider.name)
        self._dropped: dict[str, set[str]] = {}
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def prepared(self, request: LLMRequest) -> HTTPCall:
        """What would be sent, without what this model was found not to take."""
        for parameter in sorted(self._dropped.get(request.model, ())):
            request = self.provider.without(request, parameter) or request
        return self.provider.call(request)

    async def complete(self, request: LLMRequest) -> Reply:
        """Ask once.

        Raises:
            ProviderError: when there is no reply; it says whether asking again makes sense.
        """
        renewed = self._token is None  # a token that has run out meanwhile is renewed once
        while True:
            call = self.prepared(request)
            status, headers, body, seconds = await self._send(call)
            if 200 <= status < 300:
                return self.read(call, body, status, headers, seconds)
            problem = self.provider.problem(status, body)
            if status in {400, 422} and problem.parameter and self._drop(request, problem.parameter, call):
                continue
            if status == 401 and not renewed:
                renewed = True
                continue
            raise self.refused(status, headers, body)

    def _drop(self, request: LLMRequest, parameter: str, call: HTTPCall) -> bool:
        """Leave a field out from now on; False when that cannot be done, or ``call`` had been without it."""
        dropped = self._dropped.setdefault(request.model, set())
        if parameter in dropped:
            return self.prepared(request) != call  # another request, under way at the same time, was told first
        if self.provider.without(request, parameter) is None:
            return False
        dropped.add(parameter)
        notice(f"{self.provider.name}: {request.model} does not take {parameter}; it is left out from now on")
        return True

    async def _send(self, call: HTTPCall) -> tuple[int, Headers, Any, float]:
        data = orjson.dumps(call.body)
        is_try = await self._breaker.admit()
        try:
            ticket = await self.limiter.admit(len(data) // _BYTES_A_TOKEN)
            start = time.perf_counter()
            status, headers, content = await self._exchange(call, data, is_try)
        finally:
            self._breaker.gave_up(is_try)
        seconds = time.perf_counter() - start
        if status in _DOWN:
            self._is_down(f"HTTP {status}", is_try, heard=True)
        else:
            self._breaker.answered()
        if len(content) > _LARGEST:
            words = f"the reply is larger than {_LARGEST:,} bytes"
            raise ProviderError("parse_error", words, status=status, may_cost=200 <= status < 300)
        if status != 429 and status not in _DOWN:  # only other replies show that requests are not too fast
            self.limiter.answered(headers, ticket)
        body = self.redactor.document(content)
        if status == 429:
            self.limiter.refused(self._wait(headers, self.provider.problem(status, body)), headers, ticket)
        return status, headers, body, seconds

    def _is_down(self, reason: str, is_try: bool, *, heard: bool = False, may_cost: bool = False) -> None:
        """Tell the breaker of a failure.

        Raises:
            ProviderError: when it has waited for long enough.
        """
        hopeless = self._breaker.failed(reason, is_try, heard=heard)
        if hopeless is not None:
            words = f"{self.where} {hopeless}"
            raise ProviderError("http_error", words, failure="judge", may_cost=may_cost) from None

    @staticmethod
    def _wait(headers: Headers, problem: ProviderProblem) -> float | None:
        """The seconds that a reply asks to wait: in a header, or in its body."""
        wait = retry_after(headers)
        return problem.retry_after if wait is None else wait

    async def _exchange(self, call: HTTPCall, data: bytes, is_try: bool) -> tuple[int, Headers, bytes]:
        import aiohttp

        headers = await self.headers(call)
        try:
            return await self._answer(call, data, headers)
        except TimeoutError:
            self._is_down("no answer in time", is_try, may_cost=True)
            words = f"no answer within {self._timeout:g} seconds"
            raise ProviderError("timeout", words, failure="transient", may_cost=True) from None
        except (aiohttp.ClientError, OSError) as error:
            message = self.redactor.text(f"{type(error).__name__}: {error}")
            if self.provider.name == "ollama" and isinstance(error, aiohttp.ClientConnectorError):
                message = "the server is not running, or not there; start it with `ollama serve`"
                if not self._breaker.has_answered:  # no one will start it while the run waits
                    raise ProviderError("http_error", f"{self.where}: {message}", failure="judge") from None
            may_cost = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError)
            self._is_down(message, is_try, may_cost=may_cost)
            words = f"{self.where}: {message}"
            raise ProviderError("http_error", words, failure="transient", may_cost=may_cost) from None

    async def _answer(self, call: HTTPCall, data: bytes, headers: Headers) -> tuple[int, Any, bytes]:
        async with self.request(call.method, joined(self.base_url, call.path), data=data, headers=headers) as response:
            return response.status, response.headers, await read_at_most(response, _LARGEST)

    def request(self, method: str, url: str, **options: Any) -> Any:
        """A request of this event loop's connections, to be opened by ``async with``."""
        return self.session().request(method, url, allow_redirects=False, **options)  # they would take the key along

    def read(self, call: HTTPCall, body: Any, status: int, headers: Headers, seconds: float | None = None) -> Reply:
        """The reply in a body with a status of success, live, from a batch or from the cache.

        Args:
            call: what was asked.
            body: what came back.
            status: of HTTP.
            headers: likewise.
            seconds: that it took.

        Raises:
            ProviderError: it is not a reply of this provider, or it is an error.
        """
        try:
            reply = self.provider.reply(call, body)
            reply.call = call
            reply.status = status
            reply.seconds = seconds
            return reply
        except ReplyError as error:
            raise self.refused(error.status, headers, body) from None
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            shown = (body if isinstance(body, str) else json.dumps(body))[:200]
            raise ProviderError(
                "parse_error",
                f"the reply cannot be read as one of {self.provider.name} ({type(error).__name__}: {error}): {shown}",
                status=status,
                failure="transient",
                raw=body,
                may_cost=True,
            ) from None

    def refused(self, status: int | None, headers: Headers, body: Any) -> ProviderError:
        """What a reply without success means; a line of a batch, or an error in a reply, may have no status."""
        problem = self.provider.problem(status or 0, body)
        words = self.redactor.text(problem.message)[:2000]  # batches come with bodies of their own
        failure = failure_of(status, problem.code, problem.message)
        filtered = failure == "question" and concerns_content(problem.code, problem.message)
        hint = "" if filtered else _HINTS.get((status, failure), "")
        if status is not None and 300 <= status < 400:
            words = f"it points to another address, {self.redactor.text(headers.get('Location', ''))}; correct base_url"
        return ProviderError(
            "content_filter" if filtered else _CODES.get(status, "http_error"),
            f"{self.provider.name}: {'no status' if status is None else f'HTTP {status}'}{hint}: {words}",
            status=status,
            failure=failure,
            retry_after=self._wait(headers, problem),
            raw=self.redactor.value(body),
        )

    @property
    def where(self) -> str:
        """The provider and its address."""
        return f"{self.provider.name} at {self.base_url}"

    async def headers(self, call: HTTPCall | None = None) -> dict[str, str]:
        """The headers of a request, the key's among them.

        Raises:
            ProviderError: the callable that gives tokens gave none.
        """
        key = self.provider.auth(self._key.reveal()) if self._key is not None else {}
        if self._token is not None:
            renewed = await self._renewed(self._token)
            key = getattr(self.provider, "token_auth", self.provider.auth)(renewed.reveal())
        return {**_OWN_HEADERS, **(call.headers if call is not None else {}), **self._headers, **key}

    async def _renewed(self, token: Callable[[], Any]) -> Key:
        """The token of now: a plain callable runs in a thread, as it may wait for a server."""
        try:
            renewed = await asyncio.to_thread(token)
            if inspect.isawaitable(renewed):
                renewed = await renewed
            if not may_be_key(renewed):
                raise TypeError("it gave no token")
        except Exception as error:
            words = self.redactor.text(f"{type(error).__name__}: {error}")
            message = f"{self.provider.name}: the callable given as api_key failed: {words}"
            raise ProviderError("http_error", message, failure="judge") from error
        key = Key(renewed)
        self.redactor.learn(key)
        return key

    def session(self) -> aiohttp.ClientSession:
        """The connections of this event loop; :meth:`aclose` closes them."""
        import aiohttp

        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                timeout=aiohttp.ClientTimeout(total=self._timeout, ceil_threshold=60),
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._proxy,
            )
            self._sessions[loop] = session
        return session


async def read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The content of a reply; more than ``most`` bytes where there are more, but not all of them."""
    content = await response.content.read(most + 1)
    if len(content) == response.content_length and "Content-Encoding" not in response.headers:
        return content  # most come whole at once
    while len(content) <= most:
        more = await response.content.read(most + 1)
        if not more:
            break
        content += more
    return content


async def retrying(
    ask: Callable[[], Awaitable[T]],
    retries: int,
    jitter: random.Random | None = None,
    sleep: Sleep | None = None,
) -> T:
    """Ask a provider, and again after a transient failure, at most ``retries`` times.

    Raises:
        ProviderError: the last failure.
    """
    turn = 0
    while True:
        try:
            return await ask()
        except ProviderError as error:
            if error.failure != "transient" or turn >= retries:
                raise
            wait = pause(error.retry_after, turn, jitter)
            say_wait(wait, error.message)
        await (sleep or asyncio.sleep)(wait)
        turn += 1


def pause(retry_after: float | None, turn: int, jitter: random.Random | None = None, first: float = 1.0) -> float:
    """Seconds to wait before asking again after a transient failure.

    Args:
        retry_after: what the provider asks for; else the wait doubles each time, up to a minute.
        turn: 0 after the first time, 1 after the second, and so on.
        jitter: spreads requests that were refused together; None for one that is alone.
        first: seconds after the first time.
    """
    wait = min(first * 2**turn if retry_after is None else retry_after, _LONGEST_WAIT_S)
    return wait if jitter is None else wait * (1 + jitter.random() / 4)


def say_wait(seconds: float, why: str | None) -> bool:
    """Log a long wait before a question is asked again; returns whether it was logged."""
    if seconds <= _SILENT_WAIT_S:
        return False
    notice(f"waiting {seconds:.0f} s before asking again: {why or 'there was no answer'}"[:300])
    return True


_CODES: dict[int | None, str] = {429: "rate_limited", 408: "timeout"}
_HINTS: dict[tuple[int | None, Failure], str] = {
    (401, "judge"): " (the key is not accepted)",
    (402, "judge"): " (nothing is left to spend)",
    (403, "judge"): " (the key may not do this)",
    (404, "judge"): " (no such model, or no such address)",
    (429, "judge"): " (nothing is left to spend)",
    (429, "transient"): " (too many requests)",
}


_SECRET = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


def _proxy_for(url: str) -> str | None:
    """The proxy of the environment, as the vendors' SDKs take it; not aiohttp's way, which also reads .netrc."""
    parts = urlsplit(url)
    if parts.hostname in {"localhost", "127.0.0.1", "::1"} or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and not _is_address(proxy):
        raise InputError(
            f"{url} would go through the proxy of the environment, which is not an address such as http://host:8080"
        )
    return proxy or None


def _is_address(url: str) -> bool:
    """Whether it is the address of a server that HTTP is spoken with."""
    try:
        parts = urlsplit(url)
        has_server = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_server and re.fullmatch(r"(?i:https?)://\S+", url) is not None


def _login_of(url: str | None) -> list[Key]:
    """The password of an address, and the user with it, as they are sent."""
    parts = urlsplit(url or "")
    user = unquote(parts.username or "")
    password = unquote(parts.password or "")
    return [Key(password), Key(f"{user}:{password}")] if password else []


def base_url_of(provider: Provider, base_url: str | None) -> str:
    """Where a provider is: as given, as the variable of its own SDK says, or at its own address.

    Raises:
        InputError: when that is not the address of a server.
    """
    variable = provider.base_url_variable
    url = base_url or os.environ.get(variable or "", "")
    if not url:
        url = str(provider.address()) if hasattr(provider, "address") else provider.base_url
    url = url.strip()
    if "://" not in url and url:
        url = f"http://{url}"  # Ollama's variable is often a host alone
    url, sign, query = url.partition("?")
    url = f"{url.rstrip('/')}{sign}{query}"
    if not _is_address(url):
        raise InputError(
            f"{provider.name} needs the address of its server: give base_url, such as http://localhost:8000/v1"
            if not url
            else f"{without_login(url)!r} is not the address of a server; it must look like https://host or http://host:8000/v1"
        )
    parts = urlsplit(url)
    if provider.name == "ollama" and parts.scheme == "http" and parts.port is None:
        url = url.replace(parts.netloc, f"{parts.netloc}:11434", 1)
    if provider.name == "together" and not parts.path.rstrip("/").endswith("/v1"):
        url = joined(url, "/v1")  # its SDK has /v1 in the paths since version 3, and had it in the address before
    base = url.partition("?")[0]
    if parts.username or parts.password or parts.fragment or without_logins(base) != base:  # also in a misspelt one
        raise InputError("an address must not hold a user, a password, nor anything behind #; give a key instead")
    if any(_SECRET.search(name) or name == "sig" for name, _ in parse_qsl(query, keep_blank_values=True)):
        raise InputError("an address must not hold a key behind ?; give api_key, or set its environment variable")
    return url


def joined(base_url: str, path: str) -> str:
    """The address of a path; the query of the base URL, such as ``api-version``, goes behind the path.

    Example:
        >>> joined("https://host/openai/v1?api-version=preview", "/chat/completions")
        'https://host/openai/v1/chat/completions?api-version=preview'
    """
    base, _, query = base_url.partition("?")
    if not query:
        return f"{base}{path}"
    return f"{base}{path}{'&' if '?' in path else '?'}{query}"
