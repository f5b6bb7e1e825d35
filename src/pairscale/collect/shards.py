"""Given pairs dealt in shards: each has a run file of its own, so that any process or machine may judge it."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.collect._plan import named_pairs, pair_outcomes
from pairscale.collect.live import StoredResult, SubmitResult, submit_pairs
from pairscale.core.counting import is_many
from pairscale.core.errors import InputError, JudgeError, PairscaleError, StoreMismatchError
from pairscale.core.jobs import Done, run_tasks
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, require_int
from pairscale.core.provenance import Provenance
from pairscale.judges.base import Judge
from pairscale.runtime import Progress
from pairscale.store.runfile import open_run
from pairscale.store.several import SHARD, is_run_file, shard_of

if TYPE_CHECKING:
    from pairscale.collect.live import Tables

__all__ = ["Shard", "judge_in_shards", "judge_shard", "read_shard"]

_WORDS = re.compile(r"\s*(\d+)\s*/\s*(\d+)\s*")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the equal parts that a job is dealt in.

    Attributes:
        number: which one, from 1.
        of: how many there are.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def file_name(self) -> str:
        """The name of its run file in the folder of the job."""
        return f"shard-{self.number:0{len(str(self.of))}d}.db"

    def rows(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Its part of the pairs: every ``of``-th row, so that the shards are alike."""
        return pairs.gather_every(self.of, offset=self.number - 1)


@dataclass(frozen=True, slots=True)
class _Task:
    """What a worker needs to judge a shard."""

    shard: Shard
    pairs: pl.DataFrame
    job: str
    judge: Judge
    run: Path
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a worker says of a shard; the answers themselves are in its run file."""

    condition_id: str
    answered: int
    failed: int
    asked: int
    cached: int
    saved: float


def read_shard(text: str) -> Shard:
    """Read a shard such as ``3/16``.

    Raises:
        InputError: when it is none.
    """
    written = _WORDS.fullmatch(str(text))
    if written is None or int(written[2]) == 0:
        raise InputError(f"shard must look like 3/16, the third of sixteen, not {text!r}", argument="shard")
    number = int(written[1])
    of = int(written[2])
    if not 1 <= number <= of:
        raise InputError(f"shard {text!r}: the first of {of} is 1/{of}, and the last is {of}/{of}", argument="shard")
    return Shard(number, of)


def judge_shard(
    pairs: pl.DataFrame,
    judge: Judge,
    shard: str,
    run: str | os.PathLike[str] | None,
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
        StoreMismatchError: the run file, or one beside it, holds a shard of other pairs.
    """
    part = read_shard(shard)
    if run is None or "://" in str(run):
        raise InputError("a shard is kept in a run file of its own, not in a database: name it with `run=`")
    named = _named(pairs)
    mine = part.rows(named)
    if not mine.height:
        raise InputError(f"shard {part} is empty: there are {named.height:,} pairs", argument="shard")
    job = _job(named)
    _require_same_job(run, part, job)
    if max_cost is not None:
        notice(f"shard {part} may spend ${max_cost / part.of:,.4f}, its part of ${max_cost:,.4f}")
    return _judge(_Task(part, mine, job, judge, Path(run), settings | {"max_cost": _share(max_cost, part.of)}))


