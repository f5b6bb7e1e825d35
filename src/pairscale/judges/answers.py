"""Read a model's reply: which of the two it names, how sure it is, or why it names neither.

The tag must occur once, or several times with the same answer. White space and case do not matter. A tag that the reply
quotes from one of the samples is no answer.

Texts are data, and never altered. When one of them holds a tag of the prompt (its block's, or the answer's) or the line
that the template puts before or behind a text, the blocks of this prompt are named by a digest of both texts as well.
The author of a text cannot know it, and the same two texts always give the same prompt.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pairscale.core.options import shown
from pairscale.core.prompts import filled
from pairscale.core.provenance import text_hash
from pairscale.providers.base import CHOICE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.core.traits import Trait
    from pairscale.providers.base import TokenLogprob

ANSWERS = ("SAMPLE_1", "SAMPLE_2")
"""The two answers."""
CONFIDENCE_QUESTION = (
    "\n\nAfter your answer, say how probable it is that your choice is right, in per cent from 50 (a guess) to 100 "
    "(certain), in this form: <CONFIDENCE>75</CONFIDENCE>"
)
"""What is added to a prompt to ask how sure the model is."""
_CONFIDENCE = re.compile(r"<CONFIDENCE>\s*(\d{1,3}(?:\.\d+)?)\s*%?\s*</CONFIDENCE>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What a reply says.

    Attributes:
        position: 1 or 2; None when it says neither.
        code: why not, one of the error codes.
        reason: the same for a message.
        tie: whether it says that neither is better, where that is an answer.
    """

    position: Literal[1, 2] | None = None
    code: str | None = None
    reason: str | None = None
    tie: bool = False


def read_tag(text: str, prefix: str, suffix: str, samples: Sequence[str] = (), *, ties: bool = False) -> ParsedAnswer:
    """The answer between two tags.

    Args:
        text: the reply.
        prefix: the tag before the answer, such as ``<BETTER_SAMPLE>``.
        suffix: the tag behind it.
        samples: the texts that were compared; what is quoted from them does not count.
        ties: whether ``TIE`` is also an answer.
    """
    matches = list(_between(prefix, suffix, ties).finditer(text))
    own = [match for match in matches if not _is_quoted(match, text, samples)]
    choices = {match[1].upper() for match in own}
    if choices == {"TIE"}:
        return ParsedAnswer(tie=True)
    if len(choices) == 1:
        return ParsedAnswer(1 if choices == {"SAMPLE_1"} else 2)
    if choices:
        return ParsedAnswer(None, "invalid_winner", f"the reply gives several answers: {', '.join(sorted(choices))}")
    if matches:
        return ParsedAnswer(None, "parse_error", "the reply only quotes a sample that contains the answer's tag")
    return ParsedAnswer(
        None, "parse_error", f"the reply has no {prefix}…{suffix} with SAMPLE_1 or SAMPLE_2: {_start(text)}"
    )


@lru_cache(maxsize=64)
def _between(prefix: str, suffix: str, ties: bool) -> re.Pattern[str]:
    answer = rf"(SAMPLE_[12]{'|TIE' * ties})"
    return re.compile(rf"{_loose(prefix)}\s*{answer}\s*{_loose(suffix)}", re.IGNORECASE)


def _loose(tag: str) -> str:
    """A pattern of a tag, with white space wherever a letter begins or ends."""
    return r"\s*".join(re.escape(part) for part in re.findall(r"\w+|[^\w\s]", tag))


def _is_quoted(match: re.Match[str], text: str, samples: Sequence[str]) -> bool:
    """Whether a tag, with the line before it or the one behind it, occurs word for word in a sample.

    A tag with nothing around it is an answer, unless it is all that there is of a sample.
    """
    left = text[: match.start()].rstrip().rpartition("\n")[2]
    right = text[match.end() :].lstrip().partition("\n")[0]
    parts = []
    if left:
        parts.append(squeezed(left + match[0]))
    if right:
        parts.append(squeezed(match[0] + right))
    whole = squeezed(text)
    return any(whole == sample or any(part in sample for part in parts) for sample in map(squeezed, samples))


@lru_cache(maxsize=512)  # a text meets many others
def squeezed(text: str) -> str:
    """A text without white space and case: quotations lose both."""
    return "".join(text.split()).casefold()


def read_structured(text: str) -> ParsedAnswer:
    """The answer of structured output: a JSON object with ``better_sample``."""
    try:
        document = json.loads(text)
    except ValueError:
        return ParsedAnswer(None, "parse_error", f"the reply is not the JSON that was asked for: {_start(text)}")
    choice = document.get(CHOICE_KEY) if isinstance(document, dict) else None
    if choice not in ANSWERS:
        return ParsedAnswer(None, "invalid_winner", f"{CHOICE_KEY} must be SAMPLE_1 or SAMPLE_2, not {choice!r:.80}")
    return ParsedAnswer(1 if choice == "SAMPLE_1" else 2)


