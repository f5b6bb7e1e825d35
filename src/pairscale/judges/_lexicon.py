"""The word lists of the lexical judge, from ``data/lexicon.txt``.

A change of a list changes verdicts, so it goes together with a new name in :data:`pairscale.judges.lexical.MODEL`.
"""

from __future__ import annotations

import re
from importlib.resources import files


def _read() -> dict[str, str]:
    """The lists by name, without comments."""
    text = (files("pairscale.judges") / "data" / "lexicon.txt").read_text("utf-8")
    parts = re.split(r"^\[(\w+)\]$", re.sub(r"^#.*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


_LISTS = _read()


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


ABBREVIATIONS = _words("ABBREVIATIONS")
"""Lower-case words whose full stop does not end a sentence."""

COMMON = _words("COMMON")
"""The everyday words: any other well-spelt word of five letters or more counts as a rarer one."""

ACADEMIC_STEMS = _words("ACADEMIC_STEMS")
"""Beginnings of words of careful exposition; a word of six letters or more that begins with one counts."""

VAGUE = _words("VAGUE")
"""Words of casual talk, or that could be said of anything."""

SUBORDINATORS = _words("SUBORDINATORS")
"""Words that mostly open a subordinate clause; those that are as often something else are left out."""

CONNECTIVES = _words("CONNECTIVES")
"""Single words that tie one statement to another."""

CONNECTIVE_PHRASES = frozenset(tuple(phrase.split()) for phrase in _LISTS["CONNECTIVE_PHRASES"].split("|"))
"""Phrases of two to four words that do the same."""

PHRASE_STARTS = frozenset(phrase[0] for phrase in CONNECTIVE_PHRASES)
"""Their first words."""

MISSPELT = _words("MISSPELT")
"""Frequent misspellings, lost apostrophes, and spellings of chat."""

SPELT_WELL = _words("SPELT_WELL")
"""True words that the rules for misspelt words would take for slips, and some whose letters are unusual."""
