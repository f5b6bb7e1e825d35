"""Every example of the pages and the docstrings runs; see :mod:`doc_pages` for what a writer has to know."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import logging
import pkgutil
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import doc_pages as pages
import pytest

import pairscale as ps
from pairscale.providers import catalog
from pairscale.testing import ProviderSimulator

MODULES = ["pairscale", *(module.name for module in pkgutil.walk_packages(ps.__path__, "pairscale."))]


def may_have_examples(name: str) -> bool:
    """Whether a module's source holds an example, or makes docstrings out of other files, as that of R's names does."""
    source = Path(next(iter(ps.__path__))).joinpath(*name.split(".")[1:])
    file = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    return name == "pairscale.r.manual" or ">>>" in file.read_text("utf-8")


WITH_EXAMPLES = list(filter(may_have_examples, MODULES))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with twelve essays in ``essays``, the files of docs/examples, and settings of its own."""
    log = logging.getLogger("pairscale")
    level = log.level
    essays = tmp_path / "essays"
    essays.mkdir()
    for row in ps.synthetic_essays(12, seed=7).iter_rows(named=True):
        (essays / f"{row['ID']}.txt").write_text(row["text"], "utf-8")
    shutil.copytree(pages.ROOT / "docs/examples", tmp_path, dirs_exist_ok=True)  # files that a page offers
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAIRSCALE_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("POLARS_TABLE_WIDTH", "100")  # of tables in python blocks, whatever terminal the tests run in
    monkeypatch.setattr(catalog, "_registered", {})  # providers that an example brings are its own
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    log.setLevel(level)  # pages show how to silence it


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderSimulator]:
    """What plays the providers where an example asks one: an example needs no key, and nothing leaves the machine."""
    with ProviderSimulator() as server:
        yield server


def page_name(page: Path) -> str:
    return page.relative_to(pages.ROOT).as_posix()


LONG_GUIDES = "ab adaptive-ranking budget first-ranking own-judge position-bias providers your-texts".split()
LONG = {"README.md", "docs/models.md", *(f"docs/guides/{name}.md" for name in LONG_GUIDES)}
"""Pages that take long: they run in `make test-slow`."""


def test_the_long_pages_are_there() -> None:
    assert set(map(page_name, pages.PAGES)) >= LONG


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if page_name(page) in LONG else []


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=marks_of(page)) for page in pages.PAGES],
    ids=page_name,
)
def test_page(page: Path, folder: Path) -> None:
    pages.run_page(page, {"PYTHONUTF8": "1", "PYTHONWARNINGS": "error", "NO_COLOR": "1", "COLUMNS": "120"})


def test_every_block_runs_or_says_why_not() -> None:
    everything: list[pages.Block] = []
    for page in pages.PAGES:
        source = page.read_text("utf-8")
        found = pages.blocks(page)
        fences = len(re.findall(r"^ *```", source, re.MULTILINE))
        assert fences == 2 * len(found), f"{page_name(page)}: a block is not closed"
        assert source.count("<!-- not run:") == sum(block.reason is not None for block in found), page_name(page)
        everything += found
    for block in everything:
        assert block.kind in {"python", "console", "text"}, f"{block.place}: a block of kind {block.kind!r} is not run"
        if block.reason is not None:
            lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.strip()]
            assert all(line.split()[0] in {"pip", "make", "git"} for line in lines), f"{block.place}: this should run"


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstrings(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]
    if not tests:
        return
    request.getfixturevalue("folder")
    for variable, value in request.getfixturevalue("provider").environment().items():
        monkeypatch.setenv(variable, value)
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    for test in tests:
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_every_public_function_has_an_example_that_calls_it() -> None:
    every = sorted({*ps.__all__, *ps.r.__all__, *ps.ag2.__all__})
    functions = [name for name in every if inspect.isfunction(getattr(ps, name))]
    assert len(functions) > 100
    for name in functions:
        require_example(name)


def require_example(name: str) -> None:
    function = getattr(ps, name)
    examples = doctest.DocTestParser().get_examples(function.__doc__ or "")
    nodes = [node for example in examples for node in ast.walk(ast.parse(example.source))]
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    calls += [one for node in nodes for one in getattr(node, "decorator_list", [])]
    called = {getattr(call, "attr", None) or getattr(call, "id", None) for call in calls}
    assert name in called, f"{name}: give its docstring an example"
    assert any(example.want for example in examples), f"{name}: let the example show what comes of it"
    run = {test.name for test in doctest.DocTestFinder().find(importlib.import_module(function.__module__))}
    is_run = function.__module__ in WITH_EXAMPLES and f"{function.__module__}.{name}" in run
    assert is_run, f"{name}: its example is not among those that test_docstrings runs"


def test_doctests_are_found() -> None:
    """The walk above would also pass if it found nothing."""
    finder = doctest.DocTestFinder()
    having = [name for name in MODULES if any(test.examples for test in finder.find(importlib.import_module(name)))]
    assert len(having) > 20
    assert set(having) <= set(WITH_EXAMPLES)


def test_links_lead_somewhere() -> None:
    for page in (*pages.PAGES, pages.ROOT / "CHANGELOG.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:|#|samples/", target):  # the sample reports are made when the site is built
                assert (page.parent / target.partition("#")[0]).exists(), f"{page_name(page)} links to {target}"


# The checks themselves.


def test_what_is_shown_must_be_printed() -> None:
    pages.require_lines("a  b\n...\nend ... 3\n", "a b\nmore\nend of 3\n", "here")
    for shown, printed in (("a", "b"), ("a\nb", "b\na"), ("a", "a b"), ("a.c", "abc")):
        with pytest.raises(AssertionError, match="no line"):
            pages.require_lines(shown, printed, "here")


def test_blocks_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '=== "Python"\n\n    ```python\n    x = 1\n    ```\n\n    ```text\n    1\n    ```\n\n'
        "<!-- not run: it installs -->\n```console\n$ pip install .\n```\nwords\n\n```text\nno output\n```\n"
    )
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    found = [(block.kind, block.text, block.follows, block.reason) for block in pages.blocks(page)]
    assert found == [
        ("python", "x = 1\n", False, None),
        ("text", "1\n", True, None),
        ("console", "$ pip install .\n", False, "it installs"),
        ("text", "no output\n", False, None),
    ]


def test_a_failing_example_is_seen(message_snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError) as refused:
        pages.run_page(page, {})
    message_snapshot(refused)
    page.write_text("```console\n$ pairscale no-such-command\n```\n")
    with pytest.raises(AssertionError, match="exit code 2"):
        pages.run_page(page, {})
    page.write_text("```console\n$ rm x\n```\n")
    with pytest.raises(AssertionError, match="only pairscale"):
        pages.run_page(page, {})
