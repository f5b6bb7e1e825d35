"""A language model as a judge: a template and a trait become a prompt, and the reply becomes a verdict."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from pairscale.core.comparisons import Condition
from pairscale.core.errors import InputError
from pairscale.core.failures import failure_of
from pairscale.core.notices import notice
from pairscale.core.options import checked, optional, require_choice, require_mapping, require_text
from pairscale.core.provenance import text_hash
from pairscale.core.tables import Values
from pairscale.core.traits import AnyTrait, as_trait
from pairscale.judges.answers import (
    ANSWERS,
    CONFIDENCE_QUESTION,
    ParsedAnswer,
    declines,
    guarded_prompt,
    probability_of_first,
    read_structured,
    read_tag,
    stated_confidence,
)
from pairscale.judges.base import JudgePair, Verdict
from pairscale.providers.base import CHOICE_KEY, JsonObject, LLMRequest, Usage
from pairscale.providers.cache import call_key, is_deterministic, open_cache
from pairscale.providers.catalog import cost_of, price_of, provider_named
from pairscale.providers.client import LLMClient, ProviderError, joined
from pairscale.providers.limits import RateLimiter

if TYPE_CHECKING:
    from pairscale.providers.base import JsonObject, Reply

AnswerForm = Literal["tag", "structured", "confidence"]
"""How the model answers: between tags in free text, as JSON with a schema, or between tags and followed by how sure it
says it is."""

_FEWEST_BYTES_PER_TOKEN = 2  # fewer than there mostly are, so that estimates are on the safe side
_USUAL_ANSWER_TOKENS = 500
_USUAL_ALTERNATIVES = 5
_REQUEST = tuple(
    field.name for field in fields(LLMRequest) if field.name not in {"model", "prompt", "choices", "omit", "_"}
)
_OTHER_NAMES = {
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "thinking_level": "reasoning",
    "reasoning_effort": "reasoning",
    "thinking_budget_tokens": "thinking_budget",
    "host": "base_url",
}
_OF_PROVIDERS = {"anthropic_version": "version", "api_version": "api_version"}
_TEXT_FIELDS = frozenset({"messages", "input", "contents", "prompt", "system", "instructions", "systemInstruction"})
"""Fields of a request that hold the texts, which the run file has already."""
NO_ANSWER = frozenset({"content_filter", "refusal", "error"})
"""Reasons for the end of a reply that holds no answer, whatever its text says."""


_CONNECTION: Values = {
    "api_key": None, "base_url": None, "timeout": 120.0, "headers": {}, "requests_per_minute": None,
    "tokens_per_minute": None, "price": None, "cache": "auto", "provider_args": {},
}  # fmt: skip
"""How a model is reached, by default; all other settings are fields of the request."""

SETTING_NAMES = frozenset({*_CONNECTION, *_REQUEST, *_OTHER_NAMES, *_OF_PROVIDERS, "think"})
"""Every name that a setting of a model may be given by."""


def _by_our_names(provider: str, user_settings: Values) -> Values:
    """The settings of a user, also by the R package's names for them.

    Raises:
        InputError: when a setting is unknown or of the wrong kind.
    """
    settings = {_OTHER_NAMES.get(name, name): value for name, value in user_settings.items() if value is not None}
    for name in ("headers", "provider_args"):
        settings[name] = dict(require_mapping(settings.get(name, {}), name))
    if "think" in settings:
        settings.setdefault("reasoning", "enabled" if settings.pop("think") else "none")
    for name, own in _OF_PROVIDERS.items():
        if name in settings:
            settings["provider_args"].setdefault(own, settings.pop(name))
    if isinstance(settings.get("logprobs"), bool):
        settings["logprobs"] = _USUAL_ALTERNATIVES if settings["logprobs"] else None
    if provider != "openai":
        settings.pop("endpoint", None)
    unknown = sorted(set(settings) - set(_CONNECTION) - set(_REQUEST))
    if unknown:
        raise InputError(f"a model of {provider} has no setting {', '.join(unknown)}; it has {', '.join(_REQUEST)}")
    return settings


class Model:
    """A model of a provider with its settings: it makes requests, asks, and knows what they cost.

    Args:
        provider: the provider's name, such as ``openai``.
        model: the model's name.
        choices: the answers that structured output will be asked for, so that a model without it is refused at once.
        settings: as :class:`LLMJudge` has them.

    Raises:
        InputError: when a setting is unknown or does not go with the model, or the key is missing.
    """

    def __init__(self, provider: str, model: str, choices: tuple[str, ...] | None = None, **settings: Any) -> None:
        if not require_text(model, "model", empty=True):
            raise InputError(f"name a model of {provider}, such as {provider}:MODEL")
        self.provider = require_text(provider, "provider")
        self.model = model
        settings = _by_our_names(provider, settings)
        self._request = {name: settings[name] for name in _REQUEST if settings.get(name) is not None}
        connection = {**_CONNECTION, **settings}
        self._provider_args = connection["provider_args"]
        self.client = LLMClient(
            provider_named(provider, **self._provider_args),
            api_key=connection["api_key"],
            base_url=optional(require_text, connection["base_url"], "base_url"),
            headers=connection["headers"],
            timeout=connection["timeout"],
            limiter=RateLimiter(connection["requests_per_minute"], connection["tokens_per_minute"]),
        )
        self._cache = open_cache(connection["cache"], self.client.base_url)
        self._keeps_all = connection["cache"] != "auto"
        self.price = price_of(provider, model, connection["price"])
        self._has_told_of_reuse = False
        try:
            self.client.provider.call(self.question("", choices))
        except InputError:
            raise
        except (TypeError, AttributeError, ValueError) as error:
            raise InputError(f"a setting of {provider}:{model} has a wrong value: {error}") from None

    @property
    def identity(self) -> Values:
        """Every setting that may change an answer; never the key."""
        settings = dict(self._request)
        if self._provider_args:
            settings["provider_args"] = self._provider_args
        if self.client.base_url != self.client.provider.base_url.rstrip("/"):  # also where the environment says it
            settings["base_url"] = self.client.base_url
        if self.client.open_headers:
            settings["headers"] = self.client.open_headers
        return settings

    def question(self, prompt: str, choices: tuple[str, ...] | None = None) -> LLMRequest:
        """A question, in no provider's words."""
        return LLMRequest(model=self.model, prompt=prompt, choices=choices, **self._request)

    def request_cost(self, request: LLMRequest, *, batch: bool = False) -> float | None:
        """What a question may cost (in a batch), on the safe side; None if the price is unknown.

        Long answers cost more than this where ``max_tokens`` is not set.
        """
        sent = f"{request.system or ''}{request.prompt}".encode("utf-8", "surrogatepass")
        return self.cost_of_bytes(len(sent), 1, batch=batch)

    def cost_of_bytes(self, n_bytes: int, n_requests: int, *, batch: bool) -> float | None:
        """What requests of ``n_bytes`` in all may cost, on the safe side; None when the price is not known."""
        prompt = n_bytes // _FEWEST_BYTES_PER_TOKEN + 100 * n_requests
        answers = n_requests * (self._request.get("max_tokens") or _USUAL_ANSWER_TOKENS)
        return cost_of(Usage(prompt=prompt, completion=answers), self.price, batch=batch)

    @property
    def uses_cache(self) -> bool:
        """Whether answers may come from the cache; the caller then says which repeat of a question it is."""
        return self._cache is not None

    def cache_key(self, request: LLMRequest, repeat: str = "1") -> str | None:
        """The key of a reply in the cache: a digest of all that is asked for; None where the answer is not kept.

        Args:
            request: the question.
            repeat: which time it is asked, for those who ask the same on purpose more than once: every time has an
                answer of its own.
        """
        if self._cache is None or not (self._keeps_all or is_deterministic(self.client.prepared(request).body)):
            return None
        return call_key(self.client, self.client.provider.call(request), repeat)

    def remembered(self, request: LLMRequest, key: str | None) -> Reply | None:
        """The answer that an earlier run got under the key, if it may be used again."""
        if self._cache is None or key is None:
            return None
        try:
            kept = self._cache.find(key)
            if kept is None:
                return None
            reply = self.client.read(self.client.prepared(request), kept.body, kept.status, {}, 0.0)
        except (ProviderError, ValueError):  # of another version: asked again
            return None
        reply.first_asked = kept.asked_at
        return reply

    async def ask(self, request: LLMRequest) -> Reply:
        """Ask once.

        Raises:
            ProviderError: when there is no reply; it says whether asking again makes sense, and what it may have cost.
        """
        try:
            return await self.client.complete(request)
        except ProviderError as error:
            if error.may_cost:
                error.cost = self.request_cost(request) or None
            raise

    def accept(self, reply: Reply, key: str | None) -> None:
        """Keep a usable answer for other runs, or log once that answers of other runs are used."""
        if self._cache is None or key is None:
            return
        if reply.first_asked is not None:
            if not self._has_told_of_reuse:
                notice(f"{self.provider}:{self.model}: answers of earlier runs are used again; cache=False asks again")
            self._has_told_of_reuse = True
            return
        self._cache.keep(key, reply.raw, reply.status or 200)

    def facts_of(self, reply: Reply, request: LLMRequest, *, batch: bool = False) -> Values:
        """The facts about a reply, by the attributes of :class:`Verdict`; without keys and texts.

        A reply that does not say how many tokens it used counts as the most that it may have cost.

        Args:
            reply: what came back.
            request: the question.
            batch: whether it came in a batch, at its price.
        """
        usage = reply.usage
        body = {} if reply.call is None else reply.call.body
        sent = {name: value for name, value in body.items() if name not in _TEXT_FIELDS}
        facts = {
            "content": reply.text,
            "thoughts": reply.thoughts,
            "model": reply.model or self.model,
            "object_type": reply.object_type,
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.total,
            "prompt_cached_tokens": usage.cached,
            "reasoning_tokens": usage.reasoning,
            "latency_s": reply.seconds,
            "cost": self._cost(reply, batch=batch),
            "cost_is_estimate": False,
            "prompt_hash": text_hash(request.prompt),
            "request": self.client.redactor.value(sent),
            "raw_response": reply.raw,
        }
        if reply.first_asked is not None:  # nothing is sent now, so that there is no status, and no cost
            facts["request"]["from_cache_of"] = reply.first_asked
            return facts | {"saved": facts["cost"], "cost": 0.0, "cached": True}
        facts["status_code"] = reply.status
        if facts["cost"] is None:
            facts["cost"] = self.request_cost(request, batch=batch)
            facts["cost_is_estimate"] = bool(facts["cost"])
        return facts

    def _cost(self, reply: Reply, *, batch: bool = False) -> float | None:
        if reply.cost is not None:
            return reply.cost
        if not reply.usage.prompt:  # some servers send zeros, and no prompt has no tokens
            return None
        tier = reply.service_tier or self._request.get("service_tier")  # not every provider says which it was
        return cost_of(reply.usage, self.price, batch=batch, tier=tier)

    async def aclose(self) -> None:
        """Close the connections, and the file of answers."""
        if self._cache is not None:
            self._cache.close()
        await self.client.aclose()


