"""Values of options that skip Typer's validation are those that it would leave as they are."""

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.models import OptionInfo
from typer.testing import CliRunner

from pairscale.cli import COMMANDS, _Command, app
from pairscale.cli._values import is_valid


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "annotation", "info", "expected"),
    [
        (None, int, {}, True),
        ("a", str, {}, True),
        ("", str, {}, True),
        ("a\udc80", str, {}, False),
        ("3", int, {}, False),
        (Path("no such file"), Path, {}, True),
        (Path(), Path, {"dir_okay": False}, False),
        (Path(), Path, {"exists": True}, False),
        ("here", Path, {}, False),
        (4, int, {"clamp": True}, False),
        (3, int, {}, True),
        (3, float, {}, False),
        (True, int, {}, False),
        (3, int, {"min": 4}, False),
        (4, int, {"min": 4, "max": 4}, True),
        (5, int, {"max": 4}, False),
        ("a", str, {"parser": str.upper}, False),
        ("a", str, {"exists": True}, False),
        ("a", Literal["a", "b"], {}, True),
        ("A", Literal["a", "b"], {"case_sensitive": False}, False),
        (1, Literal[True], {}, False),
        (Colour.RED, Colour, {}, True),
        ("red", Colour, {}, False),
    ],
)
def test_what_needs_no_validation(value: Any, annotation: Any, info: dict[str, Any], expected: bool) -> None:
    assert is_valid(value, annotation, OptionInfo(**info)) is expected


_GIVEN = (
    ["a"],
    ["a", "--n", "7", "--share", "1", "--colour", "red", "--words", "x", "--flag"],
    ["a", "--file", "no/such.csv", "--seeds", "3", "--seeds", "04", "--share", "0.10", "--n", "0012"],
    ["a", "--file", ".", "--seeds", " 5", "--share", "1e-3", "--n", "+7", "--words", "", "--words", "y"],
)


def test_a_command_gets_the_values_that_typer_gives() -> None:
    got: list[Any] = []

    def command(
        name: str,
        n: Annotated[int, typer.Option(min=1)] = 3,
        share: float = 0.5,
        colour: Colour = Colour.RED,
        words: Annotated[list[str] | None, typer.Option()] = None,
        flag: bool = False,
        file: Path | None = None,
        seeds: Annotated[list[int] | None, typer.Option()] = None,
    ) -> None:
        got.append((name, n, share, colour, words, flag, file, seeds))

    for cls in (typer.core.TyperCommand, _Command):
        one = typer.Typer()
        one.command(cls=cls)(command)
        for arguments in _GIVEN:
            assert CliRunner().invoke(one, arguments).exit_code == 0
        assert CliRunner().invoke(one, ["a", "--n", "0"]).exit_code == 2
        for wrong in ("--colour=blue", "--seeds=1x", "--share=1_0x", "--n=-1", "--seeds="):
            assert CliRunner().invoke(one, ["a", wrong]).exit_code == 2, wrong
    half = len(_GIVEN)
    assert [list(map(repr, one)) for one in got[:half]] == [list(map(repr, one)) for one in got[half:]]
    assert got[0] == ("a", 3, 0.5, Colour.RED, got[half][4], False, None, got[half][7])


def test_wrong_values_are_still_refused_in_words() -> None:
    assert "judge" in COMMANDS
    done = CliRunner().invoke(app, ["judge", "pairs.csv", "--concurrency", "x"])
    assert done.exit_code == 2
    assert "concurrency" in done.output
