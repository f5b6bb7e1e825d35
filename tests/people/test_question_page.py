"""Runs that ask people on the page: pairs come from the engine, and ties are offered where the run counts them."""

import contextlib
import threading

import pytest
from labelling import Visitor, get

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.judges.human import HumanJudge
from pairscale.people import Address, serve_questions

TEXTS = [{"ID": f"gpt-secret-{n}", "text": f"Essay {n}: " + "word " * (n + 1)} for n in range(5)]


def longer(page: str) -> str:
    """Which of the two texts on a page is longer."""
    left, _, right = page.partition('id="text-2"')
    return "1" if left.count("word ") > right.count("word ") else "2"


@contextlib.contextmanager
def asking(path, *people, judge=None, **more):
    """A run of eight steps that asks people on the page: the judge, the site, the thread, and where its result goes."""
    judge, results = judge or HumanJudge(), []
    options = {"n_steps": 8, "seed": 2, "concurrency": 2, "timeout": None, "progress": "none", "fit_fn": "laplace"}
    page = serve_questions(judge.queue, people, trait=judge.trait, address=Address(port=0), linger=0)
    with page as site:
        run = threading.Thread(
            target=lambda: results.append(ps.adaptive_rank(TEXTS, judge=judge, run=path, **options, **more))
        )
        run.start()
        yield judge, site, run, results
        run.join(600)
        assert not run.is_alive()


@pytest.mark.slow
def test_two_people_answer_a_run(tmp_path):
    clarity = HumanJudge(ps.trait_description("clarity"))
    with asking(tmp_path / "run.db", "ann", "bob", judge=clarity) as (judge, site, run, results):
        with Visitor(site.links["ann"]) as ann, Visitor(site.links["bob"]) as bob:
            said, answered = [], 0
            while run.is_alive() and answered < 8:
                for person in (ann, bob):
                    person.open()
                    said.append(person.page)
                    if person.has_question and answered < 8:
                        assert person.send(choice=longer(person.page)).status_code == 200
                        answered += 1
            run.join(600)
            assert "The next pair is being chosen" in ann.open()
            judge.queue.close()
            assert "Done. Thank you!" in ann.open()
    everything = "".join(said)
    assert "gpt-secret" not in everything
    assert "Clarity" in everything
    assert judge.trait.description[:40] in everything
    for absent in ('value="tie"', 'id="undo"', "Undo"):
        assert absent not in everything
    (result,) = results
    assert result.state.engine.committed == 8
    assert result.items["ID"][0] == "gpt-secret-4"
    with ps.open_run(tmp_path / "run.db") as store:
        kept = store.results()
    assert (set(kept["model"]), set(kept["judge_id"])) == ({"ann", "bob"}, {"human"})
    assert kept["better_id"].to_list() == [max(pair) for pair in kept.select("ID1", "ID2").iter_rows()]


@pytest.mark.slow
def test_a_choice_is_forced_and_nothing_is_taken_back(tmp_path):
    with asking(tmp_path / "run.db", "ann") as (_, site, run, results), Visitor(site.links["ann"]) as ann:
        while not ann.has_question:
            ann.open()
        reply = ann.send(choice="tie")
        assert reply.status_code == 422
        assert "choose 1 or 2" in reply.text
        assert "please choose or write a reason" in ann.send("skip").text
        steps = 0
        while steps < 8 and run.is_alive():
            if ann.has_question:
                ann.send("skip", reason="I cannot tell which is better")
                steps += 1
            ann.open()
    (result,) = results
    assert result.state.engine.committed == 0
    assert result.state.invalid == 8


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"adaptive_config": {"ties": "half"}}, {"preset": "pairscale"}])
def test_a_run_that_counts_ties_offers_them(tmp_path, more):
    with asking(tmp_path / "run.db", "ann", **more) as (_, site, run, results), Visitor(site.links["ann"]) as ann:
        answered = 0
        while answered < 8 and run.is_alive():
            ann.open()
            if ann.has_question:
                assert 'value="tie"' in ann.page
                assert ann.send(choice=("tie", longer(ann.page))[answered % 2]).status_code == 200
                answered += 1
    (result,) = results
    assert result.logs["step_log"]["Y"].to_list().count(0.5) == 4
    assert (result.state.engine.committed, result.state.invalid) == (8, 0)


def test_addresses(tmp_path):
    judge = HumanJudge()
    with serve_questions(judge.queue, ["ann"], address=Address(port=0), linger=0) as site:
        assert get(f"{site.url}/owner/x").status_code == 404
        assert get(f"{site.url}/l/x").status_code == 404
        port = int(site.url.rpartition(":")[2])
        with (
            pytest.raises(InputError, match=r"name another --port"),
            serve_questions(HumanJudge().queue, ["bob"], address=Address(port=port)),
        ):
            pass
    assert not judge.queue.is_open
    for url in ("labels.example.org", "ftp://x.y", "https://x.y/path"):
        with pytest.raises(InputError, match="must look like"):
            Address(url=url)
