"""Results of any known form, read as ``ID1 ID2 better_id``: ours, R's, and those that other tools write.

A form is recognised by the names of its columns, in any order and in upper or lower case. What could be read in two
ways is refused, and the message names the options that settle it: ``a_col``, ``b_col`` and ``winner_col``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import polars as pl

from pairscale.core.columns import JUDGE_COLUMNS, column_by_path, loose_name
from pairscale.core.errors import TableError
from pairscale.core.notices import notice, plural
from pairscale.core.tables import TIMES, Table, as_text, id_text, listed, require_ids, row_numbers, times_of, to_frame

_SETTLE = " with `a_col=`, `b_col=` and `winner_col=`"
ORDER_KNOWN = "order_known"
"""The column that says, where it is false, that ``ID1`` need not be the text that was shown first."""

_SIDES = {
    **dict.fromkeys(("model_a", "model_1", "a", "first", "left", "sample_1", "assistant_a", "assistant a"), "first"),
    **dict.fromkeys(("model_b", "model_2", "b", "second", "right", "sample_2", "assistant_b", "assistant b"), "second"),
}
_MISSING = ("", "na", "nan", "none", "null")
_NEITHER = {
    **dict.fromkeys(("tie", "tied", "draw", "equal", "tie (bothbad)", "bothbad", "both_bad", "both bad"), "tie"),
    **dict.fromkeys(("tie (inconsistent)", "inconsistent", "flip"), "flip"),
    **dict.fromkeys((*_MISSING, "abstention"), "abstention"),
    "error": "error",
}
_TIE_FLAGS = ("tie", "draw", "is_tie", "is_draw", "tied")  # neither of a winner and a loser won, where one is true


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """What a user says about a file of results: columns, or paths such as ``answer.0.id`` where values are nested.

    It is true if a column is named.

    Attributes:
        a_col: the first text; by default ``ID1``.
        b_col: the second text; by default ``ID2``.
        winner_col: who won; by default ``better_id``.
        encoding: of a text file that is not UTF-8.
    """

    a_col: str | None = None
    b_col: str | None = None
    winner_col: str | None = None
    encoding: str | None = None

    def __bool__(self) -> bool:
        return any(name is not None for name in (self.a_col, self.b_col, self.winner_col))

    @property
    def names(self) -> tuple[str, str, str]:
        """The columns of both texts and of the verdict."""
        return self.a_col or "ID1", self.b_col or "ID2", self.winner_col or "better_id"


NO_COLUMNS = ResultColumns()


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Results that were read.

    Attributes:
        table: ``ID1 ID2 better_id`` and the columns they came with; ``outcome`` where the form tells a tie from no
            answer, and ``order_known`` (false) where it does not say which text was shown first.
        form: what they were read as; None for our own tables, which need no guess.
        columns: the columns that say it.
        unknown: verdicts that were not understood, and how often each occurs.
    """

    table: pl.DataFrame
    form: str | None = None
    columns: tuple[str, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)

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


