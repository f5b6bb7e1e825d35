"""What the commands share: lines and tables on the screen, results in files, judges, and how failure looks."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.display import as_cell, printable, text_lines
from pairscale.core.errors import without_login
from pairscale.core.notices import plural
from pairscale.core.options import FilePath

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.errors import PairscaleError

_PIPE_WIDTH = 140

_ARGUMENT = re.compile(
    r"(?:\b(btl_config|adaptive_config|judge_args):? )?"
    r"(?:`([a-z_]+)=([^`]*)`|\b([a-z_]+)=(['\"])(\w+)\5|\b(seed)=(\d+))"
)
_CONFIGURED = re.compile(r"^(?:adaptive_config|btl_config): ")
_OTHER_NAMES = {"pair_pct": "share", "fit_fn": "fit", "judge_args": "judge-arg", "unconnected": "separate"}


Arguments: TypeAlias = dict[str, Any]
"""The arguments of a verb, by their names."""
Facts: TypeAlias = dict[str, Any]
"""What ``--json`` writes of a result, by name."""


def say(message: str) -> None:
    """Lines for the person, on standard error."""
    print(_visible(message), file=sys.stderr, flush=True)


def echo(line: str = "") -> None:
    """Lines of the result, on standard output."""
    print(_visible(line))


def _visible(text: str) -> str:
    """A text that cannot command the terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


def as_argument(run: object) -> str:
    """A run file or an address for a command line: without a login, and quoted where a shell would take it apart."""
    return shlex.quote(without_login(str(run)))


def complain(kind: str, message: str) -> None:
    """An error or a note, as one line on standard error."""
    say(f"{kind}: {printable(in_shell(message))}")


def error_line(error: PairscaleError, flag: str | None = None) -> str:
    """What an error says, with the option of the command in place of the argument of a function.

    Args:
        error: the error.
        flag: what the shell calls the argument, where that is known.
    """
    message = _CONFIGURED.sub("--set: ", str(error))
    argument = str(getattr(error, "argument", None))
    if argument.isidentifier() and message.startswith(argument):
        return f"{flag or _option(argument)}{message.removeprefix(argument)}"
    return message


def in_shell(message: str) -> str:
    """A message with options in place of the arguments that it speaks of."""
    return _ARGUMENT.sub(_spelled, message)


def _spelled(argument: re.Match[str]) -> str:
    name = argument[2] or argument[4] or argument[7]
    value = argument[3] or argument[6] or argument[8]
    if argument[1]:
        return f"{'--judge-arg' if argument[1] == 'judge_args' else '--set'} {name}={value}"
    return _option(name) if value in ("", None, "True") or name == "unconnected" else f"{_option(name)} {value}"


def _option(name: str) -> str:
    return f"--{_OTHER_NAMES.get(name, name).replace('_', '-')}"


def require_chart(path: FilePath) -> None:
    """Refuse the file of a chart before any work is done."""
    from pairscale.reporting.vega import require_chart_file

    require_chart_file(Path(path), "--chart")


def popped(arguments: Arguments, names: Iterable[str]) -> Arguments:
    """Take the arguments of these names out, as far as they are there."""
    return {name: arguments.pop(name) for name in names if name in arguments}


def fields(result: object, names: str) -> Facts:
    """Attributes of a result, for its JSON document."""
    return {name: getattr(result, name) for name in names.split()}


class Output:
    """Where the result of a command goes: to a file, as JSON, or on the screen.

    Attributes:
        as_json: whether it is one JSON document on standard output.
        out: the file of the table.
    """

    def __init__(self, as_json: bool = False, out: str | None = None) -> None:
        self.as_json = as_json
        self.out = None if out is None else writable(Path(out))
        self._screen = sys.stdout

    @property
    def is_screen(self) -> bool:
        """Whether the result is shown."""
        return not self.as_json and self.out is None

    def __call__(self, document: Mapping[str, Any], table: pl.DataFrame | None, show: Callable[[], None]) -> None:
        """Write or show the result; without a table, there is nothing for a file."""
        is_written = False
        if self.out is not None and table is not None:
            from pairscale.core.files import write_table

            write_table(table, self.out)
            say(f"wrote {plural(table.height, 'row')} to {self.out}")
            is_written = True
        with redirect_stdout(self._screen):
            if self.as_json:
                import orjson

                form = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
                print(orjson.dumps(document, _plain, form).decode())
            elif not is_written:
                show()


def writable(out: Path) -> Path:
    """The file to write, refused before any work is done rather than after it."""
    from importlib.util import find_spec
    from tempfile import TemporaryFile

    from pairscale.core.errors import FileFormatError, MissingExtraError
    from pairscale.core.files import TABLE_SUFFIXES
    from pairscale.core.options import require_suffix

    require_suffix(out, "--out", TABLE_SUFFIXES)
    if out.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise MissingExtraError("writing an Excel file", "documents")
    try:
        if out.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        with TemporaryFile(dir=out.parent):
            return out
    except OSError as error:
        raise FileFormatError(f"--out {out} cannot be written: {error.strerror}") from None


def other_file(emit: Output, out: FilePath | None, *endings: str) -> Path | None:
    """The file of ``--out`` where it has one of these endings; one of another ending is for the table."""
    if out is None:
        return None
    if str(out).lower().endswith(endings):
        return Path(out)
    emit.out = writable(Path(out))
    return None


def terminal_width() -> int:
    """How many columns there are: of the terminal, or enough for a file or another program."""
    return max(20, shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns)


def show_table(table: pl.DataFrame, *, most: int = 60, digits: int = 3) -> None:
    """A table on the screen: the first rows, numbers to the right and never cut.

    Where it is too wide, texts are cut shorter; if that is not enough, the last columns are left out, and named.
    """
    numeric = [dtype.is_numeric() for dtype in table.dtypes]
    grid = [list(table.columns), *([as_cell(value, digits) for value in row] for row in table.head(most).iter_rows())]
    lines, shown = text_lines(grid, numeric, terminal_width())
    for line in lines:
        echo(line)
    more = []
    if table.height > most:
        more.append(f"{table.height - most:,} more rows")
    if shown < table.width:
        more.append(f"{table.width - shown} more columns ({', '.join(table.columns[shown:])})")
    if more:
        echo(f"… {', '.join(more)}: --out FILE writes them all")


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    return dict(value) if isinstance(value, Mapping) else str(value)
