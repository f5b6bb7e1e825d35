"""Recorded runs: batches of the four providers that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.runtime import recorded_calls as call
from tests.runtime.recorded_tables import Tables, recorded


def pipeline(folder: Path, name: str, **options: Any) -> Tables:
    """A provider's pipeline in two batches, and the same call again."""
    pairs, run = call.pairs_of(call.texts(5, seed=40)), folder / "run.db"
    with call.provider(bias=0.5, lapse=0.1, seed=20) as server:
        ask = call.batch_submit if name == "together" else call.batch_pipeline
        done = ask(pairs, server, name, run=run, n_segments=2, **options)
        created = server.batches.created
        again = ask(pairs, server, name, run=run, n_segments=2, **options)
        facts = {"created": created, "created_again": server.batches.created, "answers_again": again.results.height}
    return call.batch_tables(done) | call.file_tables(run, ordered=False) | {"batches": facts}


@recorded
def batch_openai(folder: Path) -> Tables:
    return pipeline(folder, "openai")


@recorded
def batch_anthropic(folder: Path) -> Tables:
    return pipeline(folder, "anthropic")


@recorded
def batch_failed_requests(folder: Path) -> Tables:
    """Some requests fail on the provider's side; the next call submits these alone."""
    pairs, run = call.pairs_of(call.texts(7, seed=41)), folder / "run.db"
    tables: Tables = {}
    with call.provider(batches={"failing": 0.25, "gone": 0.1}, seed=21) as server:
        for number in (1, 2, 3):
            done = call.batch_submit(pairs, server, "openai", run=run)
            tables |= call.batch_tables(done, f"call{number}_")
        tables["batches"] = {"sizes": [len(job.requests) for job in server.batches.jobs.values()]}
    return tables | call.file_tables(run, ordered=False)


@recorded
def batch_expired(folder: Path) -> Tables:
    """Three batches, of which one expires; they are waited for later, and the rest is submitted again."""
    pairs = call.pairs_of(call.texts(6, seed=42))
    with call.provider(batches={"ends": ("done", "expired", "done")}, seed=22) as server:
        jobs = call.batches_submit(pairs, server, "anthropic", folder, n_segments=3)
        before = jobs.registry.select("segment_index", "provider", "model", "batch_id", "done")
        first = call.batches_resume(output_dir=folder)
        more = call.batches_submit(pairs, server, "anthropic", folder, n_segments=1)
        done = call.batches_resume(output_dir=folder)
        sizes = [len(job.requests) for job in server.batches.jobs.values()]
    return {
        "submitted": before,
        "first_results": first.combined.sort("custom_id"),
        "first_failures": first.batch_failures,
        "first_rest": first.rest.select("ID1", "ID2").sort("ID1", "ID2"),
        "again": more.registry.select("segment_index", "provider", "batch_id", "done"),
        "results": done.combined.sort("custom_id"),
        "batches": {"sizes": sizes, "rest": done.rest.height},
    } | call.file_tables(folder / "run.db", ordered=False)
