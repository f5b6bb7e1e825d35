"""The manual's single calls: upload, create, look, poll, download; each a thin face of a provider's batch API."""

from __future__ import annotations

import asyncio
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pairscale.compat._given import require_waiting
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.files import replacing
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.tables import Table, to_frame
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import Draft, batch_format
from pairscale.providers.catalog import provider_named
from pairscale.providers.client import LLMClient, ProviderError
from pairscale.providers.gemini import GeminiBatches, inline_responses, result_line
from pairscale.providers.openai import OpenAIBatches
from pairscale.runtime import run_sync

T = TypeVar("T")
_Work: TypeAlias = "Callable[[BatchHTTP], Coroutine[Any, Any, T]]"
_VERSION = "2023-06-01"

# What the calls of all providers do; ``settings`` are the provider's own, such as the version of its API.


def _done(provider: str, api_key: str | None, work: _Work[T], **settings: Any) -> T:
    """Do something with a provider, and close the connection."""

    async def main() -> T:
        http = BatchHTTP(LLMClient(provider_named(provider, **settings), api_key=api_key or None))
        try:
            return await work(http)
        except ProviderError as error:
            raise JudgeError(error.message) from None
        finally:
            await http.aclose()

    return run_sync(main)


def _created(
    provider: str,
    api_key: str | None,
    lines: list[dict[str, Any]],
    name: str = "",
    model: str = "",
    endpoint: str = "",
    **settings: Any,
) -> Mapping[str, Any]:
    """Create a batch whose requests go with the creation; the batch."""

    async def work(http: BatchHTTP) -> Mapping[str, Any]:
        with _request_file(lines) as path:
            draft = Draft(name, model, endpoint, path, len(lines), time.time())
            return (await batch_format(provider).create(http, draft)).raw

    return _done(provider, api_key, work, **settings)


def _got(provider: str, api_key: str | None, batch_id: str, **settings: Any) -> Mapping[str, Any]:
    """Where a batch stands."""
    return _done(provider, api_key, lambda http: batch_format(provider).get(http, batch_id), **settings).raw


def _polled(
    provider: str,
    api_key: str | None,
    batch_id: str,
    *,
    interval: float,
    timeout: float,
    attempts: float = math.inf,
    verbose: bool,
    **settings: Any,
) -> Mapping[str, Any]:
    """Look at a batch until it has ended, the time is over, or the number of looks is reached."""
    interval, timeout, attempts = require_waiting(interval, timeout, attempts)

    async def work(http: BatchHTTP) -> Mapping[str, Any]:
        end, turn = time.monotonic() + timeout, 0
        while True:
            job = await batch_format(provider).get(http, batch_id)
            turn += 1
            if verbose:
                notice(f"batch {batch_id}: {job.state}")
            left = end - time.monotonic()
            if job.ended or turn >= attempts or left <= 0:
                return job.raw
            await asyncio.sleep(min(interval, left))

    return _done(provider, api_key, work, **settings)


def _downloaded(provider: str, api_key: str | None, batch: str, path: str | os.PathLike[str], **settings: Any) -> Path:
    """Write everything that came of a batch into one file."""

    async def work(http: BatchHTTP) -> Path:
        job = await batch_format(provider).get(http, batch)
        if not job.outputs:
            raise _nothing(batch, job.state)
        await batch_format(provider).download(http, job, Path(path))
        return Path(path)

    return _done(provider, api_key, work, **settings)


def _nothing(batch_id: str, state: str) -> JudgeError:
    return JudgeError(f"batch {batch_id} is {state} and has no results to download")


def _rows(requests: Any) -> list[Mapping[str, Any]]:
    if hasattr(requests, "iter_rows"):
        return list(requests.iter_rows(named=True))
    return list(requests)


