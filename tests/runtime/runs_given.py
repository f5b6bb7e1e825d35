"""Recorded runs: pairs that are given, judged live."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps
from tests.runtime import recorded_calls as call
from tests.runtime.recorded_tables import Tables, recorded


def longer(A: Any, B: Any) -> dict[str, Any]:
    return {"is_valid": True, "Y": int((len(A["text"]), A["ID"]) > (len(B["text"]), B["ID"]))}


class Mixed:
    """Every kind of outcome, by the pair; each text is in few failures, and the first question is answered."""

    def __init__(self) -> None:
        self.tried: set[tuple[str, str]] = set()

    def __call__(self, A: Any, B: Any) -> Any:
        pair = (min(A["ID"], B["ID"]), max(A["ID"], B["ID"]))
        again = pair in self.tried
        self.tried.add(pair)
        if pair in {("s01", "s05"), ("s03", "s07")}:
            return {"is_valid": True, "Y": 0.5}
        if pair == ("s02", "s06"):
            return {"is_valid": False, "Y": None, "invalid_reason": "refusal"}
        if pair == ("s04", "s08"):
            raise ValueError("this pair cannot be judged")
        if pair == ("s01", "s07"):
            return {"is_valid": True, "Y": 7}
        if pair == ("s01", "s06") and not again:
            raise ConnectionError("try again")
        if pair == ("s05", "s06"):
            return ps.Verdict.win(1, probability=0.75, content="first", thoughts="a while", cost=0.25)
        return longer(A, B)


@recorded
def given_function(folder: Path) -> Tables:
    pairs, run = call.pairs_of(call.texts(7)), folder / "run.db"
    judge = ps.FunctionJudge(longer, name="longer")
    done = call.judge_pairs(pairs, judge, run=run, concurrency=1)
    again = call.judge_pairs(pairs, judge, run=run, concurrency=1)
    tables = call.answer_tables(done) | call.file_tables(run, ordered=True)
    tables["again"] = {"asked": again.asked, "same_results": again.results.equals(done.results)}
    return tables


def mixed(folder: Path, concurrency: int) -> Tables:
    pairs, run = call.pairs_of(call.texts(8), seed=4), folder / "run.db"
    done = call.judge_pairs(pairs, ps.FunctionJudge(Mixed(), name="mixed"), run=run, concurrency=concurrency)
    return call.answer_tables(done) | call.file_tables(run, ordered=concurrency == 1)


@recorded
def given_every_outcome(folder: Path) -> Tables:
    return mixed(folder, 1)


@recorded
def given_repeated_pairs(folder: Path) -> Tables:
    """Each pair three times and once reversed, by a judge with a position bias and lapses."""
    run, pairs = folder / "run.db", call.pairs_of(call.texts(4), seed=3)
    turned = pairs.rename(
        {f"{name}{one}": f"{name}{two}" for name in ("ID", "text", "theta") for one, two in ("12", "21")}
    )
    asked = pl.concat([pairs, pairs, turned.select(pairs.columns), pairs])
    judge = call.simulated(bias=0.6, lapse=0.1, seed=11)
    done = call.judge_pairs(asked, judge, run=run, concurrency=1)
    return call.answer_tables(done) | call.file_tables(run, ordered=True)


@recorded
def given_saved_as_csv(folder: Path) -> Tables:
    """A table beside the run, or in its place: written as answers come, and taken up again."""
    pairs, path = call.pairs_of(call.texts(6, seed=10)), folder / "saved.csv"
    judge = call.simulated(tie_rate=0.2, seed=4)
    first = call.judge_pairs(pairs.head(6), judge, concurrency=1, save_path=path)
    with path.open(encoding="utf-8", newline="") as file:
        before = list(csv.DictReader(file))
    done = call.judge_pairs(pairs, judge, run=folder / "run.db", concurrency=1, save_path=path)
    with path.open(encoding="utf-8", newline="") as file:
        after = list(csv.DictReader(file))
    tables = call.answer_tables(first, "first_") | {"csv_before": before, "csv": after}
    return tables | call.answer_tables(done) | call.file_tables(folder / "run.db", ordered=True)


@recorded
def given_exported_and_imported(folder: Path) -> Tables:
    run, pairs = folder / "run.db", call.pairs_of(call.texts(6, seed=11))
    done = call.judge_pairs(pairs, call.simulated(tie_rate=0.2, invalid_rate=0.1, seed=6), run=run, concurrency=1)
    tables: Tables = {}
    for suffix in ("csv", "jsonl"):
        path, copy = ps.export(run, folder / f"results.{suffix}"), folder / f"{suffix}.db"
        new = ps.import_run(path, copy, call.texts(6, seed=11))
        tables[f"{suffix}_facts"] = {"new": new, "newer": ps.import_run(path, copy)}
        tables |= call.file_tables(copy, ordered=True, prefix=f"{suffix}_")
    played = call.judge_pairs(pairs, ps.ReplayJudge(done.results), concurrency=1)
    return tables | call.answer_tables(played, "played_")


# Language models


@recorded
def given_every_provider(folder: Path) -> Tables:
    """The verb for models by their names, with a trait of one's own; and a single pair."""
    run, pairs = folder / "run.db", call.pairs_of(call.texts(4, seed=14))
    own = {"trait_name": "Length", "trait_description": "The number of words."}
    tables: Tables = {}
    with call.provider(lapse=0.1, seed=5) as server:
        for name in call.MODELS:
            tables |= call.answer_tables(call.ask_model(pairs, server, backend=name, run=run, **own), f"{name}_")
        tables["once"] = call.ask_model_once(pairs.row(0, named=True), server, backend="anthropic", **own)
    return tables | call.file_tables(run, ordered=True)


