"""Which events end wrongly in which workflow, and the marks of a test that drives workflows through events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

__all__ = ["KNOWN_FAULTS", "Fault", "across"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that is known.

    Attributes:
        reason: what is wrong.
        raises: how the test fails.
        workflows: where.
        events: with which events.
    """

    reason: str
    raises: type[BaseException]
    workflows: tuple[str, ...]
    events: tuple[str, ...]


KNOWN_FAULTS = [
    Fault(
        "the functions end without a word when they are interrupted; only the commands say how to resume",
        AssertionError,
        ("pairs", "adaptive", "ab", "study", "check", "batch", "people"),
        ("Ctrl-C, message", "SIGTERM, message"),
    ),
]
"""Tests of these workflows and events fail, and must: when a fault is gone, its tests say so until it is deleted."""


def across(workflows: Iterable[str], *events: str, slow: bool = False) -> Any:
    """Run a test with each of the workflows and events; a known fault is an expected failure.

    A test may carry several of these marks, which together are one list of cases.
    """
    cases = [
        pytest.param(workflow, event, id=f"{workflow}: {event}", marks=_marks(workflow, event, slow))
        for workflow in workflows
        for event in events
    ]

    def parametrised(test: Any) -> Any:
        marks = getattr(test, "pytestmark", [])
        more = [case for mark in marks for case in mark.args[1]]
        test.pytestmark = [pytest.mark.parametrize(("workflow", "event"), [*cases, *more]).mark]
        return test

    return parametrised


def _marks(workflow: str, event: str, slow: bool) -> list[pytest.MarkDecorator]:
    known = [fault for fault in KNOWN_FAULTS if workflow in fault.workflows and event in fault.events]
    expected = [pytest.mark.xfail(strict=True, reason=fault.reason, raises=fault.raises) for fault in known]
    return expected + [pytest.mark.slow] * slow
