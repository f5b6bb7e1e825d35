"""What it costs to start the command, in CPU seconds, beside an empty Python process."""

from __future__ import annotations

import resource
import subprocess
import sys

RUNS = 7


def _cpu(arguments: list[str]) -> float:
    spent = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(arguments, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(sorted(spent)[RUNS // 2], 3)


def run() -> list[dict[str, float | str]]:
    command = "import sys; from pairscale.cli import main; main(sys.argv[1:])"
    return [
        {"what": "python -c pass", "median_cpu_s": _cpu([sys.executable, "-c", "pass"])},
        {"what": "import pairscale", "median_cpu_s": _cpu([sys.executable, "-c", "import pairscale"])},
        {"what": "pairscale --help", "median_cpu_s": _cpu([sys.executable, "-c", command, "--help"])},
        {"what": "pairscale rank --help", "median_cpu_s": _cpu([sys.executable, "-c", command, "rank", "--help"])},
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
