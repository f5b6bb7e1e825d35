"""How results show themselves: in a terminal, in a notebook, as a pandas table, as a chart, as a report.

A result says in its class line which of its tables is the main one, and which charts there are of it::

    @dataclass(frozen=True, slots=True, repr=False)
    class BTFit(PlotMixin, ReportMixin, table="theta", charts=("scores", "ranks")): ...

and in ``__str__`` (or ``__repr__``) what it is, in one line; everything else is here. Ids and texts are not trusted:
whatever is shown of them is made printable, short, and plain text.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pairscale.core.errors import InputError, MissingExtraError, UnknownNameError
from pairscale.core.options import FilePath, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    import altair as alt
    import pandas as pd
    import polars as pl

MAX_ROWS = 10
MAX_COLUMNS = 10
MAX_NOTICES = 3
LONGEST_CELL = 60
SHORTEST_CELL = 12
LONGEST_LINE = 400
_GAP = 2


class ReprMixin:
    """A result that shows itself: a line as its ``repr``, more in notebooks.

    Args of a class line:
        table: the attribute or method that gives the main table, where there is one.
        columns: those of its columns to show; the others are named. None where the result says it all in its own lines.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = None
    _columns: ClassVar[Sequence[str] | None] = ()

    def __init_subclass__(cls, *, table: str | None = None, columns: Sequence[str] | None = (), **others: Any) -> None:
        super().__init_subclass__(**others)
        if table is not None:  # a dataclass with slots is made twice, the second time of what the first one has
            cls._table = table
            cls._columns = columns

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def to_pandas(self, table: str | None = None) -> pd.DataFrame:
        """The main table for pandas.

        Args:
            table: another table of this result, by the name of its attribute.

        Raises:
            InputError: when there is no such table, or not yet.
            MissingExtraError: when pandas is not installed.
        """
        frame = _main_table(self) if table is None else getattr(self, table, None)
        if frame is None or not hasattr(frame, "to_pandas"):
            raise InputError(f"this {type(self).__name__} has no table {table or 'of its own, or none yet'}: {self}")
        try:
            import_module("pandas")  # whose absence Arrow would report in its own way
            return frame.to_pandas()
        except ModuleNotFoundError as error:
            raise MissingExtraError("a pandas table", "pandas") from error

    def _repr_html_(self) -> str:
        text = repr(self)
        if text.startswith(f"<{type(self).__name__}") and text.endswith(">"):
            text = text[1:-1]
        first, *further = (escape(_cut(_visible(line), LONGEST_LINE)) for line in text.splitlines())
        parts = [f"<p><strong>{first}</strong>{''.join(f'<br>{line}' for line in further)}</p>"]
        parts.append(_html_table(self))
        parts.append(self._chart_html())
        parts += [f"<p>note: {escape(text)}</p>" for text in _notices(self)]
        # No colours of text and page, so that it is readable on light and on dark.
        return f'<div class="pairscale-result">{"".join(parts)}</div>'

    def _chart_html(self) -> str:
        """The chart that a notebook shows below the table; empty where there is none."""
        return ""


class PlotMixin(ReprMixin):
    """A result with a chart, or several.

    Args of a class line:
        charts: their kinds; the first is the default.
    """

    __slots__ = ()
    _charts: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, *, charts: Sequence[str] = (), **others: Any) -> None:
        super().__init_subclass__(**others)
        if charts:
            cls._charts = charts

    @checked
    def plot(self, path: FilePath | None = None, *, kind: str | None = None, **options: Any) -> alt.TopLevelMixin:
        """The chart of this result, which a notebook shows.

        Args:
            path: also write it to this file: svg, png, pdf, html or json, by its ending.
            kind: which chart, where there are several, such as ``scores`` or ``ranks``.
            options: ``title`` (none when empty), ``width`` and ``font_size`` in pixels.

        Raises:
            UnknownNameError: when there is no chart of that kind.
            FileFormatError: when the file cannot be written.
            MissingExtraError: when altair is not installed.
        """
        chosen = self._charts[0] if kind is None else kind
        if chosen not in self._charts:
            kinds = ", ".join(map(repr, self._charts))
            raise UnknownNameError(f"{type(self).__name__} has no chart {kind!r}; there is {kinds}")
        charts = import_module("pairscale.reporting.charts")  # a layer above, and nothing to load before it is wanted
        drawn: alt.TopLevelMixin = charts.plot(self, chosen, path, **options)
        return drawn

    def _chart_html(self) -> str:
        drawn: str = import_module("pairscale.reporting.svg").chart_html(self)  # a layer above, too
        return drawn


