"""A command to call, and a folder of texts to call it with."""

import importlib
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.processes import read_until

from pairscale.cli import main
from pairscale.testing import Batches, Behaviour, ProviderSimulator

TEXTS = {"ann": "Short.", "bob": "Somewhat longer.", "cem": "A text that is longer still.", "dot": "Long. " * 9}

JUDGE = '''
"""A judge for the tests: the longer text is better."""
import pairscale as ps

print("imported: this must not reach standard output")


def longer(A, B, state=None):
    print("asked: neither must this")
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def weighed(A, B, weight=1):
    return {"is_valid": True, "Y": int(weight * len(A["text"]) > weight * len(B["text"]))}


def shy(A, B):
    return {"is_valid": False, "Y": None, "invalid_reason": "I would rather\\nnot \\x1b[31msay"}


def half(A, B):
    return {"is_valid": "ann" not in (A["ID"], B["ID"]), "Y": 1}


def tied(A, B):
    return {"is_valid": True, "Y": 0.5}
'''


@dataclass(frozen=True)
class Outcome:
    """What a call of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with essays, pairs and a judge."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "essays").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "essays" / f"{name}.txt").write_text(text, "utf-8")
    (tmp_path / "mine.py").write_text(JUDGE, "utf-8")
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.fixture
def cli(folder, capsys):
    """Calls the command in this process, as the console script would."""

    def call(*args: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(arg) for arg in args])
        assert not logging.getLogger("pairscale").handlers
        captured = capsys.readouterr()
        return Outcome(int(stopped.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def made():
    """By name, the files that a command made for a test before."""
    return {}


def _made_once(made: dict[str, bytes], name: str, call: Callable[[], Outcome]) -> Path:
    """A file in the current folder: what the call writes, which is kept for the tests that follow."""
    path = Path(name)
    if name in made:
        path.write_bytes(made[name])
    else:
        assert call().code == 0
        made[name] = path.read_bytes()
    return path


@pytest.fixture
def pairs(cli, made):
    """The six pairs of the essays, as a file."""
    return _made_once(made, "pairs.csv", lambda: cli("pairs", "essays", "--out", "pairs.csv"))


@pytest.fixture
def run(cli, pairs, made):
    """A run file with their answers."""
    return _made_once(made, "run.db", lambda: cli("judge", pairs, "--judge", "mine:longer", "--run", "run.db"))


START = "from pairscale.cli import main; main()"


@pytest.fixture
def process(folder):
    """Starts the command in a process of its own; ``before`` runs in it first."""
    started = []

    def start(*args: object, before: str = "pass", **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", f"{before}\n{START}", *map(str, args)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8", **options}
        child = subprocess.Popen(command, cwd=folder, **options)
        started.append(child)
        return child

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate()


STUCK = """
import asyncio, os, pathlib

async def judge(A, B):
    seen = len(list(pathlib.Path("asked").iterdir()))
    pathlib.Path("asked", str(seen)).touch()
    if seen >= AT and "HURRY" not in os.environ:
        pathlib.Path("stuck").touch()
        await asyncio.sleep(3600)
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
"""


@pytest.fixture
def interrupted(process):
    """Runs a command whose judge ``slow:judge`` hangs at a question, and presses Ctrl-C twice: code, output, errors."""

    def run(at: int, *line: object) -> tuple[int, str, str]:
        Path("slow.py").write_text(STUCK.replace("AT", str(at)))
        Path("asked").mkdir()
        # A shell that starts something in the background may have it ignore Ctrl-C.
        child = process(*line, before="import signal; signal.signal(signal.SIGINT, signal.default_int_handler)")
        while not Path("stuck").exists():
            assert child.poll() is None, child.communicate()
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        before = read_until(child, "waiting for")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
        return child.returncode, out, before + err

    return run


@pytest.fixture
def server(monkeypatch):
    """A server that answers for all providers, which judge by length, and their keys."""
    with ProviderSimulator(Behaviour(quality=len, sharpness=5), batches=Batches(looks=2)) as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running
