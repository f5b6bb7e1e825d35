"""Together: chat completions in its own dialect of OpenAI's, and batches."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from pairscale.providers.base import Fields, HTTPCall, JsonObject, LLMRequest, Provider, Reply
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import BatchJob, BatchLimits, Draft, name_of, reading, seconds_of, state_of
from pairscale.providers.client import ProviderError
from pairscale.providers.openai import OpenAIBatches, chat_call
from pairscale.providers.wire import checked, field, objects, planned, read_chat, text


class Together(Provider):
    """Together's API."""

    name = "together"
    base_url = "https://api.together.ai/v1"
    base_url_variable = "TOGETHER_BASE_URL"
    key_variable = "TOGETHER_API_KEY"

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request; the temperature is 0.6 for DeepSeek-R1 and for a Qwen that thinks, and 0 for everything else.

        Raises:
            InputError: for a tier of service, ``store``, a thinking budget, or thinking of a model that does not think.
        """
        request = checked(request, "Together", "service_tier", "thinking_budget", "store")
        level, samplers = planned(request, self.capabilities(request.model), enabled=None)
        dialect: Fields = {"logprobs": request.logprobs, "top_logprobs": None, "reasoning_effort": level}
        if level in {"none", "enabled"}:
            dialect |= {"reasoning": {"enabled": level == "enabled"}, "reasoning_effort": None}
        return chat_call(request, dialect, samplers)

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        """What the model said; a ``<think>`` block becomes its thoughts."""
        return read_chat(body, think_tags=self.capabilities(str(call.body.get("model"))).think_tags)


class TogetherBatches(OpenAIBatches):
    """Together's batches: OpenAI's, with another way up, other words for the states, and no metadata."""

    name = "together"
    limits = BatchLimits(50_000, 100_000_000)

    def line(self, custom_id: str, call: HTTPCall) -> Fields:
        """One request of the file."""
        return {"custom_id": custom_id, "body": call.body}

    async def upload(self, http: BatchHTTP, draft: Draft) -> str:
        """Ask where the file is to go, put it there, and say that it is there."""
        fields = {"purpose": "batch-api", "file_name": f"{draft.key}.jsonl", "file_type": "jsonl"}
        with draft.path.open("rb") as file:
            fields["checksum"] = hashlib.file_digest(file, "sha256").hexdigest()
        status, headers, document = await http.call("POST", "/files", data=lambda: http.form(fields), accept=(302, 409))
        if status == 409:  # the same file is there already
            with reading(self.name, document):
                return name_of(document, "file_id")
        where = headers.get("Location")
        file_id = headers.get("X-Together-File-Id")
        if not where or not file_id:
            raise ProviderError("parse_error", "together: no place to upload the file to", status=status)
        size = {"Content-Length": str(draft.path.stat().st_size)}
        await http.call("PUT", where, data=lambda: http.lines(draft.path, tail=b"\n"), headers=size, is_signed=True)
        await http.json("POST", f"/files/{quote(file_id, safe='')}/preprocess")
        return file_id

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch; it is known again by the file it was made from."""
        body = {"input_file_id": draft.file_id, "endpoint": draft.endpoint, "completion_window": "24h"}
        document = await http.json("POST", "/batches", body, again=False)
        return self.job(field(document, "job") or document)

    async def find(self, http: BatchHTTP, draft: Draft, taken_ids: Collection[str]) -> list[BatchJob]:
        """The batch that was made from our file, which no other batch has."""
        if draft.file_id is None:
            return []
        document = await http.json("GET", "/batches")
        rows = objects(document) or objects(document, "data")
        mine = [row for row in rows if row.get("input_file_id") == draft.file_id and row.get("id") not in taken_ids]
        return [self.job(row) for row in mine]

    def read_job(self, document: JsonObject) -> BatchJob:
        """A batch as Together describes it; it counts nothing but the share that is done."""
        return BatchJob(
            id=name_of(document),
            state=state_of(document.get("status"), lost=document.get("error_file_id")),
            created_at=seconds_of(document.get("created_at")),
            expires_at=seconds_of(document.get("job_deadline")),
            message=text(document, "error"),
            outputs=self.files_of(document),
            raw=document,
        )
