"""The mark of a test that drives workflows through events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["across"]


def waits(workflow: str, event: str) -> bool:
    """Whether a test spends its time on waiting before a retry; of such events, `make test` has one."""
    kept = workflow == "pairs" and event.startswith("503")
    return event.startswith(("time-out", "reset", "404 unknown model", "503")) and not kept


def tiers(workflow: str, event: str, *, slow: bool) -> list[Any]:
    """Of commands and processes, those that estimate and study besides judging take long."""
    if workflow in ("pairscale check-judge", "pairscale bias-study") or (slow and workflow in ("check", "study")):
        return [pytest.mark.validate]
    return [pytest.mark.slow] * (slow or waits(workflow, event))


def across(workflows: Iterable[str], *events: str, slow: bool = False) -> Any:
    """Run a test with each of the workflows and events.

    A test may carry several of these marks, which together are one list of cases.
    """
    cases = [
        pytest.param(workflow, event, id=f"{workflow}: {event}", marks=tiers(workflow, event, slow=slow))
        for workflow in workflows
        for event in events
    ]

    def parametrised(test: Any) -> Any:
        marks = getattr(test, "pytestmark", [])
        more = [case for mark in marks for case in mark.args[1]]
        test.pytestmark = [pytest.mark.parametrize(("workflow", "event"), [*cases, *more]).mark]
        return test

    return parametrised
