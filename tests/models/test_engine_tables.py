"""Tables of other engines are grouped where they lie, and give the fit of the same rows in memory to the last bit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.models.test_counted import DECIDED, FIRST, FORMS, FRAME, LISTED, PLAIN, in_memory_limit

import pairscale as ps
from pairscale.core import counting
from pairscale.store.reading import read_comparisons

WINNERS = LISTED.rename({"one": "winner", "two": "loser"})


def _polars(frame: pl.DataFrame) -> Any:
    return frame.lazy()


def _duckdb(frame: pl.DataFrame) -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_arrow(frame.to_arrow())


def _dask(frame: pl.DataFrame) -> Any:
    dataframe = pytest.importorskip("dask.dataframe")
    return dataframe.from_pandas(frame.to_pandas(), npartitions=3)


def _ibis(frame: pl.DataFrame) -> Any:
    ibis = pytest.importorskip("ibis")
    path = Path(tempfile.mkdtemp()) / "results.parquet"
    frame.write_parquet(path)
    return ibis.duckdb.connect().read_parquet(path)


ENGINES = {"polars": _polars, "duckdb": _duckdb, "dask": _dask, "ibis": _ibis}
MARKS = {
    "dask": [pytest.mark.slow],
    "ibis": [pytest.mark.slow, pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")],
}
engines = pytest.mark.parametrize(
    "table_of", [pytest.param(made, id=name, marks=MARKS.get(name, ())) for name, made in ENGINES.items()]
)


@pytest.fixture(params=["counted", "fetched"])
def counted(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether rows are counted by their engine, or so few that they are fetched."""
    is_counted = request.param == "counted"
    with in_memory_limit(0 if is_counted else 10**6):
        yield is_counted


def assert_same(found: ps.BTFit, whole: ps.BTFit) -> None:
    assert found.theta.equals(whole.theta)
    assert found.reliability == whole.reliability
    assert found.provenance.inputs == whole.provenance.inputs


@engines
@pytest.mark.parametrize("form", ["ours", "list", "arena", "numbers as ids"])
def test_every_engine_gives_the_same_fit(form: str, table_of: Any, counted: bool) -> None:
    frame = FORMS[form]
    assert_same(ps.fit(table_of(frame)), ps.fit(frame))


@engines
def test_options_give_the_same_fit(table_of: Any, counted: bool) -> None:
    for options in ({"cluster": "judge_id"}, {"ties": "half", "engine": "mle"}, {"position": True, "bootstrap": 4}):
        assert_same(ps.fit(table_of(FRAME), **options), ps.fit(FRAME, **options))


@engines
def test_only_the_counts_are_fetched(table_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []
    collect = counting.collected

    def watched(lazy: Any, what: str) -> pl.DataFrame:
        table = collect(lazy, what)
        fetched.append(table.height)
        return table

    monkeypatch.setattr(counting, "collected", watched)
    with in_memory_limit(0):
        table = read_comparisons(table_of(WINNERS), keep=[]).table
    assert max([*fetched, table.height]) == WINNERS.n_unique() < WINNERS.height


def test_every_model_takes_them() -> None:
    with in_memory_limit(0):
        bayes = ps.fit(_duckdb(PLAIN), "bayes", engine="laplace")
        assert bayes.fit.n_comparisons == PLAIN.height
        assert ps.fit(_duckdb(WINNERS), "elo", seed=1).elo.equals(ps.fit(WINNERS, "elo", seed=1).elo)
    assert ps.read_results(_duckdb(PLAIN)).select(PLAIN.columns).equals(PLAIN)


def test_named_columns() -> None:
    other = DECIDED.select(x="ID1", y="ID2", z=pl.when(FIRST).then("ID1").otherwise("ID2"))
    named = {"a_col": "x", "b_col": "y", "winner_col": "z"}
    with in_memory_limit(0):
        assert_same(ps.fit(_duckdb(other), **named), ps.fit(other, **named))


SPARK = """
import sys
import polars as pl
from pyspark.sql import SparkSession
import pairscale as ps
from tests.models.test_counted import FORMS, FRAME, in_memory_limit
from tests.models.test_engine_tables import assert_same
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
with in_memory_limit(0):
    for frame, options in ((FORMS["list"], {}), (FRAME, {"cluster": "judge_id"})):
        assert_same(ps.fit(spark.createDataFrame(frame.to_pandas()), **options), ps.fit(frame, **options))
spark.stop()
print("same")
"""


@pytest.mark.validate
def test_spark_gives_the_same_fit() -> None:
    """In a process of its own, with Spark's Java process as its child."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("PySpark needs Java 17 or newer")
    command = [sys.executable, "-c", SPARK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.strip().endswith("same"), done.stderr[-2_000:]
