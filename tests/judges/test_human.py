"""People as a judge: the queue, and runs whose questions they answer."""

import asyncio
import random
import threading

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.judges.human import HumanJudge, QuestionQueue

PAIR = ps.JudgePair({"ID": "gpt-a", "text": "one"}, {"ID": "b", "text": "two"})


def asked(queue: QuestionQueue, *steps, pairs: int = 1) -> list[ps.Verdict]:
    """Put questions on a queue, do the steps in another thread, and give the verdicts."""

    async def main() -> list[ps.Verdict]:
        questions = [asyncio.ensure_future(queue.ask(PAIR)) for _ in range(pairs)]
        await asyncio.sleep(0)
        for step in steps:
            await asyncio.to_thread(step)
        return list(await asyncio.wait_for(asyncio.gather(*questions), 600))

    return asyncio.run(main())


def test_nobody_is_there(message_snapshot):
    with pytest.raises(JudgeError) as refused:
        ps.submit_pairs(ps.make_pairs([{"ID": "a", "text": "x"}, {"ID": "b", "text": "y"}]), "human", progress=False)
    message_snapshot(refused)
    for people in ([], ["ann", "ann"]):
        with pytest.raises(InputError, match="name a labeller"):
            QuestionQueue().open(people)


def test_an_answer_and_what_is_kept_of_it():
    now = [10.0]
    queue = QuestionQueue(clock=lambda: now[0])
    queue.open(["ann"])

    def answer():
        question = queue.take("ann")
        assert (question.first, question.second) == ("one", "two")
        assert "gpt-a" not in repr(question)
        now[0] += 3.5
        assert queue.answer("ann", question.number, "2", comment="clearer", elapsed_ms=1500)
        assert not queue.answer("ann", question.number, "1")

    (verdict,) = asked(queue, answer)
    assert (verdict.winner_pos, verdict.model, verdict.content, verdict.latency_s) == (2, "ann", "clearer", 1.5)
    assert verdict.raw_response == {"labeller": "ann", "comment": "clearer", "skips": {}, "decision_ms": 1500}
    assert queue.answered() == queue.answered("ann") == 1


def test_one_question_is_before_one_person_at_a_time():
    now = [0.0]
    queue = QuestionQueue(hold=60, clock=lambda: now[0])
    queue.open(["ann", "bob"])

    def work():
        mine = queue.take("ann")
        assert queue.take("ann") == mine
        other = queue.take("bob")
        assert other != mine
        assert not queue.answer("bob", mine.number, "1")  # not theirs
        assert queue.answer("bob", other.number, "1")
        assert queue.take("bob") is None
        now[0] = 61.0
        assert queue.take("bob") == mine  # ann has said nothing for a minute
        assert not queue.answer("ann", mine.number, "1")
        assert queue.answer("bob", mine.number, "2")

    assert sorted(verdict.winner_pos for verdict in asked(queue, work, pairs=2)) == [1, 2]


def test_skips_go_to_others_and_end_as_an_abstention():
    queue = QuestionQueue()
    queue.open(["ann", "bob"])

    def skip(person, reason):
        question = queue.take(person)
        assert queue.answer(person, question.number, None, skipped=reason)
        assert queue.take(person) is None

    (verdict,) = asked(queue, lambda: skip("ann", "too long"), lambda: skip("bob", "in Greek"))
    assert verdict.outcome is ps.Outcome.ABSTENTION
    assert verdict.error_message == "ann: too long; bob: in Greek"
    assert not queue.answer("ann", 99, None, skipped="what?")


def test_the_condition_is_what_was_asked():
    plain, clarity = ps.make_judge("human"), ps.make_judge("human", trait="clarity")
    assert isinstance(plain, HumanJudge)
    assert plain.condition == HumanJudge().condition
    assert plain.condition.condition_id != clarity.condition.condition_id
    assert (clarity.condition.judge_id, clarity.condition.trait) == ("human", "clarity")
    own = ps.make_judge("human", trait=ps.Trait("Warmth", "How warm it is."))
    assert own.condition.trait == "Warmth"
    with pytest.raises(InputError, match="'port'"):
        ps.make_judge("human", judge_args={"port": 1})


def test_people_rank_texts_adaptively(tmp_path):
    """Two who prefer the longer text, one of whom skips now and then; the run file holds who said what."""
    texts = [{"ID": f"t{n}", "text": "word " * (n + 1)} for n in range(6)]
    judge = HumanJudge()
    judge.queue.open(["ann", "bob"])
    stop = threading.Event()

    def person(name: str) -> None:
        rng = random.Random(name)
        while not stop.is_set():
            question = judge.queue.take(name, 0.2)
            if question is None:
                continue
            if name == "bob" and rng.random() < 0.2:
                judge.queue.answer(name, question.number, None, skipped="cannot tell")
            else:
                longer = "1" if len(question.first) > len(question.second) else "2"
                judge.queue.answer(name, question.number, longer)

    people = [threading.Thread(target=person, args=(name,)) for name in ("ann", "bob")]
    for one in people:
        one.start()
    try:
        result = ps.adaptive_rank(
            texts, judge=judge, n_steps=15, seed=1, concurrency=2, timeout=None, progress="none", fit_fn="laplace",
            run=tmp_path / "run.db",
        )  # fmt: skip
    finally:
        stop.set()
        for one in people:
            one.join()
    assert result.state.engine.committed == 15
    with ps.open_run(tmp_path / "run.db") as store:
        kept = store.results()
    assert kept.height == 15
    assert set(kept["model"]) <= {"ann", "bob"}  # who is quicker may answer all of them
    assert set(kept["judge_id"]) == {"human"}
    lengths = {row["ID"]: len(row["text"]) for row in texts}
    for row in kept.iter_rows(named=True):
        assert row["better_id"] == max(row["ID1"], row["ID2"], key=lengths.get)
