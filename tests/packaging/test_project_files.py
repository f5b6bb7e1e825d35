"""What stands beside the code agrees with it: citation, licence, changelog, workflow."""

from __future__ import annotations

import re

import pytest
import yaml
from packages import PROJECT, ROOT

import pairscale as ps
from pairscale._version import __year__
from pairscale.reporting.page import CITATION


def test_the_citation() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "type"} <= set(cited)
    assert all(set(author) & {"name", "family-names"} for author in cited["authors"])
    assert (cited["version"], cited["license"]) == (ps.__version__, PROJECT["license"])
    assert cited["abstract"] == PROJECT["description"]
    assert cited["date-released"].year == __year__
    assert CITATION.startswith(
        f"{cited['authors'][0]['name']} ({__year__}). {cited['title']} (version {ps.__version__})"
    )


def test_the_changelog_begins_with_what_comes_or_is() -> None:
    first = re.findall(r"^## \[?([\w.]+)\]?", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[0]
    assert first in {"Unreleased", ps.__version__}


def test_the_workflow_runs_what_must_pass() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    job = workflow["jobs"]["test"]
    assert workflow["permissions"] == {"contents": "read"}
    versions = job["strategy"]["matrix"]["python"]
    supported = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert versions == supported
    assert PROJECT["requires-python"] == f">={min(versions, key=lambda text: int(text.split('.')[1]))}"
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["bash .ci/run", "make docs"]
    made = re.findall("^make (.+)$", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    assert made == ["lint types", "test", "test-slow"]


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "constraints.txt", "Makefile", ".github/workflows/ci.yml", ".ci/run"]
)
def test_no_file_names_the_host_of_an_index(name: str) -> None:
    assert not re.search(r"index-url|find-links|https?://[\w.]*pypi", (ROOT / name).read_text("utf-8"))


def test_what_tests_need_is_pinned() -> None:
    pinned = {
        re.split("==", line)[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    names = {re.split(r"[^\w.-]", need)[0].lower().replace("_", "-") for need in wanted} - {"pairscale"}
    assert names - pinned == set()
