"""What happens to a process, whichever way it asks judges: kill -9, Ctrl-C, SIGTERM, a run file that is deleted.

Nothing here waits for a time: the server leaves questions open until the test has done what it does meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pairscale.core.files import write_table
from pairscale.core.tables import to_frame
from tests.runtime.across import across
from tests.runtime.conftest import Once
from tests.runtime.server import Reply, Server
from tests.runtime.workflows import KEY, WORKFLOWS, Call, attempts_in, outcomes_in, script_of, text

PATIENCE_S = 600
ANSWERED, N_QUESTIONS = 5, 12
MODEL = ["--judge", "openai:gpt-4.1"]
COMMANDS: dict[str, list[str]] = {
    "pairscale judge": ["judge", "pairs.csv", *MODEL, "--concurrency", "4"],
    "pairscale rank": ["rank", "texts.csv", *MODEL, "--max-comparisons", "12", "--fit", "laplace"],
    "pairscale ab": ["ab", "a.jsonl", "b.jsonl", *MODEL, "--criterion", "better", "--concurrency", "4"],
    "pairscale bias-study": [
        "bias-study",
        "few.csv",
        *MODEL,
        "--template",
        "default",
        "--template",
        "concise",
        "--concurrency",
        "4",
    ],
    "pairscale check-judge": ["check-judge", "texts.csv", *MODEL, "--n-pairs", "6", "--concurrency", "4"],
}
EVERY = (*WORKFLOWS, *COMMANDS)
SIGNALS = {"kill": (signal.SIGKILL, 137), "Ctrl-C": (signal.SIGINT, 130), "SIGTERM": (signal.SIGTERM, 143)}
RESUME = re.compile(r"\b(the same (command|call|line)|resumes?)\b", re.IGNORECASE)


class Ended(NamedTuple):
    """How a process ended: its exit code as a shell tells it, and what it said on standard error."""

    code: int
    said: str


def call_of(server: Server, folder: Path) -> Call:
    return Call(run=str(folder / "run.db"), url=server.url, questions=N_QUESTIONS)


@contextmanager
def started(workflow: str, call: Call, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that makes one call; it does not outlive the test."""
    if workflow in COMMANDS:
        command = [sys.executable, "-m", "pairscale", *COMMANDS[workflow], "--run", call.run]
        _write_inputs(call, folder)
    else:
        command = [*script_of(workflow, folder), json.dumps(asdict(call))]
    environment = {**os.environ, "OPENAI_BASE_URL": call.url, "OPENAI_API_KEY": KEY}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _write_inputs(call: Call, folder: Path) -> None:
    write_table(to_frame(call.pairs(12)), folder / "pairs.csv")
    write_table(to_frame(call.pairs(3)), folder / "few.csv")
    write_table(to_frame(call.texts()), folder / "texts.csv")
    for side, name in enumerate("ab"):
        rows = [{"task_id": f"{at}", "output": text(2 * at + side)} for at in range(6)]
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def end_of(process: subprocess.Popen[str], before: str = "") -> Ended:
    _, said = process.communicate(timeout=PATIENCE_S)
    code = process.returncode
    return Ended(128 - code if code < 0 else code, before + said)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What a process says on standard error, up to the line that holds some words."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError(f"it never said {words!r}: {''.join(lines)}")


def reach_the_middle(workflow: str, call: Call, server: Server, process: subprocess.Popen[str]) -> int:
    """Wait until some questions are answered, in the run file, and others open; of a batch, until it is looked at."""

    def is_alive() -> bool:
        return process.poll() is None

    if workflow == "batch":
        server.wait(lambda found: any(asked.kind == "look" for asked in found.asked), is_alive)
        return 0
    server.wait(lambda found: len(found.good) == ANSWERED and found.open > 0, is_alive)
    deadline = time.monotonic() + PATIENCE_S
    while len(attempts_in(call.run)) < ANSWERED:
        assert is_alive()
        assert time.monotonic() < deadline, "the answers do not reach the run file"
        time.sleep(0.02)
    return ANSWERED


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """A process that was broken off in the middle, and the same call again.

    Attributes:
        answered: how many answers it had been given.
        ended: how it ended.
        alone: the attempts in the run file, without the files beside it, after its end.
        open: how many questions were open then.
        again: how the same call ended afterwards.
        attempts: the attempts in the run file after that.
        outcomes: the outcomes.
        asked: how many questions both together asked.
        n_batches: how many batches they created.
    """

    answered: int
    ended: Ended
    alone: list[dict[str, Any]]
    open: int
    again: Ended
    attempts: list[dict[str, Any]]
    outcomes: list[str]
    asked: int
    n_batches: int


