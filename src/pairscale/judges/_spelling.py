"""What the lexical judge can tell of a single word: everyday, of careful exposition, or misspelt by the look of it."""

from __future__ import annotations

import re
from functools import cache

from pairscale.judges import _lexicon as lexicon

_ENDINGS = ("s", "es", "ed", "ing", "er", "ly")
_VOWELS = "aeiouy"
_TRIPLED = re.compile(r"([a-z])\1\1")
_LONGEST = 30


def is_common(word: str) -> bool:
    """Whether it is an everyday word, or one with a plain ending; ``word`` is in small letters."""
    if word in lexicon.COMMON:
        return True
    word = word.removesuffix("'s")
    stems = [word, *(word[: -len(ending)] for ending in _ENDINGS if word.endswith(ending))]
    return any(stem in lexicon.COMMON or stem + "e" in lexicon.COMMON for stem in stems)


def is_academic(word: str) -> bool:
    """Whether it begins like a word of careful exposition."""
    return len(word) >= 6 and any(word[:k] in lexicon.ACADEMIC_STEMS for k in range(4, min(len(word), 13) + 1))


def looks_misspelt(word: str) -> bool:
    """Whether it looks misspelt, by lists and by rules; ``word`` is in small letters a-z, with apostrophes."""
    if word in lexicon.MISSPELT:
        return True
    if "'" in word or len(word) < 4 or word in lexicon.SPELT_WELL or is_common(word) or is_academic(word):
        return False
    if _TRIPLED.search(word) or not any(vowel in word for vowel in _VOWELS):
        return True
    word = word[:_LONGEST]
    lost, triples = _tables()
    if word in lost or _is_slip(word):
        return True
    unseen = sum(word[k : k + 3] not in triples for k in range(len(word) - 2))
    return len(word) >= 5 and unseen > 0.6 * (len(word) - 2)


@cache
def _tables() -> tuple[frozenset[str], frozenset[str]]:
    """Everyday words that lost a letter, and the letter triples of all listed words; made on first use."""
    plain = [word for word in lexicon.COMMON if "'" not in word]
    lost = {word[:k] + word[k + 1 :] for word in plain if len(word) >= 6 for k in range(1, len(word))}
    listed = [*plain, *lexicon.ACADEMIC_STEMS, *lexicon.CONNECTIVES, *lexicon.SPELT_WELL]
    return frozenset(lost), frozenset(word[k : k + 3] for word in listed for k in range(len(word) - 2))


def _is_slip(word: str) -> bool:
    """Whether exchanging two letters, leaving one out or changing a vowel makes an everyday word of it."""
    for k in range(len(word)):
        before = word[:k]
        letter = word[k]
        rest = word[k + 1 :]
        if rest and len(word) >= 5 and before + rest[0] + letter + rest[1:] in lexicon.COMMON:
            return True
        # Short words with one letter changed are mostly other words: block and black.
        if len(word) >= 7 and (
            before + rest in lexicon.COMMON
            or (letter in _VOWELS and any(before + vowel + rest in lexicon.COMMON for vowel in _VOWELS))
        ):
            return True
    return False
