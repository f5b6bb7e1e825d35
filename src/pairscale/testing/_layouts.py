"""Where the two samples stand in a prompt whose template is not known.

Samples are found by their labels: two that are the same but for a number, a letter or a word for the place, such as
``Text A:`` and ``Text B:``, ``<essay id="1">`` and ``<essay id="2">``, or ``### Erster Aufsatz`` and ``### Zweiter
Aufsatz``. Where there are none, the two longest blocks are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

__all__ = ["locate_samples"]

_Span: TypeAlias = tuple[int, int]

_SECOND = {
    "1": "2", "a": "b", "i": "ii", "x": "y", "one": "two", "first": "second", "left": "right", "alpha": "beta",
    "eins": "zwei", "erste": "zweite", "erster": "zweiter", "erstes": "zweites", "links": "rechts",
    "linke": "rechte", "linker": "rechter", "premier": "deuxième", "première": "seconde", "primero": "segundo",
}  # fmt: skip
_OTHER = _SECOND | {second: first for first, second in _SECOND.items()}
_PLACE = re.compile(
    rf"(?<![^\W_])(?i:{'|'.join(_OTHER)})(?![^\W_])|(?<=[^\W\d_])[12](?![^\W_])|(?<=[a-z])[ABXY](?![^\W_])"
)
_BEFORE_PLACE = re.compile(r"(?:[^\w\s{},;.!?/]+[^\S\n]*)?(?:[^\W\d_]+[ _-]?)?\Z")
_AFTER_PLACE = re.compile(
    r"(?:['’]s)?(?:[^\S\n]+[^\W\d_]+){0,3}[^\S\n]*"  # up to three words, then a colon, signs or the end of the line
    r"""(?:["'*_`\])>=#|-]*[^\S\n]*:[*_]*(?:[^\S\n]*["“„«]+)?|["']?[*_`\])>=#|,–—-]+|</(?!BETTER)\w+>(?=\s*<)|\.(?=\s)|(?=\n))"""
)
_LONGEST_LABEL = 40
_OPENING_LINE = re.compile(r"[^\n]*\n\s*(?:```[^\n]*|<[^<>\n]+>|[^\w\n]{2,})(?=\n)")
_OPENING_SIGNS = re.compile(r"""(?:[\s,]*"\w+"\s*:)?\s*["“„«]+|(?:<\w+>)+|\s*>[^\S\n]""")
_REST_OF_LINE = re.compile(r"[^\n]*")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_CLOSING = re.compile(r"(?:</[^<>\n]+>)+\Z|\s\|\Z|\A\W*(?:end|ende|fin)\b.*|\A\W+\Z", re.IGNORECASE)
_WORD = re.compile(r"\w")
_ANSWER = re.compile(r"SAMPLE_[12]|BETTER_SAMPLE", re.IGNORECASE)
_BLOCK_ENDS = (r"\n[^\w\n]*[^\w\s][^\w\n]*\n", r"\n\s*\n", r"\n", r"(?<=[.!?|])\s")


@dataclass(frozen=True, slots=True)
class _Label:
    """What stands before a sample: ``place`` is ``1`` or ``second``, ``name`` is ``Text A``, or empty."""

    start: int
    end: int
    place: str
    name: str


def locate_samples(prompt: str, *, is_choice: bool) -> tuple[str, str] | None:
    """SAMPLE_1 and SAMPLE_2; None when there are no labels, and no sign that the prompt has samples.

    Args:
        prompt: the prompt.
        is_choice: whether the request itself asks for SAMPLE_1 or SAMPLE_2.
    """
    best: tuple[bool | int, ...] = ()
    located = None
    for upper, lower in _label_pairs(prompt):
        upper_text, lower_text = _texts(prompt, upper, lower)
        is_answer = any(_ANSWER.search(prompt, *span) for span in (upper_text, lower_text))
        is_forward = upper.place in _SECOND
        is_named = upper.name != ""
        begins_line = prompt[lower.start - 1] == "\n"
        has_own_line = "\n" in prompt[upper.end - 1 : upper_text[0]]
        length = upper_text[1] - upper_text[0]
        # Instructions, and lists and dialogues in a sample, have labels, too.
        rank = (not is_answer, is_named, is_named or is_forward, begins_line, has_own_line, length)
        if rank > best and _WORD.search(prompt, *upper_text) and _WORD.search(prompt, *lower_text):
            best = rank
            located = (upper_text, lower_text) if is_forward else (lower_text, upper_text)
    if located is None and (is_choice or _ANSWER.search(prompt)):
        located = _longest_blocks(prompt)
    return None if located is None else (prompt[slice(*located[0])], prompt[slice(*located[1])])


def _stripped(prompt: str, start: int, end: int) -> _Span:
    text = prompt[start:end]
    return end - len(text.lstrip()), start + len(text.rstrip())


