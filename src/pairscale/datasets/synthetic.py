"""Essays of a known quality, made up on the spot: something to judge when no real texts are at hand.

Every essay answers :data:`PROMPT`. Its quality level sets a latent quality, with noise, and that drives six skills,
each with noise of its own: ideas, organisation, vocabulary, sentences, conventions and focus. So neighbouring levels
overlap, and no single feature (length least of all) tells the level.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import sqrt
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.options import require_int
from pairscale.datasets._draws import RandomChoices
from pairscale.datasets._mistakes import with_mistakes
from pairscale.datasets._phrases import phrases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.datasets._phrases import Tiers

PROMPT = (
    "Your town council wants to close the town centre to cars one day a week. "
    "Is this a good idea? Say what you think, and why."
)
"""What the writers were asked."""

PROMPT_ID = "car-free-day"
"""The name of :data:`PROMPT` in the column ``prompt_id``."""

_MODEL = "pairscale-synthetic-1"
_CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)
_LEVELS = 20
_MIDDLE = (_LEVELS + 1) / 2
_SPREAD = sqrt((_LEVELS**2 - 1) / 12)
_LATENT_NOISE = 1.0
_SKILL_NOISE = 3.0
_SHORTEST = 64
_LONGEST = 214
_REASON_WORDS = 45
_OBJECTION_WORDS = 20
_PATIENCE = 40
_NOT_AGAIN = ("Again", "And", "Like", "So", "Hi", "Hello", "In", "Oh", "Also", "As")

_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou])(?!one\b|once\b|uni|use|usu|eu)")


@dataclass(frozen=True, slots=True)
class _EssayWriter:
    """What one writer can do, each skill from 0 to 1, and how many words there will be.

    Attributes:
        ideas: reasons, evidence and answers to objections.
        organisation: opening, connectives, paragraphs and ending.
        vocabulary: precise words.
        sentences: variety of sentence structure.
        conventions: spelling, grammar and punctuation.
        focus: neither repetition nor chatter.
        words: the length aimed at.
    """

    ideas: float
    organisation: float
    vocabulary: float
    sentences: float
    conventions: float
    focus: float
    words: int


def _writer(level: int, draws: RandomChoices) -> _EssayWriter:
    """A writer whose essay is of about that level."""
    latent = level + _LATENT_NOISE * draws.normal(2.5)

    def skill() -> float:
        return max(0.0, min(1.0, (latent + _SKILL_NOISE * draws.normal(2.0) - 1.0) / (_LEVELS - 1)))

    ideas, organisation, vocabulary, sentences, conventions, focus = (skill() for _ in range(6))
    words = 132.0 + 8.0 * (latent - _MIDDLE) / _SPREAD + 30.0 * draws.normal(2.5)
    length = int(max(_SHORTEST, min(_LONGEST - 20, words)))
    return _EssayWriter(ideas, organisation, vocabulary, sentences, conventions, focus, length)


def _sentence(text: str) -> str:
    """The text with a capital and an end mark, and "an" where it belongs."""
    text = _ARTICLE.sub(r"\1n ", text)
    text = re.sub(r"\. ([a-z])", lambda match: f". {match[1].upper()}", text)
    return text[0].upper() + text[1:] + ("" if text[-1] in ".?" else ".")


class _Essay:
    """One essay in the making: paragraphs of sentences, and a count of words."""

    def __init__(self, writer: _EssayWriter, draws: RandomChoices) -> None:
        self.writer = writer
        self.draws = draws
        self.side = 0 if draws.chance(0.55) else 1
        self.paragraphs: list[list[str]] = [[]]
        self.words = 0
        self.reserved = 0
        self.used: set[str] = set()

    def choose(self, phrases: Sequence[str]) -> str:
        """One of the phrases, expanded; one that the writer has not used yet, if possible."""
        fresh = [phrase for phrase in phrases if phrase not in self.used]
        phrase = self.draws.pick(fresh or phrases)
        if phrase:
            self.used.add(phrase)
        return self.draws.expand(phrase, self.writer.vocabulary)

    def phrase(self, tiers: Tiers, skill: float) -> str:
        """A phrase of the tier that the writer manages this time."""
        return self.choose(tiers[self.draws.tier(skill)])

    def full(self) -> bool:
        """Whether the length aimed at is reached, the ending included."""
        return self.words + self.reserved >= self.writer.words

    def add(self, sentence: str) -> None:
        """Put down a sentence, unless there is no room left for it."""
        sentence = _sentence(sentence)
        count = len(sentence.split())
        if self.words + self.reserved + count <= _LONGEST:
            self.paragraphs[-1].append(sentence)
            self.words += count

    def new_paragraph(self) -> None:
        """Begin a paragraph, if this writer knows of them."""
        if self.writer.organisation > 0.5 and self.paragraphs[-1]:
            self.paragraphs.append([])

    def opening(self) -> None:
        """A first sentence, the position, or both."""
        writer = self.writer
        draws = self.draws
        if draws.chance(0.35 + 0.5 * writer.organisation):
            self.add(self.phrase(phrases("hooks"), (writer.ideas + writer.vocabulary) / 2))
        if draws.chance(0.55 + 0.6 * writer.organisation) or not self.words:
            self.add(self.phrase(phrases("theses")[self.side], (writer.ideas + writer.organisation) / 2))

    def ending(self) -> str:
        """The last sentence, or nothing where the writer just stops."""
        writer = self.writer
        if not self.draws.chance(0.3 + 0.9 * writer.organisation):
            return ""
        return _sentence(self.phrase(phrases("closings")[self.side], (writer.ideas + writer.organisation) / 2))

    def reason(self, idea: Mapping[str, Tiers], leads: Tiers) -> None:
        """A reason with what the writer knows to say for it."""
        writer = self.writer
        draws = self.draws
        wording = (writer.ideas + writer.vocabulary) / 2
        claim = self.phrase(idea["claim"], wording)
        frame = "<A>"
        ground = ""
        if draws.chance(0.5 + 0.6 * writer.ideas):
            frame = self.phrase(phrases("compounds"), writer.sentences)
            ground = self.phrase(idea["ground"], wording)
        # "First of all, because it rains, ..." would be clumsy: only plain frames take a connective.
        lead = self.phrase(leads, writer.organisation) if frame[0] == "<" else ""
        self.add(lead + frame.replace("<A>", claim).replace("<B>", ground))
        if draws.chance(0.45 + 0.6 * writer.ideas):
            self.example(idea)
        if draws.chance(0.1 + 0.45 * writer.ideas) and not self.full():
            self.add(self.phrase(idea["impact"], wording))

    def example(self, idea: Mapping[str, Tiers]) -> None:
        """Something seen, heard or counted."""
        tier = self.draws.tier(self.writer.ideas)
        # A writer who has counted the cars does not then say "like, I counted the cars".
        lead = self.choose(phrases("example_leads")[max(min(tier, 1), self.draws.tier(self.writer.organisation))])
        self.add(lead + self.choose(idea["evidence"][tier]))

    def stray(self) -> None:
        """Change the subject, say nothing, or say the same again."""
        draw = self.draws.uniform()
        if draw < 0.3:
            self.add(self.choose(phrases("asides")))
        elif draw < 0.62:
            self.add(self.choose(phrases("padding")))
        elif draw < 0.85:
            self.add(self.choose(phrases("restatements")[self.side]))
        else:
            self.repeat()

    def repeat(self) -> None:
        """Say once more what was said before, nearly in the same words."""
        earlier = self.draws.pick([sentence for paragraph in self.paragraphs for sentence in paragraph])
        if len(earlier.split()) <= 14 and not earlier.startswith(_NOT_AGAIN):
            first, remainder = earlier.split(" ", 1)
            first = first if first.startswith("I") and first != "It" else first.lower()
            self.add(self.draws.pick(("", "like I said ", "and I mean it, ", "again, ")) + f"{first} {remainder}")

    def objection(self) -> None:
        """An objection and the reply to it."""
        writer = self.writer
        draws = self.draws
        objection, reply = draws.pick(phrases("concessions")[self.side])
        frame = self.phrase(phrases("concession_frames"), (writer.ideas + writer.sentences) / 2)
        self.new_paragraph()
        frame = frame.replace("<C>", draws.expand(objection, writer.vocabulary))
        self.add(frame.replace("<R>", draws.expand(reply, writer.vocabulary)))

    def body(self) -> None:
        """Reasons until the length aimed at is reached, and an objection."""
        writer = self.writer
        draws = self.draws
        ideas = draws.shuffled(phrases("reasons")[self.side])
        wandering = 1.0 - writer.focus
        objects = draws.chance(1.3 * writer.ideas - 0.3)
        self.reserved += _OBJECTION_WORDS * objects
        for number, idea in enumerate(ideas):
            if self.full():
                break
            if number == 0 or draws.chance(0.8):
                self.new_paragraph()
            last = self.words + self.reserved + _REASON_WORDS >= writer.words
            first_lead, next_lead, last_lead = phrases("leads")
            if number == 0:
                self.reason(idea, first_lead)
            else:
                self.reason(idea, last_lead if last else next_lead)
            while draws.chance(0.62 * wandering * (0.7 + 0.3 * wandering)) and not self.full():
                self.stray()
        # A writer who has run out of reasons returns to one for another example, or chats on.
        for idea in ideas:
            if not self.full() and draws.chance(0.6):
                self.example(idea)
        for _ in range(_PATIENCE):
            if not self.full():
                self.stray()
        self.reserved -= _OBJECTION_WORDS * objects
        if objects:
            self.objection()

    def write(self) -> str:
        """The whole essay, before the mistakes."""
        ending = self.ending()
        self.reserved = len(ending.split())
        self.opening()
        self.body()
        if ending:
            if self.draws.chance(0.85):
                self.new_paragraph()
            self.paragraphs[-1].append(ending)
        return "\n\n".join(" ".join(sentences) for sentences in self.paragraphs if sentences)


def _essay(level: int, draws: RandomChoices) -> str:
    """An essay of about that level."""
    writer = _writer(level, draws)
    return with_mistakes(_Essay(writer, draws).write(), writer.conventions, draws)


def synthetic_essays(n: int, seed: int = 0) -> pl.DataFrame:
    """Make short essays whose quality is known.

    The same ``n`` and ``seed`` give the same texts on every machine.

    Args:
        n: how many essays.
        seed: another seed gives other essays.

    Returns:
        One row an essay: ``ID``, ``text``, ``quality_level`` (1 to 20, every level equally often), ``theta_true`` (the
        level centred and scaled: evenly spaced levels have mean 0 and standard deviation 1), ``prompt_id``, ``model``
        and ``created_at`` (a constant).

    Raises:
        InputError: when ``n`` is not a positive whole number, or ``seed`` not a whole number.

    Example:
        >>> synthetic_essays(3, seed=1).select("ID", "quality_level").rows()
        [('S0001', 10), ('S0002', 20), ('S0003', 14)]
    """
    n = require_int(n, "n", least=1)
    seed = require_int(seed, "seed", least=0)
    order = RandomChoices(f"{seed}:levels")
    # Where n is no multiple of 20, chance decides which levels get one essay more.
    rounds = [order.shuffled(range(1, _LEVELS + 1)) for _ in range(-(-n // _LEVELS))]
    levels = order.shuffled([level for round_levels in rounds for level in round_levels][:n])
    width = max(4, len(str(n)))
    return pl.DataFrame(
        {
            "ID": [f"S{number:0{width}d}" for number in range(1, n + 1)],
            "text": [_essay(level, RandomChoices(f"{seed}:{number}")) for number, level in enumerate(levels, start=1)],
            "quality_level": levels,
            "theta_true": [(level - _MIDDLE) / _SPREAD for level in levels],
        }
    ).with_columns(prompt_id=pl.lit(PROMPT_ID), model=pl.lit(_MODEL), created_at=pl.lit(_CREATED_AT))
