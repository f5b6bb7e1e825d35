"""What the user should know but need not act on: rows left out, a guessed encoding, a slower disk mode.

One way for all of it: the logger ``pairscale`` at level WARNING. A script sees it on standard error, the command
prints it as ``note: …``, and ``logging.getLogger("pairscale").setLevel("ERROR")`` silences it.
"""

from __future__ import annotations

import logging

__all__ = ["notice"]

_LOG = logging.getLogger("pairscale")


def notice(message: str) -> str:
    """Say ``message`` once on the ``pairscale`` logger and return it, so that a result can carry it too."""
    _LOG.warning("%s", message)
    return message
