"""What may be spent is never passed, and is spent as far as can be."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairscale as ps
from pairscale import Verdict
from pairscale.core.errors import InputError, JudgeError
from pairscale.judges.orders import BothOrders
from pairscale.judges.panel import PanelJudge
from pairscale.runtime import (
    Budget,
    BudgetExceeded,
    close,
    max_cost_of,
    record_prices,
    recorded_prices,
    require_prices,
)

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


def test_without_a_limit_nothing_waits():
    async def scene():
        budget = Budget()
        made = [await budget.reserve("judge", None) for _ in range(100)]
        for reservation in made:
            budget.settle(reservation, 1.0)
        assert budget.spent == 100

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


def test_what_was_spent_before_counts():
    async def scene():
        budget = Budget(1.0, 0.9)
        assert str(budget) == "$0.9000 of $1 are spent"
        with pytest.raises(BudgetExceeded):
            await budget.reserve("judge", 0.2)
        budget.settle(await budget.reserve("judge", 0.1), 0.1)
        with pytest.raises(BudgetExceeded):
            await budget.reserve("judge", None)  # nothing is left, and it may cost something
        budget.settle(await budget.reserve("person", 0.0), 0.0)  # what is free is asked all the same
        assert budget.spent == 1.0

    run(scene())


def test_a_limit_of_nothing_asks_only_what_is_free():
    async def scene():
        budget = Budget(0)
        with pytest.raises(BudgetExceeded):
            await budget.reserve("judge", None)
        budget.settle(await budget.reserve("lexical", 0.0), 0.0)

    run(scene())


def test_whether_another_may_be_asked_now_does_not_wait():
    async def scene():
        budget = Budget(1.25)
        assert budget.may_ask("judge", None)
        first = await budget.reserve("judge", None)
        assert not budget.may_ask("judge", None)  # its cost is about to be known
        assert budget.may_ask("another", 0.5)
        budget.settle(first, 0.4)
        assert budget.may_ask("judge", None)
        await budget.reserve("judge", None)
        assert budget.may_ask("judge", 0.2)  # 0.4 are spent and 0.4 reserved, and another may cost as much
        assert not budget.may_ask("judge", 0.5)
        assert Budget().may_ask("judge", None)

    run(scene())


# A model without a known price


def priceless(**more):
    return ps.make_judge("openai:some-model-of-mine", trait="overall_quality", judge_args={"api_key": "k", **more})


def test_a_limit_without_a_known_price_is_refused_and_the_option_is_named(message_snapshot, caplog):
    with pytest.raises(InputError) as refused:
        require_prices([priceless()], 1.0)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        require_prices([BothOrders(priceless())], 1.0)
    message_snapshot(refused)
    assert caplog.messages == []


def test_without_a_limit_one_line_says_that_costs_are_unknown(caplog):
    require_prices([priceless()], None)
    (line,) = caplog.messages
    assert "the price of openai:some-model-of-mine is not known, so costs are not counted" in line


@pytest.mark.parametrize("limit", [None, 1.0])
def test_a_price_is_enough_and_judges_without_one_are_left_to_their_answers(limit, caplog):
    priced = priceless(price={"input": 1, "output": 2})
    own = ps.make_judge(lambda A, B: {"is_valid": True, "Y": 1})
    require_prices([priced, ps.make_judge("lexical"), own], limit)
    assert caplog.messages == []


def model(name, **settings):
    settings = {"api_key": "k" * 20, "base_url": "http://127.0.0.1:1", **settings}
    return ps.make_judge(f"openai:{name}", judge_args=settings)


def test_the_prices_of_every_member_of_a_panel_are_recorded(tmp_path):
    panel = PanelJudge([model("gpt-5.1"), model("mine", price={"input": 1, "output": 2}), ps.make_judge("lexical")])
    with ps.open_run(tmp_path / "run.db", write=True) as store:
        record_prices(store, [panel])
        assert [row["model"] for row in store.get_meta("prices")] == ["gpt-5.1", "mine"]
        assert "2026" in recorded_prices(store)


def test_a_limit_needs_the_price_of_every_member_of_a_panel(message_snapshot):
    def own(A, B):
        return {"Y": 1, "cost": 0.1}

    with pytest.raises(InputError) as refused:
        require_prices([PanelJudge([model("no-such-model"), ps.FunctionJudge(own, name="own")])], 1.0)
    message_snapshot(refused)


def test_a_member_that_cannot_be_closed_leaves_no_other_open(caplog):
    class Member:
        closed = False

        def __init__(self, name):
            self.condition = ps.Condition(name)

        async def compare(self, pair):
            return Verdict.win(1)

        async def aclose(self):
            self.closed = True
            raise RuntimeError("cannot close")

    members = [Member("one"), Member("two")]
    run(close(PanelJudge(members)))
    assert [member.closed for member in members] == [True, True]
    assert ["one" in caplog.messages[0], "two" in caplog.messages[1]] == [True, True]
