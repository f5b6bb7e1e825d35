"""The batch machine against simulated providers: everything comes back, whatever goes wrong on the way."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.batching import KEY, MODELS, expected, judge_of, pairs_of, simulator, with_manager

import pairscale as ps
from pairscale.batch import registry_table
from pairscale.core.errors import InputError, JudgeError
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import BatchLimits, batch_format
from pairscale.store.runfile import open_run

PROVIDERS = tuple(MODELS)


def whole(pairs, judge, **settings):
    async def work(desk):
        await desk.submit(pairs, judge, **settings)
        found = await desk.wait(interval=1)
        return found, *desk.results()

    return work


@pytest.mark.slow_except("openai")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_everything_comes_back(provider, tmp_path):
    pairs = pairs_of(9)
    with simulator() as server:
        found, results, failed = with_manager(
            tmp_path / "run.db", whole(pairs, judge_of(server, provider), n_segments=3)
        )
        assert server.batches.created == 3
    assert [entry.state for entry in found] == ["done"] * 3
    assert not any(entry.open for entry in found)
    both = pairs.select("ID1", "ID2").join(results, on=["ID1", "ID2"], maintain_order="left")
    assert both["better_id"].to_list() == expected(pairs)
    assert failed.height == 0
    assert results["model"].unique().to_list() == [MODELS[provider]]
    assert results["prompt_tokens"].null_count() == 0


@pytest.mark.slow_except("openai", "anthropic")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_live_and_batch_send_the_same_body_and_read_the_same_answer(provider, tmp_path):
    pairs = pairs_of(4)
    with simulator() as server:
        judge = judge_of(server, provider)
        live = ps.submit_pairs(pairs, judge, run=tmp_path / "live.db", progress=False).results
        sent = {}
        for entry in server.journal:
            sent[json.dumps(entry.body, sort_keys=True)] = entry
        found, results, _ = with_manager(tmp_path / "batch.db", whole(pairs, judge))
        lines = [json.loads(line) for line in Path(found[0].input_path).read_text("utf-8").splitlines()]
    inner = {"anthropic": "params", "gemini": "request"}.get(provider, "body")
    assert {json.dumps(line[inner], sort_keys=True) for line in lines} == set(sent)
    same = ["custom_id", "better_id", "content", "thoughts", "prompt_tokens", "completion_tokens", "outcome"]
    assert results.select(same).sort("custom_id").equals(live.select(same).sort("custom_id"))
    assert results["condition_id"][0] == live["condition_id"][0]
    if live["cost"].null_count() == 0:
        assert results["cost"].sum() == pytest.approx(live["cost"].sum() / 2)  # the discount of batches


@pytest.mark.slow
def test_both_orders_and_two_providers_in_one_run_file(tmp_path):
    pairs, run = pairs_of(5), tmp_path / "run.db"
    with simulator() as server:
        server.behaviour = ps_behaviour = type(server.behaviour)(quality=server.behaviour.quality, bias=1e6)
        with_manager(run, whole(pairs, judge_of(server, "anthropic", both_orders=True), batch_size=4))
        server.behaviour = type(ps_behaviour)(quality=ps_behaviour.quality)
        with_manager(run, whole(pairs, judge_of(server, "openai", both_orders=True), batch_size=4))
        with_manager(run, whole(pairs, judge_of(server, "openai")))
    with open_run(run) as store:
        counts = store.conditions().select("judge_id", "win", "flip").rows()
    assert counts == [("anthropic:claude-sonnet-4-5", 0, 10), ("openai:gpt-4.1", 10, 0), ("openai:gpt-4.1", 10, 0)]


async def waited(desk):
    """What is there once everything that was begun has ended."""
    await desk.wait(interval=1)
    return desk.results()[0]


# Splitting


@pytest.mark.slow_except("settings[036]*")
@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({"batch_size": 4}, [4, 4, 2]),
        ({"n_segments": 3}, [4, 3, 3]),
        ({"n_segments": 6}, [2, 2, 2, 2, 1, 1]),
        ({"n_segments": 12}, [1] * 10),
        ({"n_segments": 3, "limits": BatchLimits(2, 10**9)}, [2, 2, 2, 2, 2]),
        ({"limits": BatchLimits(3, 10**9)}, [3, 3, 3, 1]),
        ({"limits": BatchLimits(100, 9_000)}, None),
        ({}, [10]),
    ],
)
def test_splitting(tmp_path, settings, sizes, monkeypatch):
    pairs = pairs_of(5)
    settings = dict(settings)
    if "limits" in settings:
        monkeypatch.setattr(type(batch_format("openai")), "limits", settings.pop("limits"))
    with simulator() as server:
        found, results, _ = with_manager(tmp_path / "run.db", whole(pairs, judge_of(server), **settings))
    if sizes is None:
        assert len(found) > 1
        assert all(entry.bytes <= 9_000 for entry in found)
        assert all(Path(entry.input_path).stat().st_size == entry.bytes for entry in found)
    else:
        assert [len(entry.pair_ids) for entry in found] == sizes
    assert results.height == 10


def test_what_cannot_be_split_is_said(message_snapshot, tmp_path, monkeypatch):
    with simulator() as server:
        with monkeypatch.context() as small:
            small.setattr(type(batch_format("openai")), "limits", BatchLimits(10, 50))
            with pytest.raises(InputError) as refused:
                with_manager(tmp_path / "run.db", whole(pairs_of(3), judge_of(server)))
        message_snapshot(refused)
        with pytest.raises(InputError, match="not both"):
            with_manager(tmp_path / "run.db", whole(pairs_of(3), judge_of(server), batch_size=1, n_segments=2))
        ollama = judge_of(server, "openai")
        ollama.provider = "ollama"
        with pytest.raises(InputError, match="has no batches"):
            with_manager(tmp_path / "run.db", whole(pairs_of(3), ollama))


# What goes wrong


@pytest.mark.slow_except("*openai")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", [429, 500, "lost", "reset"])
def test_a_creation_that_fails_is_tried_again_and_never_doubled(provider, fault, tmp_path):
    pairs = pairs_of(5)
    with simulator(create_faults=[fault, fault] if fault == 429 else [fault]) as server:
        found, results, _ = with_manager(tmp_path / "run.db", whole(pairs, judge_of(server, provider)))
        assert server.batches.created == 1
    assert results.height == 10
    assert found[0].batch_id in server.batches.jobs


@pytest.mark.parametrize("provider", PROVIDERS)
def test_failures_in_looking_and_downloading_pass(provider, tmp_path):
    faults = {"look_faults": [500, "reset", 503, 502, 500, 500, 429], "download_faults": [500, "reset", 503]}
    with simulator(**faults) as server:
        _, results, _ = with_manager(tmp_path / "run.db", whole(pairs_of(5), judge_of(server, provider)))
    assert results.height == 10


@pytest.mark.parametrize("provider", ["openai", "gemini", "together"])
def test_failures_in_uploading_pass_and_the_batch_is_created_once(provider, tmp_path):
    with simulator(upload_faults=[500, "reset", 429]) as server:
        _, results, _ = with_manager(tmp_path / "run.db", whole(pairs_of(5), judge_of(server, provider)))
        assert server.batches.created == 1
        faults = [entry.fault for entry in server.journal if entry.method == "POST" and "files" in entry.path][:4]
    assert faults == ["500", "reset", "429", "ok"]
    assert results.height == 10


@pytest.mark.slow_except("*-openai")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("ends", ["expired", "cancelled", "failed"])
def test_a_batch_that_ends_early_gives_what_it_has_and_only_the_rest_is_submitted_again(provider, ends, tmp_path):
    if (provider, ends) == ("anthropic", "failed"):
        pytest.skip("its batches fail request by request")
    pairs, run = pairs_of(8), tmp_path / "run.db"
    with simulator(ends=[ends]) as server:
        found, results, failed = with_manager(run, whole(pairs, judge_of(server, provider)))
        assert found[0].state == ends
        got = results.height
        assert got == 0 if ends == "failed" else 0 < got < 28
        assert results.height + failed.height == 28

        async def again(desk):
            rest = desk.rest()
            new = await desk.resubmit()
            await desk.wait(interval=1)
            return rest, new, desk.rest(), *desk.results()

        rest, new, after, results, _ = with_manager(run, again)
        assert rest.height == 28 - got
        assert [len(entry.pair_ids) for entry in new] == [28 - got]
        code = {"expired": "timeout", "cancelled": "cancelled", "failed": "http_error"}[ends]
        if provider != "gemini":  # whose results do not tell one from the other
            assert rest["error_code"].unique().to_list() == [code]
        assert after.height == 0
        assert server.batches.created == 2
    assert results.height == 28
    assert results["custom_id"].n_unique() == 28


@pytest.mark.slow_except("openai")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_single_failures_unordered_results_and_bad_lines(provider, tmp_path, caplog):
    pairs, run = pairs_of(20), tmp_path / "run.db"
    with simulator(failing=0.3, gone=0.1, garbage=2) as server:
        found, results, failed = with_manager(run, whole(pairs, judge_of(server, provider)))
        lost = failed.height
        assert found[0].state == "partly"
        assert results.height + lost == 190
        assert 30 < lost < 110  # six standard deviations either way
        assert set(failed["error_code"]) == {"http_error", "parse_error"}
        assert "2 lines of the results cannot be read" in caplog.text
        server.batches.failing = server.batches.gone = 0.0

        async def again(desk):
            await desk.resubmit()
            return await waited(desk)

        results = with_manager(run, again)
    assert results["custom_id"].n_unique() == results.height == 190


def test_a_wrong_key_leaves_the_batch_to_be_created_later(tmp_path):
    run = tmp_path / "run.db"
    with simulator() as server:
        server.keys = ["right-key-12345"]
        with pytest.raises(JudgeError, match="401"):
            with_manager(run, whole(pairs_of(4), judge_of(server)))

        assert with_manager(run, waited, api_key="right-key-12345").height == 6
        assert server.batches.created == 1
    assert b"simulated-key-123" not in Path(run).read_bytes()
    assert b"right-key-12345" not in Path(run).read_bytes()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_key_in_what_the_provider_says_of_a_batch_is_written_nowhere(provider, tmp_path):
    run = tmp_path / "run.db"
    with simulator() as server:

        async def work(desk):
            await desk.submit(pairs_of(4), judge_of(server, provider))
            (job,) = server.batches.jobs.values()
            job.state, job.message = "failed", f"the key {KEY} may not do this"
            await desk.look()
            return desk.entries()[0], desk.status()

        entry, status = with_manager(run, work)
    if provider != "anthropic":  # which says nothing of a batch
        assert entry.message == status["message"][0] == "the key [key] may not do this"
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("provider", "status", "error"),
    [
        ("openai", 429, {"code": "insufficient_quota", "message": "You exceeded your current quota."}),
        ("anthropic", 400, {"type": "invalid_request_error", "message": "Your credit balance is too low."}),
        ("together", 402, {"message": "Nothing left."}),
    ],
)
def test_an_empty_account_leaves_the_batch_to_be_created_later(provider, status, error, tmp_path, monkeypatch):
    async def empty(_form, http, _draft):
        raise http._refused(status, {}, json.dumps({"error": error}).encode())

    with simulator() as server, monkeypatch.context() as poor:
        poor.setattr(type(batch_format(provider)), "create", empty)

        async def work(desk):
            with pytest.raises(JudgeError, match="resume once"):
                await desk.submit(pairs_of(4), judge_of(server, provider))
            poor.undo()
            return await waited(desk)

        assert with_manager(tmp_path / "run.db", work).height == 6
        assert server.batches.created == 1


@pytest.mark.parametrize("ended", [False, True])
def test_a_batch_that_the_provider_does_not_know_is_kept(tmp_path, ended, caplog):
    """It may be of another project, whose key this is not: nobody waits for it now, and the next call asks again."""
    run = tmp_path / "run.db"
    with simulator(looks=1) as server:

        async def work(desk):
            await desk.submit(pairs_of(4), judge_of(server))
            if ended:
                await desk.look()
            jobs = dict(server.batches.jobs)
            server.batches.jobs.clear()
            for _ in range(2):
                await desk.wait(interval=1)
            server.batches.jobs.update(jobs)
            return desk.entries(), desk.rest(), await desk.resubmit(), await desk.submit(pairs_of(4), judge_of(server))

        (entry,), rest, again, (_, more) = with_manager(run, work)
        assert (entry.open, entry.state) == (True, "done" if ended else "validating")
        assert (rest.height, again, more) == (0, [], [])  # its pairs are under way still
        assert caplog.text.count("openai does not know it; is this the key of the project that") == 1

        assert with_manager(run, waited).height == 6
        assert server.batches.created == 1


def test_anothers_batch_is_not_taken_for_ours(tmp_path):
    """Anthropic's carry no name: one of the same size, created meanwhile, is taken up, found out, and let go."""
    run = tmp_path / "run.db"
    with simulator() as server:
        other = judge_of(server, "anthropic", temperature=0.5)

        async def create(desk):
            await desk.submit(pairs_of(4), other)

        with_manager(tmp_path / "other.db", create)

        async def work(desk):
            desk._retries = 0
            server.batches.create_faults = ["ok", "reset"]
            with pytest.raises(JudgeError, match="resume once"):
                await desk.submit(pairs_of(4), judge_of(server, "anthropic"))
            desk._retries = 4
            found = await desk.wait(interval=1)
            return found, desk.results()[0]

        found, results = with_manager(run, work)
        assert server.batches.created == 2
    assert found[0].foreign == ["msgbatch_000001"]
    assert found[0].batch_id == "msgbatch_000002"
    assert results.height == 6


