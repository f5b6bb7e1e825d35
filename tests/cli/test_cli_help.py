"""The help teaches, the examples are true, and the tables fit."""

import os
import runpy
import shlex
from pathlib import Path

import polars as pl
import pytest
import typer

from pairscale.cli import COMMANDS, app, module_of
from pairscale.cli._common import complain, printable, show_table

_NAMES = [name for name in COMMANDS if name != "batch"]  # a group, with commands of its own
_GROUP = typer.main.get_command(app)
_DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("args", [[], *([name] for name in _NAMES)], ids=" ".join)
def test_help_fits_into_80_columns_and_has_examples(cli, args):
    outcome = cli(*args, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"Usage: {' '.join(['pairscale', *args])} [OPTIONS]")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert ("Examples:\n    pairscale" if args else "Start here:\n    pairscale demo") in outcome.out
    assert cli(*args, "-h").out == outcome.out


def test_help_lists_every_command_with_a_whole_sentence(cli):
    out = " ".join(cli("--help").out.split())
    for name, summary in COMMANDS.items():
        assert f" {name} {summary}" in out
        assert summary.endswith((".", "?"))


@pytest.mark.parametrize("name", _NAMES)
def test_examples_use_options_that_exist(name):
    known = {option for param in _GROUP.commands[name].params for option in (*param.opts, *param.secondary_opts)}
    for line in module_of(name).EXAMPLES:
        words = shlex.split(line)
        assert words[:2] == ["pairscale", name]
        assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("name", _NAMES)
def test_every_command_takes_json_and_out_and_explains_every_option(name):
    params = _GROUP.commands[name].params
    if name not in {
        "import",
        "init",
        "simulate-providers",
        "watch",
    }:  # they write or serve something, and have no result
        assert {"--json", "--out"} <= {option for param in params for option in param.opts}
    for param in params:
        assert param.help, param
        assert param.help.endswith("."), param


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


def test_a_table_that_fits_nowhere_still_shows_its_first_column(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    number = 10.0**30
    lines = _shown(capsys, pl.DataFrame({"number": [number], "b": [1]}))
    assert lines[1] == f"{number:.3f}"
    assert _shown(capsys, pl.DataFrame({"name": ["x" * 50]}))[1] == "x" * 19 + "…"


def test_rows_beyond_the_most_are_counted(capsys):
    lines = _shown(capsys, pl.DataFrame({"n": range(25)}), most=10)
    assert len(lines) == 12
    assert lines[-1] == "… 15 more rows: --out FILE writes them all"


def test_a_table_of_no_rows_is_its_header(capsys):
    assert _shown(capsys, pl.DataFrame(schema={"a": pl.Int64, "b": pl.String})) == ["a  b"]


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


def test_the_width_is_that_of_the_terminal(monkeypatch):
    from pairscale.cli._common import terminal_width

    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((33, 9)))
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1, raising=False)
    assert terminal_width() == 33
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal_width() == 33
    monkeypatch.setenv("COLUMNS", "5")
    assert terminal_width() == 20
