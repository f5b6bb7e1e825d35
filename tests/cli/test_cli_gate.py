"""``pairscale gate``: exit codes, files, the baseline, what goes wrong, and the recipes for CI."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import pairscale as ps

ROOT = Path(__file__).parents[2]

JUDGES = '''
"""Judges for the tests."""
import time


def longer(A, B):
    first, second = len(A["text"]), len(B["text"])
    return {"is_valid": True, "Y": 0.5 if first == second else int(first > second)}


def shy(A, B):
    return {**longer(A, B), "is_valid": min(len(A["text"]), len(B["text"])) % 3 > 0, "invalid_reason": "no idea"}


def ends(A, B):
    raise SystemExit(0)


def ending(task):
    raise SystemExit(0)


def answers(task):
    return "x" * 20


def slow(A, B):
    time.sleep(0.02)
    return longer(A, B)
'''


def lines(path, outputs, **more):
    rows = [{"task_id": f"t{n}", "input": f"Question {n}?", "output": text, **more} for n, text in enumerate(outputs)]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def answers(folder):
    (folder / "judges.py").write_text(JUDGES)
    lines("a.jsonl", ["x" * (20 + n % 5) for n in range(60)])
    lines("same.jsonl", ["x" * (20 + (n + n // 5) % 5) for n in range(60)])
    lines("short.jsonl", ["x" * (5 + n % 7) for n in range(60)])
    lines("long.jsonl", ["x" * (40 + n % 7) for n in range(60)])
    yield folder
    sys.modules.pop("judges", None)


GATE = ("gate", "a.jsonl")
HOW = ("--criterion", "says more", "--judge", "judges:longer", "--concurrency", "1")


@pytest.mark.parametrize(
    ("b", "options", "code", "verdict"),
    [
        ("short.jsonl", (), 3, "worse"),
        ("short.jsonl", ("--fail-if", "inconclusive"), 0, "worse"),
        ("long.jsonl", (), 0, "not-worse"),
        ("long.jsonl", ("--fail-if", "not-better"), 0, "better"),
        ("a.jsonl", ("--margin", "0.1"), 0, "equivalent"),
        ("a.jsonl", ("--margin", "0.1", "--fail-if", "worse,not-better"), 3, "equivalent"),
        ("same.jsonl", ("--margin", "0.01"), 0, "inconclusive"),
        ("same.jsonl", ("--margin", "0.01", "--fail-if", "worse", "--fail-if", "inconclusive"), 3, "inconclusive"),
        ("same.jsonl", ("--margin", "0.2", "--fixed"), 0, "equivalent"),
        ("short.jsonl", ("--fixed",), 3, "worse"),
    ],
)
def test_the_exit_code_says_whether_the_verdict_is_among_those_to_fail_on(cli, answers, b, options, code, verdict):
    done = cli(*GATE, b, *HOW, *options)
    assert done.code == code
    assert done.out.startswith(f"{verdict}: ")
    assert f"exit code {code}: the gate {'failed' if code else 'passed'}" in done.err


@pytest.mark.parametrize("fail_if", ["worse", "worse,inconclusive", "not-better"])
def test_losing_five_of_five_does_not_pass(cli, answers, fail_if):
    lines("few_a.jsonl", ["x" * 20] * 5)
    lines("few_b.jsonl", ["x"] * 5)
    done = cli("gate", "few_a.jsonl", "few_b.jsonl", *HOW, "--fail-if", fail_if)
    assert done.code == 4
    assert done.out.startswith("untested: B is untested, as the gate cannot fail with 5 tasks")
    assert "exit code 4: untested, so it has not passed" in done.err
    told = done.err.index("the gate cannot fail with 5 tasks: to show that B is worse takes at least 8")
    assert told < done.err.index("5 cases, 10 questions asked")


def test_code_that_calls_sys_exit_does_not_pass_the_gate(cli, answers):
    Path("ended.py").write_text("raise SystemExit(0)")
    for given, code, words in (
        ((*GATE, "long.jsonl", "--judge", "judges:ends"), 1, "SystemExit: 0"),
        ((*GATE, "long.jsonl", "--judge", "ended:judge"), 1, "ended cannot be imported: SystemExit: 0"),
    ):
        done = cli(*given, "--criterion", "says more", "--concurrency", "1")
        assert done.code == code, done.err
        assert words in done.out + done.err


def test_a_summary_holds_whatever_names_there_are(cli, answers):
    odd = 'says | <b>"more"</b> & \x01 ☃'
    done = cli(
        *GATE, "short.jsonl", *HOW, "--criterion", odd, "--summary", "gate.md",
        "--name-b", "new|one",
    )  # fmt: skip
    assert done.code == 3
    text = Path("gate.md").read_text("utf-8")
    assert text.startswith("### pairscale gate: failed")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in table] == [6] * 4
    assert "<b>" not in text.replace("\\<b\\>", "")


def test_a_baseline_is_a_file_with_the_answers_of_a(cli, answers):
    base = ("--baseline", "a.jsonl")
    assert cli("gate", "short.jsonl", *HOW, *base).code == 3
    done = cli("gate", "same.jsonl", "short.jsonl", *HOW, *base)
    assert (done.code, "leave out those of A" in done.err) == (2, True)


@pytest.mark.slow
def test_a_gate_that_is_killed_is_resumed(cli, answers):
    command = [sys.executable, "-m", "pairscale", "gate", "a.jsonl", "same.jsonl", "--criterion", "c",
               "--margin", "0.01", "--judge", "judges:slow", "--run", "gate.db"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(answers), *sys.path])}
    child = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    known = 0
    for _ in range(6000):
        time.sleep(0.1)
        if Path("gate.db").exists():
            try:
                with ps.open_run("gate.db") as store:
                    known = store.counts()["comparisons"]
            except ps.errors.PairscaleError:
                continue
            if known:
                break
    child.send_signal(signal.SIGKILL)
    child.wait(600)
    arguments = (*command[3:], "--json")
    resumed = cli(*arguments)
    whole = cli(*(one for one in arguments if one not in {"--run", "gate.db"}))
    assert (resumed.code, resumed.json["verdict"]) == (whole.code, whole.json["verdict"])
    assert resumed.json["criteria"] == whole.json["criteria"]
    assert resumed.json["run"]["asked"] <= whole.json["run"]["asked"] - known
    assert cli(*arguments).json["run"]["asked"] == 0


# The recipes


def blocks_of_the_guide():
    page = (ROOT / "docs/guides/gate.md").read_text("utf-8")
    return re.findall(r"```text\n(.*?)```", page, re.DOTALL)


def test_the_guide_links_the_script():
    assert "(../examples/gate/gate.sh)" in (ROOT / "docs/guides/gate.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_the_guide_shows_the_files_that_it_offers(name):
    assert (ROOT / "docs/examples/gate" / name).read_text("utf-8") in blocks_of_the_guide()


def test_the_workflow_uses_inputs_that_the_action_has():
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    workflow = yaml.safe_load((ROOT / "docs/examples/gate/github.yml").read_text("utf-8"))
    step = workflow["jobs"]["gate"]["steps"][-1]
    assert set(step["with"]) <= set(action["inputs"])
    assert all(one.get("description") for one in action["inputs"].values())
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= set(step["with"])
    assert not any("key" in name for name in action["inputs"])
    for part in action["runs"]["steps"]:
        assert "${{" not in part.get("run", ""), "an input in a script could be run as a command"


@pytest.fixture
def shell(answers):
    """Runs a script with ``pairscale`` and ``python`` of this environment."""
    programs = answers / "programs"
    programs.mkdir()
    for name, what in (("pairscale", " -m pairscale"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{what} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join([str(answers), *(one for one in sys.path if one)])
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}

    def run(script, shell=("bash", "-eo", "pipefail", "-c"), **variables):
        return subprocess.run(
            [*shell, script],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


@pytest.mark.slow
def test_the_action_runs_the_gate(shell, answers):
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = next(one for one in action["runs"]["steps"] if one.get("id") == "gate")
    named = {
        variable: re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for variable, value in step["env"].items()
    }
    assert set(named.values()) == set(action["inputs"]) - {"python-version", "comment"}
    given = {name: one.get("default", "") for name, one in action["inputs"].items()}
    given |= {"a": "a.jsonl", "b": "short.jsonl", "criterion": "says more\nmore; rm -rf $(echo no)\n",
              "judge": "judges:longer", "arguments": "--concurrency=1\n--name-a=base"}  # fmt: skip
    variables = {variable: given[name] for variable, name in named.items()}
    variables |= {"RUNNER_TEMP": ".", "GITHUB_OUTPUT": "out.txt", "GITHUB_STEP_SUMMARY": "step.md"}
    done = shell(step["run"], **variables)
    assert done.returncode == 3, done.stderr
    assert Path("out.txt").read_text() == "verdict=worse\nexit-code=3\nsummary=./pairscale-gate.md\n"
    assert "pairscale gate: failed" in Path("step.md").read_text()
    assert shell(step["run"], **{**variables, "GATE_B": "long.jsonl"}).returncode == 0
    assert shell(step["run"], **{**variables, "GATE_B": "none.jsonl"}).returncode == 1
    assert Path("out.txt").read_text().splitlines()[-3:-1] == ["verdict=", "exit-code=1"]
    unset = shell(step["run"], **{**variables, "GATE_B": ""})
    assert (unset.returncode, "an argument is empty" in unset.stderr) == (2, True), "not the current folder"


@pytest.mark.parametrize("earlier", ["", "17"])
def test_the_action_comments_once_on_a_pull_request(shell, answers, earlier):
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = next(part for part in action["runs"]["steps"] if part.get("id") == "comment")
    program = answers / "programs" / "gh"
    program.write_text(f'#!/bin/sh\necho "$@" >> calls.txt\ncase "$*" in *--jq*) echo "{earlier}";; esac\n')
    program.chmod(0o755)
    Path("summary.md").write_text("pairscale gate: failed\n")
    variables = {"GITHUB_REPOSITORY": "us/it", "PULL_REQUEST": "5", "RUNNER_TEMP": ".", "GATE_SUMMARY": "summary.md"}
    assert shell(step["run"], **variables).returncode == 0
    listed, written = Path("calls.txt").read_text().splitlines()
    assert "repos/us/it/issues/5/comments" in listed
    change = "PATCH repos/us/it/issues/comments/17" if earlier else "POST repos/us/it/issues/5/comments"
    assert f"--method {change} -F body=@./pairscale-comment.md" in written
    assert Path("pairscale-comment.md").read_text() == "<!-- pairscale gate -->\npairscale gate: failed\n"


@pytest.mark.slow
def test_the_script_runs_the_gate(shell, answers, cli):
    script = (ROOT / "docs/examples/gate/gate.sh").read_text("utf-8")
    Path("pr.jsonl").write_text(Path("short.jsonl").read_text())
    done = shell(script, ("sh", "-c"), JUDGE="judges:longer")
    assert (done.returncode, "could not run" in done.stdout) == (1, True), "there is no baseline yet"
    Path("baseline.jsonl").write_text(Path("a.jsonl").read_text())
    done = shell(script, ("sh", "-c"), JUDGE="judges:longer")
    assert (done.returncode, "failed: see gate.md" in done.stdout) == (3, True), done.stderr
    gitlab = yaml.safe_load((ROOT / "docs/examples/gate/gitlab.yml").read_text("utf-8"))["gate"]["script"][-1]
    done = shell(gitlab.replace("openai:gpt-5.1", "judges:longer"), ("sh", "-c"))
    assert done.returncode == 3, done.stderr
