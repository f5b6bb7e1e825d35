"""How live judging says how far it is: a bar or one updated line, lines, or nothing."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from pairscale.core.notebooks import in_notebook
from pairscale.core.options import ProgressMode, require_progress
from pairscale.core.tables import to_frame

if TYPE_CHECKING:
    from pairscale.core.tables import Table

_LINES = 20
"""About how many lines say how far it is where there is neither a terminal nor a notebook."""


def progress_of(
    pairs: Table, *, verbose: bool, status_every: int | None, progress: ProgressMode
) -> tuple[bool, int | None]:
    """Whether to show a bar, and per how many pairs to print a line; None for no such lines."""
    shown = require_progress(progress) != "none"
    if (sys.stderr is not None and sys.stderr.isatty()) or in_notebook():
        return shown, status_every if verbose else None
    if not verbose:
        return False, None
    if status_every is None and shown:
        status_every = max(1, math.ceil(to_frame(pairs, "pairs").height / _LINES))
    return shown, status_every
