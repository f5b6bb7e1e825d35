"""Runs that several tests look at are made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Once = Callable[[Callable[..., Any], str, str], Any]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """``once(make, workflow, event)``: what ``make(workflow, event, folder)`` gave, or raised, the first time."""
    kept: dict[tuple[Any, str, str], tuple[Any, BaseException | None]] = {}

    def get(make: Callable[[str, str, Path], Any], workflow: str, event: str) -> Any:
        key = make, workflow, event
        if key not in kept:
            try:
                kept[key] = make(workflow, event, tmp_path_factory.mktemp("event")), None
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - every test of the run is shown it
                kept[key] = None, error
        found, error = kept[key]
        if error is not None:
            raise error
        return found

    return get
