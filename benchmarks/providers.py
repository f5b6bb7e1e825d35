"""Live judging: what pairscale itself costs beside the vendor's own SDK, and how near it comes to the server's pace.

Everybody who asks is a process of its own, and so are the servers, so that everything measured is the asker's. Ours is
everything: prompt, request, reply, verdict, and the durable record. The SDK's is its bare asynchronous call with the
same prompts, and nothing of what comes back is looked at. They take turns, and the median counts. Each turn
asks enough for the run's own setup (about 50 ms: creating the file, reading the results back) not to matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

N_TEXTS, N_ASKED, OPEN, ROUNDS = 60, 5_000, 16, 5
LATENCY_S, N_PACED, OPEN_PACED = 0.05, 6_400, 64
USUAL_LATENCY_S, N_USUAL, OPEN_USUAL = 0.5, 10_240, 256
MODEL, KEY = "gpt-4.1", "none-at-all"


def texts() -> list[dict[str, str]]:
    words = "The rain fell on the roof all night and nobody in the house could sleep because of it. "
    return [{"ID": f"s{n:03d}", "text": f"{n} {words * 12}"} for n in range(N_TEXTS)]


def prompts(n: int) -> list[str]:
    import pairscale as ps

    trait, template = ps.trait_description("overall_quality"), ps.get_prompt_template()
    pairs = ps.sample_pairs(ps.make_pairs(texts()), n_pairs=min(n, N_TEXTS * (N_TEXTS - 1) // 2), seed=1)
    made = [
        ps.build_prompt(template, trait.name, trait.description, row["text1"], row["text2"])
        for row in pairs.iter_rows(named=True)
    ]
    return (made * (n // len(made) + 1))[:n]


def ours(url: str, n: int, concurrency: int) -> dict[str, float]:
    """Judge pairs into a run file on the disk."""
    import polars as pl

    import pairscale as ps

    pairs = ps.sample_pairs(ps.make_pairs(texts()), n_pairs=min(n, N_TEXTS * (N_TEXTS - 1) // 2), seed=1)
    pairs = pl.concat([pairs] * (n // pairs.height + 1)).head(n)
    judge = ps.make_judge(f"openai:{MODEL}", judge_args={"base_url": url, "api_key": KEY, "cache": False})
    warm = ps.make_judge(f"openai:{MODEL}", judge_args={"base_url": url, "api_key": KEY, "cache": False})
    with tempfile.TemporaryDirectory() as folder:
        ps.submit_pairs(pairs.head(20), warm, run=Path(folder) / "warm.db", progress=False)
        cpu, wall = time.process_time(), time.perf_counter()
        done = ps.submit_pairs(pairs, judge, run=Path(folder) / "run.db", concurrency=concurrency, progress=False)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert done.results.height == n, done.failed_attempts
    return {"cpu_ms": cpu / n * 1e3, "wall_s": wall}


def sdk(url: str, n: int, concurrency: int) -> dict[str, float]:
    """The official SDK's call, and nothing else."""
    from openai import AsyncOpenAI

    async def scene() -> dict[str, float]:
        async with AsyncOpenAI(base_url=url, api_key=KEY) as client:

            async def worker(waiting: Iterator[str]) -> None:
                for prompt in waiting:
                    message = {"role": "user", "content": prompt}
                    await client.chat.completions.create(model=MODEL, messages=[message], temperature=0)

            await worker(iter(asked[:20]))
            waiting = iter(asked)
            cpu, wall = time.process_time(), time.perf_counter()
            await asyncio.gather(*(worker(waiting) for _ in range(concurrency)))
            return {"cpu_ms": (time.process_time() - cpu) / n * 1e3, "wall_s": time.perf_counter() - wall}

    asked = prompts(n)
    return asyncio.run(scene())


def bare(url: str, n: int, concurrency: int) -> dict[str, float]:
    """The HTTP library alone: the same prompts go out, what comes back is read to its end, and that is all."""
    import aiohttp

    async def scene() -> dict[str, float]:
        connections = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connections, cookie_jar=aiohttp.DummyCookieJar()) as session:

            async def worker(waiting: Iterator[bytes]) -> None:
                for body in waiting:
                    async with session.post(f"{url}/chat/completions", data=body) as response:
                        await response.read()

            waiting = iter(bodies)
            cpu, wall = time.process_time(), time.perf_counter()
            await asyncio.gather(*(worker(waiting) for _ in range(concurrency)))
            return {"cpu_ms": (time.process_time() - cpu) / n * 1e3, "wall_s": time.perf_counter() - wall}

    bodies = [json.dumps({"model": MODEL, "prompt": prompt}).encode() for prompt in prompts(n)]
    return asyncio.run(scene())


