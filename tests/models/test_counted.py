"""Results that are counted instead of read give the fit of the same rows in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import pairscale as ps
from pairscale.core.errors import TableError
from pairscale.core.tables import times_of
from pairscale.store.reading import read_comparisons


@contextmanager
def in_memory_limit(rows: int) -> Iterator[None]:
    """Inside the block, results of more than so many rows are counted instead of read whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pairscale.core.counting.IN_MEMORY", rows)
        yield


N, ROWS = 12, 900


def _rows() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    theta = rng.normal(size=N)
    first = rng.integers(N, size=ROWS)
    second = (first + rng.integers(1, N, size=ROWS)) % N
    p = 1 / (1 + np.exp(theta[second] - theta[first]))
    names = np.array([f"t{i:02d}" for i in range(N)])
    won = rng.random(ROWS) < p
    outcome = np.where(rng.random(ROWS) < 0.1, "tie", "win")
    winner = np.where(won, names[first], names[second])
    better = [None if tied == "tie" else str(name) for tied, name in zip(outcome, winner, strict=True)]
    return pl.DataFrame(
        {
            "ID1": names[first],
            "ID2": names[second],
            "better_id": better,
            "outcome": outcome,
            "judge_id": names[rng.integers(3, size=ROWS)],
            "weight": rng.choice([0.5, 1.0, 2.0, 0.0], size=ROWS),
            "content": [f"reply {at}" for at in range(ROWS)],
        }
    )


FRAME = _rows()
PLAIN = FRAME.drop("weight")
FIRST = pl.col("better_id") == pl.col("ID1")
TIED = pl.col("better_id").is_null()


def _side(one: str, two: str, tie: str) -> pl.Expr:
    return pl.when(TIED).then(pl.lit(tie)).when(FIRST).then(pl.lit(one)).otherwise(pl.lit(two))


DECIDED = PLAIN.filter(~TIED)
LISTED = DECIDED.select(one="better_id", two=pl.when(FIRST).then("ID2").otherwise("ID1"))
FORMS = {
    "ours": PLAIN,
    "sample": PLAIN.select("ID1", "ID2", better_sample=_side("SAMPLE_1", "SAMPLE_2", "")),
    "canonical": PLAIN.rename({"ID1": "A_id", "ID2": "B_id"}),
    "r": PLAIN.select(object1="ID1", object2="ID2", result=pl.when(TIED).then(0.5).otherwise(FIRST.cast(pl.Float64))),
    "list": LISTED.rename({"one": "winner", "two": "loser"}),
    "session": LISTED.rename({"one": "candidate_chosen", "two": "candidate_not_chosen"}),
    "arena": PLAIN.select(model_a="ID1", model_b="ID2", winner=_side("model_a", "model_b", "tie (bothbad)")),
    "mt-bench, one game": PLAIN.select(model_1="ID1", model_2="ID2", winner=_side("model_1", "model_2", "tie")),
    "alpaca": PLAIN.select(
        generator_1="ID1", generator_2="ID2", preference=pl.when(TIED).then(1.5).when(FIRST).then(1.0).otherwise(1.75)
    ),
    "probabilities": PLAIN.select(
        "ID1", "ID2", probability=pl.when(TIED).then(0.5).when(FIRST).then(0.9).otherwise(0.25)
    ),
    "labels": PLAIN.select(
        "ID1", "ID2", preferred=_side("1", "2", "tie"), swapped=pl.col("judge_id") == "t00", criterion=pl.lit("style")
    ),
    "numbers as ids": PLAIN.select(pl.col("ID1", "ID2", "better_id").str.strip_prefix("t").cast(pl.Int64), "outcome"),
    "winners, losers and draws": PLAIN.select(
        winner=pl.coalesce("better_id", "ID1"), loser=pl.when(FIRST | TIED).then("ID2").otherwise("ID1"), draw=TIED
    ),
    "categories": PLAIN.with_columns(pl.col("ID1", "ID2", "better_id").cast(pl.Categorical)),
}  # fmt: skip


@pytest.fixture
def counting() -> Iterator[None]:
    with in_memory_limit(0):
        yield


def _parts(frame: pl.DataFrame, folder: Path) -> str:
    for at, part in enumerate((frame[: ROWS // 2], frame[ROWS // 2 :])):
        part.write_parquet(folder / f"part-{at}.parquet")
    return str(folder / "part-*.parquet")


def _same(counted: ps.BTFit, whole: ps.BTFit) -> None:
    assert_frame_equal(counted.theta, whole.theta, rel_tol=1e-9, abs_tol=1e-9)
    assert counted.reliability == pytest.approx(whole.reliability, abs=1e-9)
    # Of rows that are counted it is not known what else stands in them.
    assert counted.notices == tuple(text for text in whole.notices if "word for word" not in text)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_fit(form: str, tmp_path: Path) -> None:
    frame = FORMS[form]
    whole = ps.fit(frame)
    path = _parts(frame, tmp_path)
    with in_memory_limit(0):
        table = read_comparisons(path, keep=[]).table
        assert table.height < times_of(table).sum()
        counted = ps.fit(path)
    _same(counted, whole)
    assert counted.provenance.inputs == whole.provenance.inputs


@pytest.mark.parametrize("engine", ["laplace", "sampler"])
def test_the_bayesian_model_gives_the_same_fit(engine: str, counting: None) -> None:
    counted, whole = (ps.fit(frame, "bayes", engine=engine, seed=5) for frame in (PLAIN.lazy(), PLAIN))
    assert_frame_equal(counted.item_summary, whole.item_summary, rel_tol=1e-9, abs_tol=1e-9)
    assert counted.fit.n_comparisons == ROWS
    assert counted.fit.repeat_agreement == whole.fit.repeat_agreement
    assert counted.notices == whole.notices


# What is refused.


def test_rows_have_no_numbers(message_snapshot, counting: None) -> None:
    blank = PLAIN.with_columns(pl.when(pl.int_range(ROWS) == 5).then(pl.lit(" ")).otherwise("ID1").alias("ID1"))
    with pytest.raises(TableError) as refused:
        ps.fit(blank.lazy())
    message_snapshot(refused)
    bad = FRAME.with_columns(pl.when(pl.int_range(ROWS) == 5).then(-1.0).otherwise("weight").alias("weight"))
    with pytest.raises(TableError) as refused:
        ps.fit(bad.lazy())
    message_snapshot(refused)


def test_elo_needs_every_row(counting: None) -> None:
    assert ps.fit(PLAIN.lazy(), "elo").elo.equals(ps.fit(PLAIN, "elo").elo)
