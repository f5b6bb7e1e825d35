"""Writes the stubs of ``pairscale.r`` and ``pairscale.results`` from their tables: ``python tools/r_stub.py``.

A test says when they are out of date.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

from pairscale import r, results
from pairscale.r import manual

SRC = Path(r.__file__).parents[1]
HEAD = "# Written by tools/r_stub.py; run: python tools/r_stub.py\n"
TYPES = """import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.adaptive.rank import AdaptiveResult
from pairscale.adaptive.refits import FitFn
from pairscale.collect.cost import CostEstimate
from pairscale.collect.live import SubmitResult
from pairscale.core.tables import Table
from pairscale.core.traits import Trait
from pairscale.judges.base import Judge
from pairscale.r.batches import BatchResult
from pairscale.r.judge import AdaptiveBothOrders, AdaptiveLLMJudge
from pairscale.r.multi import MultiBatch, MultiBatchResult
"""


def imports(table: str, without: str = "") -> list[str]:
    """The names of a table, imported from where they live."""
    lines = [line.split(": ") for line in table.strip().splitlines()]
    return [
        f"from pairscale.{module} import {name} as {name}"
        for module, names in lines
        for name in names.split()
        if module != without
    ]


def definition(name: str) -> str:
    """A function that is made from the table of usage lines, with its types."""
    signature = inspect.signature(getattr(manual, name))
    parameters = []
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        if one.kind is one.VAR_KEYWORD:
            parameters.append(f"**{one.name}: {one.annotation}")
            continue
        default = "float('inf')" if one.default == float("inf") else repr(one.default)
        parameters.append(f"{one.name}: {one.annotation}" + ("" if one.default is one.empty else f" = {default}"))
    lines = "".join(f"    {one},\n" for one in parameters)
    return f"def {name}(\n{lines}) -> {signature.return_annotation}: ...\n"


def stubs() -> dict[Path, str]:
    """The stubs by their files."""
    functions = [name for name in sorted(r.__all__) if hasattr(manual, name)]
    names = ["def names_from(table: str) -> Any: ...\n", "TABLE: str\n"]
    lines = [HEAD, TYPES, "\n".join(imports(r.TABLE, "r.manual")) + "\n", *names, *map(definition, functions)]
    classes = [HEAD, "\n".join(imports(results.TABLE)) + "\n", "TABLE: str\n"]
    made = {SRC / "r/__init__.pyi": "\n".join(lines), SRC / "results.pyi": "\n".join(classes)}
    return {path: tidy(text, path) for path, text in made.items()}


def tidy(text: str, path: Path) -> str:
    """A stub as the linter wants it."""
    for command in (["check", "--fix", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=SRC).stdout  # noqa: S603
    return text


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, "utf-8")
