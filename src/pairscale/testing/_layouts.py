"""Where the two samples stand in a prompt whose template is not known.

Samples are found by their labels: two at the beginning of a line that are the same but for a number, a letter or a
word for the place, such as ``Text A:`` and ``Text B:``, ``<essay id="1">`` and ``<essay id="2">``, or ``### Erster
Aufsatz`` and ``### Zweiter Aufsatz``. Where there are none, the two longest blocks are taken.
"""

from __future__ import annotations

import re

_SECOND = {
    "1": "2", "a": "b", "x": "y", "one": "two", "first": "second", "left": "right",
    "eins": "zwei", "erste": "zweite", "erster": "zweiter", "erstes": "zweites", "links": "rechts",
}  # fmt: skip
_OTHER = _SECOND | {second: first for first, second in _SECOND.items()}
_LABEL = re.compile(
    r"""^(?P<before>[^\w\n]*(?:[a-z]+[ _=:"-]+)*)"""
    rf"(?P<place>{'|'.join(sorted(_OTHER, key=len, reverse=True))})"
    r"(?P<after>(?:'s)?(?: \w+){0,3}[^\w\n]*?(?:[:>][*_]*|(?=\n)))",
    re.IGNORECASE | re.MULTILINE,
)
_RULE = re.compile(r"\A\s*[^\w\s]{2,}\n")
_CLOSING_TAG = re.compile(r"</[^<>\n]+>\Z")
_LAST_LINE = re.compile(r"^.*\Z", re.MULTILINE)
_ANSWER = re.compile(r"SAMPLE_[12]|BETTER_SAMPLE", re.IGNORECASE)


def locate_samples(prompt: str, *, is_choice: bool) -> tuple[str, str] | None:
    """SAMPLE_1 and SAMPLE_2; None when there are no labels, and no sign that the prompt has samples.

    Args:
        prompt: the prompt.
        is_choice: whether the request itself asks for SAMPLE_1 or SAMPLE_2.
    """
    candidates: list[tuple[tuple[bool, bool, int], str, str]] = []
    for label in _LABEL.finditer(prompt):
        place = label["place"].casefold()
        twin = re.compile(re.escape(label["before"] + _OTHER[place] + label["after"]), re.IGNORECASE)
        below = twin.search(prompt, label.end())
        if below is None:
            continue
        between = prompt[label.end() : below.start()]
        behind = prompt[below.end() :]
        rest = between.partition("\n")[0]
        if behind.startswith(f"{rest}\n"):  # it belongs to the label
            between = between.removeprefix(rest)
            behind = behind.removeprefix(rest)
        upper, lower = _texts(between, behind, label, below)
        if _has_words(upper) and _has_words(lower):
            # Lists and dialogues in a sample have labels, too, and so have instructions.
            rank = (_ANSWER.search(upper + lower) is None, _has_words(label["before"] + label["after"]), len(upper))
            candidates.append((rank, upper, lower) if place in _SECOND else (rank, lower, upper))
    if candidates:
        best = max(candidates, key=lambda candidate: candidate[0])
        return best[1], best[2]
    if is_choice or _ANSWER.search(prompt):
        return _longest_blocks(prompt)
    return None


def _has_words(text: str) -> bool:
    return re.search(r"\w", text) is not None


def _texts(between: str, behind: str, label: re.Match[str], below: re.Match[str]) -> tuple[str, str]:
    """The text between the labels and the one behind them, without what closes them, and without instructions."""
    between = _RULE.sub("", between).strip()
    behind = _RULE.sub("", behind).strip()
    closing = _CLOSING_TAG.search(between) or _LAST_LINE.search(between)
    if closing is not None:
        place = label["place"]
        twin = re.sub(rf"(?<![^\W_]){place}(?![^\W_])", _OTHER[place.casefold()], closing[0], flags=re.IGNORECASE)
        end = behind.lower().find(twin.lower())
        if end >= 0:
            return between[: closing.start()].strip(), behind[:end].strip()
    names = [rf"\b{re.escape(match[0].strip('#*= :'))}\b" for match in (label, below) if label["before"]]
    hint = re.search("|".join([_ANSWER.pattern, *names, r"^[#=*]+ ?\w"]), behind, re.IGNORECASE | re.MULTILINE)
    if hint is not None:
        behind = behind[: hint.start()].rpartition("\n")[0]
    paragraphs = behind.strip().split("\n\n")
    if len(paragraphs) > 1 and paragraphs[-1].endswith(("?", ":")):
        paragraphs.pop()
    return between, "\n\n".join(paragraphs).strip()


def _longest_blocks(prompt: str) -> tuple[str, str] | None:
    """The two longest paragraphs behind the first that say nothing of the answer, in their order."""
    blocks = [block.strip() for block in re.split(r"\n\s*\n", prompt)[1:]]
    texts = [block for block in blocks if _has_words(block) and not _ANSWER.search(block)]
    if len(texts) < 2:
        return None
    longest = sorted(texts, key=len)[-2:]
    longest.sort(key=texts.index)
    return longest[0], longest[1]
