"""The wheel in an environment of its own: it installs, the demo runs, and each extra adds what it promises.

It takes an index to install from, and minutes; it prints the figures that docs/dependencies.md shows.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from packages import EXTRAS, ROOT

pytestmark = pytest.mark.validate

_NEEDS = {
    "documents": "import os, zipfile, pypdf; os.mkdir('docs')\n"
    "with zipfile.ZipFile('docs/a.odt', 'w') as made: made.writestr('content.xml', '<o:d xmlns:o=\"urn:o\"><o:body>"
    "<o:text><o:p>Text</o:p></o:text></o:body></o:d>')\n"
    "assert ps.read_samples('docs').rows() == [('a', 'Text')]\n"
    "import polars as pl; pl.DataFrame({'ID': ['a'], 'text': ['b']}).write_excel('t.xlsx'); "
    "assert ps.read_samples('t.xlsx').height == 1",
    "plots": "from pairscale.cli import main; ps.example_writing_results.write_csv('r.csv'); "
    "main(['fit', 'r.csv', '--chart', 'scores.svg'])",
    "postgres": "import psycopg, sqlalchemy; sqlalchemy.create_engine('postgresql+psycopg://localhost/x')",
    "web": "from pairscale.people import Address, serve_run; import urllib.request; "
    "ps.submit_pairs(ps.make_pairs(ps.example_writing_samples.head(3)), 'lexical', run='web.db')\n"
    "with serve_run('web.db', address=Address(port=0)) as base: assert urllib.request.urlopen(base).status == 200",
}


class Clean:
    """An empty environment, and what runs in it."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True)
        self.work = folder / "work"
        self.work.mkdir()
        self._bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        (self.packages,) = (folder / "venv").rglob("site-packages")

    def run(self, *command: str, code: int = 0) -> str:
        """What a command of this environment prints."""
        name, *rest = command
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PAIRSCALE"))}
        done = subprocess.run(
            [self._bin / name, *rest],
            cwd=self.work,
            env=kept | {"HOME": str(self.work), "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if code else "")

    def install(self, what: str) -> None:
        """Install something, in the versions that the tests run with."""
        constraints = ROOT / "constraints.txt"
        self.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(constraints), what)

    def megabytes(self) -> float:
        """The size of everything that is installed, but for pip itself."""
        files = (path for path in self.packages.rglob("*") if path.is_file())
        own = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
        counted = (path for path in files if not path.relative_to(self.packages).parts[0].startswith(own))
        return sum(path.stat().st_size for path in counted) / 1e6

    def seconds(self, code: str) -> float:
        """Processor time of a Python process, the least of five."""
        return min(self._once(code) for _ in range(5))

    def _once(self, code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run("python", "-c", code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As an installer makes it: in isolation, with the build system that the project names."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "-w",
        str(folder),
    ]
    subprocess.run([*command, str(ROOT)], check=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    made = Clean(tmp_path_factory.mktemp("clean"))
    made.install(str(wheel))
    return made


def checks(clean: Clean) -> dict[str, str]:
    found: dict[str, Any] = json.loads(clean.run("pairscale", "doctor", "--json"))
    return {row["check"]: row["value"] for row in found["checks"]}


def test_the_demo_runs_in_an_empty_environment(clean: Clean) -> None:
    assert clean.run("pairscale", "--version").startswith("pairscale ")
    assert "it stopped: the scores are reliable and stable" in clean.run("pairscale", "demo")
    assert (clean.work / "pairscale-demo/report.html").stat().st_size > 10_000
    assert "all reproduced" in clean.run("pairscale", "audit", "pairscale-demo/run.db")
    found = checks(clean)
    assert all(found[f"extra {extra}"].startswith("missing") for extra in EXTRAS)
    print(f"\ncore: {clean.megabytes():.0f} MB installed")
    for what in ("pass", "import pairscale", "from pairscale.cli import main; main(['--version'])"):
        print(f"{what}: {clean.seconds(what):.3f} s of CPU")


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_by_itself(clean: Clean, wheel: Path, extra: str) -> None:
    code = f"import pairscale as ps\n{_NEEDS[extra]}"
    clean.run("python", "-c", code, code=1)
    before = clean.megabytes()
    clean.install(f"{wheel}[{extra}]")
    clean.run("python", "-c", code)
    assert checks(clean)[f"extra {extra}"] == "installed"
    print(f"\n{extra}: {clean.megabytes() - before:.0f} MB more")
