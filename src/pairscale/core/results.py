"""Results of any known form, read as ``ID1 ID2 better_id``: ours, R's, and those that other tools write.

A form is recognised by the names of its columns, in any order and in upper or lower case. What could be read in two
ways is refused, and the message names the options that settle it: ``a_col``, ``b_col`` and ``winner_col``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from pairscale.core.columns import ColumnNames, loose_name
from pairscale.core.errors import TableError
from pairscale.core.matrices import is_matrix, matrix_wins, require_no_counts
from pairscale.core.notices import notice
from pairscale.core.paths import column_by_path
from pairscale.core.tables import TIMES, Table, as_text, id_text, listed, require_ids, row_numbers, times_of, to_frame
from pairscale.core.verdicts import read_preferences, read_probabilities, read_words

__all__ = [
    "NO_COLUMNS",
    "ORDER_KNOWN",
    "TIE_FLAGS",
    "ResultColumns",
    "Results",
    "as_comparisons",
    "flags",
    "is_matrix",
    "read_form",
    "text_columns",
]

_SETTLE = " with `a_col=`, `b_col=` and `winner_col=`"
ORDER_KNOWN = "order_known"
"""The column that says, where it is false, that ``ID1`` need not be the text that stood first."""

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
        times = times_of(self.table)
        n = self.table.height if times is None else int(times.sum())
        parts = [f"{n:,} comparison{'s' * (n != 1)}, read as {self.form or 'results'}: {', '.join(self.columns)}"]
        if "outcome" in self.table.columns:
            outcome = self.table["outcome"].cast(pl.String)
            for word, several in (("tie", "ties"), ("flip", "flips between orders")):
                said = outcome == word
                often = int(said.sum() if times is None else times.filter(said).sum())
                parts += [f"{often:,} {word if often == 1 else several}"] * bool(often)
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
    found = read_form(results, what, columns)
    if found.unknown:
        notice(f"{what}: verdicts that are not understood are left out: {_counted(found.unknown)}")
    return found.table


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
        frame = frame.with_columns(flags(frame[ORDER_KNOWN], what))
    names = ColumnNames(frame.columns)
    if columns:
        return _given(frame, names, columns, what)
    found = [form for form in _FORMS if form.is_there(names)]
    if len({form.sides for form in found}) > 1:
        raise TableError(
            f"{what}: could be {' or '.join(' '.join(form.present(names)) for form in found)}; say which columns are "
            f"meant{_SETTLE}"
        )
    if found:
        return _read(frame, names, found[0], what)
    other = _matrix(frame, what) or _three(frame, what)
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


# Forms.


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of results: the columns of both texts, the columns of the verdict, and how they are read."""

    name: str | None
    sides: tuple[str, str]
    verdict: tuple[str, ...]
    read: Callable[[pl.DataFrame, ColumnNames, str], Results]
    is_ordered: bool = True

    def is_there(self, names: ColumnNames) -> bool:
        return names.has(*self.sides, *self.verdict)

    def present(self, names: ColumnNames) -> tuple[str, ...]:
        return names.all(*self.sides, *self.verdict)


def _read(frame: pl.DataFrame, names: ColumnNames, form: _Form, what: str) -> Results:
    sides = form.present(names)[:2]
    require_no_counts(frame, form.present(names), what)
    found = form.read(_with_ids(frame, (sides[0], sides[1]), what), names, what)
    table = found.table if form.is_ordered else _unordered(found.table)
    return replace(found, table=_with_judge(table, names), form=form.name, columns=form.present(names))


def _with_ids(frame: pl.DataFrame, sides: tuple[str, str], what: str) -> pl.DataFrame:
    frame = require_ids(_flat(frame, sides, what), sides, what)
    clash = [name for name in ("ID1", "ID2") if name in frame.columns and name not in sides]
    if clash:
        raise TableError(f"{what}: has {listed(sides)} and also a column {listed(clash)}; leave one of the two out")
    return frame.rename(dict(zip(sides, ("ID1", "ID2"), strict=True)))


def _flat(frame: pl.DataFrame, sides: tuple[str, str], what: str) -> pl.DataFrame:
    """Refuse ids that are not single values: as text, they would be names that no one has given."""
    for name in sides:
        if name in frame.columns and frame[name].dtype.is_nested():
            raise TableError(f"{what}: column {name!r} holds {frame[name].dtype}, not ids; name a path in it{_SETTLE}")
    return frame


