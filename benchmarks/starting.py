"""What it costs to start the command, in CPU seconds, beside an empty Python process."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 7


def _cpu(arguments: list[str]) -> float:
    spent = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(arguments, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(sorted(spent)[RUNS // 2], 3)


COMMAND = "import sys; from pairscale.cli import main; main(sys.argv[1:])"


def _make(folder: Path) -> None:
    """A run file and a table of results, of five texts."""
    import pairscale as ps

    texts = [{"ID": f"t{at}", "text": "rain " * (at + 3)} for at in range(5)]
    done = ps.submit_pairs(ps.make_pairs(texts), "lexical", run=folder / "run.db", progress=False)
    done.results.write_csv(folder / "results.csv")


def run() -> list[dict[str, float | str]]:
    found = [
        {"what": "python -c pass", "median_cpu_s": _cpu([sys.executable, "-c", "pass"])},
        {"what": "import pairscale", "median_cpu_s": _cpu([sys.executable, "-c", "import pairscale"])},
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder)
        for what in ("--help", "rank --help", "traits", "status run.db", "fit results.csv", "report run.db"):
            arguments = [str(folder / word) if "." in word else word for word in what.split()]
            seconds = _cpu([sys.executable, "-c", COMMAND, *arguments])
            found.append({"what": f"pairscale {what}", "median_cpu_s": seconds})
    return found


if __name__ == "__main__":
    for row in run():
        print(row)
