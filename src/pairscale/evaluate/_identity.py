"""What a callable is known by: everything of one's own that may change its answers, as far as it can be seen.

An answer in a run file belongs to the variant that gave it. So a variant whose prompt, settings or code has changed
must not inherit old answers, wherever the change is: in the function, in a default, in a variable around it, in a
global that it reads, or in another function of one's own that it calls. Installed packages are not looked into, and
neither are objects inside (a client, say): they are known by their type, and the variant then by its name, too.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pairscale.errors import InputError
from pairscale.provenance import fingerprint

__all__ = ["identity_of"]

_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def identity_of(function: Any, name: str) -> str:
    """A digest of a callable: of all that can be seen of it, and of its name when something cannot.

    Args:
        function: the callable.
        name: what the variant is called.

    Example:
        >>> def answer(prompt):
        ...     return lambda task: prompt
        >>> identity_of(answer("Be brief."), "A") == identity_of(answer("Be brief."), "B")
        True
        >>> identity_of(answer("Be brief."), "A") == identity_of(answer("Be kind."), "A")
        False
    """
    seen = _Seen()
    description = seen.described(function)
    return f"callable:{fingerprint([description, name if seen.opaque else None])}"


class _Seen:
    """Looks into values, each function once."""

    def __init__(self) -> None:
        self.opaque = False
        self._functions: set[int] = set()

    def described(self, value: Any) -> Any:
        """What can be seen of a callable."""
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return ["method", self._fields(value.__self__), self.described(value.__func__)]
        if isinstance(value, functools.partial):
            return [
                "partial",
                self.described(value.func),
                *(self._value(part) for part in (value.args, value.keywords)),
            ]
        if inspect.isbuiltin(value) or isinstance(value, type):
            return _name(value)
        return ["object", self._fields(value), self._value(type(value).__dict__.get("__call__"))]

    def _fields(self, value: Any) -> Any:
        """An object that is called, or whose method is: its type, and what it holds."""
        fields = getattr(value, "__dict__", None)
        if fields is None:
            return self._hidden(value)
        return [_name(type(value)), {key: self._value(inner) for key, inner in sorted(fields.items())}]

    def _value(self, value: Any) -> Any:
        """Something that a callable reads."""
        if value is None or isinstance(value, str | int | float | bool):
            return value
        if isinstance(value, Mapping):
            return {str(key): self._value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner) for inner in value]
        if isinstance(value, ModuleType | type) or inspect.isbuiltin(value):
            return _name(value)
        return self.described(value) if isinstance(value, FunctionType | functools.partial) else self._hidden(value)

    def _hidden(self, value: Any) -> str:
        """Something that is not looked into."""
        try:
            return f"{_name(type(value))}:{fingerprint(value)}"
        except (InputError, TypeError, ValueError, RecursionError):
            self.opaque = True
            return _name(type(value))

    def _function(self, function: FunctionType) -> Any:
        if id(function) in self._functions or function.__code__.co_filename.startswith(_INSTALLED):
            return _name(function)
        self._functions.add(id(function))
        cells = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                cells[name] = self._value(cell.cell_contents)
            except ValueError:  # nothing is in it yet
                cells[name] = None
        reads = {
            name: self._value(function.__globals__[name])
            for name in sorted(set(_names(function.__code__)))
            if name in function.__globals__ and not hasattr(builtins, name)
        }
        given = [self._value(function.__defaults__), self._value(function.__kwdefaults__)]
        return [_text(function), given, cells, reads]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', None) or value.__name__}"


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function reads, also those of functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _text(function: FunctionType) -> str:
    """The source of a function; of a lambda, whose line may hold several, and of one without source, its code."""
    if function.__name__ != "<lambda>":
        try:
            return textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            pass
    return _code(function.__code__)


def _code(code: CodeType) -> str:
    consts = [_code(inner) if isinstance(inner, CodeType) else repr(inner) for inner in code.co_consts]
    return f"{code.co_code.hex()}{consts}{code.co_names}"