_Kind: TypeAlias = Literal["id", "word", "label", "first", "result", "preference", "probability"]


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of results: the columns of both texts and of the verdict, and what the verdict is."""

    name: str | None
    first: str
    second: str
    verdict: str | None
    kind: _Kind
    is_ordered: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.first, self.second) if self.verdict is None else (self.first, self.second, self.verdict)


_FORMS = (
    _Form(None, "ID1", "ID2", "better_id", "id"),
    _Form(None, "ID1", "ID2", "better_sample", "word"),
    _Form(None, "A_id", "B_id", "better_id", "id"),
    _Form(None, "A_id", "B_id", "better_sample", "word"),
    _Form("labels of people", "ID1", "ID2", "preferred", "label"),
    _Form("a list of winners and losers", "winner", "loser", None, "first", is_ordered=False),
    _Form(
        "a session of comparative judgement", "candidate_chosen", "candidate_not_chosen", None, "first",
        is_ordered=False,
    ),
    _Form(None, "object1", "object2", "result", "result"),
    _Form("an arena file", "model_a", "model_b", "winner", "word"),
    _Form("MT-bench judgements", "model_1", "model_2", "winner", "word"),
    _Form("AlpacaEval annotations", "generator_1", "generator_2", "preference", "preference", is_ordered=False),
    _Form("probabilities, of which the larger one wins", "ID1", "ID2", "probability", "probability"),
)  # fmt: skip
"""Every form, with the better one first where two have the same sides."""

_FORM_COLUMNS = {name for form in _FORMS for name in form.columns}
_ID_COLUMNS = {*_FORM_COLUMNS, *JUDGE_COLUMNS, "annotator", "labeller", "case_id"} - {
    "result",
    "preference",
    "probability",
}
_COUNTS = {"freq", "frequency", "count", "counts", "n", "times", "wins", "n_wins"}
_FURTHER = ("outcome", ORDER_KNOWN, "swapped", "criterion", "trait", *_TIE_FLAGS)
_USUAL = {loose_name(name): name for name in (*_FORM_COLUMNS, *_ID_COLUMNS, *_FURTHER, "probability", "weight")}


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

    Args:
        results: a table of any kind.
        what: its name in an error message.
        columns: the columns that a user has named.

    Raises:
        TableError: when the columns are of no known form or of two, an id is missing, or verdicts cannot be read.
    """
    frame = to_frame(results, what)
    if columns:
        frame, form = _as_named(frame, columns, what)
    else:
        frame = frame.rename(usual_names(frame.columns))
        if _is_model_input(frame):
            frame = frame.rename(dict(zip(frame.columns, ("object1", "object2", "result"), strict=False)))
        form = _form_of(frame.columns, what)
    _require_no_counts(frame, form, what)
    frame = require_ids(frame, (form.first, form.second), what)
    if form.first != "ID1":
        frame = frame.drop("ID1", "ID2", strict=False).rename({form.first: "ID1", form.second: "ID2"})
    if ORDER_KNOWN in frame.columns:
        frame = frame.with_columns(_flags(frame[ORDER_KNOWN]))
    table, unknown = _decided(frame, form, columns.names[:2], what)
    if not form.is_ordered:
        table = _unordered(table)
    return Results(_with_judge(table), form.name, columns.names if columns else form.columns, unknown)


def _require_no_counts(frame: pl.DataFrame, form: _Form, what: str) -> None:
    """Refuse a column that seems to count how often each comparison happened: every row counts once."""
    for name in _COUNTS.intersection(frame.columns).difference(form.columns):
        if "weight" not in frame.columns and frame[name].dtype.is_integer() and (frame[name].drop_nulls() != 1).any():
            raise TableError(
                f"{what}: column {name!r} may say how often each row happened, but every row counts once; rename it "
                "to 'weight' if it does, or leave it out"
            )


def form_columns(frame: pl.DataFrame, what: str, columns: ResultColumns) -> list[str]:
    """The columns of results that say who met whom and who won; rows that agree in these are the same comparison.

    Args:
        frame: a table without rows, with the usual names.
        what: its name in an error message.
        columns: the columns that a user has named.

    Raises:
        TableError: as :func:`read_form`, or values are nested in others.
    """
    own = columns.names if columns else _form_of(frame.columns, what).columns
    nested = [name for name in own if name not in frame.columns or frame.schema[name].is_nested()]
    if nested:
        raise TableError(f"{what}: {listed(nested)} must be columns of their own in a table of this size")
    return [*own, *(name for name in _FURTHER if name in frame.columns)]


def usual_names(names: Collection[str]) -> dict[str, str]:
    """By the names of a table's columns, the usual spelling of those that are known: ``Winner`` is ``winner``."""
    usual = {name: _USUAL[loose_name(name)] for name in names if loose_name(name) in _USUAL}
    spellings = list(usual.values())
    return {name: own for name, own in usual.items() if spellings.count(own) == 1}


def text_columns(frame: pl.DataFrame, columns: ResultColumns = NO_COLUMNS) -> set[str]:
    """The columns of a file of results that are text whatever their cells look like: the id ``007`` stays ``007``."""
    return {name for name in frame.columns if _USUAL.get(loose_name(name)) in _ID_COLUMNS or name in columns.names}


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


# Forms.


def _form_of(names: Collection[str], what: str) -> _Form:
    """The form of a table by the names of its columns."""
    possible = [form for form in _FORMS if set(form.columns) <= set(names)]
    if not possible:
        expected = ", ".join(" ".join(form.columns) for form in _FORMS)
        raise TableError(
            f"{what}: columns {listed(list(names), 12) or 'none'} are not results; expected {expected}; for others, "
            f"name the columns{_SETTLE}"
        )
    if len({form.first for form in possible}) > 1:
        meant = " or ".join(" ".join(form.columns) for form in possible)
        raise TableError(f"{what}: could be {meant}; say which columns are meant{_SETTLE}")
    return possible[0]


