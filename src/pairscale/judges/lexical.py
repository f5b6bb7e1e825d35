"""The embedded judge: surface features of the two texts, fixed weights, no key and no network.

A text becomes thirteen numbers between 0 and 1 (:class:`LexicalFeatures`), those become one score in log-odds
(:func:`lexical_score`), and the logistic of the difference of two scores is the probability that the first text is
better. The weights were fitted to synthetic essays by ``benchmarks/fit_lexical.py`` and are fixed here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pairscale.core.comparisons import Condition
from pairscale.core.provenance import fingerprint
from pairscale.judges import _lexicon as lexicon
from pairscale.judges._spelling import is_academic, is_common, looks_misspelt
from pairscale.judges.base import JudgePair, Verdict

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

MODEL = "lexical-1"
"""The name of these features, word lists and weights together; any change of them is a new name."""

MAX_CHARS = 20_000
"""Characters of a text that are read; the rest has no effect. It bounds the time that any text can take."""


class Weight(NamedTuple):
    """How a feature enters the score: ``weight * (value - mean) / sd``.

    Attributes:
        weight: log-odds for one standard deviation of the feature; negative where more of it is worse.
        mean: of the feature, in the texts that the weights were fitted to.
        sd: its standard deviation there, but at least 0.1.
    """

    weight: float
    mean: float
    sd: float


WEIGHTS: Mapping[str, Weight] = MappingProxyType(
    {
        "length": Weight(0.49, 0.47, 0.19),
        "diversity": Weight(0.47, 0.9, 0.1),
        "word_length": Weight(0.52, 0.25, 0.1),
        "rare_words": Weight(0.55, 0.23, 0.16),
        "academic_words": Weight(0.59, 0.09, 0.13),
        "vague_words": Weight(-0.55, 0.11, 0.14),
        "sentence_length": Weight(0.5, 0.81, 0.21),
        "sentence_variety": Weight(0.0, 0.39, 0.24),
        "subordination": Weight(0.48, 0.38, 0.19),
        "connectives": Weight(0.39, 0.41, 0.27),
        "misspelling": Weight(-0.64, 0.09, 0.13),
        "mechanics": Weight(-0.73, 0.13, 0.24),
        "repetition": Weight(-0.54, 0.01, 0.1),
    }
)
"""The fixed weights, by feature, made by ``python -m benchmarks.fit_lexical``; read-only.

