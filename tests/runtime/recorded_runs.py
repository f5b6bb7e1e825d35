"""Seeded runs whose tables are recorded, so that a change of how judges are asked cannot change what comes of it.

The runs are in ``runs_*.py``, one function per run; they share ``recorded_calls.py``.
What they gave is in ``recorded/*.json`` (see ``recorded_tables.py`` for the format), and ``test_recorded_runs.py``
compares.

To record again, after a change of results that is meant::

    python -m tests.runtime.recorded_runs --write              # all runs
    python -m tests.runtime.recorded_runs --write given_lexical

Without ``--write`` the same command compares, and prints every difference. To record what another version of the
package gives, let ``PYTHONPATH`` name its source.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.runtime import runs_adaptive, runs_batch, runs_checks, runs_evaluate, runs_given, runs_people  # noqa: F401
from tests.runtime.recorded_tables import RUNS, Packed, Run, Tables, differences, pack, read, write

FOLDER = Path(__file__).parent / "recorded"


def file_of(run: Run) -> Path:
    """The file that holds what a run gave."""
    return FOLDER / f"{run.group}.json"


def expected_of(run: Run) -> dict[str, Packed]:
    """What was recorded of a run.

    Raises:
        KeyError: nothing was.
    """
    return read(file_of(run))[run.name]


def tables_of(run: Run) -> Tables:
    """What a run gives now, in an empty folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        return run.function(Path(folder))


def main(arguments: list[str]) -> int:
    """Record runs, or compare them."""
    parser = argparse.ArgumentParser(prog="python -m tests.runtime.recorded_runs", description="Record seeded runs.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="names of runs; all by default")
    parser.add_argument("--write", action="store_true", help="record what they give now")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.runs) - RUNS.keys()):
        parser.error(f"no run is called {', '.join(unknown)}")
    logging.getLogger("pairscale").setLevel(logging.ERROR)
    found: list[str] = []
    for run in [RUNS[name] for name in given.runs] or RUNS.values():
        start, began = time.process_time(), time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="recorded-home-") as home:
            os.environ["PAIRSCALE_HOME"] = home
            tables = tables_of(run)
        print(
            f"{run.name}: {time.process_time() - start:.2f} s of CPU, {time.perf_counter() - began:.2f} s", flush=True
        )
        if given.write:
            FOLDER.mkdir(exist_ok=True)
            packed = {name: pack(table) for name, table in tables.items()}
            write(file_of(run), read(file_of(run)) | {run.name: packed})
        else:
            found += differences(run.name, read(file_of(run)).get(run.name, {}), tables)
    for path in FOLDER.glob("*.json") if given.write and not given.runs else ():  # runs that are no longer there
        write(path, {name: tables for name, tables in read(path).items() if name in RUNS})
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
