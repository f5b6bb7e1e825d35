"""A run of a million pairs, step by step: submit, resume in the middle, export, import, fit, report.

``python -m benchmarks.million [PAIRS]`` runs each step in a process of its own, and the provider simulator in another,
so that everything measured is ours; the folder is deleted at the end.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.providers import server

TEXTS = 2_000
STEPS = ("prepare", "submit", "resume", "nothing", "export", "import", "compare", "fit", "report", "status")


def prepare(folder: Path, n_pairs: int) -> None:
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    first = rng.integers(0, TEXTS, n_pairs)
    second = (first + rng.integers(1, TEXTS, n_pairs)) % TEXTS
    theta = rng.normal(size=TEXTS)
    ids = pl.Series([f"S{at:04d}" for at in range(TEXTS)])
    text = pl.Series([f"{at} " * 300 for at in range(TEXTS)])
    samples = pl.DataFrame({"ID": ids, "text": text, "theta_true": theta})
    samples.write_parquet(folder / "samples.parquet")
    sides = {1: first, 2: second}
    pl.DataFrame({f"{name}{at}": samples[name].gather(side) for name in samples.columns for at, side in sides.items()}
    ).write_parquet(folder / "pairs.parquet")  # fmt: skip


def _submit(folder: Path, share: float) -> Any:
    import polars as pl

    import pairscale as ps

    pairs = pl.read_parquet(folder / "pairs.parquet")
    part = pairs.head(int(pairs.height * share))
    judge = ps.make_judge(
        "openai:gpt-4.1", judge_args={"base_url": os.environ["SIMULATOR_URL"], "api_key": "none-at-all", "cache": False}
    )
    return ps.submit_pairs(part, judge, run=folder / "run.db", concurrency=64, progress=False)


def submit(folder: Path, _: int) -> None:
    _submit(folder, 0.5)


def resume(folder: Path, _: int) -> None:
    _submit(folder, 1.0)


def nothing(folder: Path, n_pairs: int) -> None:
    """Everything is answered, and all results are asked for."""
    assert _submit(folder, 1.0).results.height == n_pairs


def export(folder: Path, _: int) -> None:
    import pairscale as ps

    ps.export(folder / "run.db", folder / "results.parquet")


def import_(folder: Path, n_pairs: int) -> None:
    import pairscale as ps

    assert ps.import_run(folder / "results.parquet", folder / "again.db", folder / "samples.parquet") == n_pairs


def compare(folder: Path, _: int) -> None:
    from pairscale.store.runfile import open_run

    with open_run(folder / "run.db") as one, open_run(folder / "again.db") as two:
        assert one.results().equals(two.results(), null_equal=True)
        assert one.counts() == two.counts()


def fit(folder: Path, _: int) -> None:
    import pairscale as ps

    ps.fit(folder / "run.db")


def report(folder: Path, _: int) -> None:
    import pairscale as ps

    ps.report(folder / "run.db", out=folder / "report.html")


def status(folder: Path, _: int) -> None:
    subprocess.run([sys.executable, "-m", "pairscale", "status", str(folder / "run.db")], check=True, stdout=sys.stderr)


WRITTEN = {
    "submit": "run.db",
    "resume": "run.db",
    "export": "results.parquet",
    "import": "again.db",
    "report": "report.html",
}
CALLS: dict[str, Callable[[Path, int], None]] = {
    "prepare": prepare, "submit": submit, "resume": resume, "nothing": nothing, "export": export, "import": import_,
    "compare": compare, "fit": fit, "report": report, "status": status,
}  # fmt: skip


def measure(step: str, folder: Path, n_pairs: int) -> dict[str, Any]:
    import pairscale  # noqa: F401

    cpu, wall = time.process_time(), time.perf_counter()
    CALLS[step](folder, n_pairs)
    who = resource.RUSAGE_CHILDREN if step == "status" else resource.RUSAGE_SELF
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = used.ru_utime + used.ru_stime
    size = (folder / WRITTEN[step]).stat().st_size / 1e6 if step in WRITTEN else None
    return {
        "step": step,
        "cpu_s": round(time.process_time() - cpu + children, 1),
        "wall_s": round(time.perf_counter() - wall, 1),
        "memory_mb": round(resource.getrusage(who).ru_maxrss / 1e3),
        "file_mb": None if size is None else round(size, 1),
    }


def run(n_pairs: int = 100_000) -> list[dict[str, Any]]:
    rows = []
    Path("build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="million-", dir="build") as folder, server("simulate") as url:
        known = os.environ | {"SIMULATOR_URL": url, "NO_PROXY": "*"}
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.million", step, folder, str(n_pairs)]
            done = subprocess.run(command, check=False, capture_output=True, text=True, env=known)
            if done.returncode:
                print(step, done.stderr[-3000:], flush=True)
                continue
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in CALLS:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        run(*(int(float(value)) for value in sys.argv[1:2]))
