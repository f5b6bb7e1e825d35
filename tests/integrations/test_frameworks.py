"""Other frameworks with pairscale in their hands, each in an environment of its own: `make integrations` makes it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, PairscaleError
from pairscale.evaluate.inference import win_rate
from pairscale.integrations import inspect_ai

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "tests" / "data" / "traces"
PYTHON = ROOT / "build" / "integrations" / "bin" / "python"

needs_environment = pytest.mark.skipif(
    not PYTHON.exists(),
    reason="inspect_ai and AG2 are not installed in build/integrations; `make integrations` does it",
)


def told_by(script, *arguments):
    done = subprocess.run(
        [str(PYTHON), str(HERE / script), *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=600,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "HOME": str(arguments[-1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@needs_environment
def test_the_scorer_in_inspect_ai(tmp_path):
    found = told_by("with_inspect.py", DATA, tmp_path)
    assert found["loaded"] == [], "pairscale imports without it"
    told = found["longer"]
    once = {"capital": 1.0, "same": 0.5, "empty": 0.0, "broken": 1.0, "other": None}
    assert told["scores"] == {f"{name}/{epoch}": value for name, value in once.items() for epoch in (1, 2)}
    assert told["unscored"] == 1
    assert set(told["reasons"].values()) == {"scoring_failed"}
    known = [{"task_id": str(n), "outcome": "win" if v != 0.5 else "tie", "winner": {1: "b", 0: "a"}.get(v)}
             for n, v in enumerate([1.0, 0.5, 0.0, 1.0])]  # fmt: skip
    rate = win_rate(known)
    assert told["metrics"] == {
        "win_rate": 0.625,
        "win_rate_lower": round(rate.ci[0], 6),
        "win_rate_upper": round(rate.ci[1], 6),
    }
    assert found["first"]["outcomes"] == {"capital/1": "flip"}
    assert found["first"]["scores"] == {"capital/1": 0.5}
    refused = found["refused"]
    assert refused["scores"] == {"capital/1": None, "same/1": 0.5}, "the same answer needs no judge"
    assert refused["reasons"] == {"capital/1": "grader_failed"}
    assert found["file"]["scores"] == {"capital/1": 1.0}
    assert found["itself"]["win_rate"] == 0.5


@pytest.mark.slow
@needs_environment
def test_objects_of_ag2(tmp_path):
    found = told_by("with_ag2.py", tmp_path)
    assert found["functions"] == found["agents"] == [0, 3, 0], "its comparator sees the answers of our variants"
    assert found["sources"] == [[0, 3, 0], 0]
    assert found["judge"] == [[0, 0, 0], 3], "its judge that always says first has flipped, not tied"
    assert found["saved"] == [[0, 3, 0], [0, 3, 0]]


def test_without_inspect_ai_one_line_says_so():
    if "inspect_ai" in sys.modules:
        pytest.skip("inspect_ai is installed here")
    with pytest.raises(PairscaleError, match="pip install inspect_ai"):
        inspect_ai.pairwise_scorer({"a": "x"}, "lexical", "better")


def test_a_mean_over_epochs_keeps_its_sample_together():
    rate = inspect_ai.win_rate_of({"a": 0.75, "b": 0.5, "c": 1.0})
    assert rate.rate == pytest.approx(0.75)
    whole = inspect_ai.win_rate_of({"a": 1.0, "b": 0.0, "c": 0.5})
    cases = [("a", "win", "b"), ("b", "win", "a"), ("c", "tie", None)]
    assert whole.ci == win_rate([dict(zip(("task_id", "outcome", "winner"), case, strict=True)) for case in cases]).ci
    many = inspect_ai.win_rate_of({f"s{n}": 2 / 3 if n % 2 else 1 / 3 for n in range(20)})
    assert many.rate == pytest.approx(0.5)
    assert many.ci[1] - many.ci[0] < 0.35, "as wide as 20 samples with a small spread, not as three epochs of each"


def test_a_baseline_that_is_none(tmp_path):
    both = tmp_path / "both.json"
    both.write_text(json.dumps([{"instruction": "Q?", "output": "x", "generator": name} for name in "ab"]), "utf-8")
    for baseline, words in (
        ({}, "no outputs"),
        (3, "baseline must be a log"),
        (both, "name one of them"),
    ):
        with pytest.raises(InputError, match=words):
            inspect_ai._Baselines(baseline)
    known = inspect_ai._Baselines(DATA / "inspect_a.eval")
    assert [known.find("capital", "", epoch).output for epoch in (1, 2, 3)] == ["Paris."] * 3
    assert known.find("nobody", "", 1) is None
    assert isinstance(known.find(2, "", 2), ps.Trace)
