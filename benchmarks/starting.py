"""What it costs to start the command, in CPU seconds, beside the import of NumPy and Polars.

Importing the two takes the same work everywhere: the ratios to it tell more than the seconds of a busy machine. Both
are taken in turns, with bytecode that is already compiled.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

TURNS = 7
COMMAND = "from pairscale.__main__ import start; start()"
BESIDE = "import numpy, polars"
BOUNDS = {"--help": 0.25, "rank --help": 0.35, "status run.db": 0.8, "report run.db": 0.8, "fit results.csv": 0.8}
"""CPU seconds that a command on five texts may take on a quiet machine of two cores."""


def _cpu(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(arguments, check=True, capture_output=True, env={**quiet, "OPENBLAS_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _make(folder: Path) -> None:
    """A run file and a table of results, of five texts."""
    import pairscale as ps

    texts = [{"ID": f"t{at}", "text": "rain " * (at + 3)} for at in range(5)]
    done = ps.submit_pairs(ps.make_pairs(texts), "lexical", run=folder / "run.db", progress=False)
    done.results.write_csv(folder / "results.csv")


def run() -> list[dict[str, float | str | None]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder)
        processes = {
            "python -c pass": [sys.executable, "-c", "pass"],
            BESIDE: [sys.executable, "-c", BESIDE],
            "import pairscale": [sys.executable, "-c", "import pairscale"],
        }
        for what in BOUNDS:
            arguments = [str(folder / word) if "." in word else word for word in what.split()]
            processes[f"pairscale {what}"] = [sys.executable, "-c", COMMAND, *arguments]
        for arguments in processes.values():
            _cpu(arguments)  # compiles what was not compiled yet
        spent = [{what: _cpu(arguments) for what, arguments in processes.items()} for _ in range(TURNS)]
    return [
        {
            "what": what,
            "median_cpu_s": round(median(turn[what] for turn in spent), 3),
            "of_numpy_and_polars": round(median(turn[what] / turn[BESIDE] for turn in spent), 2),
            "bound_s": BOUNDS.get(what.removeprefix("pairscale ")),
        }
        for what in processes
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
