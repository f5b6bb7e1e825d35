"""One vocabulary: the options of a command are the parameters of the function, with the same names and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import pytest
import typer

import pairscale as ps
from pairscale.cli import COMMANDS, app

_GROUP = typer.main.get_command(app)

SHELL_ONLY = {"demo", "doctor", "init", "watch", "simulate-providers"}
"""Commands about this machine, or that serve or show something: Python needs no function for them."""

OTHER_NAMES = {
    "pairs": "make_pairs sample_pairs randomize_pair_order alternate_pair_order sample_reverse_pairs",
    "bias-study": "template_study",
    "traits": "list_traits",
    "templates": "list_prompt_templates get_prompt_template register_prompt_template",
    "providers": "register_provider",
    "prices": "",
}
"""Commands that stand for several functions, or for tables: each function keeps its own name."""

OUTPUT = {"as_json", "out", "columns", "chart", "chart_kind", "dry_run"}
"""Options of the shell alone: what to show, and where to write the table. A function returns its result."""

SPELLED = {"judge_arg": ("judge_args",), "set_": ("adaptive_config", "btl_config"), "results": ("data",)}
SPELLED_BY = {("export", "out"): ("path",)}
"""What the shell spells NAME=VALUE, one at a time, and Python as one mapping; and the file of results."""

PEOPLE = {"labellers", "instructions", "host", "port", "url"}

IN_SHELL: dict[str, set[str]] = {
    "rank": PEOPLE,  # the page for --judge human; in Python, HumanJudge and pairscale.people.serve_questions
    "check-judge": {"reliability"},  # of the plan that the command adds; in Python, ps.plan
    "fit": {"fit_statistics"},  # in Python, ps.fit_statistics(fit)
    "simulate": {"target"},  # of the table that the command shows; in Python, study.reach(target)
    "status": {"follow"},  # shows lines until the run ends
}
"""Options that a command has and its function has not, with the reason."""

IN_PYTHON: dict[str, set[str]] = {
    "simulate": {"judges", "stop_early", "checkpoints", "baseline", "adaptive_config", "btl_config"},  # for studies
    "fit": {"ids", "rank_intervals"},  # a run file knows all items; --chart-kind ranks needs the intervals of ranks
    "batch resume": {"on_look", "on_again"},  # functions that are called
}
"""Parameters that a function has and its command has not, with the reason."""

PROGRESS = {"progress"}
"""The shell always shows progress, on standard error; only `rank` lets you choose what."""

WORDS = {
    ("report", "out"): "the page itself, not a table of it",
    ("export", "out"): "the table that is exported, which Python calls path, as import_run does",
    ("fit", "covariance"): "a file in the shell, a flag in Python",
}
"""Options that only look like those of OUTPUT, or differ in kind."""


def commands() -> dict[str, Any]:
    """Every command that has a function, those of the group `batch` among them."""
    found = {name: _GROUP.commands[name] for name in COMMANDS if name not in SHELL_ONLY and name not in OTHER_NAMES}
    group = found.pop("batch")
    return found | {f"batch {name}": command for name, command in group.commands.items()}


def function_of(name: str) -> Callable[..., Any]:
    found: Any = ps
    for part in name.split():
        found = getattr(found, {"import": "import_run"}.get(part, part.replace("-", "_")))
    assert inspect.isfunction(found), name
    return found


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function_of(name)).parameters)


def options(name: str) -> dict[str, Any]:
    """The parameters of a command by the names that Python gives them."""
    shell_only = (OUTPUT | IN_SHELL.get(name, set())) - {option for command, option in WORDS if command == name}
    return {one.name: one for one in commands()[name].params if one.name not in shell_only | {"help"}}


def named(option: str, command: str = "") -> tuple[str, ...]:
    return SPELLED_BY.get((command, option)) or SPELLED.get(option, (option,))


def plain(value: Any) -> Any:
    """A default as both sides can have it: no choice and nothing given are None; one of several is that one."""
    if callable(value) and not isinstance(value, type):
        value = value()
    if isinstance(value, Enum):
        return value.value
    if value is inspect.Parameter.empty or repr(value) == "Sentinel.UNSET":
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return None if not value else tuple(value)
    return value


NAMES = sorted(commands())


def test_every_command_is_accounted_for() -> None:
    assert set(COMMANDS) >= SHELL_ONLY | set(OTHER_NAMES)
    assert {name for names in OTHER_NAMES.values() for name in names.split()} <= set(ps.__all__)
    assert set(NAMES) >= set(IN_SHELL) | set(IN_PYTHON) | {command for command, _ in WORDS}
    assert len(NAMES) >= 19


@pytest.mark.parametrize("name", NAMES)
def test_the_names_are_the_same(name: str) -> None:
    shell = {python for option in options(name) for python in named(option, name)}
    python = set(parameters(name)) - IN_PYTHON.get(name, set()) - (PROGRESS - shell)
    assert shell == python


@pytest.mark.parametrize("name", NAMES)
def test_the_exceptions_exist(name: str) -> None:
    assert IN_SHELL.get(name, set()) <= {one.name for one in commands()[name].params}
    assert IN_PYTHON.get(name, set()) <= set(parameters(name))


# Where the shell cannot say "several by default", None stands for what Python has.
SEVERAL = {("simulate", "items"), ("simulate", "selector"), ("simulate", "sd"), ("simulate", "concurrency")}


@pytest.mark.parametrize("name", NAMES)
def test_the_defaults_are_the_same(name: str) -> None:
    known = parameters(name)
    apart = {}
    for option, one in options(name).items():
        for python in named(option, name):
            if (name, option) in WORDS or (name, option) in SEVERAL:
                continue
            shell, there = plain(one.default), plain(known[python].default)
            if shell != there or type(shell) is not type(there):
                apart[option] = (shell, there)
            # What is required here is required there; what can be repeated has no default in the shell.
            elif one.required != (known[python].default is inspect.Parameter.empty) and not one.multiple:
                apart[option] = (one.required, known[python].default)
    assert apart == {}


@pytest.mark.parametrize("name", NAMES)
def test_options_are_keywords(name: str) -> None:
    """What stands without a name in the shell may do so in Python; an option may not, save the model and the judge."""
    arguments = {
        python
        for one in commands()[name].params
        if one.param_type_name == "argument"
        for python in named(one.name, name)
    }
    arguments |= {"items"}  # how many there are: the one thing that `plan` and `simulate` are about
    positional = {one.name for one in parameters(name).values() if one.kind is not inspect.Parameter.KEYWORD_ONLY}
    allowed = {"fit": {"model"}, "judge": {"judge"}, "check-judge": {"judge"}, "import": {"samples"}}
    allowed |= {"export": {"path"}}  # from, to
    assert positional - arguments <= allowed.get(name, set())
