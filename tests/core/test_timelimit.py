import asyncio

import pytest
from tests.providers.limit_servers import SimulatedLoop

from pairscale.core.timelimit import TimeLimitError, waiting_for_turn, within


async def slept(seconds):
    await asyncio.sleep(seconds)
    return seconds


def test_each_has_its_own_time():
    async def scene():
        first = asyncio.create_task(within(0.3, slept(60)))
        await asyncio.sleep(0.1)
        second, quick = (asyncio.create_task(within(0.3, slept(seconds))) for seconds in (60, 0.0))
        start = asyncio.get_running_loop().time()
        results = await asyncio.gather(first, quick, return_exceptions=True)
        is_open = not second.done()
        with pytest.raises(TimeLimitError):
            await second
        return results, is_open, asyncio.get_running_loop().time() - start

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:  # in which no time is lost on a busy machine
        (first, quick), is_open, waited = runner.run(scene())
    assert isinstance(first, TimeLimitError)
    assert quick == 0
    assert is_open  # when the first one's time was over
    assert waited == pytest.approx(0.3)


def test_a_task_that_is_cancelled_stays_cancelled():
    async def scene():
        task = asyncio.create_task(within(60, slept(60)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(scene())


def in_no_time(scene):
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(scene)


async def turn_and_answer(waits, takes):
    with waiting_for_turn():
        await asyncio.sleep(waits)
    return await slept(takes)


def test_waiting_for_a_turn_takes_none_of_the_time():
    async def scene():
        done = await asyncio.gather(*(within(10, turn_and_answer(waits, 9)) for waits in (0, 15, 3600)))
        with pytest.raises(TimeLimitError):
            await within(10, turn_and_answer(3600, 11))
        return done, asyncio.current_task().cancelling()

    assert in_no_time(scene()) == ([9, 9, 9], 0)
