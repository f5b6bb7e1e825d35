"""Without an extra, whatever needs it says the one line that installs it; `pairscale doctor` knows them all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packages import EXTRAS, PROJECT

from pairscale.cli import doctor
from pairscale.cli._common import Output

_MODULES = {"vl-convert-python": "vl_convert", "markdown-it-py": "markdown_it", "python-multipart": "python_multipart"}

# The core alone: packages of extras are there for nobody.
_WITHOUT = """
import json, sys
from importlib.machinery import PathFinder

MISSING = set(json.loads(sys.argv[1]))


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in MISSING else PathFinder.find_spec(name, path, target)


sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""

_TRY_EACH = """
import contextlib, io, os
import pairscale as ps
from pairscale.cli import main


def command(*args):
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
        try:
            main(list(args))
        except SystemExit as end:
            return [end.code, printed.getvalue()]


def call(function):
    try:
        function()
    except ps.PairscaleError as error:
        return [1, f"error: {error}"]


texts = ps.example_writing_samples.head(3)
texts.write_csv("texts.csv")
open("texts.xlsx", "wb").write(b"PK")
ps.submit_pairs(ps.make_pairs(texts), "lexical", run="run.db")
os.mkdir("docs")
open("docs/a.docx", "wb").write(b"PK")
open("docs/b.pdf", "wb").write(b"%PDF")
said = {
    "documents": [
        command("pairs", "docs"),
        command("compare", "docs/a.docx", "b"),
        command("pairs", "texts.xlsx"),
        command("traits", "--out", "traits.xlsx"),
        command("report", "run.db", "--out", "report.xlsx"),
    ],
    "plots": [command("fit", "run.db", "--chart", "chart.svg"), command("fit", "run.db", "--chart", "a.png")],
    "postgres": [call(lambda: ps.open_run("postgresql://localhost/pairscale")), command("status", "postgresql://l/p")],
    "web": [command("watch", "run.db"), command("label", "run.db", "--labellers", "ann")],
}
print(json.dumps(said))
"""


def package(requirement: str) -> str:
    """The name of a package in a requirement."""
    return re.split(r"[^\w.-]", requirement)[0]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str]]]:
    missing = [_MODULES.get(package(need), package(need)) for needs in EXTRAS.values() for need in needs]
    missing.remove("markdown_it")  # rich brings it along
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT + _TRY_EACH, json.dumps(missing)],
        cwd=tmp_path_factory.mktemp("core"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[tuple[int, str]]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_is_one_line(said: dict[str, list[tuple[int, str]]], extra: str) -> None:
    assert said[extra]
    for code, text in said[extra]:
        assert code == 1
        line = rf'error: [\w :(),-]+ needs an optional package: pip install "pairscale\[{extra}\]"'
        assert re.fullmatch(line, text.strip()), text


def test_the_doctor_knows_every_dependency() -> None:
    assert {name.lower() for name in doctor.CORE} == {package(need) for need in PROJECT["dependencies"]}
    assert {extra: list(names) for extra, names in doctor.EXTRAS.items()} == {
        extra: [package(need) for need in needs] for extra, needs in EXTRAS.items()
    }


def test_the_doctor_names_the_package_that_is_missing(monkeypatch, capsys) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: "missing" if name == "pypdf" else "1.0")
    doctor.command.function(Output())
    found = re.search(r"extra documents +(\S.*?)  ", capsys.readouterr().out)
    assert found is not None
    assert found[1] == "missing: pypdf"


def test_every_extra_is_in_the_one_for_all() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert everything == f"pairscale[{','.join(EXTRAS)}]"


def test_the_wheel_needs_no_vendor() -> None:
    """The providers' own packages are oracles of the tests, never needed to run."""
    vendors = {"openai", "anthropic", "google-genai", "together", "ollama"}
    assert not vendors & {package(need) for needs in (PROJECT["dependencies"], *EXTRAS.values()) for need in needs}
    source = Path(doctor.__file__).parents[1]
    pattern = re.compile(r"^\s*(?:import|from) (?:openai|anthropic|google|together|ollama)\b", re.MULTILINE)
    assert [path.name for path in source.rglob("*.py") if pattern.search(path.read_text("utf-8"))] == []