def _as_named(frame: pl.DataFrame, columns: ResultColumns, what: str) -> tuple[pl.DataFrame, _Form]:
    """Results whose columns a user has named, as ``ID1 ID2 verdict``, and how they are read."""
    first, second, verdict = columns.names
    if first == second:
        raise TableError(f"{what}: the two texts of a comparison cannot be one column; name them{_SETTLE}")
    named = [
        column_by_path(frame, name, what).alias(own)
        for name, own in ((first, "ID1"), (second, "ID2"), (verdict, "verdict"))
    ]
    # Without the columns of other forms, or it could be read again in another way.
    others = [name for name in frame.columns if _USUAL.get(loose_name(name)) not in _FORM_COLUMNS]
    further = frame.select(others).drop("verdict", first, second, strict=False)
    kinds: dict[str, _Kind] = {"result": "result", "preference": "preference"}
    kind = kinds.get(loose_name(verdict), "word")
    table = further.rename(usual_names(further.columns)).select(*named, pl.all())
    # The winner's own column is that of a list of winners and losers, under other names.
    return table, _Form("results", "ID1", "ID2", "verdict", kind, is_ordered=verdict not in (first, second))


def _is_model_input(frame: pl.DataFrame) -> bool:
    """Whether it is R's input under other names: two columns of ids, and results of 1, 0 and 0.5."""
    if frame.width != 3 or not frame.height or not set(frame.columns).isdisjoint({*_FORM_COLUMNS, TIMES}):
        return False
    result = frame.to_series(2)
    return result.dtype.is_numeric() and bool(result.cast(pl.Float64).drop_nulls().is_in([0.0, 0.5, 1.0]).all())


def _unordered(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit(value=False).alias(ORDER_KNOWN))


def _with_judge(table: pl.DataFrame) -> pl.DataFrame:
    """With ``judge_id`` where another column says who judged."""
    present = [name for name in (*JUDGE_COLUMNS, "annotator", "labeller") if name in table.columns]
    if not present or table[present[0]].dtype.is_nested():
        return table
    name = present[0] if present[0] in JUDGE_COLUMNS else "judge_id"
    return table.with_columns(id_text(table[present[0]], "judge").alias(name))


def _flags(column: pl.Series) -> pl.Series:
    """A column of truth values, as such, as 0 and 1, or as text; null where it is missing."""
    text = as_text(column, "results").str.to_lowercase().replace(dict.fromkeys(_MISSING, None))
    return text.is_in(["true", "1", "1.0"])


def _times(frame: pl.DataFrame) -> pl.Series:
    """How often each row occurs: once, unless rows are counted."""
    times = times_of(frame)
    return pl.repeat(1, frame.height, dtype=pl.Int64, eager=True) if times is None else times


def _counted(words: Mapping[str, int]) -> str:
    most = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(most) - 12:,} more" if len(most) > 12 else ""
    return ", ".join(f"{word!r:.60} ({n:,})" for word, n in most[:12]) + more


# Verdicts. Of every row, who won: "first", "second", "tie", "flip", "abstention", "error", or null.


def _decided(
    frame: pl.DataFrame, form: _Form, sides: tuple[str, str], what: str
) -> tuple[pl.DataFrame, Mapping[str, int]]:
    """With ``better_id`` and, where the form tells it, ``outcome``; and the verdicts that are not understood."""
    if form.verdict is None:
        ties = [_flags(frame[name]) for name in _TIE_FLAGS if name in frame.columns]
        if not ties:
            return frame.with_columns(better_id="ID1"), {}
        won = pl.repeat("first", frame.height, eager=True)
        return _with_outcome(frame, won.set(ties[0].fill_null(value=False), "tie")), {}
    verdict = frame[form.verdict]
    if form.kind == "id":
        better = id_text(verdict, what)
        of_pair = ((better == frame["ID1"]) | (better == frame["ID2"])).fill_null(value=False)
        nobody = better.is_in(["", "NA"]) & ~of_pair
        return frame.with_columns(better.set(nobody, None).alias("better_id")), {}
    if form.kind in ("word", "label"):
        outcome = _worded(frame, verdict, form.kind, sides, what)
        table = _with_outcome(frame, outcome)
        unknown = _unknown(frame, verdict, outcome, what)
        return (_of_labels(table) if form.kind == "label" else table.drop("verdict", strict=False)), unknown
    score = _score(verdict, form.kind, what)
    if form.kind != "result" and (form.kind == "probability" or "probability" not in frame.columns):
        frame = frame.with_columns(score.alias("probability"))
    side = pl.when(score > 0.5).then(pl.lit("first")).when(score < 0.5).then(pl.lit("second"))
    outcome = pl.select(side.when(score == 0.5).then(pl.lit("tie"))).to_series()
    return _with_outcome(frame.drop("verdict", strict=False), outcome), {}


