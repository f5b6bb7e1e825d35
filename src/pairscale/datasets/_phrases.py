"""The words of the synthetic essays, all written for pairscale: the files ``phrases.json`` and ``mistakes.json``.

A phrase may hold ``[one|another]`` alternatives (they nest) and ``{slots}`` of the lexicon. Sentences are written
without their capital and full stop, which the generator adds. Tiers are plain, competent and accomplished, in this
order; where the writer's position matters there is one entry for it and one against it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

Tiers: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Phrases of one kind: plain, competent, accomplished."""


@dataclass(frozen=True, slots=True)
class Idea:
    """One reason, in the words of weak, middling and strong writers.

    Attributes:
        claim: a clause, what would follow.
        ground: a clause that fits behind "claim because".
        evidence: a sentence with an example, an observation or a figure.
        impact: a sentence, why that matters.
    """

    claim: Tiers
    ground: Tiers
    evidence: Tiers
    impact: Tiers


@dataclass(frozen=True, slots=True)
class Phrases:
    """What essays are made of.

    Attributes:
        lexicon: what fills a ``{slot}``.
        hooks: first sentences.
        theses: the writer's position.
        compounds: frames for a claim and its ground.
        leads: what introduces the first reason, those between, and the last.
        example_leads: what introduces evidence.
        concession_frames: frames for an objection and the reply.
        concessions: objections with their replies.
        padding: sentences that add nothing.
        asides: remarks that lead away from the topic.
        restatements: sentences that repeat the position.
        closings: last sentences.
        reasons: for and against.
    """

    lexicon: dict[str, Tiers]
    hooks: Tiers
    theses: tuple[Tiers, Tiers]
    compounds: Tiers
    leads: tuple[Tiers, Tiers, Tiers]
    example_leads: Tiers
    concession_frames: Tiers
    concessions: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    padding: tuple[str, ...]
    asides: tuple[str, ...]
    restatements: tuple[tuple[str, ...], tuple[str, ...]]
    closings: tuple[Tiers, Tiers]
    reasons: tuple[tuple[Idea, ...], tuple[Idea, ...]]


@dataclass(frozen=True, slots=True)
class Mistakes:
    """What weak writers get wrong.

    Attributes:
        misspellings: how people misspell a word.
        grammar_slips: what is meant, what is written.
    """

    misspellings: dict[str, tuple[str, ...]]
    grammar_slips: tuple[tuple[str, str], ...]


@cache
def phrases() -> Phrases:
    """The phrases, read once."""
    data = _read("phrases.json")
    data["reasons"] = tuple(tuple(Idea(**idea) for idea in side) for side in data["reasons"])
    return Phrases(**data)


@cache
def mistakes() -> Mistakes:
    """The mistakes, read once."""
    return Mistakes(**_read("mistakes.json"))


def _read(name: str) -> dict[str, Any]:
    text = files("pairscale.datasets").joinpath("data", name).read_text("utf-8")
    return {key: _frozen(value) for key, value in json.loads(text).items()}


def _frozen(value: Any) -> Any:
    """The value with tuples in place of its lists."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {key: _frozen(entry) for key, entry in value.items()}
    return value
