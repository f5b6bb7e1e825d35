"""Given pairs dealt in shards: each has a run file of its own, so that any process or machine may judge it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pairscale.collect._plan import named_pairs
from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.core.errors import InputError, JudgeError, StoreMismatchError
from pairscale.core.jobs import run_tasks
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, ProgressMode, require_int
from pairscale.core.provenance import Provenance
from pairscale.core.tables import Values
from pairscale.judges.base import Judge
from pairscale.runtime import Progress
from pairscale.store.reading import SHARD
from pairscale.store.runfile import open_run


class _Shard(NamedTuple):
    """One of the equal parts that a job is dealt in, as a worker needs it.

    Attributes:
        number: which one, from 1.
        of: how many there are.
        mark: the fact in its run file: its number, of how many, and of which job.
        pairs: its pairs.
        run: its run file.
    """

    number: int
    of: int
    mark: Values
    pairs: pl.DataFrame
    run: Path


def _deal(pairs: pl.DataFrame, of: int, runs: dict[int, Path]) -> list[_Shard]:
    """Shards by their numbers: every ``of``-th pair, so that they are alike, under names that stay theirs."""
    named = named_pairs(pairs).with_columns(pair_uid="custom_id")
    texts = pl.concat(named.select(ID=f"ID{side}", text=f"text{side}") for side in "12")
    digest = hashlib.sha256(named.select("custom_id", "ID1", "ID2").write_csv().encode())
    digest.update(texts.unique("ID", maintain_order=True).write_csv().encode())
    job = digest.hexdigest()[:32]
    shards = []
    for n, run in runs.items():
        mark = {"number": n, "of": of, "job": job}
        shards.append(_Shard(n, of, mark, named.gather_every(of, offset=n - 1), run))
    for shard in shards:
        if not shard.run.is_file():
            continue
        with open_run(shard.run) as store:
            mark = store.get_meta(SHARD)
            is_new = mark is None and store.is_empty()
        if mark != shard.mark and not is_new:
            raise StoreMismatchError(
                f"{shard.run} is not that of shard {shard.number}/{shard.of} of these pairs; give this job a folder, "
                "or this shard a run file, of its own"
            )
    return shards


def judge_shard(
    pairs: pl.DataFrame,
    judge: Judge,
    shard: str,
    run: FilePath | None,
    *,
    max_cost: float | None,
    **settings: Any,
) -> SubmitResult:
    """Judge one shard of the pairs, into a run file of its own.

    Args:
        pairs: all pairs of the job, the same for every shard.
        judge: who judges.
        shard: which part, such as ``3/16``.
        run: the run file of this shard.
        max_cost: US dollars for the whole job.
        settings: further arguments of :func:`submit_pairs`.

    Raises:
        InputError: the shard or its run file cannot be used.
        StoreMismatchError: the run file holds a shard of other pairs.
    """
    words = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", shard)
    number = 0
    of = 0
    if words is not None:
        number = int(words[1])
        of = int(words[2])
    if not 1 <= number <= of:
        raise InputError(f"shard must look like 3/16, the third of sixteen, not {shard!r}", argument="shard")
    if run is None or "://" in str(run):
        raise InputError("a shard is kept in a run file of its own, not in a database: name it with `run=`")
    if number > pairs.height:
        raise InputError(f"shard {shard} is empty: there are {pairs.height:,} pairs", argument="shard")
    [part] = _deal(pairs, of, {number: Path(run)})
    return _judge((part, judge, settings | {"max_cost": _share(max_cost, of)}))


def judge_in_shards(
    pairs: pl.DataFrame,
    judge: Judge,
    shards: int | None,
    run: FilePath | None,
    *,
    n_jobs: int | None,
    max_cost: float | None,
    progress: ProgressMode,
    **settings: Any,
) -> SubmitResult:
    """Judge the pairs in shards, as many at once as joblib is told to run.

    Args:
        pairs: the pairs.
        judge: who judges; it is sent to the workers.
        shards: how many parts.
        run: the folder of the run files, made when it is missing.
        n_jobs: how many shards at once, see :func:`pairscale.core.jobs.run_tasks`.
        max_cost: US dollars for all shards together.
        progress: show how many shards are done.
        settings: further arguments of :func:`submit_pairs`.

    Raises:
        InputError: the number of shards or the folder cannot be used.
        StoreMismatchError: the folder holds shards of other pairs.
        JudgeError: a shard ended early; those that were judged are kept.
    """
    of = min(require_int(shards, "shards", least=1), pairs.height)
    if run is None or "://" in str(run) or Path(run).is_file():
        raise InputError("`shards=` keeps a run file per shard: name a folder for them with `run=`")
    if not of:
        raise InputError("there are no pairs to judge")
    place = Path(run)
    parts = _deal(pairs, of, {n: place / f"shard-{n:0{len(str(of))}d}.db" for n in range(1, of + 1)})
    place.mkdir(parents=True, exist_ok=True)
    settings["max_cost"] = _share(max_cost, of)
    tasks = [(part, judge, settings) for part in parts]
    finished: list[SubmitResult] = []
    failed: list[str] = []
    with Progress(of, show=progress, label="shards") as bar:
        for part, done in zip(parts, run_tasks(_judge, tasks, n_jobs), strict=True):
            if done.value is None:
                failed.append(f"{part.number}/{of}: {done.error}")
            else:
                finished.append(done.value)
            bar.count(failed=done.value is None, cost=None)
    if failed:
        raise JudgeError(
            f"{len(failed)} of {of} shards ended early; the first, {failed[0]}. The answers are in {place}, and the "
            "same call continues"
        )
    return _joined(parts, finished, place)


def _share(max_cost: float | None, of: int) -> float | None:
    """What a shard may spend of the money of the job; a notice tells the user."""
    if max_cost is None:
        return None
    notice(f"each of {of} shards may spend ${max_cost / of:,.4f}, its part of ${max_cost:,.4f}")
    return max_cost / of


def _judge(task: tuple[_Shard, Judge, Values]) -> SubmitResult:
    """What a worker does: judge a shard, or what is left of it."""
    shard, judge, settings = task
    with open_run(shard.run, write=True) as store:
        if store.get_meta(SHARD) is None:
            store.set_meta(SHARD, shard.mark)
    return submit_pairs(shard.pairs, judge, run=shard.run, **settings)


def _joined(shards: list[_Shard], finished: list[SubmitResult], folder: Path) -> SubmitResult:
    """The results of all shards, in the order of the pairs."""
    # Row k of shard n was row k * of + n of all pairs.
    row_of = {
        name: row * shard.of + shard.number for shard in shards for row, name in enumerate(shard.pairs["custom_id"])
    }

    def tables(name: str) -> pl.DataFrame:
        joined: pl.DataFrame = pl.concat([getattr(result, name) for result in finished], how="vertical_relaxed")
        return joined.sort(pl.col("custom_id").replace_strict(row_of), maintain_order=True)

    return SubmitResult(
        tables("results"),
        tables("failed_pairs"),
        tables("failed_attempts"),
        finished[0].condition_id,
        sum(result.asked for result in finished),
        Provenance("judge", {"run": str(folder), "shards": len(shards)}),
        sum(result.cached for result in finished),
        sum(result.saved for result in finished),
    )
