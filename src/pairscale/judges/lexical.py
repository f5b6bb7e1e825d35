"""The embedded judge: surface features of the two texts, fixed weights, no key and no network.

A text becomes twelve numbers between 0 and 1 (:func:`lexical_features`), those become one score in log-odds
(:func:`lexical_score`), and the logistic of the difference of two scores is the probability that the first text is
better. The weights were fitted to synthetic essays by ``benchmarks/fit_lexical.py`` and are fixed here; the word lists
are in ``data/lexicon.txt``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from string import ascii_lowercase
from typing import TYPE_CHECKING, Literal, NamedTuple

from pairscale.core.comparisons import Condition
from pairscale.core.tables import Values
from pairscale.judges.base import FreeJudge, JudgePair, Verdict

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

MODEL = "lexical-1"
"""The name of these features, word lists and weights together; any change that changes scores is a new name."""

MAX_CHARS = 20_000
"""Characters of a text that are read; the rest has no effect. It bounds the time that any text can take."""


WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "length": (0.49, 0.47, 0.19),
    "diversity": (0.47, 0.9, 0.1),
    "word_length": (0.52, 0.25, 0.1),
    "rare_words": (0.55, 0.23, 0.16),
    "academic_words": (0.59, 0.09, 0.13),
    "vague_words": (-0.55, 0.11, 0.14),
    "sentence_length": (0.5, 0.81, 0.21),
    "subordination": (0.48, 0.38, 0.19),
    "connectives": (0.39, 0.41, 0.27),
    "misspelling": (-0.64, 0.09, 0.13),
    "mechanics": (-0.73, 0.13, 0.24),
    "repetition": (-0.54, 0.01, 0.1),
}
"""How each feature enters the score, ``weight * (value - mean) / sd``, as made by ``python -m benchmarks.fit_lexical``.

