"""OpenAI: chat completions and responses, and batches of them."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairscale.core.errors import InputError
from pairscale.providers.base import (
    Fields,
    Headers,
    HTTPCall,
    JsonObject,
    LLMRequest,
    Provider,
    Reply,
)
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import (
    BatchFormat,
    BatchJob,
    BatchLimits,
    Draft,
    Line,
    LineKind,
    name_of,
    reading,
    seconds_of,
    state_of,
)
from pairscale.providers.wire import (
    CHAT_ENDS,
    SCHEMA_NAME,
    checked,
    choice_schema,
    field,
    joined_field,
    number,
    objects,
    of_type,
    planned,
    problem,
    read_chat,
    refused,
    send,
    stated,
    text,
    token_logprobs,
    tokens_of,
)

_CHAT = "chat.completions"
_RESPONSES = "responses"


class OpenAI(Provider):
    """OpenAI's own API."""

    name = "openai"
    base_url = "https://api.openai.com/v1"
    base_url_variable = "OPENAI_BASE_URL"
    key_variable = "OPENAI_API_KEY"

    def auth(self, key: str) -> Headers:
        """The key, and the organisation and the project of the environment."""
        return {"Authorization": f"Bearer {key}", **self._account}

    @cached_property
    def _account(self) -> dict[str, str]:
        organization = os.environ.get("OPENAI_ORG_ID") or None
        project = os.environ.get("OPENAI_PROJECT_ID") or None
        return stated({"OpenAI-Organization": organization, "OpenAI-Project": project})

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request, on the endpoint that was asked for or that its rules choose.

        Thoughts, and a reasoning effort, are asked for on ``responses``; everything else goes to ``chat.completions``.

        Raises:
            InputError: for a temperature, ``top_p`` or log-probabilities of a model that reasons; for an effort that
                the model does not have; for ``top_k`` or a thinking budget.
        """
        request = checked(request, "OpenAI", "top_k", "thinking_budget")
        able = self.capabilities(request.model)
        effort, samplers = planned(request, able, enabled="low")
        endpoint = request.endpoint or able.endpoint
        if endpoint is None:
            is_asked = effort not in {None, "none"} and request.reasoning != "none"  # which gpt-5 takes as minimal
            endpoint = "responses" if is_asked else "chat.completions"
        if endpoint == _RESPONSES:
            return _responses(request, effort, samplers)
        if endpoint != _CHAT:
            raise InputError(f"OpenAI has no endpoint {endpoint!r}; there are {_CHAT} and {_RESPONSES}")
        return chat_call(request, {"reasoning_effort": effort}, samplers, max_tokens="max_completion_tokens")

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        """What the model said, from any endpoint."""
        return read_response(body) if call.endpoint == _RESPONSES else read_chat(body)


def messages(request: LLMRequest) -> list[dict[str, str]]:
    """The system's message, if there is one, and the user's."""
    user = {"role": "user", "content": request.prompt}
    return [user] if request.system is None else [{"role": "system", "content": request.system}, user]


def chat_call(
    request: LLMRequest,
    thinking: JsonObject,
    samplers: JsonObject,
    *,
    max_tokens: str = "max_tokens",
    seed: str = "seed",
    **headers: str,
) -> HTTPCall:
    """A chat completion; ``max_tokens`` and ``seed`` are this server's names for them."""
    structured = None
    if request.choices is not None:
        schema = {"name": SCHEMA_NAME, "schema": choice_schema(request.choices), "strict": True}
        structured = {"type": "json_schema", "json_schema": schema}
    body = {
        "model": request.model,
        "messages": messages(request),
        **samplers,
        max_tokens: request.max_tokens,
        seed: request.seed,
        "service_tier": request.service_tier,
        "store": request.store,
        "logprobs": None if request.logprobs is None else True,
        "top_logprobs": request.logprobs or None,
        "response_format": structured,
        **thinking,
    }
    return send("/chat/completions", body, request, _CHAT, **headers)


def _responses(request: LLMRequest, effort: str | None, samplers: JsonObject) -> HTTPCall:
    reasoning = None
    if effort is not None:
        reasoning = {"effort": effort}
        if request.include_thoughts and effort != "none":
            reasoning["summary"] = "auto"
    output_format = None
    if request.choices is not None:
        schema = choice_schema(request.choices)
        output_format = {"format": {"type": "json_schema", "name": SCHEMA_NAME, "schema": schema, "strict": True}}
    body = {
        "model": request.model,
        "instructions": request.system,
        "input": request.prompt,
        "reasoning": reasoning,
        **samplers,
        "max_output_tokens": request.max_tokens,
        "service_tier": request.service_tier,
        "store": None if "store" in request.omit else bool(request.store),  # it keeps answers unless told not to
        "include": None if request.logprobs is None else ["message.output_text.logprobs"],
        "top_logprobs": request.logprobs or None,
        "text": output_format,
    }
    return send("/responses", body, request, _RESPONSES)


