"""Run every benchmark: ``make bench``, or ``python -m benchmarks NAME …`` for some of them."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

ALL = (
    "starting",
    "pairing",
    "collecting",
    "hashing",
    "fitting",
    "beside_evalica",
    "bootstrap",
    "elo",
    "convergence",
    "bayes",
    "adaptive",
    "best",
    "providers",
)


def main(names: list[str]) -> None:
    folder = Path("build/benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    for name in names or ALL:
        rows = importlib.import_module(f"benchmarks.{name}").run()
        print(f"\n{name}\n" + _table(rows))
        document = {"benchmark": name, "at": datetime.now(UTC).isoformat(timespec="seconds"), **machine, "rows": rows}
        (folder / f"{name}.json").write_text(json.dumps(document, indent=2))


def _table(rows: list[dict[str, object]]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    return "\n".join(lines + ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows])


if __name__ == "__main__":
    main(sys.argv[1:])
