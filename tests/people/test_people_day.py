"""Colleagues judge a class: what they may change, who pauses or leaves, the owner's page, and links that live on."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import polars as pl
import pytest
from labelling import Visitor, form_of, make_cases

import pairscale as ps
from pairscale.checks.people import people_table
from pairscale.people import LabelStore
from pairscale.people.overview import expected_comparisons
from pairscale.people.queue import LabelQuestion, LiveQuestions
from pairscale.store.runfile import open_run

SIX = ("ann", "bob", "cem", "dora", "eva", "finn")


@pytest.fixture
def store(tmp_path):
    with LabelStore(tmp_path / "labels.db", make_cases(8), labellers=["ann", "bob"], labels_per_case=1) as opened:
        yield opened


def answer(store, labeller, choice="1"):
    question = store.next(labeller)
    assert store.answer(labeller, question.question_id, choice, elapsed_ms=0)
    return question


def test_each_of_the_last_five_answers_can_be_changed(store):
    ann, _ = store.labellers()
    asked = [answer(store, ann, choice) for choice in ("1", "2", "tie", "1", "2", "1")]
    recent = store.recent(ann)
    assert [row.question_id for row in recent] == [question.question_id for question in asked[:0:-1]]
    assert [row.choice for row in recent] == ["1", "2", "1", "tie", "2"]
    assert recent[-1].left == asked[1].left[:60]
    assert not store.undo(ann, asked[0].question_id)  # the sixth is too long ago
    assert store.undo(ann, asked[2].question_id)
    assert store.next(ann) == asked[2]
    assert store.answer(ann, asked[2].question_id, "1")
    assert len(store.run.labels()) == 6
    assert [row.choice for row in store.recent(ann)] == ["1", "1", "2", "1", "2"]


def test_who_is_paused_is_not_asked_and_holds_nothing(store):
    ann, bob = store.labellers()
    held = store.next(ann)
    store.pause(ann)
    assert store.next(ann) == "paused"
    for _ in range(8):  # the case that ann held, too
        answer(store, bob)
    assert store.next(bob) == "done"
    store.pause(ann, paused=False)
    assert store.paused() == []
    assert store.answer(ann, held.question_id, "1")  # a label that comes later still counts


def test_who_withdraws_leaves_their_cases_to_others(store):
    ann, bob = store.labellers()
    for _ in range(5):
        answer(store, ann)
    answer(store, bob)
    assert store.withdraw(ann) == 5
    assert store.totals() == (1, 8)
    assert store.run.labels()["labeller"].to_list() == ["bob"]
    assert store.next(ann) == "paused"
    for _ in range(7):
        answer(store, bob)
    assert store.totals() == (8, 8)
    store.close()
    with open_run(store.name) as kept:
        assert ps.audit(kept.name).problems == ()
        assert len(kept.labels()) == 8


def test_the_owner_pauses_and_withdraws_on_the_page(serve):
    store, site = serve(make_cases(4), labels_per_case=1)
    with Visitor(site.links["ann"]) as ann:
        ann.send(choice="1")
        with httpx.Client(base_url=site.url, follow_redirects=True, timeout=600) as owner:
            page = owner.get(site.owner).text
            csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
            for action, form in (("pause", {"labeller": 1, "paused": "true"}), ("withdraw", {"labeller": 1})):
                assert owner.post(f"{site.owner}/{action}", data=form | {"csrf": "no"}).status_code == 403
                reply = owner.post(f"{site.owner}/{action}", data=form | {"csrf": csrf})
                assert "(paused)" in reply.text
            assert owner.post(f"{site.owner}/pause", data={"labeller": 9, "paused": 1, "csrf": csrf}).status_code == 404
        assert "has paused your part" in ann.open()
    assert store.totals() == (0, 4)


def test_an_earlier_answer_is_changed_on_the_page(serve):
    store, site = serve(make_cases(4), people=["ann"], labels_per_case=1)
    with Visitor(site.links["ann"]) as ann:
        first = form_of(ann.page, "answer")[1]["question"]
        ann.send(choice="1")
        ann.send(choice="2")
        assert ann.page.count("was better than") == 2
        ann.send("undo", question=first)
        assert form_of(ann.page, "answer")[1]["question"] == first
        assert "Taken back" in ann.page
    assert len(store.run.labels()) == 1


def test_the_table_of_people_names_who_guesses():
    essays = [{"ID": f"t{n}", "text": f"Text {n}.", "theta_true": n / 2 - 3} for n in range(13)]
    pairs = ps.sample_pairs(ps.make_pairs(essays), n_pairs=60, seed=1)
    people = {name: ps.SimulatedJudge("theta_true", seed=at) for at, name in enumerate(SIX)}
    people["finn"] = ps.SimulatedJudge("theta_true", lapse=1.0, seed=9)
    tables = [
        ps.submit_pairs(pairs, judge, progress=False).results.with_columns(
            model=pl.lit(name), latency_s=float(at), received_at=pl.lit("2026-11-19T08:00:00")
        )
        for at, (name, judge) in enumerate(people.items())
    ]
    table = people_table(pl.concat(tables))
    rows = {row["person"]: row for row in table.iter_rows(named=True)}
    assert table["comparisons"].to_list() == [60] * 6
    assert [rows[name]["seconds"] for name in SIX] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert {name for name, row in rows.items() if row["misfit"]} == {"finn"}
    assert rows["finn"]["agreement"] < 0.6 < min(rows[name]["agreement"] for name in SIX[:5])
    few = people_table(pl.concat(tables).head(4))
    assert few.select("comparisons", "agreement", "infit").row(0) == (4, None, None)


def test_how_many_there_will_be():
    assert expected_comparisons(30, 0, None, 0.9) == 270
    assert expected_comparisons(30, 100, 0.75, 0.9) == 300
    assert expected_comparisons(30, 400, 0.95, 0.9) == 400  # never fewer than there are


def test_links_of_a_run_are_the_same_when_it_is_resumed(tmp_path):
    run = tmp_path / "run.db"
    links = []
    for people in (["ann", "bob"], ["ann", "bob", "cem"]):
        queue = ps.HumanJudge().queue
        with LiveQuestions(queue, people, asking=run) as questions:
            links.append([labeller.token for labeller in questions.labellers()] + [questions.owner_token])
    assert links[1][:2] == links[0][:2]
    assert links[1][-1] == links[0][-1]
    assert len({*links[0], *links[1]}) == 4
    assert run.stat().st_mode & 0o077 == 0


class RankedByPeople:
    """`pairscale rank --judge human` in a process of its own, on one port, that can be killed and started again."""

    def __init__(self, folder, n_texts):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        essays = folder / "essays"
        essays.mkdir()
        for n in range(n_texts):
            (essays / f"essay{n:02}.txt").write_text("word " * (10 + n), "utf-8")
        self.run, self.log, self.folder = folder / "class.db", folder / "log.txt", folder
        self.process = None

    def start(self, most):
        command = [sys.executable, "-m", "pairscale", "rank", "essays", "--judge", "human", "--run", str(self.run)]
        command += ["--labellers", ",".join(SIX), "--port", str(self.port), "--max-comparisons", str(most)]
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [*command, "--fit", "laplace"], cwd=self.folder, stderr=said, stdout=subprocess.DEVNULL
            )
        while "finn" not in self.log.read_text("utf-8"):
            assert self.process.poll() is None, self.log.read_text("utf-8")
            time.sleep(0.05)
        return dict(re.findall(r"^  (\w+) +(http\S+)$", self.log.read_text("utf-8"), re.MULTILINE))

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(600)

    def answered(self):
        with open_run(self.run) as store:
            return sum(step["status"] == "committed" for step in store.read_log("step_log"))


def longer(page):
    left, _, right = page.partition('id="text-2"')
    return "1" if left.count("word ") > right.count("word ") else "2"


def settled(page):
    """The page as it is when it is not being replaced; one without a question looks again by itself."""
    sync_api = pytest.importorskip("playwright.sync_api")
    while True:
        try:
            return page.content()
        except sync_api.Error as error:
            if "navigat" not in str(error):
                raise


@pytest.mark.slow
def test_a_day_with_six_people_a_restart_and_a_kill(tmp_path, browser):
    served = RankedByPeople(tmp_path, 12)
    try:
        links = served.start(90)
        assert list(links) == ["owner", *SIX]
        context = browser.new_context()
        context.set_default_timeout(600_000)
        pages = {name: context.new_page() for name in SIX}
        for name, page in pages.items():
            page.goto(links[name])
        done = 0

        def work(until):
            nonlocal done
            while done < until:
                for page in pages.values():
                    content = settled(page)
                    if 'id="answer"' in content:
                        with page.expect_navigation():
                            page.keyboard.press(longer(content))
                        done += 1
                        if done == until:
                            return
                    elif "Done. Thank you!" in content:
                        return
                    else:
                        page.reload()

        work(25)
        owner = context.new_page()
        owner.goto(links["owner"])
        assert "about" in owner.inner_text(".lead")
        assert len(owner.query_selector_all("tbody tr")) == 6
        served.stop(signal.SIGINT)
        kept = served.answered()
        assert kept == 25
        assert served.start(90) == links
        for page in (owner, *pages.values()):
            page.reload()
        work(55)
        time.sleep(0.2)
        served.stop(signal.SIGKILL)
        assert served.answered() >= 54  # the last answer may have been on its way to the disk
        done = served.answered()
        assert served.start(90) == links
        for page in (owner, *pages.values()):
            page.reload()
        work(65)
        served.stop(signal.SIGINT)
        table = ps.read_results(served.run)
        assert set(table["model"]) == set(SIX)
        assert table.filter(pl.col("outcome") == "win").height == served.answered() == done
        assert ps.audit(served.run).problems == ()
    finally:
        with contextlib.suppress(ProcessLookupError):
            served.process.kill()


def test_the_report_names_the_people_who_judged(tmp_path):
    texts = [{"ID": f"t{n}", "text": "word " * (n + 1)} for n in range(5)]
    run = tmp_path / "run.db"
    judge = ps.HumanJudge()
    judge.queue.open(["ann", "bob"])
    with LiveQuestions(judge.queue, ["ann", "bob"]) as questions:
        ranking = threading.Thread(
            target=ps.rank, args=(texts,), kwargs={"judge": judge, "run": run, "max_comparisons": 8, "progress": False}
        )
        ranking.start()
        while ranking.is_alive():
            for person in questions.labellers():
                question = questions.next(person)
                if isinstance(question, LabelQuestion):
                    longer_side = "1" if len(question.left) > len(question.right) else "2"
                    questions.answer(person, question.question_id, longer_side)
        ranking.join(600)
    page = ps.report(run, out=tmp_path / "page.html").read_text("utf-8")
    assert "were ranked by 2 people in 8 comparisons" in page
    assert re.search("Judged by (ann and bob|bob and ann)<", page)
    assert "<td>ann</td>" in page
    shared = ps.report(run, out=tmp_path / "shared.html", pseudonyms=True).read_text("utf-8")
    assert re.search("Judged by (L1 and L2|L2 and L1)<", shared)
    assert "bob" not in shared
