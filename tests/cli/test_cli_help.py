"""The help teaches, the examples are true, and the tables fit."""

import runpy
import shlex
from pathlib import Path

import polars as pl
import pytest

from pairscale.cli import BATCH, COMMANDS, GROUPS, load
from pairscale.cli._common import complain, printable, show_table

_NAMES = [*(name for name in COMMANDS if name != "batch"), *(f"batch {part}" for part in BATCH)]
_DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("args", [[], *(name.split() for name in _NAMES)], ids=" ".join)
def test_help_fits_into_80_columns_and_has_examples(cli, args):
    outcome = cli(*args, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"usage: {' '.join(['pairscale', *args])} [OPTIONS]")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert ("Examples:\n    pairscale" if args else "Start here:\n    pairscale demo") in outcome.out
    assert cli(*args, "-h").out == outcome.out


def test_the_first_screen_explains_twelve_commands_and_names_all(cli):
    out = " ".join(cli("--help").out.split())
    explained = [name for name, summary in COMMANDS.items() if f" {name} {summary}" in out]
    assert len(explained) == 12
    for title, group in GROUPS.items():
        assert f"{title}: " in out
        for name, summary in group.items():
            assert f" {name}" in out
            assert summary.endswith((".", "?"))
    out = " ".join(cli("batch", "--help").out.split())
    assert all(f" {name} {summary}" in out for name, summary in BATCH.items())


def test_options_come_in_panels(cli):
    out = cli("rank", "--help").out
    panels = ["Arguments", "Options", "What to judge", "Judge", "Limits", "People", "Columns", "Output"]
    titles = [line.rstrip(":") for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [*panels, "Examples"]


@pytest.mark.parametrize("name", _NAMES)
def test_every_option_is_explained_and_examples_use_those_there_are(name):
    command = load(name)
    flags = {option.flag for option in command.options}
    if name not in {"import", "init", "simulate-providers", "watch"}:  # they write or serve something
        assert {"--json", "--out"} <= flags
    for option in command.options:
        assert option.help.endswith("."), option
        assert ":`" not in option.help
    negated = {flag.replace("--", "--no-") for flag in flags}
    for line in command.own.examples:
        words = shlex.split(line)
        assert " ".join(words[1:]).startswith(name)
        assert {word for word in words if word.startswith("-")} <= flags | negated
        assert len(line) <= 76  # with its indentation, the help fits into 80 columns


def test_the_reference_is_up_to_date():
    script = runpy.run_path(str(_DOCS / "_cli.py"))
    assert (_DOCS / "cli.md").read_text("utf-8") == script["reference"](), "run: python docs/_cli.py"


def test_version(cli):
    from pairscale import __version__

    assert cli("--version").out == f"pairscale {__version__}\n"


# Tables


_WIDE = pl.DataFrame(
    {
        "rank": [1, 2],
        "ID": ["a-rather-long-name-of-a-file", "b"],
        "theta": [1234.5678, -0.1],
        "text": ["word " * 100, "線" * 100],
        "wins": [3, None],
    }
)


def _shown(capsys, table, **options):
    show_table(table, **options)
    return capsys.readouterr().out.splitlines()


def _width(line):
    return sum(2 if "\u2e80" <= letter <= "\u9fff" else 1 for letter in line)


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 140, 1000])
def test_a_table_fits_and_its_numbers_are_never_cut(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = _shown(capsys, _WIDE)
    assert max(_width(line) for line in lines[:3]) <= columns
    header = lines[0].split()
    assert header == _WIDE.columns[: len(header)]
    if "theta" in header:
        assert "1234.568" in lines[1]
    hidden = _WIDE.columns[len(header) :]
    assert (", ".join(hidden) in lines[-1]) == bool(hidden) or not hidden
    assert lines == [line.rstrip() for line in lines]


def test_what_is_shown_cannot_command_the_terminal(capsys):
    lines = _shown(capsys, pl.DataFrame({"ID": ["a\x1b[2Jb", "c\r\nd", "e\x07"]}))
    assert lines == ["ID", "a�[2Jb", "c d", "e�"]
    assert printable("one\ntwo\x9b3") == "one two�3"


def test_messages_speak_of_options(capsys):
    complain(
        "error",
        "x.txt: name its encoding (`encoding=`); `id_col=3`; `pair_pct=7` must\nbe, with btl_config judges='slopes'",
    )
    assert (
        capsys.readouterr().err
        == "error: x.txt: name its encoding (--encoding); --id-col 3; --share 7 must be, with --set judges=slopes\n"
    )
