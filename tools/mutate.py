"""Mutants of the modules where a fault costs money or trust: how many of them do quick tests find?

``python -m tools.mutate`` changes one operator or number at a time and runs quick tests that reach its line, in a child
that imports the changed module; no file is written. It prints what survives, and lines that no quick test reaches.
Mutants are drawn by a fixed seed. Four hundred take about ten minutes of one processor.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "pairscale"
SECONDS = 10.0
"""Processor time that the tests of one mutant may take, as they took it in the run without a change."""
LIMIT = 60
"""Seconds of processor time after which a mutant that does not end counts as found."""
WITHOUT = ("cacheprovider", "xdist", "schemathesis", "anyio", "pytest_cov")
QUIET = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning", *(f"-pno:{plugin}" for plugin in WITHOUT)]
LIBRARIES = (
    "scipy.stats polars sqlalchemy.dialects.sqlite aiohttp.web hypothesis.strategies syrupy jinja2 msgspec".split()
)
"""Imported once, before the children. Libraries that start threads, and tables here, would leave them waiting."""
TESTS = {
    "runtime/budget.py": [
        f"tests/runtime/test_{name}.py"
        for name in ("budget", "runtime", "events_of_budgets", "events_of_unknown_costs")
    ],
    "store/chain.py": [
        *(f"tests/store/test_{name}.py" for name in ("chain", "journal", "runfile", "versions")),
        "tests/test_auditing.py",
    ],
    "adaptive/gates.py": [f"tests/adaptive/test_{name}.py" for name in ("gates", "goals", "screening", "stop_rule")],
    "evaluate/inference": [
        f"tests/evaluate/test_{name}.py"
        for name in (
            "inference", "inference_control", "inference_corrected", "inference_sequence", "graded", "gate",
            "gate_rates", "gate_judges", "failures", "unequal_tasks", "styles",
        )
    ],
}  # fmt: skip
"""The tests of each module or folder: quick ones that were written for it, or that lead through it."""

_PAIRS = "Lt LtE Gt GtE Eq NotEq Is IsNot In NotIn Add Sub Mult Div BitAnd BitOr And Or".split()
OTHER: dict[type, type] = {}
for first, second in zip(_PAIRS[::2], _PAIRS[1::2], strict=True):
    OTHER[getattr(ast, first)] = getattr(ast, second)
    OTHER[getattr(ast, second)] = getattr(ast, first)
OPPOSITE: dict[type, type] = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
"""Of an order of numbers that are seldom equal; to allow that they are would change nothing."""


def modules_of(place: str) -> list[str]:
    """The modules in a folder, or the one."""
    found = sorted((SRC / place).glob("*.py")) if not place.endswith(".py") else [SRC / place]
    return [str(path.relative_to(SRC)) for path in found]


def places(tree: ast.AST) -> list[ast.AST]:
    """All nodes that can be changed; annotations, decorators, messages and ``strict=`` are left out."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        parts += getattr(node, "decorator_list", ())
        if isinstance(node, ast.JoinedStr | ast.Raise) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            parts.append(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            parts.append(node.args[1])
        left_out |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    return [node for node in ast.walk(tree) if id(node) not in left_out and is_changeable(node)]


def is_changeable(node: Any) -> bool:
    """Whether it is a comparison, an operation, an ``and``, ``or`` or ``not``, or a number."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    operators = getattr(node, "ops", None) or [getattr(node, "op", None)]
    return isinstance(operators[0], ast.Not) or type(operators[0]) in OTHER


def mutated(source: str, number: int) -> tuple[str, str]:
    """The source with its so-many-th place changed, and the change in words."""
    tree = ast.parse(source)
    node: Any = places(tree)[number]
    before = ast.unparse(node)
    line = node.lineno
    if isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        with_fraction = any(isinstance(side, ast.Constant) and isinstance(side.value, float) for side in sides)
        others = OTHER | OPPOSITE if with_fraction else OTHER
        node.ops[0] = others[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
        node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
    else:
        node.op = OTHER[type(node.op)]()
    return ast.unparse(ast.fix_missing_locations(tree)), f"{line}: {before} -> {ast.unparse(node)}"


class Changed:
    """Imports one module with another source."""

    def __init__(self, path: str, source: str) -> None:
        self.path = SRC / path
        self.name = f"pairscale.{path.removesuffix('.py').replace('/', '.')}"
        self.source = source

    def find_spec(self, name: str, *_: Any) -> Any:
        """The module, if it is this one."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def create_module(self, spec: Any) -> None:
        """The usual one."""

    def exec_module(self, module: Any) -> None:
        """Run the changed source."""
        exec(compile(self.source, str(self.path), "exec"), vars(module))  # noqa: S102 - the source of our own module


class Reached:
    """A pytest plugin: notes how much processor time each test takes, and which lines it reaches.

    Args:
        modules: whose lines.
    """

    def __init__(self, modules: list[str]) -> None:
        self.files = {module: str(SRC / module) for module in modules}
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=[*self.files.values()])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.process_time()
        self.coverage.switch_context("")

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """By module and line, the tests that reach it; that of an import is none."""
        data = self.coverage.get_data()
        return {module: data.contexts_by_lineno(file) for module, file in self.files.items()}


