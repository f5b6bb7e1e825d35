"""The words of the synthetic essays, all written for pairscale: the files ``phrases.json`` and ``mistakes.json``.

A phrase may hold ``[one|another]`` alternatives (they nest) and ``{slots}`` of the lexicon. Sentences are written
without their capital and full stop, which the generator adds. Tiers are plain, competent and accomplished, in this
order; where the writer's position matters there is one entry for it and one against it.

``phrases.json`` has ``lexicon`` (what fills a slot), ``hooks`` (first sentences), ``theses`` (the writer's position),
``compounds`` (frames for a claim and its ground), ``leads`` (of the first reason, those between, and the last),
``example_leads``, ``concession_frames`` and ``concessions`` (objections with their replies), ``padding``, ``asides``,
``restatements``, ``closings``, and ``reasons``, for and against: each a ``claim``, a ``ground`` that fits behind
"because", ``evidence`` and ``impact``. ``mistakes.json`` has ``misspellings`` by word, and ``grammar_slips`` (what is
meant, what is written).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

Tiers: TypeAlias = Sequence[Sequence[str]]
"""Phrases of one kind: plain, competent, accomplished."""


@cache
def phrases(name: str) -> Any:
    """The phrases of one kind."""
    return _read("phrases.json")[name]


@cache
def mistakes(name: str) -> Any:
    """The mistakes of one kind."""
    return _read("mistakes.json")[name]


@cache
def _read(name: str) -> dict[str, Any]:
    text = files("pairscale.datasets").joinpath("data", name).read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
