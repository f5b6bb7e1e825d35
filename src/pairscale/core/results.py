"""Results of any known form, read as ``ID1 ID2 better_id``: ours, R's, and those that other tools write.

A form is recognised by the names of its columns, in any order and in upper or lower case. What could be read in two
ways is refused, and the message names the options that settle it: ``a_col``, ``b_col`` and ``winner_col``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import polars as pl

from pairscale.core.columns import JUDGE_COLUMNS, ColumnNames, column_by_path, loose_name
from pairscale.core.errors import TableError
from pairscale.core.notices import notice, plural
from pairscale.core.tables import (
    TIMES,
    Table,
    as_text,
    id_text,
    is_blank,
    listed,
    require_ids,
    row_number,
    row_numbers,
    times_of,
    to_frame,
)

__all__ = [
    "NO_COLUMNS",
    "ORDER_KNOWN",
    "TIE_FLAGS",
    "ResultColumns",
    "Results",
    "as_comparisons",
    "is_matrix",
    "read_form",
    "read_probabilities",
    "text_columns",
]

_SETTLE = " with `a_col=`, `b_col=` and `winner_col=`"
ORDER_KNOWN = "order_known"
"""The column that says, where it is false, that ``ID1`` need not be the text that stood first."""

_SIDES = {
    **dict.fromkeys(("model_a", "model_1", "a", "first", "left", "sample_1", "assistant_a", "assistant a"), "first"),
    **dict.fromkeys(("model_b", "model_2", "b", "second", "right", "sample_2", "assistant_b", "assistant b"), "second"),
}
_MISSING = ("", "na", "nan", "none", "null")
_NEITHER = {
    **dict.fromkeys(("tie", "ties", "tied", "draw", "equal", "tie (bothbad)", "tie (both bad)", "bothbad", "both_bad",
                     "both bad"), "tie"),
    **dict.fromkeys(("tie (inconsistent)", "inconsistent", "flip"), "flip"),
    **dict.fromkeys((*_MISSING, "abstention"), "abstention"),
    "error": "error",
}  # fmt: skip
_COUNTS = {"freq", "frequency", "count", "counts", "n", "times", "wins", "n_wins"}
_MOST_WINS = 5_000_000  # rows that a matrix of counts may become

TIE_FLAGS = ("tie", "draw", "is_tie", "is_draw", "tied")
"""Columns that say, where one is true, that neither of a winner and a loser won."""


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """What a user says about a file of results: columns, or paths such as ``answer.0.id`` where values are nested.

    It is true if a column is named.

    Attributes:
        a_col: the first text.
        b_col: the second text.
        winner_col: who won.
        encoding: of a text file that is not UTF-8.
    """

    a_col: str | None = None
    b_col: str | None = None
    winner_col: str | None = None
    encoding: str | None = None

    def __bool__(self) -> bool:
        return any(name is not None for name in (self.a_col, self.b_col, self.winner_col))


NO_COLUMNS = ResultColumns()


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Results that were read.

    Attributes:
        table: ``ID1 ID2 better_id`` and the columns they came with; ``outcome`` where the form tells a tie from no
            answer, and ``order_known`` (false) where it does not say who stood first.
        form: what they were read as; None for our own tables, which need no guess.
        columns: the columns that say it.
        unknown: verdicts that were not understood, and how often each occurs.
    """

    table: pl.DataFrame
    form: str | None = None
    columns: tuple[str, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def line(self) -> str:
        """What was read, in one line."""
        times = _times(self.table)
        parts = [
            f"{plural(int(times.sum()), 'comparison')}, read as {self.form or 'results'}: {', '.join(self.columns)}"
        ]
        if "outcome" in self.table.columns:
            for outcome in ("tie", "flip"):
                count = int(times.filter(self.table["outcome"].cast(pl.String) == outcome).sum())
                if count:
                    parts.append(plural(count, outcome))
        if self.unknown:
            parts.append(f"not understood, and left out: {_counted(self.unknown)}")
        return "; ".join(parts)


def as_comparisons(results: Table, what: str = "results", columns: ResultColumns = NO_COLUMNS) -> pl.DataFrame:
    """Results of any known form, as ``ID1 ID2 better_id`` and the columns they came with.

    An empty string and the R package's ``NA`` are no winner.

    Args:
        results: see :func:`read_form`.
        what: its name in an error message.
        columns: the columns that a user has named.

    Raises:
        TableError: as :func:`read_form`.
    """
    read = read_form(results, what, columns)
    if read.unknown:
        notice(f"{what}: verdicts that are not understood are left out: {_counted(read.unknown)}")
    return read.table


def read_form(results: Table, what: str = "results", columns: ResultColumns = NO_COLUMNS) -> Results:
    """Recognise the form of results, and read them.

    Knows the forms of the table ``_FORMS``, and square matrices of wins, in which rows beat columns.

    Args:
        results: a table of any kind.
        what: its name in an error message.
        columns: the columns that a user has named; the others are found by their names.

    Raises:
        TableError: when the columns are of no known form or of two, an id is missing, or verdicts cannot be read.
    """
    frame = _framed(results, what)
    if ORDER_KNOWN in frame.columns:
        frame = frame.with_columns(_flags(frame[ORDER_KNOWN], what))
    names = ColumnNames(frame.columns)
    if columns:
        return _by_named_columns(frame, names, columns, what)
    possible = [form for form in _FORMS if names.has(*form.columns)]
    if len({form.sides for form in possible}) > 1:
        meant = " or ".join(" ".join(names.all(*form.columns)) for form in possible)
        raise TableError(f"{what}: could be {meant}; say which columns are meant{_SETTLE}")
    if possible:
        return _read(frame, names, possible[0], what)
    if is_matrix(frame):
        return _matrix(frame, what)
    if _is_model_input(frame, what):
        own = [name for name in frame.columns if name != TIMES]
        named = frame.rename(dict(zip(own, ("object1", "object2", "result"), strict=True)))
        return replace(
            read_form(named, what), form="the first text, the second, and 1 if the first won", columns=tuple(own)
        )
    known = ", ".join(" ".join(form.columns) for form in _FORMS)
    raise TableError(
        f"{what}: columns {listed(frame.columns, 12) or 'none'} are not results; expected {known}, or a square matrix "
        f"of wins; for others, name the columns{_SETTLE}"
    )


def text_columns(frame: pl.DataFrame, given: ResultColumns = NO_COLUMNS) -> set[str]:
    """The columns of a file of results that are text whatever their cells look like: the id ``007`` stays ``007``."""
    named = {given.a_col, given.b_col, given.winner_col}
    ids = {name for name in frame.columns if loose_name(name) in _ID_COLUMNS or name in named}
    return ids | set(frame.columns[:1])  # the names of the rows, where it is a matrix


def read_probabilities(column: pl.Series, what: str) -> pl.Series:
    """Probabilities that the first of two is better, as numbers; what is missing is null.

    Args:
        column: the column.
        what: whose column it is, for the message.

    Raises:
        TableError: when a value is not a number from 0 to 1.
    """
    meaning = "it takes numbers from 0 to 1: how probable it is that the first of the two is better"
    return _numbers(column.alias("probability"), lambda value: value.is_between(0, 1), meaning, what)


def _framed(results: Table, what: str) -> pl.DataFrame:
    """A table as a frame; the index of a pandas matrix, which names the rows, becomes a column."""
    if hasattr(results, "iloc") and getattr(results, "ndim", 0) == 2 and results.index.nlevels == 1:
        if set(map(str, results.index)) & set(map(str, results.columns)):
            return to_frame(results.rename_axis("row").reset_index(), what)
    return to_frame(results, what)


def _flags(column: pl.Series, what: str) -> pl.Series:
    """A column of truth values, as such, as 0 and 1, or as text."""
    if column.dtype == pl.Boolean:
        return column
    text = as_text(column, what).str.to_lowercase()
    words = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
    values = text.replace_strict(words, default=None, return_dtype=pl.Boolean)
    bad = values.is_null() & text.is_not_null() & ~text.is_in(["", "na"])
    if bad.any():
        raise TableError(
            f"{what}: column {column.name!r} is {text.filter(bad)[0]!r} in {row_numbers(bad)}; true or false?"
        )
    return values.alias(column.name)


def _times(frame: pl.DataFrame) -> pl.Series:
    """How often each row occurs: once, unless rows are counted."""
    times = times_of(frame)
    return pl.repeat(1, frame.height, dtype=pl.Int64, eager=True) if times is None else times


def _counted(words: Mapping[str, int]) -> str:
    most = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    head = ", ".join(f"{word!r:.60} ({n:,})" for word, n in most[:12])
    return head if len(most) <= 12 else f"{head} and {len(most) - 12:,} more"


# Forms. A reader gets the table with ID1 and ID2, the columns of the verdict, and the names of the two sides.


_Reader: TypeAlias = Callable[[pl.DataFrame, Sequence[str], tuple[str, str], str], Results]


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of results: the columns of both texts, the columns of the verdict, and how they are read."""

    name: str | None
    sides: tuple[str, str]
    verdict: tuple[str, ...]
    read: _Reader
    is_ordered: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.sides, *self.verdict)


def _read(frame: pl.DataFrame, names: ColumnNames, form: _Form, what: str) -> Results:
    columns = names.all(*form.columns)
    _require_no_counts(frame, columns, what)
    clash = {"ID1", "ID2"}.intersection(frame.columns).difference(columns[:2])
    if clash:
        raise TableError(
            f"{what}: has {listed(columns[:2])} and also a column {listed(sorted(clash))}; leave one of the two out"
        )
    frame = _with_ids(frame, columns[:2], what).rename({columns[0]: "ID1", columns[1]: "ID2"})
    results = form.read(frame, columns[2:], form.sides, what)
    table = results.table if form.is_ordered else _unordered(results.table)
    return replace(results, table=_with_judge(table, names), form=form.name, columns=columns)


def _with_ids(frame: pl.DataFrame, sides: Sequence[str], what: str) -> pl.DataFrame:
    """Both ids as text; as text, values that are not single would be names that no one has given."""
    for name in sides:
        if frame[name].dtype.is_nested():
            raise TableError(f"{what}: column {name!r} holds {frame[name].dtype}, not ids; name a path in it{_SETTLE}")
    return require_ids(frame, sides, what)


def _unordered(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit(value=False).alias(ORDER_KNOWN))


def _with_judge(table: pl.DataFrame, names: ColumnNames) -> pl.DataFrame:
    """With ``judge_id`` or ``judge`` where another column says who judged; a judge that is a list becomes one name."""
    present = names.all(*JUDGE_COLUMNS, "annotator", "labeller")
    if not present:
        return table
    column = table[present[0]]
    if isinstance(column.dtype, pl.List):
        column = column.cast(pl.List(pl.String)).list.join(" ")
    if column.dtype.is_nested():
        return table
    name = loose_name(present[0])
    return table.with_columns(id_text(column, "judge").alias(name if name in JUDGE_COLUMNS else "judge_id"))


def _require_no_counts(frame: pl.DataFrame, read: Collection[str], what: str) -> None:
    """Refuse a column that seems to say how often each comparison happened, as R's tables of frequencies have it."""
    if "weight" in frame.columns:
        return
    for column in frame:
        is_count = column.name.lower() in _COUNTS and column.name not in read and column.dtype.is_integer()
        if is_count and (column.drop_nulls() != 1).any():
            raise TableError(
                f"{what}: column {column.name!r} may say how often each row happened, but every row counts once; "
                "rename it to 'weight' if it does, or leave it out"
            )


def _better(frame: pl.DataFrame, verdict: Sequence[str], _sides: tuple[str, str], what: str) -> Results:
    better = id_text(frame[verdict[0]], what)
    of_pair = ((better == frame["ID1"]) | (better == frame["ID2"])).fill_null(value=False)
    nobody = better.is_in(["", "NA"]) & ~of_pair
    return Results(frame.rename({verdict[0]: "better_id"}).with_columns(better.set(nobody, None).alias("better_id")))


def _first_won(frame: pl.DataFrame, _verdict: Sequence[str], _sides: tuple[str, str], what: str) -> Results:
    ties = ColumnNames(frame.columns).all(*TIE_FLAGS)
    if not ties:
        return Results(frame.with_columns(better_id="ID1"))
    tied = _flags(frame[ties[0]], what).fill_null(value=False)
    return _decided(frame, tied.replace_strict({True: "tie", False: "first"}, return_dtype=pl.String))


def _worded(frame: pl.DataFrame, verdict: Sequence[str], sides: tuple[str, str], what: str) -> Results:
    """One comparison per column of verdicts; the second of two is of the other order, with the same words."""
    if len(verdict) > 1:
        frame = frame.drop("probability", strict=False)  # of which of the comparisons it would be is not known
    outcomes = [_sides_or_ids(frame, column, sides, what) for column in verdict]
    parts = [_understood(frame, column, outcome, what) for column, outcome in zip(verdict, outcomes, strict=True)]
    if len(parts) == 1:
        return parts[0]
    first, second = parts
    turned = second.table.rename({"ID1": "ID2", "ID2": "ID1"}).select(first.table.columns)
    return Results(pl.concat([first.table, turned]), unknown=Counter(first.unknown) + Counter(second.unknown))


def _preferred(frame: pl.DataFrame, verdict: Sequence[str], _sides: tuple[str, str], what: str) -> Results:
    """Labels of people: 1, 2 or tie in the order of the case; ``swapped`` says that the second was shown first."""
    words = _outcomes(frame, verdict[0], {"1": "first", "2": "second"}, what)
    results = _understood(frame, verdict[0], words, what)
    table = results.table
    names = ColumnNames(frame.columns)
    if names.has("criterion") and not names.has("trait"):
        table = table.with_columns(trait=names.all("criterion")[0])
    if not names.has("swapped"):
        return replace(results, table=_unordered(table))
    [swapped] = names.all("swapped")
    is_swapped = pl.lit(_flags(frame[swapped], what).fill_null(value=False))
    table = table.with_columns(
        ID1=pl.when(is_swapped).then("ID2").otherwise("ID1"), ID2=pl.when(is_swapped).then("ID1").otherwise("ID2")
    )
    # Read again, the table must not be turned back; nor is it known of which side a probability would be.
    return replace(results, table=table.drop("preferred", swapped, "probability", strict=False))


def _scored(
    frame: pl.DataFrame, verdict: Sequence[str], _sides: tuple[str, str], what: str, kind: str = "result"
) -> Results:
    """A number says who won: a result, a probability, or a preference of AlpacaEval.

    Preferences are 1 (the first is better) to 2, with 1.5 for a tie, for which older files have 0.
    """
    column = frame[verdict[0]]
    if kind == "result":
        score = _numbers(column, lambda value: value.is_in([0.0, 0.5, 1.0]), _RESULT, what)
    elif kind == "probability":
        score = read_probabilities(column, what)
        frame = frame.with_columns(score)
    else:
        value = _numbers(column, lambda number: number.is_between(1, 2) | (number == 0), _PREFERENCE, what)
        score = (2 - value.set((value == 0).fill_null(value=False), 1.5)).alias("probability")
        if "probability" not in frame.columns:
            frame = frame.with_columns(score)
    return _decided(frame, _by_score(score))


_RESULT = "it must be 1 (the first won), 0 (the second) or 0.5 (a tie)"
_PREFERENCE = "it must be 1 (the first is better) to 2 (the second is), 1.5 for a tie"
_preference = partial(_scored, kind="preference")
_probability = partial(_scored, kind="probability")

_FORMS = (
    _Form(None, ("ID1", "ID2"), ("better_id",), _better),
    _Form(None, ("ID1", "ID2"), ("better_sample",), _worded),
    _Form(None, ("A_id", "B_id"), ("better_id",), _better),
    _Form(None, ("A_id", "B_id"), ("better_sample",), _worded),
    _Form("labels of people", ("ID1", "ID2"), ("preferred",), _preferred),
    _Form("a list of winners and losers", ("winner", "loser"), (), _first_won, is_ordered=False),
    _Form(
        "a session of comparative judgement", ("candidate_chosen", "candidate_not_chosen"), (), _first_won,
        is_ordered=False,
    ),
    _Form(None, ("object1", "object2"), ("result",), _scored),
    _Form("an arena file", ("model_a", "model_b"), ("winner",), _worded),
    _Form("MT-bench games, one in each order", ("model_1", "model_2"), ("g1_winner", "g2_winner"), _worded),
    _Form("MT-bench judgements", ("model_1", "model_2"), ("winner",), _worded),
    _Form("AlpacaEval annotations", ("generator_1", "generator_2"), ("preference",), _preference, is_ordered=False),
    _Form("probabilities, of which the larger one wins", ("ID1", "ID2"), ("probability",), _probability),
)  # fmt: skip
"""Every form, with the better one first where two have the same sides."""

_FORM_COLUMNS = {loose_name(name) for form in _FORMS for name in form.columns} - {"probability"}
_ID_COLUMNS = (_FORM_COLUMNS | {*JUDGE_COLUMNS, "annotator", "labeller", "case_id"}) - {"result", "preference"}


# Verdicts. Of every row, who won: "first", "second", "tie", "flip", "abstention", "error", or null.


def _decided(frame: pl.DataFrame, outcome: pl.Series) -> Results:
    """With ``better_id`` and ``outcome``; where a verdict is missing, the outcome is what the table says itself."""
    winner = pl.when(outcome == "first").then("ID1").when(outcome == "second").then("ID2").alias("better_id")
    kind = outcome.replace({"first": "win", "second": "win"})
    if "outcome" in frame.columns:
        own = as_text(frame["outcome"], "results")
        kind = own.zip_with(kind.is_null() | (kind == "abstention") & own.is_not_null(), kind)
    return Results(frame.with_columns(winner).with_columns(kind.alias("outcome")))


def _understood(frame: pl.DataFrame, column: str, outcome: pl.Series, what: str) -> Results:
    """The same, unless most verdicts of a column, or all wins of a side, are not understood (null): that is refused."""
    times = _times(frame)
    words = pl.DataFrame({"word": id_text(frame[column], what).str.strip_chars(), "n": times})
    counts = words.filter(outcome.is_null()).group_by("word").agg(pl.col("n").sum())
    unknown = {str(word): int(n) for word, n in counts.iter_rows()}
    loses_a_side = {"first", "second"} - set(outcome)
    if unknown and (loses_a_side or sum(unknown.values()) > times.sum() / 2):
        raise TableError(
            f"{what}: column {column!r} holds verdicts that are not understood: {_counted(unknown)}. A verdict is the "
            "id of the text that won, a side (model_a, model_b, a, b, 1, 2), or tie; 0 and 1 alone may mean either "
            "side, unless the column is called result"
        )
    return replace(_decided(frame, outcome), unknown=unknown)


def _sides_or_ids(frame: pl.DataFrame, column: str, sides: tuple[str, str], what: str) -> pl.Series:
    """Verdicts that name a text by its id, or a side by a word: the way that reads more of the column.

    Where both read everything and differ, the column is refused: an id may be called like a word, such as "tie" or "A".
    """
    text = id_text(frame[column], what).str.strip_chars()
    words = {**_SIDES, loose_name(sides[0]): "first", loose_name(sides[1]): "second"}
    if "2" in text and "0" not in text:  # 0 and 1 may be the first and the second, or the second and the first
        words |= {"1": "first", "2": "second"}
    by_word = _outcomes(frame, column, words, what)
    is_first = (text == frame["ID1"]) & (text != frame["ID2"])
    is_second = (text == frame["ID2"]) & (text != frame["ID1"])
    named = pl.when(is_first).then(pl.lit("first")).when(is_second).then(pl.lit("second"))
    by_id = pl.select(named.alias("outcome")).to_series().fill_null(_outcomes(frame, column, {}, what))
    if by_id.null_count() == by_word.null_count() == 0 and not by_id.equals(by_word):
        row = (by_id != by_word).arg_true()[0]
        raise TableError(
            f"{what}: column {column!r} says {text[row]!r} in {row_number(row)}, which is the id of the {by_id[row]} "
            f"text there, and also a word that means {by_word[row]}; call the column better_id if it holds ids"
        )
    return by_id if by_id.null_count() < by_word.null_count() else by_word


def _outcomes(frame: pl.DataFrame, column: str, sides: Mapping[str, str], what: str) -> pl.Series:
    """What words say, with the words for the sides; null where one is not understood."""
    word = id_text(frame[column], f"{what}: column {column!r}").str.strip_chars().str.to_lowercase().fill_null("")
    return word.replace_strict({**sides, **_NEITHER}, default=None, return_dtype=pl.String).alias("outcome")


def _numbers(column: pl.Series, is_valid: Callable[[pl.Series], pl.Series], meaning: str, what: str) -> pl.Series:
    """A column of numbers; what is missing is null, and what is not valid is refused."""
    if column.dtype == pl.Boolean:
        column = column.cast(pl.Int8)
    if column.dtype.is_numeric():  # many rows are read faster as the numbers that they are
        value = column.cast(pl.Float64).fill_nan(None)
        missing = value.is_null()
    else:
        text = as_text(column, what).str.strip_chars()
        value = text.cast(pl.Float64, strict=False).fill_nan(None)
        missing = text.str.to_lowercase().fill_null("").is_in(_MISSING)
    bad = ~is_valid(value).fill_null(value=False) & ~missing
    if bad.any():
        wrong = as_text(column.filter(bad).head(1), what)[0]
        raise TableError(f"{what}: {column.name} is {wrong!r} in {row_numbers(bad)}; {meaning}")
    return value


def _by_score(score: pl.Series) -> pl.Series:
    """Who won by a score from 0, the second, to 1, the first."""
    verdict = pl.when(score > 0.5).then(pl.lit("first")).when(score < 0.5).then(pl.lit("second"))
    return pl.select(verdict.when(score == 0.5).then(pl.lit("tie")).alias("outcome")).to_series()


# Columns that the user has named.


def _by_named_columns(frame: pl.DataFrame, names: ColumnNames, columns: ResultColumns, what: str) -> Results:
    """Results whose columns were named; what was not named is found by its name, if only one column can be meant."""
    first = columns.a_col
    second = columns.b_col
    verdict = columns.winner_col
    if first is None and second is None:
        known = {names.all(*form.sides) for form in _FORMS if form.verdict and names.has(*form.sides)}
        if len(known) == 1:
            first, second = known.pop()
    verdicts = names.all("better_id", "winner", "result", "preference")
    if verdict is None and len(verdicts) == 1:
        verdict = verdicts[0]
    if first is None or second is None or verdict is None or first == second:
        raise TableError(
            f"{what}: name the two texts of a comparison, and the column that says who won,{_SETTLE}; it has "
            f"{listed(frame.columns, 20)}"
        )
    _require_no_counts(frame, (first, second, verdict), what)
    # Without the columns of other forms, or it could be read again in another way.
    rest = frame.drop([name for name in frame.columns if loose_name(name) in _FORM_COLUMNS or name in (first, second)])
    readers: dict[str, _Reader] = {"result": _scored, "preference": _preference}
    read = readers.get(loose_name(verdict), _worded)
    table = rest.with_columns(
        column_by_path(frame, first, what).alias("ID1"),
        column_by_path(frame, second, what).alias("ID2"),
        column_by_path(frame, verdict, what).alias("verdict"),
    )
    table = _with_ids(table.select("ID1", "ID2", pl.exclude("ID1", "ID2")), ("ID1", "ID2"), what)
    results = read(table, ["verdict"], (first, second), what)
    table = results.table.drop("verdict")
    if verdict in (first, second):  # a list of winners and losers, under other names
        table = _unordered(table)
    return replace(results, table=_with_judge(table, names), form="results", columns=(first, second, verdict))


# Tables of other shapes.


def is_matrix(frame: pl.DataFrame) -> bool:
    """Whether a table looks like a matrix: its first column holds names of other columns, which hold numbers."""
    if frame.width < 2 or not all(kind.is_numeric() or kind == pl.Null for kind in frame.dtypes[1:]):
        return False
    kind = frame.dtypes[0]
    if kind.is_nested() or kind in {pl.Object, pl.Binary} or frame.height > 2 * frame.width:
        return False
    return not set(id_text(frame.to_series(0))).isdisjoint(frame.columns[1:])


def _matrix(frame: pl.DataFrame, what: str) -> Results:
    """Wins by row and column, as one comparison per win, with ``win``, its number in the cell."""
    names = id_text(frame.to_series(0), what)
    if is_blank(names).any() or names.is_duplicated().any():
        raise TableError(f"{what}: a matrix of wins needs one row per text, with its id in the first column")
    apart = sorted(set(names) ^ set(frame.columns[1:]))
    if apart:
        raise TableError(
            f"{what}: looks like a matrix of wins, but rows and columns are not the same texts; only one of them has "
            f"{listed(apart)}"
        )
    cells = frame.select(names.alias("ID1"), *(pl.col(name).cast(pl.Float64) for name in frame.columns[1:]))
    cells = cells.unpivot(index="ID1", variable_name="ID2", value_name="wins").filter(pl.col("wins").fill_nan(0) != 0)
    wins = pl.col("wins")
    bad = cells.filter((wins < 0) | (wins % 1 != 0) | wins.is_infinite() | (pl.col("ID1") == pl.col("ID2")))
    if bad.height:
        raise TableError(
            f"{what}: {bad['ID1'][0]!r} beats {bad['ID2'][0]!r} {bad['wins'][0]:g} times; a matrix of wins holds whole "
            "numbers and an empty diagonal (write ties as rows of object1 object2 result, with 0.5)"
        )
    total = cells["wins"].sum()
    if total > _MOST_WINS:
        raise TableError(f"{what}: {total:,.0f} wins are too many for one row each; give a column weight instead")
    # The number tells a win from the others of its cell: they were counted, so they are no copies of a row.
    rows = cells.with_columns(win=pl.int_ranges(1, wins.cast(pl.Int64) + 1)).explode("win")
    table = _unordered(rows.select("ID1", "ID2", better_id="ID1", win="win"))
    return Results(table, "a matrix of wins, in which rows beat columns", (frame.columns[0],))


def _is_model_input(frame: pl.DataFrame, what: str) -> bool:
    """Whether it is R's input under other names: two columns that share ids, and results of 1, 0 and 0.5."""
    columns = [column for column in frame if column.name != TIMES]
    if len(columns) != 3 or not frame.height or any(column.dtype.is_nested() for column in columns):
        return False
    first = set(id_text(columns[0], what).drop_nulls())
    result = columns[2].cast(pl.Float64, strict=False).drop_nulls()
    is_result = not result.is_empty() and result.is_in([0.0, 0.5, 1.0]).all()
    return is_result and not first.isdisjoint(id_text(columns[1], what).drop_nulls())
