"""Mutants of the modules where a fault costs money or trust: how many of them do quick tests find?

``python -m tools.mutate --count 100`` changes one operator or number at a time, runs the quickest tests of the module
in a child, and prints what survives. Mutants are drawn by a fixed seed. A hundred take about ten minutes of one
processor.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

SRC = Path(__file__).parents[1] / "src" / "pairscale"
SECONDS = 4.0
"""What the tests of one mutant may take, by the clock of the run without a change."""
QUIET = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
_INFERENCE = {
    "cases": "inference failures graded", "control": "inference_control styles", "corrected": "inference_corrected",
    "gate": "gate gate_rates gate_judges unequal_tasks", "failures": "inference failures",
    "score": "inference graded unequal_tasks", "sequence": "inference_sequence graded",
    "win_rate": "inference graded unequal_tasks failures",
}  # fmt: skip
TESTS: dict[str, list[str]] = {
    "runtime/budget.py": ["tests/runtime/test_budget.py", "tests/runtime/test_events_of_unknown_costs.py"],
    "store/chain.py": ["tests/store/test_chain.py"],
    "adaptive/gates.py": [f"tests/adaptive/test_{name}.py" for name in ("stop_rule", "goals", "screening")],
} | {
    f"evaluate/inference/{module}.py": [f"tests/evaluate/test_{name}.py" for name in tests.split()]
    for module, tests in _INFERENCE.items()
}

_PAIRS = "Lt LtE Gt GtE Eq NotEq Is IsNot In NotIn Add Sub Mult Div BitAnd BitOr And Or".split()
OTHER: dict[Any, Any] = {}
for first, second in zip(_PAIRS[::2], _PAIRS[1::2], strict=True):
    OTHER |= {getattr(ast, first): getattr(ast, second), getattr(ast, second): getattr(ast, first)}


def places(tree: ast.AST) -> list[ast.AST]:
    """All nodes that can be changed; annotations, decorators and messages are left out."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        parts += getattr(node, "decorator_list", ())
        if isinstance(node, ast.JoinedStr | ast.Raise):
            parts.append(node)
        left_out |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    return [node for node in ast.walk(tree) if id(node) not in left_out and is_changeable(node)]


def is_changeable(node: Any) -> bool:
    """Whether it is a comparison, an operation, an ``and`` or ``or``, or a number."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    operators = getattr(node, "ops", None) or [getattr(node, "op", None)]
    return type(operators[0]) in OTHER


def mutated(source: str, number: int) -> tuple[str, str]:
    """The source with its so-many-th place changed, and the change in words."""
    tree = ast.parse(source)
    node: Any = places(tree)[number]
    before = ast.unparse(node)
    if isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Compare):
        node.ops[0] = OTHER[type(node.ops[0])]()
    else:
        node.op = OTHER[type(node.op)]()
    return ast.unparse(tree), f"line {node.lineno}: {before} -> {ast.unparse(node)}"


def swap(old: Any, new: Any) -> None:
    """Make functions and classes that others have imported behave like changed ones."""
    for name in ("fget", "__func__", "__wrapped__"):
        if hasattr(old, name) and hasattr(new, name):
            swap(getattr(old, name), getattr(new, name))
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    if isinstance(old, FunctionType):
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
    elif isinstance(old, type):
        for name, member in vars(new).items():
            if name in vars(old) and not isinstance(member, type):
                swap(vars(old)[name], member)


def put_in_place(path: str, source: str) -> None:
    """Change a module that is loaded, for all who have imported from it."""
    module = importlib.import_module(f"pairscale.{path.removesuffix('.py').replace('/', '.')}")
    changed = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(source, str(module.__file__), "exec"), changed)  # noqa: S102 - the source of our own module
    for name, new in changed.items():
        old = vars(module).get(name)
        if getattr(old, "__module__", None) == module.__name__:
            swap(old, new)
        elif isinstance(new, bool | int | float | tuple | frozenset) and new != old:
            for user in list(sys.modules.values()):
                if vars(user).get(name) is old:
                    setattr(user, name, new)


class Quickest:
    """A pytest plugin: runs the quickest tests first, and none after their time is used up.

    Args:
        seconds: by test, how long it took in the run without a change; empty in that run.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self._known = seconds
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self._known:
            left = SECONDS
            chosen = []
            for item in sorted(items, key=lambda item: self._known.get(item.nodeid, SECONDS)):
                left -= self._known.get(item.nodeid, SECONDS)
                if left > 0:
                    chosen.append(item)
            items[:] = chosen

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


def in_child(tests: list[str], seconds: dict[str, float], changed: tuple[str, str] | None, out: Path) -> int:
    """Run tests in a child; what it ended with.

    Args:
        tests: their files.
        seconds: how long each took without a change.
        changed: a module and its changed source; None to write down how long each test takes.
        out: the file for that.
    """
    child = os.fork()
    if child == 0:
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        signal.setitimer(signal.ITIMER_PROF, 900 if changed is None else 20 + 3 * SECONDS)
        signal.alarm(900 if changed is None else 120)  # for one that waits for ever
        with contextlib.suppress(BaseException):
            if changed is not None:
                put_in_place(*changed)
            plugin = Quickest(seconds)
            code = int(pytest.main([*QUIET, "-x", *tests], [plugin]))
            if changed is None:
                out.write_text(json.dumps(plugin.seconds))
            os._exit(code)
        os._exit(1)
    return os.waitpid(child, 0)[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    for option, default in (("--count", 100), ("--minutes", 20.0), ("--only", "")):  # modules whose name begins so
        parser.add_argument(option, type=type(default), default=default)
    given = parser.parse_args()
    modules = [module for module in TESTS if module.startswith(given.only)]
    sources = {module: (SRC / module).read_text("utf-8") for module in modules}
    every = [(module, n) for module in modules for n in range(len(places(ast.parse(sources[module]))))]
    drawn = random.Random(1).sample(every, min(given.count, len(every)))  # noqa: S311 - a sample, not a secret
    tests = sorted({test for module in modules for test in TESTS[module]})
    for module in ("pairscale.evaluate.result", "pairscale.adaptive.rank", "pairscale.testing", "hypothesis"):
        importlib.import_module(module)  # once, before the children; a table here would leave them waiting for threads
    print(f"{len(every)} places, {len(drawn)} drawn", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "seconds.json")
        if in_child(tests, {}, None, out) != 0:
            raise SystemExit("the tests do not pass without a change")
        seconds = json.loads(out.read_text())
    ends = time.monotonic() + 60 * given.minutes
    results: list[bool] = []
    for module, number in drawn:
        if time.monotonic() > ends:
            break
        source, change = mutated(sources[module], number)
        results.append(in_child(TESTS[module], seconds, (module, source), Path(os.devnull)) != 0)
        if not results[-1]:
            print(f"{module} {change} survived; killed {sum(results)} of {len(results)}", flush=True)
    cpu = sum(os.times()[2:4])
    print(
        f"killed {sum(results)} of {len(results)} ({sum(results) / max(len(results), 1):.1%}), {cpu / 60:.1f} minutes"
    )


if __name__ == "__main__":
    main()
