"""Gemini: generateContent, and batches of it."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairscale.core.errors import InputError
from pairscale.core.files import open_private
from pairscale.core.notices import notice
from pairscale.providers.base import (
    Fields,
    Headers,
    HTTPCall,
    JsonObject,
    LLMRequest,
    Logprobs,
    Provider,
    Reply,
    StopReason,
    TokenLogprob,
    Usage,
)
from pairscale.providers.batch_http import MOST_RESULTS, BatchHTTP
from pairscale.providers.batches import (
    BatchFormat,
    BatchJob,
    BatchLimits,
    Draft,
    Line,
    failed_line,
    name_of,
    reading,
    seconds_of,
    state_of,
)
from pairscale.providers.catalog import Capabilities
from pairscale.providers.client import ProviderError
from pairscale.providers.wire import (
    checked,
    choice_schema,
    field,
    forbid,
    joined_field,
    joined_text,
    level,
    number,
    objects,
    refused,
    sampling,
    send,
    stated,
    text,
    tokens_of,
)

_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576, "enabled": -1}


@dataclass(frozen=True)
class Gemini(Provider):
    """Google's Gemini API.

    Attributes:
        api_version: ``v1beta`` or ``v1``.
    """

    api_version: str = "v1beta"

    name = "gemini"
    base_url = "https://generativelanguage.googleapis.com"
    base_url_variable = "GOOGLE_GEMINI_BASE_URL"
    key_variable = "GEMINI_API_KEY"

    def auth(self, key: str) -> Headers:
        """The key."""
        return {"x-goog-api-key": key}

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request; the model is part of the path.

        Gemini 3 is told how hard to think by a level, ``low`` by default; Gemini 2.5 by a budget of
        tokens; never by both. A model that thinks gets no temperature by default.

        Raises:
            InputError: when the model does not take that level or that budget.
        """
        request = checked(request, "Gemini", "store")
        able = self.capabilities(request.model)
        thinking = _thinking(request, able)
        thinks = able.thinks_unasked or "thinkingLevel" in thinking
        if "thinkingBudget" in thinking:
            thinks = thinking["thinkingBudget"] != 0
        samplers = sampling(request, able, thinks)
        config = {
            "temperature": samplers.get("temperature"),
            "topP": samplers.get("top_p"),
            "topK": samplers.get("top_k"),
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseLogprobs": None if request.logprobs is None else True,
            "logprobs": request.logprobs or None,
            "responseMimeType": "application/json" if request.choices else None,
            "responseJsonSchema": choice_schema(request.choices) if request.choices else None,
            "thinkingConfig": thinking or None,
        }
        system = None if request.system is None else {"role": "user", "parts": [{"text": request.system}]}
        body = {
            "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
            "systemInstruction": system,
            "generationConfig": stated(config) or None,
            "serviceTier": request.service_tier,
        }
        model = quote(request.model.removeprefix("models/"), safe="/")
        kind = "" if model.startswith("tunedModels/") else "models/"
        return send(f"/{self.api_version}/{kind}{model}:generateContent", body, request, "generateContent")

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        """What the model said; a prompt that was blocked is a reply, too."""
        candidates = objects(body, "candidates")
        if not candidates and not field(body, "promptFeedback", "blockReason"):
            raise refused(body, "a reply of Gemini")
        candidate = candidates[0] if candidates else {}
        parts = objects(candidate, "content", "parts")
        end: StopReason = "content_filter"
        if candidates:
            end = _ENDS.get(candidate.get("finishReason"), "other")
        reasons = [field(body, "promptFeedback", name) for name in ("blockReasonMessage", "blockReason")]
        refusal = joined_text([*reasons, candidate.get("finishMessage")], ": ")
        return Reply(
            text=joined_field((part for part in parts if not part.get("thought")), "text") or "",
            stop_reason=end,
            thoughts=joined_field((part for part in parts if part.get("thought")), "text", "\n\n"),
            model=body.get("modelVersion"),
            object_type=call.endpoint or "generateContent",
            usage=_usage(body.get("usageMetadata")),
            logprobs=_logprobs(candidate.get("logprobsResult")),
            refusal=refusal if end == "content_filter" else None,
            service_tier=text(body, "usageMetadata", "serviceTier"),
            raw=body,
        )


