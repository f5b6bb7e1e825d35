"""The tables that people meet: their columns, and how any kind of table becomes one of ours.

Every function of pairscale takes pandas, Polars, Arrow, a list of dicts or a dict of columns, and returns Polars.
The schemas below are the promise: names, order and types. A table may have further columns behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import polars as pl

from pairscale.core.errors import MissingExtraError, TableError
from pairscale.core.notices import plural

Table: TypeAlias = Any
"""A table of any kind: Polars, pandas, Arrow, a list of dicts, a dict of columns, or an object with ``results``."""

Row: TypeAlias = Mapping[str, Any]
"""A row of a table or of a log: values by the names of columns."""
Values: TypeAlias = dict[str, Any]
"""Values by their names, such as the columns of a row that is being made."""
Schema: TypeAlias = dict[str, pl.DataType]
"""Columns and their types."""

_TEXT = pl.String()
_INT = pl.Int64()
_REAL = pl.Float64()

SAMPLES: Schema = {"ID": _TEXT, "text": _TEXT}
"""Samples: one row per text; other columns are kept."""

PAIRS: Schema = {"ID1": _TEXT, "text1": _TEXT, "ID2": _TEXT, "text2": _TEXT}
"""Pairs: one row per question; a column ``name1`` with its ``name2`` describes the two samples and moves with them."""

COMPARISON_COLUMNS: Schema = {
    "outcome": _TEXT,
    "judge_id": _TEXT,
    "trait": _TEXT,
    "template_id": _TEXT,
    "condition_id": _TEXT,
    "probability": _REAL,
}
"""The columns that describe a comparison, behind the other columns of :data:`RESULTS`."""

RESULTS: Schema = {
    "custom_id": _TEXT,
    "ID1": _TEXT,
    "ID2": _TEXT,
    "model": _TEXT,
    "object_type": _TEXT,
    "status_code": _INT,
    "error_message": _TEXT,
    "thoughts": _TEXT,
    "content": _TEXT,
    "better_sample": _TEXT,
    "better_id": _TEXT,
    "prompt_tokens": _INT,
    "completion_tokens": _INT,
    "total_tokens": _INT,
    "prompt_cached_tokens": _INT,
    "reasoning_tokens": _INT,
    "latency_s": _REAL,
    "cost": _REAL,
    **COMPARISON_COLUMNS,
}
"""Results of judging, one row per judged pair."""


def result_columns(*, raw: bool, more: Mapping[str, pl.DataType] | None = None) -> Schema:
    """The columns of results with those that only some have, in the order of all.

    Args:
        raw: with ``raw_response``, behind ``cost``.
        more: what one provider's batches add, behind ``reasoning_tokens``.
    """
    columns: Schema = {}
    for name, kind in RESULTS.items():
        columns[name] = kind
        if name == "reasoning_tokens" and more:
            columns.update(more)
        if name == "cost" and raw:
            columns["raw_response"] = _TEXT
    return columns


ANSWER_COLUMNS = ("ID1", "ID2", "better_id", "outcome", "judge_id", "model", "content", "cost")
"""What is shown of a result where there is not room for everything."""

CANONICAL: Schema = {
    "pair_uid": _TEXT,
    "unordered_key": _TEXT,
    "ordered_key": _TEXT,
    "A_id": _TEXT,
    "B_id": _TEXT,
    "better_id": _TEXT,
    "winner_pos": _INT,
    "phase": _TEXT,
    "iter": _INT,
    "received_at": pl.Datetime("us", "UTC"),
    "backend": _TEXT,
    "model": _TEXT,
}
"""Canonical results, the input of the Bayesian model."""

FAILED: Schema = {
    "error_code": _TEXT,
    "error_message": _TEXT,
    "attempt": _INT,
    "attempted_at": _TEXT,
    "outcome": _TEXT,
    "failure": _TEXT,
    "status_code": _INT,
    "content": _TEXT,
    "raw_response": _TEXT,
    "prompt_tokens": _INT,
    "completion_tokens": _INT,
    "total_tokens": _INT,
    "cost": _REAL,
}
"""What a failed pair or attempt says, behind the pair's own columns."""

TEXT_COLUMNS = (
    "ID", "ID1", "ID2", "A_id", "B_id", "better_id", "object1", "object2", "winner", "loser", "candidate_chosen",
    "candidate_not_chosen", "judge", "judge_id", "pair_uid", "custom_id", "condition_id", "text", "text1", "text2",
)  # fmt: skip
"""Columns that are text whatever a file's cells look like: the id ``007`` stays ``007``."""

PAIRS_CHOSEN = "pairs_chosen"
"""In exported results, the column that says ``adaptive`` where a pair was chosen by what earlier answers said."""

TIMES = "pairscale times"
"""In tables of different rows, the column that says how often each occurs."""

_SHOWN = 5
_numbered: ContextVar[bool] = ContextVar("numbered", default=True)
_MOST_DIGITS = 2**53  # up to here a float is the whole number that it shows


def listed(names: Sequence[Any], shown: int = _SHOWN) -> str:
    """Names for a message: the first few, quoted, and how many more there are."""
    head = ", ".join(repr(str(name)) for name in names[:shown])
    return head if len(names) <= shown else f"{head} and {len(names) - shown:,} more"