def _label_pairs(prompt: str) -> Iterator[tuple[_Label, _Label]]:
    """Every label that is followed by the same one with the other place."""
    for match in _PLACE.finditer(prompt):
        before = _BEFORE_PLACE.search(prompt, max(0, match.start() - _LONGEST_LABEL), match.start())
        after = _AFTER_PLACE.match(prompt, match.end())
        if before is None or after is None or (after[0] == "." and before[0]):
            continue
        place = match[0].casefold()
        other = _OTHER[place]
        boundary = r"(?<![^\W_])" if f"{before[0]}{place}"[0].isalnum() else ""
        line_end = "" if after[0].strip() else r"(?=[^\S\n]*\n)"
        twin = re.compile(f"{boundary}{re.escape(before[0] + other + after[0])}{line_end}", re.IGNORECASE)
        found = twin.search(prompt, after.end())
        if found is not None:
            upper = _Label(before.start(), after.end(), place, _name(before[0] + match[0] + after[0], place))
            lower = _Label(found.start(), found.end(), other, _name(found[0], other))
            yield _whole(prompt, upper, lower), _whole(prompt, lower, upper)


def _name(label: str, place: str) -> str:
    """A label without the signs around it; empty for a place alone."""
    name = re.sub(r"^\W+|\W+$", "", label)
    return "" if name.casefold() == place else name


def _whole(prompt: str, label: _Label, twin: _Label) -> _Label:
    """The label with what stands around it and its twin alike: the rest of the line, and signs that open the text."""
    start = prompt.rfind("\n", 0, label.start) + 1
    twin_start = prompt.rfind("\n", 0, twin.start) + 1
    if prompt[start : label.start].strip() != prompt[twin_start : twin.start].strip():
        start = label.start
    for opening in (_OPENING_LINE, _OPENING_SIGNS, _REST_OF_LINE):
        after = opening.match(prompt, label.end)
        twin_after = opening.match(prompt, twin.end)
        if after is not None and twin_after is not None and after[0] == twin_after[0]:
            return replace(label, start=start, end=after.end())
    return replace(label, start=start)


def _texts(prompt: str, upper: _Label, lower: _Label) -> tuple[_Span, _Span]:
    """The text between the labels and the one behind them, without what closes them, and without instructions."""
    inner = prompt[upper.end : lower.start].rstrip()
    upper_closing, lower_closing = _closings(inner, prompt[upper.start : upper.end], prompt[lower.end :], upper.place)
    ends = [match.start() for match in re.finditer(upper_closing, inner)] if upper_closing else []
    upper_end = upper.end + (ends[-1] if ends else len(inner))
    closed = re.compile(lower_closing, re.IGNORECASE).search(prompt, lower.end) if lower_closing else None
    if closed is not None:
        lower_end = closed.start()
    else:  # both texts are set off alike
        gap = "\n\n" if "\n\n" in prompt[upper.end + len(inner) : lower.start] else "\n"
        lower_end = _start_of_instructions(prompt, upper, lower, gap)
    return _stripped(prompt, upper.end, upper_end), _stripped(prompt, lower.end, lower_end)


def _closings(inner: str, label: str, rest: str, place: str) -> tuple[str, str]:
    """Patterns of what closes the upper text and the lower one; empty where nothing does."""
    opening = re.search(r"""["“„«]*\Z""", label)
    quote = "".join(_QUOTES[sign] for sign in opening[0]) if opening is not None else ""
    if quote:
        pattern = rf"{quote}\s*(?:[,}}\])]|\n|\Z)"
        return pattern, pattern
    last = inner.rpartition("\n")[2].strip()
    sign = _CLOSING.search(last)
    closing = last if sign is None else sign[0]
    twin = _PLACE.sub(lambda match: _OTHER[place] if match[0].casefold() == place else match[0], closing)
    if twin != closing and re.search(re.escape(twin), rest, re.IGNORECASE):
        return re.escape(closing), re.escape(twin)
    return ("", "") if sign is None else (re.escape(closing), re.escape(closing))


def _start_of_instructions(prompt: str, upper: _Label, lower: _Label, gap: str) -> int:
    """Where the instructions behind the last text begin: the paragraph that speaks of the answer or of a label."""
    hints = [_ANSWER.pattern]
    if upper.name:
        hints += [rf"\b{re.escape(label.name)}\b" for label in (upper, lower)]
    signs = re.compile(r"[#*=\[]+").match(prompt, lower.start)
    if signs is not None:
        hints.append(rf"(?<=\n){re.escape(signs[0])}")
    start = _stripped(prompt, lower.end, len(prompt))[0]
    hint = re.compile("|".join(hints), re.IGNORECASE).search(prompt, start + 1)
    end = len(prompt)
    if hint is not None:
        ends = (prompt.rfind(separator, start, hint.start()) + 1 for separator in (gap, "\n", "? ", ". "))
        end = next((end for end in ends if end > start), hint.start())
    question = prompt.rfind(gap, start, end - 1)
    last = prompt[question:end].strip()
    return question if question > start and last.endswith(("?", ":")) and "\n" not in last else end


def _longest_blocks(prompt: str) -> tuple[_Span, _Span] | None:
    """The two longest blocks behind the first, which say nothing of the answer, in their order."""
    for ends in _BLOCK_ENDS:
        places = [0, *(place for match in re.finditer(ends, prompt) for place in match.span()), len(prompt)]
        spans = [_stripped(prompt, *span) for span in zip(places[::2], places[1::2], strict=True)]
        texts = [span for span in spans[1:] if _WORD.search(prompt, *span) and not _ANSWER.search(prompt, *span)]
        if len(texts) >= 2:
            longest = sorted(texts, key=lambda span: span[0] - span[1])[:2]
            return min(longest), max(longest)
    return None
