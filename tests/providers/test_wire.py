"""HTTP for batches: what is said while a server gives no answer, and how much of an answer is read."""

import asyncio
import logging
import socket
from contextlib import suppress

import pytest

from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.catalog import provider_named
from pairscale.providers.client import LLMClient, ProviderError
from pairscale.testing import Faults, ProviderSimulator

KEY = "sk-simulated-0123456789abcdef"
ASKED = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Which is better?"}]}


@pytest.fixture
def nobody():
    """An address at which nobody listens: the port is taken, so that nobody else does either."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture
def events():
    """What is said and how long is waited, in order."""
    happened: list[object] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            happened.append(record.getMessage())

    log, handler = logging.getLogger("pairscale"), Kept()
    log.addHandler(handler)
    yield happened
    log.removeHandler(handler)


def post(base_url: str, events: list[object], **more):
    async def sleep(seconds: float) -> None:
        events.append(seconds)

    async def main():
        http = BatchHTTP(LLMClient(provider_named("openai"), api_key=KEY, base_url=base_url), sleep=sleep)
        try:
            return await http.json("POST", "/chat/completions", ASKED, **more)
        finally:
            await http.aclose()

    return asyncio.run(main())


def test_a_server_that_is_down_is_tried_five_times_with_longer_and_longer_waits(nobody, events):
    with pytest.raises(ProviderError) as stopped:
        post(nobody, events)
    assert stopped.value.message.startswith(f"openai at {nobody}: ClientConnectorError: Cannot connect to host")
    assert events == [1.0, 2.0, 4.0, 8.0]


def test_what_the_server_asks_to_wait_is_waited_and_said_when_it_is_long(events):
    faults = Faults(script=(429, 429, "ok"), retry_after="30")
    with ProviderSimulator(faults=faults) as server:
        assert post(f"{server.url}/v1", events)["object"] == "chat.completion"
    said, first, _, second = events
    assert (first, second) == (30.0, 30.0)
    assert str(said).startswith("waiting 30 s before asking again: openai: HTTP 429 (too many requests")


def test_an_answer_has_a_limit_beyond_which_nobody_reads_on(message_snapshot, events, monkeypatch):
    sent = []

    async def long(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(500):
                writer.write(b" " * 100_000)
                await writer.drain()
                sent.append(100_000)
        writer.close()

    async def main():
        server = await asyncio.start_server(long, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        http = BatchHTTP(LLMClient(provider_named("openai"), api_key=KEY, base_url=url), retries=0)
        try:
            await http.json("GET", "/batches")
        finally:
            await http.aclose()
            server.close()

    monkeypatch.setattr("pairscale.providers.batch_http._MOST_JSON", 50_000)
    with pytest.raises(ProviderError) as stopped:
        asyncio.run(main())
    message_snapshot(stopped)
    assert (stopped.value.code, stopped.value.status, stopped.value.failure) == ("parse_error", 200, "transient")
    assert sum(sent) < 50_000_000
