"""Where the two samples stand in a prompt whose template is not known.

Samples are found by their labels: two that are the same but for a number, a letter or a word for the place, such as
``Text A:`` and ``Text B:``, ``<essay id="1">`` and ``<essay id="2">``, or ``### Erster Aufsatz`` and ``### Zweiter
Aufsatz``. Where there are none, the two longest blocks are taken.
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
    r"""(?:["'*_`\])>=#|-]*[^\S\n]*:[*_]*(?:[^\S\n]*["“„«]+)?|["']?[*_`\])>=#|,–—-]+|</(?!BETTER)\w+>(?=\s*<)|\.(?=\s)|(?=\n))"""
)
_LONGEST_LABEL = 40
_OPENINGS = (  # a line of signs, signs or tags before the text, or the rest of the label's line
    re.compile(r"[^\n]*\n\s*(?:```[^\n]*|<[^<>\n]+>|[^\w\n]{2,})(?=\n)"),
    re.compile(r"""(?:[\s,]*"\w+"\s*:)?\s*["“„«]+|(?:<\w+>)+|\s*>[^\S\n]"""),
    re.compile(r"[^\n]*"),
)
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_CLOSING = re.compile(r"(?:</[^<>\n]+>)+\Z|\s\|\Z|^\W*(?:the )?ende?\b.*\Z|^\W+\Z", re.IGNORECASE | re.MULTILINE)
_LAST_LINE = re.compile(r"^.*\Z", re.MULTILINE)
_ANSWER = re.compile(r"SAMPLE_[12]|BETTER_SAMPLE", re.IGNORECASE)


class _Label(NamedTuple):
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
    samples = None
    for upper, lower in _label_pairs(prompt):
        upper_text, lower_text = _texts(prompt, upper, lower)
        is_answer = _ANSWER.search(upper_text + lower_text) is not None
        is_forward = upper.place in _SECOND
        is_named = upper.name != ""
        begins_line = prompt[lower.start - 1] == "\n"
        # Instructions, and lists and dialogues in a sample, have labels, too.
        rank = (not is_answer, is_named, is_named or is_forward, begins_line, len(upper_text))
        if rank > best and _has_words(upper_text) and _has_words(lower_text):
            best = rank
            samples = (upper_text, lower_text)
            if not is_forward:
                samples = (lower_text, upper_text)
    if samples is None and (is_choice or _ANSWER.search(prompt)):
        return _longest_blocks(prompt)
    return samples


def _has_words(text: str) -> bool:
    return re.search(r"\w", text) is not None


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
        below = twin.search(prompt, after.end())
        if below is not None:
            upper = _Label(before.start(), after.end(), place, _name(before[0] + place + after[0], place))
            lower = _Label(below.start(), below.end(), other, _name(below[0], other))
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
    for opening in _OPENINGS:
        after = opening.match(prompt, label.end)
        twin_after = opening.match(prompt, twin.end)
        if after is not None and twin_after is not None and after[0] == twin_after[0]:
            return label._replace(start=start, end=after.end())
    return label._replace(start=start)


def _texts(prompt: str, upper: _Label, lower: _Label) -> tuple[str, str]:
    """The text between the labels and the one behind them, without what closes them, and without instructions."""
    between = prompt[upper.end : lower.start]
    behind = prompt[lower.end :]
    quote = _QUOTES.get(prompt[upper.end - 1])
    if quote is not None:
        end = re.compile(rf"{quote}+\s*(?:[,}}\])]|\n|\Z)")
        return end.split(between)[0].strip(), end.split(behind)[0].strip()
    for closing in filter(None, (_CLOSING.search(between.rstrip()), _LAST_LINE.search(between.rstrip()))):
        twin = _PLACE.sub(lambda match: _OTHER[match[0].casefold()], closing[0])
        closed = re.search(re.escape(twin), behind, re.IGNORECASE)
        if closed is not None:
            return between[: closing.start()].strip(), behind[: closed.start()].strip()
    gap = "\n\n" if between.endswith("\n\n") else "\n"
    return between.strip(), _without_instructions(behind.lstrip(), prompt, upper, lower, gap)


def _without_instructions(behind: str, prompt: str, upper: _Label, lower: _Label, gap: str) -> str:
    """What stands before the paragraph that speaks of the answer or of a label, and before a question."""
    hints = [_ANSWER.pattern]
    if upper.name:
        hints += [rf"\b{re.escape(label.name)}\b" for label in (upper, lower)]
    signs = re.compile(r"[#*=\[]+").match(prompt, lower.start)
    if signs is not None:
        hints.append(rf"(?<=\n){re.escape(signs[0])}")
    hint = re.search("|".join(hints), behind, re.IGNORECASE)
    if hint is not None:
        text = behind[: hint.start()]
        behind = text.rpartition(gap)[0] or text
    text, _, last = behind.rstrip().rpartition(gap)
    if text and last.endswith(("?", ":")) and "\n" not in last:
        return text.rstrip()
    return behind.rstrip()


def _longest_blocks(prompt: str) -> tuple[str, str] | None:
    """The two longest paragraphs, or else lines, behind the first, which say nothing of the answer, in their order."""
    for separator in (r"\n\s*\n", r"\n"):
        blocks = [block.strip() for block in re.split(separator, prompt)[1:]]
        texts = [block for block in blocks if _has_words(block) and not _ANSWER.search(block)]
        if len(texts) >= 2:
            longest = sorted(texts, key=len)[-2:]
            longest.sort(key=texts.index)
            return longest[0], longest[1]
    return None
