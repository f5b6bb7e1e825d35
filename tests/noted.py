"""Runs as processes of their own, whose judge writes down every question before it answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import StoreConnectionError, StoreReadOnlyError

__all__ = ["asked", "asked_in", "fail_writes", "finished", "none_left", "pairs_of", "start", "texts_of", "wait_for"]

ROOT = Path(__file__).parents[1]

_SCRIPT = """
import asyncio, json, os, sys
import pairscale as ps
from pairscale.core.errors import PairscaleError
from tests.noted import pairs_of, texts_of

given = json.loads(sys.argv[1])

class Noted:
    condition = ps.Condition("noted")

    def __init__(self):
        self._notes = os.open(given["notes"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def compare(self, pair):
        os.write(self._notes, f"{os.getpid()} {pair.uid}\\n".encode())
        await asyncio.sleep(given["latency"])
        number = int(pair.first["text"].split()[1])
        if given["verb"] == "ab":
            return ps.Verdict.win(1 if pair.first["text"].endswith("a") else 2)
        return ps.Verdict.win(1 if number >= int(pair.second["text"].split()[1]) else 2)

judge = Noted()
asking = {"run": given["run"], "concurrency": 4, "progress": False}

def judged():
    ps.submit_pairs(pairs_of(given["n_texts"]), judge, **asking)

def ranked():
    ps.rank(texts_of(given["n_texts"]), judge=judge, fit="laplace", steps=given["steps"], seed=1, **asking)

def compared():
    sides = [{row["ID"]: f"{row['text']} {side}" for row in texts_of(given["n_texts"])} for side in "ab"]
    ps.evaluate_pairwise(*sides, comparators=[ps.pairwise_judge(judge, criterion="better", key="better")], **asking)

try:
    {"judge": judged, "rank": ranked, "ab": compared}[given["verb"]]()
except PairscaleError as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    sys.exit(1)
print("{}", flush=True)
"""


def texts_of(n_texts: int) -> list[dict[str, str]]:
    """So many texts."""
    return [{"ID": f"{n:04d}", "text": f"text {n}"} for n in range(n_texts)]


def pairs_of(n_texts: int):
    """All pairs of so many texts."""
    return ps.make_pairs(texts_of(n_texts))


def start(run: str, notes: Path, **given) -> subprocess.Popen[str]:
    """A run of a verb, of so many texts; its standard output is a line of JSON."""
    given |= {"run": run, "notes": str(notes)}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, json.dumps(given)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _STARTED.append(process)
    return process


_STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    """End the processes that a test has left, in every module that imports this."""
    yield
    while _STARTED:
        process = _STARTED.pop()
        if process.returncode is None:
            process.kill()
            process.communicate()


def finished(processes) -> list[dict]:
    """What each process says at its end, and what it told on the way."""
    found = []
    for process in processes:
        out, told = process.communicate(timeout=600)
        assert out, told
        found.append(json.loads(out) | {"told": told})
    return found


def wait_for(condition) -> None:
    """Wait until something is so."""
    until = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def fail_writes(monkeypatch, store, fates) -> None:
    """Let the next transactions of the writer fail, each in one way, and those after them succeed.

    ``early`` loses the connection before the transaction was written, ``late`` after it, and ``read-only`` refuses it.
    """
    left, real = list(fates), store.writing

    @contextmanager
    def writing():
        fate = left.pop(0) if left else "well"
        if fate == "early":
            raise StoreConnectionError("gone")
        with real() as connection:
            yield connection
            if fate == "read-only":
                raise StoreReadOnlyError("a copy")
        if fate == "late":
            raise StoreConnectionError("gone")

    monkeypatch.setattr(store, "writing", writing)


def asked(notes: Path) -> int:
    """How many questions were asked."""
    return asked_in(notes).total() if notes.exists() else 0


def asked_in(notes: Path) -> Counter[str]:
    """How often each pair was asked."""
    return Counter(line.split(" ", 1)[1] for line in notes.read_text().splitlines())
