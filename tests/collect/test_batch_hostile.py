"""Providers that give other results than those that were asked for, none, too many, or never an end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.batching import KEY, MODELS, expected, judge_of, pairs_of, simulator, with_manager

from pairscale.collect.batch import manager
from pairscale.providers import batches
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import Draft, batch_format
from pairscale.providers.catalog import provider_named
from pairscale.providers.client import LLMClient, ProviderError

PROVIDERS = tuple(MODELS)


@pytest.fixture
def served(monkeypatch) -> Callable[[Callable[[bytes, int], bytes]], None]:
    """Replaces what providers give as results; the second argument counts the downloads from 1."""
    fetch = BatchHTTP.fetch

    def change(made: Callable[[bytes, int], bytes]) -> None:
        turns = iter(range(1, 1000))

        async def changed(self, path, target, most, **more):
            await fetch(self, path, target, most, **more)
            target.write_bytes(made(target.read_bytes(), next(turns)))

        monkeypatch.setattr(BatchHTTP, "fetch", changed)

    return change


def asked(pairs, judge):
    async def work(desk):
        await desk.submit(pairs, judge)
        found = await desk.wait(interval=1, timeout=40)
        return found, *desk.results()

    return work


def of_others(results: bytes, _turn: int) -> bytes:
    """The results of a batch that somebody else has sent."""
    rows = [json.loads(line) for line in results.splitlines()]
    name = "key" if "key" in rows[0] else "custom_id"
    return b"".join(json.dumps(row | {name: f"task-{n}"}).encode() + b"\n" for n, row in enumerate(rows))


NO_RESULTS = {
    "a page": lambda _results, _turn: b"<html><body>Sign in to the network</body></html>\n",
    "nothing": lambda _results, _turn: b"",
    "not text": lambda _results, _turn: b"\xff\xfe\x00" * 50,
    "of others": of_others,
}


@pytest.mark.slow_except("a page-openai", "of others-anthropic")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", NO_RESULTS)
def test_what_holds_no_result_is_none_and_nothing_is_paid_twice(provider, kind, served, tmp_path, caplog):
    run, pairs = tmp_path / "run.db", pairs_of(4)
    with simulator() as server:
        served(NO_RESULTS[kind])
        found, results, failed = with_manager(run, asked(pairs, judge_of(server, provider)))
        assert (server.batches.created, results.height, failed.height) == (1, 0, 0)
        assert found[0].open
        assert "holds none of its requests; it is kept, and tried again later" in caplog.text
        served(lambda results, _turn: results)

        async def later(desk):
            await desk.wait(interval=1)
            return desk.results()[0]

        results = with_manager(run, later)
        assert server.batches.created == 1
    assert sorted(results["better_id"]) == sorted(expected(pairs))


@pytest.mark.slow
def test_results_that_never_come_can_be_given_up(served, tmp_path):
    with simulator() as server:
        served(NO_RESULTS["a page"])

        async def work(desk):
            _, made = await desk.submit(pairs_of(4), judge_of(server))
            await desk.wait(interval=1, timeout=40)
            await desk.cancel([made[0].key])
            found = await desk.wait(interval=1, timeout=40)
            return found, desk.rest()

        found, rest = with_manager(tmp_path / "run.db", work)
    assert not found[0].open
    assert rest["error_message"].unique().to_list() == ["given up: its results could not be had"]


@pytest.mark.parametrize("provider", ["openai", pytest.param("together", marks=pytest.mark.slow)])
def test_results_that_are_cut_off_are_downloaded_again(provider, served, tmp_path):
    pairs = pairs_of(5)
    with simulator() as server:
        served(lambda results, turn: results[: len(results) // 2] if turn == 1 else results)
        _, results, failed = with_manager(tmp_path / "run.db", asked(pairs, judge_of(server, provider)))
    assert (results.height, failed.height) == (10, 0)
    assert sorted(results["better_id"]) == sorted(expected(pairs))


def turned_over(results: bytes) -> bytes:
    return results.replace(b"SAMPLE_1<", b"SAMPLE_0<").replace(b"SAMPLE_2<", b"SAMPLE_1<").replace(b"_0<", b"_2<")


@pytest.mark.slow_except("openai")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_second_results_and_those_of_others_are_not_used(provider, served, tmp_path):
    pairs = pairs_of(4)
    with simulator() as server:
        served(lambda results, turn: b"\n".join((results, turned_over(results), of_others(results, turn))))
        _, results, failed = with_manager(tmp_path / "run.db", asked(pairs, judge_of(server, provider)))
    assert sorted(results["better_id"]) == sorted(expected(pairs))
    assert failed.height == 0


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_a_list_of_batches_without_an_end(message_snapshot, provider, monkeypatch):
    rows = [{"id": "b1", "name": "batches/1", "created_at": None}]
    asked = []

    async def same(_http, _method, path, **_more):
        asked.append(path)
        return {"data": rows, "operations": rows, "has_more": True, "nextPageToken": "t"}

    monkeypatch.setattr(BatchHTTP, "json", same)
    monkeypatch.setattr(batches, "_PAGES", 3)

    async def work():
        http = BatchHTTP(LLMClient(provider_named(provider), api_key=KEY))
        return await batch_format(provider).find(http, Draft("ps1", "m", "/v1", Path("x"), 1, 0.0), set())

    with pytest.raises(ProviderError) as refused:
        asyncio.run(work())
    message_snapshot(refused)
    assert len(asked) == 3


def test_results_without_an_end_fill_no_disk(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(manager, "_RESULTS", 10)
    monkeypatch.setattr(manager, "_RESULT", 10)
    with simulator() as server:
        found, _, _ = with_manager(tmp_path / "run.db", asked(pairs_of(4), judge_of(server)), retries=1)
    assert found[0].open
    assert "the answer is larger than 70 bytes; it is asked again later" in caplog.text
    assert [path.suffix for path in (tmp_path / "run.db.batches").iterdir()] == [".jsonl"]
