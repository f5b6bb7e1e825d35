"""Recorded answers as tables in memory: lists of dicts, Polars, pandas and Arrow tables, wherever answers are taken."""

import polars as pl
import pytest
from tests.evaluate.sides import longer

import pairscale as ps
from pairscale.core.errors import InputError

ROWS = [{"task": f"t{n}", "said": f"{'long ' * 20}{n}", "other": f"short {n}"} for n in range(6)]
ASKING = {"criterion": "longer", "progress": False}


def of(column):
    return [{"task_id": row["task"], "output": row[column]} for row in ROWS]


def rate(result):
    (key,) = result.keys
    return result.win_rate(key).rate


def as_pandas(rows):
    return pytest.importorskip("pandas").DataFrame(rows)


@pytest.mark.parametrize(
    "table", [list, tuple, pl.DataFrame, pl.LazyFrame, as_pandas, lambda rows: pl.DataFrame(rows).to_arrow()]
)
def test_answers_may_be_tables(table):
    result = ps.ab(table(of("other")), table(of("said")), judge=longer, **ASKING)
    assert (len(result.cases), rate(result)) == (6, 1.0)


def test_columns_are_named_as_for_files(message_snapshot):
    theirs = [[{"task": row["task"], "words": row[side]} for row in ROWS] for side in ("other", "said")]
    assert rate(ps.ab(*theirs, judge=longer, id_col="task", output_col="words", **ASKING)) == 1
    with pytest.raises(InputError) as refused:
        ps.ab(*theirs, judge=longer, output_col="nothing", **ASKING)
    message_snapshot(refused)


def test_one_table_holds_both():
    result = ps.ab(ROWS, judge=longer, a_col="other", b_col="said", id_col="task", **ASKING)
    assert (len(result.cases), rate(result)) == (6, 1.0)


@pytest.mark.parametrize("table", [list, pl.DataFrame, as_pandas])
def test_one_table_with_the_answers_of_several_is_split_as_its_file_is(message_snapshot, table, tmp_path):
    rows = [{"task_id": row["task"], "model": side, "output": row[side]} for row in ROWS for side in ("other", "said")]
    (tmp_path / "both.jsonl").write_text(pl.DataFrame(rows).write_ndjson(), "utf-8")
    for given in (tmp_path / "both.jsonl", table(rows)):
        result = ps.ab(given, judge=longer, **ASKING)
        assert (result.variant_a, result.variant_b, len(result.cases), rate(result)) == ("other", "said", 6, 1)
    assert rate(ps.ab(table(rows), name_a="said", name_b="other", judge=longer, **ASKING)) == 0
    third = [*rows, {"task_id": "t0", "model": "third", "output": "Yes."}]
    with pytest.raises(InputError) as refused:
        ps.ab(table(third), judge=longer, **ASKING)
    message_snapshot(refused)
