"""Results of any known form, read as ``ID1 ID2 better_id``: ours, R's, and those that other tools write.

A form is recognised by the names of its columns, in any order and in upper or lower case. What could be read in two
ways is refused, and the message names the options that settle it: ``a_col``, ``b_col`` and ``winner_col``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
_NEITHER = {
    **dict.fromkeys(("tie", "ties", "tied", "draw", "equal", "tie (bothbad)", "tie (both bad)", "bothbad", "both_bad",
                     "both bad"), "tie"),
    **dict.fromkeys(("tie (inconsistent)", "inconsistent", "flip"), "flip"),
    **dict.fromkeys(("", "na", "nan", "none", "null", "abstention"), "abstention"),
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
        unknown: verdicts that were not understood, and how often each stands there.
        remarks: what else to know about the reading.
    """

    table: pl.DataFrame
    form: str | None = None
    columns: tuple[str, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])
    remarks: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """What was read, in one line."""
        times = _times(self.table)
        n = plural(int(times.sum()), "comparison")
        parts = [f"{n}, read as {self.form or 'results'}: {', '.join(self.columns)}"]
        if "outcome" in self.table.columns:
            outcome = self.table["outcome"].cast(pl.String)
            ties = int(times.filter(outcome == "tie").sum())
            flips = int(times.filter(outcome == "flip").sum())
            if ties:
                parts.append(plural(ties, "tie"))
            if flips:
                parts.append(f"{plural(flips, 'flip')} between orders")
        parts += self.remarks
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

    Knows ``ID1 ID2 better_id`` (also with ``better_sample`` only), ``A_id B_id better_id``, ``object1 object2 result``
    (1, 0, or 0.5 for a tie), ``winner loser``, ``candidate_chosen candidate_not_chosen`` (sessions of comparative
    judgement), ``model_a model_b winner`` (arena files), ``model_1 model_2 g1_winner g2_winner`` or ``winner``
    (MT-bench), ``generator_1 generator_2 preference`` (AlpacaEval), labels with ``ID1 ID2 preferred``, and square
    matrices of wins, in which rows beat columns.

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
    possible = [form for form in _FORMS if names.has(*form.sides, *form.verdict)]
    if len({form.sides for form in possible}) > 1:
        meant = " or ".join(" ".join(form.present(names)) for form in possible)
        raise TableError(f"{what}: could be {meant}; say which columns are meant{_SETTLE}")
    if possible:
        return _read(frame, names, possible[0], what)
    other = _matrix(frame, what) if is_matrix(frame) else _three(frame, what)
    if other is not None:
        return other
    for sides in (("ID1", "ID2"), ("A_id", "B_id")):
        if names.has(*sides):
            raise TableError(
                f"{what}: no column 'better_id' and no column 'better_sample', one of which says who won; it has "
                f"{listed(frame.columns, 20)}. Name it{_SETTLE}"
            )
    raise TableError(
        f"{what}: columns {listed(frame.columns, 12) or 'none'} are not results; expected ID1 ID2 better_id, A_id B_id "
        "better_id, object1 object2 result, winner loser, candidate_chosen candidate_not_chosen, model_a model_b "
        f"winner, model_1 model_2 g1_winner g2_winner, generator_1 generator_2 preference, or a square matrix of wins; "
        f"for others, name the columns{_SETTLE}"
    )


def text_columns(frame: pl.DataFrame, given: ResultColumns = NO_COLUMNS) -> set[str]:
    """The columns of a file of results that are text whatever their cells look like: the id ``007`` stays ``007``."""
    named = {name for name in (given.a_col, given.b_col, given.winner_col) if name is not None}
    ids = {name for name in frame.columns if loose_name(name) in _ID_COLUMNS or name in named}
    return ids | set(frame.columns[:1])  # the names of the rows, where it is a matrix


# Forms. Each says of every row who won: "first", "second", "tie", "flip", "abstention", "error", or null for no answer.


