"""Processes that tests start."""

from __future__ import annotations

import subprocess

__all__ = ["read_until"]


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What a process says on standard error, up to the line that holds some words."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError(f"it never said {words!r}: {''.join(lines)}")
