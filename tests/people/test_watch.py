"""The page of a run as it goes: what it says is in the run file, and it never writes there."""

import hashlib
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from labelling import make_cases
from starlette.testclient import TestClient

import pairscale as ps
from pairscale.core.errors import StoreError
from pairscale.judges.base import Verdict
from pairscale.people import Address, LabelStore, serve_run
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
    assert tiles["reliability, of 0.9"] == f"{last['reliability']:.3f}"
    assert [name for name, _ in moment.charts] == ["Progress", "Scores so far"]
    assert moment.top[0]["ID"] == HOSTILE
    assert [row["rank"] for row in moment.top] == [1, 2, 3, 4, 5]
    assert not moment.is_running
    assert moment.problems == [("refusal", int(tiles["without a valid answer"]))]


def test_an_embedded_judge_is_said_to_be_no_grading(run, tmp_path):
    said = '<p class="banner">Not for grading: lexical is the embedded baseline'
    texts = [{"ID": name, "text": f"{name} is a word."} for name in ("a", "bb", "ccc")]
    ps.submit_pairs(ps.make_pairs(texts), "lexical", run=tmp_path / "lexical.db", progress=False)
    apps = [create_watch_app(str(one)) for one in (tmp_path / "lexical.db", run)]
    pages = [TestClient(app, base_url="http://localhost").get("/").text for app in apps]
    assert [said in page for page in pages] == [True, False]


def test_labels_of_people_are_counted(run):
    cases = make_cases(3)
    with LabelStore(run, cases, labellers=["ann"], labels_per_case=2) as store:
        (ann,) = store.labellers()
        store.answer(ann, store.next(ann).question_id, "1")
    with ps.open_run(run) as store:
        assert ("1 of 6", "labels of people") in look_at(store).tiles


def test_a_look_does_not_read_the_whole_run(run, monkeypatch):
    from pairscale.store.runfile import RunFile

    def whole(*_more, **_options):
        raise AssertionError("all answers are read")

    for name in ("results", "failed_attempts", "items", "usage"):
        monkeypatch.setattr(RunFile, name, whole)
    with ps.open_run(run) as store:
        assert look_at(store).top


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


def test_what_is_for_the_head_stands_in_it(run):
    """In a body, no browser need heed a refresh."""
    page = TestClient(create_watch_app(run), base_url="http://localhost").get("/").text
    head, body = page.split("<body")
    for part in ('<noscript><meta http-equiv="refresh"', "/static/watch.css", "/static/watch.js"):
        assert part in head
        assert part not in body


def test_looking_changes_nothing(run):
    def digest():
        return hashlib.sha256(Path(run).read_bytes()).hexdigest()

    before = digest()
    client = TestClient(create_watch_app(run), base_url="http://localhost")
    assert client.get("/").status_code == client.get("/now").status_code == 200
    assert client.post("/").status_code == 405
    assert digest() == before


def test_a_run_that_grows_is_seen_to_grow(tmp_path, monkeypatch):
    from pairscale.people import watch

    pairs = ps.make_pairs([{"ID": name, "text": name} for name in "abcd"])
    run = str(tmp_path / "run.db")
    first = lambda A, B: {"is_valid": True, "Y": 1, "invalid_reason": None}  # noqa: E731
    ps.submit_pairs(pairs.head(2), first, run=run, progress=False)
    monkeypatch.setattr(watch, "_OFTENEST_S", 0)
    monkeypatch.setattr(watch, "_REST", 0)
    client = TestClient(create_watch_app(run), base_url="http://localhost")
    shown = [re.search(r"<b>(\d+)</b><span>decided", client.get("/now").text)[1]]
    ps.submit_pairs(pairs, first, run=run, progress=False)
    shown.append(re.search(r"<b>(\d+)</b><span>decided", client.get("/now").text)[1])
    assert shown == ["2", "6"]


def test_other_names_are_refused(run):
    assert TestClient(create_watch_app(run), base_url="http://evil.example").get("/").status_code == 400


def test_it_is_served(run):
    import urllib.request

    with serve_run(run, address=Address(port=0)) as url, urllib.request.urlopen(url) as answer:
        assert b"5 texts, ranked by" in answer.read()


def test_no_run_no_page(tmp_path):
    with pytest.raises(StoreError), serve_run(str(tmp_path / "none.db")):
        pass


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


def test_a_look_is_of_one_moment(tmp_path, monkeypatch):
    """Another writes between two things that are read."""
    from pairscale.people import watch

    pairs = ps.make_pairs([{"ID": name, "text": name} for name in "abcd"])
    run = str(tmp_path / "run.db")
    first = lambda A, B: {"is_valid": True, "Y": 1, "invalid_reason": None}  # noqa: E731
    plain = watch.adaptive_status

    def slow(store):
        found = plain(store)
        ps.submit_pairs(pairs, first, run=run, progress=False)
        return found

    ps.submit_pairs(pairs.head(2), first, run=run, progress=False)
    monkeypatch.setattr(watch, "adaptive_status", slow)
    with ps.open_run(run) as store:
        tiles = [{label: figure for figure, label in look_at(store).tiles} for _ in range(2)]
    assert [tile["decided comparisons"] for tile in tiles] == ["2", "6"]