A weight of 0 belongs to a feature that pointed the wrong way there: it is reported, and not counted.
"""


@dataclass(frozen=True, slots=True)
class LexicalFeatures:
    """Thirteen surface features of a text, each between 0 and 1.

    A share of words is taken of ``n + 10`` rather than of the ``n`` words of the text, so that one word of a very short
    text does not decide. A text without words has the worst value of every feature.

    Attributes:
        length: ``n / (n + 60)``; the hundredth word adds less than the tenth.
        diversity: the mean share of different words in every window of 25 words; where the text is shorter than the
            window, the words it lacks count 0.9 each.
        word_length: the mean letters per word (at most 12 of each, with 10 words of 4 letters added), less 3, over 4.
        rare_words: ``1 - exp(-5 * share)`` of the words of five letters or more that are well spelt and not everyday.
        academic_words: ``1 - exp(-10 * share)`` of the words of careful exposition.
        vague_words: ``1 - exp(-10 * share)`` of the words of casual talk (worse).
        sentence_length: mean words per sentence over 20, at most 1; from 35 words on it falls, to 0 at 70, because
            such sentences are mostly run on.
        sentence_variety: ``sd / (sd + 5)`` of the words per sentence, at most 35 of each; 0 for a single sentence.
        subordination: ``r / (r + 2)``, with ``r`` the subordinators and inner punctuation marks per sentence.
        connectives: ``d / (d + 2)``, with ``d`` the different connecting words and phrases.
        misspelling: ``1 - exp(-10 * share)`` of the words that look misspelt (worse): listed misspellings and lost
            apostrophes, one slip away from an everyday word, no vowel, a letter three times, or letter triples that
            English rarely has. Names, and words with letters outside a-z, are not looked at.
        mechanics: ``1 - exp(-slips / sentences)`` (worse), a slip being a sentence that starts with a small letter, has
            no end mark or is all capitals; a small "i"; repeated punctuation; a wrong space around punctuation.
        repetition: ``1 - (1 - s) * (1 - t)`` (worse), with ``s`` the share of sentences that occurred before and ``t``
            that of three-word sequences and doubled words that did.
    """

    length: float
    diversity: float
    word_length: float
    rare_words: float
    academic_words: float
    vague_words: float
    sentence_length: float
    sentence_variety: float
    subordination: float
    connectives: float
    misspelling: float
    mechanics: float
    repetition: float


_NO_WORDS = LexicalFeatures(**{name: float(weight.weight < 0) for name, weight in WEIGHTS.items()})


def lexical_features(text: str) -> LexicalFeatures:
    """The features of a text, in time proportional to its length, of which at most :data:`MAX_CHARS` are read.

    Tags and web addresses are left out before anything is counted.

    Example:
        >>> lexical_features("It is good.").length
        0.047619047619047616
    """
    sentences = list(_sentences(text))
    words = [word for sentence in sentences for word in sentence.words]
    checked = [word for sentence in sentences for word in sentence.checked]
    n = len(words)
    if not n:
        return _NO_WORDS
    shape = [len(sentence.words) for sentence in sentences]
    mean = n / len(shape)
    sd = _deviation([min(x, 35) for x in shape])
    # Most words are everyday words and need no further look; of the rest, equal ones are looked at once.
    unusual = set(words) - lexicon.COMMON
    wrong = {word for word in unusual & set(checked) if looks_misspelt(word)}
    academic = {word for word in unusual - wrong if is_academic(word) and not is_common(word)}
    rare = {word for word in unusual - wrong - lexicon.VAGUE if len(word) >= 5 and not is_common(word)}
    clauses = sum(word in lexicon.SUBORDINATORS for word in words) + sum(sentence.breaks for sentence in sentences)
    clauses_each = clauses / len(shape)
    ties = len(_connectives(sentences))
    return LexicalFeatures(
        length=n / (n + 60),
        diversity=_diversity(words),
        word_length=_clamp(((sum(min(len(word), 12) for word in words) + 40) / (n + 10) - 3) / 4),
        rare_words=_saturated(words, rare, n, 5),
        academic_words=_saturated(words, academic, n, 10),
        vague_words=_saturated(words, lexicon.VAGUE, n, 10),
        sentence_length=_clamp(min(mean / 20, (70 - mean) / 35)),
        sentence_variety=sd / (sd + 5),
        subordination=clauses_each / (clauses_each + 2),
        connectives=ties / (ties + 2),
        misspelling=_saturated(checked, wrong, n, 10),
        mechanics=1 - math.exp(-sum(sentence.slips for sentence in sentences) / len(shape)),
        repetition=_repetition(sentences),
    )


def lexical_score(text: str) -> float:
    """The score of a text, in log-odds: 0 is about the middle of what the weights were fitted to.

    A text without words has the lowest score there is.
    """
    features = lexical_features(text)
    return math.fsum(w.weight * (getattr(features, name) - w.mean) / w.sd for name, w in WEIGHTS.items())


@dataclass(frozen=True, slots=True)
class LexicalJudge:
    """A judge that counts surface features: a baseline, not a model of writing, and not fit for grading people.

    It reads the two texts and nothing else: no key, no network, and the same answer every time, whichever text comes
    first. It looks at length, vocabulary, sentences, connectives, spelling and repetition (see
    :class:`LexicalFeatures`). It does not know what a text says, whether it is true, or whether it answers the
    question; who knows the features can please it with nonsense. It was fitted to synthetic English essays; texts in
    other languages are answered too, but their scores mean little. Use it to try things out, to test what is built
    around a judge, and as the mark that a better judge has to beat.

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
        """Who judges, and the fingerprint of the weights."""
        settings = {"weights": fingerprint({name: list(weight) for name, weight in WEIGHTS.items()})}
        return Condition("lexical", backend="offline", model=MODEL, trait=self.trait, settings=settings)

    def max_cost_of(self, pair: JudgePair) -> float:  # noqa: ARG002 - every judge is asked alike
        """Nothing: this judge costs no money."""
        return 0.0

    @property
    def graded(self) -> bool:
        """False: the answer is which text has the better score; how sure that is, was fitted to synthetic essays."""
        return False

    async def compare(self, pair: JudgePair) -> Verdict:
        """The better text by score, with the probability that it is the first; equal scores are a tie."""
        scores = []
        known: dict[str, Any] = {"model": MODEL, "object_type": "offline"}
        for item in (pair.first, pair.second):
            text = item.get("text")
            if not isinstance(text, str):
                words = f"sample {item.get('ID')!r} has no text to judge; give every sample a text, which may be empty"
                return Verdict.fail("judge_error", words, **known)
            scores.append(_score(text[: MAX_CHARS + 1]))
        gap = scores[0] - scores[1]
        if gap == 0:
            return Verdict.tie(probability=0.5, content="<BETTER_SAMPLE>TIE</BETTER_SAMPLE>", **known)
        # The larger probability is computed and the smaller taken from it: the two orders then sum to exactly 1.
        probability = 1 / (1 + math.exp(-abs(gap)))
        winner: Literal[1, 2] = 1
        if gap < 0:
            winner = 2
            probability = 1 - probability
        content = f"<BETTER_SAMPLE>SAMPLE_{winner}</BETTER_SAMPLE>"
        return Verdict.win(winner, probability=probability, content=content, **known)


