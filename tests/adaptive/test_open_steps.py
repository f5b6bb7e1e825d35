"""A step that was open at a kill keeps its pair, whatever changes before the run is taken up again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pairscale as ps
from tests.adaptive.running import audited

# After some answers the judge fails for the moment, so that the attempt is in the run file; then the process dies.
CHILD = textwrap.dedent("""
    import asyncio, os, signal, sys
    import pairscale as ps

    answered = 0

    class Judge:
        condition = ps.SimulatedJudge("theta_true", seed=5).condition

        async def compare(self, pair):
            global answered
            answered += 1
            if answered <= 20:
                return ps.Verdict.win(1 if pair.first["theta_true"] > pair.second["theta_true"] else 2)
            if pair.attempt == 1:
                return ps.Verdict.fail("rate_limited", "busy", failure="transient")
            await asyncio.sleep(0.5)  # the attempt before is on the disk
            os.kill(os.getpid(), signal.SIGKILL)

    samples = [{"ID": f"s{n:02d}", "text": f"text {n}", "theta_true": n * 0.4} for n in range(12)]
    ps.adaptive_rank(
        samples, judge=Judge(), run=sys.argv[1], concurrency=int(sys.argv[2]), n_steps=None, max_comparisons=60,
        progress="none", fit_fn="laplace", retry_wait=0.0,
    )
""")


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("change", ["nothing", "join", "settings"])
def test_an_open_step_keeps_its_pair(change: str, concurrency: int, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    done = subprocess.run([sys.executable, "-c", CHILD, str(run), str(concurrency)], check=False, timeout=600)
    assert done.returncode == -9
    with ps.open_run(run) as store:
        open_at_the_kill = {row["custom_id"]: (row["ID1"], row["ID2"]) for row in store.failed_attempts().to_dicts()}
    assert open_at_the_kill
    samples = [{"ID": f"s{n:02d}", "text": f"text {n}", "theta_true": n * 0.4} for n in range(15)]
    judge, asking = ps.SimulatedJudge("theta_true", seed=5), {"concurrency": concurrency, "max_comparisons": 60}
    if change == "settings":
        state = ps.load_adaptive_session(run)
        ps.adaptive_rank_run_live(
            state, judge, None, adaptive_config={"explore_rate": 0.9}, fit_fn="laplace", progress="none", **asking
        )
    else:
        known = samples if change == "join" else samples[:12]
        ps.adaptive_rank(known, judge=judge, run=run, n_steps=None, fit_fn="laplace", progress="none", **asking)
    state = ps.load_adaptive_session(run)
    steps = {f"step-{row['step_id']:06d}": (row["A_id"], row["B_id"]) for row in state.step_log.to_dicts()}
    with ps.open_run(run) as store:
        results = store.results().to_dicts()
    assert {row["custom_id"]: (row["ID1"], row["ID2"]) for row in results}.items() <= steps.items()
    assert open_at_the_kill.items() <= steps.items()
    assert all(row["better_id"] in {row["ID1"], row["ID2"]} for row in results if row["outcome"] == "win")
    audited(run)
