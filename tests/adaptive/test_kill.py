"""``kill -9`` at random moments: a run that is taken up again is the very run that was never killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive.engine import uid_of
from pairscale.adaptive.session import session_exists
from tests.adaptive.running import asked, audited

pytestmark = pytest.mark.slow

N_ITEMS = 12

# The judge leaves a line for each question, and answers by the question alone. The parent reads a line an answer. After
# `most` answers there are no more: a process that is to be killed waits for it, however fast the machine is.
CHILD = textwrap.dedent("""
    import asyncio, json, os, sys
    import pairscale as ps
    from pairscale.judges.panel import PanelJudge

    run, notes, concurrency, n, fit, settings, most = sys.argv[1:]
    settings = json.loads(settings)
    log = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    left = int(most)

    class Noted:
        def __init__(self, seed=5):
            self.inner = ps.SimulatedJudge("theta_true", seed=seed, latency_s=0.004, invalid_rate=0.05, tie_rate=0.02)
            self.condition = self.inner.condition
        async def compare(self, pair):
            global left
            os.write(log, (pair.uid + "\\n").encode())
            verdict = await self.inner.compare(pair)
            if left == 0:
                await asyncio.Event().wait()
            left -= 1
            os.write(1, b".\\n")
            return verdict

    samples = [{"ID": f"s{n:02d}", "text": f"text {n} " * 50, "theta_true": n * 0.4} for n in range(%d)]
    judge = PanelJudge([Noted(), Noted(6)]) if settings.pop("panel", False) else Noted()
    ps.adaptive_rank(
        samples, judge=judge, run=run, concurrency=int(concurrency), max_comparisons=int(n), progress="none",
        fit_fn=fit or None, n_steps=None, **settings,
    )
