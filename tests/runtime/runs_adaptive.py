"""Recorded runs: adaptive ranking, one question at a time with every column of its logs, and several at once.

All but one use the normal approximation for refits, which is fast; each choice and each stop then rests on the same
figures on every machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps
from tests.runtime import recorded_calls as call
from tests.runtime.recorded_tables import Tables, recorded

LATE = {"btl_config": {"refit_pairs_target": 12}}
"""Refits every twelve comparisons, so that short runs have several."""


def better(A: Any, B: Any) -> dict[str, Any]:
    return {"is_valid": True, "Y": int(A["theta"] > B["theta"])}


def one_call(folder: Path, n: int, judge: Any, selector: str = "pollitt", **options: Any) -> Tables:
    """A run of one call, from its file."""
    run = folder / "run.db"
    done = call.rank(call.texts(n, seed=n), judge, run=run, selector=selector, **options)
    return call.adaptive_tables(done, run) | {"round_log": ps.adaptive_round_log(done.state)}


@recorded
def adaptive_pollitt(folder: Path) -> Tables:
    return one_call(folder, 12, call.simulated(seed=1), n_steps=70, seed=1)


@recorded
def adaptive_information(folder: Path) -> Tables:
    return one_call(folder, 12, call.simulated(seed=3), "information", n_steps=70, seed=1)


@recorded
def adaptive_until_reliable_then_further(folder: Path) -> Tables:
    """The run stops when it is reliable; a higher demand takes it up again, up to a number of comparisons."""
    run, samples, judge = folder / "run.db", call.texts(14, seed=14), call.simulated(seed=8)
    config = {"eap_reliability_min": 0.7, "refit_pairs_target": 14}
    first = call.rank(samples, judge, run=run, seed=4, btl_config=config)
    steps = first.summary["steps_attempted"][0]
    more = config | {"eap_reliability_min": 0.95}
    done = call.rank(samples, judge, run=run, seed=4, btl_config=more, max_comparisons=steps + 25)
    return call.adaptive_tables(done, run) | {"first_summary": first.summary, "first_refits": first.refits}


@recorded
def adaptive_invalid_answers(folder: Path) -> Tables:
    """Abstentions, ties, and errors that pass when the question is asked again."""
    judge = call.simulated(invalid_rate=0.08, tie_rate=0.05, error_rate=0.25, seed=9)
    tables = one_call(folder, 12, judge, n_steps=70, seed=1, retries=5)
    stored = call.file_tables(folder / "run.db", ordered=True)
    return tables | {name: stored[name] for name in ("file_failed", "file_later_attempts")}


@recorded
def adaptive_resumed(folder: Path) -> Tables:
    """Three calls; the choices are those of one long call."""
    run, samples, judge = folder / "run.db", call.texts(12, seed=12), call.simulated(bias=0.3, seed=10)
    for steps in (17, 5, 38):
        done = call.rank(samples, judge, run=run, n_steps=steps, seed=5)
    whole = call.rank(samples, judge, n_steps=60, seed=5)
    same = call.history(whole.state) == call.history(done.state)
    return call.adaptive_tables(done, run) | {"whole": {"same_history": same}}


@recorded
def adaptive_late_texts(folder: Path) -> Tables:
    """Texts that join a run which has begun."""
    run, samples, judge = folder / "run.db", call.texts(13, seed=21), call.simulated(seed=12)
    call.rank(samples[:9], judge, run=run, n_steps=25, seed=8)
    call.rank(samples[:11], judge, run=run, n_steps=20, seed=8)
    done = call.rank(samples, judge, run=run, n_steps=30, seed=8)
    return call.adaptive_tables(done, run)


@recorded
def adaptive_step_by_step(folder: Path) -> Tables:
    """A run in memory, a few steps per call, beliefs to begin with, settings changed on the way; then saved."""
    samples = [{**one, "mu": 25 + one["theta"], "sigma": 6.0} for one in call.texts(9, seed=22)]
    judge = call.simulated(seed=13)
    state = ps.adaptive_rank_start(samples, seed=9)
    for steps in (1, 9, 15):
        state = call.rank_steps(state, judge, n_steps=steps)
    state = call.rank_steps(state, judge, n_steps=20, adaptive_config={"explore_rate": 0.4})
    folder = ps.save_adaptive_session(state, folder / "session")
    state = call.rank_steps(state, judge, n_steps=5)
    loaded = ps.adaptive_rank_resume(run=folder / "run.db")
    return call.log_tables(state) | {"facts": {"same_history": call.history(loaded) == call.history(state)}}


@recorded
def adaptive_model(folder: Path) -> Tables:
    """A language model as the judge, and the outputs as files."""
    run, samples = folder / "run.db", call.texts(8, seed=23)
    with call.provider(lapse=0.1, seed=10) as server:
        judge = call.model_judge(server, "anthropic")
        done = call.rank(samples, judge, run=run, n_steps=30, seed=1, save_outputs=True, output_file=folder / "out")
        served = server.served
    saved = {path.stem: path for path in sorted(done.output_file.glob("*.csv"))}
    items = pl.read_csv(saved["items"], infer_schema_length=None)
    tables = call.adaptive_tables(done, run) | {"saved": {"files": sorted(saved), "served": served}}
    answers = call.file_tables(run, ordered=True)
    return tables | {"saved_items": items, "file_results": answers["file_results"]}


def at_once(folder: Path, selector: str, concurrency: int) -> Tables:
    """What does not depend on the order in which answers come."""
    run, samples, judge = folder / "run.db", call.texts(14, seed=24), call.simulated(seed=14)
    options: dict[str, Any] = {"seed": 2, "concurrency": concurrency, "selector": selector}
    for most in (40, 75):
        done = call.rank(samples, judge, run=run, max_comparisons=most, **options)
    log = done.state.step_log
    warm = log.filter(pl.col("round_stage") == "warm_start", pl.col("status") == "committed")
    pairs = {frozenset(pair) for pair in warm.select("A_id", "B_id").iter_rows()}
    asked = log.filter(pl.col("status") != "starved").height
    facts: Any = call.adaptive_tables(done, run)["facts"]
    kept = {name: facts[name] for name in ("audit_passed", "loaded_as_returned", "items")}
    kept |= {"committed": log["pair_id"].count(), "within_limit": log["in_flight"].max() < concurrency}
    kept |= {"step_ids_complete": sorted(log["step_id"]) == list(range(1, log.height + 1))}
    kept |= {"answers_stored": facts["comparisons"] == facts["attempts"] == asked}
    kept |= {"warm_pairs": len(pairs), "selectors": log["selector"].unique().to_list()}
    kept |= {"stop": done.summary["last_stop_reason"][0], "ranked": sorted(done.items["ID"])}
    return {"facts": kept}


@recorded
def adaptive_pollitt_8_at_once(folder: Path) -> Tables:
    return at_once(folder, "pollitt", 8)


@recorded
def adaptive_exact(folder: Path) -> Tables:
    """Refits by the sampler, with a resume between them.

    On a machine whose arithmetic rounds differently, the sampler draws other numbers. Then only what was chosen before
    the first refit is comparable; ``probe`` tells the two apart.
    """
    run, samples, judge = folder / "run.db", call.texts(8, seed=25), call.simulated(bias=0.4, seed=15)
    for steps in (20, 14):
        done = call.rank(samples, judge, run=run, n_steps=steps, seed=3, fit_fn="exact")
    tables = call.adaptive_tables(done, run)
    log = done.state.step_log
    before = log.filter(pl.col("belief_refit_id").is_null())
    return {"before_refits": before, "probe": {"figure": call.sampler_probe()}} | tables