def _thinking(request: LLMRequest, able: Capabilities) -> Fields:
    """How to think, in the order in which the SDK writes it."""
    if able.thinking == "none":
        level(request, able, enabled=None)
        forbid(request, request.model, "thinking_budget")
        return {}
    thinking: Fields = {}
    if able.thinking == "level":
        if request.thinking_budget is not None:
            raise InputError(f"{request.model} takes a level and no thinking_budget; use reasoning, such as 'low'")
        if "reasoning" not in request.omit:
            thinking = {"thinkingLevel": _level(request, able).upper()}
    else:
        budget = _budget(request, able)
        thinking = {} if budget is None else {"thinkingBudget": budget}
    if (thinking or request.include_thoughts is not None) and "include_thoughts" not in request.omit:
        thinking = {"includeThoughts": bool(request.include_thoughts)} | thinking
    return thinking


def _level(request: LLMRequest, able: Capabilities) -> str:
    if request.reasoning == "medium" and able.levels == ("low", "high"):
        _say(f"{request.model} has no medium level of thinking; high is sent instead")
        return "high"
    return level(request, able, enabled="low") or "low"


_say = cache(notice)
"""Log a message once, however many requests it is true of."""


def _budget(request: LLMRequest, able: Capabilities) -> int | None:
    """The tokens to think with: 0 for none, -1 for as many as the model likes."""
    budget = request.thinking_budget
    effort = None
    if request.reasoning is not None or not (able.thinks_unasked or budget is not None):
        effort = level(request, able, enabled=None)  # thoughts alone ask it to think, unless it does anyway
    if budget is None:
        return None if effort is None else _BUDGETS.get(effort, _BUDGETS["high"])
    least, most = able.budget or (1, 1_000_000)
    is_off = budget == 0 and "none" in able.levels
    if effort is not None or not (budget == -1 or is_off or least <= budget <= most):
        raise InputError(
            f"thinking_budget of {request.model} is from {least} to {most}, or -1 for its own choice, and goes without "
            "reasoning, which says the same thing"
        )
    return budget


_ENDS: dict[Any, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
}


def _usage(usage: Any) -> Usage:
    """Gemini counts thoughts apart from the answer."""
    counted = tokens_of(
        usage, "promptTokenCount candidatesTokenCount totalTokenCount cachedContentTokenCount thoughtsTokenCount"
    )
    if counted.reasoning is None:
        return counted
    return replace(counted, completion=(counted.completion or 0) + counted.reasoning)


def _logprobs(result: Any) -> Logprobs:
    chosen = field(result, "chosenCandidates")
    if chosen is None:
        return None
    tokens = objects(chosen)
    tops = [objects(top, "candidates") for top in objects(result, "topCandidates")]
    tops += [[]] * (len(tokens) - len(tops))
    return tuple(
        TokenLogprob(
            str(token.get("token", "")),
            float(token["logProbability"]),
            tuple((str(other.get("token", "")), float(other.get("logProbability", 0.0))) for other in others),
        )
        for token, others in zip(tokens, tops, strict=False)
        if token.get("logProbability") is not None
    )


def thought_signature(body: Any) -> str | None:
    """The first signature of thoughts in a reply of Gemini, if it has one."""
    for candidate in objects(body, "candidates")[:1]:
        for part in objects(candidate, "content", "parts"):
            if part.get("thoughtSignature"):
                return str(part["thoughtSignature"])
    return None


_GIVES_UP = 48 * 3600  # seconds after which a batch expires, which the provider does not state
_RPC = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
"""Google's codes of remote calls, which some results have in place of a status of HTTP."""