@lru_cache(maxsize=4096)
def _score(text: str) -> float:
    """The score of what is read of a text, kept because a text meets many others."""
    return lexical_score(text)


# Reading. No pattern below can be made slow: each consumes what it looked at, or looks at a bounded stretch.

_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,80}>|https?://\S+")
_BOUNDARY = re.compile(r"[.!?…。！？؟।]+[\"'”’)\]]*|\n[ \t\r]*\n")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
_BREAK = re.compile(r"[,;:–—]|\s-\s")
_SLIP = re.compile(r"[!?]{2,}|,{2,}|;{2,}|\.{4,}|\w\s[,;]|\w\s[!?.](?=\s|\Z)|[a-z][,;!?][A-Za-z]")
_END_MARKS = frozenset(".!?…。！？؟।:;\"'”’)]")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence: its words in small letters, those whose spelling is checked, its inner breaks and its slips."""

    words: tuple[str, ...]
    checked: tuple[str, ...]
    breaks: int
    slips: int


def _sentences(text: str) -> Iterator[_Sentence]:
    cut = len(text) > MAX_CHARS
    text = _MARKUP.sub(" ", text[:MAX_CHARS])
    start = 0
    for mark in _BOUNDARY.finditer(text):
        after = text[mark.end() : mark.end() + 1]
        if mark[0][0] != "\n":
            if after and not after.isspace() and mark[0][0] not in "。！？":
                continue
            last = _LAST_WORD.search(text, max(start, mark.start() - 12), mark.start())
            if mark[0] == "." and after and last and _is_abbreviation(last[0]):
                continue
        yield from _sentence(text[start : mark.end()].strip())
        start = mark.end()
    yield from _sentence(text[start:].strip(), cut=cut)


def _is_abbreviation(word: str) -> bool:
    return word.lower() in lexicon.ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")


def _sentence(text: str, *, cut: bool = False) -> Iterator[_Sentence]:
    """The sentence that a stretch of text is; nothing where it has no words."""
    tokens = [token.replace("’", "'") for token in _WORD.findall(text)]
    if not tokens:
        return
    words = tuple(token.lower() for token in tokens)
    # A capital inside a sentence is taken for a name, and names follow no spelling.
    checked = tuple(word for k, word in enumerate(words) if word.isascii() and (k == 0 or not tokens[k][0].isupper()))
    slips = sum(token in {"i", "i'm", "i've", "i'll", "i'd"} for token in tokens)
    slips += tokens[0][0].islower() and text[0].isalpha() and tokens[0] != "i"
    slips += text[-1] not in _END_MARKS and not cut
    slips += len(tokens) >= 3 and text.isupper()
    slips += len(_SLIP.findall(text))
    yield _Sentence(words, checked, len(_BREAK.findall(text)), slips)


# Counting.

_WINDOW = 25
_FILL = 0.9


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))


def _saturated(words: Iterable[str], counted: Container[str], n: int, rate: float) -> float:
    """The share of the words that are counted, brought between 0 and 1."""
    share = sum(word in counted for word in words) / (n + 10)
    return 1 - math.exp(-rate * share)


def _deviation(values: Sequence[int]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _diversity(words: Sequence[str]) -> float:
    n = len(words)
    if n < _WINDOW:
        return (len(set(words)) + _FILL * (_WINDOW - n)) / _WINDOW
    windows = n - _WINDOW + 1
    total = sum(len(set(words[k : k + _WINDOW])) for k in range(windows))
    return total / windows / _WINDOW


def _connectives(sentences: Sequence[_Sentence]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for sentence in sentences:
        words = sentence.words
        for k, word in enumerate(words):
            if word in lexicon.CONNECTIVES:
                found.add((word,))
            if word in lexicon.PHRASE_STARTS:
                phrases = (words[k : k + size] for size in (2, 3, 4))
                found.update(phrase for phrase in phrases if phrase in lexicon.CONNECTIVE_PHRASES)
    return found


def _repetition(sentences: Sequence[_Sentence]) -> float:
    seen: set[tuple[str, ...]] = set()
    again = sequences = same = 0
    whole: set[tuple[str, ...]] = set()
    for sentence in sentences:
        words = sentence.words
        same += words in whole
        whole.add(words)
        again += sum(a == b for a, b in pairwise(words))
        for triple in zip(words, words[1:], words[2:], strict=False):
            sequences += 1
            again += triple in seen
            seen.add(triple)
    # Ten are added, as to the shares of words.
    return 1 - (1 - same / len(sentences)) * (1 - min(1.0, again / (sequences + 10)))
