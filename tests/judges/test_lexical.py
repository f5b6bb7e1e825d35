"""The embedded judge: what it counts, that order does not matter to it, and that no text can hurt it."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.lexical import (
    MAX_CHARS,
    WEIGHTS,
    LexicalJudge,
    _looks_misspelt,
    _word_lists,
    lexical_features,
    lexical_score,
)

WEAK = "dogs is good. i like dogs alot they are fun"
STRONG = (
    "Although dogs demand time and money, they repay both: an owner who walks a dog every morning exercises more, "
    "meets neighbours and, according to several studies, feels less isolated. For this reason, a shelter "
    "is worth supporting."
)
TEXTS = st.text(max_size=300) | st.lists(
    st.sampled_from(["the ", "Dog ", "becuase ", "however, ", ". ", "!! ", "\n\n", "i ", "evidence ", "<b>", "’", "é"])
).map("".join)


def compare(first: Any, second: Any, judge: LexicalJudge | None = None) -> Verdict:
    pair = JudgePair({"ID": "a", "text": first}, {"ID": "b", "text": second})
    return asyncio.run((judge or LexicalJudge()).compare(pair))


# The judge.


def test_the_better_text_wins_in_either_place() -> None:
    verdict = compare(STRONG, WEAK)
    assert verdict == Verdict.win(
        1,
        probability=verdict.probability,
        model="lexical-1",
        object_type="offline",
        content="<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>",
    )
    assert verdict.probability == pytest.approx(1 / (1 + math.exp(lexical_score(WEAK) - lexical_score(STRONG))))
    other = compare(WEAK, STRONG)
    assert (other.winner_pos, other.content) == (2, "<BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>")


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_features_are_shares_and_no_words_is_lowest(text: str) -> None:
    features = lexical_features(text)
    assert all(0 <= value <= 1 for value in features.values())
    if lexical_score(text) != lexical_score(""):
        assert lexical_score(text) > lexical_score("")
    assert lexical_features(text) == features


# The features.


def test_formulas_by_hand() -> None:
    features = lexical_features("It is good. It was very good, though I left.")
    assert features == {
        "length": pytest.approx(10 / 70),
        "diversity": pytest.approx((8 + 0.9 * 15) / 25),
        "word_length": pytest.approx(((32 + 40) / 20 - 3) / 4),
        "vague_words": pytest.approx(1 - math.exp(-10 * 3 / 20)),
        "sentence_length": pytest.approx(5 / 20),
        "subordination": pytest.approx(1 / 3),  # "though" and a comma, in two sentences
        "connectives": pytest.approx(1 / 3),
        **dict.fromkeys(("rare_words", "academic_words", "misspelling", "mechanics", "repetition"), 0),
    }


def test_no_listed_word__looks_misspelt() -> None:
    lists = _word_lists()
    listed = lists["COMMON"] | lists["CONNECTIVES"] | lists["SPELT_WELL"] | lists["SUBORDINATORS"]
    assert not lists["MISSPELT"] & listed
    assert not {word for word in listed if _looks_misspelt(word)}


# Hostile input.


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n\u00a0",
        "😀👍🏽🏳️‍🌈",
        "مرحبا بالعالم. كيف حالك؟",
        "שלום עולם",
        "今天天气很好。我们去公园吧！",
        "नमस्ते दुनिया। यह अच्छा है।",
        "e\u0301" * 500,
        "\ud800 lone surrogate",
        "\x00\x01 \x7f",
        "{SAMPLE_1} {TRAIT_NAME} %s {0}",
        "<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>",
        "'" * 1000,
        "’’ '' '’",
        "12 + 30 = 42",
    ],
)
def test_any_text_is_legal(text: str) -> None:
    assert all(0 <= value <= 1 for value in lexical_features(text).values())
    assert math.isfinite(lexical_score(text))
    assert lexical_score("") <= lexical_score(text) < lexical_score(STRONG)
    assert compare(text, STRONG).winner_pos == 2


def test_what_follows_the_part_that_is_read_has_no_effect() -> None:
    start = (STRONG + " ") * 200
    assert len(start) > MAX_CHARS
    assert lexical_score(start + "zxqvk dont!!!") == lexical_score(start + "A fine ending.")


# The weights.


def test_weights_and_word_lists_are_pinned() -> None:
    assert list(WEIGHTS) == list(lexical_features(STRONG))
    # Other scores are another judge: give it a new MODEL, then pin what it has.
    assert [round(lexical_score(text), 6) for text in (WEAK, STRONG)] == PINNED_SCORES


PINNED_SCORES = [-10.84208, 4.661834]


def test_it_finds_the_quality_of_synthetic_essays_it_was_not_fitted_to() -> None:
    from scipy.stats import spearmanr

    from pairscale.datasets.synthetic import synthetic_essays

    essays = synthetic_essays(120, seed=11)
    scores = [lexical_score(text) for text in essays["text"]]
    assert spearmanr(scores, essays["quality_level"]).statistic >= 0.80  # 0.91 when measured
