"""Recorded answers as tables in memory: lists of dicts, Polars, pandas and Arrow tables, wherever answers are taken."""

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError

ROWS = [{"task": f"t{n}", "said": f"{'long ' * 20}{n}", "other": f"short {n}"} for n in range(6)]
ASKING = {"criterion": "longer", "progress": False}


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


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


def test_columns_are_named_as_for_files():
    theirs = [[{"task": row["task"], "words": row[side]} for row in ROWS] for side in ("other", "said")]
    assert rate(ps.ab(*theirs, judge=longer, id_col="task", output_col="words", **ASKING)) == 1
    with pytest.raises(InputError, match="the table: no column 'nothing'; it has 'task', 'words'"):
        ps.ab(*theirs, judge=longer, output_col="nothing", **ASKING)


def test_one_table_holds_both():
    result = ps.ab(ROWS, judge=longer, a_col="other", b_col="said", id_col="task", **ASKING)
    assert (len(result.cases), rate(result)) == (6, 1.0)


def test_the_other_functions_that_take_answers():
    said, other = of("said"), of("other")
    judge = ps.pairwise_judge(longer, criterion="longer", key="longer")
    assert rate(ps.evaluate_pairwise(other, said, comparators=[judge])) == 1
    tasks = [{"task_id": row["task"], "input": "say"} for row in ROWS]
    assert rate(ps.run_pairwise(tasks, variant_a=other, variant_b=said, comparators=[judge])) == 1
    assert ps.gate(said, other, judge=longer, fail_if="inconclusive", **ASKING).exit_code != 0
    assert len(ps.read_outputs(said)) == 6


def test_a_list_without_rows_is_no_table():
    judge = ps.pairwise_judge(longer, criterion="longer", key="longer")
    with pytest.raises(InputError, match="must be a file, a folder, a table, a mapping"):
        ps.evaluate_pairwise([1, 2], of("other"), comparators=[judge])