def _unordered(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit(value=False).alias(ORDER_KNOWN))


_JUDGES = ("judge_id", "judge", "annotator", "labeller")


def _with_judge(table: pl.DataFrame, names: ColumnNames) -> pl.DataFrame:
    """With ``judge_id`` or ``judge`` where another column says who judged; a judge that is a list becomes one name."""
    found = next((name for name in _JUDGES if names.has(name)), None)
    if found is None:
        return table
    column = table[names.all(found)[0]]
    if isinstance(column.dtype, pl.List):
        column = column.cast(pl.List(pl.String)).list.join(" ")
    wanted = found if found in _JUDGES[:2] else "judge_id"
    if column.dtype.is_nested() or (column.name == wanted and column.dtype == table[wanted].dtype):
        return table
    return table.with_columns(id_text(column, "judge").alias(wanted))


def flags(column: pl.Series, what: str) -> pl.Series:
    """A column of truth values, as such, as 0 and 1, or as text.

    Raises:
        TableError: when it is none.
    """
    text = as_text(column, what).str.to_lowercase()
    words = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": None, "na": None}
    found = text.replace_strict(words, default=None, return_dtype=pl.Boolean)
    bad = found.is_null() & text.is_not_null() & ~text.is_in(["", "na"])
    if bad.any():
        raise TableError(
            f"{what}: column {column.name!r} is {text.filter(bad)[0]!r} in {row_numbers(bad)}; true or false?"
        )
    return found.alias(column.name)


# Our own forms and R's.