@dataclass(frozen=True, slots=True, eq=False)
class _Verdicts:
    """Who won, row by row; the words that were not understood; what else to know."""

    outcome: pl.Series
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of results: the columns of both texts, the columns of the verdict, and how they are read."""

    name: str | None
    sides: tuple[str, str]
    verdict: tuple[str, ...]
    read: Callable[[pl.DataFrame, ColumnNames, tuple[str, str], str], Results]
    is_ordered: bool = True

    def present(self, names: ColumnNames) -> tuple[str, ...]:
        return names.all(*self.sides, *self.verdict)


def _read(frame: pl.DataFrame, names: ColumnNames, form: _Form, what: str) -> Results:
    columns = form.present(names)
    _require_no_counts(frame, columns, what)
    clash = [name for name in ("ID1", "ID2") if name in frame.columns and name not in columns[:2]]
    if clash:
        raise TableError(
            f"{what}: has {listed(columns[:2])} and also a column {listed(clash)}; leave one of the two out"
        )
    frame = _with_ids(frame, columns[:2], what).rename({columns[0]: "ID1", columns[1]: "ID2"})
    results = form.read(frame, names, form.sides, what)
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
    for name in (*JUDGE_COLUMNS, "annotator", "labeller"):
        own_name = names.find(name)
        if own_name is None:
            continue
        column = table[own_name]
        if isinstance(column.dtype, pl.List):
            column = column.cast(pl.List(pl.String)).list.join(" ")
        if column.dtype.is_nested():
            return table
        return table.with_columns(id_text(column, "judge").alias(name if name in JUDGE_COLUMNS else "judge_id"))
    return table


def _decided(frame: pl.DataFrame, verdicts: _Verdicts) -> Results:
    """With ``better_id`` and ``outcome``; where a verdict is missing, the outcome is what the table says itself."""
    outcome = verdicts.outcome
    winner = pl.when(outcome == "first").then("ID1").when(outcome == "second").then("ID2").alias("better_id")
    kind = outcome.replace({"first": "win", "second": "win"})
    if "outcome" in frame.columns:
        kind = kind.fill_null(as_text(frame["outcome"], "results"))
    table = frame.with_columns(winner).with_columns(kind.alias("outcome"))
    return Results(table, unknown=verdicts.unknown, remarks=verdicts.remarks)


def _by_score(score: pl.Series) -> pl.Series:
    """Who won by a score from 0, the second, to 1, the first."""
    verdict = pl.when(score > 0.5).then(pl.lit("first")).when(score < 0.5).then(pl.lit("second"))
    return pl.select(verdict.when(score == 0.5).then(pl.lit("tie")).alias("outcome")).to_series()


def _flags(column: pl.Series, what: str) -> pl.Series:
    """A column of truth values, as such, as 0 and 1, or as text."""
    if column.dtype == pl.Boolean:
        return column
    text = as_text(column, what).str.to_lowercase()
    words = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": None, "na": None}
    values = text.replace_strict(words, default=None, return_dtype=pl.Boolean)
    bad = values.is_null() & text.is_not_null() & ~text.is_in(["", "na"])
    if bad.any():
        raise TableError(
            f"{what}: column {column.name!r} is {text.filter(bad)[0]!r} in {row_numbers(bad)}; true or false?"
        )
    return values.alias(column.name)


def _better(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    [name] = names.all("better_id")
    better = id_text(frame[name], what)
    of_pair = ((better == frame["ID1"]) | (better == frame["ID2"])).fill_null(value=False)
    nobody = better.is_in(["", "NA"]) & ~of_pair
    return Results(frame.rename({name: "better_id"}).with_columns(better.set(nobody, None).alias("better_id")))


def _better_sample(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    side = as_text(frame[names.all("better_sample")[0]], what)
    winner = pl.when(side == "SAMPLE_1").then("ID1").when(side == "SAMPLE_2").then("ID2")
    return Results(frame.with_columns(winner.alias("better_id")))


def _result(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    column = frame[names.all("result")[0]]
    missing = column.is_null()
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        column = as_text(column, what)
        missing = column.is_null() | column.is_in(["", "NA", "NaN"])
    result = column.cast(pl.Float64, strict=False).fill_nan(None)
    known = (result == 0) | (result == 1) | (result == 0.5)
    bad = ~(known.fill_null(value=False) | missing | (result.is_null() & column.dtype.is_float()))
    if bad.any():
        raise TableError(
            f"{what}: result is {str(column.filter(bad)[0])!r} in {row_numbers(bad)}; it must be 1 (the first won), "
            "0 (the second) or 0.5 (a tie)"
        )
    return _decided(frame, _Verdicts(_by_score(result)))


def _first_won(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    ties = names.all(*TIE_FLAGS)
    if not ties:
        return Results(frame.with_columns(better_id="ID1"))
    tied = _flags(frame[ties[0]], what).fill_null(value=False)
    outcome = tied.replace_strict({True: "tie", False: "first"}, return_dtype=pl.String)
    return _decided(frame, _Verdicts(outcome, remarks=(f"ties where {ties[0]!r} is true",)))


def _preferred(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    """Labels of people: 1, 2 or tie in the order of the case; ``swapped`` says that the second was shown first."""
    read = _read_words(frame, names.all("preferred")[0], {"1": "first", "2": "second"}, what)
    results = _decided(frame, read)
    table = results.table
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


def _worded(frame: pl.DataFrame, names: ColumnNames, sides: tuple[str, str], what: str) -> Results:
    return _decided(frame, _read_sides_or_ids(frame, names.all("winner")[0], sides, what))


def _mt_bench_games(frame: pl.DataFrame, names: ColumnNames, sides: tuple[str, str], what: str) -> Results:
    """Two games per line, the second of them in the other order; winners are named as in the first."""
    frame = frame.drop("probability", strict=False)  # of which game it would be is not known
    turned = frame.rename({"ID1": "ID2", "ID2": "ID1"}).select(frame.columns)
    first = _decided(frame, _read_sides_or_ids(frame, names.all("g1_winner")[0], sides, what))
    second = _decided(turned, _read_sides_or_ids(turned, names.all("g2_winner")[0], (sides[1], sides[0]), what))
    unknown = Counter(first.unknown) + Counter(second.unknown)
    remarks = ("two comparisons per line, one in each order",)
    return Results(pl.concat([first.table, second.table]), unknown=unknown, remarks=remarks)


def _alpaca(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    """AlpacaEval's preferences: 1 (the first is better) to 2, with 1.5 for a tie, for which older files have 0."""
    [column] = names.all("preference")
    where = f"{what}: column {column!r}"
    times = _times(frame)
    text = as_text(frame[column], where).str.strip_chars()
    value = text.cast(pl.Float64, strict=False).fill_nan(None)
    value = value.set((value == 0).fill_null(value=False), 1.5)
    good = value.is_between(1, 2).fill_null(value=False)
    bad = ~good & text.is_not_null() & ~text.str.to_lowercase().is_in(["", "na", "nan", "none", "null"])
    unknown = _words_where(text, bad, times)
    if sum(unknown.values()) * 2 > times.sum():
        raise TableError(
            f"{where} must be 1 (the first is better) to 2 (the second is), 1.5 for a tie; it has {_counted(unknown)}"
        )
    probability = (2 - value.set(~good, None)).alias("probability")
    graded = int(times.filter(probability.is_not_null() & ~probability.is_in([0.0, 0.5, 1.0])).sum())
    remarks: tuple[str, ...] = ()
    if graded:
        remarks = (f"{graded:,} graded, kept as probability; the more probable side counts as the winner",)
    results = _decided(frame, _Verdicts(_by_score(probability), unknown, remarks))
    if "probability" in frame.columns:
        return results
    return replace(results, table=results.table.with_columns(probability))


