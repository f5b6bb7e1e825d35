"""A language model as a judge: a template and a trait become a prompt, and the reply becomes a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, get_args

from pairscale.core.comparisons import Condition
from pairscale.core.failures import failure_of
from pairscale.core.options import checked, require_choice
from pairscale.core.provenance import text_hash
from pairscale.core.traits import Trait, as_trait
from pairscale.judges._guard import guarded_prompt
from pairscale.judges.answers import (
    ANSWERS,
    CONFIDENCE_QUESTION,
    ParsedAnswer,
    declines,
    probability_of_first,
    read_structured,
    read_tag,
    stated_confidence,
)
from pairscale.judges.base import JudgePair, Verdict
from pairscale.providers.base import CHOICE_KEY
from pairscale.providers.client import ProviderError, joined
from pairscale.providers.model import Model

if TYPE_CHECKING:
    from pairscale.providers.base import LLMReply, LLMRequest
    from pairscale.providers.cache import CacheMode
    from pairscale.providers.catalog import Price
    from pairscale.providers.client import Exchange, LLMClient
    from pairscale.providers.keys import ApiKey
    from pairscale.providers.model import Reused

AnswerForm = Literal["tag", "structured", "confidence"]
"""How the model answers: between tags in free text, as JSON that it cannot get wrong, or between tags and followed by
how sure it says it is."""


class LLMJudge:
    """Asks a model of a provider which of two texts has more of a trait.

    Args:
        provider: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama``, ``compatible``, or a hosted
            service; ``pairscale providers`` lists them.
        model: the model's name.
        trait: what to judge: the key of a built-in trait, or what :func:`trait_description` gives.
        template: the prompt template's text.
        template_id: its name.
        answer: ``tag`` (between ``tag_prefix`` and ``tag_suffix``), ``structured`` (JSON with two choices) or
            ``confidence`` (the tag, and how sure the model says it is, for models that give no log-probabilities).
        tag_prefix: what stands before the answer.
        tag_suffix: what stands behind it.
        api_key: the key; by default that of the environment. It is kept in no log and no file. Or a callable that gives
            a token, plain or ``async``: it is called before every request and may renew the token.
        base_url: where the provider is, when not at its own address.
        timeout: seconds that one reply may take.
        headers: further headers of every request; those that may hold a secret, by their names, are kept nowhere.
        requests_per_minute: Maximum requests per minute.
        tokens_per_minute: Maximum tokens per minute.
        price: US dollars for a million tokens, ``{"input": 1.25, "output": 10}``; by default from the dated table.
        cache: whether an answer of an earlier run is used again, for nothing: ``auto`` for requests with temperature 0
            that leave this machine, True for all, False for none, or the file to keep them in; by default in the
            user's folder for caches. A pair that one run asks several times keeps several answers.
        provider_args: settings of the provider: ``overrides`` (what its models can do), ``version`` and ``key_header``
            of Anthropic, ``api_version`` of Gemini.
        settings: fields of the request: ``reasoning temperature top_p top_k max_tokens logprobs seed service_tier
            include_thoughts thinking_budget endpoint num_ctx store system extra``; also by the names that the R
            package's functions have for them (``thinking_level think max_output_tokens thinking_budget_tokens host
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

    @checked
    def __init__(
        self,
        provider: str,
        model: str,
        trait: str | Trait,
        template: str,
        template_id: str,
        *,
        answer: AnswerForm = "tag",
        tag_prefix: str = "<BETTER_SAMPLE>",
        tag_suffix: str = "</BETTER_SAMPLE>",
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
        require_choice(answer, "answer", get_args(AnswerForm))
        self._model = Model(
            provider,
            model,
            choices=ANSWERS if answer == "structured" else None,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            headers=headers,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            price=price,
            cache=cache,
            provider_args=provider_args,
            **settings,
        )
        self.provider = provider
        self.model = model
        self.trait = as_trait(trait)
        self._template = template
        self._template_id = template_id
        self._answer = answer
        self._prefix = tag_prefix
        self._suffix = tag_suffix

    def __repr__(self) -> str:
        return f"<LLMJudge {self.provider}:{self.model}, {self.trait.name}, template {self._template_id}>"

    @property
    def condition(self) -> Condition:
        """Provider, model, trait, template and every setting that may change an answer; never the key."""
        settings: dict[str, Any] = {
            "template": text_hash(self._template)[:16],
            "trait": text_hash(f"{self.trait.name}\n{self.trait.description}")[:16],
            "answer": self._answer,
            **self._model.identity,
        }
        if self._answer != "structured":
            settings["tags"] = [self._prefix, self._suffix]
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
        """What the model costs; None if unknown."""
        return self._model.price

    def request(self, pair: JudgePair) -> LLMRequest:
        """The question for one pair, in no provider's words."""
        texts = pair.first["text"], pair.second["text"]
        prompt = guarded_prompt(self._template, self.trait, *texts, self._prefix, self._suffix)
        if self._answer == "confidence":
            prompt += CONFIDENCE_QUESTION
        return self._model.request(prompt, ANSWERS if self._answer == "structured" else None)

    def preview(self, pair: JudgePair) -> tuple[str, Mapping[str, Any]]:
        """The address and the body that would be sent for a pair; nothing is."""
        call = self.client.prepared(self.request(pair))
        return joined(self.client.base_url, call.path), call.body

    def max_cost_of(self, pair: JudgePair) -> float | None:
        """What asking about a pair may cost, on the safe side; None if the price is unknown.

        Long answers cost more than this where ``max_tokens`` is not set.
        """
        return self._model.max_cost_of(self.request(pair))

    @property
    def client(self) -> LLMClient:
        """Who speaks to the provider."""
        return self._model.client

    @property
    def uses_cache(self) -> bool:
        """Whether answers may come from the cache; the caller then says which ``occurrence`` a question is."""
        return self._model.uses_cache

    @property
    def reused(self) -> Reused:
        """How many answers came from the cache, and what that saved."""
        return self._model.reused

    def describe(self) -> dict[str, Any]:
        """Everything that another process needs to be the same judge, as JSON holds it; never the key.

        Nor headers that may hold a secret: without them, the other process has to do with its key.
        """
        return {
            "provider": self.provider,
            "model": self.model,
            "trait": asdict(self.trait),
            "template": self._template,
            "template_id": self._template_id,
            "answer": self._answer,
            "tag_prefix": self._prefix,
            "tag_suffix": self._suffix,
            "base_url": self.client.base_url,
            "headers": self.client.open_headers,
            "price": None if self.price is None else self.price.to_dict(),
            "provider_args": self._model.provider_args,
            "settings": self._model.settings,
        }

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the model."""
        # The swapped question of one pair may be the question of another: each has answers of its own in the cache.
        repeat = f"{pair.occurrence}{'~' * pair.is_swapped}"
        request = self.request(pair)
        known = self._model.remembered(request, repeat)
        if known is not None:
            verdict = self._accepted(known, pair, request, repeat)
            if verdict.winner_pos is not None:
                return verdict  # else it was kept by a judge with other tags, say
        try:
            done = await self._model.ask(request)
        except ProviderError as error:
            return unanswered(error, {"prompt_hash": text_hash(request.prompt)})
        return self._accepted(done, pair, request, repeat)

    def _accepted(self, done: Exchange, pair: JudgePair, request: LLMRequest, repeat: str) -> Verdict:
        verdict = self.read(done, pair, request)
        if verdict.winner_pos is not None:  # asking again may mend everything else
            self._model.accept(done, repeat)
        return verdict

    def read(self, done: Exchange, pair: JudgePair, request: LLMRequest, *, batch: bool = False) -> Verdict:
        """The verdict that stands in a reply.

        Args:
            done: what was sent, and what came back.
            pair: the question.
            request: the question as it was put.
            batch: whether it came in a batch, at its price.
        """
        reply = done.reply
        known = {"prompt_hash": text_hash(request.prompt), **self._model.to_columns(done, request, batch=batch)}
        answer = self._read(reply.text, pair)
        if answer.position is not None and reply.stop_reason not in NO_ANSWER:
            return Verdict.win(answer.position, probability=self._probability(reply, answer.position), **known)
        return without_answer(reply, answer, known)

    def _probability(self, reply: LLMReply, position: int) -> float | None:
        if self._answer == "confidence":
            return stated_confidence(reply.text, position)
        if reply.probabilities is not None:
            one, two = (reply.probabilities.get(name, 0.0) for name in ANSWERS)
            return one / (one + two) if min(one, two) >= 0 and one + two > 0 else None
        if not reply.logprobs:
            return None
        is_tagged = self._prefix.casefold() in reply.text.casefold()
        return probability_of_first(reply.logprobs, self._prefix if is_tagged else CHOICE_KEY)

    def _read(self, text: str, pair: JudgePair) -> ParsedAnswer:
        samples = (pair.first["text"], pair.second["text"])
        tagged = read_tag(text, self._prefix, self._suffix, samples)
        if self._answer == "structured" and (tagged.position is None or text.lstrip().startswith("{")):
            return read_structured(text)
        return tagged  # also when the server does without structured output: the template asks for the tag


def unanswered(error: ProviderError, known: Mapping[str, Any]) -> Verdict:
    """The verdict that a request without a reply is."""
    if error.code == "content_filter":
        more = {"status_code": error.status, "raw_response": error.raw}
        return Verdict.abstain(error.message, error_code="content_filter", **known, **more)
    return Verdict.fail(
        error.code,
        error.message,
        failure=error.failure,
        retry_after=error.retry_after,
        status_code=error.status,
        raw_response=error.raw,
        cost=error.cost,
        cost_is_estimate=error.cost is not None,
        **known,
    )


NO_ANSWER = frozenset({"content_filter", "refusal", "error"})
"""Reasons for the end of a reply that holds no answer, whatever its text says."""


def without_answer(reply: LLMReply, answer: ParsedAnswer, known: Mapping[str, Any]) -> Verdict:
    """An error, a refusal, a filter, a cut-off, an empty answer or an unreadable one: each its own code."""
    stop_reason = reply.stop_reason
    text = reply.text
    refusal = reply.refusal
    if stop_reason == "content_filter":
        reason = f"the provider's filter stopped the answer{f': {refusal}' if refusal else ''}"
        return Verdict.abstain(reason, error_code="content_filter", **known)
    if stop_reason == "refusal" or refusal:
        return Verdict.abstain(refusal or "the model declined to answer", error_code="refusal", **known)
    if answer.code == "parse_error" and stop_reason not in {"length", "error"} and declines(text):
        return Verdict.abstain(" ".join(text.split())[:300], error_code="refusal", **known)
    return _unreadable(reply, answer, known)


def _unreadable(reply: LLMReply, answer: ParsedAnswer, known: Mapping[str, Any]) -> Verdict:
    """Why there is no answer in a reply that is no refusal."""
    if (problem := reply.problem) is not None:
        failure = failure_of(problem.status, problem.code, problem.message)
        words = f"the provider broke the answer off: {problem.message}"
        return Verdict.fail("http_error", words, failure=failure, **known)
    if reply.stop_reason == "length":
        return Verdict.fail("truncated", "the answer was cut off before it was given; raise max_tokens", **known)
    if not reply.text.strip():
        return Verdict.fail("empty_answer", "the model gave an empty answer", **known)
    return Verdict.fail(answer.code or "parse_error", answer.reason or "the answer cannot be read", **known)
