"""Verdicts in words and in numbers: who won, a tie, or no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from pairscale.core.errors import TableError
from pairscale.core.tables import as_text, id_text, row_number, row_numbers

_FIRST = ("model_a", "model_1", "a", "first", "left", "sample_1", "assistant_a", "assistant a")
_SECOND = ("model_b", "model_2", "b", "second", "right", "sample_2", "assistant_b", "assistant b")
_WORDS = {
    **dict.fromkeys(_FIRST, "first"),
    **dict.fromkeys(_SECOND, "second"),
}
_NEITHER = {
    **dict.fromkeys(("tie", "ties", "tied", "draw", "equal", "tie (bothbad)", "tie (both bad)", "bothbad", "both_bad",
                     "both bad"), "tie"),
    **dict.fromkeys(("tie (inconsistent)", "inconsistent", "flip"), "flip"),
    **dict.fromkeys(("", "na", "nan", "none", "null", "abstention"), "abstention"),
    "error": "error",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Verdicts in words.

    Attributes:
        outcome: ``first``, ``second``, ``tie``, ``flip``, ``error``, ``abstention``, or null where it was not
            understood.
        unknown: the words that were not understood, and how often each stands there.
        remarks: what else to know.
    """

    outcome: pl.Series
    unknown: Mapping[str, int]
    remarks: tuple[str, ...] = ()


def read_words(
    said: pl.Series,
    first: pl.Series,
    second: pl.Series,
    sides: tuple[str, str],
    what: str,
    known: Mapping[str, str] | None = None,
    times: pl.Series | None = None,
) -> Words:
    """Read verdicts that name a text by its id, or a side by a word: one way for the whole column.

    Args:
        said: the verdicts.
        first: the ids of the first texts.
        second: the ids of the second texts.
        sides: the names of the two columns of texts, which are words for the sides, too.
        what: the column's name in an error message.
        known: all words for the sides that there are, where a form says it; ids are then not looked for.
        times: how often each verdict stands there; once by default.

    Raises:
        TableError: when both ways are possible and differ, when nothing is understood, or when most is not.
    """
    text = id_text(said, what).str.strip_chars()
    low = text.str.to_lowercase()
    neither = low.replace_strict(_NEITHER, default=None, return_dtype=pl.String).fill_null(
        pl.select(pl.when(low.is_null()).then(pl.lit("abstention"))).to_series()
    )
    words = known if known is not None else _side_words(low, neither, sides)
    by_side = low.replace_strict(dict(words), default=None, return_dtype=pl.String)
    by_id = pl.select(
        pl.when(first == second).then(None).when(text == first).then(pl.lit("first")).when(text == second)
        .then(pl.lit("second"))
    ).to_series()  # fmt: skip
    if known is not None:
        by_id = by_id.clear(len(by_id))
    # An id may be called like a word, such as "tie" or "A".
    ways = [way.fill_null(neither) for way in (by_id, by_side)]
    missing = [_how_often(way.is_null(), times) for way in ways]
    if missing[0] == missing[1] == 0 and not ways[0].equals(ways[1], null_equal=True):
        at = (ways[0] != ways[1]).arg_true()[0]
        raise TableError(
            f"{what} says {text[at]!r} in {row_number(at)}, which is the id of the {ways[0][at]} text there, and also "
            f"a word that means {ways[1][at]}; call the column better_id if it holds ids"
        )
    chosen = ways[0] if missing[0] < missing[1] or (missing[0] == missing[1] and _wins(ways[0])) else ways[1]
    unknown = _words_at(text, chosen.is_null(), times)
    if unknown:
        _require_understood(chosen, unknown, what, times)
    return Words(chosen.alias("outcome"), unknown)


def _how_often(where: pl.Series, times: pl.Series | None) -> int:
    """How many rows are meant; each may stand for several."""
    return int(where.sum() if times is None else times.filter(where.fill_null(value=False)).sum())


def _words_at(text: pl.Series, where: pl.Series, times: pl.Series | None) -> dict[str, int]:
    """The different words of some rows, and how often each stands there."""
    if times is None:
        return {str(word): int(n) for word, n in text.filter(where).value_counts().iter_rows()}
    words = pl.DataFrame({"word": text, "n": times}).filter(where)
    return {str(word): int(n) for word, n in words.group_by("word").agg(pl.col("n").sum()).iter_rows()}