def judge_in_shards(
    pairs: pl.DataFrame,
    judge: Judge,
    shards: int,
    folder: str | os.PathLike[str] | None,
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
        folder: the folder of the run files, made when it is missing.
        n_jobs: how many shards at once, see :func:`pairscale.core.jobs.run_tasks`.
        max_cost: US dollars for all shards together.
        progress: show how many pairs are done.
        settings: further arguments of :func:`submit_pairs`.

    Raises:
        InputError: the number of shards or the folder cannot be used.
        StoreMismatchError: the folder holds shards of other pairs.
        JudgeError: a shard ended early; those that were judged are kept.
    """
    require_int(shards, "shards", least=1)
    if folder is None or "://" in str(folder) or Path(folder).is_file():
        raise InputError("`shards=` keeps a run file per shard: name a folder for them with `run=`")
    named = _named(pairs)
    parts = [Shard(number, min(shards, named.height)) for number in range(1, min(shards, named.height) + 1)]
    if not parts:
        raise InputError("there are no pairs to judge")
    job = _job(named)
    place = Path(folder)
    for shard in parts:
        _require_same_job(place / shard.file_name, shard, job)
    place.mkdir(parents=True, exist_ok=True)
    settings |= {"max_cost": _share(max_cost, len(parts))}
    if max_cost is not None:
        notice(f"each of {len(parts)} shards may spend ${settings['max_cost']:,.4f}, its part of ${max_cost:,.4f}")
    tasks = [_Task(shard, shard.rows(named), job, judge, place / shard.file_name, settings) for shard in parts]
    finished: list[_Counts] = []
    failed: list[tuple[Shard, Done[_Counts]]] = []
    with Progress(len(parts), show=progress, label="shards") as bar:
        for task, done in zip(tasks, run_tasks(_judge_and_count, tasks, n_jobs), strict=True):
            if done.value is None:
                failed.append((task.shard, done))
            else:
                finished.append(done.value)
            bar.count(failed=done.value is None, cost=None)
    if failed:
        raise _stopped(failed, len(parts), place)
    return _joined(tasks, finished, named)


def _judge_and_count(task: _Task) -> _Counts:
    result = _judge(task)
    return _Counts(result.condition_id, result.n_answered, result.n_failed, result.asked, result.cached, result.saved)


def _judge(task: _Task) -> SubmitResult:
    with open_run(task.run, write=True) as store:
        if store.get_meta(SHARD) is None:
            store.set_meta(SHARD, {"number": task.shard.number, "of": task.shard.of, "job": task.job})
    return submit_pairs(task.pairs, task.judge, run=task.run, **task.settings)


def _named(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs with names that stay theirs when they are judged in parts."""
    return named_pairs(pairs).with_columns(pair_uid="custom_id")


def _share(max_cost: float | None, shards: int) -> float | None:
    return None if max_cost is None else max_cost / shards


def _job(named: pl.DataFrame) -> str:
    """What tells the pairs of this job from those of another one: their names, ids and texts."""
    digest = hashlib.sha256()
    sides = [named.select(ID=f"ID{side}", text=f"text{side}") for side in "12"]
    texts = pl.concat(sides).unique("ID", maintain_order=True)
    for table in (named.select("custom_id", "ID1", "ID2"), texts):
        for row in table.iter_rows():
            digest.update(repr(row).encode())
    return digest.hexdigest()[:32]


def _require_same_job(run: str | os.PathLike[str], shard: Shard, job: str) -> None:
    """Refuse a run file of something else, and one beside shards of other pairs."""
    path = Path(run)
    beside = sorted(path.parent.glob("*")) if path.parent.is_dir() else []
    for file in beside:
        if not is_run_file(file):
            continue
        with open_run(file) as store:
            there = shard_of(store)
            is_used = not store.is_empty()
        is_mine = file.name == path.name
        if there is None and is_mine and is_used:
            raise StoreMismatchError(f"{path} is not a shard; give shard {shard} a run file of its own")
        if there is not None and (there["job"] != job or there["of"] != shard.of):
            raise StoreMismatchError(
                f"{file} is shard {there['number']}/{there['of']} of other pairs; give this job a folder of its own"
            )
        if there is not None and is_mine and there["number"] != shard.number:
            raise StoreMismatchError(f"{path} is shard {there['number']}/{there['of']}, not {shard}")


def _stopped(failed: list[tuple[Shard, Done[_Counts]]], n_shards: int, folder: Path) -> PairscaleError:
    """The error of a job some of whose shards ended early."""
    shard, first = failed[0]
    numbers = ", ".join(str(one.number) for one, _ in failed)
    kind = type(first.cause) if isinstance(first.cause, PairscaleError) else JudgeError
    return kind(
        f"{len(failed)} of {n_shards} shards ended early ({numbers}); the first, {shard}: {first.error}. The answers "
        f"are in {folder}, and the same call continues"
    )


def _joined(tasks: list[_Task], finished: list[_Counts], named: pl.DataFrame) -> SubmitResult:
    read = partial(_tables, [(task.run.absolute(), task.pairs) for task in tasks], finished[0].condition_id, named)
    facts: dict[str, Any] = {
        "condition_id": finished[0].condition_id,
        "asked": sum(shard.asked for shard in finished),
        "cached": sum(shard.cached for shard in finished),
        "saved": sum(shard.saved for shard in finished),
        "provenance": Provenance("judge", {"run": str(tasks[0].run.parent), "shards": len(tasks)}),
    }
    if is_many(named.height):
        counts = sum(shard.answered for shard in finished), sum(shard.failed for shard in finished)
        return StoredResult(read, counts, **facts)
    return SubmitResult(*read(), **facts)


def _tables(shards: list[tuple[Path, pl.DataFrame]], condition_id: str, named: pl.DataFrame) -> Tables:
    """Results, failed pairs and failed attempts of all shards, in the order of the pairs."""
    parts: list[Tables] = []
    for run, pairs in shards:
        with open_run(run) as store:
            numbered = pairs.join(store.pair_numbers(), on="custom_id", maintain_order="left")
            parts.append(pair_outcomes(store, numbered, condition_id, raw=False))
    order = named.select("custom_id").with_row_index("_row")
    results, failed, attempts = (pl.concat(tables, how="vertical_relaxed") for tables in zip(*parts, strict=True))
    return _in_order(results, order), _in_order(failed, order), _in_order(attempts, order)


def _in_order(table: pl.DataFrame, order: pl.DataFrame) -> pl.DataFrame:
    return table.join(order, on="custom_id", maintain_order="left").sort("_row", maintain_order=True).drop("_row")
