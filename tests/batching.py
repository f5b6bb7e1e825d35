"""What the tests of batches share: texts with a known order, judges of every provider, a manager that does not wait."""

import asyncio

import pairscale as ps
from pairscale.collect.batch.manager import BatchManager
from pairscale.judges.batched import BatchJudge
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import BothOrders
from pairscale.testing import Batches, Behaviour, ProviderSimulator

MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "together": "deepseek-ai/DeepSeek-V3",
}
KEY = "simulated-key-123"


def quality(text: str) -> float:
    return 20.0 * len(text)


def samples(n: int) -> list[dict[str, str]]:
    return [{"ID": f"stu_{k:03d}", "text": "Word " * (k + 1)} for k in range(n)]


def pairs_of(n: int):
    return ps.make_pairs(samples(n))


def url_of(server: ProviderSimulator, provider: str) -> str:
    return server.url + {"openai": "/v1", "together": "/together/v1"}.get(provider, "")


def judge_of(
    server: ProviderSimulator, provider: str = "openai", *, both_orders: bool = False, **settings
) -> BatchJudge:
    trait = ps.trait_description("overall_quality")
    known = {"api_key": KEY, "base_url": url_of(server, provider)} | settings
    model = known.pop("model", MODELS[provider])
    judge = LLMJudge(provider, model, trait, ps.get_prompt_template(), "default", **known)
    return BothOrders(judge) if both_orders else judge


def simulator(**batches) -> ProviderSimulator:
    return ProviderSimulator(Behaviour(quality=quality), batches=Batches(**batches))


class Clock:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def with_manager(run, work, **settings):
    """Do something with a manager, in a loop of its own, and return what it gives."""

    async def main():
        clock = settings.pop("clock", None) or Clock()
        settings.setdefault("api_key", KEY)
        async with BatchManager(run, sleep=clock.sleep, clock=clock, **settings) as manager:
            return await work(manager)

    return asyncio.run(main())


def expected(pairs) -> list[str]:
    return [max(one, two) for one, two in pairs.select("ID1", "ID2").iter_rows()]
