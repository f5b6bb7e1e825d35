from dataclasses import FrozenInstanceError, is_dataclass, replace

import pytest

from pairscale.core.records import record
from pairscale.judges.base import Verdict
from pairscale.providers.base import LLMRequest


@record
class Point:
    x: int
    y: int = 2


def test_a_record_is_a_dataclass_with_slots():
    assert is_dataclass(Point)
    assert repr(Point(1)).endswith("Point(x=1, y=2)")
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert replace(Point(1), y=5) == Point(1, 5)
    with pytest.raises(AttributeError):
        Point(1).z = 3


def test_a_request_is_made_by_names_alone():
    with pytest.raises(TypeError):
        LLMRequest("gpt-5.1", "Which one?")


def test_what_users_hold_is_frozen_at_run_time_too():
    with pytest.raises(FrozenInstanceError):
        Verdict.win(1).winner_pos = 2
