"""Texts are data: a text that contains the prompt's own fences gets one that no text can contain.

Texts are never altered. When one of them holds a tag of the prompt (its block's, or the answer's) or the line that the
template puts before or behind a text, the blocks of this prompt are named by a digest of both texts as well. The author
of a text cannot know it, and the same two texts always give the same prompt: prompts can be repeated and cached.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pairscale.core.prompts import build_prompt
from pairscale.core.provenance import text_hash
from pairscale.core.traits import Trait
from pairscale.judges.answers import squeezed

_TAGS = re.compile(r"<\s*/?\s*(?:SAMPLE_[12]|BETTER_SAMPLE)\b", re.IGNORECASE)
_MARK = 12  # letters of the digest
_SHORTEST = 3  # a shorter fence stands in many texts, and means nothing to the model


def holds_fences(text: str, template: str, *tags: str) -> bool:
    """Whether a text contains something that means something to the prompt, or to the reader of the answer.

    Args:
        text: a sample.
        template: the template that it is to stand in.
        tags: what stands around the answer.
    """
    if _TAGS.search(text):
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
        fences |= {line for line in lines if len(line) >= _SHORTEST and "{" not in line}
    return frozenset(fences)


def guarded_prompt(template: str, trait: Trait, text1: str, text2: str, *tags: str) -> str:
    """The prompt for two texts, fenced by their digest when one of them holds the prompt's own fences.

    Args:
        template: the template.
        trait: what to judge.
        text1: the first text.
        text2: the second text.
        tags: what stands around the answer.
    """
    if any(holds_fences(text, template, *tags) for text in (text1, text2)):
        template = _fenced(template, text_hash(f"{text_hash(text1)}{text_hash(text2)}")[:_MARK])
    return build_prompt(template, trait.name, trait.description, text1, text2)


def _fenced(template: str, mark: str) -> str:
    for side in ("SAMPLE_1", "SAMPLE_2"):
        block = re.compile(rf"<{side}>(\s*)\{{{side}\}}(\s*)</{side}>")
        template, times = block.subn(rf"<{side} {mark}>\1{{{side}}}\2</{side} {mark}>", template)
        if not times:
            template = template.replace(f"{{{side}}}", f"<{side} {mark}>\n{{{side}}}\n</{side} {mark}>")
    return template
