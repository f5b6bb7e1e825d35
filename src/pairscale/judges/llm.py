"""A language model as a judge: a template and a trait become a prompt, and the reply becomes a verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from pairscale.comparisons import Condition, Outcome
from pairscale.errors import InputError, JudgeError
from pairscale.judges._answers import ANSWER_KEY, ANSWERS, Answer, probability_of_first, read_structured, read_tag
from pairscale.judges._guard import guarded_prompt
from pairscale.judges.base import JudgePair, Verdict
from pairscale.provenance import text_hash
from pairscale.providers.base import LLMRequest, Usage
from pairscale.providers.client import Exchange, LLMClient, ProviderError
from pairscale.providers.limits import Pace
from pairscale.providers.prices import Price, cost_of, price_of
from pairscale.providers.registry import provider_named

if TYPE_CHECKING:
    from pairscale.traits import Trait

__all__ = ["AnswerForm", "LLMJudge"]

AnswerForm = Literal["tag", "structured"]
"""How the model answers: between tags in free text, or as JSON that it cannot get wrong."""

_REQUEST = (
    "system", "reasoning", "include_thoughts", "thinking_budget", "temperature", "top_p", "top_k", "max_tokens",
    "service_tier", "seed", "logprobs", "endpoint", "num_ctx", "extra",
)  # fmt: skip


class LLMJudge:
    """Asks a model of a provider which of two texts has more of a trait.

    Args:
        provider: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama`` or ``compatible``.
        model: the model's name.
        trait: what to judge.
        template: the prompt template's text.
        template_id: its name.
        answer: ``tag`` (between ``tag_prefix`` and ``tag_suffix``) or ``structured`` (JSON with two choices).
        both_orders: ask both ways round: a win only when both agree, else a flip.
        tag_prefix: what stands before the answer.
        tag_suffix: what stands behind it.
        api_key: the key; by default that of the environment. It is kept in no log and no file.
        base_url: where the provider is, when not at its own address.
        timeout: seconds that one reply may take.
        headers: further headers of every request.
        requests_per_minute: ask no faster.
        tokens_per_minute: nor more.
        price: US dollars for a million tokens, ``{"input": 1.25, "output": 10}``; by default from the dated table.
        provider_args: settings of the provider: ``overrides`` (what its models can do), ``version`` and ``key_header``
            of Anthropic, ``api_version`` of Gemini.
        settings: fields of the request: ``reasoning temperature top_p top_k max_tokens logprobs seed service_tier
            include_thoughts thinking_budget endpoint num_ctx system extra``; also by the names that the R package's
            functions have for them (``thinking_level think max_output_tokens thinking_budget_tokens host
            anthropic_version api_version``).

    Raises:
        InputError: when a setting is unknown or does not go with the model, or the key is missing.

    Example:
        >>> from pairscale import get_prompt_template, trait_description
        >>> trait, template = trait_description("overall_quality"), get_prompt_template()
        >>> judge = LLMJudge("ollama", "qwen3:8b", trait, template, "default")
        >>> judge.condition.judge_id
        'ollama:qwen3:8b'
    """

    def __init__(
        self,
        provider: str,
        model: str,
        trait: Trait,
        template: str,
        template_id: str,
        *,
        answer: AnswerForm = "tag",
        both_orders: bool = False,
        tag_prefix: str = "<BETTER_SAMPLE>",
        tag_suffix: str = "</BETTER_SAMPLE>",
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        price: Price | Mapping[str, Any] | None = None,
        provider_args: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        own = dict(provider_args or {})
        settings = _renamed(provider, settings, own)
        base_url = base_url or settings.pop("base_url", None)
        if unknown := sorted(set(settings) - set(_REQUEST)):
            raise InputError(f"{provider}:{model} has no setting {', '.join(unknown)}; there are {', '.join(_REQUEST)}")
        if answer not in get_args(AnswerForm):
            raise InputError(f"answer must be 'tag' or 'structured', not {answer!r}")
        if not model:
            raise InputError(f"name a model of {provider}, such as {provider}:MODEL")
        self._client = LLMClient(
            provider_named(provider, **own),
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            timeout=timeout,
            pace=Pace(requests_per_minute, tokens_per_minute),
        )
        self.provider, self.model, self.trait = provider, model, trait
        self._template, self._template_id = template, template_id
        self._answer, self._both_orders = answer, both_orders
        self._prefix, self._suffix = tag_prefix, tag_suffix
        self._settings, self._provider_args = settings, own
        self._price = price_of(provider, model, price)
        self._check()

    def _check(self) -> None:
        """Refuse settings that do not go with each other or with the model before anything is asked."""
        choices = ANSWERS if self._answer == "structured" else None
        try:
            self._client.provider.call(LLMRequest(model=self.model, prompt="", choices=choices, **self._settings))
        except (TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"a setting of {self.provider}:{self.model} has a wrong value: {error}") from None

    def __repr__(self) -> str:
        return f"<LLMJudge {self.provider}:{self.model}, {self.trait.name}, template {self._template_id}>"

    @property
    def condition(self) -> Condition:
        """Provider, model, trait, template and every setting that may change an answer; never the key."""
        settings: dict[str, Any] = {
            "template": text_hash(self._template)[:16],
            "trait": text_hash(f"{self.trait.name}\n{self.trait.description}")[:16],
            "answer": self._answer,
            **self._settings,
        }
        if self._both_orders:
            settings["both_orders"] = True
        if self._provider_args:
            settings["provider_args"] = self._provider_args
        if self._answer == "tag":
            settings["tags"] = [self._prefix, self._suffix]
        if self._client.base_url != self._client.provider.base_url.rstrip("/"):
            settings["base_url"] = self._client.base_url
        return Condition(
            f"{self.provider}:{self.model}",
            self.provider,
            self.model,
            self.trait.key or self.trait.name,
            self._template_id,
            settings,
        )

    @property
    def price(self) -> Price | None:
        """What the model costs; None when nobody knows."""
        return self._price

    def request(self, pair: JudgePair) -> LLMRequest:
        """The question for one pair, in no provider's words."""
        texts = pair.first["text"], pair.second["text"]
        prompt = guarded_prompt(self._template, self.trait, *texts, self._prefix, self._suffix)
        choices = ANSWERS if self._answer == "structured" else None
        return LLMRequest(model=self.model, prompt=prompt, choices=choices, **self._settings)

    def preview(self, pair: JudgePair) -> tuple[str, Mapping[str, Any]]:
        """The address and the body that would be sent for a pair; nothing is."""
        call = self._client.prepared(self.request(pair))
        return self._client.base_url + call.path, call.body

    def dearest(self, pair: JudgePair) -> float | None:
        """What asking about a pair may cost, on the safe side; None when nobody knows the price.

        Long answers cost more than this where ``max_tokens`` is not set.
        """
        request = self.request(pair)
        prompt = len(request.prompt.encode()) // _FEWEST_BYTES + 100
        cost = cost_of(Usage(prompt=prompt, completion=request.max_tokens or _USUAL_ANSWER), self._price)
        return None if cost is None else cost * (2 if self._both_orders else 1)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the model."""
        if not self._both_orders:
            return await self._asked(pair)
        turned = replace(pair, first=pair.second, second=pair.first, uid=f"{pair.uid}~")
        return _agreed(*await asyncio.gather(self._asked(pair), self._asked(turned)))

    async def _asked(self, pair: JudgePair) -> Verdict:
        request = self.request(pair)
        known: dict[str, Any] = {"prompt_hash": text_hash(request.prompt)}
        try:
            done = await self._client.complete(request)
        except ProviderError as error:
            if error.fatal:
                raise JudgeError(error.message) from None
            if error.code == "content_filter":
                known |= {"status_code": error.status, "raw_response": error.raw}
                return Verdict.abstain(error.message, error_code="content_filter", **known)
            return Verdict.fail(
                error.code,
                error.message,
                passing=error.passing,
                retry_after=error.retry_after,
                status_code=error.status,
                raw_response=error.raw,
                **known,
            )
        return self._verdict(done, pair, known)

    def _verdict(self, done: Exchange, pair: JudgePair, known: dict[str, Any]) -> Verdict:
        reply, usage = done.reply, done.reply.usage
        sent = {name: value for name, value in done.call.body.items() if name not in _LONG}
        known |= {
            "content": reply.text,
            "thoughts": reply.thoughts,
            "model": reply.model or self.model,
            "object_type": reply.object_type,
            "status_code": done.status,
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.total,
            "prompt_cached_tokens": usage.cached,
            "reasoning_tokens": usage.reasoning,
            "latency_s": done.latency_s,
            "cost": cost_of(usage, self._price),
            "request": self._client.redactor.value(sent),
            "raw_response": reply.raw,
        }
        answer = self._read(reply.text, pair)
        if answer.position is not None and reply.stop_reason not in {"content_filter", "refusal"}:
            lead = self._prefix if self._prefix.casefold() in reply.text.casefold() else ANSWER_KEY
            return Verdict.win(answer.position, probability=probability_of_first(reply.logprobs, lead), **known)
        return _without_answer(reply.stop_reason, reply.text, reply.refusal, answer, known)

    def _read(self, text: str, pair: JudgePair) -> Answer:
        samples = (pair.first["text"], pair.second["text"])
        tagged = read_tag(text, self._prefix, self._suffix, samples)
        if self._answer == "structured" and (tagged.position is None or text.lstrip().startswith("{")):
            return read_structured(text)
        return tagged  # also when the server does without structured output: the template asks for the tag


_FEWEST_BYTES, _USUAL_ANSWER = 2, 500  # bytes a token, tokens an answer: more than they mostly are
_LONG = frozenset({"messages", "input", "contents", "prompt", "system", "instructions", "systemInstruction"})
"""Fields of a request that hold the texts, which the run file has already."""


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


def _without_answer(
    stop_reason: str, text: str, refusal: str | None, answer: Answer, known: Mapping[str, Any]
) -> Verdict:
    """A refusal, a filter, a cut-off, an empty answer or an unreadable one: each its own code."""
    if stop_reason == "content_filter":
        reason = f"the provider's filter stopped the answer{f': {refusal}' if refusal else ''}"
        return Verdict.abstain(reason, error_code="content_filter", **known)
    if stop_reason == "refusal" or refusal:
        return Verdict.abstain(refusal or "the model declined to answer", error_code="refusal", **known)
    if stop_reason == "length":
        return Verdict.fail("truncated", "the answer was cut off before it was given; raise max_tokens", **known)
    if not text.strip():
        return Verdict.fail("empty_answer", "the model gave an empty answer", **known)
    return Verdict.fail(answer.code or "parse_error", answer.reason or "the answer cannot be read", **known)


_SUMMED = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost",
)  # fmt: skip


def _agreed(forward: Verdict, backward: Verdict) -> Verdict:
    """One verdict of two: a win when both name the same text, a flip when they name the same place."""
    failed = next((verdict for verdict in (forward, backward) if not verdict.outcome.is_answer), None)
    base = failed or forward
    more: dict[str, Any] = {"content": _both(forward.content, backward.content)}
    more["thoughts"] = _both(forward.thoughts, backward.thoughts)
    more["raw_response"] = [forward.raw_response, backward.raw_response]
    for name in _SUMMED:
        values = [getattr(verdict, name) for verdict in (forward, backward)]
        more[name] = sum(value for value in values if value is not None) if any(v is not None for v in values) else None
    times = [verdict.latency_s for verdict in (forward, backward) if verdict.latency_s is not None]
    more["latency_s"] = max(times) if times else None
    if failed is not None:
        return replace(base, **more)
    if forward.probability is not None and backward.probability is not None:
        more["probability"] = (forward.probability + 1 - backward.probability) / 2
    if forward.winner_pos != backward.winner_pos:
        return replace(base, **more)
    return replace(base, outcome=Outcome.FLIP, winner_pos=None, **more)


def _both(forward: str | None, backward: str | None) -> str | None:
    if forward is None and backward is None:
        return None
    return f"{forward or ''}\n--- the other way round ---\n{backward or ''}"
