"""The settings that held are in the run file, and keys are not."""

import subprocess
import sys
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.cli._history import keeping_settings
from pairscale.core.errors import InputError, JudgeError, StoreMismatchError
from pairscale.store.audit import check_evidence
from pairscale.testing import ProviderSimulator

STUDY = """
data = "essays"
run = "run.db"
judge = "mine:weighed"
fit = "laplace"
progress = "none"
steps = 4
[judge_arg]
weight = 2
"""
QUICK = ("--fit", "laplace", "--progress", "none", "--steps", "4")


def kept(run="run.db"):
    with ps.open_run(run) as store:
        return store.read_log("commands")


def note_in(run, number=0):
    with ps.open_run(run, write=True) as store:
        store.set_meta("note", number)


def digest(run="run.db"):
    with ps.open_run(run) as store:
        return check_evidence(store).digest


def test_line_study_and_defaults_are_all_there(cli):
    Path("study.toml").write_text(STUDY)
    assert cli("rank", "study.toml", "--seed", "7", "--set", "explore_rate=0.3").code == 0
    (row,) = kept()
    assert (row["command"], row["study"], row["version"]) == ("rank", "study.toml", ps.__version__)
    said = row["settings"]
    assert (said["seed"], said["set"]) == (7, ["explore_rate=0.3"])  # the line
    assert (said["data"], said["judge"], said["judge_arg"]) == ("essays", "mine:weighed", ["weight=2"])  # the study
    assert (said["concurrency"], said["goal"], said["port"]) == (1, "order", 8484)  # defaults
    assert not {"run", "json", "out", "dry_run", "max_cost"} & set(said)


def test_every_command_that_writes_is_in_order(cli, pairs):
    assert cli("judge", pairs, "--judge", "mine:longer", "--run", "run.db").code == 0
    assert cli("check-judge", "essays", "--n-pairs", "2", "--run", "run.db", "--reliability", "0.1").code == 0
    assert cli("status", "run.db").code == 0
    assert cli("fit", "run.db", "--condition", "all").code == 0
    assert [row["command"] for row in kept()] == ["judge", "check-judge"]
    shown = cli("status", "run.db", "--json").json["commands"]
    assert [row["settings"]["judge"] for row in shown] == ["mine:longer", "lexical"]


FINISHED = {
    "rank": ("rank", "essays", "--judge", "mine:longer", "--fit", "laplace", "--progress", "none"),
    "judge": ("judge", "pairs.csv", "--judge", "mine:longer"),
    "ab": ("ab", "a.csv", "b.csv", "--criterion", "clearer", "--judge", "mine:longer"),
    "gate": ("gate", "a.csv", "b.csv", "--criterion", "clearer", "--judge", "mine:longer"),
    "check-judge": ("check-judge", "essays", "--n-pairs", "2", "--judge", "mine:longer", "--reliability", "0.1"),
}


@pytest.mark.parametrize("road", FINISHED)
def test_a_command_that_does_nothing_leaves_the_run_file_as_it_was(cli, pairs, road):
    for name in "ab":
        rows = "".join(f"{number},{name * (3 if number % 2 else 1)}\n" for number in range(1, 13))
        Path(f"{name}.csv").write_text(f"id,output\n{rows}")
    done = cli(*FINISHED[road], "--run", "run.db")
    assert done.code == (4 if road == "gate" else 0)  # a judge of lengths cannot tell texts of the same length
    before = digest()
    assert before is not None
    again = cli(*FINISHED[road], "--run", "run.db", "--json")
    assert again.code == done.code, again.err
    assert len(kept()) == 1
    assert digest() == before


@pytest.mark.parametrize("error", [InputError, StoreMismatchError, JudgeError, KeyboardInterrupt])
def test_settings_are_kept_with_what_was_asked_by_them_however_it_ends(cli, error):
    def line(seed, work):
        with keeping_settings("judge", "run.db", {"seed": seed}):
            work()
            raise error

    pairs = ps.make_pairs(ps.read_samples("essays"))
    with pytest.raises(error):
        line(1, lambda: None)
    assert not Path("run.db").exists()
    with pytest.raises(error):
        line(2, lambda: ps.submit_pairs(pairs, "lexical", run="run.db", progress=False))
    with pytest.raises(error):
        line(3, lambda: None)
    assert [row["settings"]["seed"] for row in kept()] == [2]


def test_no_key_is_kept(cli, pairs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
    with ProviderSimulator() as server:
        address = f"{server.url}/v1".replace("://", "://ann:planted@")
        settings = ("api_key=planted-other-key", "max_tokens=90", "system=planted-key-0123456789")
        given = [word for text in settings for word in ("--judge-arg", text)]
        line = ("judge", pairs, "--judge", "openai:gpt-4.1", "--base-url", f"{server.url}/v1", "--run", "run.db")
        assert cli(*line, *given[2:4]).code == 0
        assert b"planted" not in Path("run.db").read_bytes()
        given = {"judge_arg": [*settings], "base_url": address, "owner_token": "planted"}
        with keeping_settings("judge", "run.db", given):
            note_in("run.db")
    assert b"planted" not in Path("run.db").read_bytes()
    first, second = (row["settings"] for row in kept())
    assert first["judge_arg"] == ["max_tokens=90"]
    assert second == {"judge_arg": ["max_tokens=90", "system=[key]"], "base_url": f"{server.url}/v1"}


@pytest.mark.parametrize(
    ("given", "kept_of_it"),
    [
        (
            {"judge_arg": ["api-key=planted", "apikey=planted", "Authorization=planted", "max_tokens=9"]},
            ["max_tokens=9"],
        ),
        ({"judge_arg": ["extra_header=planted", "credentials=planted"]}, []),
        ({"judge": ["mine:by_key", "mine:other"]}, ["mine:by_key", "mine:other"]),
        ({"base_url": "https://ann:plan@ted@host/v1"}, "https://host/v1"),
        ({"base_url": "https://host/v1?key=planted&v=2"}, "https://host/v1?key=[key]&v=2"),
        ({"base_url": "https://host/v1?v=2&api-key=planted#x"}, "https://host/v1?v=2&api-key=[key]#x"),
        ({"base_url": "https://host/v1/@me"}, "https://host/v1/@me"),
    ],
)
def test_keys_of_other_names_are_not_kept_either(cli, given, kept_of_it):
    with keeping_settings("judge", "run.db", given):
        note_in("run.db")
    (row,) = kept()
    assert list(row["settings"].values()) == [kept_of_it]
    content = Path("run.db").read_bytes()
    assert b"planted" not in content
    assert b"ted@" not in content


@pytest.mark.slow
def test_settings_are_there_before_the_first_answer(cli, folder):
    (folder / "dying.py").write_text("import os\n\n\ndef judge(A, B):\n    os._exit(9)\n", "utf-8")  # as kill -9 does
    line = [sys.executable, "-m", "pairscale", "rank", "essays", "--judge", "dying:judge", "--run", "run.db", *QUICK]
    assert subprocess.run(line, check=False, capture_output=True).returncode == 9
    (row,) = kept()
    assert (row["command"], row["settings"]["judge"]) == ("rank", "dying:judge")