""")

LETTER: dict[str, Any] = {"btl_config": {"eap_reliability_min": 1.0}}
OURS: dict[str, Any] = {
    "adaptive_config": {"ties": "half", "reverse_rate": 0.2, "discount_repeats": True},
    "btl_config": {"eap_reliability_min": 1.0, "repeats": "learned"},
}
PANEL: dict[str, Any] = {
    "panel": True,
    "adaptive_config": {"ties": "half", "reverse_rate": 0.2, "discount_repeats": True},
    "btl_config": {"eap_reliability_min": 1.0, "repeats": "learned", "prior_sd": "learned", "judges": "slopes"},
}
PROBABILITIES: dict[str, Any] = {
    "adaptive_config": {"ties": "half", "reverse_rate": 0.2, "discount_repeats": True},
    "btl_config": {"eap_reliability_min": 1.0, "repeats": "learned", "answer": "probability"},
}


class Killed:
    """A run whose process is killed again and again, until it is through."""

    def __init__(
        self, folder: Path, *, concurrency: int, most: int, fit: str = "laplace", settings: Any = LETTER
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.run, self.notes, self.kills = folder / "run.db", folder / "asked.txt", 0
        given = json.dumps(settings)
        command = [sys.executable, "-c", CHILD % N_ITEMS, self.run, self.notes, concurrency, most, fit, given]
        self.command, self.most = [str(part) for part in command], most
        self.rows: list[Any] = []
        self.asked = 0

    def start(self, answers: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, str(answers)], stdout=subprocess.PIPE)

    def through(self, kills: int, rng: random.Random) -> None:
        for turn in range(kills):
            # Every fifth somewhere in the start: imports, schema, samples, the replay.
            answers = 0 if turn % 5 == 4 else rng.randint(1, self.most // (kills + 1))
            with self.start(answers) as process:
                assert process.stdout is not None
                for _ in range(answers):
                    process.stdout.readline()
                time.sleep(rng.random() * (0.03 if answers else 1))
                process.send_signal(signal.SIGKILL)
            assert process.returncode == -signal.SIGKILL
            self.kills += 1
            self.check()
        with self.start(-1) as process:
            assert process.stdout is not None
            process.stdout.read()
        assert process.returncode == 0
        self.check()

    def check(self) -> None:
        """What was committed stays committed and is asked no more, and no question was settled twice."""
        notes = self.notes.read_text().splitlines() if self.notes.exists() else []
        new, self.asked = notes[self.asked :], len(notes)
        assert len(set(new)) == len(new)
        assert not set(new) & {uid_of(row[0]) for row in self.rows}
        if not self.run.exists() or not session_exists(str(self.run)):
            assert not self.rows
            return
        rows = ps.load_adaptive_session(self.run).step_log.rows()
        assert rows[: len(self.rows)] == self.rows
        self.rows = rows
        settled = [uid for uid, _ in asked(self.run)]
        assert len(set(settled)) == len(settled)
        assert set(settled) <= set(notes)
        status = Counter(row[8] for row in rows)
        assert len(settled) == status["committed"] + status["invalid"]


def logs(run: Path) -> list[pl.DataFrame]:
    state = ps.load_adaptive_session(run)
    items = ps.adaptive_item_log(state, stack=True)
    return [state.step_log.drop("timestamp"), state.round_log.drop("timestamp"), items]


def uninterrupted(run: Path, *, most: int, fit: str = "laplace", settings: Any = LETTER) -> list[pl.DataFrame]:
    """The logs of the same run in this process, where nothing happens to it."""
    judge = ps.SimulatedJudge("theta_true", seed=5, latency_s=0.004, invalid_rate=0.05, tie_rate=0.02)
    samples = [{"ID": f"s{n:02d}", "text": f"text {n} " * 50, "theta_true": n * 0.4} for n in range(N_ITEMS)]
    ps.adaptive_rank(
        samples, judge=judge, run=run, n_steps=None, max_comparisons=most, progress="none", fit_fn=fit or None,
        **settings,
    )  # fmt: skip
    return logs(run)


@pytest.mark.parametrize(
    ("fit", "kills", "most", "settings"),
    [
        pytest.param("laplace", 1, 40, LETTER, id="laplace"),
        pytest.param("laplace", 2, 80, OURS, id="ours", marks=pytest.mark.validate),
        pytest.param("laplace", 5, 110, LETTER, id="longer", marks=pytest.mark.validate),
        pytest.param("", 1, 40, LETTER, id="sampler", marks=pytest.mark.validate),
    ],
)
def test_in_sequence_it_is_the_very_same_run(tmp_path: Path, fit: str, kills: int, most: int, settings: Any) -> None:
    given = {"most": most, "fit": fit, "settings": settings}
    killed = Killed(tmp_path / "killed", concurrency=1, **given)
    killed.through(kills, random.Random(2026))
    assert killed.kills == kills
    for found, expected in zip(logs(killed.run), uninterrupted(tmp_path / "whole.db", **given), strict=True):
        assert found.equals(expected)
    audited(killed.run)


@pytest.mark.parametrize(
    ("kills", "most", "settings"),
    [
        pytest.param(2, 60, LETTER, id="few"),
        pytest.param(2, 80, OURS, id="ours"),
        pytest.param(2, 60, PROBABILITIES, id="probabilities"),
        pytest.param(2, 60, PANEL, id="panel"),
        pytest.param(6, 130, LETTER, id="many", marks=pytest.mark.validate),
    ],
)
def test_with_many_in_flight_nothing_is_lost_and_nothing_asked_twice(
    tmp_path: Path, kills: int, most: int, settings: Any
) -> None:
    killed = Killed(tmp_path, concurrency=6, most=most, settings=settings)
    killed.through(kills, random.Random(11))
    assert killed.kills == kills
    assert audited(killed.run).steps == len(killed.rows)
    state = ps.load_adaptive_session(killed.run)
    assert state.engine.committed == most
    assert ps.summarize_items(state)["degree"].sum() == 2 * most


@pytest.mark.validate
@pytest.mark.parametrize("concurrency", [1, 6])
def test_kill_9_more_than_a_hundred_times(tmp_path: Path, concurrency: int) -> None:
    rng, kills, more, whole = random.Random(concurrency), 0, 0, None
    if concurrency == 1:
        whole = uninterrupted(tmp_path / "whole.db", most=130)
    for turn in range(8):
        killed = Killed(tmp_path / str(turn), concurrency=concurrency, most=130)
        killed.through(8, rng)
        audited(killed.run)
        if whole is not None:
            assert all(found.equals(expected) for found, expected in zip(logs(killed.run), whole, strict=True))
        kills += killed.kills
        more += len(killed.notes.read_text().splitlines()) - len(asked(killed.run))
    print(f"\n{concurrency} in flight, {kills} kills: 0 answers lost or doubled, {more} questions asked again")
    assert kills == 64
