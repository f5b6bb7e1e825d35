"""The bridge from async to sync: the caller's context, Ctrl-C and SIGTERM."""

import asyncio
import contextvars
import inspect
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import pairscale as ps
from pairscale.runtime import awaitable, blocking, run_sync

PAIRS = ps.make_pairs([{"ID": name, "text": f"text {name}"} for name in "abc"])
VALUE = contextvars.ContextVar("value", default="none")


def test_the_context_of_the_caller_is_seen_and_left_as_it_is():
    async def look():
        seen = VALUE.get()
        VALUE.set("changed inside")
        return seen

    token = VALUE.set("of the caller")
    try:
        assert run_sync(look) == "of the caller"
        assert VALUE.get() == "of the caller"
    finally:
        VALUE.reset(token)


# Signals: each script is a process that sends them to itself, from inside the coroutine.

_HEAD = """
import asyncio, os, signal, threading
from pairscale.runtime import Terminated, awaitable, blocking, run_sync

async def stored(number, times=1):
    try:
        os.kill(os.getpid(), number)
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        if times > 1:
            os.kill(os.getpid(), number)
            await asyncio.sleep(1000)
        print("stored", flush=True)
        raise
"""


def process(script):
    code = _HEAD + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout.split(), done.stderr


def test_sigterm_lets_the_coroutine_store_what_it_has_and_exits_with_143():
    script = "run_sync(lambda: stored(signal.SIGTERM))"
    assert process(script) == (143, ["stored"], "")


def test_ctrl_c_lets_the_coroutine_store_what_it_has():
    script = """
        try:
            run_sync(lambda: stored(signal.SIGINT))
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert process(script) == (0, ["stored", "interrupted"], "")


def test_a_second_ctrl_c_at_once_leaves_what_is_open_and_still_stores():
    """The second comes while the first is being passed on, the moment at which it was once lost."""
    script = """
        from pairscale.runtime.sync import interrupt_of_call

        async def asked():
            with interrupt_of_call().tells(lambda: os.kill(os.getpid(), signal.SIGINT)), interrupt_of_call().waits():
                await stored(signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        for _ in range(30):
            try:
                run_sync(asked)
            except KeyboardInterrupt:
                print("interrupted")
    """
    code, said, _ = process(script)
    assert (code, said) == (0, ["stored", "interrupted"] * 30)


@pytest.mark.slow
def test_another_thread_sets_no_handler():
    script = """
        async def main():
            return signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

        found = []
        thread = threading.Thread(target=lambda: found.append(run_sync(main)))
        thread.start()
        thread.join()
        print(*found)
        print(run_sync(main))
    """
    assert process(script) == (0, ["True", "False"], "")


# What a command writes first


@blocking("run", "save_path")
async def doubled(number: int, *, run: str | None = None, save_path: str | None = None) -> int:
    """Twice the number."""
    await asyncio.sleep(0)
    return 2 * number


@awaitable(doubled)
async def doubled_async(*args: Any, **settings: Any) -> Any:
    """The same, to be awaited."""


def test_one_function_in_two_forms(message_snapshot) -> None:
    assert doubled(2) == asyncio.run(doubled_async(2, run="a.db")) == 4
    assert inspect.signature(doubled) == inspect.signature(doubled_async)
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice the number.")
    assert (doubled_async.__name__, doubled_async.__doc__) == ("doubled_async", "The same, to be awaited.")
    assert not inspect.iscoroutinefunction(doubled)
    assert inspect.iscoroutinefunction(doubled_async)
    with pytest.raises(TypeError) as refused:
        doubled(2, nonsense=1)  # type: ignore[call-arg]
    message_snapshot(refused)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"run": "a.db", "save_path": "b.csv"}, "are in a.db"),
        ({"save_path": "b.csv"}, "are in b.csv"),
        ({"run": "postgresql+psycopg://ann:it's ?secret@host/db"}, "are in postgresql+psycopg://host/db."),
        ({}, "Nothing was kept"),
    ],
)
def test_a_blocking_function_says_where_its_answers_are(given, said, caplog, monkeypatch) -> None:
    def interrupted(_make: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pairscale.runtime.sync._in_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        doubled(1, **given)
    assert said in caplog.text