@recorded
def given_model_both_orders(folder: Path) -> Tables:
    """Wins where both orders agree, flips where the place decides; the sum of what both orders cost."""
    pairs = call.pairs_of(call.texts(6, seed=15))
    with call.provider(bias=2.5, seed=6) as server:
        done = call.judge_pairs(pairs, call.model_judge(server, both_orders=True), run=folder / "run.db", concurrency=8)
        served = server.served
        again = call.judge_pairs(
            pairs, call.model_judge(server, both_orders=True), run=folder / "run.db", concurrency=8
        )
    tokens = ("prompt_tokens", "completion_tokens", "total_tokens")
    kept = done.results.select("custom_id", "ID1", "ID2", "better_id", "better_sample", "outcome", "cost", *tokens)
    return {
        "results": kept,
        "facts": {"served": served, "asked_again": again.asked, "failed": done.failed_pairs.height},
    }


@recorded
def given_model_transient_faults(folder: Path) -> Tables:
    """Errors of the server that pass: every pair is answered in the end."""
    run, pairs = folder / "run.db", call.pairs_of(call.texts(6, seed=17))
    script = ("ok", 503, "ok", "ok", 500, "ok", "ok", "truncated", "ok", "ok", 529)
    with call.provider(faults={"script": script}, lapse=0.1, seed=7) as server:
        done = call.judge_pairs(pairs, call.model_judge(server), run=run, concurrency=1)
        served = server.served
    codes = sorted(done.failed_attempts["error_code"])
    facts = {"served": served, "codes": codes, "failed": done.failed_pairs.height}
    return {"results": done.results.drop("cost"), "facts": facts}


@recorded
def given_model_cached(folder: Path) -> Tables:
    """A second run file asks nothing: the answers come from the cache, for nothing."""
    pairs, tables = call.pairs_of(call.texts(5, seed=18)), {}
    with call.provider(lapse=0.2, seed=8) as server:
        for number in (1, 2):
            judge = call.model_judge(server, cache=str(folder / "cache.db"), temperature=0)
            done = call.judge_pairs(pairs, judge, run=folder / f"run{number}.db", concurrency=1)
            tables |= call.answer_tables(done, f"run{number}_")
        tables["served"] = {"served": server.served}
    return tables
