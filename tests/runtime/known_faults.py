"""Which events end wrongly in which workflow, and the marks of a test that drives workflows through events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["KNOWN_FAULTS", "across"]

KNOWN_FAULTS: dict[tuple[str, str], str] = {}
"""By workflow and event, why the test fails. A row whose fault is gone fails its test: delete it."""


def across(workflows: Iterable[str], *events: str, slow: bool = False) -> Any:
    """Run a test with each of the workflows and events; a known fault is an expected failure."""

    def parametrised(test: Any) -> Any:
        # A test may have several of these marks; together they are one list of cases.
        cases = [pytest.param(name, event, id=f"{name}: {event}", marks=_marks(name, event, slow)) for name in workflows for event in events]  # fmt: skip
        for at, mark in enumerate(getattr(test, "pytestmark", [])):
            if mark.name == "parametrize":
                test.pytestmark[at] = pytest.mark.parametrize(mark.args[0], [*cases, *mark.args[1]]).mark
                return test
        return pytest.mark.parametrize(("workflow", "event"), cases)(test)

    return parametrised


def _marks(workflow: str, event: str, slow: bool) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.slow] if slow else []
    if (reason := KNOWN_FAULTS.get((workflow, event))) is not None:
        marks.append(pytest.mark.xfail(strict=True, reason=reason))
    return marks