# Resuming


def test_submit_again_asks_only_what_is_neither_answered_nor_under_way(tmp_path):
    run = tmp_path / "run.db"
    with simulator() as server:

        async def work(desk):
            await desk.submit(pairs_of(4), judge_of(server))
            _, more = await desk.submit(pairs_of(5), judge_of(server))
            _, none = await desk.submit(pairs_of(5), judge_of(server))
            await desk.wait(interval=1)
            _, done = await desk.submit(pairs_of(5), judge_of(server))
            return more, none, done

        more, none, done = with_manager(run, work)
    assert [len(entry.pair_ids) for entry in more] == [4]
    assert none == done == []


def test_another_machine_has_other_folders(tmp_path):
    """Files go beside the run file when the folder that was written down is not there, and cannot be made."""
    run, moved = tmp_path / "one" / "run.db", tmp_path / "two" / "run.db"
    run.parent.mkdir()
    moved.parent.mkdir()
    with simulator() as server:

        async def submit(desk):
            await desk.submit(pairs_of(5), judge_of(server), n_segments=2)

        with_manager(run, submit)
        run.rename(moved)
        shutil.rmtree(run.parent)
        run.parent.write_text("not a folder")

        async def go_on(desk):
            found = await desk.wait(interval=1)
            return found, desk.results()[0]

        found, results = with_manager(moved, go_on)
        assert server.batches.created == 2
    assert results.height == 10
    assert {Path(entry.output_path).parent for entry in found} == {Path(f"{moved}.batches")}


