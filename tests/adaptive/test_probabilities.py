"""Adaptive runs with probabilities as evidence: the log, refits, resuming, and the audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.models.bayes.fit import fit_btl_laplace
from tests.adaptive.running import Tamper, audited

N = 12
TRUTH = np.random.default_rng(4).normal(0, 1.5, N)
SAMPLES = pl.DataFrame(
    {"ID": [f"t{at:02d}" for at in range(N)], "text": [f"text {at}" for at in range(N)], "theta_true": TRUTH}
)
JUDGE = ps.SimulatedJudge("theta_true", error=1.0, error_df=4, limit=5.0, bias=0.2, seed=3)


def ranked(run: Path | None = None, **more: Any) -> ps.AdaptiveResult:
    options = {"fit": "laplace", "progress": "none", "max_comparisons": 60, "seed": 2} | more
    return ps.rank(SAMPLES, judge=JUDGE, run=run, answer="probability", **options)


def test_the_step_log_holds_the_probabilities_and_the_refits_use_them() -> None:
    out = ranked()
    log = out.logs["step_log"].filter(pl.col("status") == "committed")
    assert log["probability"].null_count() == 0
    assert ((log["probability"] > 0.5) == (log["Y"] == 1)).all()
    assert set(out.refits["mcmc_engine_version"].str.split(" ").list.last()) == {"laplace"}
    rows = log.select(ID1="A_id", ID2="B_id", better_id=pl.when(pl.col("Y") == 1).then("A_id").otherwise("B_id"),
                      probability="probability")  # fmt: skip
    fit = fit_btl_laplace(rows, SAMPLES["ID"].to_list(), "btl_b", seed=1, prior_sd="learned", repeats="learned")
    last = out.items.sort("ID")["theta_mean"].to_numpy()
    assert last == pytest.approx(fit.posterior.items.theta_mean, abs=0.05)
    assert np.corrcoef(last, TRUTH)[0, 1] > 0.9
    assert out.refits["b_mean"][-1] is not None
    assert out.refits["epsilon_mean"][-1] is None


def test_a_run_that_is_taken_up_again_is_the_same_run(tmp_path: Path) -> None:
    whole = ranked(tmp_path / "whole.db")
    for steps in (5, 17, 9, None):
        parts = ranked(tmp_path / "parts.db", steps=steps)
    columns = ["A_id", "B_id", "Y", "probability", "round_stage"]
    assert parts.logs["step_log"].select(columns).equals(whole.logs["step_log"].select(columns))
    audited(tmp_path / "parts.db")


@pytest.mark.parametrize("where", ["log", "answer"])
def test_the_audit_finds_a_probability_that_was_changed(tmp_path: Path, where: str) -> None:
    """Also when the chain of hashes was made whole again."""
    run = tmp_path / "run.db"
    ranked(run, max_comparisons=30)
    with Tamper(run) as logs:
        if where == "log":
            logs.logs["step_log"][3]["probability"] = 0.123
        else:
            logs.execute("UPDATE comparisons SET probability = 0.123 WHERE comparison_id = 4")
    report = ps.audit(run)
    assert not report.passed
    assert "probability" in str(report)


def test_what_is_refused(message_snapshot, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        ps.rank(SAMPLES, judge=JUDGE, answer="odds", progress="none")  # type: ignore[arg-type]
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.rank(SAMPLES, judge="human", answer="probability", progress="none")
    message_snapshot(refused)
    ranked(tmp_path / "run.db", max_comparisons=20)
    with pytest.raises(ps.StoreMismatchError, match="answer"):
        ps.rank(SAMPLES, judge=JUDGE, run=tmp_path / "run.db", fit="laplace", progress="none", seed=2)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_judge_that_gives_none_is_named_after_ten_answers(message_snapshot, tmp_path: Path, concurrency: int) -> None:
    asked = []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        asked.append(A["ID"])
        return {"is_valid": True, "Y": int(A["theta_true"] > B["theta_true"])}

    named = ps.FunctionJudge(judge, name="plain")
    run = tmp_path / "run.db"
    for _ in range(2):  # the same call again says the same, and asks nothing
        with pytest.raises(JudgeError) as caught:
            ps.rank(
                SAMPLES, judge=named, answer="probability", run=run, fit="laplace", progress="none",
                concurrency=concurrency,
            )  # fmt: skip
        message_snapshot(caught)
        assert 10 <= len(asked) <= 10 + concurrency - 1
        assert caught.value.result.summary["committed_pairs"].item() == len(asked)
    assert ps.audit(run).passed