def _graded(frame: pl.DataFrame, names: ColumnNames, _sides: tuple[str, str], what: str) -> Results:
    probability = read_probabilities(frame[names.all("probability")[0]], what)
    remarks = ("the more probable side is the winner",)
    return _decided(frame.with_columns(probability), _Verdicts(_by_score(probability), remarks=remarks))


_FORMS = (
    _Form(None, ("ID1", "ID2"), ("better_id",), _better),
    _Form(None, ("ID1", "ID2"), ("better_sample",), _better_sample),
    _Form(None, ("A_id", "B_id"), ("better_id",), _better),
    _Form(None, ("A_id", "B_id"), ("better_sample",), _better_sample),
    _Form("labels of people", ("ID1", "ID2"), ("preferred",), _preferred),
    _Form("a list of winners and losers", ("winner", "loser"), (), _first_won, is_ordered=False),
    _Form(
        "a session of comparative judgement", ("candidate_chosen", "candidate_not_chosen"), (), _first_won,
        is_ordered=False,
    ),
    _Form(None, ("object1", "object2"), ("result",), _result),
    _Form("an arena file", ("model_a", "model_b"), ("winner",), _worded),
    _Form("MT-bench judgements", ("model_1", "model_2"), ("g1_winner", "g2_winner"), _mt_bench_games),
    _Form("MT-bench judgements", ("model_1", "model_2"), ("winner",), _worded),
    _Form("AlpacaEval annotations", ("generator_1", "generator_2"), ("preference",), _alpaca, is_ordered=False),
    _Form("probabilities", ("ID1", "ID2"), ("probability",), _graded),
)  # fmt: skip
"""Every form, with the better one first where two have the same sides."""

