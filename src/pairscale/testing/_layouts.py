"""Where the two samples stand in a prompt whose template is not known.

Samples are found by their labels: two that are the same but for a number, a letter or a word for the place, such as
``Text A:`` and ``Text B:``, ``<essay id="1">`` and ``<essay id="2">``, or ``### Erster Aufsatz`` and ``### Zweiter
Aufsatz``. Where there are none, the two longest blocks are taken. Signs and labels around a text may be taken for a
part of it: a rehearsal needs no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["locate_samples"]

_SECOND = {
    "1": "2", "a": "b", "i": "ii", "x": "y", "one": "two", "first": "second", "left": "right", "alpha": "beta",
    "eins": "zwei", "erste": "zweite", "erster": "zweiter", "erstes": "zweites", "links": "rechts",
}  # fmt: skip
_OTHER = _SECOND | {second: first for first, second in _SECOND.items()}
_PLACE = re.compile(
    rf"(?<![^\W_])(?i:{'|'.join(_OTHER)})(?![^\W_])|(?<=[^\W\d_])[12](?![^\W_])|(?<=[a-z])[ABXY](?![^\W_])"
)
_BEFORE_PLACE = re.compile(r"(?:[^\w\s{},;.!?/]+[^\S\n]*)?(?:[^\W\d_]+[ _-]?)?\Z")
_AFTER_PLACE = re.compile(
    r"(?:['’]s)?(?:[^\S\n]+[^\W\d_]+){0,3}[^\S\n]*"  # up to three words, then a colon, signs or the end of the line
    r"""(?:["'*_`\])>=#|-]*[^\S\n]*:[*_]*|["']?[*_`\])>=#|,–—-]+|</(?!BETTER)\w+>(?=\s*<)|\.(?=\s)|(?=\n))"""
)
_LONGEST_LABEL = 40
_ANSWER = re.compile(r"SAMPLE_[12]|BETTER_SAMPLE", re.IGNORECASE)
_EDGES = re.compile(r"^\W+|\W+$")


class _Pair(NamedTuple):
    """Two labels: whether they have names besides their places, whether the first place stands first, and the texts."""

    is_named: bool
    is_forward: bool
    begins_line: bool
    upper: str
    lower: str


def locate_samples(prompt: str, *, is_choice: bool) -> tuple[str, str] | None:
    """SAMPLE_1 and SAMPLE_2; None when there are no labels, and no sign that the prompt has samples.

    Args:
        prompt: the prompt.
        is_choice: whether the request itself asks for SAMPLE_1 or SAMPLE_2.
    """
    best: tuple[bool | int, ...] = ()
    samples = None
    for pair in _label_pairs(prompt):
        # Instructions, and lists and dialogues in a sample, have labels, too.
        is_answer = _ANSWER.search(pair.upper) is not None
        rank = (not is_answer, pair.is_named, pair.is_named or pair.is_forward, pair.begins_line, len(pair.upper))
        if rank > best and pair.upper and pair.lower:
            best = rank
            samples = (pair.upper, pair.lower) if pair.is_forward else (pair.lower, pair.upper)
    if samples is None and (is_choice or _ANSWER.search(prompt)):
        return _longest_blocks(prompt)
    return samples


def _label_pairs(prompt: str) -> Iterator[_Pair]:
    """Every label that is followed by the same one with the other place."""
    for match in _PLACE.finditer(prompt):
        before = _BEFORE_PLACE.search(prompt, max(0, match.start() - _LONGEST_LABEL), match.start())
        after = _AFTER_PLACE.match(prompt, match.end())
        if before is None or after is None or (after[0] == "." and before[0]):
            continue
        place = match[0].casefold()
        other = f"{before[0]}{_OTHER[place]}{after[0]}"
        boundary = r"(?<![^\W_])" if other[0].isalnum() else ""
        line_end = "" if after[0].strip() else r"(?=[^\S\n]*\n)"
        twin = re.compile(f"{boundary}{re.escape(other)}{line_end}", re.IGNORECASE).search(prompt, after.end())
        if twin is None:
            continue
        is_named = _EDGES.sub("", before[0] + place + after[0]).casefold() != place
        begins_line = prompt[: twin.start()].endswith("\n")
        upper = _EDGES.sub("", prompt[after.end() : twin.start()])
        lower = _EDGES.sub("", _before_answer(prompt[twin.end() :]))
        yield _Pair(is_named, place in _SECOND, begins_line, upper, lower)


def _before_answer(text: str) -> str:
    """What stands before the paragraph that speaks of the answer."""
    answer = _ANSWER.search(text)
    if answer is None:
        return text
    kept = text[: answer.start()]
    return kept.rpartition("\n\n")[0] or kept


def _longest_blocks(prompt: str) -> tuple[str, str] | None:
    """The two longest paragraphs, or else lines, behind the first, which say nothing of the answer, in their order."""
    for separator in (r"\n\s*\n", r"\n"):
        texts = [block for block in re.split(separator, prompt)[1:] if not _ANSWER.search(block)]
        longest = sorted(sorted(texts, key=len)[-2:], key=texts.index)
        if len(longest) == 2:
            return longest[0].strip(), longest[1].strip()
    return None