# Servers


def simulate() -> None:
    """The provider simulator, until its standard input ends."""
    from pairscale.testing import ProviderSimulator

    with ProviderSimulator() as server:
        print(f"{server.url}/v1", flush=True)
        sys.stdin.read()


REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": MODEL,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 800, "completion_tokens": 9, "total_tokens": 809},
}


class Canned(asyncio.Protocol):
    """Answers every request with the same reply, some time after its last byte: a provider that is never busy."""

    def __init__(self, latency: float) -> None:
        self.latency = latency

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.got = transport, b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        if not end:
            return
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        if len(body) >= length:
            self.got = b""
            asyncio.get_running_loop().call_later(self.latency, self.transport.write, ANSWER)  # type: ignore[attr-defined]


_BODY = json.dumps(REPLY).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)


def answer_slowly(latency: float) -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(partial(Canned, latency), "127.0.0.1", 0)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
        await loop.run_in_executor(None, sys.stdin.read)

    asyncio.run(scene())


@contextlib.contextmanager
def server(*kind: str) -> Iterator[str]:
    started = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.providers", *kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    try:
        yield started.stdout.readline().strip()
    finally:
        started.communicate()


def measured(what: str, url: str, n: int, concurrency: int) -> dict[str, float]:
    arguments = [sys.executable, "-m", "benchmarks.providers", what, url, str(n), str(concurrency)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=os.environ | {"NO_PROXY": "*"})
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run() -> list[dict[str, object]]:
    with server("simulate") as url:
        turns = [(measured("ours", url, N_ASKED, OPEN), measured("sdk", url, N_ASKED, OPEN)) for _ in range(ROUNDS)]
    mine, theirs = (median(turn[who]["cpu_ms"] for turn in turns) for who in (0, 1))
    shares = sorted(turn[0]["cpu_ms"] / turn[1]["cpu_ms"] for turn in turns)
    ideal = N_PACED / OPEN_PACED * LATENCY_S
    with server("slow", str(LATENCY_S)) as url:
        turns = [
            (measured("ours", url, N_PACED, OPEN_PACED), measured("bare", url, N_PACED, OPEN_PACED))
            for _ in range(ROUNDS)
        ]
    with server("slow", str(USUAL_LATENCY_S)) as url:
        usual = [measured("ours", url, N_USUAL, OPEN_USUAL)["wall_s"] for _ in range(2)]
    paced, fastest = ([turn[who]["wall_s"] for turn in turns] for who in (0, 1))
    return [
        {"what": "pairscale, prompt to durable record", "figure": f"{mine:.2f} ms", "aim": "below the SDK's"},
        {"what": "the OpenAI SDK's bare call", "figure": f"{theirs:.2f} ms", "aim": ""},
        {
            "what": "the first of the second, turn by turn",
            "figure": f"{median(shares):.0%} (turns: {', '.join(f'{one:.1%}' for one in shares)})",
            "aim": "45% at most",
        },
        {
            "what": f"{N_PACED:,} judgements, a {LATENCY_S * 1e3:.0f} ms server, {OPEN_PACED} open: of the ideal rate",
            "figure": f"{ideal / median(paced):.0%} (turns: {', '.join(f'{ideal / one:.0%}' for one in paced)})",
            "aim": "75%",
        },
        {
            "what": f"{N_USUAL:,} judgements, a {USUAL_LATENCY_S * 1e3:.0f} ms server, {OPEN_USUAL} open, one process",
            "figure": f"{N_USUAL / median(usual):.0f} per second",
            "aim": "300 per second",
        },
        {"what": "the HTTP library alone, in turn with it", "figure": f"{ideal / median(fastest):.0%}", "aim": ""},
    ]


if __name__ == "__main__":
    if sys.argv[1] == "simulate":
        simulate()
    elif sys.argv[1] == "slow":
        answer_slowly(float(sys.argv[2]))
    else:
        print(json.dumps({"ours": ours, "sdk": sdk, "bare": bare}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))))
