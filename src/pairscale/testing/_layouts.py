"""Where the two samples are in a prompt whose template is not known.

Samples are found by their labels: two lines that begin the same but for the place, such as ``Text A:`` and ``Text B:``,
``## Essay 1`` and ``## Essay 2``, or ``<text id="1">`` and ``<text id="2">``. Where there are none, the two longest
blocks are taken. Signs and labels around a text may count as a part of it: that is enough for a rehearsal.
"""

from __future__ import annotations

import re

__all__ = ["locate_samples"]

_SECOND = {"1": "2", "a": "b", "one": "two", "first": "second", "left": "right"}
_OTHER = _SECOND | {second: first for first, second in _SECOND.items()}
_LABEL = re.compile(
    rf"^([^\n]{{0,40}}?)({'|'.join(_OTHER)})((?:['’]s)?(?: [^\W\d_]+)?[^\w\n]*(?:[:>*#|\]\"]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile(r"SAMPLE_[12]|BETTER_SAMPLE", re.IGNORECASE)
_EDGES = re.compile(r"^\W+|\W+$")


def locate_samples(prompt: str, *, is_choice: bool) -> tuple[str, str] | None:
    """SAMPLE_1 and SAMPLE_2; None when there are no labels, and no sign that the prompt has samples.

    Args:
        prompt: the prompt.
        is_choice: whether the request itself asks for SAMPLE_1 or SAMPLE_2.
    """
    candidates: list[tuple[str, str]] = []
    for label in _LABEL.finditer(prompt):
        before, place, after = label.groups()
        other = f"^{re.escape(before)}{_OTHER[place.casefold()]}{re.escape(after)}"
        twin = re.compile(other, re.IGNORECASE | re.MULTILINE).search(prompt, label.end())
        if twin is None:
            continue
        upper = _EDGES.sub("", prompt[label.end() : twin.start()])
        lower = _EDGES.sub("", _before_answer(prompt[twin.end() :]))
        if not _ANSWER.search(upper):  # instructions have labels, too
            candidates.append((upper, lower) if place.casefold() in _SECOND else (lower, upper))
    if candidates:
        return max(candidates, key=lambda texts: min(map(len, texts)))
    if is_choice or _ANSWER.search(prompt):
        return _longest_blocks(prompt)
    return None


def _before_answer(text: str) -> str:
    """The prompt up to the paragraph about the answer."""
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
