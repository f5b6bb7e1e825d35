"""Values of options that need no validation by Typer, so that most commands start without pydantic.

Typer builds a pydantic adapter for every parameter of a command, also for one that was not given. Importing pydantic
takes longer than everything else that a command does before it works. A value that is exactly what its parameter takes,
and a path or a number in its plainest form, is used without it; everything else still goes to Typer, with its messages.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

_PLAIN = (str, int, float)
_FURTHER = ("parser", "click_type", "exists", "writable", "resolve_path", "allow_dash", "path_type", "clamp")
"""What a parameter may ask of its value besides its type."""
_NUMBERS = {int: re.compile(r"[0-9]{1,9}", re.ASCII), float: re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)}


def validate_late(parameter: Any) -> None:
    """Have Typer validate a parameter's value only where that is needed; nothing for a Typer without pydantic."""
    make = getattr(parameter, "get_runtime_param", None)
    if make is not None and hasattr(parameter, "type_descriptor"):
        parameter.get_runtime_param = lambda: _Late(make)


def read_plain(value: Any, annotation: Any) -> Any:
    """A path or a number of the plainest form as Typer would read it; anything else as it is.

    Args:
        value: None, or as it was typed, or a default.
        annotation: The type of the parameter, without None.
    """
    if not isinstance(value, str):
        return value
    if annotation in _NUMBERS and _NUMBERS[annotation].fullmatch(value):
        return annotation(value)
    return Path(value) if annotation is Path and value.isprintable() else value


def is_valid(value: Any, annotation: Any, info: Any) -> bool:
    """Whether a single value is exactly what a parameter takes, without a conversion.

    Args:
        value: None, or as it was typed, or a default.
        annotation: The type of the parameter, without None.
        info: Typer's description of the parameter.
    """
    if value is None:
        return True
    if isinstance(value, str) and not value.isprintable():  # also bytes of an argument that are not text
        return False
    if get_origin(annotation) is Literal:
        return any(type(one) is type(value) and one == value for one in get_args(annotation))
    if not isinstance(value, annotation) or any(getattr(info, name, None) not in (None, False) for name in _FURTHER):
        return False
    if annotation in _PLAIN:
        in_range = (info.min is None or value >= info.min) and (info.max is None or value <= info.max)
        return type(value) is annotation and in_range
    return isinstance(value, Enum) or (isinstance(value, Path) and _is_readable(value, info))


def _is_readable(path: Path, info: Any) -> bool:
    """Whether Typer would accept a path: of any kind, and readable if it exists."""
    return bool(info.file_okay and info.dir_okay and (os.access(path, os.R_OK) or not path.exists()))


class _Late:
    """Validates a value as Typer does, which is asked only if it must be."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        info, annotation = param.type_descriptor.parameter_info, param.type_descriptor.annotation
        several = param.multiple or param.nargs == -1
        if value is None and several:
            return ()
        if several and get_origin(annotation) is list and isinstance(value, list | tuple):
            (annotation,) = get_args(annotation)
            plain = [read_plain(one, annotation) for one in value]
            if None not in plain and all(is_valid(one, annotation, info) for one in plain):
                return plain
        elif param.nargs == 1 and not several:
            one = read_plain(value, annotation)
            if is_valid(one, annotation, info):
                return one
        return self._make().coerce(value, param=param, ctx=ctx)