_FORM_COLUMNS = {loose_name(name) for form in _FORMS for name in (*form.sides, *form.verdict)} - {"probability"}
_ID_COLUMNS = (_FORM_COLUMNS | {*JUDGE_COLUMNS, "annotator", "labeller", "case_id"}) - {"result", "preference"}


# Verdicts in words.


def _read_sides_or_ids(frame: pl.DataFrame, column: str, sides: tuple[str, str], what: str) -> _Verdicts:
    """Verdicts that name a text by its id, or a side by a word: one way for the whole column.

    The way that leaves fewer verdicts unread is taken. Where both read everything and differ, the column is refused: an
    id may be called like a word, such as "tie" or "A".
    """
    words = dict(_SIDES)
    words |= {loose_name(sides[0]): "first", loose_name(sides[1]): "second"}
    figures = set(id_text(frame[column], what).str.strip_chars()) & {"0", "2"}
    if figures == {"2"}:  # 0 and 1 may be the first and the second, or the second and the first
        words |= {"1": "first", "2": "second"}
    by_word = _outcomes(frame, column, words, what)
    text = id_text(frame[column], what).str.strip_chars()
    of_first = text == frame["ID1"]
    of_second = text == frame["ID2"]
    apart = frame["ID1"] != frame["ID2"]
    named = pl.when(apart & of_first).then(pl.lit("first")).when(apart & of_second).then(pl.lit("second"))
    by_id = pl.select(named.alias("outcome")).to_series().fill_null(_outcomes(frame, column, {}, what))
    times = _times(frame)
    unread_ids = times.filter(by_id.is_null()).sum()
    unread_words = times.filter(by_word.is_null()).sum()
    if unread_ids == unread_words == 0 and not by_id.equals(by_word):
        row = (by_id != by_word).arg_true()[0]
        raise TableError(
            f"{what}: column {column!r} says {text[row]!r} in {row_number(row)}, which is the id of the {by_id[row]} "
            f"text there, and also a word that means {by_word[row]}; call the column better_id if it holds ids"
        )
    has_ids = bool(by_id.is_in(["first", "second"]).any())
    if unread_ids < unread_words or (unread_ids == unread_words and has_ids):
        return _understood(frame, column, by_id, what)
    return _understood(frame, column, by_word, what)


def _read_words(frame: pl.DataFrame, column: str, sides: Mapping[str, str], what: str) -> _Verdicts:
    """Verdicts that name a side by one of the given words."""
    return _understood(frame, column, _outcomes(frame, column, sides, what), what)


def _outcomes(frame: pl.DataFrame, column: str, sides: Mapping[str, str], what: str) -> pl.Series:
    """What words say, with the words for the sides; null where one is not understood."""
    word = id_text(frame[column], f"{what}: column {column!r}").str.strip_chars().str.to_lowercase().fill_null("")
    return word.replace_strict({**sides, **_NEITHER}, default=None, return_dtype=pl.String).alias("outcome")


