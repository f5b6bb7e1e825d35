"""Make ``tests/data/traces``: files as the tools themselves write them, for the tests that read them.

Every tool gets an environment of its own under ``build/traces``; nothing of it enters the environment of the tests. It
takes an index of packages::

    python tools/make_traces.py            # all of them
    python tools/make_traces.py inspect    # one of: inspect, ag2, spans

The tools run without a network: inspect_ai with its ``mockllm``, AG2 with its ``TestConfig``, OpenAI's client with a
transport that answers by itself. What tells of this machine (tracebacks with paths) is removed before a file is kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "traces"
TARGET = ROOT / "tests" / "data" / "traces"
WRITERS = Path(__file__).parent / "trace_writers"

PYTHON_TOOLS = {
    "inspect": ["inspect_ai==0.3.285"],
    "ag2": ["ag2==1.2.1", "opentelemetry-sdk==1.45.2"],
    "spans": [
        "opentelemetry-sdk==1.45.2",
        "opentelemetry-exporter-otlp-proto-http==1.45.1",
        "openinference-instrumentation-openai==0.1.66",
        "openai",
        "langfuse==5.0.4",
        "langsmith==0.14.17",
    ],
}


def environment(tool: str) -> Path:
    """The Python of a tool's environment, made when it is missing."""
    home = BUILD / tool
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)  # noqa: S603
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *PYTHON_TOOLS[tool]], check=True)  # noqa: S603
    return python


def write_with(tool: str) -> None:
    """Have a tool write its files into a folder of its own, and take them over."""
    with tempfile.TemporaryDirectory() as folder:
        python, script = environment(tool), WRITERS / f"with_{tool}.py"
        subprocess.run([str(python), str(script), folder], check=True, cwd=folder)  # noqa: S603
        for path in sorted(Path(folder, "out").rglob("*")):
            if path.is_file():
                place = TARGET / path.relative_to(Path(folder, "out"))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
                print(f"{place.relative_to(ROOT)}: {place.stat().st_size:,} bytes")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PYTHON_TOOLS:
        write_with(chosen)