class ReportMixin:
    """A result with a report."""

    __slots__ = ()

    @checked
    def report(self, path: FilePath, **options: Any) -> Path:
        """Write the report of this result: one HTML file that opens from the disk.

        Args:
            path: the file to write.
            options: of :func:`pairscale.reporting.verbs.write_report`: ``title``, ``texts``, ``pseudonyms`` and
                ``interactive``; of a ranking also ``samples`` and ``judge``.

        Returns:
            The file that was written.
        """
        return Path(import_module("pairscale.reporting.verbs").write_report(self, path, **options))


# What is shown


def _notices(result: ReprMixin) -> list[str]:
    notices = [_cut(printable(str(text)), LONGEST_LINE) for text in getattr(result, "notices", ())]
    more = len(notices) - MAX_NOTICES
    return notices if more <= 0 else [*notices[:MAX_NOTICES], f"{more} more in .notices"]


def _main_table(result: ReprMixin) -> Any:
    held = None if result._table is None else getattr(result, result._table)
    return held() if callable(held) else held


def _html_table(result: ReprMixin) -> str:
    """The main table as Polars shows it, without columns that hold nothing."""
    from polars import Config

    table: pl.DataFrame | None = None if result._columns is None else _main_table(result)
    if table is None or table.is_empty():
        return ""
    names = [name for name in result._columns or table.columns if name in table.columns]
    table = table.select(name for name in names if table[name].null_count() < table.height)
    with Config(tbl_rows=MAX_ROWS, tbl_cols=MAX_COLUMNS, fmt_str_lengths=LONGEST_CELL, float_precision=3):
        return _visible(table._repr_html_().replace("\n", " "))


# Text that is safe to show


def printable(text: str) -> str:
    """A text on one line, without the characters that would command the terminal."""
    return _visible(" ".join(text.split()))


def _visible(text: str) -> str:
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def as_cell(value: Any, digits: int = 3) -> str:
    """A value as a cell of a table: a number with this many decimals, a text on one line and not endless."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:z.{digits}f}"
    return _cut(printable(str(value)[: 4 * LONGEST_CELL]), LONGEST_CELL)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


# Columns side by side


def text_lines(grid: Sequence[Sequence[str]], numeric: Sequence[bool], room: int) -> tuple[list[str], int]:
    """A table as lines of text: numbers to the right and never cut.

    Where it is too wide, texts are cut shorter; if that is not enough, the last columns are left out.

    Args:
        grid: the cells, row by row, the head first.
        numeric: which columns are numbers.
        room: how wide a line may be.

    Returns:
        The lines, and how many columns they have.
    """
    from rich.cells import cell_len, set_cell_size

    natural = [max(cell_len(row[place]) for row in grid) for place in range(len(numeric))]
    widths = _fitted(natural, numeric, room)
    lines = []
    for row in grid:
        cells = []
        for cell, width, right in zip(row, widths, numeric, strict=False):
            text = cell if cell_len(cell) <= width else set_cell_size(cell, width - 1).rstrip() + "…"
            space = " " * (width - cell_len(text))
            cells.append(space + text if right else text + space)
        lines.append((" " * _GAP).join(cells).rstrip())
    return lines, len(widths)


def _fitted(natural: Sequence[int], numeric: Sequence[bool], room: int) -> list[int]:
    """The widths of as many columns as there is room for, the first always."""
    for count in range(len(natural), 0, -1):
        for longest in range(LONGEST_CELL, SHORTEST_CELL - 1, -1):
            kinds = zip(natural[:count], numeric, strict=False)
            widths = [width if is_number else min(width, longest) for width, is_number in kinds]
            if sum(widths) + _GAP * (count - 1) <= room:
                return widths
    return [natural[0] if numeric[0] else min(natural[0], room)]