def read_response(body: Any) -> Reply:
    """A reply of the responses endpoint.

    Raises:
        ValueError: when it is not one, or when it failed.
    """
    if not isinstance(field(body, "output"), list) or body.get("status") in {"failed", "cancelled"}:
        raise refused(body, "a response")
    output = objects(body, "output")
    reasoning = of_type(output, "reasoning")
    thoughts = [part for item in reasoning for part in objects(item, "summary") + objects(item, "content")]
    parts = [part for item in of_type(output, "message") for part in objects(item, "content")]
    answers = of_type(parts, "output_text")
    refusal = joined_field(parts, "refusal")
    end = CHAT_ENDS.get(field(body, "incomplete_details", "reason"), "other")
    if body.get("status", "completed") == "completed":
        end = "stop"
    tokens = [token for part in answers for token in token_logprobs(part.get("logprobs")) or ()]
    return Reply(
        text=joined_field(answers, "text") or "",
        stop_reason="refusal" if refusal else end,
        thoughts=joined_field(thoughts, "text", "\n\n"),
        model=body.get("model"),
        object_type=body.get("object"),
        usage=tokens_of(
            body.get("usage"),
            "input_tokens output_tokens total_tokens input_tokens_details.cached_tokens "
            "output_tokens_details.reasoning_tokens input_tokens_details.cache_write_tokens",
        ),
        logprobs=tuple(tokens) or None,
        refusal=refusal,
        service_tier=text(body, "service_tier"),
        raw=body,
    )


METADATA_KEY = "pairscale"
"""The name in a batch's metadata that holds our own key."""


class OpenAIBatches(BatchFormat):
    """OpenAI's batches: a file goes up, a batch is created from it, and two files come down."""

    name = "openai"
    limits = BatchLimits(50_000, 200_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> Fields:
        """One request of the file."""
        return {"custom_id": custom_id, "method": call.method, "url": self.endpoint(call), "body": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go."""
        return f"/v1{call.path}"

    async def upload(self, http: BatchHTTP, draft: Draft) -> str | None:
        """Upload the file."""
        document = await self.upload_file(http, draft.path, f"{draft.key}.jsonl")
        with reading(self.name, document):
            return name_of(document)

    async def upload_file(self, http: BatchHTTP, path: Path, name: str = "", purpose: str = "batch") -> Fields:
        """Upload a file, and return the provider's description of it."""
        document = await http.json("POST", "/files", data=lambda: http.form({"purpose": purpose}, path, name))
        return document if isinstance(document, dict) else {}

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch, with our key in its metadata."""
        body = {
            "input_file_id": draft.file_id,
            "endpoint": draft.endpoint,
            "completion_window": "24h",
            "metadata": {**draft.metadata, METADATA_KEY: draft.key},
        }
        return self.job(await http.json("POST", "/batches", body, again=False))

    async def find(self, http: BatchHTTP, draft: Draft, taken_ids: Collection[str]) -> list[BatchJob]:  # noqa: ARG002 - the key decides
        """The batch with our key in its metadata."""
        async for page in self.pages(http, "/batches?limit=100", "after"):
            mine = [job for job in page if job.key == draft.key]
            oldest = page[-1].created_at if page else None
            if mine or (oldest is not None and oldest < draft.prepared_at - 86_400):
                return mine
        return []

    def result_paths(self, job: BatchJob) -> list[str]:
        """Output and errors."""
        return [f"/files/{quote(file, safe='')}/content" for file in job.outputs]

    def read_job(self, document: JsonObject) -> BatchJob:
        """A batch as OpenAI describes it."""
        failed = number(document, "request_counts", "failed")
        errors = objects(document, "errors", "data")
        return BatchJob(
            id=name_of(document),
            state=state_of(document.get("status"), lost=failed),
            total=number(document, "request_counts", "total"),
            succeeded=number(document, "request_counts", "completed"),
            failed=failed,
            key=field(document, "metadata", METADATA_KEY),
            created_at=seconds_of(document.get("created_at")),
            expires_at=seconds_of(document.get("expires_at")),
            message=joined_field(errors[:3], "message", "; "),
            outputs=self.files_of(document),
            raw=document,
        )

    def files_of(self, document: JsonObject) -> tuple[str, ...]:
        """The files of results."""
        return tuple(str(document[name]) for name in ("output_file_id", "error_file_id") if document.get(name))

    def read(self, document: JsonObject) -> Line:
        """One line of an output or an error file."""
        custom_id = document.get("custom_id")
        if not isinstance(custom_id, str):
            raise ValueError("it has no custom_id")
        error = document.get("error")
        status = number(document, "response", "status_code")
        body = field(document, "response", "body")
        if not error and status is not None and 200 <= status < 300:
            return Line(custom_id, "succeeded", status, body)
        if not error and status is None and body is None:
            raise ValueError("it has neither a response nor an error")
        failure = problem(status or 0, {"error": error} if error else body)
        kinds: dict[Any, LineKind] = {"batch_expired": "expired", "batch_cancelled": "cancelled"}
        if failure.code in kinds:
            return Line(custom_id, kinds[failure.code], status, document, failure.message)
        return Line(custom_id, "errored", status, document if body is None else body, failure.message)