def _understood(frame: pl.DataFrame, column: str, outcome: pl.Series, what: str) -> _Verdicts:
    """Refuse a column of which most, or all wins of a side, are not understood."""
    text = id_text(frame[column], what).str.strip_chars()
    times = _times(frame)
    unknown = _words_where(text, outcome.is_null(), times)
    loses_a_side = {"first", "second"} - set(outcome)
    if unknown and (loses_a_side or sum(unknown.values()) > times.sum() / 2):
        raise TableError(
            f"{what}: column {column!r} holds verdicts that are not understood: {_counted(unknown)}. A verdict is the "
            "id of the text that won, a side (model_a, model_b, a, b, 1, 2), or tie; 0 and 1 alone may mean either "
            "side, unless the column is called result"
        )
    return _Verdicts(outcome, unknown)


def _times(frame: pl.DataFrame) -> pl.Series:
    """How often each row stands there: once, unless rows are counted."""
    times = times_of(frame)
    return pl.repeat(1, frame.height, dtype=pl.Int64, eager=True) if times is None else times


def _words_where(text: pl.Series, where: pl.Series, times: pl.Series) -> dict[str, int]:
    """The different words of some rows, and how often each stands there."""
    words = pl.DataFrame({"word": text, "n": times}).filter(where)
    return {str(word): int(n) for word, n in words.group_by("word").agg(pl.col("n").sum()).iter_rows()}


def _counted(words: Mapping[str, int]) -> str:
    most = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    head = ", ".join(f"{word!r:.60} ({n:,})" for word, n in most[:12])
    return head if len(most) <= 12 else f"{head} and {len(most) - 12:,} more"


def read_probabilities(column: pl.Series, what: str) -> pl.Series:
    """Probabilities that the first of two is better, as numbers; what is missing is null.

    Args:
        column: the column.
        what: whose column it is, for the message.

    Raises:
        TableError: when a value is not a number from 0 to 1.
    """
    value = column.cast(pl.Float64, strict=False)
    bad = column.is_not_null() & ~value.is_nan().fill_null(value=False) & ~value.is_between(0, 1).fill_null(value=False)
    if bad.any():
        raise TableError(
            f"{what}: probability is {column.filter(bad)[0]!r} in {row_numbers(bad)}; probability takes numbers "
            "from 0 to 1: how probable it is that the first of the two is better"
        )
    return value.fill_nan(None).alias("probability")


# Columns that the user has named.


def _by_named_columns(frame: pl.DataFrame, names: ColumnNames, columns: ResultColumns, what: str) -> Results:
    """Results whose columns were named; what was not named is found by its name, if only one column can be meant."""
    first = columns.a_col
    second = columns.b_col
    verdict = columns.winner_col
    if (first is None) != (second is None) or (first is not None and first == second):
        raise TableError(f"{what}: `a_col=` and `b_col=` belong together; name two columns")
    if first is None or second is None:
        known_sides = {form.sides for form in _FORMS if form.verdict and names.has(*form.sides)}
        if len(known_sides) != 1:
            raise TableError(f"{what}: it has {listed(frame.columns, 20)}; name the two texts of a comparison{_SETTLE}")
        first, second = names.all(*known_sides.pop())
    if verdict is None:
        known_verdicts = names.all("better_id", "winner", "result", "preference")
        if len(known_verdicts) != 1:
            raise TableError(f"{what}: it has {listed(frame.columns, 20)}; name the column that says who won{_SETTLE}")
        [verdict] = known_verdicts
    _require_no_counts(frame, (first, second, verdict), what)
    # Without the columns of other forms, or it could be read again in another way.
    rest = frame.drop([name for name in frame.columns if loose_name(name) in _FORM_COLUMNS or name in (first, second)])
    kind = loose_name(verdict) if loose_name(verdict) in {"result", "preference"} else "winner"
    table = rest.with_columns(
        column_by_path(frame, first, what).alias("ID1"),
        column_by_path(frame, second, what).alias("ID2"),
        column_by_path(frame, verdict, what).alias(kind),
    )
    table = _with_ids(table.select("ID1", "ID2", pl.exclude("ID1", "ID2")), ("ID1", "ID2"), what)
    read = {"result": _result, "preference": _alpaca}.get(kind, _worded)
    results = read(table, ColumnNames(table.columns), (first, second), what)
    table = results.table.drop(kind)
    if verdict in (first, second):  # a list of winners and losers, under other names
        table = _unordered(table)
    return replace(results, table=_with_judge(table, names), form="results", columns=(first, second, verdict))


