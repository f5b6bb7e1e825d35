"""Group commit: an entry is on the disk before its future is done, and is written however the rest ends."""

import asyncio
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace

import pytest

from pairscale.core.errors import InputError, StoreFullError
from pairscale.store.policies import GroupCommitWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Entry
from tests.store.entries import answered, prepared


class Written:
    """Stands in for a run file: its transactions are calls of a function."""

    can_reconnect = False

    def __init__(self, commit):
        self.writer, self.commit = self, commit


def writer_of(commit, **options):
    return GroupCommitWriter(Written(commit), **options)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("error", "kept"), [(OverflowError, [0, 1, 3]), (StoreFullError, [])])
def test_an_entry_that_cannot_be_written_takes_no_other_along_but_a_full_disk_does(error, kept):
    written = []

    def write(what):
        if 2 in what:
            raise error("too large")
        written.extend(what)

    async def main():
        async with writer_of(write) as writer:
            return await asyncio.gather(*(writer.write(number) for number in range(4)), return_exceptions=True)

    said = asyncio.run(main())
    assert written == kept
    assert [number for number, one in enumerate(said) if one is None] == kept


def test_in_a_thread_what_arrives_meanwhile_is_next_and_leaving_waits_for_it_though_interrupted():
    groups, begun, go = [], threading.Event(), threading.Event()

    def write(what):
        if what != [0]:
            begun.set()
            go.wait()
        groups.append(what)

    async def main():
        async with writer_of(write) as writer:
            await writer.write(0)
            writer.write(1)
            while not begun.is_set():
                await asyncio.sleep(0)
            writer.write(2)
            writer.write(3)
            await asyncio.sleep(0)  # they are not begun: the writing of 1 is under way
            assert groups == [[0]]
            threading.Timer(0.05, go.set).start()
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert groups == [[0], [1], [2, 3]]


@pytest.mark.parametrize("busy", ["writing", "otherwise"])
def test_a_process_that_does_not_wait_for_the_loop_loses_nothing(busy, tmp_path):
    """As after a second Ctrl-C: the main thread ends while the loop's is busy, with this or with something else."""
    script = textwrap.dedent("""
        import asyncio, atexit, sys, threading
        from pathlib import Path
        from pairscale.store.policies import GroupCommitWriter

        busy, file = sys.argv[1:]
        begun, go = threading.Event(), threading.Event()

        def stay():
            begun.set()
            go.wait()

        def write(what):
            if busy == "writing":
                stay()
            Path(file).write_text("".join(map(str, what)))

        class RunFile:
            can_reconnect = False

        RunFile.writer, RunFile.commit = RunFile, staticmethod(write)

        async def main():
            async with GroupCommitWriter(RunFile) as writer:
                writer.write(1)
                writer.write(2)
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


# With a run file


def test_an_answer_is_on_the_disk_before_its_future_is_done(tmp_path):
    async def main():
        with prepared(tmp_path / "run.db") as store:
            async with GroupCommitWriter(store) as writer:
                for number in range(1, 6):
                    await writer.write(answered(number))
                    with open_run(tmp_path / "run.db") as reader:
                        assert reader.counts()["comparisons"] == number

    asyncio.run(main())


def test_samples_and_logs_go_with_their_answer_or_not_at_all():
    sample = {"item_id": "c", "text": "c", "text_hash": "0", "columns": {}}

    def entry(number: int, **more) -> Entry:
        return replace(answered(number, **more), samples=[sample], rows=[("notes", {"pair": number})])

    async def main():
        with prepared(None) as store:
            async with GroupCommitWriter(store) as writer:
                with pytest.raises(InputError, match="no column 'tokens'"):
                    await writer.write(entry(1, tokens=1))
                assert store.counts()["items"] == 2
                assert store.read_log("notes") == []
                await writer.write(entry(1))
            assert store.counts() == {"items": 3, "pairs": 1, "attempts": 1, "comparisons": 1}
            assert store.read_log("notes") == [{"pair": 1}]

    asyncio.run(main())
