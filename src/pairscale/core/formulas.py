"""Text in CSV files that a spreadsheet program would run as a formula.

One rule: text that begins with ``= + - @``, a tab or a carriage return, and is not a number, is written with an
apostrophe before it; so is text that begins with apostrophes before such a character, so that reading, which takes one
apostrophe away, gives every text back as it was.
"""

from __future__ import annotations

import re

import polars as pl

_FORMULA = r"^('*[=+\-@\t\r])"
_GUARDED = r"^'('*[=+\-@\t\r])"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def guarded(text: str) -> str:
    """A text as a CSV cell holds it.

    Example:
        >>> guarded("=1+1"), guarded("-1.5"), guarded("plain")
        ("'=1+1", '-1.5', 'plain')
    """
    return text if re.match(_NUMBER, text) else re.sub(_FORMULA, r"'\1", text)


def unguarded(cell: str) -> str:
    """The text that a CSV cell holds."""
    return re.sub(_GUARDED, r"\1", cell)


def guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """A table as a CSV file holds it: names of columns and cells of text."""
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    text = pl.col(pl.String)
    written = pl.when(text.str.contains(_NUMBER)).then(text).otherwise(text.str.replace(_FORMULA, "'${1}"))
    return frame.with_columns(written.name.keep()).rename(guarded)


def unguarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The table that a CSV file holds."""
    return frame.with_columns(pl.col(pl.String).str.replace(_GUARDED, "${1}")).rename(unguarded)
