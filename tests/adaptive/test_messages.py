"""Figures are shown on their side of a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pairscale.adaptive.messages import shown_figure


@pytest.mark.parametrize(
    ("figure", "limit", "at_most", "shown"),
    [
        (0.898, 0.9, False, "0.898"),
        (0.894, 0.9, False, "0.89"),
        (0.904, 0.9, False, "0.90"),
        (0.9, 0.9, False, "0.90"),
        (0.89996, 0.9, False, "0.89996"),
        (0.102, 0.1, True, "0.102"),
        (0.098, 0.1, True, "0.10"),
        (0.5, None, False, "0.50"),
        (None, 0.9, False, "not known yet"),
        (math.nan, 0.9, False, "not known yet"),
    ],
)
def test_two_decimals_unless_they_would_lie(figure: Any, limit: Any, at_most: bool, shown: str) -> None:
    assert shown_figure(figure, limit, at_most=at_most) == shown
