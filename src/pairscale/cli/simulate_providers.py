"""``pairscale simulate-providers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.cli._common import echo, say
from pairscale.cli.from_verb import from_verb

if TYPE_CHECKING:
    from pairscale.testing import ProviderSimulator


@from_verb("", "")
def command(
    *,
    port: int = 0,
    bias: float = 0.0,
    lapse: float = 0.0,
    refusals: float = 0.0,
    rate_limits: float = 0.0,
    errors: float = 0.0,
    latency: float = 0.0,
    batch_seconds: float | None = None,
) -> None:
    """Play the providers on this machine, until Ctrl-C.

    The server speaks the APIs of OpenAI (chat completions and responses), Anthropic, Gemini, Together and Ollama, and
    their batches, which it forgets when it stops. It judges texts by the embedded lexical judge, with the faults that
    you ask for. Point pairscale, or the providers' own SDKs, at it with the variables that it prints; any key will do.

    Args:
        port: Where to listen; 0 takes a free one.
        bias: In favour of the first position, in logits.
        lapse: Share of answers that are a coin toss.
        refusals: Share of prompts that it refuses.
        rate_limits: Share of requests answered by 429.
        errors: Share of requests answered by 500.
        latency: Seconds before each answer.
        batch_seconds: How long a batch takes; by default until the second check.

    Examples:
        pairscale simulate-providers --port 8765
        pairscale simulate-providers --bias 0.5 --lapse 0.1 --refusals 0.02
        pairscale simulate-providers --rate-limits 0.1 --errors 0.05 --latency 0.5
        pairscale simulate-providers --batch-seconds 600
    """
    import asyncio

    from pairscale.testing import Batches, Behaviour, Faults, ProviderSimulator

    behaviour = Behaviour(bias=bias, lapse=lapse, refusal_rate=refusals)
    faults = Faults(rate_limited=rate_limits, server_error=errors, retry_after="1")
    batches = Batches(seconds=batch_seconds)
    server = ProviderSimulator(behaviour, faults, latency_s=latency, batches=batches, port=port)
    asyncio.run(_serve(server))


async def _serve(server: ProviderSimulator) -> None:
    import asyncio
    from concurrent.futures import Future

    started: Future[int] = Future()
    serving = asyncio.create_task(server.serve(started))
    while not started.done():
        if serving.done():
            await serving  # raises why it could not listen
        await asyncio.sleep(0.01)
    for name, value in server.environment().items():
        echo(f"export {name}={value}")
    say(f"listening on {server.url}; set the above in the terminal where you work; Ctrl-C stops this one")
    try:
        await serving
    finally:
        say(f"{server.served:,} requests were answered")
