"""What the user should know but need not act on: rows left out, a guessed encoding, a slower disk mode.

One way for all of it: the logger ``pairscale`` at level WARNING. A script sees it on standard error, the command
prints it as ``note: …``, and ``logging.getLogger("pairscale").setLevel("ERROR")`` silences it. :func:`is_told` is the
rule for which figures of the model may be reported at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from pairscale.core.errors import without_logins

_LOG = logging.getLogger("pairscale")


def notice(message: str) -> str:
    """Log ``message`` as a warning and return it, so that a result can carry it too.

    As in an error, users and passwords are taken out of addresses.
    """
    message = without_logins(message)
    _LOG.warning("%s", message)
    return message


def mention(message: str) -> None:
    """Log what a command shows at the terminal, such as what was read; scripts do not see it."""
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


TOLD = 0.7
"""The data tell something about a parameter if its posterior is narrower than this share of its prior."""

NOT_TOLD = "not told by these data"

_LAPSE_WIDTH = 0.2264  # of the 95 % interval of the prior of the lapse rate, a beta distribution with 2 and 20
_POSITION_SD = {"judge slopes": 0.5, "logits": 1.0}  # of the prior of the position effect, by what is fitted
_POOLED_POSITION_SD = 0.3


def is_told(row: Mapping[str, Any], parameter: Literal["epsilon", "b"]) -> bool:
    """Whether the estimate of the lapse rate or the position effect comes from the data, and not from the prior alone.

    It does where its 95 % interval is narrower than :data:`TOLD` times that of the prior.

    Args:
        row: of the round log.
        parameter: which.
    """
    lower = row.get(f"{parameter}_p2.5")
    upper = row.get(f"{parameter}_p97.5")
    if lower is None or upper is None:
        return False
    width = _LAPSE_WIDTH
    if parameter == "b":
        engine = row.get("mcmc_engine_version") or ""
        width = 2 * 1.96 * next((sd for kind, sd in _POSITION_SD.items() if kind in engine), _POOLED_POSITION_SD)
    return bool(upper - lower < TOLD * width)
