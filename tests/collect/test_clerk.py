"""The clerk: whatever it was given is written, however the rest ends."""

import asyncio
import subprocess
import sys
import textwrap
import threading

import pytest

from pairscale.collect._clerk import Clerk
from pairscale.errors import StoreFullError


def test_everything_is_written_in_order_and_told():
    written = []

    async def main():
        async with Clerk(written.extend) as clerk:
            await asyncio.gather(*(clerk.give(number) for number in range(100)))
            assert written == list(range(100))
            clerk.give(100)

    asyncio.run(main())
    assert written == list(range(101))


def test_a_failure_reaches_those_who_wait_and_the_next_are_written():
    written = []

    def write(what):
        if 1 in what:
            raise OSError("full")
        written.extend(what)

    async def main():
        async with Clerk(write) as clerk:
            with pytest.raises(OSError, match="full"):
                await clerk.give(1)
            await clerk.give(2)

    asyncio.run(main())
    assert written == [2]


@pytest.mark.parametrize(("error", "kept"), [(OverflowError, [0, 1, 3]), (StoreFullError, [])])
def test_one_that_cannot_be_written_takes_no_other_along_but_a_full_disk_does(error, kept):
    written = []

    def write(what):
        if 2 in what:
            raise error("too large")
        written.extend(what)

    async def main():
        async with Clerk(write) as clerk:
            return await asyncio.gather(*(clerk.give(number) for number in range(4)), return_exceptions=True)

    said = asyncio.run(main())
    assert written == kept
    assert [number for number, one in enumerate(said) if one is None] == kept


def test_what_comes_in_one_turn_of_the_loop_is_written_together():
    lots = []

    async def worker(clerk, number):
        await clerk.give(number)
        await clerk.give(number + 10)

    async def main():
        async with Clerk(lots.append) as clerk:
            await asyncio.gather(*(worker(clerk, number) for number in range(3)))

    asyncio.run(main())
    assert lots == [[0, 1, 2], [10, 11, 12]]


def test_quick_writing_stays_in_the_thread_of_the_loop_and_slow_writing_is_put_aside():
    threads = []

    async def main(patience):
        threads.clear()
        async with Clerk(lambda _: threads.append(threading.get_ident()), patience=patience) as clerk:
            for number in range(5):
                await clerk.give(number)
        return [thread == threading.get_ident() for thread in threads]

    assert asyncio.run(main(float("inf"))) == [True] * 5
    assert asyncio.run(main(0.0)) == [True] + [False] * 4  # the first one shows how long it takes


def test_aside_what_arrives_meanwhile_is_next_and_leaving_waits_for_it_though_interrupted():
    lots, begun, go = [], threading.Event(), threading.Event()

    def write(what):
        if what != [0]:
            begun.set()
            go.wait()
        lots.append(what)

    async def main():
        async with Clerk(write, patience=0.0) as clerk:
            await clerk.give(0)
            clerk.give(1)
            while not begun.is_set():
                await asyncio.sleep(0)
            clerk.give(2)
            clerk.give(3)
            await asyncio.sleep(0)  # they are not begun: the writing of 1 is under way
            assert lots == [[0]]
            threading.Timer(0.05, go.set).start()
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert lots == [[0], [1], [2, 3]]


def test_a_failure_aside_reaches_those_who_wait():
    def write(what):
        if what == [1]:
            raise StoreFullError("full")

    async def main():
        async with Clerk(write, patience=0.0) as clerk:
            await clerk.give(0)
            with pytest.raises(StoreFullError):
                await clerk.give(1)
            await clerk.give(2)

    asyncio.run(main())


def test_a_loop_that_is_closed_loses_nothing():
    written = []
    clerk = Clerk(written.extend)

    async def main():
        await clerk.__aenter__()
        clerk.give(1)
        clerk.give(2)

    asyncio.run(main())
    clerk._write_all()
    assert written == [1, 2]


@pytest.mark.slow_except("writing")
@pytest.mark.parametrize("busy", ["writing", "otherwise"])
def test_a_process_that_does_not_wait_for_the_loop_loses_nothing(busy, tmp_path):
    """As after a second Ctrl-C: the main thread ends while the loop's is busy, with this or with something else."""
    script = textwrap.dedent("""
        import asyncio, atexit, sys, threading
        from pathlib import Path
        from pairscale.collect._clerk import Clerk

        busy, file = sys.argv[1:]
        begun, go = threading.Event(), threading.Event()

        def stay():
            begun.set()
            go.wait()

        def write(what):
            if busy == "writing":
                stay()
            Path(file).write_text("".join(map(str, what)))

        async def main():
            async with Clerk(write) as clerk:
                clerk.give(1)
                clerk.give(2)
                if busy == "otherwise":
                    stay()
                await asyncio.sleep(1000)

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        begun.wait()
        if busy == "writing":
            atexit.register(go.set)  # the process is ending before anything is written
    """)
    subprocess.run([sys.executable, "-c", script, busy, str(tmp_path / "written")], check=True, timeout=600)
    assert (tmp_path / "written").read_text() == "12"