The weight is in log-odds for one standard deviation of the feature in the texts that it was fitted to, at least 0.1.
"""


def lexical_features(text: str) -> dict[str, float]:
    """The features of a text, each between 0 and 1, by the names of :data:`WEIGHTS`; ``docs/lexical.md`` explains them.

    A share of words is taken of ``n + 10`` rather than of the ``n`` words of the text, so that one word of a very short
    text does not decide. A text without words has the worst value of every feature.

    Example:
        >>> lexical_features("It is good.")["length"]
        0.047619047619047616
    """
    lists = _word_lists()
    stretches = _BOUNDARY.sub(r"\g<0>\0", _MARKUP.sub(" ", text[:MAX_CHARS])).split("\0")
    sentences = [sentence for stretch in stretches for sentence in _sentence(stretch.strip())]
    words = [word for sentence in sentences for word in sentence.words]
    checked = [word for sentence in sentences for word in sentence.checked]
    n = len(words)
    if not n:
        return {name: float(weight < 0) for name, (weight, _, _) in WEIGHTS.items()}
    unusual = {word for word in set(words) if not _is_common(word)}
    misspelt = {word for word in checked if _looks_misspelt(word)}
    academic = {word for word in unusual - misspelt if _is_academic(word)}
    rare = {word for word in unusual - misspelt - lists["VAGUE"] if len(word) >= 5}
    running = f" {' . '.join(' '.join(sentence.words) for sentence in sentences)} "
    phrases = sum(f" {phrase.replace('_', ' ')} " in running for phrase in lists["CONNECTIVE_PHRASES"])
    connectives = len(lists["CONNECTIVES"] & set(words)) + phrases
    breaks = sum(sentence.breaks for sentence in sentences)
    clauses = (breaks + sum(word in lists["SUBORDINATORS"] for word in words)) / len(sentences)
    words_each = n / len(sentences)
    letters = (sum(min(len(word), 12) for word in words) + 40) / (n + 10)

    def share(of: Sequence[str], counted: Container[str], rate: float) -> float:
        return 1 - math.exp(-rate * sum(word in counted for word in of) / (n + 10))

    return {
        "length": n / (n + 60),
        "diversity": _diversity(words),
        "word_length": min(1.0, max(0.0, (letters - 3) / 4)),
        "rare_words": share(words, rare, 5),
        "academic_words": share(words, academic, 10),
        "vague_words": share(words, lists["VAGUE"], 10),
        "sentence_length": max(0.0, min(1.0, words_each / 20, (70 - words_each) / 35)),
        "subordination": clauses / (clauses + 2),
        "connectives": connectives / (connectives + 2),
        "misspelling": share(checked, misspelt, 10),
        "mechanics": 1 - math.exp(-sum(sentence.slips for sentence in sentences) / len(sentences)),
        "repetition": _repetition(sentences),
    }


@lru_cache(maxsize=4096)
def lexical_score(text: str) -> float:
    """The score of a text, in log-odds: 0 is about the middle of what the weights were fitted to.

    A text without words has the lowest score there is.
    """
    features = lexical_features(text)
    return math.fsum(weight * (features[name] - mean) / sd for name, (weight, mean, sd) in WEIGHTS.items())


@dataclass(frozen=True, slots=True)
class LexicalJudge(FreeJudge):
    """A judge that counts surface features: a baseline, not a model of writing, and not fit for grading people.

    It reads the two texts and nothing else: no key, no network, and the same answer every time, whichever text comes
    first. It looks at length, vocabulary, sentences, connectives, spelling and repetition. It does not know what a text
    says, whether it is true, or whether it answers the question; who knows the features can please it with nonsense. It
    was fitted to synthetic English essays; texts in other languages are answered too, but their scores mean little. Use
    it to try things out, to test what is built around a judge, and as the mark that a better judge has to beat.

    Attributes:
        trait: a label that is recorded; it does not change the answers.

    Example:
        >>> import asyncio
        >>> pair = JudgePair({"text": "it good"}, {"text": "The plan is sound, because it is cheap."})
        >>> asyncio.run(LexicalJudge().compare(pair)).winner_pos
        2
    """

    trait: str = "overall_quality"

    @property
    def condition(self) -> Condition:
        """Who judges, and a digest that run files know these weights by."""
        return Condition("lexical", "offline", MODEL, self.trait, settings={"weights": "351dd345640d53e7"})

    async def compare(self, pair: JudgePair) -> Verdict:
        """The better text by score, with the probability that it is the first; equal scores are a tie."""
        origin: Values = {"model": MODEL, "object_type": "offline"}
        gap = lexical_score(str(pair.first["text"])) - lexical_score(str(pair.second["text"]))
        if gap == 0:
            return Verdict.tie(probability=0.5, content="<BETTER_SAMPLE>TIE</BETTER_SAMPLE>", **origin)
        # The larger probability is computed and the smaller taken from it: the two orders then sum to exactly 1.
        probability = 1 / (1 + math.exp(-abs(gap)))
        winner: Literal[1, 2] = 1
        if gap < 0:
            winner = 2
            probability = 1 - probability
        content = f"<BETTER_SAMPLE>SAMPLE_{winner}</BETTER_SAMPLE>"
        return Verdict.win(winner, probability=probability, content=content, **origin)


# Reading. No pattern below can be made slow: each consumes what it looked at, or looks at a bounded stretch.

_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,80}>|https?://\S+")
_BOUNDARY = re.compile(r"(?<![.!?…。！？؟।])[.!?…。！？؟।]++[\"'”’)\]]*+(?=\s|\Z)|\n[ \t\r]*+\n")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BREAK = re.compile(r"[,;:–—]|\s-\s")
_SLIP = re.compile(r"[!?]{2,}|,{2,}|;{2,}|\.{4,}|\w\s[,;]|\w\s[!?.](?=\s|\Z)|[a-z][,;!?][A-Za-z]")
_END_MARKS = ".!?…。！？؟।:;\"'”’)]"


class _Sentence(NamedTuple):
    """A sentence: its words in small letters, those whose spelling is checked, its inner breaks and its slips."""

    words: tuple[str, ...]
    checked: tuple[str, ...]
    breaks: int
    slips: int


def _sentence(text: str) -> Iterator[_Sentence]:
    """The sentence that a stretch of text is; nothing where it has no words."""
    tokens = [token.replace("’", "'") for token in _WORD.findall(text)]
    if not tokens:
        return
    words = tuple(token.lower() for token in tokens)
    # A capital inside a sentence is taken for a name, and names follow no spelling.
    checked = tuple(word for k, word in enumerate(words) if word.isascii() and (k == 0 or not tokens[k][0].isupper()))
    slips = sum(token in {"i", "i'm", "i've", "i'll", "i'd"} for token in tokens)
    slips += tokens[0][0].islower() and text[0].isalpha() and tokens[0] != "i"
    slips += text[-1] not in _END_MARKS
    slips += len(_SLIP.findall(text))
    yield _Sentence(words, checked, len(_BREAK.findall(text)), slips)


# Counting

_WINDOW = 25
_FILL = 0.9


def _diversity(words: Sequence[str]) -> float:
    """The mean share of different words in every window; words that a shorter text lacks count 0.9 each."""
    lacking = max(0, _WINDOW - len(words))
    windows = max(1, len(words) - _WINDOW + 1)
    different = sum(len(set(words[k : k + _WINDOW])) for k in range(windows))
    return (different / windows + _FILL * lacking) / _WINDOW


def _repetition(sentences: Sequence[_Sentence]) -> float:
    """The share of sentences, and of three-word sequences and doubled words, that occurred before."""
    whole = {sentence.words for sentence in sentences}
    triples = [triple for words, *_ in sentences for triple in zip(words, words[1:], words[2:], strict=False)]
    doubled = sum(a == b for words, *_ in sentences for a, b in pairwise(words))
    again = len(triples) - len(set(triples)) + doubled
    # Ten are added, as to the shares of words.
    return 1 - len(whole) / len(sentences) * (1 - min(1.0, again / (len(triples) + 10)))


# Spelling

_ENDINGS = ("", "s", "es", "ed", "ing", "er", "ly")
_VOWELS = "aeiouy"
_LONGEST = 30


@cache
def _word_lists() -> dict[str, frozenset[str]]:
    text = (files("pairscale.judges") / "data" / "lexicon.txt").read_text("utf-8")
    parts = re.split(r"^\[(\w+)\]$", re.sub(r"^#.*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    lists = {name: frozenset(words.split()) for name, words in zip(parts[1::2], parts[2::2], strict=True)}
    listed = [name for kind in ("COMMON", "ACADEMIC_STEMS", "CONNECTIVES", "SPELT_WELL") for name in lists[kind]]
    lists["TRIPLES"] = frozenset(word[k : k + 3] for word in listed for k in range(len(word) - 2))
    return lists


@cache
def _stems() -> tuple[str, ...]:
    return tuple(_word_lists()["ACADEMIC_STEMS"])


def _is_common(word: str) -> bool:
    """Whether it is an everyday word, or one with a plain ending."""
    common = _word_lists()["COMMON"]
    stems = {word.removesuffix("'s").removesuffix(ending) for ending in _ENDINGS}
    return word in common or any(stem in common or f"{stem}e" in common for stem in stems)


def _is_academic(word: str) -> bool:
    """Whether it begins like a word of careful exposition."""
    return len(word) >= 6 and word.startswith(_stems())


@lru_cache(maxsize=4096)
def _looks_misspelt(word: str) -> bool:
    """Whether it looks misspelt, by lists and by rules; ``word`` is in small letters a-z, with apostrophes."""
    lists = _word_lists()
    if word in lists["MISSPELT"]:
        return True
    if "'" in word or len(word) < 4 or word in lists["SPELT_WELL"] or _is_common(word) or _is_academic(word):
        return False
    if re.search(r"(.)\1\1", word) or not set(_VOWELS) & set(word):
        return True
    word = word[:_LONGEST]
    if not lists["COMMON"].isdisjoint(_corrections(word)):
        return True
    unseen = sum(word[k : k + 3] not in lists["TRIPLES"] for k in range(len(word) - 2))
    return len(word) >= 5 and unseen > 0.6 * (len(word) - 2)


def _corrections(word: str) -> Iterator[str]:
    """The word with a letter inserted, two letters swapped, one left out, or a vowel changed."""
    for k, letter in enumerate(word):
        before = word[:k]
        after = word[k + 1 :]
        if len(word) >= 5:
            yield from (before + letter + lost + after for lost in ascii_lowercase)
        if after and len(word) >= 5:
            yield before + after[0] + letter + after[1:]
        if len(word) >= 7:  # short words with one letter changed are mostly other words: block and black
            yield before + after
            if letter in _VOWELS:
                yield from (before + vowel + after for vowel in _VOWELS)
