"""Hypothesis strategies that every test module may use: ids, texts, samples, pairs, and golden files.

>>> from tests.strategies import ids, samples, pairs
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import polars as pl
from hypothesis import strategies as st

GOLDEN = Path(__file__).parent / "golden"

NASTY_IDS = (
    "007", "7", "7.0", "1e5", "NA", "nan", "null", "None", "true", "0", "-1", " a", "a ", "a", "A", "ä", "a\u0308",
    "a:b", "a#1", "a%3Ab", "a:", ":a", "%", "%25", "a\nb", 'a"b', "a,b", "a;b", "a\tb", "=1+1", "../x", "日本", "😀",
    "ID1", "a_vs_b", "x" * 300,
)  # fmt: skip
"""Ids that somebody will have one day: they look like numbers, like nothing, like separators or like formulas."""

HOSTILE_TEXTS = (
    "=1+1", "{=1+1}", "+1", "-1", "@SUM(A1)", "http://example.org", "NA", "null", "007", "1,5", "a,b", 'say "no"', '"',
    "two\nlines", "two\r\nlines", "cr\ronly", "a\tb", ";;;", " leading", "trailing ", "{TRAIT_NAME}", "{SAMPLE_2}",
    "<BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>", "_x000D_", "\u2028", "\x85", "\u200b", "é", "e\u0301", "日本語",
    "👩‍👩‍👧", "\ufeffmark", "مرحبا", "\\", "\\n", "'; DROP TABLE", "<script>alert(1)</script>", "%s{}", "\x1b[31m",
)  # fmt: skip
"""Texts that break a writer or reader of files, a prompt, a parser of answers, a page or a terminal."""

# Without surrogates (no text), the zero byte (refused in files) and white space alone (refused as blank).
_CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")


def _not_blank(text: str) -> bool:
    return bool(text.strip())


def ids() -> st.SearchStrategy[str]:
    """An id: plain, nasty or any characters, never blank."""
    plain = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,5}", fullmatch=True)
    return st.one_of(plain, st.sampled_from(NASTY_IDS), st.text(_CHARACTERS, min_size=1, max_size=8)).filter(_not_blank)


def texts() -> st.SearchStrategy[str]:
    """A text: hostile or any characters, never blank."""
    return st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(_CHARACTERS, min_size=1, max_size=40)).filter(_not_blank)


@st.composite
def samples(draw: st.DrawFn, min_size: int = 2, max_size: int = 12) -> pl.DataFrame:
    """A table of samples, in no order, with two further columns."""
    # é has two spellings, which are one id to every reader of samples.
    names = draw(st.lists(ids(), min_size=min_size, max_size=max_size, unique_by=partial(normalize, "NFC")))
    n = len(names)
    return pl.DataFrame(
        {
            "ID": names,
            "text": draw(st.lists(texts(), min_size=n, max_size=n)),
            "grade": draw(st.lists(st.none() | st.integers(-9, 9), min_size=n, max_size=n)),
            "school": draw(st.lists(st.none() | st.sampled_from(["north", "south"]), min_size=n, max_size=n)),
        },
        schema={"ID": pl.String, "text": pl.String, "grade": pl.Int64, "school": pl.String},
    )


@st.composite
def pairs(draw: st.DrawFn, max_size: int = 12) -> pl.DataFrame:
    """A table of pairs of such samples, with repetitions and both orders; possibly without rows."""
    items = draw(samples()).rows()
    chosen = st.lists(st.sampled_from(items), min_size=2, max_size=2, unique_by=lambda item: item[0])
    rows = [(*one, *two, draw(st.integers(0, 3))) for one, two in draw(st.lists(chosen, max_size=max_size))]
    sides = {f"{name}{side}": kind for side in "12" for name, kind in _KINDS.items()}
    return pl.DataFrame(rows, schema={**sides, "round": pl.Int64}, orient="row")


_KINDS = {"ID": pl.String, "text": pl.String, "grade": pl.Int64, "school": pl.String}


def golden(name: str) -> dict[str, Any]:
    """A golden file: ``input`` and ``output`` of the R function of that name."""
    content: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return content
