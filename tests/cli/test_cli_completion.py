"""Tab in the shell: commands, options, and the names that options take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pairscale.adaptive.selectors import SELECTORS
from pairscale.cli import _names
from pairscale.core.prompts import list_prompt_templates
from pairscale.core.traits import list_traits
from pairscale.providers.catalog import PROVIDERS

COMMAND = Path(sys.executable).with_name("pairscale")


@pytest.fixture
def offered(cli, monkeypatch):
    """What bash is told when Tab is pressed at the end of a line; a process of its own would show the same."""

    def press_tab(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_PAIRSCALE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        done = cli()
        assert (done.code, done.err) == (0, "")
        return done.out.split()

    return press_tab


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pairscale che", ["check-judge"]),
        ("pairscale batch s", ["submit", "status"]),
        ("pairscale rank --max-c", ["--max-cost", "--max-comparisons"]),
        ("pairscale rank --judge o", ["openai:", "ollama:", "openrouter:"]),
        ("pairscale ab a.csv --judge le", ["lexical"]),
        ("pairscale rank no-such-study.toml --judge hu", ["human"]),
        ("pairscale judge --trait cla", ["clarity"]),
        ("pairscale traits cla", ["clarity"]),
        ("pairscale bias-study --template sh", ["shuffle"]),
        ("pairscale templates sh", ["shuffle"]),
        ("pairscale plan --selector ", ["pollitt", "random", "nearest", "information"]),
        ("pairscale rank --selector x", []),
    ],
)
def test_what_is_offered(offered, line, expected):
    assert offered(line) == expected


def test_every_name_is_offered():
    assert {name for name, _ in _names.selectors("")} == {"pollitt", *SELECTORS}
    assert [name for name, _ in _names.traits("")] == [trait.key for trait in list_traits()]
    assert [name for name, _ in _names.templates("")] == list_prompt_templates()
    assert {f"{name}:" for name in PROVIDERS} < {name for name, _ in _names.judges("")}


def test_templates_of_the_user_are_offered(tmp_path, monkeypatch):
    from pairscale.core.prompts import get_prompt_template, register_prompt_template, remove_prompt_template

    monkeypatch.setenv("PAIRSCALE_HOME", str(tmp_path))
    register_prompt_template("shoe", get_prompt_template())
    try:
        assert _names.templates("sh") == [("shoe", "yours"), ("shuffle", "built in")]
    finally:
        remove_prompt_template("shoe", quiet=True)


NAMED_SHELL = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else it is the one that runs the tests


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell):
    done = subprocess.run(
        [COMMAND, "--show-completion", shell], capture_output=True, text=True, check=True, env=os.environ | NAMED_SHELL
    )
    assert f"_PAIRSCALE_COMPLETE=complete_{shell}" in done.stdout


def test_the_script_is_installed_for_the_user(tmp_path):
    home = os.environ | NAMED_SHELL | {"HOME": str(tmp_path)}
    subprocess.run([COMMAND, "--install-completion", "bash"], capture_output=True, check=True, env=home)
    written = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file())
    assert "_PAIRSCALE_COMPLETE=complete_bash" in written
    assert ".bashrc" in {path.name for path in tmp_path.iterdir()}


def test_pressing_tab_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from pairscale.cli import main\n"
        "try:\n    main([])\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'polars', 'numpy', 'scipy', 'sqlalchemy', 'aiohttp'} & set(sys.modules)), file=sys.stderr)"
    )
    asked = {"COMP_WORDS": "pairscale rank --judge op", "COMP_CWORD": "3", "_PAIRSCALE_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | asked
    )
    assert (done.stdout.split(), done.stderr.strip()) == (["openai:", "openrouter:"], "[]")
