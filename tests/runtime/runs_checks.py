"""Recorded runs: studies of templates and judges, and pilots of costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pairscale as ps
from tests.runtime import recorded_calls as call
from tests.runtime.recorded_tables import Tables, recorded


@recorded
def study_simulated_judges(folder: Path) -> Tables:
    """Three templates, two judges who are swayed by the position to different extents; taken up again."""
    pairs, run = call.pairs_of(call.texts(8, seed=30)), folder / "run.db"
    bias = {"default": 0.2, "concise": 0.9, "weigh": 2.0}
    judges = {
        "steady": lambda template: call.simulated(bias=bias[template] / 2, seed=1),
        "shaky": lambda template: call.simulated(bias=bias[template], lapse=0.1, invalid_rate=0.05, seed=2),
    }
    options: Any = {"templates": list(bias), "judge": judges, "run": run, "concurrency": 1, "progress": False}
    ps.template_study(pairs.head(10), **options)
    done = ps.template_study(pairs, **options)
    return {"table": done.table, "ranking": done.ranking} | call.file_tables(run, ordered=False)


@recorded
def check_judges(folder: Path) -> Tables:
    """Judges on trial: one with a position bias who declines at times, and the lexical one."""
    samples, run = call.texts(12, seed=32), folder / "run.db"
    judge = call.simulated(bias=0.9, lapse=0.05, invalid_rate=0.05, seed=4)
    done = ps.check_judge(samples, judge, n_pairs=20, seed=3, run=run, concurrency=4, progress=False)
    tables = call.check_tables(done) | call.file_tables(run, ordered=False)
    essays = ps.read_samples(ps.example_writing_samples).head(8).to_dicts()
    lexical = ps.check_judge(essays, "lexical", n_pairs=15, seed=2, concurrency=1, progress=False)
    tables |= call.check_tables(lexical, "lexical_")
    with call.provider(bias=0.7, seed=13) as server:
        model = ps.check_judge(samples, call.model_judge(server), n_pairs=12, seed=5, concurrency=4, progress=False)
    return tables | call.check_tables(model, "model_")


@recorded
def cost_pilot(folder: Path) -> Tables:
    """A pilot, the same again, batches instead, and the rest judged on the same run file."""
    pairs, run = call.pairs_of(call.texts(8, seed=33)), folder / "run.db"
    with call.provider(lapse=0.1, seed=14) as server:
        done = call.estimate(pairs, server, n_test=10, seed=2, run=run)
        served = server.served
        again = call.estimate(pairs, server, n_test=10, seed=2, run=run, mode="batch", batch_discount=0.5)
        random = call.estimate(pairs, server, n_test=8, seed=3, test_strategy="random", concurrency=4)
        rough = call.estimate(pairs, server, offline=True)
        before = server.served
        rest = call.judge_pairs(
            pairs, call.model_judge(server, price={"input": 2.0, "output": 8.0}), run=run, concurrency=1
        )
        facts = {"pilot": served, "before_rest": before, "all": server.served, "asked": rest.asked}
    tables = call.estimate_tables(done) | call.estimate_tables(random, "random_")
    tables |= {"again_summary": again.summary, "rough_summary": rough.summary, "served": facts}
    return tables | call.file_tables(run, ordered=True)
