"""The page of a run as it goes: what it says is in the run file, and it never writes there."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import pairscale as ps
from pairscale.judges.base import Verdict
from pairscale.people.watch import create_watch_app, look_at

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def run(tmp_path):
    texts = [{"ID": name, "text": name} for name in ("a", "bb", "ccc", "dddd", HOSTILE)]

    def judge(A, B, **_more):
        if {A["ID"], B["ID"]} == {"a", "bb"}:
            return {"is_valid": False, "Y": None, "invalid_reason": "no"}
        return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"])), "invalid_reason": None}

    path = tmp_path / "run.db"
    ps.adaptive_rank(texts, judge=judge, run=path, n_steps=20, fit_fn="laplace", progress="none")
    return str(path)


def test_it_says_how_the_run_stands(run):
    with ps.open_run(run) as store:
        moment, last = look_at(store), store.read_log("round_log")[-1]
        decided = store.results().filter(ps_win()).height
    tiles = {label: figure for figure, label in moment.tiles}
    assert tiles["decided comparisons"] == f"{decided}"
    assert tiles["EAP reliability, of 0.9"] == f"{last['reliability']:.3f}"
    assert [name for name, _ in moment.charts] == ["Progress", "Scores so far"]
    assert moment.top[0]["ID"] == HOSTILE
    assert [row["rank"] for row in moment.top] == [1, 2, 3, 4, 5]
    assert not moment.is_running
    assert moment.problems == [("refusal", int(tiles["without a valid answer"]))]


def test_lately_is_lately(tmp_path, monkeypatch):
    """Of six answers, all within the two minutes before, and none a day later; of the attempts, the last few."""
    from pairscale.people import watch

    said = iter([Verdict.fail("http_error", "x")] * 3 + [Verdict.abstain("no")] * 2 + [Verdict.win(1, cost=0.5)])
    judge = ps.FunctionJudge(lambda A, B: next(said), name="said")
    pairs = ps.make_pairs([{"ID": name, "text": name} for name in "abcd"])
    ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", progress=False, concurrency=1)
    with ps.open_run(tmp_path / "run.db") as store:
        last = datetime.fromisoformat(store.results()["received_at"].max())

        def tiles(now):
            return {label: figure for figure, label in look_at(store, now).tiles}

        assert tiles(last + timedelta(seconds=1))["answers per minute, lately"] == "3.0"
        later = tiles(last + timedelta(days=1))
        assert later["answers per minute, lately"] == "0.0"
        assert (later["spent"], later["decided comparisons"], later["without a valid answer"]) == ("$0.50", "1", "5")
        assert look_at(store).problems == [("http_error", 3), ("refusal", 2)]
        monkeypatch.setattr(watch, "_LATELY", 4)
        assert look_at(store).problems == [("refusal", 2), ("http_error", 1)]


def ps_win():
    import polars as pl

    return pl.col("outcome") == "win"


def test_hostile_ids_stay_text_and_nothing_else_may_run(run):
    answer = TestClient(create_watch_app(run), base_url="http://localhost").get("/")
    assert answer.status_code == 200
    assert HOSTILE not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert not re.search(r"https?://", answer.text)


def test_a_run_that_grows_is_seen_to_grow(tmp_path, monkeypatch):
    from pairscale.people import watch

    pairs = ps.make_pairs([{"ID": name, "text": name} for name in "abcd"])
    run = str(tmp_path / "run.db")
    first = lambda A, B: {"is_valid": True, "Y": 1, "invalid_reason": None}  # noqa: E731
    ps.submit_pairs(pairs.head(2), first, run=run, progress=False)
    monkeypatch.setattr(watch, "_SHORTEST_WAIT_S", 0)
    monkeypatch.setattr(watch, "_WAIT_FACTOR", 0)
    client = TestClient(create_watch_app(run), base_url="http://localhost")
    shown = [re.search(r"<b>(\d+)</b><span>decided", client.get("/now").text)[1]]
    ps.submit_pairs(pairs, first, run=run, progress=False)
    shown.append(re.search(r"<b>(\d+)</b><span>decided", client.get("/now").text)[1])
    assert shown == ["2", "6"]


def test_a_run_that_cannot_be_read_is_said_to_be_and_looked_for_again(run, tmp_path, monkeypatch):
    from pairscale.core.errors import StoreBusyError
    from pairscale.people import watch

    client = TestClient(create_watch_app(run), base_url="http://localhost")
    aside = Path(run).rename(tmp_path / "aside.db")
    for address in ("/", "/now"):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["refresh"]) == (503, "5")
        assert "<h1>Run</h1>" in answer.text
        assert "The run cannot be read now: " in answer.text
    aside.rename(run)
    assert client.get("/").status_code == 200

    def busy(_run):
        raise StoreBusyError("somebody <else> writes")

    monkeypatch.setattr(watch, "open_run", busy)
    answer = TestClient(create_watch_app(run), base_url="http://localhost").get("/")
    assert answer.status_code == 503
    assert "somebody &lt;else&gt; writes" in answer.text
    assert client.get("/nowhere").status_code == 404
    assert "<h1>Run</h1>" in client.get("/nowhere").text
