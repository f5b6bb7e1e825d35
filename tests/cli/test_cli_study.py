"""Study files: what stands in them is what the command does, and what is wrong in them is named."""

import re
import tomllib
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.cli import rank
from pairscale.cli._study import TEMPLATE

STUDY = """
data = "essays"
run = "run.db"
judge = "mine:longer"
fit = "laplace"
progress = "none"
seed = 5
[limits]
steps = 6
max-comparisons = 5
[set]
explore_rate = 0.3
"""


@pytest.fixture
def study(cli):
    Path("study.toml").write_text(STUDY)
    return cli


def test_a_study_runs_and_goes_on(study):
    done = study("rank", "study.toml", "--json")
    assert done.code == 0
    assert done.json["summary"][0]["committed_pairs"] == 5
    more = study("rank", "study.toml", "--max-comparisons", "8", "--json")  # the line wins
    assert more.json["summary"][0]["committed_pairs"] == 8
    with ps.open_run("run.db") as store:
        start = store.read_log("adaptive_events")[0]
    assert start["seed"] == 5
    assert start["adaptive_config"]["explore_rate"] == 0.3


def test_paths_are_those_beside_the_file(study, monkeypatch):
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert study("rank", "../study.toml", "--judge", "lexical", "--json").code == 0
    assert Path("../run.db").exists()
    assert not Path("run.db").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour = 2\n", "there is no option 'colour'"),
        ('judge = "lexical"\n', "does not say where the texts are"),
        ("data = essays\n", "is not valid TOML"),
        ('data = "essays"\nconcurrency = "many"\n', "--concurrency: must be a whole number"),
    ],
)
def test_what_is_wrong_is_named(cli, text, said):
    Path("study.toml").write_text(text)
    done = cli("rank", "study.toml")
    assert done.code in {1, 2}
    assert said in done.err
    assert "Traceback" not in done.err


def test_init_writes_a_study_that_runs_and_never_over_another(cli):
    assert cli("init").code == 0
    done = cli("rank", "study.toml", "--steps", "4", "--fit", "laplace", "--progress", "none", "--json")
    assert done.json["summary"][0]["committed_pairs"] == 4
    again = cli("init")
    assert again.code == 1
    assert "already exists" in again.err
    assert "must be a file that ends in '.toml'" in cli("init", "study.txt").err


def test_everything_that_the_file_suggests_exists():
    """With all suggestions taken up, it is valid TOML of options and fields that there are."""
    text = TEMPLATE.format(name="study.toml", data="essays")
    taken = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    content = tomllib.loads(taken)
    fields = {entry["name"] for config in (AdaptiveConfig, BTLConfig) for entry in config.describe()}
    assert set(content.pop("set")) <= fields
    content.pop("judge_arg")
    limits = content.pop("limits")
    assert len(limits) == 3
    assert {*content, *limits} <= {option.key for option in rank.command.options}


def test_essays_never_go_over_another_text(cli):
    assert cli("init", "one.toml", "--data", "made", "--essays", "3").code == 0
    assert cli("init", "two.toml", "--data", "made", "--essays", "3").code == 0  # the same ones
    first = next(Path("made").iterdir())
    first.write_text("mine")
    done = cli("init", "three.toml", "--data", "made", "--essays", "3")
    assert (done.code, first.read_text()) == (1, "mine")
    assert "holds another text already" in done.err
    assert not Path("three.toml").exists()
    assert cli("init", "four.toml", "--data", "one.toml", "--essays", "3").code == 1


@pytest.mark.slow
def test_a_default_that_is_said_does_not_open_a_stopped_run_again(cli):
    """Nobody pays for further answers because a study file says what held anyway."""
    assert cli("init", "--data", "made", "--essays", "12").code == 0
    line = ("rank", "made", "--run", "run.db", "--trait", "overall_quality", "--fit", "laplace", "--progress", "none")
    first = cli(*line, "--json").json["summary"][0]
    assert first["last_stop_reason"] == "btl_converged"
    for said in (("--reliability", "0.9"), ("--set", "eap_reliability_min=0.9")):
        assert cli(*line, *said, "--json").json["summary"][0] == first
    assert (
        cli(*line, "--reliability", "0.95", "--json").json["summary"][0]["committed_pairs"] > first["committed_pairs"]
    )