# Tables of other shapes.


def _framed(results: Table, what: str) -> pl.DataFrame:
    """A table as a frame; the index of a pandas matrix, which names the rows, becomes a column."""
    if hasattr(results, "iloc") and getattr(results, "ndim", 0) == 2 and results.index.nlevels == 1:
        if set(map(str, results.index)) & set(map(str, results.columns)):
            return to_frame(results.rename_axis("row").reset_index(), what)
    return to_frame(results, what)


def _require_no_counts(frame: pl.DataFrame, read: Collection[str], what: str) -> None:
    """Refuse a column that seems to say how often each comparison happened, as R's tables of frequencies have it."""
    for column in frame:
        name = column.name
        if name in read or "weight" in frame.columns or not column.dtype.is_integer() or name.lower() not in _COUNTS:
            continue
        is_numbering = len(column) > 1 and column.null_count() == 0 and (column.diff().drop_nulls() == 1).all()
        if not is_numbering and (column.drop_nulls() != 1).any():
            raise TableError(
                f"{what}: column {name!r} may say how often each row happened, but every row counts once; rename it to "
                "'weight' if it does, or leave it out"
            )


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
    own = cells.filter(pl.col("ID1") == pl.col("ID2"))
    if own.height:
        raise TableError(f"{what}: {own['ID1'][0]!r} beats itself {own['wins'][0]:g} times; the diagonal must be empty")
    bad = cells.filter((pl.col("wins") < 0) | (pl.col("wins") % 1 != 0) | pl.col("wins").is_infinite())
    if bad.height:
        raise TableError(
            f"{what}: {bad['ID1'][0]!r} beats {bad['ID2'][0]!r} {bad['wins'][0]:g} times; a matrix of wins holds whole "
            "numbers (write ties as rows of object1 object2 result, with 0.5)"
        )
    total = cells["wins"].sum()
    if total > _MOST_WINS:
        raise TableError(f"{what}: {total:,.0f} wins are too many for one row each; give a column weight instead")
    # The number tells a win from the others of its cell: they were counted, so they are no copies of a row.
    wins = cells.with_columns(win=pl.int_ranges(1, pl.col("wins").cast(pl.Int64) + 1)).explode("win")
    table = _unordered(wins.select("ID1", "ID2", better_id="ID1", win="win"))
    return Results(
        table, "a matrix of wins", (frame.columns[0],), remarks=(f"{frame.height:,} texts, rows beat columns",)
    )


def _three(frame: pl.DataFrame, what: str) -> Results | None:
    """R's input under other names: two columns of texts that occur in both, and results of 1, 0 and 0.5."""
    columns = tuple(name for name in frame.columns if name != TIMES)
    if len(columns) != 3 or not frame.height or any(kind.is_nested() for kind in frame.dtypes):
        return None
    first = set(id_text(frame[columns[0]], what).drop_nulls())
    second = set(id_text(frame[columns[1]], what).drop_nulls())
    result = frame[columns[2]].cast(pl.Float64, strict=False).drop_nulls()
    if first.isdisjoint(second) or result.is_empty() or not result.is_in([0.0, 0.5, 1.0]).all():
        return None
    named = frame.rename(dict(zip(columns, ("object1", "object2", "result"), strict=True)))
    results = read_form(named, what)
    return replace(results, form="the first text, the second, and 1 if the first won", columns=columns)
