"""Real error replies of providers, live and in batches: which kind of failure each of them is.

The replies are in ``error_replies.json``, with where they come from.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import pairscale as ps
from pairscale.collect.batch.files import read_lines
from pairscale.core.errors import JudgeError
from pairscale.judges.batched import verdict_of_line
from pairscale.providers.batches import BATCH_PROVIDERS, batch_format

TABLE = json.loads(Path(__file__).with_name("error_replies.json").read_text("utf-8"))
REPLIES: list[dict[str, Any]] = TABLE["replies"]
LINES: list[dict[str, Any]] = TABLE["lines"]
IN_BATCHES = [row for row in REPLIES if row["provider"] in BATCH_PROVIDERS and isinstance(row["body"], dict)]
MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "together": "deepseek-ai/DeepSeek-V3",
    "ollama": "qwen3:32b",
    "compatible": "my-model",
}
PAIR = ps.JudgePair({"ID": "a", "text": "It rains."}, {"ID": "b", "text": "Rain."}, "a:b#1")


def named(rows: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that gives reply 17 to every request under ``/17``."""
    started: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def reply(request: web.Request) -> web.Response:
        row = REPLIES[int(request.match_info["number"])]
        is_text = isinstance(row["body"], str)
        return web.Response(
            status=row["status"],
            headers=row["headers"],
            text=row["body"] if is_text else json.dumps(row["body"]),
            content_type="text/html" if is_text else "application/json",
        )

    async def serve() -> None:
        app, stop = web.Application(), asyncio.Event()
        app.router.add_route("*", "/{number}/{rest:.*}", reply)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        started.set_result((runner.addresses[0][1], asyncio.get_running_loop(), stop))
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    port, loop, stop = started.result()
    yield f"http://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def judge_of(row: dict[str, Any], base_url: str) -> ps.LLMJudge:
    settings = {"base_url": base_url, "api_key": "a-key-of-these-tests", "cache": False}
    if "endpoint" in row:
        settings["endpoint"] = row["endpoint"]
    judge = ps.make_judge(f"{row['provider']}:{MODELS[row['provider']]}", judge_args=settings)
    assert isinstance(judge, ps.LLMJudge)
    return judge


def test_the_table_is_large_and_each_reply_says_where_it_is_from() -> None:
    assert len(REPLIES) > 100
    assert len({row["name"] for row in REPLIES}) == len(REPLIES)
    assert all(row["origin"].startswith("https://") for row in REPLIES + LINES)
    for provider in MODELS:
        kinds = {row["failure"] for row in REPLIES if row["provider"] == provider}
        assert kinds == {"transient", "question", "judge"}, provider


@pytest.mark.slow_except("anthropic*", "azure*", "ollama*")
@named(REPLIES)
def test_live(row: dict[str, Any], url: str, tmp_path: Path) -> None:
    """Through the runtime, into the run file: a failure of the judge ends the call, every other one does not."""
    run = tmp_path / "run.db"
    judge = judge_of(row, f"{url}/{REPLIES.index(row)}")
    pairs = [{"ID1": "a", "text1": "It rains.", "ID2": "b", "text2": "Rain."}]
    ended = False
    try:
        ps.submit_pairs(pairs, judge, run=run, retries=0, progress=False)
    except JudgeError:
        ended = True
    with ps.open_run(run) as store:
        (attempt,) = store.failed_attempts().to_dicts()
    assert attempt["failure"] == row["failure"], attempt["error_message"]
    assert (attempt["error_code"] == "content_filter") == row["filtered"]
    assert ended == (row["failure"] == "judge")
    assert json.loads(attempt["raw_response"]) == row["body"]
    if row["status"] != 200:
        assert attempt["status_code"] == row["status"]


def line_of(row: dict[str, Any]) -> dict[str, Any]:
    """A reply as it stands in the results of a batch."""
    body, provider = row["body"], row["provider"]
    if provider in {"openai", "together"}:
        response = {"status_code": row["status"], "request_id": "r", "body": body}
        return {"id": "batch_req_1", "custom_id": "ID", "response": response, "error": None}
    if provider == "anthropic":
        return {"custom_id": "ID", "result": {"type": "errored", "error": body}}
    return {"key": "ID", "error": body["error"]}


def verdict_in(row: dict[str, Any], document: dict[str, Any], folder: Path) -> ps.Verdict:
    """The verdict in a file of results with one line."""
    file = folder / "results.jsonl"
    file.write_text(json.dumps(document) + "\n", "utf-8")
    (line,) = read_lines(file, batch_format(row["provider"]))
    assert not isinstance(line, str), line
    return verdict_of_line(judge_of(row, "http://127.0.0.1:9"), PAIR, line)


@named(IN_BATCHES)
def test_in_a_batch(row: dict[str, Any], tmp_path: Path) -> None:
    verdict = verdict_in(row, line_of(row), tmp_path)
    assert verdict.failure == row["failure"], verdict.error_message
    assert (verdict.error_code == "content_filter") == row["filtered"]
    assert verdict.raw_response


@named(LINES)
def test_a_line_of_a_batch(row: dict[str, Any], tmp_path: Path) -> None:
    verdict = verdict_in(row, row["line"], tmp_path)
    assert verdict.failure == row["failure"], verdict.error_message
    assert (verdict.error_code == "content_filter") == row["filtered"]
    assert verdict.error_message
