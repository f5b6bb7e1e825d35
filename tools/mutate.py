"""Mutants of the modules where a fault costs money or trust: how many of them do the fast tests find?

``python -m tools.mutate --count 400 --minutes 40`` changes one operator or constant at a time in a copy of the tree,
runs the tests that cover the module, and prints the share of mutants that a test has killed, and those that survived.
The mutants are drawn with a fixed seed, in random order: a run that ends early is a sample, too.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl  # noqa: F401 - what the children share
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401
import sqlalchemy  # noqa: F401

ROOT = Path(__file__).parents[1]
SRC = "src/pairscale"
E = "tests/evaluate"
TESTS: dict[str, list[str]] = {
    "runtime/budget.py": ["tests/runtime/test_budget.py"],
    "store/chain.py": ["tests/store/test_chain.py"],
    "adaptive/gates.py": ["tests/adaptive/test_stop_rule.py"],
    "evaluate/inference/cases.py": [f"{E}/test_inference.py", f"{E}/test_failures.py"],
    "evaluate/inference/control.py": [f"{E}/test_inference_control.py"],
    "evaluate/inference/corrected.py": [f"{E}/test_inference_corrected.py"],
    "evaluate/inference/failures.py": [f"{E}/test_inference.py", f"{E}/test_failures.py"],
    "evaluate/inference/gate.py": [f"{E}/test_gate.py"],
    "evaluate/inference/score.py": [f"{E}/test_inference.py"],
    "evaluate/inference/sequence.py": [f"{E}/test_inference_sequence.py"],
    "evaluate/inference/win_rate.py": [f"{E}/test_inference.py"],
}
"""The modules, and the fast tests that cover each."""

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What can be changed: every node, and how."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation is not None:
            skipped |= {id(inner) for inner in ast.walk(node.annotation)}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            skipped |= {id(inner) for inner in ast.walk(node.returns)}
        if isinstance(node, ast.JoinedStr | ast.Raise):  # words
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
            yield node, "comparison"
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            yield node, "arithmetic"
        elif isinstance(node, ast.BoolOp):
            yield node, "boolean"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "negation"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield node, "constant"


def mutated(source: str, number: int) -> tuple[str, str]:
    """The source with its so-many-th place changed, and the change in words."""
    tree = ast.parse(source)
    node, kind = list(places(tree))[number]
    before = ast.unparse(node)
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    elif isinstance(node, ast.UnaryOp):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1  # type: ignore[operator]
    return ast.unparse(tree), f"line {node.lineno}, {kind}: {before}"  # type: ignore[attr-defined]


def run_tests(tree: Path, module: str, limit: float) -> bool:
    """Whether all tests of a module pass, in time; in a child that need not load numpy and its like again."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.setsid()
        os.chdir(tree)
        sys.path[:0] = [str(tree), str(tree / "src")]
        os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *TESTS[module]])))
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="modules whose name begins so")
    given = parser.parse_args()
    modules = [module for module in TESTS if module.startswith(given.only)]
    sources = {module: (ROOT / SRC / module).read_text("utf-8") for module in modules}
    every = [(module, n) for module in modules for n in range(len(list(places(ast.parse(sources[module])))))]
    drawn = random.Random(given.seed).sample(every, min(given.count, len(every)))  # noqa: S311 - a sample, not a secret
    print(f"{len(every)} places, {len(drawn)} drawn", flush=True)
    ends = time.monotonic() + 60 * given.minutes
    killed, survivors, limits = 0, [], {}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", ".mypy_cache", ".ruff_cache")
        )
        for module, number in drawn:
            if time.monotonic() > ends:
                break
            file = tree / SRC / module
            if module not in limits:
                began = time.monotonic()
                if not run_tests(tree, module, 1800):
                    raise SystemExit(f"the tests of {module} do not pass without a change")
                limits[module] = 60 + 5 * (time.monotonic() - began)
            text, change = mutated(sources[module], number)
            file.write_text(text, "utf-8")
            is_killed = not run_tests(tree, module, limits[module])
            file.write_text(sources[module], "utf-8")
            killed += is_killed
            if not is_killed:
                survivors.append(f"{module} {change}")
                print(f"survived: {survivors[-1]}", flush=True)
            n = killed + len(survivors)
            if n % 20 == 0:
                print(f"{killed} of {n} killed", flush=True)
    n = killed + len(survivors)
    print(f"killed {killed} of {n} ({killed / max(n, 1):.1%}); survivors: {len(survivors)}")


if __name__ == "__main__":
    main()
