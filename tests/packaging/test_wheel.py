"""The archives hold everything that the package reads, and nothing else; `make validate` installs them, too."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packages import EXTRAS, PROJECT, SRC, build_sdist, build_wheel

import pairscale as ps

pytestmark = pytest.mark.slow

_MEGABYTE = 1_000_000

# What only a file beside the code can answer; each command and each name reads at least one.
_READS_EVERYTHING = """
import sys
import pairscale as ps
from pathlib import Path
assert Path(ps.__file__).is_relative_to(sys.argv[1]), ps.__file__
for table in (ps.example_openai_batch_output, ps.example_writing_pairs, ps.example_writing_samples):
    assert len(table)
assert ps.published_default_template() and ps.published_template_study()
assert all(ps.get_prompt_template(name) for name in ps.list_prompt_templates(include_registered=False))
from pairscale.providers.catalog import price_table
assert price_table()
fit = ps.fit_bt_model(ps.example_writing_results)
from pairscale.reporting.verbs import write_report
write_report(fit, "report.html", ps.example_writing_samples)
assert "<style" in Path("report.html").read_text("utf-8")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def test_the_wheel_holds_the_package_whole_and_nothing_else(wheel: Path) -> None:
    there = {path.relative_to(SRC.parent).as_posix() for path in SRC.rglob("*") if path.is_file()}
    there = {name for name in there if "__pycache__" not in name}
    held = {name for name in names(wheel) if ".dist-info/" not in name}
    assert held == there
    assert {
        "pairscale/py.typed",
        "pairscale/__init__.pyi",
        "pairscale/providers/data/prices.json",
        "pairscale/providers/data/providers.json",
    } <= held
    for folder, ending in (
        ("core/templates", "txt"),
        ("datasets/data", "csv"),
        ("reporting/assets", "css"),
        ("people/static", "js"),
    ):
        assert any(re.fullmatch(rf"pairscale/{folder}/\w+\.{ending}", name) for name in held), folder


def test_what_the_wheel_says_of_itself(wheel: Path) -> None:
    said = metadata(wheel)
    assert (said["Name"], said["Version"]) == ("pairscale", ps.__version__)
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert said["License-Expression"] == "MIT"
    assert set(said.get_all("Provides-Extra", [])) == {*EXTRAS, "all", "dev"}
    needs = said.get_all("Requires-Dist", [])
    assert sorted(name for name in needs if "extra ==" not in name) == sorted(PROJECT["dependencies"])
    assert str(said.get_payload()).startswith("# pairscale")
    with zipfile.ZipFile(wheel) as archive:
        (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "pairscale = pairscale.__main__:start" in archive.read(points).decode()
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())


def test_the_wheel_alone_is_enough(wheel: Path, tmp_path: Path) -> None:
    """Unpacked beside the dependencies, it finds all its files, and nothing of the source folder."""
    home, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    done = subprocess.run(
        [sys.executable, "-c", _READS_EVERYTHING, str(home)],
        cwd=work,
        env={"PYTHONPATH": str(home), "PATH": "", "OPENBLAS_NUM_THREADS": "1", "PAIRSCALE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    source = build_sdist(tmp_path)
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    top = {path.name for path in folder.iterdir()}
    wanted = {"src", "tests", "docs", "benchmarks", "pyproject.toml", "constraints.txt", "Makefile", "README.md"}
    assert wanted | {"LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "mkdocs.yml"} <= top
    assert not top & {".venv", "build", "dist", "pairscale-demo", ".git"}
    again = build_wheel(tmp_path, folder)
    assert names(again) == names(wheel)
    assert str(metadata(again)) == str(metadata(wheel))
    assert wheel.stat().st_size < 2 * _MEGABYTE
    with zipfile.ZipFile(wheel) as archive:  # nothing in it but code, and tables of a size that code has
        assert max(one.file_size for one in archive.infolist()) < 0.2 * _MEGABYTE
    assert source.stat().st_size < 5 * _MEGABYTE