@contextmanager
def _request_file(rows: Iterable[Mapping[str, Any]]) -> Iterator[Path]:
    """A file of requests for as long as it is needed."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False, encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        yield Path(file.name)
    finally:
        Path(file.name).unlink(missing_ok=True)


# OpenAI


@checked
def openai_upload_batch_file(
    path: str | os.PathLike[str], purpose: str = "batch", api_key: str | None = None
) -> dict[str, Any]:
    """Upload a file of requests to OpenAI.

    Args:
        path: the file; see :func:`write_openai_batch_file`.
        purpose: what it is for.
        api_key: The API key; by default that of the environment.

    Returns:
        What OpenAI says of the file, ``id`` among it.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_openai_batch_requests(pair, "gpt-4.1")
        >>> openai_upload_batch_file(ps.write_openai_batch_file(requests, "uploaded.jsonl"))["purpose"]
        'batch'
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file to upload")
    return _done("openai", api_key, lambda http: OpenAIBatches().upload_file(http, file, purpose=purpose))


@checked
def openai_create_batch(
    input_file_id: str,
    endpoint: str,
    completion_window: str = "24h",
    metadata: Mapping[str, str] | None = None,
    api_key: str | None = None,
) -> dict[str, Any]:
    """Create an OpenAI batch from an uploaded file.

    Args:
        input_file_id: ID of the uploaded file.
        endpoint: ``/v1/chat/completions`` or ``/v1/responses``.
        completion_window: how long it may take; OpenAI knows ``24h`` alone.
        metadata: names and values that are kept with it.
        api_key: The API key; by default that of the environment.

    Returns:
        The batch.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_openai_batch_requests(pair, "gpt-4.1")
        >>> file = openai_upload_batch_file(ps.write_openai_batch_file(requests, "created.jsonl"))
        >>> openai_create_batch(file["id"], "/v1/chat/completions")["status"]
        'validating'
    """
    body: dict[str, Any] = {"input_file_id": input_file_id, "endpoint": endpoint}
    body |= {"completion_window": completion_window} | ({"metadata": dict(metadata)} if metadata else {})
    return _done("openai", api_key, lambda http: http.json("POST", "/batches", body, again=False))


@checked
def openai_get_batch(batch_id: str, api_key: str | None = None) -> Mapping[str, Any]:
    """Where an OpenAI batch stands: the batch as OpenAI describes it.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> done = ps.llm_submit_pairs_batch(pair, "openai", "gpt-4.1", poll=False)
        >>> openai_get_batch(done.batch_ids[0])["object"]
        'batch'
    """
    return _got("openai", api_key, batch_id)


@checked
def openai_poll_batch_until_complete(
    batch_id: str,
    interval_seconds: float = 5,
    timeout_seconds: float = 600,
    max_attempts: float = math.inf,
    api_key: str | None = None,
    verbose: bool = True,
) -> Mapping[str, Any]:
    """Look at an OpenAI batch until it has ended, or the time is over; the batch as it is then.

    Args:
        batch_id: ID of the batch.
        interval_seconds: Seconds between two checks.
        timeout_seconds: Maximum seconds to wait.
        max_attempts: how often to look.
        api_key: The API key; by default that of the environment.
        verbose: Report the state of the batch in notices.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> done = ps.llm_submit_pairs_batch(pair, "openai", "gpt-4.1", poll=False)
        >>> openai_poll_batch_until_complete(done.batch_ids[0], interval_seconds=0.01, verbose=False)["status"]
        'completed'
    """
    given = {"interval": interval_seconds, "timeout": timeout_seconds, "attempts": max_attempts}
    return _polled("openai", api_key, batch_id, **given, verbose=verbose)


@checked
def openai_download_batch_output(batch_id: str, path: str | os.PathLike[str], api_key: str | None = None) -> Path:
    """Download the results of an OpenAI batch, output and errors, into one file.

    Raises:
        JudgeError: there is nothing to download, or it cannot be had.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> done = ps.llm_submit_pairs_batch(pair, "openai", "gpt-4.1", interval_seconds=0.01)
        >>> openai_download_batch_output(done.batch_ids[0], "output.jsonl").read_text("utf-8").count("custom_id")
        1
    """
    return _downloaded("openai", api_key, batch_id, path)


# Anthropic