def test_cancel(tmp_path):
    with simulator(looks=50) as server:

        async def work(desk):
            await desk.submit(pairs_of(6), judge_of(server))
            await desk.look()
            await desk.cancel()
            found = await desk.wait(interval=1)
            return found, *desk.results()

        found, results, failed = with_manager(tmp_path / "run.db", work)
    assert found[0].state == "cancelled"
    assert results.height + failed.height == 15
    assert set(failed["error_code"]) == {"cancelled"}


@pytest.mark.parametrize(("fault", "created", "state"), [("reset", 0, "dropped"), ("lost", 1, "cancelled")])
def test_cancelling_an_interrupted_creation_looks_for_it_and_creates_nothing(tmp_path, fault, created, state):
    with simulator(looks=50, create_faults=[fault]) as server:

        async def work(desk):
            desk._retries = 0
            with pytest.raises(JudgeError, match="resume once"):
                await desk.submit(pairs_of(4), judge_of(server))
            await desk.cancel()
            return await desk.wait(interval=1)

        found = with_manager(tmp_path / "run.db", work)
        assert server.batches.created == created
    assert found[0].state == state


def test_a_batch_that_will_not_be_cancelled_is_said_and_the_others_are(tmp_path):
    run = tmp_path / "run.db"
    with simulator(looks=50) as server:

        async def work(desk):
            await desk.submit(pairs_of(4), judge_of(server), n_segments=2)
            del server.batches.jobs["batch_000001"]
            await desk.cancel()
            return await desk.wait(interval=1)

        found = with_manager(run, work)
    assert [entry.state for entry in found] == ["dropped", "cancelled"]


