"""The mistakes that weak writers make: in spelling, grammar, capitals and full stops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pairscale.datasets._phrases import mistakes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.datasets._draws import RandomChoices

PUNCTUATION_MASTERED = 0.44
"""Writers at or above this skill (0..1) end their sentences and begin them with a capital."""

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_DOUBLED = re.compile(r"([bcdfglmnprst])\1")
_SENTENCE_BREAK = re.compile(r"([.?]) ([A-Z][a-z']*)")
_CONNECTIVES = ("And", "Also", "Because", "But", "Like", "Oh", "Plus", "So", "Then", "Well")
_APOSTROPHE = re.compile(r"\b(\w+)'(s|t|m)\b")
_ENDINGS: tuple[tuple[str, str], ...] = (
    ("tion", "sion"),
    ("ible", "able"),
    ("ance", "ence"),
    ("ful", "full"),
    ("ious", "ous"),
    ("ight", "ite"),
    ("ery", "ary"),
    ("ly", "ley"),
)


def _slip_of_the_pen(word: str, draws: RandomChoices) -> str:
    """A long word by rule: a doubled letter lost, an ending misheard, or two letters swapped."""
    if _DOUBLED.search(word):
        return _DOUBLED.sub(r"\1", word, count=1)
    for right, wrong in _ENDINGS:
        if word.endswith(right):
            return word.removesuffix(right) + wrong
    if len(word) >= 7 and draws.chance(0.5):
        place = 2 + int(draws.uniform() * (len(word) - 4))
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return word


def _misspelt(word: str, draws: RandomChoices) -> str:
    """The word with a mistake that a writer could make in it, or the word itself where there is none."""
    misspellings: Mapping[str, Sequence[str]] = mistakes("misspellings")
    if word in misspellings:
        return draws.pick(misspellings[word])
    lower = word.lower()
    if lower in misspellings:
        return draws.pick(misspellings[lower]).capitalize()
    if len(word) < 5 or word[0].isupper():
        return word
    return _slip_of_the_pen(word, draws)


def _with_slips(text: str, rate: float, draws: RandomChoices) -> str:
    """The text with some of the table's slips of grammar."""
    for right, wrong in mistakes("grammar_slips"):
        if right in text and draws.chance(rate):
            text = re.sub(rf"\b{right}\b", wrong, text, count=1)
    return text


def _lowered(word: str) -> str:
    """The word without its capital, unless that is due to it anyway."""
    return word if word == "I" or word.startswith("I'") else word.lower()


def _with_loose_ends(text: str, weakness: float, draws: RandomChoices) -> str:
    """The text with run-on sentences and missing capitals, more of them the weaker the writer."""

    def run_on(match: re.Match[str]) -> str:
        mark, first = match.groups()
        draw = draws.uniform()
        # Some writers splice with a comma, some with nothing, some keep the stop and forget the capital.
        if draw < 0.22 * weakness:
            return f", {_lowered(first)}"
        if draw < 0.42 * weakness:
            return f" {_lowered(first)}"
        if draw < 0.62 * weakness:
            return f" {first.lower()}" if first in _CONNECTIVES else f" and {_lowered(first)}"
        if draw < 0.9 * weakness:
            return f"{mark} {_lowered(first)}"
        return match.group()

    text = _SENTENCE_BREAK.sub(run_on, text)
    if draws.chance(0.7 * weakness):
        text = re.sub(r"\bI\b(?!')", lambda match: "i" if draws.chance(0.75) else match.group(), text)
    if draws.chance(0.6 * weakness):
        text = text[0].lower() + text[1:]
    if draws.chance(0.5 * weakness):
        text = text.rstrip(".")
    return text


def with_mistakes(text: str, skill: float, draws: RandomChoices) -> str:
    """The text as a writer with that command of spelling, grammar and punctuation would have put it down.

    Args:
        text: without mistakes.
        skill: from 0 (mistakes everywhere) to 1 (hardly any).
        draws: where the chance comes from.
    """
    lack = 1.0 - skill
    # Products, not powers: pow() may differ in the last digit between machines.
    squared = lack * lack
    per_word = 0.004 * lack + 0.24 * squared * (0.45 + 0.55 * lack)
    text = _with_slips(text, 0.6 * squared, draws)
    text = _WORD.sub(lambda match: _misspelt(match.group(), draws) if draws.chance(per_word) else match.group(), text)
    text = _APOSTROPHE.sub(
        lambda match: "".join(match.groups()) if draws.chance(0.8 * squared) else match.group(), text
    )
    if skill < PUNCTUATION_MASTERED:
        weakness = (PUNCTUATION_MASTERED - skill) / PUNCTUATION_MASTERED
        text = _with_loose_ends(text, weakness, draws)
    return text