@checked
def anthropic_create_batch(
    requests: Iterable[Mapping[str, Any]], api_key: str | None = None, anthropic_version: str = _VERSION
) -> Mapping[str, Any]:
    """Create an Anthropic message batch.

    Args:
        requests: each with ``custom_id`` and ``params``; see :func:`build_anthropic_batch_requests`.
        api_key: The API key; by default that of the environment.
        anthropic_version: Version of the API.

    Returns:
        The batch.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_anthropic_batch_requests(pair, "claude-sonnet-4-5")
        >>> anthropic_create_batch(requests)["processing_status"]
        'in_progress'
    """
    lines = [{"custom_id": row["custom_id"], "params": row["params"]} for row in _rows(requests)]
    return _created("anthropic", api_key, lines, version=anthropic_version)


@checked
def anthropic_get_batch(
    batch_id: str, api_key: str | None = None, anthropic_version: str = _VERSION
) -> Mapping[str, Any]:
    """Where an Anthropic message batch stands: the batch as Anthropic describes it.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_anthropic_batch_requests(pair, "claude-sonnet-4-5")
        >>> anthropic_get_batch(anthropic_create_batch(requests)["id"])["processing_status"]
        'in_progress'
    """
    return _got("anthropic", api_key, batch_id, version=anthropic_version)


@checked
def anthropic_poll_batch_until_complete(
    batch_id: str,
    interval_seconds: float = 60,
    timeout_seconds: float = 86_400,
    api_key: str | None = None,
    anthropic_version: str = _VERSION,
    verbose: bool = True,
) -> Mapping[str, Any]:
    """Look at an Anthropic message batch until it has ended, or the time is over; the batch as it is then.

    Args:
        batch_id: such as ``msgbatch_01…``.
        interval_seconds: Seconds between two checks.
        timeout_seconds: Maximum seconds to wait; a day by default.
        api_key: The API key; by default ``ANTHROPIC_API_KEY``.
        anthropic_version: Version of the API.
        verbose: Report the state of the batch in notices.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_anthropic_batch_requests(pair, "claude-sonnet-4-5")
        >>> batch = anthropic_create_batch(requests)
        >>> anthropic_poll_batch_until_complete(batch["id"], interval_seconds=0.01, verbose=False)["processing_status"]
        'ended'
    """
    given = {"interval": interval_seconds, "timeout": timeout_seconds}
    return _polled("anthropic", api_key, batch_id, **given, verbose=verbose, version=anthropic_version)


@checked
def anthropic_download_batch_results(
    batch_id: str, output_path: str | os.PathLike[str], api_key: str | None = None, anthropic_version: str = _VERSION
) -> Path:
    """Download the results of an Anthropic message batch that has ended.

    Raises:
        JudgeError: it has not, or they cannot be had.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_anthropic_batch_requests(pair, "claude-sonnet-4-5")
        >>> batch = anthropic_create_batch(requests)
        >>> batch = anthropic_poll_batch_until_complete(batch["id"], interval_seconds=0.01, verbose=False)
        >>> anthropic_download_batch_results(batch["id"], "anthropic.jsonl").read_text("utf-8").count("custom_id")
        1
    """
    return _downloaded("anthropic", api_key, batch_id, output_path, version=anthropic_version)


# Gemini


@checked
def gemini_create_batch(
    requests: Iterable[Mapping[str, Any]],
    model: str,
    api_key: str | None = None,
    api_version: str = "v1beta",
    display_name: str | None = None,
) -> Mapping[str, Any]:
    """Create a Gemini batch.

    Args:
        requests: the bodies; see :func:`build_gemini_batch_requests`. Rows of its table work as well.
        model: Name of the model.
        api_key: The API key; by default that of the environment.
        api_version: Version of the API.
        display_name: Name of the batch.

    Returns:
        The batch.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_gemini_batch_requests(pair, "gemini-2.5-flash")
        >>> gemini_create_batch(requests, "gemini-2.5-flash")["metadata"]["state"]
        'BATCH_STATE_PENDING'
    """
    lines = [
        {"key": row.get("custom_id") or f"request-{n}", "request": row.get("request") or dict(row)}
        for n, row in enumerate(_rows(requests))
    ]
    endpoint = f"/{api_version}/models/{model.removeprefix('models/')}:batchGenerateContent"
    return _created("gemini", api_key, lines, display_name or "pairscale", model, endpoint, api_version=api_version)


