"""What seeded runs give is what was recorded of them; see ``recorded_runs.py``."""

from __future__ import annotations

import pytest

from tests.runtime.recorded_runs import FOLDER, expected_of
from tests.runtime.recorded_tables import RUNS, Run, comparable, differences, read

_MOST_SHOWN = 25


@pytest.mark.slow_except(
    "given_every_outcome",
    "adaptive_pollitt",
    "adaptive_information",
    "ab_both_orders",
    "batch_openai",
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
