"""People as a judge: the queue, and runs whose questions they answer."""

import asyncio
import time

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.judges.human import HumanJudge, QuestionQueue
from pairscale.people.queue import LabelProgress, LiveQuestions

PAIR = ps.JudgePair({"ID": "gpt-a", "text": "one"}, {"ID": "b", "text": "two"})


def asked(work, people=("ann", "bob"), pairs: int = 1, clock=time.time) -> list[ps.Verdict]:
    """Put questions on a queue, do the work in another thread, and give the verdicts."""
    queue = QuestionQueue()

    async def main() -> list[ps.Verdict]:
        questions = [asyncio.ensure_future(queue.ask(PAIR)) for _ in range(pairs)]
        await asyncio.sleep(0)
        with LiveQuestions(queue, people) as page:
            page._clock = clock
            await asyncio.to_thread(work, page, *page.labellers())
        return list(await asyncio.wait_for(asyncio.gather(*questions), 600))

    queue.open(people)
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

    def work(page, ann):
        question = page.next(ann)
        assert (question.left, question.right) == ("one", "two")
        assert "gpt-a" not in repr(question)
        now[0] += 3.5
        with pytest.raises(InputError, match="no ties"):
            page.answer(ann, question.question_id, "tie")
        assert page.answer(ann, question.question_id, "2", comment="clearer", elapsed_ms=1500)
        assert not page.answer(ann, question.question_id, "1")
        assert not page.undo(ann)
        assert page.progress(ann) == LabelProgress(1, 1, None)

    (verdict,) = asked(work, ["ann"], clock=lambda: now[0])
    assert (verdict.winner_pos, verdict.model, verdict.content, verdict.latency_s) == (2, "ann", "clearer", 1.5)
    assert verdict.raw_response == {"labeller": "ann", "comment": "clearer", "skips": {}, "decision_ms": 1500}


def test_one_question_is_before_one_person_at_a_time():
    now = [0.0]

    def work(page, ann, bob):
        mine = page.next(ann)
        assert page.next(ann) == mine
        other = page.next(bob)
        assert other.case_id != mine.case_id
        assert page.answer(bob, other.question_id, "1")
        assert page.next(bob) == "waiting"
        now[0] = 601.0
        late = page.next(bob)  # ann has said nothing for ten minutes
        assert late.case_id == mine.case_id
        assert page.answer(bob, late.question_id, "2")
        assert page.answer(ann, mine.question_id, "1")  # kept, and too late to count

    assert [verdict.winner_pos for verdict in asked(work, pairs=2, clock=lambda: now[0])] == [2, 1]


def test_skips_go_to_others_and_end_as_an_abstention():
    def work(page, ann, bob):
        for person, reason in ((ann, "too long"), (bob, "in Greek")):
            assert page.answer(person, page.next(person).question_id, None, skipped=reason)
            assert page.next(person) == "waiting"

    (verdict,) = asked(work)
    assert verdict.outcome is ps.Outcome.ABSTENTION
    assert verdict.error_message == "ann: too long; bob: in Greek"


def test_a_question_that_is_given_up_is_not_shown():
    queue = QuestionQueue()
    queue.open(["ann"])

    async def main():
        with LiveQuestions(queue, ["ann"]) as page:
            (ann,) = page.labellers()
            given_up = asyncio.ensure_future(queue.ask(PAIR))
            await asyncio.sleep(0)
            shown = await asyncio.to_thread(page.next, ann)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            question = asyncio.ensure_future(queue.ask(PAIR))
            await asyncio.sleep(0)
            following = await asyncio.to_thread(page.next, ann)
            assert following.case_id != shown.case_id
            await asyncio.to_thread(page.answer, ann, following.question_id, "1")
            assert (await question).winner_pos == 1
            queue.close()
            assert await asyncio.to_thread(page.next, ann) == "done"

    asyncio.run(main())


def test_people_may_say_tie_where_the_run_counts_ties():
    judge = HumanJudge()
    assert (judge.waits_for_people, judge.queue.ties) == (True, False)
    judge.allow_ties(True)
    assert judge.queue.ties


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