@checked
def gemini_get_batch(batch_name: str, api_key: str | None = None, api_version: str = "v1beta") -> Mapping[str, Any]:
    """Where a Gemini batch stands: the batch as Gemini describes it.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_gemini_batch_requests(pair, "gemini-2.5-flash")
        >>> gemini_get_batch(gemini_create_batch(requests, "gemini-2.5-flash")["name"])["metadata"]["state"]
        'BATCH_STATE_RUNNING'
    """
    return _got("gemini", api_key, batch_name, api_version=api_version)


@checked
def gemini_poll_batch_until_complete(
    batch_name: str,
    interval_seconds: float = 60,
    timeout_seconds: float = 86_400,
    api_key: str | None = None,
    api_version: str = "v1beta",
    verbose: bool = True,
) -> Mapping[str, Any]:
    """Look at a Gemini batch until it has ended, or the time is over; the batch as it is then.

    Args:
        batch_name: such as ``batches/123``.
        interval_seconds: Seconds between two checks.
        timeout_seconds: Maximum seconds to wait; Gemini may take a day.
        api_key: The API key; by default ``GEMINI_API_KEY``.
        api_version: ``v1beta`` or ``v1``.
        verbose: Report the state of the batch in notices.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_gemini_batch_requests(pair, "gemini-2.5-flash")
        >>> name = gemini_create_batch(requests, "gemini-2.5-flash")["name"]
        >>> gemini_poll_batch_until_complete(name, interval_seconds=0.01, verbose=False)["metadata"]["state"]
        'BATCH_STATE_SUCCEEDED'
    """
    given = {"interval": interval_seconds, "timeout": timeout_seconds}
    return _polled("gemini", api_key, batch_name, **given, verbose=verbose, api_version=api_version)


@checked
def gemini_download_batch_results(
    batch: Mapping[str, Any] | str,
    requests_tbl: Table,
    output_path: str | os.PathLike[str],
    api_key: str | None = None,
    api_version: str = "v1beta",
) -> Path:
    """Write the results of a Gemini batch into a file, one JSON object a line, ``custom_id`` and ``result``.

    Args:
        batch: the batch, or its name.
        requests_tbl: ``custom_id`` in the order of the requests.
        output_path: the file.
        api_key: The API key; by default that of the environment.
        api_version: Version of the API.

    Returns:
        The file.

    Example:
        >>> import pairscale as ps
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> requests = ps.build_gemini_batch_requests(pair, "gemini-2.5-flash")
        >>> name = gemini_create_batch(requests, "gemini-2.5-flash")["name"]
        >>> batch = gemini_poll_batch_until_complete(name, interval_seconds=0.01, verbose=False)
        >>> gemini_download_batch_results(batch, requests, "gemini.jsonl").read_text("utf-8").count("custom_id")
        1
    """
    frame = requests_tbl if hasattr(requests_tbl, "get_column") else to_frame(requests_tbl, "requests_tbl")
    names: list[str] = frame["custom_id"].to_list()
    found = gemini_get_batch(batch, api_key, api_version) if isinstance(batch, str) else batch
    try:
        target, job = Path(output_path), GeminiBatches().job(found)
    except ProviderError as error:
        raise InputError(f"batch is none of Gemini's: {error.message}") from None
    if job.outputs:
        return _downloaded("gemini", api_key, job.id, target, api_version=api_version)
    write_inline(found, names, target)
    return target


def write_inline(batch: Mapping[str, Any], names: list[str], target: Path) -> None:
    """Write the results that stand in a Gemini batch itself, under the names of its requests.

    Raises:
        JudgeError: there are none.
        InputError: they are not as many as the names.
    """
    job, rows = GeminiBatches().job(batch), inline_responses(batch)
    if not rows:
        raise _nothing(job.id, job.state)
    if len(rows) != len(names):
        raise InputError(f"batch {job.id} has {len(rows):,} results, requests_tbl has {len(names):,} rows")
    with replacing(target, private=True) as temporary, temporary.open("w", encoding="utf-8") as file:
        for name, row in zip(names, rows, strict=True):
            file.write(json.dumps(result_line(name, row), ensure_ascii=False) + "\n")