@pytest.mark.slow_except("openai")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_that_describes_no_batch_does_not_end_the_waiting(provider, tmp_path, monkeypatch, caplog):
    """An empty reply, and one with a time that is none, come between those that can be read."""
    asked, plain = [], BatchHTTP.json

    async def json_of(http, method, path, *args, **more):
        found = await plain(http, method, path, *args, **more)
        if method != "GET":
            return found
        asked.append(path)
        about = found.get("metadata", found) if provider == "gemini" else found
        times = {"created_at": "yesterday", "createTime": "yesterday"}
        return {1: {}, 2: {**found, **times, **({"metadata": {**about, **times}} if about is not found else {})}}.get(
            len(asked), found
        )

    monkeypatch.setattr(BatchHTTP, "json", json_of)
    pairs = pairs_of(3)
    with simulator(looks=4) as server:
        found, results, _ = with_manager(tmp_path / "run.db", whole(pairs, judge_of(server, provider)))
        assert server.batches.created == 1
    assert [(entry.state, entry.open) for entry in found] == [("done", False)]
    assert results.height == pairs.height
    assert len(asked) > 3
    said = [record.getMessage() for record in caplog.records if "the reply cannot be read" in record.getMessage()]
    assert len(said) == 2
    assert "it has no " in said[0]
    assert "yesterday" in said[1]
    assert all(words.endswith("; it is asked again later") for words in said)


def test_status_and_registry(tmp_path):
    run = tmp_path / "run.db"
    with simulator(looks=9) as server:

        async def work(desk):
            await desk.submit(pairs_of(4), judge_of(server), batch_size=4)
            await desk.look()
            return desk.status(), registry_table(desk.entries())

        status, registry = with_manager(run, work)
    assert status.select("state", "pairs", "requests").rows() == [("running", 4, 4), ("running", 2, 2)]
    assert registry.columns == [
        "segment_index", "provider", "model", "batch_id", "batch_input_path", "batch_output_path", "csv_path",
        "pairs_path", "done", "results",
    ]  # fmt: skip
    assert registry["segment_index"].to_list() == [1, 2]
    assert registry["done"].to_list() == [False, False]
    assert isinstance(status, pl.DataFrame)
