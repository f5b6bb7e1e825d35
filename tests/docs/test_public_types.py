"""The public surface as editors and type checkers see it: complete, and the same as at run time."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import doc_pages as pages
import pytest

import pairscale as ps

PACKAGE = Path(ps.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8")).body


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def wrong_with(node: ast.stmt) -> str | None:
    """What is wrong with a line of the stub, which must give one name of the package that promises it."""
    if not isinstance(node, ast.ImportFrom) or (node.level, len(node.names)) != (1, 1):
        return "it does not import one name from this package"
    name = node.names[0].name
    if node.names[0].asname != name:
        return "without `as`, a type checker takes the name as private"
    home = importlib.import_module(f"pairscale.{node.module}" if node.module else "pairscale")
    there, public = getattr(home, name, None), getattr(ps, name, None)
    if there is None or public is None:
        return "there is no such name at run time"
    if public is not there and not (node.module == "datasets" and str(public) == str(there)):  # data: read at every use
        return "it is another object at run time"
    private = any(part.startswith("_") for part in f"{node.module or ''}.{name}".split("."))
    if private and node.module != "_version":
        return "it is private to its package"
    return None


def test_every_line_of_the_stub_gives_one_name_of_the_package_that_promises_it() -> None:
    *lines, fallback = STUB
    assert {ast.unparse(node): wrong for node in lines if (wrong := wrong_with(node))} == {}
    assert isinstance(fallback, ast.FunctionDef)
    assert fallback.name == "__getattr__"


def test_the_stub_is_the_promise() -> None:
    names = [node.names[0].name for node in STUB if isinstance(node, ast.ImportFrom)]
    assert len(set(names)) == len(names)
    assert sorted(names) == sorted(ps.__all__)


def functions(name: str) -> list[tuple[str, Any]]:
    """A public function; of a public class, what it is made with and its public methods."""
    found = getattr(ps, name)
    if inspect.isfunction(found):
        return [(name, found)]
    if not inspect.isclass(found):
        return []
    own = [
        (key, value)
        for kind in found.__mro__
        if kind.__module__.startswith("pairscale")
        for key, value in vars(kind).items()
    ]
    plain = [(key, getattr(value, "fget", None) or getattr(value, "__func__", value)) for key, value in own]
    return [(f"{name}.{key}", value) for key, value in plain if inspect.isfunction(value) and key[0] != "_"]


def test_every_parameter_and_result_has_its_type() -> None:
    untyped, found = [], [pair for name in ps.__all__ for pair in functions(name)]
    assert len(found) > len(ps.__all__)
    for where, function in found:
        signature = inspect.signature(function)
        parameters = [one for one in signature.parameters.values() if one.name not in {"self", "cls"}]
        untyped += [f"{where}({one.name})" for one in parameters if one.annotation is one.empty]
        untyped += [f"{where} ->"] if signature.return_annotation is signature.empty else []
    assert untyped == []


SCRIPT = """
from pathlib import Path
from typing import assert_type

import altair as alt
import polars as pl

import pairscale as ps
from pairscale.r import adaptive_rank, fit_bt_model, openai_compare_pair_live, submit_ollama_pairs_live
from pairscale.results import BTFit, SubmitResult

fit = fit_bt_model(ps.example_writing_results)
assert_type(fit, BTFit)
assert_type(fit.theta, pl.DataFrame)
assert_type(fit.plot(), alt.TopLevelMixin)
assert_type(fit.report("report.html"), Path)
assert_type(adaptive_rank(ps.example_writing_samples, judge="lexical").plot(kind="ranks"), alt.TopLevelMixin)
assert_type(openai_compare_pair_live("a", "A.", "b", "B.", "gpt-4.1", endpoint="responses"), pl.DataFrame)
assert_type(submit_ollama_pairs_live([], "llama3.2"), SubmitResult)
SubmitResult.plot  # it has none
openai_compare_pair_live("a", "A.", "b", "B.")  # no model
"""


@pytest.mark.validate
def test_a_strict_script_is_understood(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, "utf-8")
    done = mypy("mypy", "--strict", "--cache-dir", str(tmp_path), "--no-error-summary", str(tmp_path / "script.py"))
    said = [line.partition("script.py:")[2] for line in done.stdout.splitlines() if "script.py" in line]
    last = len(SCRIPT.splitlines())
    assert [line.partition(" ")[0] for line in said if " error:" in line] == [f"{last - 1}:", f"{last}:"], done.stdout
    assert "[attr-defined]" in said[0]
    assert "[call-arg]" in said[1]


UNDERSTOOD = 'is an "async def" function'  # of a decorated function, whose type is a function that returns an awaitable


@pytest.mark.validate
def test_types_are_what_is_there_at_run_time() -> None:
    done = mypy(
        "mypy.stubtest", "pairscale", "--ignore-missing-stub", "--concise", "--mypy-config-file", "pyproject.toml"
    )
    assert "not checking stubs" not in done.stdout + done.stderr
    found = [line.partition(" ") for line in done.stdout.splitlines()]
    # What is not public is no stub: the tool takes aliases and caches there for differences.
    public = [getattr(ps, name) for name in ps.__all__]
    homes = {
        f"{one.__module__}.{one.__qualname__}" for one in public if inspect.isclass(one) or inspect.isfunction(one)
    }
    homes |= {f"pairscale.{name}" for name in ps.__all__}
    parts = [(where, ".".join(where.split(".")[:-1]), said) for where, _, said in found]
    wrong = [(where, said) for where, kind, said in parts if {where, kind} & homes and not said.startswith(UNDERSTOOD)]
    # R's fits take further options by ** under several names each, and help() shows ours.
    named = re.compile(r"pairscale\.r\.fits\..* does not have parameter")
    assert [one for one in wrong if not named.match(" ".join(one))] == []


def mypy(module: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *options]
    environment = os.environ | {"MYPYPATH": str(PACKAGE.parent)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=pages.ROOT, env=environment)


def test_the_reference_has_every_public_name() -> None:
    script = runpy.run_path(str(pages.ROOT / "docs/_reference.py"))
    made = script["pages"]()
    for file, text in made.items():
        assert (pages.ROOT / "docs" / file).read_text("utf-8") == text, "run: python docs/_reference.py"
    shown = re.findall(r"^(?:::: pairscale\.|### |## (?=\w+ \{))([\w.]+)", "\n".join(made.values()), re.MULTILINE)
    left_out = {"__version__", "batch", "errors", "PairscaleError"}  # the modules' own names are there
    elsewhere = {*ps.r.__all__, *ps.ag2.__all__, *ps.results.__all__}
    assert {name for name in shown if "." not in name} == (set(ps.__all__) | elsewhere) - left_out
    assert {f"batch.{name}" for name in ps.batch.__all__} <= set(shown)
