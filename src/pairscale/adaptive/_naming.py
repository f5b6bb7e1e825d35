"""What the log calls a function or an object of the user's, so that a run can be taken up with the same one."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

__all__ = ["name_of"]


def name_of(given: Any) -> str:
    """Module and name of a function, or of an object's class; a partial's with what it binds.

    Example:
        >>> name_of(partial(sorted, reverse=True))
        'builtins.sorted(reverse=True)'
    """
    if isinstance(given, partial):
        bound = [repr(value) for value in given.args]
        bound += [f"{name}={value!r}" for name, value in sorted(given.keywords.items())]
        where_it_is = re.compile(r" at 0x[0-9a-fA-F]+")  # in memory: another one in every process
        return where_it_is.sub("", f"{name_of(given.func)}({', '.join(bound)})")
    named = given if hasattr(given, "__qualname__") else type(given)
    return f"{named.__module__}.{named.__qualname__}"