def measure(tests: list[str], modules: list[str], out: Path) -> None:
    """Run the tests without a change, in a child, and write down what they reach and how long they take."""
    child = os.fork()
    if child == 0:
        silence()
        code = 1
        with contextlib.suppress(BaseException):
            plugin = Reached(modules)
            plugin.coverage.start()
            code = int(pytest.main([*QUIET, *tests], [plugin]))
            plugin.coverage.stop()
            out.write_text(json.dumps([plugin.seconds, plugin.lines()]))
        os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("the tests do not pass without a change")


def silence() -> None:
    """Say nothing more in this process."""
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def outcome_of(tests: list[str], changed: Changed) -> str:
    """What the tests say to a mutant: ``killed``, ``timeout`` or ``survived``."""
    child = os.fork()
    if child == 0:
        silence()
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        signal.alarm(3 * LIMIT)  # for one that waits for ever
        with contextlib.suppress(BaseException):
            sys.meta_path.insert(0, changed)
            os._exit(int(pytest.main([*QUIET, "-x", *tests])))
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "timeout"
    if os.WEXITSTATUS(status) == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise SystemExit(f"no test was run: {tests}")
    return "killed" if status else "survived"


def cached_lines(tree: ast.AST) -> set[int]:
    """The lines of functions with a cache: the tests that reach them are not all that use what they gave."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("cache" in ast.unparse(one) for one in node.decorator_list):
            found |= set(range(node.lineno, node.end_lineno + 1))  # type: ignore[operator]
    return found


def tests_for(line: range, lines: dict[int, list[str]], cached: set[int], seconds: dict[str, float]) -> list[str]:
    """The quickest of the tests that reach these lines, as many as the time allows, and one at least.

    What runs at import, or once for all, is reached by all tests of the module.
    """
    reaching = {test for number in line for test in lines.get(number, ())}
    if reaching == {""} or (reaching and cached.issuperset(line)):
        reaching = {test for tests in lines.values() for test in tests}
    chosen: list[str] = []
    left = SECONDS
    for test in sorted(reaching - {""}, key=lambda test: seconds[test]):
        left -= seconds[test]
        if left < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser()
    for option, default in (("--count", 400), ("--start", 0), ("--minutes", 60.0), ("--only", ""), ("--seed", 1)):
        parser.add_argument(option, type=type(default), default=default)  # --only: modules whose name begins so
    parser.add_argument("--out", type=Path, help="a file for the results, a line of JSON each")
    parser.add_argument("--again", type=Path, help="such a file: try only what survived there")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for library in LIBRARIES:
        importlib.import_module(library)
    reached, seconds = measure_all(given.only)
    sources = {module: (SRC / module).read_text("utf-8") for module in reached}
    drawn = []
    unreached = []
    for module, source in sources.items():
        tree = ast.parse(source)
        cached = cached_lines(tree)
        for number, node in enumerate(places(tree)):
            lines = range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
            chosen = tests_for(lines, reached[module], cached, seconds)
            if chosen:
                drawn.append((module, number, chosen))
            else:
                unreached.append(f"{module} {mutated(source, number)[1]}")
    print(
        f"{len(drawn) + len(unreached)} places; no test reaches {len(unreached)}:", *unreached, sep="\n  ", flush=True
    )
    ends = time.monotonic() + 60 * given.minutes
    results: Counter[tuple[str, str]] = Counter()
    random.Random(given.seed).shuffle(drawn)  # noqa: S311 - a sample, not a secret
    drawn = drawn[given.start : given.count]
    if given.again:
        survived = [json.loads(line)[:2] for line in given.again.read_text().splitlines() if '"survived"' in line]
        drawn = [one for one in drawn if [one[0], mutated(sources[one[0]], one[1])[1]] in survived]
    for module, number, chosen in drawn:
        if time.monotonic() > ends:
            break
        source, change = mutated(sources[module], number)
        outcome = outcome_of(chosen, Changed(module, source))
        results[module, outcome] += 1
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps([module, change, outcome, len(chosen)]) + "\n")
        if outcome != "killed":
            print(f"{module} {change} {outcome} ({len(chosen)} tests)", flush=True)
    say(results)


def measure_all(only: str) -> tuple[dict[str, dict[int, list[str]]], dict[str, float]]:
    """By module and line, the tests that reach it, and how many seconds each test takes."""
    reached: dict[str, dict[int, list[str]]] = {}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, tests in TESTS.items():
            modules = [module for module in modules_of(place) if module.startswith(only)]
            if modules:
                out = Path(folder, "reached.json")
                measure(tests, modules, out)
                durations, by_module = json.loads(out.read_text())
                seconds |= durations
                for module, lines in by_module.items():
                    reached[module] = {int(line): names for line, names in lines.items()}
    return reached, seconds


def say(results: Counter[tuple[str, str]]) -> None:
    """Print how many were found, by module."""
    for module in [*sorted({module for module, _ in results}), ""]:
        counts: Counter[str] = Counter()
        for (name, outcome), count in results.items():
            if module in {name, ""}:
                counts[outcome] += count
        found = counts["killed"] + counts["timeout"]
        print(f"{module or 'all'}: {found} of {counts.total()} ({counts['timeout']} by time)")
    print(f"{sum(os.times()[:4]) / 60:.0f} minutes of processor time")


if __name__ == "__main__":
    main()