class GeminiBatches(BatchFormat):
    """Gemini's batches: a file goes up, a batch is created from it, and a file comes down.

    R's functions create batches with their requests inline, whose results come inline, too.
    """

    name = "gemini"
    limits = BatchLimits(100_000, 1_000_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> Fields:
        """One request of the file."""
        return {"key": custom_id, "request": call.body}

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests go: the model's own batch address."""
        return call.path.rpartition(":")[0] + ":batchGenerateContent"

    def job_path(self, http: BatchHTTP, job_id: str, action: str = "") -> str:
        """The address of a batch."""
        return f"/{_version(http)}/{quote(job_id)}{action.replace('/', ':')}"

    async def upload(self, http: BatchHTTP, draft: Draft) -> str:
        """Upload the file in two steps."""
        size = draft.path.stat().st_size
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(size),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        about = {"file": {"displayName": draft.key, "mimeType": "application/jsonl"}}
        _, headers, _ = await http.call("POST", f"/upload/{_version(http)}/files", about, headers=start)
        where = headers.get("X-Goog-Upload-URL")
        if not where:
            raise ProviderError("parse_error", "gemini: no place to upload the file to")
        finish = {
            "X-Goog-Upload-Command": "upload, finalize",
            "X-Goog-Upload-Offset": "0",
            "Content-Length": str(size),
            "Content-Type": "application/jsonl",
        }
        document = await http.json(
            "POST", where, data=lambda: http.lines(draft.path, tail=b"\n"), headers=finish, is_signed=True
        )
        with reading(self.name, document):
            return name_of(field(document, "file"), "name")

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch; our key is its display name."""
        body = {"batch": {"displayName": draft.key, "inputConfig": {"fileName": draft.file_id}}}
        return self.job(await http.json("POST", draft.endpoint, body, again=False))

    async def find(self, http: BatchHTTP, draft: Draft, taken_ids: Collection[str]) -> list[BatchJob]:  # noqa: ARG002 - the key decides
        """The batch with our key as its display name."""
        async for page in self.pages(http, f"/{_version(http)}/batches?pageSize=100", "pageToken"):
            mine = [job for job in page if job.key == draft.key]
            if mine:
                return mine
        return []

    async def download(self, http: BatchHTTP, job: BatchJob, target: Path, most: int = MOST_RESULTS) -> None:
        """The results: a file as it is, or the inline ones as lines of one."""
        if job.outputs:
            await http.fetch([f"/{_version(http)}/{quote(job.outputs[0])}:download?alt=media"], target, most)
            return
        rows = [result_line(field(row, "metadata", "key"), row) for row in inline_responses(job.raw)]
        part = target.with_name(f"{target.name}.part")
        with open_private(part, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        part.replace(target)

    def read_job(self, document: JsonObject) -> BatchJob:
        """A batch as Gemini describes it: an operation whose metadata is the batch, or the batch itself."""
        about = document.get("metadata") or document
        error = document.get("error") or about.get("error")
        stats = {name: _count(value) for name, value in (about.get("batchStats") or {}).items()}
        none = 0 if stats else None
        failed = stats.get("failedRequestCount", none)
        created = seconds_of(about.get("createTime"))
        state = state_of(about.get("state"), lost=failed)
        results = [str(place["responsesFile"]) for place in _outputs(document) if place.get("responsesFile")]
        return BatchJob(
            id=name_of(document, "name"),
            state="failed" if error and state == "running" else state,
            total=stats.get("requestCount"),
            succeeded=stats.get("successfulRequestCount", none),
            failed=failed,
            key=about.get("displayName"),
            created_at=created,
            expires_at=None if created is None else created + _GIVES_UP,
            message=text(error, "message"),
            outputs=tuple(results[:1]),
            raw=document,
        )

    def read(self, document: JsonObject) -> Line:
        """One line of the results, in Gemini's shape or in the manual's (``custom_id`` and ``result``)."""
        custom_id = document.get("custom_id") or document.get("key")
        if not isinstance(custom_id, str):
            raise ValueError("it has no key")
        result = document.get("result") if isinstance(document.get("result"), dict) else document
        response = field(result, "response")
        error = field(result, "error") or field(response, "error")
        kind = str(field(result, "type") or ("errored" if field(result, "error") else "succeeded"))
        if kind == "succeeded" and response and not error:
            return Line(custom_id, "succeeded", 200, response, result_type=kind)
        status = number(error, "code")
        if status is not None and status < 100:
            status = _RPC.get(status)
        if not error:
            return Line(custom_id, "errored", status, result, "there is no response", kind)
        return failed_line(custom_id, status, error, result_type=kind)


def _outputs(document: JsonObject) -> list[JsonObject]:
    """The places where results may be."""
    places = (document.get("response"), field(document, "metadata", "output"), document.get("dest"))
    return [place for place in places if isinstance(place, dict)]


def inline_responses(document: JsonObject) -> list[JsonObject]:
    """The results that are part of the batch itself, in the order of its requests."""
    for place in _outputs(document):
        rows = objects(place, "inlinedResponses") or objects(place, "inlinedResponses", "inlinedResponses")
        if rows:
            return rows
    return []


def result_line(custom_id: Any, row: JsonObject) -> Fields:
    """A result in the manual's shape."""
    if row.get("response") and not row.get("error"):
        return {"custom_id": custom_id, "result": {"type": "succeeded", "response": row["response"]}}
    return {"custom_id": custom_id, "result": {"type": "errored", "error": row.get("error")}}


def _version(http: BatchHTTP) -> str:
    return str(getattr(http.provider, "api_version", "v1beta"))


def _count(value: Any) -> int:
    return int(value) if str(value).isdecimal() else 0
