"""50,000 pairs in three batches, from the requests to the merged table: 60 seconds of CPU and 1 GB."""

import json
import subprocess
import sys
import textwrap

import pytest
from tests.batching import MODELS

CHILD = textwrap.dedent("""
    import json, resource, sys
    import polars as pl
    import pairscale as ps
    from pairscale.r import llm_resume_multi_batches, llm_submit_pairs_multi_batch

    folder, n, backend, model = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    texts = ["Some words that stand for a text. " * 30 + "x" * k for k in range(400)]
    samples = [{"ID": f"s_{k:03d}", "text": text} for k, text in enumerate(texts)]
    pairs = ps.make_pairs(samples).head(n)
    made = llm_submit_pairs_multi_batch(pairs, model, backend=backend, n_segments=3, output_dir=folder)
    done = llm_resume_multi_batches(made, interval_seconds=0.2, per_job_delay=0)
    used = resource.getrusage(resource.RUSAGE_SELF)
    # Of this program alone: the peak in getrusage is handed on by the process that started it.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps({
        "rows": done.combined.height, "batches": len(made.jobs), "rest": done.rest.height,
        "cpu": used.ru_utime + used.ru_stime, "mb": int(status["VmHWM"].split()[0]) / 1024,
        "names": done.combined["custom_id"].n_unique(),
    }))
""")


@pytest.mark.validate
@pytest.mark.parametrize("backend", list(MODELS))
def test_fifty_thousand_pairs(backend, tmp_path, monkeypatch):
    from pairscale.testing import Batches, Behaviour, ProviderSimulator

    n = 50_000
    with ProviderSimulator(Behaviour(quality=len), batches=Batches(looks=2)) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(tmp_path), str(n), backend, MODELS[backend]],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"\n50,000 pairs by {backend}: {found['cpu']:.1f} s of CPU, {found['mb']:.0f} MB")
    assert (found["rows"], found["names"], found["batches"], found["rest"]) == (n, n, 3, 0)
    assert found["cpu"] < 60
    assert found["mb"] < 1024