def broken_off(workflow: str, event: str, folder: Path) -> BrokenOff:
    """Send a signal to a process in the middle of its run, and make the same call again."""
    server = Server()
    server.hold(0 if workflow == "batch" else ANSWERED)
    with server:
        call = call_of(server, folder)
        with started(workflow, call, folder) as process:
            answered = reach_the_middle(workflow, call, server, process)
            process.send_signal(SIGNALS[event][0])
            before = ""
            if event != "kill" and workflow not in {"batch", "people"}:  # the first one waits for what is open
                before = read_until(process, "waiting for")
                process.send_signal(SIGNALS[event][0])
            ended = end_of(process, before)
        if event == "kill":
            alone = call.run
        else:
            alone = shutil.copy(call.run, folder / "alone.db")
        kept, n_open = rows_of(alone), server.open
        server.release()
        with started(workflow, call, folder) as process:
            again = end_of(process)
        outcomes = [outcome for _, outcome in outcomes_in(call.run)]
        asked, n_batches = len(server.questions), len(server.batches)
    return BrokenOff(answered, ended, kept, n_open, again, rows_of(call.run), outcomes, asked, n_batches)


def rows_of(run: str | Path) -> list[dict[str, Any]]:
    return [dict(one.row) for one in attempts_in(run, cancelled=True)]


@across(tuple(WORKFLOWS), "kill", "kill, again", slow=True)
@across(EVERY, *(f"{name}{part}" for name in ("Ctrl-C", "SIGTERM") for part in ("", ", again", ", message")), slow=True)
def test_a_process_that_is_broken_off(workflow: str, event: str, once: Once) -> None:
    name, _, aspect = event.partition(", ")
    found = once(broken_off, workflow, name)
    if aspect == "again":
        assert_only_what_was_open_is_asked_again(found, 2 if workflow == "batch" else 0)
    elif aspect == "message":
        assert RESUME.search(found.ended.said), found.ended.said
        assert "Traceback" not in found.ended.said
    else:
        assert found.ended.code == SIGNALS[name][1], found.ended.said
        assert sum(row["error_code"] is None for row in found.alone) == found.answered


def assert_only_what_was_open_is_asked_again(found: BrokenOff, n_batches: int) -> None:
    assert found.again.code == 0, found.again.said
    assert found.attempts[: len(found.alone)] == found.alone
    assert found.outcomes == ["win"] * N_QUESTIONS
    assert found.asked <= N_QUESTIONS + found.open
    assert found.n_batches == n_batches


N_TIMES = 3


@across(("pairs",), "SIGTERM three times")
@across(
    ("adaptive", "ab", "gate", "study", "check", *COMMANDS), "SIGTERM three times", "Ctrl-C three times", slow=True
)  # fmt: skip
def test_a_signal_waits_for_what_is_open_so_that_nothing_is_paid_for_twice(
    workflow: str, event: str, tmp_path: Path
) -> None:
    number, code = SIGNALS[event.partition(" ")[0]]
    with Server() as server:
        call = call_of(server, tmp_path)
        for _ in range(N_TIMES):
            n_before = len(server.good)
            server.hold(n_before + 1)
            with started(workflow, call, tmp_path) as process:
                server.wait(lambda found, n=n_before: len(found.good) > n and found.open > 0, is_running(process))
                process.send_signal(number)
                said = read_until(process, "; Ctrl-C again to leave them")
                server.release()
                ended = end_of(process, said)
            assert ended.code == code, ended.said
            assert RESUME.search(ended.said), ended.said
            assert len(attempts_in(call.run, cancelled=True)) == len(server.questions) == len(server.good)
        with started(workflow, call, tmp_path) as process:
            again = end_of(process)
        assert again.code in {0, 3, 4}, again.said  # a gate of few tasks is inconclusive
        assert len(server.questions) == len(server.good) == len(outcomes_in(call.run)) == N_QUESTIONS


def is_running(process: subprocess.Popen[str]) -> Callable[[], bool]:
    return lambda: process.poll() is None


@across(tuple(COMMANDS), "deleted file", slow=True)
def test_a_command_whose_run_file_is_deleted_fails(workflow: str, event: str, tmp_path: Path) -> None:
    server = Server()
    server.hold(ANSWERED)
    with server:
        call = call_of(server, tmp_path)
        with started(workflow, call, tmp_path) as process:
            reach_the_middle(workflow, call, server, process)
            for file in ("run.db", "run.db-wal", "run.db-shm"):
                (tmp_path / file).unlink(missing_ok=True)
            server.release()
            ended = end_of(process)
    assert ended.code == 1, ended.said
    assert re.search(r"^error: .*run\.db", ended.said, re.MULTILINE), ended.said


@across(tuple(COMMANDS), "401", slow=True)
def test_a_command_whose_judge_cannot_judge_fails(workflow: str, event: str, tmp_path: Path) -> None:
    refusal = Reply(401, {"message": "Incorrect API key provided."}, until=lambda server: len(server.good) > 2)
    with Server(lambda asked: refusal if asked.number == 4 else None) as server:
        call = call_of(server, tmp_path)
        with started(workflow, call, tmp_path) as process:
            ended = end_of(process)
        assert ended.code == 1
        assert re.search(r"^error: .*Incorrect API key", ended.said, re.MULTILINE), ended.said
        assert sum(one.is_answer for one in attempts_in(call.run)) == len(server.good)
        assert KEY not in ended.said