@contextmanager
def unnumbered() -> Iterator[None]:
    """Inside the block, messages name no row by its number: the rows at hand are not those of the user's table."""
    token = _numbered.set(False)
    try:
        yield
    finally:
        _numbered.reset(token)


def times_of(frame: pl.DataFrame) -> pl.Series | None:
    """How often each row occurs, where rows are counted."""
    return frame[TIMES] if TIMES in frame.columns else None


def row_numbers(where: pl.Series) -> str:
    """The rows where ``where`` is true, for a message: counted from 1, without the header."""
    rows = where.arg_true() + 1
    if not _numbered.get():
        return plural(len(rows), "different row")
    more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:_SHOWN]))}{more}"


def to_frame(data: Table, what: str = "the table") -> pl.DataFrame:
    """Any kind of table as a Polars frame.

    Args:
        data: Polars (also lazy), pandas, Arrow, a list of dicts, a dict of columns, or what ``submit_pairs``, ``rank``
            and others return, by its ``results``. A named index of a pandas table becomes a column.
        what: its name in an error message.

    Raises:
        TableError: when it is none of these, or cannot be a table.
    """
    if isinstance(data, pl.DataFrame):
        return data
    held = getattr(data, "results", None)
    if isinstance(held, pl.DataFrame):
        return held
    try:
        frame = _converted(data)
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading a pandas table", "pandas") from error
    except (pl.exceptions.PolarsError, ValueError, TypeError, OverflowError, NotImplementedError, OSError) as error:
        raise TableError(f"{what} cannot be used as a table: {first_line(error)}") from None
    if frame is None:
        raise TableError(f"{what} is a {type(data).__name__}; give a pandas, Polars or Arrow table, or a list of dicts")
    return frame


def _converted(data: Table) -> pl.DataFrame | None:
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, Mapping):
        return pl.DataFrame(dict(data), strict=False)
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return pl.DataFrame(list(data), infer_schema_length=None, strict=False)
    if hasattr(data, "iloc"):
        return _from_pandas(data) if hasattr(data, "columns") else None
    return pl.DataFrame(data) if hasattr(data, "__arrow_c_stream__") else None


def _from_pandas(data: Any) -> pl.DataFrame:
    unnamed = any(name is None or name in data.columns for name in data.index.names)
    data = data.reset_index(drop=unnamed)
    names = [str(name) for name in data.columns]
    try:
        return pl.DataFrame(data)
    except (ValueError, TypeError):
        # Arrow takes no column of numbers and text; ids typed by hand often are one.
        if len(set(names)) < len(names):
            raise
        values = data.astype(object).where(data.notna(), None)
        return pl.DataFrame({name: values.iloc[:, place].tolist() for place, name in enumerate(names)}, strict=False)


def first_line(error: BaseException) -> str:
    """What an error of another library says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def require_columns(frame: pl.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise a :class:`TableError` that names the columns ``frame`` lacks."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise TableError(f"{what}: no column {listed(missing)}; it has {listed(frame.columns, 20) or 'none'}")


def require_ids(frame: pl.DataFrame, columns: Sequence[str], what: str) -> pl.DataFrame:
    """The frame with its id columns as strings, none of them missing or blank.

    Whole numbers become their digits, as users expect where a spreadsheet turned ids into numbers.

    Raises:
        TableError: that names the rows (counted from 1, without the header) whose id is missing.
    """
    require_columns(frame, columns, what)
    frame = frame.with_columns(id_text(frame[name], what) for name in columns)
    for name in columns:
        ids = frame[name]
        # What begins with a visible letter of ASCII is seen fastest; of all else, there are far fewer ids than rows.
        others = ids.filter(~ids.is_between("!", "~").fill_null(value=False))
        if is_blank(others.unique()).any():
            blank = is_blank(ids)
            raise TableError(f"{what}: column {name!r} is empty in {row_numbers(blank)}; every row needs an id")
    return frame


def id_text(ids: pl.Series, what: str = "the table") -> pl.Series:
    """Ids as text; whole numbers that came as 7.0 or 7.00 become 7, and NaN is no id."""
    if ids.dtype.is_float() or ids.dtype.is_decimal():
        ids = ids.cast(pl.Float64).fill_nan(None)
        is_whole = ((ids == ids.round()) & (ids.abs() <= _MOST_DIGITS)).fill_null(value=True)
        return ids.set(~is_whole, None).cast(pl.Int64).cast(pl.String).zip_with(is_whole, ids.cast(pl.String))
    return as_text(ids, what)


def as_text(column: pl.Series, what: str) -> pl.Series:
    """A column as text; one of objects, lists or bytes is refused by its name."""
    if isinstance(column.dtype, pl.Struct):  # Polars writes its fields one after another, without their names
        raise TableError(f"{what}: column {column.name!r} holds objects, not text; name a field in it, such as a.b")
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise TableError(f"{what}: column {column.name!r} holds {column.dtype}, not text") from None


def is_blank(text: pl.Series) -> pl.Series:
    """Where a text is missing or nothing but white space."""
    # A search stops at the first letter; stripping would copy every text of every pair.
    return ~text.str.contains(r"\S").fill_null(value=False)
