"""The code blocks of the pages, and how they are run.

What a writer has to know:

- ``python`` blocks of a page run in order, in one namespace and one folder. A ``text`` block directly below one is
  what it prints.
- ``console`` blocks hold lines ``$ pairscale …``, each followed by what it prints. They run in the same folder and
  must end with exit code 0. They call the command's own ``main`` in this process.
- Of what is printed, every line that is shown must occur, in that order; runs of spaces are one space. ``...`` stands
  for anything, within a line or as a line of its own.
- ``<!-- not run: reason -->`` before a block leaves it out. That is for ``pip``, ``make`` and ``git`` only.
- ``text`` blocks anywhere else are pictures and formulas. No other kind of block is allowed.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>[a-z]*)[^`\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL
)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+) -->\s*\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it stands, its kind, its text, and why it is not run (if it is not)."""

    page: Path
    line: int
    kind: str
    text: str
    follows: bool  # nothing but blank lines between it and the block before
    reason: str | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    source = page.read_text("utf-8")
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(source):
        between = source[end : match.start()]
        reason = _NOT_RUN.search(between)
        found.append(
            Block(
                page=page,
                line=source.count("\n", 0, match.start()) + 1,
                kind=match["kind"],
                text=textwrap.dedent(match["body"]),
                follows=bool(found) and not between.strip(),
                reason=reason["reason"] if reason else None,
            )
        )
        end = match.end()
    return found


def run_page(page: Path, environment: dict[str, str]) -> None:
    """Run everything on a page, in the current folder."""
    before = set(sys.modules)
    # A module that can be imported: dataclasses look their own up.
    example = sys.modules["example"] = ModuleType("example")
    try:
        with mock.patch.dict(os.environ):  # a page may set variables, for itself alone
            _run_blocks(page, vars(example), environment)
    finally:
        # What the page wrote into this folder and imported must not meet the next page.
        here = str(Path.cwd())
        for name in set(sys.modules) - before:
            if name == "example" or str(getattr(sys.modules[name], "__file__", None)).startswith(here):
                del sys.modules[name]


def _run_blocks(page: Path, namespace: dict[str, Any], environment: dict[str, str]) -> None:
    printed: str | None = None
    for block in blocks(page):
        if block.kind == "text":
            if block.follows and printed is not None:
                require_lines(block.text, printed, block.place)
            continue
        printed = None
        if block.reason is not None:
            continue
        if block.kind == "python":
            printed = _run_python(block, namespace)
        elif block.kind == "console":
            for command, expected in commands(block):
                require_lines(expected, run_command(command, environment, block.place), block.place)


def _run_python(block: Block, namespace: dict[str, Any]) -> str:
    # The name and the cache let tracebacks, and inspect.getsource, find the lines.
    name = f"<{block.place}>"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block.text, name, "exec"), namespace)
    return output.getvalue()


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The command lines of a console block, each with the output shown below it."""
    start, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not start.strip(), f"{block.place}: a console block starts with a line '$ pairscale …'"
    for part in parts:
        command, _, expected = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, expected


def run_command(line: str, environment: dict[str, str], place: str) -> str:
    """What a line of commands prints, on standard output and standard error."""
    printed = ""
    for command in line.split(" && "):
        name, *arguments = shlex.split(command)
        assert name == "pairscale", f"{place}: only pairscale is run in console blocks, not {name!r}"
        code, output = _run_main(arguments, environment)
        assert code == 0, f"{place}: {command}: exit code {code}\n{output}"
        printed += output
    return printed


def _run_main(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """The same function that the installed command calls, without a second of imports each time."""
    from pairscale.cli import main

    output, code = io.StringIO(), 0
    with (
        mock.patch.dict(os.environ, environment),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return code, output.getvalue()


def require_lines(expected: str, printed: str, place: str) -> None:
    """Every line that is shown occurs in what was printed, in the same order."""
    rest = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in expected.splitlines():
        wanted = " ".join(line.split())
        if wanted in {"", "..."}:
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("...")))
        assert any(pattern.fullmatch(line) for line in rest), (
            f"{place}: no line {wanted!r} in what was printed:\n{printed}"
        )
