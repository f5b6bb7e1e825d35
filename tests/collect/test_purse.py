"""What may be spent is never passed, and is spent as far as can be."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairscale.collect._purse import Purse, TooDear

from pairscale import Verdict


def run(scene):
    return asyncio.run(scene)


def waits(task):
    return not task.done()


async def turn():
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_is_open_may_cost_as_much_as_the_dearest_since_and_is_waited_for():
    async def scene():
        purse = Purse(2.5)
        first, second = await purse.promise("judge", 0.1), await purse.promise("judge", 0.1)
        purse.settle(first, 1.0)
        third = asyncio.create_task(purse.promise("judge", 0.1))
        await turn()
        assert waits(third)  # 1.0 is spent, and both the second and a third may cost as much
        other = await purse.promise("another", 0.4)
        purse.settle(second, 0.2)
        await turn()
        assert waits(third)  # 1.2 and 0.4 and 1.0
        purse.settle(other, None)
        purse.settle(await third, 1.0)
        assert purse.spent == pytest.approx(2.2)
        with pytest.raises(TooDear):
            await purse.promise("judge", 0.1)

    run(scene())


def test_ten_times_ten_cents_are_a_dollar():
    async def scene():
        purse = Purse(1.0)
        for _ in range(10):
            purse.settle(await purse.promise("judge", 0.1), 0.1)
        with pytest.raises(TooDear):
            await purse.promise("judge", 0.1)

    run(scene())


@pytest.mark.parametrize(
    ("verdict", "is_known"),
    [
        (Verdict.win(1, cost=0.5), True),
        (Verdict.win(1), True),  # who never says what it costs holds nobody up
        (Verdict.abstain("no", cost=0.5), True),
        (Verdict.fail("timeout", "late"), False),
        (Verdict.win(1, cost=0.0, cached=True), False),
        (None, False),
    ],
)
def test_one_is_asked_at_a_time_until_an_answer_tells_the_price(verdict, is_known):
    async def scene():
        purse = Purse(10)
        first = await purse.promise("judge", None)
        second = asyncio.create_task(purse.promise("judge", None))
        third = asyncio.create_task(purse.promise("judge", None))
        await turn()
        assert waits(second)
        assert waits(third)
        known = await purse.promise("another", 0.5)  # which says what it may cost
        purse.pay(first, verdict)
        await turn()
        assert not waits(second)
        assert waits(third) is not is_known
        purse.pay(known, None)
        purse.pay(second.result(), Verdict.win(1, cost=0.1))
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

    async def worker(purse, left):
        while left:
            share = left.pop()
            try:
                promise = await purse.promise("judge", estimate)
            except TooDear:
                left.append(share)
                return
            await asyncio.sleep(0)
            purse.settle(promise, share * estimate)
            assert purse.spent <= limit * (1 + 1e-8)

    async def scene():
        purse, left = Purse(limit), list(shares)
        await asyncio.gather(*(worker(purse, left) for _ in range(workers)))
        if left:
            assert purse.spent + estimate > limit

    run(scene())


def test_without_a_limit_nobody_waits():
    async def scene():
        purse = Purse()
        made = [await purse.promise("judge", None) for _ in range(100)]
        for promise in made:
            purse.settle(promise, 1.0)
        assert purse.spent == 100

    run(scene())
