"""An adaptive run of ten thousand texts and a hundred thousand comparisons: rank, take it up, status, report, audit.

``python -m benchmarks.large_ranking [TEXTS] [COMPARISONS]`` runs each step in a process of its own, with an instant
judge and the default preset; the folder is deleted at the end.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = ("rank", "resume", "status", "report", "audit")


def _samples(texts: int) -> list[dict[str, Any]]:
    import numpy as np

    truth = np.random.default_rng(0).normal(size=texts)
    return [{"ID": f"S{at:05d}", "text": f"text {at}", "theta_true": float(value)} for at, value in enumerate(truth)]


def rank(folder: Path, texts: int, comparisons: int) -> dict[str, Any]:
    import pairscale as ps
    from pairscale.adaptive import live as source

    samples, judge = _samples(texts), ps.SimulatedJudge("theta_true", seed=1)
    plain, spent = source.refit, [0.0]

    def refit(*args: Any, **named: Any) -> Any:  # in a thread of its own
        start = time.thread_time()
        try:
            return plain(*args, **named)
        finally:
            spent[0] += time.thread_time() - start

    source.refit = refit
    out = ps.rank(
        samples, judge=judge, run=folder / "run.db", concurrency=8, max_comparisons=comparisons, reliability=1.0,
        progress=False,
    )  # fmt: skip
    return {"comparisons": out.state.engine.committed, "refits": out.refits.height, "refits_cpu_s": round(spent[0], 1)}


def resume(folder: Path, _texts: int, _comparisons: int) -> dict[str, Any]:
    import pairscale as ps

    return {"comparisons": ps.adaptive_rank_resume(run=folder / "run.db").engine.committed}


def measure(step: str, folder: Path, texts: int, comparisons: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    wall, who = time.perf_counter(), resource.RUSAGE_SELF
    if step in ("rank", "resume"):
        found = (rank if step == "rank" else resume)(folder, texts, comparisons)
    else:
        out = ["--out", str(folder / "report.html")] if step == "report" else []
        command = [sys.executable, "-m", "pairscale", step, str(folder / "run.db"), *out]
        subprocess.run(command, check=True, stdout=sys.stderr)
        who = resource.RUSAGE_CHILDREN
    used = resource.getrusage(who)
    cpu = used.ru_utime + used.ru_stime
    written = {"rank": "run.db", "report": "report.html"}.get(step)
    return {
        "step": step,
        **found,
        "cpu_s": round(cpu, 1),
        "wall_s": round(time.perf_counter() - wall, 1),
        "memory_mb": round(used.ru_maxrss / 1e3),
        "ms_per_comparison": round(cpu / comparisons * 1e3, 2),
        "file_mb": None if written is None else round((folder / written).stat().st_size / 1e6, 1),
    }


def run(texts: int = 10_000, comparisons: int = 100_000) -> None:
    Path("build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ranking-", dir="build") as folder:
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.large_ranking", step, folder, str(texts), str(comparisons)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            print(json.loads(done.stdout.splitlines()[-1]) if not done.returncode else done.stderr[-3000:], flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in STEPS:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
    else:
        run(*(int(float(value)) for value in sys.argv[1:3]))
