"""Runs that several tests look at are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, StoreError

Once = Callable[[Callable[..., Any], str, str], Any]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """``once(make, workflow, event)``: what ``make(workflow, event, folder)`` gave, or raised, the first time."""
    kept: dict[tuple[Any, str, str], tuple[Any, BaseException | None]] = {}

    def get(make: Callable[[str, str, Path], Any], workflow: str, event: str) -> Any:
        key = make, workflow, event
        if key not in kept:
            try:
                folder = tmp_path_factory.mktemp("event")
                kept[key] = make(workflow, event, folder), None
                audit_all(folder)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - every test of the run is shown it
                kept[key] = None, error
        found, error = kept[key]
        if error is not None:
            raise error
        return found

    return get


@pytest.fixture(autouse=True)
def _audited(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does to its run file, killing its process included, the audit of the file finds nothing."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is not None:
        audit_all(folder)


def audit_all(folder: Path) -> None:
    """Every run file of a folder passes the audit."""
    for run in sorted(folder.rglob("*.db")):
        try:
            report = ps.audit(run)
        except (StoreError, InputError):  # no run file, or one that needs a selector of the test's own
            continue
        assert report.passed, f"{run}: {report}"