def probability_of_first(logprobs: Sequence[TokenLogprob] | None, lead: str) -> float | None:
    """The probability of SAMPLE_1 against SAMPLE_2, from the alternatives to the token that names the choice.

    Args:
        logprobs: the tokens of the answer.
        lead: the text right before the choice: the tag, or :data:`~pairscale.providers.base.CHOICE_KEY`.

    Returns:
        None when the tokens do not show the choice.
    """
    stem = r"[\"'\s:]*" if lead == CHOICE_KEY else r"\s*"
    choice = re.compile(rf"{re.escape(lead)}{stem}SAMPLE_([12])(?!\d)", re.IGNORECASE)
    text = "".join(token.token for token in logprobs or ())
    choices = list(choice.finditer(text))
    if not choices:
        return None
    last = choices[-1]  # an answer may be corrected
    end = 0
    for token in logprobs or ():
        start = end
        end += len(token.token)
        if end > last.start(1):
            break
    weights = {"1": 0.0, "2": 0.0}
    for token_text, logprob in token.top:
        chosen = choice.search(text[min(last.start(), start) : start] + token_text)
        if chosen is not None:
            weights[chosen[1]] += math.exp(min(logprob, 0.0))
    total = sum(weights.values())
    return weights["1"] / total if total else None


def stated_confidence(text: str, position: int) -> float | None:
    """The probability that the first is better, by the last confidence that the reply states; None without one.

    Args:
        text: the reply.
        position: which sample it chose.
    """
    confidences = _CONFIDENCE.findall(text)
    if not confidences or not 0 <= float(confidences[-1]) <= 100:
        return None
    sure = float(confidences[-1]) / 100
    return sure if position == 1 else 1 - sure


_DECLINES = re.compile(
    r"""\W* (?: (?:i(?:'m|\ am)\ )? (?:very\ |really\ )? sorry\b [^.!?]{0,60}? \W+ (?:but\W+)? )?
    (?: unfortunately\W+ )? (?: as\ an\ ai [^,.]* ,\W* )?
    i (?: \ (?: can(?:not|'t|\ not) | could(?:\ not|n't) | will\ not | won't | (?:must\ )?decline | refuse )
        | (?:'m|\ am)\ (?:not\ able|unable) )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_REFUSAL = 600


def declines(text: str) -> bool:
    """Whether a reply without an answer begins like those of models that decline."""
    return len(text) <= _LONGEST_REFUSAL and _DECLINES.match(text.replace("’", "'")) is not None


def _start(text: str) -> str:
    return shown(" ".join(text.split()))


# Fences around texts

_PROMPT_TAGS = re.compile(r"<\s*/?\s*(?:SAMPLE_[12]|BETTER_SAMPLE)\b", re.IGNORECASE)
_MARK_LENGTH = 12  # letters of the digest
_SHORTEST_FENCE = 3  # a shorter fence occurs in many texts, and means nothing to the model


@lru_cache(maxsize=512)
def holds_fences(text: str, template: str, *tags: str) -> bool:
    """Whether a text contains something that means something to the prompt, or to the reader of the answer.

    Args:
        text: a sample.
        template: the template of the prompt.
        tags: the tags around the answer.
    """
    if _PROMPT_TAGS.search(text):
        return True
    small = squeezed(text)
    return any(fence in small for fence in _fences(template, tags))


@lru_cache(maxsize=64)
def _fences(template: str, tags: tuple[str, ...]) -> frozenset[str]:
    """The tags, and the lines, or parts of lines, right before and right behind the places of the texts."""
    fences = {squeezed(tag) for tag in tags if tag}
    for place in re.finditer(r"\{SAMPLE_[12]\}", template):
        before = template[: place.start()].rstrip().rpartition("\n")[2]
        after = template[place.end() :].lstrip().partition("\n")[0]
        lines = (squeezed(before), squeezed(after))
        fences |= {line for line in lines if len(line) >= _SHORTEST_FENCE and "{" not in line}
    return frozenset(fences)


def guarded_prompt(template: str, trait: Trait, text1: str, text2: str, *tags: str) -> str:
    """The prompt for two texts, fenced by their digest when one of them holds the prompt's own fences.

    Args:
        template: the template.
        trait: what to judge.
        text1: the first text.
        text2: the second text.
        tags: the tags around the answer.
    """
    if any(holds_fences(text, template, *tags) for text in (text1, text2)):
        template = _fenced(template, text_hash(f"{text_hash(text1)}{text_hash(text2)}")[:_MARK_LENGTH])
    return filled(template, trait.name, trait.description, text1, text2)


def _fenced(template: str, mark: str) -> str:
    """The template with blocks around both texts whose tags carry the mark."""
    for side in ("SAMPLE_1", "SAMPLE_2"):
        block = re.compile(rf"<{side}>(\s*)\{{{side}\}}(\s*)</{side}>")
        template, times = block.subn(rf"<{side} {mark}>\1{{{side}}}\2</{side} {mark}>", template)
        if not times:
            template = template.replace(f"{{{side}}}", f"<{side} {mark}>\n{{{side}}}\n</{side} {mark}>")
    return template
