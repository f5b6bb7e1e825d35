"""What the user should know but need not act on: rows left out, a guessed encoding, a slower disk mode.

One way for all of it: the logger ``pairscale`` at level WARNING. A script sees it on standard error, the command
prints it as ``note: …``, and ``logging.getLogger("pairscale").setLevel("ERROR")`` silences it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pairscale.core.addresses import without_logins

_LOG = logging.getLogger("pairscale")


def notice(message: str) -> str:
    """Say ``message`` once on the ``pairscale`` logger and return it, so that a result can carry it too.

    As in an error, no user and no password of an address is said.
    """
    message = without_logins(message)
    _LOG.warning("%s", message)
    return message


def mention(message: str) -> None:
    """Say what a command tells the person at the terminal, such as what was read; scripts do not see it."""
    _LOG.info("%s", without_logins(message))


@contextmanager
def without_notices() -> Iterator[None]:
    """Silence notices inside the block, for a step whose notices are not about what the user asked for."""
    was_disabled = _LOG.disabled
    _LOG.disabled = True
    try:
        yield
    finally:
        _LOG.disabled = was_disabled


def plural(n: int, word: str, words: str = "") -> str:
    """A number with its word: ``1 text``, ``2,000 texts``; with the plural where it is not the word and an ``s``."""
    if n == 1:
        return f"{n:,} {word}"
    return f"{n:,} {words or word + 's'}"