def _with_outcome(frame: pl.DataFrame, outcome: pl.Series) -> pl.DataFrame:
    """With ``better_id`` and ``outcome``; where a verdict is missing, the outcome is what the table says itself."""
    winner = pl.when(outcome == "first").then("ID1").when(outcome == "second").then("ID2").alias("better_id")
    kind = outcome.replace({"first": "win", "second": "win"})
    if "outcome" in frame.columns:
        own = as_text(frame["outcome"], "results")
        kind = own.zip_with(kind.is_null() | (kind == "abstention") & own.is_not_null(), kind)
    return frame.with_columns(winner).with_columns(kind.alias("outcome"))


def _worded(frame: pl.DataFrame, verdict: pl.Series, kind: str, sides: tuple[str, str], what: str) -> pl.Series:
    """Verdicts that name a text by its id, or a side by a word: the way that reads more of the column."""
    text = id_text(verdict, what).str.strip_chars().fill_null("")
    words = {loose_name(sides[0]): "first", loose_name(sides[1]): "second", **_SIDES}
    if kind == "label" or ("2" in text and "0" not in text):  # 0 and 1 may be the first and the second, or 1 and 0
        words |= {"1": "first", "2": "second"}
    word = text.str.to_lowercase()
    neither = word.replace_strict(_NEITHER, default=None, return_dtype=pl.String)
    by_word = word.replace_strict({**words, **_NEITHER}, default=None, return_dtype=pl.String)
    if kind == "label":
        return by_word
    is_first = (text == frame["ID1"]) & (text != frame["ID2"])
    is_second = (text == frame["ID2"]) & (text != frame["ID1"])
    side = pl.when(is_first).then(pl.lit("first")).when(is_second).then(pl.lit("second")).otherwise(neither)
    by_id = pl.select(side).to_series()
    return by_id if by_id.null_count() <= by_word.null_count() else by_word


def _unknown(frame: pl.DataFrame, verdict: pl.Series, outcome: pl.Series, what: str) -> dict[str, int]:
    """Verdicts that are not understood; if that is most of them, or all wins of a side, the column is refused."""
    times = _times(frame)
    words = pl.DataFrame({"word": id_text(verdict, what).str.strip_chars(), "n": times}).filter(outcome.is_null())
    unknown = {str(word): int(n) for word, n in words.group_by("word").agg(pl.col("n").sum()).iter_rows()}
    if unknown and ({"first", "second"} - set(outcome) or sum(unknown.values()) > times.sum() / 2):
        raise TableError(
            f"{what}: column {verdict.name!r} holds verdicts that are not understood: {_counted(unknown)}. A verdict "
            "is the id of the text that won, a side (model_a, model_b, a, b, 1, 2), or tie; 0 and 1 alone may mean "
            "either side, unless the column is called result"
        )
    return unknown


def _of_labels(table: pl.DataFrame) -> pl.DataFrame:
    """Labels in the order in which they were seen: ``swapped`` says that the second text was shown first."""
    if "criterion" in table.columns and "trait" not in table.columns:
        table = table.with_columns(trait="criterion")
    if "swapped" not in table.columns:
        return _unordered(table)
    is_swapped = pl.lit(_flags(table["swapped"]).fill_null(value=False))
    first = pl.when(is_swapped).then("ID2").otherwise("ID1")
    second = pl.when(is_swapped).then("ID1").otherwise("ID2")
    # Read again, the table must not be turned back; nor is it known of which side a probability would be.
    return table.with_columns(ID1=first, ID2=second).drop("preferred", "swapped", "probability", strict=False)


def _score(verdict: pl.Series, kind: str, what: str) -> pl.Series:
    """A score from 0, the second won, to 1, the first: a result, a probability, or a preference of AlpacaEval.

    Preferences are 1 (the first is better) to 2, with 1.5 for a tie, for which older files have 0.
    """
    if kind == "probability":
        return read_probabilities(verdict, what)
    if kind == "result":
        meaning = "it must be 1 (the first won), 0 (the second) or 0.5 (a tie)"
        return _numbers(verdict, lambda number: number.is_in([0.0, 0.5, 1.0]), meaning, what)
    meaning = "it must be 1 (the first is better) to 2 (the second is), 1.5 for a tie"
    value = _numbers(verdict, lambda number: number.is_between(1, 2) | (number == 0), meaning, what)
    return 2 - value.replace(0.0, 1.5)


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
