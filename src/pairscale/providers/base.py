"""The seam between judging and the providers: a neutral request goes in, a neutral reply comes out.

A provider knows its wire format and nothing else: no pairs, no traits, no files, no HTTP library. It turns a
:class:`LLMRequest` into an :class:`HTTPCall`, what came back into a :class:`Reply`, and an error body into a
:class:`ProviderProblem`. Live judging sends the call at once; batch judging writes its body into a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from pairscale.providers.catalog import Capabilities


JsonObject: TypeAlias = Mapping[str, Any]
"""An object of a JSON document."""
Fields: TypeAlias = dict[str, Any]
"""Fields of a JSON object that is being made."""
Headers: TypeAlias = Mapping[str, str]
"""Headers of HTTP."""

Logprobs: TypeAlias = "tuple[TokenLogprob, ...] | None"
"""The tokens of an answer, where they were asked for and given."""

StopReason = Literal["stop", "length", "refusal", "content_filter", "error", "other"]
"""Why a reply ended: complete, cut off, declined by the model, stopped by a filter, or something else."""

CHOICE_KEY = "better_sample"
"""The field of structured output that holds the answer: requests and readers use the same name."""


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """One question to a model, in no provider's words; None means: leave it to the provider or to the model's rules.

    Attributes:
        model: the model's name, as its provider has it.
        prompt: the user's message.
        system: instructions before it.
        reasoning: how hard to think: ``none minimal low medium high xhigh max``, or ``enabled``.
        include_thoughts: whether to ask for the thoughts, where they are given.
        thinking_budget: tokens to think with, where the model takes a number.
        temperature: how much to vary; by default 0 where the model allows it.
        top_p: the share of probability to sample from.
        top_k: the number of tokens to sample from.
        max_tokens: of the answer, with its thoughts where they count.
        service_tier: the provider's tier, such as ``flex``.
        seed: for providers that take one.
        logprobs: how many alternatives of each token to give with their log-probabilities.
        choices: the answers that structured output allows; None for free text.
        endpoint: of OpenAI: ``chat.completions`` or ``responses``; None chooses by the rules.
        num_ctx: of Ollama: the context's length.
        store: of OpenAI: whether it may keep the answer for later retrieval; on ``responses`` it may not unless this
            is True.
        extra: further fields of the request's body, as the provider has them.
        omit: fields of this request, by their names here, that are never sent, not even by default: what a server said
            that its model does not take.
    """

    _: KW_ONLY
    model: str
    prompt: str
    system: str | None = None
    reasoning: str | None = None
    include_thoughts: bool | None = None
    thinking_budget: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    service_tier: str | None = None
    seed: int | None = None
    logprobs: int | None = None
    choices: tuple[str, ...] | None = None
    endpoint: Literal["chat.completions", "responses"] | None = None
    num_ctx: int | None = None
    store: bool | None = None
    extra: JsonObject = field(default_factory=dict)
    omit: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HTTPCall:
    """What is sent over HTTP, without the key.

    Attributes:
        method: of HTTP.
        path: behind the base URL, with a slash at its start.
        body: the JSON document.
        headers: besides those of the key and the content type.
        endpoint: which of the provider's forms it is, for the reply's parser, such as ``responses``.
    """

    method: str
    path: str
    body: JsonObject
    headers: Headers = field(default_factory=dict)
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counted them; None where it does not say.

    Attributes:
        prompt: of the question, cached ones included.
        completion: of the answer, thoughts included.
        total: both.
        cached: of the question, those that came from a cache.
        reasoning: of the answer, those that were thoughts.
        written: of the question, those that were written to the provider's cache, where that costs extra.
    """

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    written: int | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token of the answer, and the alternatives to it.

    Attributes:
        token: the token.
        logprob: the logarithm of its probability.
        top: the likeliest tokens of this place, this one among them, with their logarithms.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(slots=True)
class Reply:
    """What a model said.

    Attributes:
        text: the visible answer; empty when there is none.
        stop_reason: why it ended.
        thoughts: the reasoning, where it is given.
        model: the model that answered, as the provider names it.
        object_type: the kind of reply, as the provider names it, such as ``chat.completion``.
        usage: tokens.
        logprobs: of the tokens of the visible answer, where they were asked for and given.
        refusal: the model's words when it declined, where they are separate from the answer.
        service_tier: the tier that answered, where the provider says.
        problem: why the provider broke the answer off; only with the stop reason ``error``.
        cost: US dollars that the provider states as the cost, where it does.
        raw: the reply as it came, parsed.
        call: what was sent; this and the next three are filled in by the client.
        status: of HTTP.
        seconds: from sending to the last byte.
        first_asked: when the reply came, if it is one of an earlier run; None when it came now.
    """

    text: str
    stop_reason: StopReason = "stop"
    thoughts: str | None = None
    model: str | None = None
    object_type: str | None = None
    usage: Usage = field(default_factory=Usage)
    logprobs: Logprobs = None
    refusal: str | None = None
    service_tier: str | None = None
    problem: ProviderProblem | None = None
    cost: float | None = None
    raw: Any = field(default=None, repr=False)
    call: HTTPCall | None = None
    status: int | None = None
    seconds: float | None = None
    first_asked: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderProblem:
    """What an error body says.

    Attributes:
        message: the provider's words.
        code: its own code or type, such as ``insufficient_quota``.
        parameter: the field of the request that this model does not take, when the message names one.
        retry_after: the seconds to wait that the body asks for, where it is there rather than in a header.
        status: of HTTP, where the body names one.
    """

    message: str
    code: str | None = None
    parameter: str | None = None
    retry_after: float | None = None
    status: int | None = None


class ReplyError(ValueError):
    """A reply with a status of success whose body is an error.

    Attributes:
        status: of HTTP, as the reply names it; None when it names none.
    """

    def __init__(self, problem: ProviderProblem) -> None:
        super().__init__(problem.message)
        self.status = problem.status


@dataclass(frozen=True)
class Provider:
    """One provider's wire format.

    Each module of this package has one, made without arguments. A provider of the user's own need not be a subclass; it
    has the members that are not optional here.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of
            :class:`~pairscale.providers.catalog.Capabilities`. Optional.
        name: what users write before the colon, such as ``openai``.
        base_url: where it is, unless a setting or the environment says otherwise.
        base_url_variable: the environment variable that the vendor's own SDK takes the base URL from.
        key_variable: the environment variable of its key; None when it needs none.
        optional_key_variable: the environment variable of a key that it may need. Optional.
    """

    overrides: JsonObject = field(default_factory=dict)

    name: ClassVar[str]
    base_url: ClassVar[str]
    base_url_variable: ClassVar[str | None]
    key_variable: ClassVar[str | None] = None
    optional_key_variable: ClassVar[str | None] = None

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes. Optional."""
        from pairscale.providers.catalog import rules_of

        return rules_of(self.name, self.overrides)

    def auth(self, key: str) -> Headers:
        """The headers that carry the key."""
        return {"Authorization": f"Bearer {key}"}

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request as this provider takes it.

        Raises:
            InputError: when the manual's rules forbid a combination (such as a temperature with Anthropic's thinking).
        """
        raise NotImplementedError

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        """A successful reply; ``call`` is what was asked.

        Raises:
            ValueError: when the body is not a reply of this provider.
        """
        raise NotImplementedError

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says; ``body`` is parsed JSON, or text when it is none."""
        from pairscale.providers.wire import problem

        return problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named as unsupported; None when it cannot do without."""
        from pairscale.providers.wire import without

        return without(request, parameter, self.call)
