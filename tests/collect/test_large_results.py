"""Results of many pairs are read from the run file when they are asked for, and exported in blocks."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import pairscale as ps
from pairscale.core.errors import StoreError
from pairscale.store.runfile import open_run


@contextmanager
def in_memory_limit(rows: int) -> Iterator[None]:
    """Inside the block, results of more than so many rows are counted instead of read whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pairscale.core.counting.IN_MEMORY", rows)
        yield


PAIRS = ps.make_pairs(ps.synthetic_essays(8, seed=1))


def _judged(run: Path | None, limit: int) -> ps.SubmitResult:
    judge = ps.SimulatedJudge("theta_true", seed=1, invalid_rate=0.2)
    with in_memory_limit(limit):
        return asyncio.run(ps.submit_pairs_async(PAIRS, judge, run=run, progress=False, retries=0))


def test_many_results_are_the_same_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = _judged(tmp_path / "one.db", PAIRS.height)
    large = _judged(tmp_path / "two.db", 0)
    assert str(large) == str(small)
    assert repr(large) == repr(small)
    assert (large.n_answered, large.n_failed) == (small.results.height, small.failed_pairs.height)
    monkeypatch.chdir("/")
    assert_frame_equal(large.results.drop("latency_s"), small.results.drop("latency_s"))
    assert_frame_equal(large.failed_pairs.drop("attempted_at"), small.failed_pairs.drop("attempted_at"))
    assert large.failed_attempts.height == small.failed_attempts.height
    assert large.results is large.results


def test_they_are_not_read_before(message_snapshot, tmp_path: Path) -> None:
    large = _judged(tmp_path / "run.db", 0)
    (tmp_path / "run.db").unlink()
    assert large.n_answered > 0
    with pytest.raises(StoreError) as refused:
        _ = large.results
    message_snapshot(refused)


def test_without_a_run_file_they_are_kept() -> None:
    assert _judged(None, 0).results.height > 0


def test_an_empty_run_is_a_table_without_rows(tmp_path: Path) -> None:
    with open_run(tmp_path / "run.db", write=True):
        pass
    table = pl.read_parquet(ps.export(tmp_path / "run.db", tmp_path / "none.parquet"))
    assert table.height == 0
    assert {"ID1", "ID2", "better_id", "received_at"} <= set(table.columns)
