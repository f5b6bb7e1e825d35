"""Anthropic: messages, and batches of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from pairscale.core.errors import InputError
from pairscale.core.failures import status_named
from pairscale.providers.base import (
    Fields,
    Headers,
    HTTPCall,
    JsonObject,
    LLMRequest,
    Provider,
    Reply,
    StopReason,
    Usage,
)
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import (
    BatchFormat,
    BatchJob,
    BatchLimits,
    Draft,
    Line,
    LineKind,
    State,
    failed_line,
    name_of,
    seconds_of,
    state_of,
)
from pairscale.providers.catalog import Capabilities
from pairscale.providers.wire import (
    SCHEMA_NAME,
    checked,
    choice_schema,
    field,
    joined_field,
    level,
    number,
    objects,
    of_type,
    problem,
    refused,
    sampling,
    send,
    text,
    tokens_of,
    without,
)

_PLAIN_TOKENS = 768
_THINKING_TOKENS = 2048
_ROOM = 1024
_BUDGETS = {"enabled": 1024, "minimal": 1024, "low": 1024, "medium": 4096, "high": 16_384}
# Thoughts count as output, so a model that measures them itself needs room for them, or its answer is cut off.
_ADAPTIVE_TOKENS = {"low": 4096, "medium": 8192}
_MOST_ADAPTIVE = 16_384


@dataclass(frozen=True)
class Anthropic(Provider):
    """Anthropic's own API.

    Attributes:
        version: of the API, as the header ``anthropic-version`` names it.
        key_header: how the key is sent: ``x-api-key``, or ``bearer`` as newer SDKs do.
    """

    version: str = "2023-06-01"
    key_header: Literal["x-api-key", "bearer"] = "x-api-key"

    name = "anthropic"
    base_url = "https://api.anthropic.com"
    base_url_variable = "ANTHROPIC_BASE_URL"
    key_variable = "ANTHROPIC_API_KEY"

    def auth(self, key: str) -> Headers:
        """The key, and the version of the API."""
        keyed = super().auth(key) if self.key_header == "bearer" else {"x-api-key": key}
        return {**keyed, "anthropic-version": self.version}

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request as a message.

        Without thinking, the temperature is 0 where the model takes one, and the answer may have 768 tokens. A thinking
        budget is 1,024 tokens of 2,048 by default, at least 1,024, and smaller than ``max_tokens``; the temperature is
        then 1.

        Raises:
            InputError: when thinking and its budget, the temperature and ``max_tokens`` do not go together.
        """
        request = checked(request, "Anthropic", "logprobs", "store")
        able = self.capabilities(request.model)
        if request.include_thoughts and request.reasoning == "none":
            request = replace(request, reasoning="enabled")  # as the manual has it: asking for thoughts means thinking
        effort = level(request, able, enabled=None)
        budget = _budget(request, able, effort)
        thinks = budget is not None or (able.thinks_unasked if effort is None else effort != "none")
        max_tokens = request.max_tokens or _max_tokens(request, budget, effort, thinks)
        if budget is not None and budget >= max_tokens:
            raise InputError(f"a thinking budget of {budget} tokens must be smaller than max_tokens, {max_tokens}")
        output: Fields = {}
        if budget is None and effort not in {None, "none", "enabled"}:
            output["effort"] = effort
        tools: Fields = {}
        if request.choices is not None:
            schema = choice_schema(request.choices)
            if able.structured == "none" or (able.structured == "tool" and thinks):
                now = " while it thinks" if thinks else ""
                raise InputError(f"{request.model} has no structured output{now}; leave choices out")
            if able.structured == "schema":
                output["format"] = {"type": "json_schema", "schema": schema}
            else:
                tool = {"name": SCHEMA_NAME, "description": "Give your verdict.", "input_schema": schema}
                tools = {"tools": [tool], "tool_choice": {"type": "tool", "name": SCHEMA_NAME}}
        body = {
            "model": request.model,
            "max_tokens": max_tokens,
            **_samplers(request, able, thinks),
            "system": request.system,
            "messages": [{"role": "user", "content": [{"type": "text", "text": request.prompt}]}],
            "thinking": _thinking(request, able, effort, budget),
            "output_config": output or None,
            **tools,
            "service_tier": request.service_tier,
        }
        return send("/v1/messages", body, request, "messages")

    def reply(self, call: HTTPCall, body: Any) -> Reply:  # noqa: ARG002
        """What the model said."""
        if field(body, "type") != "message" or not isinstance(body.get("content"), list):
            raise refused(body, "a message of Anthropic")
        blocks = objects(body, "content")
        answer = joined_field(of_type(blocks, "text"), "text")
        for forced in of_type(blocks, "tool_use")[:1]:
            answer = json.dumps(forced.get("input"))
        return Reply(
            text=answer or "",
            stop_reason=_ENDS.get(body.get("stop_reason"), "other"),
            thoughts=joined_field(of_type(blocks, "thinking"), "thinking", "\n\n"),
            model=body.get("model"),
            object_type="message",
            usage=_usage(body.get("usage")),
            refusal=text(body, "stop_details", "explanation"),
            service_tier=text(body, "usage", "service_tier"),
            raw=body,
        )

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named; it cannot do without ``max_tokens``."""
        return without(request, parameter, self.call, ("max_tokens",))


def _budget(request: LLMRequest, able: Capabilities, effort: str | None) -> int | None:
    """The tokens to think with; None when it does not think, or is not told so by a number."""
    budget = request.thinking_budget
    if budget is None:
        if effort in {None, "none"} or able.thinking not in {"budget", "any"}:
            return None
        return _BUDGETS.get(str(effort), _BUDGETS["high"])
    if able.budget is None or effort == "none":
        raise InputError(f"{request.model} takes no thinking_budget now; use reasoning, such as 'low', instead")
    if budget < able.budget[0]:
        raise InputError(f"a thinking budget of {budget} tokens is too small; {able.budget[0]} is the least")
    return budget


def _max_tokens(request: LLMRequest, budget: int | None, effort: str | None, thinks: bool) -> int:
    """Room for the thoughts and the answer."""
    if request.thinking_budget is not None:
        return _THINKING_TOKENS
    if budget is not None:
        return budget + _ROOM
    return _ADAPTIVE_TOKENS.get(str(effort), _MOST_ADAPTIVE) if thinks else _PLAIN_TOKENS


def _samplers(request: LLMRequest, able: Capabilities, thinks: bool) -> Fields:
    """The samplers; thinking leaves little choice."""
    if thinks and able.temperature != "never":
        if request.temperature not in {None, 1} or request.top_k is not None or (request.top_p or 1) < 0.95:
            raise InputError(f"{request.model} takes no top_k, top_p below 0.95 or temperature but 1 while it thinks")
        request = replace(request, temperature=None if able.temperature == "unthinking" else request.temperature)
    if (request.temperature or 0) > 1:
        raise InputError(f"temperature {request.temperature!r} is not between 0 and 1, as Anthropic has it")
    return sampling(request, able, thinks)


def _thinking(request: LLMRequest, able: Capabilities, effort: str | None, budget: int | None) -> Fields | None:
    if budget is not None:
        return {"type": "enabled", "budget_tokens": budget}
    if effort == "none":
        return {"type": able.off} if able.thinks_unasked else None
    if effort is None:
        return None
    thinking = {"type": "adaptive"}
    if request.include_thoughts is not None:
        thinking["display"] = "summarized" if request.include_thoughts else "omitted"
    return thinking


_ENDS: dict[Any, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def _usage(usage: Any) -> Usage:
    """Anthropic counts apart what it read from a cache and what it wrote to one."""
    counted = tokens_of(
        usage,
        "input_tokens output_tokens total_tokens cache_read_input_tokens output_tokens_details.thinking_tokens "
        "cache_creation_input_tokens",
    )
    if counted.prompt is None:
        return counted
    prompt = counted.prompt + (counted.cached or 0) + (counted.written or 0)
    total = None if counted.completion is None else prompt + counted.completion
    return replace(counted, prompt=prompt, total=total)


_SLACK = 600.0  # seconds that two clocks may differ
_KINDS: dict[Any, LineKind] = {"expired": "expired", "canceled": "cancelled"}
_FATES: dict[Any, str] = {
    "expired": "expired before it was worked off",
    "canceled": "was cancelled",
    "errored": "failed",
}


class AnthropicBatches(BatchFormat):
    """Anthropic's batches: the requests go up with the creation, and results come down in any order.

    A batch carries no name of ours. A creation whose answer was lost is found again among the batches that were created
    since, with the same number of requests; whether it is ours, its results say, because every request's id begins with
    our key.
    """

    name = "anthropic"
    limits = BatchLimits(100_000, 250_000_000)
    path = "/v1/messages/batches"

    def line(self, custom_id: str, call: HTTPCall) -> Fields:
        """One request."""
        return {"custom_id": custom_id, "params": call.body}

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch, with its requests read from the file while they are sent."""
        head = b'{"requests":['
        tail = b"]}"
        size = len(head) + len(tail) + draft.path.stat().st_size - 1  # n lines with n ends become n - 1 commas
        headers = {"Content-Type": "application/json", "Content-Length": str(size)}
        document = await http.json(
            "POST", self.path, data=lambda: http.lines(draft.path, head, tail, b","), headers=headers, again=False
        )
        return self.job(document)

    async def find(self, http: BatchHTTP, draft: Draft, taken_ids: Collection[str]) -> list[BatchJob]:
        """Batches of this size that were created since and are not taken, oldest first."""
        candidates: list[BatchJob] = []
        async for page in self.pages(http, f"{self.path}?limit=100", "after_id"):
            since = [job for job in page if (job.created_at or 0) >= draft.prepared_at - _SLACK]
            candidates += [job for job in since if job.total == draft.n_requests and job.id not in taken_ids]
            if len(since) < len(page):
                break
        return candidates[::-1]

    def result_paths(self, job: BatchJob) -> list[str]:
        """The results, once there are any."""
        return [f"{self.path}/{quote(job.id, safe='')}/results"] if job.outputs else []

    def read_job(self, document: JsonObject) -> BatchJob:
        """A batch as Anthropic describes it."""
        counts = {name: number(value) or 0 for name, value in (document.get("request_counts") or {}).items()}
        results = document.get("results_url")
        return BatchJob(
            id=name_of(document),
            state=_state(document.get("processing_status"), counts),
            total=sum(counts.values()),
            succeeded=counts.get("succeeded", 0),
            failed=sum(counts.get(name, 0) for name in ("errored", "canceled", "expired")),
            created_at=seconds_of(document.get("created_at")),
            expires_at=seconds_of(document.get("expires_at")),
            outputs=(str(results),) if results else (),
            raw=document,
        )

    def read(self, document: JsonObject) -> Line:
        """One line of the results; an error may be nested."""
        custom_id = document.get("custom_id")
        kind = field(document, "result", "type")
        if not isinstance(custom_id, str) or not document.get("result"):
            raise ValueError("it has no custom_id or no result")
        if kind == "succeeded":
            return Line(custom_id, "succeeded", 200, field(document, "result", "message"), result_type=kind)
        fate = _KINDS.get(kind, "errored")
        error = field(document, "result", "error")
        if not error:
            words = f"the request {_FATES.get(kind, f'ended as {kind}')}"
            return Line(custom_id, fate, None, error, words, str(kind))
        status = status_named(problem(0, {"error": error}).code)
        return failed_line(custom_id, status, error, fate, str(kind))


def _state(status: Any, counts: Mapping[str, int]) -> State:
    if status != "ended":
        return state_of(status)
    if counts.get("canceled"):
        return "cancelled"
    if counts.get("expired"):
        return "expired"
    return "partly" if counts.get("errored") else "done"
