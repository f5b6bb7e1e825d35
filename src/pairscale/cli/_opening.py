"""The first and the last lines of a command: what was read, who judges, and whether that is a grading."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from pairscale.cli._common import complain, in_shell, printable, say
from pairscale.core.errors import PairscaleError

if TYPE_CHECKING:
    import polars as pl

    from pairscale.cli._groups import Reading
    from pairscale.core.errors import UnsureColumnError
    from pairscale.core.samples import SamplesReport

READ: ContextVar[dict[str, Any] | None] = ContextVar("read", default=None)
"""What this command has read, for the run file."""

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Opening:
    """The first lines of a command, held back until its judge is there, so that an error is one line.

    Attributes:
        lines: what was read.
        notes: what to look at.
    """

    lines: Sequence[str]
    notes: Sequence[str] = ()

    def say(self, judges: Iterable[str] = ()) -> None:
        """Say who judges, and whether that is a grading; then what was read."""
        from pairscale.judges.names import judged_by, no_grading

        if names := list(judges):
            say(printable(f"judge: {judged_by(names)}"))
            if banner := no_grading(names):
                say(f"{banner}{' Name a model with --judge.' * ('lexical' in names)}")
        for line in self.lines:
            say(in_shell(line))
        for note in self.notes:
            complain("note", note)


def read_texts(data: Path, reading: Reading) -> tuple[SamplesReport, Opening]:
    """Read texts.

    Returns:
        The texts, and the lines to open the command with.

    Raises:
        InputError: they cannot be read; or with ``strict``, a file was not.
    """
    from pairscale.core.samples import inspect_samples

    report = asking(
        lambda ids, texts: inspect_samples(
            data, id_col=ids, text_col=texts, encoding=reading.encoding, skip_unreadable=reading.skip_unreadable
        ),
        reading.id_col,
        reading.text_col,
    )
    return report, _opening(report, reading.strict)


def read_pairs(
    data: Path, reading: Reading, a_col: str | None, b_col: str | None
) -> tuple[pl.DataFrame, list[str] | None, Opening]:
    """Read pairs, or texts and make all their pairs.

    Returns:
        The pairs, the ids of all texts where they are texts, and the lines to open the command with.
    """
    from pairscale.pairing.reading import read_pairs as read

    reports: list[SamplesReport] = []
    try:
        pairs, ids = asking(
            lambda one, two: read(
                data,
                id_col=one,
                text_col=two,
                encoding=reading.encoding,
                a_col=a_col,
                b_col=b_col,
                skip_unreadable=reading.skip_unreadable,
                tell=reports.append,
            ),
            reading.id_col,
            reading.text_col,
        )
    except PairscaleError:
        if reports:  # texts that make no pairs: what was not read may be the reason
            _opening(reports[0], reading.strict).say()
        raise
    return pairs, ids, _opening(reports[0], reading.strict) if reports else _of_pairs(pairs, data)


def read_given_pairs(
    pairs: Path, *, encoding: str | None, a_col: str | None = None, b_col: str | None = None
) -> tuple[pl.DataFrame, Opening]:
    """Read pairs where texts alone would not do.

    Returns:
        The pairs, and the lines to open the command with.
    """
    from pairscale.pairing.reading import read_given_pairs as read

    table = read(pairs, encoding=encoding, a_col=a_col, b_col=b_col)
    return table, _of_pairs(table, pairs)


def _of_pairs(pairs: pl.DataFrame, source: object) -> Opening:
    import polars as pl

    texts = pl.concat([pairs["ID1"], pairs["ID2"].alias("ID1")]).n_unique()
    kept = [name for name in pairs.columns if name not in {"ID1", "ID2", "text1", "text2"}]
    READ.set({"source": str(source), "pairs": pairs.height, "texts": texts, "kept": kept})
    more = f"; other columns kept: {', '.join(kept)}" if kept else ""
    return Opening(
        [printable(f"{pairs.height:,} pair{'s' * (pairs.height != 1)} of {texts:,} texts from {source}{more}")]
    )


def _opening(report: SamplesReport, strict: bool) -> Opening:
    from pairscale.core.samples import require_all_read

    READ.set(report.record())
    if strict:
        require_all_read(report)
    problems = [line for line in report.problems() if not line.startswith("note: ")]
    return Opening([*report.opening(), *problems], report.notes)


def asking(read: Callable[[str | None, str | None], _Found], id_col: str | None, text_col: str | None) -> _Found:
    """Read with these columns; where one is not certain, ask in a terminal; elsewhere, leave the error."""
    from pairscale.core.errors import UnsureColumnError

    while True:
        try:
            return read(id_col, text_col)
        except UnsureColumnError as error:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            if error.argument == "id_col":
                id_col = _answer(error)
            else:
                text_col = _answer(error)


def _answer(error: UnsureColumnError) -> str:
    what = "the ids" if error.argument == "id_col" else "the texts"
    say(f"Which column holds {what}?")
    for number, name in enumerate(error.columns, start=1):
        say(f"  {number}  {printable(name)}")
    while True:
        said = str(typer.prompt("its number or its name", err=True)).strip()
        if said in error.columns:
            return said
        if said.isdecimal() and 1 <= int(said) <= len(error.columns):
            name = error.columns[int(said) - 1]
            say(f"(next time: --{error.argument.replace('_', '-')} {printable(name)})")
            return name
        say(f"there is no {printable(said)}; type a number from 1 to {len(error.columns)}")


def say_judged(names: Iterable[str | None]) -> None:
    """Who has judged, as the last line."""
    from pairscale.judges.names import judged_by, no_grading

    found = [name for name in names if name]
    if found:
        banner = no_grading(found)
        say(printable(f"judged by {judged_by(found)}{f'. {banner}' if banner else ''}"))
