"""The manual's functions for language models, made from the table of its usage lines in ``manual.toml``.

Each has the names, the order and the defaults of the manual, takes arguments by position and further settings by name,
and calls one adapter of this package, which takes them all by name. ``tools/r_stub.py`` writes their types to
``__init__.pyi``.
"""

from __future__ import annotations

import tomllib
from ast import literal_eval
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from pairscale.core.errors import InputError
from pairscale.providers.base import JsonObject

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def signature_of(usage: str, returns: str) -> Signature:
    """The signature of a usage line."""
    for name, words in _TABLE["shared"].items():
        usage = usage.replace(name, words)
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for word in usage.split():
        name, has_default, value = word.partition("=")
        if word == "*":
            kind = Parameter.KEYWORD_ONLY
        elif word == "**":
            parameters.append(Parameter("settings", Parameter.VAR_KEYWORD, annotation="Any"))
        else:
            annotation = _TABLE["arguments"][name].partition(": ")[0]
            default: Any = Parameter.empty
            if has_default:
                default = float(value) if value == "inf" else literal_eval(value)
            if default is None:
                annotation += " | None"
            parameters.append(Parameter(name, kind, default=default, annotation=annotation))
    return Signature(parameters, return_annotation=returns)


def _docstring(name: str, backend: str, family: JsonObject, signature: Signature) -> str:
    """The docstring: what the function does, its arguments, what it gives, and an example that runs."""
    meanings = {**_TABLE["arguments"], "settings": f"Any: {family.get('settings')}"}
    lines = [f"{argument}: {meanings[argument].partition(': ')[2]}" for argument in signature.parameters]
    wrapped = "\n".join(fill(line, 112, subsequent_indent="    ") for line in lines)
    head, _, rest = family["doc"].strip().partition("\n\n")
    words = {"NAME": name, "BACKEND": backend} | _TABLE["words"][backend]
    for word, meaning in words.items():
        rest = rest.replace(word, meaning)
    return f"{head}\n\nArgs:\n{indent(wrapped, '    ')}\n\n{rest}\n"


def _made(name: str, backend: str, family: JsonObject, usage: str) -> Callable[..., Any]:
    """A function of the table."""
    signature = signature_of(usage, family["returns"])
    module, _, adapter = family["adapter"].partition(".")

    def function(*args: Any, **settings: Any) -> Any:
        try:
            bound = signature.bind(*args, **settings)
        except TypeError as error:
            raise InputError(f"{name}: {error}") from None
        bound.apply_defaults()
        arguments = {_TABLE["renamed"].get(argument, argument): value for argument, value in bound.arguments.items()}
        further = arguments.pop("settings", {})
        arguments.setdefault("backend", backend)
        return getattr(import_module(f"pairscale.r.{module}"), adapter)(**arguments, **further)

    function.__name__ = name
    function.__qualname__ = name
    function.__doc__ = _docstring(name, backend, family, signature)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


for _family in _TABLE["families"].values():
    for _backend, _usage in _family["usage"].items():
        _name = _family["name"].format(backend=_backend)
        globals()[_name] = _made(_name, _backend, _family, _usage)
