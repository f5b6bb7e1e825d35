"""One vocabulary: the options of a command are the parameters of the function, with the same names and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import pairscale as ps
from pairscale.cli import BATCH, COMMANDS, load
from pairscale.cli.from_verb import NOT_IN_SHELL

SHELL_ONLY = {"demo", "doctor", "init", "watch", "simulate-providers", "prices", "providers", "templates", "traits"}
"""Commands about this machine, or that serve or show something: Python needs no function for them."""

NAMES = [*(name for name in COMMANDS if name != "batch"), *(f"batch {part}" for part in BATCH)]
WITH_VERB = [name for name in NAMES if name not in SHELL_ONLY]


def function_of(verb: str) -> Callable[..., Any]:
    module, _, name = verb.rpartition(".")
    return inspect.unwrap(getattr(import_module(f"pairscale.{module}") if module else ps, name))


@pytest.mark.parametrize("name", WITH_VERB)
def test_the_source_says_what_the_signature_says(name):
    """Options are read from the source, without an import; what Python sees must be the same."""
    command = load(name)
    known: dict[str, inspect.Parameter] = {}
    for verb in reversed(command.verb.split()):
        known |= inspect.signature(function_of(verb)).parameters
    own = set(command.own.parameters) | {"as_json", "out"}
    options = {option.name: option for option in command.options if option.name not in own}
    hidden = {name for name, one in known.items() if name == "progress" and isinstance(one.default, bool)}
    hidden |= set(NOT_IN_SHELL)
    hidden |= {name for name, one in known.items() if one.kind is inspect.Parameter.VAR_POSITIONAL}
    assert set(options) == set(known) - hidden - own - set(command.hidden.split())
    for option in options.values():
        default = known[option.name].default
        assert option.is_required == (default is inspect.Parameter.empty)
        assert option.is_required or option.default == default


@pytest.mark.parametrize("name", WITH_VERB)
def test_a_command_is_called_as_its_verb(name):
    first, _, part = name.partition(" ")
    if first in {"pairs", "bias-study"}:  # for several functions: making, sampling and reversing pairs; template_study
        return
    verb = {"import": "import_run"}.get(first, first.replace("-", "_"))
    found = getattr(getattr(ps, verb), part) if part else getattr(ps, verb)
    assert inspect.unwrap(found) is function_of(load(name).verb)


@pytest.mark.parametrize(
    ("name", "option", "kind", "several"),
    [
        ("rank", "concurrency", "int", False),
        ("rank", "max_cost", "float", False),
        ("rank", "judge", "text", False),
        ("rank", "without", "text", True),
        ("rank", "strict", "flag", False),
        ("rank", "judge_args", "mapping", True),
        ("rank", "run", "path", False),
        ("simulate", "sd", "float", True),
        ("agreement", "categories", "text", True),
        ("gate", "fail_if", "text", True),
        ("label", "labellers", "text", False),
    ],
)
def test_the_kind_of_an_option_is_that_of_its_annotation(name, option, kind, several):
    found = next(one for one in load(name).options if one.name == option)
    assert (found.kind, found.is_several) == (kind, several)
