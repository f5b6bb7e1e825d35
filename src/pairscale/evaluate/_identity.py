"""What a callable is known by: everything of one's own that may change its answers, as far as it can be seen.

An answer in a run file belongs to the variant that gave it. So a variant whose prompt, settings or code has changed
must not inherit old answers, wherever the change is: in the function, in a default, in a variable around it, in a
global that it reads, of its own module or of another of one's own, in another function of one's own that it calls, or
in a class of one's own: its methods, what it has as attributes, and its bases. Installed packages are not looked into,
and neither are objects inside (a client, say): they are known by their type, and the variant then by its name, too.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import sysconfig
import textwrap
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.provenance import fingerprint

__all__ = ["identity_of"]

_INSTALLED = (
    str(Path(__file__).parents[1]),
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
)


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
    description = [seen.described(function), *seen.parts()]
    return f"callable:{fingerprint([description, name if seen.opaque else None])}"


class _Seen:
    """Looks into values, each function and class once: one behind the other, however deep they call each other."""

    def __init__(self) -> None:
        self.opaque = False
        self._numbers: dict[int, int] = {}
        self._waiting: deque[Callable[[], Any]] = deque()
        self._inside: set[int] = set()

    def parts(self) -> Iterator[Any]:
        """What can be seen of the functions and classes of one's own that were met, in the order of their numbers."""
        while self._waiting:
            yield self._waiting.popleft()()

    def _numbered(self, value: Any, look: Callable[[], Any]) -> list[Any]:
        """A function or class by its number; it is looked into later."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._numbers)
            self._waiting.append(look)
        return ["part", self._numbers[id(value)]]

    def described(self, value: Any) -> Any:
        """What can be seen of a callable."""
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return ["method", self._held(value.__self__), self.described(value.__func__)]
        if isinstance(value, functools.partial):
            return [
                "partial",
                self.described(value.func),
                *(self._value(part) for part in (value.args, value.keywords)),
            ]
        if isinstance(value, type):
            return self._class(value)
        return _name(value) if inspect.isbuiltin(value) else ["object", self._held(value)]

    def _held(self, value: Any) -> Any:
        """An object that is called, or whose method is: its class, and what it holds."""
        if isinstance(value, type):
            return self._class(value)
        fields = getattr(value, "__dict__", None)
        if fields is None:
            return self._hidden(value)
        return [self._class(type(value)), {key: self._value(inner) for key, inner in sorted(fields.items())}]

    def _value(self, value: Any) -> Any:
        """Something that a callable reads."""
        if value is None or isinstance(value, str | int | float | bool):
            return value
        if isinstance(value, Mapping | list | tuple):
            return self._container(value)
        if isinstance(value, ModuleType) or inspect.isbuiltin(value):
            return _name(value)
        if isinstance(value, type | FunctionType | functools.partial):
            return self.described(value)
        wrapped = inspect.getattr_static(value, "__wrapped__", None)
        if isinstance(wrapped, FunctionType):  # a function that remembers what it has answered, say
            return [self._class(type(value)), self._function(wrapped)]
        return self._hidden(value)

    def _container(self, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> Any:
        if id(value) in self._inside:  # it holds itself
            return "..."
        self._inside.add(id(value))
        try:
            if isinstance(value, Mapping):
                return {str(key): self._value(inner) for key, inner in value.items()}
            return [self._value(inner) for inner in value]
        finally:
            self._inside.remove(id(value))

    def _hidden(self, value: Any) -> Any:
        """Something that is not looked into; a class of one's own says what can be done with it."""
        kind = self._class(type(value))
        try:
            shown = fingerprint(value)
        except (InputError, TypeError, ValueError, RecursionError):
            self.opaque = True
            return kind
        return f"{kind}:{shown}" if isinstance(kind, str) else [kind, shown]

    def _class(self, kind: type) -> Any:
        """A class: of one's own, what its methods do, what it has as attributes, and its bases."""
        if not _is_own(sys.modules.get(kind.__module__)):
            return _name(kind)
        return self._numbered(kind, functools.partial(self._members, kind))

    def _members(self, kind: type) -> Any:
        own: dict[str, Any] = {}
        for name, member in sorted(vars(kind).items()):
            functions = _functions(member)
            if functions:
                own[name] = [self._function(one) for one in functions]
            elif not name.startswith(("__", "_abc_")):
                own[name] = self._value(member)
        return [_name(kind), own, [self._class(base) for base in kind.__bases__]]

    def _function(self, function: FunctionType) -> Any:
        if function.__code__.co_filename.startswith(_INSTALLED):
            return _name(function)
        return self._numbered(function, functools.partial(self._code, function))

    def _code(self, function: FunctionType) -> Any:
        cells = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                cells[name] = self._value(cell.cell_contents)
            except ValueError:  # nothing is in it yet
                cells[name] = None
        given = [self._value(function.__defaults__), self._value(function.__kwdefaults__)]
        return [_text(function), given, cells, self._read(function.__globals__, set(_names(function.__code__)), set())]

    def _read(self, there: Mapping[str, Any], names: set[str], modules: set[int]) -> dict[str, Any]:
        """Those of the names of a module that a function may read; also in modules of one's own that it finds there."""
        found: dict[str, Any] = {}
        for name in sorted(names & there.keys()):
            value = there[name]
            if not isinstance(value, ModuleType):
                if not (name.startswith("__") and hasattr(builtins, name)):
                    found[name] = self._value(value)
            elif not _is_own(value) or id(value) in modules:
                found[name] = _name(value)
            else:
                modules.add(id(value))
                found[name] = [_name(value), self._read(vars(value), names, modules)]
        return found


def _is_own(module: ModuleType | None) -> bool:
    """Whether a module is somebody's own, and no installed one."""
    file = getattr(module, "__file__", None)
    return getattr(module, "__name__", "") == "__main__" if file is None else not file.startswith(_INSTALLED)


def _functions(member: Any) -> list[FunctionType]:
    """The functions that a member of a class is made of."""
    inner = [getattr(member, name, None) for name in ("__func__", "fget", "fset", "func", "__wrapped__")]
    return [one for one in (member, *inner) if isinstance(one, FunctionType)]


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
            return textwrap.dedent(inspect.getsource(function.__code__))  # a wrapper's own
        except (OSError, TypeError):
            pass
    return _code(function.__code__)


def _code(code: CodeType) -> str:
    consts = [_code(inner) if isinstance(inner, CodeType) else _constant(inner) for inner in code.co_consts]
    return f"{code.co_code.hex()}{consts}{code.co_names}"


def _constant(value: object) -> str:
    """A constant in words; a set has no order of its own."""
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
