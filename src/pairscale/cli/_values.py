"""Values of options that need no validation by Typer, so that most commands start without pydantic.

Typer builds a pydantic adapter for every parameter of a command, also for one that was not given. Importing pydantic
takes longer than everything else that a command does before it works. A value that is exactly what its parameter takes
is used as it is; everything else still goes to Typer, with its messages.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, get_args, get_origin

_PLAIN = (str, int, float)
_FURTHER = ("parser", "click_type", "exists", "writable", "resolve_path", "allow_dash", "path_type")
"""What a parameter may ask of its value besides its type."""


def validate_late(parameter: Any) -> None:
    """Have Typer validate a parameter's value only where that is needed; nothing for a Typer without pydantic."""
    make = getattr(parameter, "get_runtime_param", None)
    if make is not None and hasattr(parameter, "type_descriptor"):
        parameter.get_runtime_param = lambda: _Late(make)


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
    if type(value) is not annotation or any(getattr(info, name, None) not in (None, False) for name in _FURTHER):
        return False
    if annotation not in _PLAIN:
        return isinstance(value, Enum)  # a default; what is typed is a text
    return (info.min is None or value >= info.min) and (info.max is None or value <= info.max)


class _Late:
    """Validates a value as Typer does, which is asked only if it must be."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        described = param.type_descriptor
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        if not param.multiple and param.nargs == 1 and is_valid(value, described.annotation, described.parameter_info):
            return value
        return self._make().coerce(value, param=param, ctx=ctx)
