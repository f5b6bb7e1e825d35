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


@pytest.mark.parametrize(("error", "kept"), [(OverflowError, [0, 1, 3]), (StoreFullError, [0])])
def test_one_that_cannot_be_written_takes_no_other_along_but_a_full_disk_does(error, kept):
    written, begun, go = [], threading.Event(), threading.Event()

    def write(what):
        begun.set()
        go.wait()
        if 2 in what:
            raise error("too large")
        written.extend(what)

    async def main():
        async with Clerk(write) as clerk:
            waiting = [clerk.give(0)]
            begun.wait()
            waiting += [clerk.give(number) for number in (1, 2, 3)]
            go.set()
            return await asyncio.gather(*waiting, return_exceptions=True)

    said = asyncio.run(main())
    assert written == kept
    assert [number for number, one in enumerate(said) if one is None] == kept


def test_leaving_is_interrupted_and_everything_is_written():
    written, begun, go = [], threading.Event(), threading.Event()

    def write(what):
        begun.set()
        go.wait()
        written.extend(what)

    async def main():
        async with Clerk(write) as clerk:
            clerk.give(1)
            begun.wait()
            clerk.give(2)
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
            asyncio.get_running_loop().call_soon(go.set)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert written == [1, 2]


def test_a_loop_that_is_closed_loses_nothing():
    written, begun, go = [], threading.Event(), threading.Event()

    def write(what):
        begun.set()
        go.wait()
        written.extend(what)

    clerk = Clerk(write)

    async def main():
        await clerk.__aenter__()
        clerk.give(1)
        begun.wait()
        clerk.give(2)

    asyncio.run(main())
    go.set()
    clerk._finish()
    assert written == [1, 2]


def test_a_process_that_does_not_wait_for_the_loop_loses_nothing(tmp_path):
    """As after a second Ctrl-C: the main thread ends while the loop's is still busy."""
    script = textwrap.dedent("""
        import asyncio, atexit, sys, threading
        from pathlib import Path
        from pairscale.collect._clerk import Clerk

        begun, given, go = threading.Event(), threading.Event(), threading.Event()

        def write(what):
            begun.set()
            go.wait()
            with Path(sys.argv[1]).open("a") as file:
                file.writelines(map(str, what))

        async def main():
            async with Clerk(write) as clerk:
                clerk.give(1)
                begun.wait()
                clerk.give(2)
                given.set()
                await asyncio.sleep(1000)

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        given.wait()
        atexit.register(go.set)  # the process is ending before anything is written
    """)
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "written")], check=True, timeout=60)
    assert (tmp_path / "written").read_text() == "12"
