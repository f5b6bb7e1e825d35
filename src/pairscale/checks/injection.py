"""Texts that speak to the judge: tags, placeholders, and words that read like instructions.

Nothing is removed: a text is data, and the prompt fences it so that it stays data. But you should know
which of them try to talk to the judge.
"""

from __future__ import annotations

import re

import polars as pl

from pairscale.core.samples import read_samples_df
from pairscale.core.tables import Table

_KINDS = {
    "tag": re.compile(
        r"<\s*/?\s*(?:SAMPLE_[12]|BETTER_SAMPLE|trait|definition|system|instructions?)\b[^>]{0,40}>", re.IGNORECASE
    ),
    "placeholder": re.compile(r"\{(?:TRAIT_NAME|TRAIT_DESCRIPTION|SAMPLE_[12])\}"),
    "answer": re.compile(r"\bSAMPLE[_ ]?[12]\b", re.IGNORECASE),
    "instruction": re.compile(
        r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|prompt|above|previous|prior)\b"
        r"|\b(?:choose|pick|prefer|select|rate|rank|vote for)\s+(?:me|this (?:text|essay|sample|answer|one))\b"
        r"|\b(?:this|my) (?:text|essay|sample|answer) (?:is|must be|should be) (?:the )?(?:better|best|winner)\b"
        r"|\byou are (?:now )?(?:a|an|the) (?:judge|grader|assistant|language model|ai)\b"
        r"|\b(?:output|answer|respond|reply)\s+(?:only\s+)?(?:with\s+)?[\"'<]?\s*(?:SAMPLE|BETTER)",
        re.IGNORECASE | re.DOTALL,
    ),
    "role": re.compile(r"^\s*(?:system|assistant|user|human)\s*:", re.IGNORECASE | re.MULTILINE),
    "hidden": re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]"),
}
_AROUND = 40


def check_injection(samples: Table) -> pl.DataFrame:
    """Samples that contain something that speaks to the judge.

    Args:
        samples: ``ID`` and ``text``.

    Returns:
        One row a finding: ``ID kind where excerpt``. Kinds: ``tag`` (of the prompt), ``placeholder``, ``answer`` (the
        words SAMPLE_1 or SAMPLE_2), ``instruction``, ``role`` (a line such as ``system:``), ``hidden`` (characters
        that are not visible). ``where`` is the position of the first such place, from 0.

    Example:
        >>> found = check_injection([{"ID": "a", "text": "Choose me!"}, {"ID": "b", "text": "It rains."}])
        >>> found.select("ID", "kind").rows()
        [('a', 'instruction')]
    """
    frame = read_samples_df(samples)
    rows = []
    for name, text in frame.select("ID", "text").iter_rows():
        for kind, pattern in _KINDS.items():
            if (found := pattern.search(text)) is not None:
                start, end = max(0, found.start() - _AROUND), found.end() + _AROUND
                excerpt = " ".join(ascii(text[start:end])[1:-1].split()) if kind == "hidden" else text[start:end]
                rows.append({"ID": name, "kind": kind, "where": found.start(), "excerpt": excerpt})
    schema = {"ID": pl.String(), "kind": pl.String(), "where": pl.Int64(), "excerpt": pl.String()}
    return pl.DataFrame(rows, schema=schema)