class LLMJudge(Model):
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
        tag_prefix: the tag before the answer.
        tag_suffix: the tag behind it.
        settings: fields of the request, ``reasoning temperature top_p top_k max_tokens logprobs seed service_tier
            include_thoughts thinking_budget endpoint num_ctx store system extra``, also by the names that the R
            package's functions have for them; and how the model is reached:

            - ``api_key``: by default that of the environment; it is kept in no log and no file. Or a callable that
              gives a token, plain or ``async``: it is called before every request and may renew the token.
            - ``base_url``: where the provider is, when not at its own address.
            - ``timeout``: seconds that one reply may take.
            - ``headers``: further headers of every request; those that may hold a secret, by their names, are kept
              nowhere.
            - ``requests_per_minute``, ``tokens_per_minute``: limits to keep from the start.
            - ``price``: US dollars for a million tokens, ``{"input": 1.25, "output": 10}``; by default from the table.
            - ``cache``: whether an answer of an earlier run is used again, for nothing: ``auto`` for requests with
              temperature 0 that leave this machine, True for all, False for none, or the file to keep them in. A pair
              that one run asks several times keeps several answers.
            - ``provider_args``: settings of the provider: ``overrides`` (what its models can do), ``version`` and
              ``key_header`` of Anthropic, ``api_version`` of Gemini.

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
        trait: AnyTrait,
        template: str,
        template_id: str,
        *,
        answer: AnswerForm = "tag",
        tag_prefix: str = "<BETTER_SAMPLE>",
        tag_suffix: str = "</BETTER_SAMPLE>",
        **settings: Any,
    ) -> None:
        self._answer = require_choice(answer, "answer", get_args(AnswerForm))
        self._choices = ANSWERS if answer == "structured" else None
        super().__init__(provider, model, self._choices, **settings)
        self.trait = as_trait(trait)
        self._template = template
        self._template_id = template_id
        self._prefix = tag_prefix
        self._suffix = tag_suffix

    @property
    def condition(self) -> Condition:
        """Provider, model, trait, template and every setting that may change an answer; never the key."""
        settings: Values = {
            "template": text_hash(self._template)[:16],
            "trait": text_hash(f"{self.trait.name}\n{self.trait.description}")[:16],
            "answer": self._answer,
            **self.identity,
        }
        if self._answer != "structured":
            settings["tags"] = [self._prefix, self._suffix]
        name = f"{self.provider}:{self.model}"
        label = self.trait.key or self.trait.name
        return Condition(name, self.provider, self.model, label, self._template_id, settings)

    def prompt(self, pair: JudgePair) -> str:
        """The question for one pair."""
        texts = pair.first["text"], pair.second["text"]
        prompt = guarded_prompt(self._template, self.trait, *texts, self._prefix, self._suffix)
        return prompt + CONFIDENCE_QUESTION if self._answer == "confidence" else prompt

    def request(self, pair: JudgePair) -> LLMRequest:
        """The question for one pair, in no provider's words."""
        return self.question(self.prompt(pair), self._choices)

    def preview(self, pair: JudgePair) -> tuple[str, JsonObject]:
        """The address and the body that would be sent for a pair; nothing is."""
        call = self.client.prepared(self.request(pair))
        return joined(self.client.base_url, call.path), call.body

    def max_cost_of(self, pair: JudgePair) -> float | None:
        """What asking about a pair may cost, on the safe side; None if the price is unknown.

        Long answers cost more than this where ``max_tokens`` is not set.
        """
        return self.request_cost(self.request(pair))

    def describe(self) -> Values:
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
            "provider_args": self._provider_args,
            "settings": self._request,
        }

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the model."""
        # The swapped question of one pair may be the question of another: each has answers of its own in the cache.
        request = self.request(pair)
        key = self.cache_key(request, f"{pair.occurrence}{'~' * pair.is_swapped}")
        reply = self.remembered(request, key)
        if reply is not None:
            verdict = self._accepted(reply, pair, request, key)
            if verdict.failure is None:
                return verdict  # else it was kept by a judge with other tags, say
        try:
            reply = await self.ask(request)
        except ProviderError as error:
            return unanswered(error, prompt_hash=text_hash(request.prompt))
        return self._accepted(reply, pair, request, key)

    def _accepted(self, reply: Reply, pair: JudgePair, request: LLMRequest, key: str | None) -> Verdict:
        verdict = self.read(reply, pair, request)
        if verdict.failure is None:  # asking again may mend everything else
            self.accept(reply, key)
        return verdict

    def read(self, reply: Reply, pair: JudgePair, request: LLMRequest, *, batch: bool = False) -> Verdict:
        """The verdict in a reply.

        Args:
            reply: what came back.
            pair: the question.
            request: the question as it was sent.
            batch: whether it came in a batch, at its price.
        """
        answer = self._read(reply.text, pair)
        facts = self.facts_of(reply, request, batch=batch)
        if reply.stop_reason in NO_ANSWER or answer.code is not None:
            return _without_answer(reply, answer, facts)
        if answer.position is None:
            return Verdict.tie(**facts)
        return Verdict.win(answer.position, probability=self._probability(reply, answer.position), **facts)

    def _probability(self, reply: Reply, position: int) -> float | None:
        if self._answer == "confidence":
            return stated_confidence(reply.text, position)
        if not reply.logprobs:
            return None
        is_tagged = self._prefix.casefold() in reply.text.casefold()
        return probability_of_first(reply.logprobs, self._prefix if is_tagged else CHOICE_KEY)

    def _read(self, text: str, pair: JudgePair) -> ParsedAnswer:
        samples = (pair.first["text"], pair.second["text"])
        tagged = read_tag(text, self._prefix, self._suffix, samples)
        if self._choices is not None and (tagged.position is None or text.lstrip().startswith("{")):
            return read_structured(text)
        return tagged  # also when the server does without structured output: the template asks for the tag


def unanswered(error: ProviderError, **facts: Any) -> Verdict:
    """The verdict for a request that got no reply."""
    facts |= {"status_code": error.status, "raw_response": error.raw}
    if error.code == "content_filter":
        return Verdict.abstain(error.message, error_code="content_filter", **facts)
    facts |= {"cost": error.cost, "cost_is_estimate": error.cost is not None, "retry_after": error.retry_after}
    return Verdict.fail(error.code, error.message, failure=error.failure, **facts)


def _without_answer(reply: Reply, answer: ParsedAnswer, facts: Values) -> Verdict:
    """An error, a refusal, a filter, a cut-off, an empty answer or an unreadable one: each its own code."""
    end = reply.stop_reason
    if end == "content_filter":
        reason = f"the provider's filter stopped the answer{f': {reply.refusal}' if reply.refusal else ''}"
        return Verdict.abstain(reason, error_code="content_filter", **facts)
    if end == "refusal" or reply.refusal:
        return Verdict.abstain(reply.refusal or "the model declined to answer", **facts)
    if answer.code == "parse_error" and end not in {"length", "error"} and declines(reply.text):
        return Verdict.abstain(" ".join(reply.text.split())[:300], **facts)
    problem = reply.problem
    if problem is not None:
        failure = failure_of(problem.status, problem.code, problem.message)
        words = f"the provider broke the answer off: {problem.message}"
        return Verdict.fail("http_error", words, failure=failure, **facts)
    code = answer.code or "parse_error"
    words = answer.reason or "the answer cannot be read"
    if end == "length":
        code = "truncated"
        words = "the answer was cut off before it was given; raise max_tokens"
    elif not reply.text.strip():
        code = "empty_answer"
        words = "the model gave an empty answer"
    return Verdict.fail(code, words, **facts)
