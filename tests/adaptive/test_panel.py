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
from pairscale.judges.names import no_grading
from pairscale.judges.panel import PanelJudge
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
def test_results_name_the_judge_who_answered(run: Path) -> None:
    with ps.open_run(run) as store:
        results = store.results()
    log = ps.load_adaptive_session(run).step_log.filter(pl.col("status") == "committed")
    assert results.filter(outcome="win")["judge_id"].to_list() == log["judge"].to_list()
    fit = ps.fit(run, "bayes", judges="slopes", seed=1)
    assert set(fit.judges["judge_id"]) == set(SLOPES)


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
def test_the_call_says_who_is_weak(caplog: pytest.LogCaptureFixture) -> None:
    ranked()
    assert "'coin' is a weak judge" in caplog.text


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


@pytest.mark.slow
def test_another_panel_is_another_judge(run: Path) -> None:
    with pytest.raises(ps.StoreMismatchError, match="another judge"):
        ps.rank(SAMPLES, judge=panel()[:2], run=run, fit="laplace", progress="none", seed=2, max_comparisons=170)


def test_pooled_judges_have_no_slopes() -> None:
    out = ranked(max_comparisons=40, btl_config={"judges": "pooled"})
    assert out.refits["judge_slopes"].null_count() == out.refits.height
    assert out.logs["step_log"]["judge"].null_count() == 0


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


def test_members_must_differ_and_be_judges(message_snapshot) -> None:
    with pytest.raises(InputError, match="twice"):
        PanelJudge([Named("good", 1), Named("good", 1)])
    with pytest.raises(InputError) as refused:
        PanelJudge([Named("good", 1)])
    message_snapshot(refused)
    assert PanelJudge([Named("good", 1), Named("good", 2)]).names == ("good", "good (2)")
    with pytest.raises(InputError, match="empty list"):
        ps.rank(SAMPLES, judge=[], progress="none")
    with pytest.raises(InputError, match="people"):
        ps.rank(SAMPLES, judge="lexical,human", progress="none")
    with pytest.raises(InputError) as refused:
        ps.rank(SAMPLES, judge="lexical,nobody", progress="none")
    message_snapshot(refused)


def test_a_panel_may_be_one_text() -> None:
    out = ps.rank(
        SAMPLES, judge="simulated:good,simulated:coin", fit="laplace", progress="none", max_comparisons=30
    )  # fmt: skip
    name = out.summary["judge_id"].item()
    assert name == "panel of simulated, simulated (2)"
    assert "Not for grading: simulated" in no_grading([name])
