"""One model of a provider with its settings: it makes requests, asks, and knows what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.providers.base import LLMRequest, Usage
from pairscale.providers.cache import CacheMode, Memory
from pairscale.providers.client import Exchange, LLMClient, ProviderError
from pairscale.providers.keys import ApiKey
from pairscale.providers.limits import RateLimiter
from pairscale.providers.prices import Price, cost_of, price_date, price_note, price_of
from pairscale.providers.registry import provider_named

__all__ = ["SETTING_NAMES", "Model", "Reused"]

_REQUEST = (
    "system", "reasoning", "include_thoughts", "thinking_budget", "temperature", "top_p", "top_k", "max_tokens",
    "service_tier", "seed", "logprobs", "endpoint", "num_ctx", "store", "extra",
)  # fmt: skip
_FEWEST_BYTES, _USUAL_ANSWER = 2, 500  # bytes a token, tokens an answer: more than they mostly are
_LONG = frozenset({"messages", "input", "contents", "prompt", "system", "instructions", "systemInstruction"})
"""Fields of a request that hold the texts, which the run file has already."""


@dataclass(slots=True)
class Reused:
    """What the answer cache was good for.

    Attributes:
        answers: how many were there already.
        saved: US dollars that asking for them would have cost, as far as prices are known.
        prices: of which date the prices are, in words.
    """

    answers: int = 0
    saved: float = 0.0
    prices: str = ""

    def __str__(self) -> str:
        answers = f"{self.answers:,} answer{'s' * (self.answers != 1)} from the cache"
        return f"{answers}, ${self.saved:.4f} saved{self.prices}" if self.saved else answers


class Model:
    """A model of a provider, ready to be asked.

    Args:
        provider: the provider's name, such as ``openai``.
        name: the model's name.
        choices: the answers that structured output will be asked for, so that a model without it is refused at once.
        api_key: the key, or a callable that gives a token before every request; by default that of the environment.
        base_url: where the provider is, when not at its own address.
        timeout: seconds that one reply may take.
        headers: further headers of every request.
        requests_per_minute: Maximum requests per minute.
        tokens_per_minute: Maximum tokens per minute.
        price: US dollars for a million tokens; by default from the dated table.
        cache: whether answers are remembered across runs; see :class:`Memory`.
        provider_args: settings of the provider's class.
        settings: fields of the request, also by the names that the R package's functions have for them.

    Raises:
        InputError: when a setting is unknown or does not go with the model, or the key is missing.
    """

    @checked
    def __init__(
        self,
        provider: str,
        name: str,
        *,
        choices: tuple[str, ...] | None = None,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        price: Price | Mapping[str, Any] | None = None,
        cache: CacheMode = "auto",
        provider_args: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        own = dict(provider_args or {})
        settings = _renamed(provider, settings, own)
        base_url = base_url or settings.pop("base_url", None)
        if unknown := sorted(set(settings) - set(_REQUEST)):
            raise InputError(f"{provider}:{name} has no setting {', '.join(unknown)}; there are {', '.join(_REQUEST)}")
        if not name:
            raise InputError(f"name a model of {provider}, such as {provider}:MODEL")
        self.client = LLMClient(
            provider_named(provider, **own),
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            timeout=timeout,
            limiter=RateLimiter(requests_per_minute, tokens_per_minute),
        )
        self._memory = Memory(self.client, cache)
        self.provider, self.name = provider, name
        self.settings, self.provider_args = settings, own
        self.price = price_of(provider, name, price)
        self.reused = Reused(prices=price_note([price_date(self.price)]))
        self._check(choices)

    def __repr__(self) -> str:
        return f"<Model {self.provider}:{self.name}>"

    def _check(self, choices: tuple[str, ...] | None) -> None:
        """Refuse settings that do not go with each other or with the model before anything is asked."""
        try:
            self.client.provider.call(self.request("", choices))
        except (TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"a setting of {self.provider}:{self.name} has a wrong value: {error}") from None

    @property
    def identity(self) -> dict[str, Any]:
        """Every setting that may change an answer; never the key."""
        settings = dict(self.settings)
        if self.provider_args:
            settings["provider_args"] = self.provider_args
        if self.client.base_url != self.client.provider.base_url.rstrip("/"):  # also where the environment says it
            settings["base_url"] = self.client.base_url
        if self.client.open_headers:
            settings["headers"] = self.client.open_headers
        return settings

    def request(self, prompt: str, choices: tuple[str, ...] | None = None) -> LLMRequest:
        """A question, in no provider's words."""
        return LLMRequest(model=self.name, prompt=prompt, choices=choices, **self.settings)

    def max_cost_of(self, request: LLMRequest, *, batch: bool = False) -> float | None:
        """What a question may cost (in a batch), on the safe side; None if the price is unknown.

        Long answers cost more than this where ``max_tokens`` is not set.
        """
        sent = f"{request.system or ''}{request.prompt}".encode("utf-8", "surrogatepass")
        prompt = len(sent) // _FEWEST_BYTES + 100
        return cost_of(Usage(prompt=prompt, completion=request.max_tokens or _USUAL_ANSWER), self.price, batch=batch)

    def max_batch_cost(self, n_bytes: int, n_requests: int) -> float | None:
        """What requests of so many bytes may cost in a batch, on the safe side; None when the price is not known."""
        answers = n_requests * (self.settings.get("max_tokens") or _USUAL_ANSWER)
        usage = Usage(prompt=n_bytes // _FEWEST_BYTES + 100 * n_requests, completion=answers)
        return cost_of(usage, self.price, batch=True)

    @property
    def uses_cache(self) -> bool:
        """Whether answers may come from the cache; the caller then says which repeat of a question it is."""
        return self._memory.is_on

    def remembered(self, request: LLMRequest, repeat: str = "1") -> Exchange | None:
        """The answer that an earlier run got, if it may be used again.

        Args:
            request: the question.
            repeat: which time it is asked, for those who ask the same on purpose more than once: every time has an
                answer of its own.
        """
        return self._memory.find(request, repeat)

    async def ask(self, request: LLMRequest) -> Exchange:
        """Ask once.

        Raises:
            ProviderError: when there is no reply; it says whether asking again makes sense, and what it may have cost.
        """
        try:
            return await self.client.complete(request)
        except ProviderError as error:
            if error.may_cost:
                error.cost = self.max_cost_of(request) or None
            raise

    def accept(self, done: Exchange, repeat: str = "1") -> None:
        """An answer was read and found good: it is remembered for other runs, or counted when it was one of theirs."""
        if done.first_asked is None:
            self._memory.keep(done, repeat)
            return
        if not self.reused.answers:
            notice(f"{self.provider}:{self.name}: answers of earlier runs are used again; cache=False asks again")
        self.reused.answers += 1
        self.reused.saved += self._cost(done) or 0.0

    def to_columns(self, done: Exchange, request: LLMRequest, *, batch: bool = False) -> dict[str, Any]:
        """What an exchange says, under the names that a verdict has for it; without keys and texts.

        A reply that does not say how many tokens it used counts as the most that it may have cost.

        Args:
            done: what was sent, and what came back.
            request: the question.
            batch: whether it came in a batch, at its price.
        """
        reply, usage = done.reply, done.reply.usage
        cost = self._cost(done, batch=batch)
        is_estimate = False
        if cost is None:
            cost = self.max_cost_of(request, batch=batch)
            is_estimate = bool(cost)
        sent = {name: value for name, value in done.call.body.items() if name not in _LONG}
        known = {
            "content": reply.text or (reply.refusal or "" if reply.stop_reason == "refusal" else ""),
            "thoughts": reply.thoughts,
            "model": reply.model or self.name,
            "object_type": reply.object_type,
            "status_code": done.status,
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.total,
            "prompt_cached_tokens": usage.cached,
            "reasoning_tokens": usage.reasoning,
            "latency_s": done.latency_s,
            "cost": cost,
            "cost_is_estimate": is_estimate,
            "request": self.client.redactor.value(sent),
            "raw_response": reply.raw,
        }
        if done.first_asked is not None:  # nothing is sent now, so that there is no status, and no cost
            known["request"] = {**known["request"], "from_cache_of": done.first_asked}
            known |= {"status_code": None, "cost": 0.0, "cost_is_estimate": False, "cached": True}
            known["saved"] = self._cost(done)
        return known

    def _cost(self, done: Exchange, *, batch: bool = False) -> float | None:
        if done.reply.cost is not None:
            return done.reply.cost
        if not done.reply.usage.prompt:  # some servers send zeros, and no prompt has no tokens
            return None
        tier = done.reply.service_tier or self.settings.get("service_tier")  # not every provider says which one it was
        return cost_of(done.reply.usage, self.price, batch=batch, tier=tier)

    async def aclose(self) -> None:
        """Close the connections, and the file of answers."""
        self._memory.close()
        await self.client.aclose()


_OTHER_NAMES = {
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "thinking_level": "reasoning",
    "reasoning_effort": "reasoning",
    "thinking_budget_tokens": "thinking_budget",
    "host": "base_url",
}


def _renamed(provider: str, settings: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Settings by the one name that they have here; those of the provider go to ``own``."""
    settings = {name: value for name, value in settings.items() if value is not None}
    if (think := settings.pop("think", None)) is not None:
        settings.setdefault("reasoning", "enabled" if think else "none")
    for old, new in _OTHER_NAMES.items():
        if (value := settings.pop(old, None)) is not None:
            settings.setdefault(new, value)
    for old, new in (("anthropic_version", "version"), ("api_version", "api_version")):
        if (value := settings.pop(old, None)) is not None:
            own.setdefault(new, value)
    wanted = settings.pop("logprobs", None)
    alternatives = settings.pop("top_logprobs", None)
    if wanted is not None and wanted is not False:
        settings["logprobs"] = alternatives or (_ALTERNATIVES if wanted is True else wanted)
    elif alternatives is not None and wanted is None:
        settings["logprobs"] = alternatives
    if provider != "openai":
        settings.pop("endpoint", None)
    return settings


_ALTERNATIVES = 5
SETTING_NAMES = frozenset(
    {*_REQUEST, *_OTHER_NAMES, "think", "anthropic_version", "api_version", "top_logprobs", "base_url"}
)
"""Every name that a setting of a request may be given by."""
