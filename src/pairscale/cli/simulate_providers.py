"""``pairscale simulate-providers``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pairscale.cli._common import say

if TYPE_CHECKING:
    from pairscale.testing import ProviderSimulator

EXAMPLES = (
    "pairscale simulate-providers --port 8765",
    "pairscale simulate-providers --bias 0.5 --lapse 0.1 --refusals 0.02",
    "pairscale simulate-providers --rate-limits 0.1 --errors 0.05 --latency 0.5",
    "pairscale simulate-providers --batch-seconds 600 --batch-errors 0.02",
)


def command(
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Where to listen; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="On which address.")] = "127.0.0.1",
    bias: Annotated[float, typer.Option(metavar="LOGITS", help="In favour of the first position.")] = 0.0,
    lapse: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Answers that are a coin toss.")] = 0.0,
    refusals: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Prompts that it refuses.")] = 0.0,
    malformed: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Answers without the tag.")] = 0.0,
    rate_limits: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests answered by 429.")] = 0.0,
    errors: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests answered by 500.")] = 0.0,
    resets: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Connections that are cut.")] = 0.0,
    latency: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Before each answer.")] = 0.0,
    batch_seconds: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="How long a batch takes; by default until the second check."),
    ] = None,
    batch_errors: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests of a batch that fail on their own.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same answers.")] = 0,
) -> None:
    """Play the providers on this machine, until Ctrl-C.

    The server speaks the APIs of OpenAI (chat completions and responses), Anthropic, Gemini, Together and Ollama, and
    their batches, which it forgets when it stops. It judges texts by the embedded lexical judge, with the faults that
    you ask for. Point pairscale, or the providers' own SDKs, at it with the variables that it prints; any key will do.
    """
    import asyncio

    from pairscale.testing import Batches, Behaviour, Faults, ProviderSimulator

    behaviour = Behaviour(bias=bias, lapse=lapse, refusal_rate=refusals, malformed_rate=malformed, seed=seed)
    faults = Faults(rate_limited=rate_limits, server_error=errors, reset=resets, retry_after="1")
    batches = Batches(seconds=batch_seconds, failing=batch_errors)
    server = ProviderSimulator(behaviour, faults, latency_s=latency, batches=batches, host=host, port=port)
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
        typer.echo(f"export {name}={value}")
    say(f"listening on {server.url}; set the above in the terminal where you work; Ctrl-C stops this one")
    try:
        await serving
    finally:
        say(f"{server.served:,} requests were answered")
