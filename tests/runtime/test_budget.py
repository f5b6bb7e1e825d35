"""What may be spent is never passed, and is spent as far as can be."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairscale as ps
from pairscale import Verdict
from pairscale.core.errors import InputError, JudgeError
from pairscale.runtime import Budget, BudgetExceeded, max_cost_of, record_prices, recorded_prices, require_prices

PAIR = ps.JudgePair({"ID": "a", "text": "one"}, {"ID": "b", "text": "two"})


def run(scene):
    return asyncio.run(scene)


def waits(task):
    return not task.done()


async def turn():
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_is_open_may_cost_as_much_as_the_highest_cost_since_and_is_waited_for():
    async def scene():
        budget = Budget(2.5)
        first, second = await budget.reserve("judge", 0.1), await budget.reserve("judge", 0.1)
        budget.settle(first, 1.0)
        third = asyncio.create_task(budget.reserve("judge", 0.1))
        await turn()
        assert waits(third)  # 1.0 is spent, and both the second and a third may cost as much
        other = await budget.reserve("another", 0.4)
        budget.settle(second, 0.2)
        await turn()
        assert waits(third)  # 1.2 and 0.4 and 1.0
        budget.settle(other, None)
        budget.settle(await third, 1.0)
        assert budget.spent == pytest.approx(2.2)
        with pytest.raises(BudgetExceeded):
            await budget.reserve("judge", 0.1)

    run(scene())


@pytest.mark.parametrize("most", [None, 0, 0.005, 2])
def test_what_a_question_may_cost_at_most(most):
    judge = ps.FunctionJudge(lambda A, B: 1)
    declared = type("Declared", (), {"condition": judge.condition, "max_cost_of": lambda self, pair: most})()
    assert max_cost_of(declared, PAIR) == most
    assert max_cost_of(judge, PAIR) is None


@pytest.mark.parametrize("most", [-0.001, "much", float("nan")])
def test_what_is_no_money_is_refused(most):
    judge = type("Odd", (), {"condition": ps.Condition("odd"), "max_cost_of": lambda self, pair: most})()
    with pytest.raises(JudgeError, match="max_cost_of of the judge odd: what it returns must be"):
        max_cost_of(judge, PAIR)


def test_when_all_is_spent_only_what_is_free_is_asked():
    """What says that it costs nothing, and a variant that has never said otherwise."""

    async def scene():
        budget = Budget(1.0, spent=1.0)
        budget.settle(await budget.reserve("lexical", 0.0), 0.0)
        budget.settle(await budget.reserve("variant", None, is_variant=True), None, is_typical=False)
        budget.settle(await budget.reserve("variant", None, is_variant=True), 0.1)
        for who, most, is_variant in (("variant", None, True), ("judge", None, False), ("judge", 0.1, False)):
            with pytest.raises(BudgetExceeded):
                await budget.reserve(who, most, is_variant=is_variant)

    run(scene())


def test_ten_times_ten_cents_are_a_dollar():
    async def scene():
        budget = Budget(1.0)
        for _ in range(10):
            budget.settle(await budget.reserve("judge", 0.1), 0.1)
        with pytest.raises(BudgetExceeded):
            await budget.reserve("judge", 0.1)

    run(scene())


@pytest.mark.parametrize(
    ("verdict", "is_known"),
    [
        (Verdict.win(1, cost=0.5), True),
        (Verdict.abstain("no", cost=0.5), True),
        (Verdict.fail("timeout", "late"), False),
        (Verdict.fail("parse_error", "what?", cost=0.5), True),
        (Verdict.win(1, cost=0.0, cached=True), False),
        (None, False),
    ],
)
def test_one_is_asked_at_a_time_until_an_answer_tells_the_price(verdict, is_known):
    async def scene():
        budget = Budget(10)
        first = await budget.reserve("judge", None)
        second = asyncio.create_task(budget.reserve("judge", None))
        third = asyncio.create_task(budget.reserve("judge", None))
        await turn()
        assert waits(second)
        assert waits(third)
        known = await budget.reserve("another", 0.5)  # which says what it may cost
        budget.pay(first, verdict)
        await turn()
        assert not waits(second)
        assert waits(third) is not is_known
        budget.pay(known, None)
        budget.pay(second.result(), Verdict.win(1, cost=0.1))
        await third

    run(scene())


@given(
    limit=st.floats(0, 5),
    estimate=st.floats(0, 1),
    shares=st.lists(st.floats(0, 1), max_size=40),
    workers=st.integers(1, 8),
)
def test_a_limit_is_never_passed_and_only_kept_when_the_next_might_pass_it(limit, estimate, shares, workers):
    """Answers that cost at most what was said beforehand, with as many workers as may be."""

    async def worker(budget, left):
        while left:
            share = left.pop()
            try:
                reservation = await budget.reserve("judge", estimate)
            except BudgetExceeded:
                left.append(share)
                return
            await asyncio.sleep(0)
            budget.settle(reservation, share * estimate)
            assert budget.spent <= limit * (1 + 1e-8)

    async def scene():
        budget, left = Budget(limit), list(shares)
        await asyncio.gather(*(worker(budget, left) for _ in range(workers)))
        if left:
            assert budget.spent + estimate > limit

    run(scene())


@pytest.mark.parametrize("verdict", [Verdict.win(1), Verdict.tie()])
def test_an_answer_without_a_cost_is_refused_under_a_limit_and_the_reservation_is_released(verdict):
    async def scene():
        budget = Budget(10)
        with pytest.raises(JudgeError, match=r"`max_cost=` is set, but the judge does not say what its answers cost"):
            budget.pay(await budget.reserve("judge", None), verdict)
        assert (budget._open, budget.spent) == ([], 0.0)

    run(scene())


@pytest.mark.parametrize(
    ("limit", "most", "verdict"),
    [
        (None, None, Verdict.win(1)),
        (10, 0.5, Verdict.win(1)),  # the judge has said what it may cost at most
        (10, None, Verdict.win(1, cost=0.0)),
        (10, None, Verdict.fail("judge_error", "broken")),
        (10, None, Verdict.abstain("no")),
        (10, None, Verdict.win(1, cost=0.0, cached=True)),
        (10, None, None),
    ],
)
def test_without_a_limit_or_with_a_bound_or_without_an_answer_a_cost_need_not_be_known(limit, most, verdict):
    async def scene():
        budget = Budget(limit)
        budget.pay(await budget.reserve("judge", most), verdict)
        assert not budget._open

    run(scene())


# A model without a known price


class Quoted:
    """A judge that says what a question may cost at most."""

    condition = ps.Condition("quoted")

    def __init__(self, price):
        self.price_of_all = price

    def max_cost_of(self, pair):
        return self.price_of_all

    async def compare(self, pair):
        return Verdict.win(1)


class Silent:
    condition = ps.Condition("silent")

    async def compare(self, pair):
        return Verdict.win(1)


def test_only_a_judge_that_says_that_its_price_is_unknown_is_refused_under_a_limit(caplog):
    require_prices([Silent(), Quoted(0.0), Quoted(0.5)], 1.0)
    with pytest.raises(InputError, match="needs the price of quoted"):
        require_prices([Silent(), Quoted(None)], 1.0)
    assert caplog.text == ""
    require_prices([Quoted(None), Quoted(None)], None)
    assert caplog.text.count("the price of quoted is not known") == 1


def test_another_question_may_be_asked_without_a_limit_or_below_it():
    assert Budget(None).may_ask("judge", 5.0)
    assert Budget(6.0).may_ask("judge", 5.0)
    assert not Budget(4.0).may_ask("judge", 5.0)

    async def beside(open_most, asked_most):
        budget = Budget(9.0)
        await budget.reserve("judge", open_most)
        return budget.may_ask("another", asked_most)

    assert [run(beside(*most)) for most in ((1.0, 1.0), (1.0, None), (None, 1.0), (None, None))] == [True] * 3 + [False]


def test_the_prices_behind_costs_are_kept_once(tmp_path):
    judge = ps.make_judge("openai:gpt-4.1", judge_args={"api_key": "sk-0123456789abcdef"})
    with ps.open_run(tmp_path / "run.db", write=True) as store:
        record_prices(store, [Silent()])
        assert recorded_prices(store) == ""
        for _ in range(2):
            record_prices(store, [judge])
        assert [row["model"] for row in store.get_meta("prices")] == ["gpt-4.1"]
        assert recorded_prices(store) != ""