def _better(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    name = names.all("better_id")[0]
    better = id_text(frame[name], what)
    of_pair = ((better == frame["ID1"]) | (better == frame["ID2"])).fill_null(value=False)
    nobody = better.is_in(["", "NA"]) & ~of_pair
    return Results(frame.rename({name: "better_id"}).with_columns(better.set(nobody, None).alias("better_id")))


def _better_sample(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    said = as_text(frame[names.all("better_sample")[0]], what)
    first, second = (said == f"SAMPLE_{n}" for n in (1, 2))
    return Results(_decided(frame, first, second))


def _decided(frame: pl.DataFrame, first: pl.Series, second: pl.Series) -> pl.DataFrame:
    return frame.with_columns(first=first, second=second).with_columns(
        pl.when("first").then("ID1").when("second").then("ID2").alias("better_id")
    ).drop("first", "second")  # fmt: skip


def _result(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    column = frame[names.all("result")[0]]
    given = as_text(column.cast(pl.Int8) if column.dtype == pl.Boolean else column, what)
    result = given.cast(pl.Float64, strict=False).fill_nan(None)
    missing = given.is_null() | given.is_in(["", "NA", "NaN"])
    bad = ~(result.is_in([0.0, 0.5, 1.0]).fill_null(value=False) | missing)
    if bad.any():
        raise TableError(
            f"{what}: result is {given.filter(bad)[0]!r} in {row_numbers(bad)}; it must be 1 (the first won), "
            "0 (the second) or 0.5 (a tie)"
        )
    table = _decided(frame, result == 1, result == 0)
    return Results(_with_outcome(table, (result == 0.5).fill_null(value=False)))


def _with_outcome(table: pl.DataFrame, tied: pl.Series) -> pl.DataFrame:
    """With ``outcome``: a win, a tie, or what the table says itself."""
    other = pl.lit(as_text(table["outcome"], "results")) if "outcome" in table.columns else pl.lit(None, pl.String)
    won = pl.when(pl.col("better_id").is_not_null()).then(pl.lit("win"))
    return table.with_columns(outcome=won.when(tied).then(pl.lit("tie")).otherwise(other))


def _first_won(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    found = next((names.all(name)[0] for name in TIE_FLAGS if names.has(name)), None)
    if found is None:
        return Results(frame.with_columns(better_id="ID1"))
    tied = flags(frame[found], what).fill_null(value=False)
    won = pl.when(~pl.lit(tied)).then("ID1").alias("better_id")
    remarks = (f"ties where {found!r} is true",)
    return Results(_with_outcome(frame.with_columns(won), tied), remarks=remarks)


def _preferred(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    """Labels of people: 1, 2 or tie in the order of the case; ``swapped`` says that the second was shown first."""
    found = _worded(frame, names.all("preferred")[0], ("ID1", "ID2"), what, known={"1": "first", "2": "second"})
    if names.has("criterion") and not names.has("trait"):
        found = replace(found, table=found.table.with_columns(trait=names.all("criterion")[0]))
    if not names.has("swapped"):
        return replace(found, table=_unordered(found.table))
    swapped = pl.lit(flags(frame[names.all("swapped")[0]], what).fill_null(value=False))
    sides = (("ID1", "ID2"), ("ID2", "ID1"))
    one, two = (pl.when(swapped).then(other).otherwise(own).alias(own) for own, other in sides)
    # Read again, the table must not be turned back; nor is it known of which side a probability would be.
    gone = ["preferred", names.all("swapped")[0], "probability"]
    return replace(found, table=found.table.with_columns(one, two).drop(gone, strict=False))


def _worded(
    frame: pl.DataFrame, column: str, sides: tuple[str, str], what: str, known: Mapping[str, str] | None = None
) -> Results:
    where = f"{what}: column {column!r}"
    read = read_words(frame[column], frame["ID1"], frame["ID2"], sides, where, known, times_of(frame))
    table = _decided(frame, read.outcome == "first", read.outcome == "second")
    said = read.outcome.replace({"first": "win", "second": "win"})
    if "outcome" in table.columns:
        said = said.fill_null(as_text(table["outcome"], what))
    return Results(table.with_columns(said.alias("outcome")), unknown=read.unknown, remarks=read.remarks)


def _arena(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    return _worded(frame, names.all("winner")[0], ("model_a", "model_b"), what)


def _mt_bench(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    return _worded(frame, names.all("winner")[0], ("model_1", "model_2"), what)


def _mt_bench_games(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    """Two games per line, the second of them in the other order; winners are named as in the first."""
    turned = frame.rename({"ID1": "ID2", "ID2": "ID1"}).select(frame.columns)
    if "probability" in frame.columns:
        stated = read_probabilities(frame["probability"], what)
        frame, turned = frame.with_columns(stated), turned.with_columns((1 - stated).alias("probability"))
    first = _worded(frame, names.all("g1_winner")[0], ("model_1", "model_2"), what)
    second = _worded(turned, names.all("g2_winner")[0], ("model_2", "model_1"), what)
    words = {**first.unknown, **second.unknown}
    unknown = {word: first.unknown.get(word, 0) + second.unknown.get(word, 0) for word in words}
    remarks = ("two comparisons per line, one in each order",)
    return Results(pl.concat([first.table, second.table]), unknown=unknown, remarks=remarks)


def _alpaca(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    column = names.all("preference")[0]
    read = read_preferences(frame[column], f"{what}: column {column!r}", times_of(frame))
    kept = [frame["probability"]] if "probability" in frame.columns else []
    table = _more_probable(frame, read.probability)
    return Results(table.with_columns(*kept), unknown=read.unknown, remarks=read.remarks)


def _graded(frame: pl.DataFrame, names: ColumnNames, what: str) -> Results:
    table = _more_probable(frame, read_probabilities(frame[names.all("probability")[0]], what))
    return Results(table, remarks=("the more probable side is the winner",))


def _more_probable(frame: pl.DataFrame, first: pl.Series) -> pl.DataFrame:
    table = _decided(frame, first > 0.5, first < 0.5).with_columns(first)
    return _with_outcome(table, (first == 0.5).fill_null(value=False))


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
    _Form("an arena file", ("model_a", "model_b"), ("winner",), _arena),
    _Form("MT-bench judgements", ("model_1", "model_2"), ("g1_winner", "g2_winner"), _mt_bench_games),
    _Form("MT-bench judgements", ("model_1", "model_2"), ("winner",), _mt_bench),
    _Form("AlpacaEval annotations", ("generator_1", "generator_2"), ("preference",), _alpaca, is_ordered=False),
    _Form("probabilities", ("ID1", "ID2"), ("probability",), _graded),
)  # fmt: skip
"""Every form, with the better one first where two have the same sides."""

_FORM_COLUMNS = {loose_name(name) for form in _FORMS for name in (*form.sides, *form.verdict)} - {"probability"}
_ID_COLUMNS = {
    *_FORM_COLUMNS, "judge", "judge_id", "annotator",
    "labeller", "case_id",
} - {"result", "preference", "probability"}  # fmt: skip


# Columns that the user has named.


def _given(frame: pl.DataFrame, names: ColumnNames, columns: ResultColumns, what: str) -> Results:
    """Results whose columns were named; what was not named is found by its name, if only one column can be meant."""
    sides, verdict = (columns.a_col, columns.b_col), columns.winner_col
    if (sides[0] is None) != (sides[1] is None) or (sides[0] is not None and sides[0] == sides[1]):
        raise TableError(f"{what}: `a_col=` and `b_col=` belong together; name two columns")
    first, second = sides if sides[0] is not None else _known_sides(frame, names, what)
    if verdict is None:
        verdict = _known_verdict(frame, names, what)
    require_no_counts(frame, (str(first), str(second), str(verdict)), what)
    one, two, said = (column_by_path(frame, str(name), what) for name in (first, second, verdict))
    # Without the columns of other forms, or it could be read again in another way.
    rest = frame.drop([name for name in frame.columns if loose_name(name) in _FORM_COLUMNS or name in (first, second)])
    table = rest.insert_column(0, one.alias("ID1")).insert_column(1, two.alias("ID2"))
    table = require_ids(_flat(table, ("ID1", "ID2"), what), ("ID1", "ID2"), what)
    shown = {"result": "result", "preference": "preference"}.get(loose_name(str(verdict)), "winner")
    table = table.with_columns(said.alias(shown))
    if shown == "winner":
        found = _worded(table, shown, (str(first), str(second)), f"{what} ({verdict})")
    else:
        found = (_result if shown == "result" else _alpaca)(table, ColumnNames(table.columns), what)
    found = replace(found, table=found.table.drop(shown))
    is_list = verdict in (first, second)  # a list of winners and losers, under other names
    table = _with_judge(_unordered(found.table) if is_list else found.table, names)
    return replace(found, table=table, form="results", columns=(str(first), str(second), str(verdict)))


def _known_sides(frame: pl.DataFrame, names: ColumnNames, what: str) -> tuple[str, str]:
    known = {form.sides for form in _FORMS if form.is_ordered or form.verdict}
    found = [names.all(*sides) for sides in sorted(known) if names.has(*sides)]
    if len(found) != 1:
        raise TableError(f"{what}: it has {listed(frame.columns, 20)}; name the two texts of a comparison{_SETTLE}")
    return found[0][0], found[0][1]


def _known_verdict(frame: pl.DataFrame, names: ColumnNames, what: str) -> str:
    found = names.all("better_id", "winner", "result", "preference")
    if len(found) != 1:
        raise TableError(f"{what}: it has {listed(frame.columns, 20)}; name the column that says who won{_SETTLE}")
    return found[0]


# Matrices.


def _framed(results: Table, what: str) -> pl.DataFrame:
    """A table as a frame; the index of a pandas matrix, which names the rows, becomes a column."""
    index = getattr(results, "index", None)
    if hasattr(results, "iloc") and getattr(results, "ndim", 0) == 2 and getattr(index, "nlevels", 0) == 1:
        any_frame: Any = results
        if {str(name) for name in any_frame.index} & {str(name) for name in any_frame.columns}:
            return to_frame(any_frame.rename_axis("row").reset_index(), what)
    return to_frame(results, what)


def _matrix(frame: pl.DataFrame, what: str) -> Results | None:
    """Wins by row and column; None when it does not look like that."""
    if not is_matrix(frame):
        return None
    table = _unordered(matrix_wins(frame, what))
    remark = f"{frame.height:,} texts, rows beat columns"
    return Results(table, "a matrix of wins", (frame.columns[0],), {}, (remark,))


def _three(frame: pl.DataFrame, what: str) -> Results | None:
    """R's input under other names: two columns of texts that occur in both, and results of 1, 0 and 0.5."""
    width = len([name for name in frame.columns if name != TIMES])
    if width != 3 or not frame.height or any(kind.is_nested() for kind in frame.dtypes):
        return None
    one, two = (set(id_text(frame.to_series(at), what).drop_nulls()) for at in (0, 1))
    result = frame.to_series(2).cast(pl.Float64, strict=False)
    if (
        one.isdisjoint(two)
        or not result.drop_nulls().is_in([0.0, 0.5, 1.0]).all()
        or result.null_count() == len(result)
    ):
        return None
    named = frame.rename(dict(zip(frame.columns[:3], ("object1", "object2", "result"), strict=True)))
    found = read_form(named, what)
    return replace(found, form="the first text, the second, and 1 if the first won", columns=tuple(frame.columns[:3]))


def _counted(words: Mapping[str, int]) -> str:
    most = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    head = ", ".join(f"{word!r:.60} ({n:,})" for word, n in most[:12])
    return head if len(most) <= 12 else f"{head} and {len(most) - 12:,} more"
