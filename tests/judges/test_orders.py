"""Both orders: any judge, one rule for merging, and a half that was answered is not paid for twice."""

import asyncio
from itertools import product

import pytest

import pairscale as ps
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.judges.orders import BothOrders, merge_orders, merge_verdicts

A, B = {"ID": "a", "text": "Short."}, {"ID": "b", "text": "A little longer."}
PAIR = ps.JudgePair(A, B, "a:b#1")

WIN_1, WIN_2, TIE, FLIP = ps.Verdict.win(1), ps.Verdict.win(2), ps.Verdict.tie(), ps.Verdict(Outcome.FLIP)
ABSTAINED, FAILED = ps.Verdict.abstain("no"), ps.Verdict.fail("parse_error", "what?")
BUSY = ps.Verdict.fail("rate_limited", "slow down", failure="transient", retry_after=3.0, cost=0.125)
WRONG_KEY = ps.Verdict.fail("http_error", "wrong key", failure="judge")


class Judge:
    """Says what it is told to: by order, a list of verdicts."""

    def __init__(self, forward=(), backward=(), judge_id="judge"):
        self.condition = ps.Condition(judge_id, settings={"t": 1})
        self._told = {False: list(forward), True: list(backward)}
        self.asked = []

    async def compare(self, pair):
        self.asked.append(pair)
        await asyncio.sleep(0)
        said = self._told[pair.is_swapped].pop(0)
        if isinstance(said, Exception):
            raise said
        return said


def compared(judge, pair=PAIR):
    return asyncio.run(BothOrders(judge).compare(pair))


# The rule

KINDS = {
    "a": (Outcome.WIN, "a"), "b": (Outcome.WIN, "b"), "tie": (Outcome.TIE, None), "flip": (Outcome.FLIP, None),
    "abstention": (Outcome.ABSTENTION, None), "error": (Outcome.ERROR, None),
}  # fmt: skip
MERGED = {
    ("a", "a"): "a", ("b", "b"): "b", ("a", "b"): "flip", ("a", "tie"): "tie", ("b", "tie"): "tie",
    ("tie", "tie"): "tie", ("a", "flip"): "flip", ("b", "flip"): "flip", ("flip", "tie"): "flip",
    ("flip", "flip"): "flip", ("a", "abstention"): "abstention", ("abstention", "b"): "abstention",
    ("abstention", "tie"): "abstention", ("abstention", "flip"): "abstention",
    ("abstention", "abstention"): "abstention", ("a", "error"): "error", ("b", "error"): "error",
    ("error", "tie"): "error", ("error", "flip"): "error", ("abstention", "error"): "error",
    ("error", "error"): "error",
}  # fmt: skip
"""What two orders come to, whichever is which."""


@pytest.mark.parametrize(("one", "two"), list(product(KINDS, KINDS)))
def test_two_orders_come_to_one_outcome(one, two):
    expected = MERGED.get((one, two)) or MERGED[two, one]
    assert merge_orders([KINDS[one], KINDS[two]]) == KINDS[expected]


@pytest.mark.parametrize(
    ("forward", "backward", "outcome", "winner"),
    [
        (WIN_1, WIN_2, "win", 1),  # the same text, which stands in the other place
        (WIN_2, WIN_1, "win", 2),
        (WIN_1, WIN_1, "flip", None),
        (WIN_2, WIN_2, "flip", None),
        (WIN_1, TIE, "tie", None),
        (TIE, WIN_1, "tie", None),
        (TIE, TIE, "tie", None),
        (FLIP, WIN_1, "flip", None),
        (WIN_1, ABSTAINED, "abstention", None),
        (FAILED, WIN_1, "error", None),
        (ABSTAINED, FAILED, "error", None),
    ],
)
def test_the_place_of_the_winner_is_that_of_the_first_order(forward, backward, outcome, winner):
    judge = Judge([forward], [backward])
    verdict = compared(judge)
    assert (str(verdict.outcome), verdict.winner_pos) == (outcome, winner)
    assert verdict == merge_verdicts(forward, backward)
    assert [(pair.first["ID"], pair.uid, pair.is_swapped) for pair in judge.asked] == [
        ("a", "a:b#1", False),
        ("b", "a:b#1~", True),
    ]


@pytest.mark.parametrize(
    ("forward", "backward", "failure"),
    [
        (FAILED, BUSY, "transient"),
        (BUSY, FAILED, "transient"),
        (BUSY, WRONG_KEY, "judge"),
        (WRONG_KEY, FAILED, "judge"),
        (FAILED, WRONG_KEY, "judge"),
        (FAILED, FAILED, "question"),
        (WIN_1, BUSY, "transient"),
        (ABSTAINED, BUSY, "transient"),
    ],
)
def test_of_two_failures_the_one_that_says_more_about_asking_again_counts(forward, backward, failure):
    verdict = merge_verdicts(forward, backward)
    assert verdict.failure == failure
    assert verdict.retry_after == (3.0 if failure == "transient" else None)


