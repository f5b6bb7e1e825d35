"""The moments after which a crash must lose nothing and pay for nothing twice; tests kill the process at each."""

from __future__ import annotations

STEPS = ("written", "prepared", "uploaded", "creating", "created", "numbered", "seen", "downloaded", "recorded",
         "collected")  # fmt: skip
"""In the order in which a batch passes them."""


def reached(step: str) -> None:
    """Nothing happens here, unless a test says so."""
