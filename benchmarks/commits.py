"""The single-machine path at an earlier commit and now: the same measurements, in turns.

``python -m benchmarks.commits REVISION [TURNS]`` checks the revision out into a temporary folder. The benchmarks are
those of this commit for both, each measurement runs in a process of its own with one BLAS thread, and the ratio is the
median over the turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
TURNS = 5


def _collecting() -> float:
    from benchmarks.collecting import measure

    return measure(20_000)["cpu_ms_per_pair"]


def _step(n_items: int, start: int, n: int) -> float:
    from benchmarks.adaptive import steps

    return float(steps(n_items, start, n)["ms_of_cpu"])


def _provider() -> float:
    from benchmarks.providers import N_ASKED, OPEN, measured, server

    with server("simulate") as url:
        return measured("ours", url, N_ASKED, OPEN)["cpu_ms"]


def _ranking() -> float:
    from benchmarks import adaptive

    adaptive.WHOLE = 200, 2_000
    return float(adaptive.whole()["cpu_s"])


def _fit() -> float:
    from benchmarks.fitting import measure

    return float(measure(1_000, 1_000_000, True)["cpu_s"])


def _bootstrap() -> float:
    import time

    import pairscale as ps
    from benchmarks.fitting import make_data

    data, _, _ = make_data(100, 10_000)
    ps.fit_bt_model(data, bootstrap=10)
    cpu = time.process_time()
    ps.fit_bt_model(data, bootstrap=1_000)
    return time.process_time() - cpu


def _command(*arguments: str) -> float:
    from benchmarks.starting import _cpu, _make

    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder))
        run = str(Path(folder) / "run.db")
        spent = [_cpu([sys.executable, "-m", "pairscale", *arguments, run]) for _ in range(4)]
    return median(spent[1:])


MEASURES: dict[str, tuple[str, Callable[[], float]]] = {
    "judgement, instant judge, to the disk": ("ms", _collecting),
    "judgement through HTTP, to the disk": ("ms", _provider),
    "adaptive step, 200 texts": ("ms", lambda: _step(200, 1_000, 2_000)),
    "adaptive step, 2,000 texts": ("ms", lambda: _step(2_000, 3_000, 1_000)),
    "adaptive run, 200 texts, 2,000 comparisons, with refits": ("s", _ranking),
    "fit, 1,000 texts, 1,000,000 comparisons": ("s", _fit),
    "bootstrap, 100 texts, 10,000 comparisons, 1,000 rounds": ("s", _bootstrap),
    "pairscale status, five texts": ("s", lambda: _command("status")),
    "pairscale fit, five texts": ("s", lambda: _command("fit")),
}


def _measured(what: str, source: Path) -> float:
    environment = os.environ | {"PYTHONPATH": f"{source / 'src'}:{HERE}", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.commits", "--measure", what]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=HERE)
    return float(json.loads(done.stdout.splitlines()[-1]))


def run(revision: str, turns: int = TURNS) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", old, revision], check=True, cwd=HERE)
        try:
            for what, (unit, _) in MEASURES.items():
                both = [(_measured(what, old), _measured(what, HERE)) for _ in range(turns)]
                then, now = (median(turn[at] for turn in both) for at in (0, 1))
                ratios = sorted(now / then for then, now in both)
                rows.append(
                    {
                        "what": what,
                        "then": f"{then:.3g} {unit}",
                        "now": f"{now:.3g} {unit}",
                        "ratio": round(median(ratios), 2),
                        "turns": ", ".join(f"{ratio:.2f}" for ratio in ratios),
                    }
                )
                print(rows[-1], file=sys.stderr, flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", old], check=True, cwd=HERE)
    return rows


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(json.dumps(MEASURES[sys.argv[2]][1]()))
    else:
        from benchmarks.__main__ import _table

        print(_table(run(sys.argv[1], *map(int, sys.argv[2:]))))