def test_what_both_gave_is_added_up_and_kept():
    one = ps.Verdict.win(1, content="one", thoughts="hm", raw_response={"id": 1}, probability=0.75, cost=0.25)
    two = ps.Verdict.win(2, content="two", raw_response={"id": 2}, probability=0.5, cost=0.5, prompt_tokens=7)
    verdict = merge_verdicts(one, two)
    assert verdict.content == "one\n--- in the other order ---\ntwo"
    assert verdict.thoughts == "hm\n--- in the other order ---\n"
    assert verdict.raw_response == [{"id": 1}, {"id": 2}]
    assert (verdict.cost, verdict.prompt_tokens, verdict.completion_tokens) == (0.75, 7, None)
    assert verdict.probability == 0.625  # that the first text is better: 0.75, and 1 - 0.5
    assert merge_verdicts(one, TIE).probability is None
    assert merge_verdicts(ps.Verdict.win(1, latency_s=2.0), ps.Verdict.win(2, latency_s=5.0)).latency_s == 5.0


# Asking again


def test_the_half_that_was_answered_is_kept_and_not_paid_for_twice():
    judge = Judge([ps.Verdict.win(1, cost=0.5, content="one")], [BUSY, ps.Verdict.win(2, cost=0.25, content="two")])
    both = BothOrders(judge)
    first = asyncio.run(both.compare(PAIR))
    assert (first.failure, first.cost) == ("transient", 0.625)
    second = asyncio.run(both.compare(PAIR))
    assert (str(second.outcome), second.winner_pos, second.cost) == ("win", 1, 0.25)
    assert second.content == "one\n--- in the other order ---\ntwo"
    assert [pair.is_swapped for pair in judge.asked] == [False, True, True]


@pytest.mark.parametrize("other", [{"ID": "a", "text": "Another text."}, {"ID": "c", "text": "Short."}])
def test_a_half_of_another_question_of_the_same_name_is_not_used(other):
    """As in a second adaptive run of the same judge, whose questions have the same names."""
    judge = Judge([WIN_1, WIN_2], [BUSY, WIN_1])
    both = BothOrders(judge)
    asyncio.run(both.compare(PAIR))
    assert asyncio.run(both.compare(ps.JudgePair(other, B, PAIR.uid))).winner_pos == 2
    assert len(judge.asked) == 4


@pytest.mark.slow
def test_a_run_asks_only_for_the_missing_half(tmp_path):
    judge = Judge([ps.Verdict.win(1, cost=0.5)], [BUSY, BUSY, ps.Verdict.win(2, cost=0.25)])
    pairs = [{"ID1": "a", "text1": "Short.", "ID2": "b", "text2": "A little longer."}]
    done = ps.submit_pairs(pairs, BothOrders(judge), run=tmp_path / "run.db", retry_wait=0, progress=False)
    assert done.results["better_id"].to_list() == ["a"]
    assert len(judge.asked) == 4
    with ps.open_run(tmp_path / "run.db") as store:
        assert store.spent() == 0.5 + 0.125 + 0.125 + 0.25


# What a judge raises


def test_an_error_of_pairscale_is_raised_after_the_other_order_is_done():
    done = []

    class Slow(Judge):
        async def compare(self, pair):
            if pair.is_swapped:
                raise InputError("these samples have no column 'truth'")
            await asyncio.sleep(0.01)
            done.append(pair.uid)
            return WIN_1

    with pytest.raises(InputError, match="truth"):
        compared(Slow())
    assert done == ["a:b#1"]


def test_an_interruption_reaches_both_orders():
    class Endless(Judge):
        stopped = 0

        async def compare(self, pair):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                Endless.stopped += 1
                raise

    async def main():
        task = asyncio.create_task(BothOrders(Endless()).compare(PAIR))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert Endless.stopped == 2


# Around any judge


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"])), "cost": 0.25}


@pytest.mark.parametrize("judge", ["lexical", "simulated:quality", longer, "openai:gpt-4.1"])
def test_every_kind_of_judge_by_name_has_a_condition_of_its_own(judge):
    given = {"api_key": "sk-none"} if judge == "openai:gpt-4.1" else {}
    trait = "overall_quality" if judge == "openai:gpt-4.1" else None
    both = ps.make_judge(judge, trait=trait, judge_args={"both_orders": True, **given})
    one = ps.make_judge(judge, trait=trait, judge_args={"both_orders": False, **given})
    assert isinstance(both, BothOrders)
    assert isinstance(both, ps.Judge)
    assert not isinstance(one, BothOrders)
    assert both.condition.judge_id == one.condition.judge_id
    assert both.condition.condition_id != one.condition.condition_id
    assert both.condition.settings["both_orders"] is True


def test_the_wrapped_judge_is_seen_through():
    both = BothOrders(ps.make_judge("lexical"))
    assert both.max_cost_of(PAIR) == 0.0
    assert getattr(BothOrders(Judge()), "max_cost_of", None) is None
    assert getattr(BothOrders(Judge()), "uses_cache", False) is False

    class Priced(Judge):
        uses_cache = True

        def max_cost_of(self, pair):
            return 0.5 if pair.first["ID"] == "a" else 0.25

    assert (BothOrders(Priced()).max_cost_of(PAIR), BothOrders(Priced()).uses_cache) == (0.75, True)
