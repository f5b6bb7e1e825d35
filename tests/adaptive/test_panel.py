"""Adaptive runs with several judges: who answers, slopes in the refits, weak judges named, resuming, and the audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.core.comparisons import panel_member
from pairscale.core.errors import InputError
from tests.adaptive.running import Tamper, audited

N = 16
TRUTH = np.random.default_rng(4).normal(0, 1.5, N)
SLOPES = {"good": 2.0, "fair": 1.0, "coin": 0.0}
SAMPLES = pl.DataFrame(
    {"ID": [f"t{at:02d}" for at in range(N)], "text": [f"text {at}" for at in range(N)]}
    | {name: slope * TRUTH for name, slope in SLOPES.items()}
)


class Named:
    """A simulated judge under a name of its own."""

    def __init__(self, name: str, seed: int) -> None:
        self._judge = ps.SimulatedJudge(name, seed=seed)
        self.condition = ps.Condition(name, settings={"seed": seed})

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        return await self._judge.compare(pair)


def panel() -> list[Any]:
    return [Named(name, at) for at, name in enumerate(SLOPES)]


def ranked(run: Path | None = None, **more: Any) -> ps.AdaptiveResult:
    options = {"fit": "laplace", "progress": "none", "max_comparisons": 160, "seed": 2} | more
    return ps.rank(SAMPLES, judge=panel(), run=run, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("panel") / "run.db"
    ranked(path)
    return path


@pytest.mark.slow
def test_every_pair_belongs_to_one_judge_who_is_in_the_log(run: Path) -> None:
    log = ps.load_adaptive_session(run).step_log.filter(pl.col("status") == "committed")
    assert set(log["judge"]) == set(SLOPES)
    names = list(SLOPES)
    for one, two, judge in log.select("A_id", "B_id", "judge").iter_rows():
        assert judge == names[panel_member(one, two, 3)] == names[panel_member(two, one, 3)]


@pytest.mark.slow
def test_refits_have_slopes_and_the_weak_judge_is_named(run: Path, tmp_path: Path) -> None:
    state = ps.load_adaptive_session(run)
    last = state.round_log.row(-1, named=True)
    slopes = {row["judge_id"]: row for row in json.loads(last["judge_slopes"])}
    assert slopes["good"]["slope"] > slopes["fair"]["slope"] > slopes["coin"]["slope"]
    assert json.loads(last["weak_judges"]) == ["coin"]
    assert json.loads(ps.summarize_adaptive(state)["weak_judges"].item()) == ["coin"]
    status = ps.status(run)
    assert json.loads(status.adaptive["judge"]["weak_judges"]) == ["coin"]
    page = ps.report(run, out=tmp_path / "run.html").read_text("utf-8")
    assert "weak: it says little about the texts" in page


@pytest.mark.slow
def test_a_run_that_is_taken_up_again_is_the_same_run(run: Path, tmp_path: Path) -> None:
    for steps in (5, None):
        parts = ranked(tmp_path / "parts.db", steps=steps)
    columns = ["A_id", "B_id", "Y", "judge", "round_stage"]
    whole = ps.load_adaptive_session(run).step_log
    assert parts.logs["step_log"].select(columns).equals(whole.select(columns))
    audited(tmp_path / "parts.db")


def test_the_audit_finds_a_judge_that_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    ranked(path, max_comparisons=30)
    audited(path)
    with Tamper(path) as logs:
        row = logs.logs["step_log"][3]
        row["judge"] = next(name for name in SLOPES if name != row["judge"])
    report = ps.audit(path)
    assert not report.passed
    assert "judge" in str(report)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"answer": "probability"}, "learned from winners"),
        ({"btl_config": {"prior_sd": 1.0}}, "does not take prior_sd"),
        ({"btl_config": {"judges": "each"}}, "judges must be"),
    ],
)
def test_what_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ranked(**more)