def _side_words(low: pl.Series, neither: pl.Series, sides: tuple[str, str]) -> dict[str, str]:
    """The words for the sides, among them the names of the columns; 1 and 2 only where both are what they look like."""
    words = dict(_WORDS)
    words |= {name.strip().lower(): side for name, side in zip(sides, ("first", "second"), strict=True)}
    figures = set(low.filter(neither.is_null()).drop_nulls().unique())
    if "2" in figures and "0" not in figures:  # 0 and 1 may be the first and the second, or the second and the first
        words |= {"1": "first", "2": "second"}
    return words


def _wins(way: pl.Series) -> bool:
    return bool(way.is_in(["first", "second"]).any())


def _require_understood(
    chosen: pl.Series, unknown: Mapping[str, int], what: str, times: pl.Series | None = None
) -> None:
    """Refuse a column of which most, or all wins of a side, are not understood."""
    head = ", ".join(f"{word!r:.60} ({n:,})" for word, n in sorted(unknown.items(), key=lambda item: -item[1])[:12])
    wins = [int((chosen == side).sum()) for side in ("first", "second")]
    rows = len(chosen) if times is None else int(times.sum())
    if min(wins) and sum(unknown.values()) <= rows / 2:
        return
    raise TableError(
        f"{what} holds verdicts that are not understood: {head}. A verdict is the id of the text that won, a side "
        "(model_a, model_b, a, b, 1, 2), or tie; 0 and 1 alone may mean either side, unless the column is called result"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """Verdicts from 1 (the first is better) to 2 (the second is).

    Attributes:
        probability: that the first is better; null without a verdict.
        unknown: what is no such number, and how often it stands there.
        remarks: whether preferences are graded.
    """

    probability: pl.Series
    unknown: Mapping[str, int]
    remarks: tuple[str, ...] = field(default=())


def read_preferences(given: pl.Series, what: str, times: pl.Series | None = None) -> Preferences:
    """Read AlpacaEval's preferences: 1 to 2, with 1.5 for a tie, for which older files have 0.

    Args:
        given: the column.
        what: its name in an error message.
        times: how often each value stands there; once by default.

    Raises:
        TableError: when nothing, or less than half of it, is such a number.
    """
    text = as_text(given, what).str.strip_chars()
    value = text.cast(pl.Float64, strict=False).fill_nan(None)
    missing = text.is_null() | text.str.to_lowercase().is_in(["", "na", "nan", "none", "null"])
    value = value.set((value == 0).fill_null(value=False), 1.5)
    good = value.is_between(1, 2).fill_null(value=False)
    bad = ~good & ~missing
    unknown = _words_at(text, bad, times)
    if _how_often(bad, times) * 2 > (len(text) if times is None else int(times.sum())):
        head = ", ".join(f"{word!r:.60} ({n:,})" for word, n in list(unknown.items())[:12])
        raise TableError(f"{what} must be 1 (the first is better) to 2 (the second is), 1.5 for a tie; it has {head}")
    probability = (2 - value.set(~good, None)).alias("probability")
    graded = _how_often(~probability.is_in([0.0, 0.5, 1.0]) & probability.is_not_null(), times)
    remark = f"{graded:,} graded, kept as probability; the more probable side counts as the winner"
    return Preferences(probability, unknown, (remark,) if graded else ())


def read_probabilities(given: pl.Series, what: str) -> pl.Series:
    """Probabilities that the first of two is better, as numbers; what is missing is null.

    Args:
        given: the column.
        what: whose column it is, for the message.

    Raises:
        TableError: when a value is not a number from 0 to 1.
    """
    value = given.cast(pl.Float64, strict=False).fill_nan(None)
    missing = given.is_null() | (given.is_nan() if given.dtype.is_float() else False)
    bad = ~missing & ~value.is_between(0, 1).fill_null(value=False)
    if bad.any():
        raise TableError(
            f"{what}: probability is {given.filter(bad)[0]!r} in {row_numbers(bad)}; probability takes numbers "
            "from 0 to 1: how probable it is that the first of the two is better"
        )
    return value.alias("probability")
