"""What seeded runs give is what was recorded of them; see ``recorded_runs.py``."""

from __future__ import annotations

import copy
from typing import Any

import polars as pl
import pytest

from tests.runtime.recorded_runs import FOLDER, expected_of
from tests.runtime.recorded_tables import RUNS, Run, comparable, differences, pack, read, write

_MOST_SHOWN = 25


@pytest.mark.slow_except(
    "given_lexical",
    "given_two_calls",
    "adaptive_pollitt",
    "adaptive_information",
    "ab_both_orders",
    "batch_openai",
    "people_rank",
    "check_judges",
    "cost_pilot",
)
@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_a_run_gives_what_was_recorded(run: Run, tmp_path) -> None:
    expected, tables = expected_of(run), run.function(tmp_path)
    found = differences(run.name, expected, tables)
    shown = "\n".join(found[:_MOST_SHOWN])
    assert not found, f"{len(found)} differences between what was recorded and what the run gives now:\n{shown}"
    assert tables.keys() <= expected.keys(), "a table of the run was never recorded"
    if (left_out := len(expected) - len(comparable(expected, tables))) > 0:
        pytest.skip(f"the sampler rounds differently on this machine: {left_out} tables were not compared")


def test_nothing_else_is_recorded() -> None:
    found = {(path.stem, name) for path in FOLDER.glob("*.json") for name in read(path)}
    assert found == {(run.group, run.name) for run in RUNS.values()}


# The comparison itself


LONG = pl.DataFrame({
    "A_id": [f"s{n % 7}" for n in range(70)],
    "stage": ["warm" if n < 30 else "late" for n in range(70)],
    "mu": [25 + n / 7 for n in range(70)],
    "flag": [n == 40 for n in range(70)],
    "none": pl.Series([None] * 70, dtype=pl.String),
})  # fmt: skip
SHORT = [{"task_id": f"t{n}", "orders": [{"first": "a", "cost": n / 3}], "winner": "ab"[n % 2]} for n in range(5)]
FACTS = {"asked": 3, "cost": 0.25, "stopped": None, "sequential": False, "text": "x" * 500}


def made() -> dict[str, Any]:
    return {"log": LONG, "cases": copy.deepcopy(SHORT), "facts": dict(FACTS)}


@pytest.fixture
def stored(tmp_path) -> dict[str, Any]:
    write(tmp_path / "runs.json", {"run": {name: pack(table) for name, table in made().items()}})
    return read(tmp_path / "runs.json")["run"]


def test_the_same_tables_have_no_differences(stored) -> None:
    assert differences("run", stored, made()) == []
    assert stored["log"]["columns"]["flag"] == {"all": False, "but": {"41": True}}
    assert len(stored["log"]["columns"]["stage"]["digests"]) == len(stored["log"]["columns"]["mu"]["sums"]) == 3


def changed(table: str, column: str, row: int, value: Any) -> dict[str, Any]:
    tables = made()
    if table == "log":
        values = LONG[column].to_list()
        values[row - 1] = value
        tables["log"] = LONG.with_columns(pl.Series(column, values))
    elif table == "cases":
        tables["cases"][row - 1][column] = value
    else:
        tables["facts"][column] = value
    return tables


@pytest.mark.parametrize(
    ("table", "column", "row", "value", "said"),
    [
        ("log", "A_id", 3, "s9", "row 3: 's2' recorded, 's9' now"),
        ("log", "stage", 34, "warm", "rows 33 to 64: digest"),
        ("log", "mu", 70, 35.0, "rows 65 to 70: sum"),
        ("log", "mu", 70, None, "rows 65 to 70: sum"),
        ("log", "flag", 41, False, "row 41: True recorded, False now"),
        ("log", "flag", 7, None, "row 7: False recorded, None now"),
        ("log", "none", 70, "something", "row 70: None recorded, 'something' now"),
        ("cases", "winner", 2, None, "row 2: 'b' recorded, None now"),
        ("cases", "orders", 4, [{"first": "a", "cost": 1.001}], "row 4: [{'first': 'a', 'cost': 1.0}] recorded"),
        ("cases", "orders", 4, [], "row 4: [{'first': 'a', 'cost': 1.0}] recorded, [] now"),
        ("facts", "asked", 1, 4, "row 1: 3 recorded, 4 now"),
        ("facts", "cost", 1, 0.2501, "row 1: 0.25 recorded, 0.2501 now"),
        ("facts", "sequential", 1, 0, "row 1: False recorded, 0 now"),
        ("facts", "text", 1, "x" * 499 + "y", "row 1: 'sha256:"),
    ],
)
def test_a_changed_value_is_named(stored, table, column, row, value, said) -> None:
    (found,) = differences("run", stored, changed(table, column, row, value))
    assert found.startswith(f"run run, table {table}, column {column}, {said}")


def test_what_is_missing_or_too_much_is_named(stored) -> None:
    tables = made() | {"log": LONG.head(69).drop("flag"), "more": {"a": 1}}
    del tables["facts"]
    found = differences("run", stored, tables)
    assert "run run, table log: 70 rows recorded, 69 now" in found
    assert "run run, table log, column flag: recorded, and missing now" in found
    assert "run run, table facts: recorded, and missing now" in found
    assert differences("run", stored, made() | {"log": LONG.with_columns(new=pl.lit(1))}) == []


def test_order_and_last_digits(stored) -> None:
    near = made() | {"log": LONG.with_columns(mu=pl.col("mu") * (1 + 1e-9))}
    assert differences("run", stored, near) == []
    turned = made() | {"log": LONG.with_columns(mu=pl.col("mu").reverse())}
    assert len(differences("run", stored, turned)) == 3


def test_figures_of_another_machine(stored) -> None:
    stored |= {"probe": pack({"figure": "0.1"}), "before_refits": pack(SHORT)}
    tables = changed("facts", "asked", 1, 4) | {"probe": {"figure": "0.1"}, "before_refits": SHORT}
    assert len(differences("run", stored, tables)) == 1
    tables["probe"] = {"figure": "0.2"}
    assert differences("run", stored, tables) == []
    tables["before_refits"] = SHORT[:4]
    assert len(differences("run", stored, tables)) == 1
