"""The embedded judge: what it counts, that order does not matter to it, and that no text can hurt it."""

from __future__ import annotations

import asyncio
import math
from dataclasses import FrozenInstanceError, astuple, fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairscale.core.comparisons import Outcome
from pairscale.core.provenance import fingerprint
from pairscale.judges import _lexicon as lexicon
from pairscale.judges import lexical
from pairscale.judges._spelling import looks_misspelt
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.judges.lexical import (
    MAX_CHARS,
    WEIGHTS,
    LexicalFeatures,
    LexicalJudge,
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


def test_it_is_a_judge_and_says_who_it_is() -> None:
    judge = LexicalJudge()
    assert isinstance(judge, Judge)
    condition = judge.condition
    assert (condition.judge_id, condition.backend, condition.model) == ("lexical", "offline", "lexical-1")
    assert condition.trait == "overall_quality"
    assert condition.settings == {"weights": fingerprint({name: list(w) for name, w in WEIGHTS.items()})}
    assert condition.condition_id == LexicalJudge().condition.condition_id
    assert condition.condition_id != LexicalJudge("organization").condition.condition_id


def test_it_is_a_frozen_value() -> None:
    judge = LexicalJudge("clarity")
    compare(WEAK, STRONG, judge)
    assert judge == LexicalJudge("clarity")
    assert hash(judge) == hash(LexicalJudge("clarity"))
    assert repr(judge) == "LexicalJudge(trait='clarity')"
    with pytest.raises(FrozenInstanceError):
        judge.trait = "x"  # type: ignore[misc]
    assert not hasattr(judge, "__dict__")


def test_its_help_says_what_it_is_not_for() -> None:
    help_text = " ".join((LexicalJudge.__doc__ or "").split())
    assert "baseline" in help_text
    assert "not a model of writing" in help_text
    assert "not fit for grading people" in help_text


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


@pytest.mark.parametrize("text", ["", "   \n", WEAK, STRONG, "😀", "x" * 50_000])
def test_identical_texts_tie(text: str) -> None:
    verdict = compare(text, text)
    assert (verdict.outcome, verdict.winner_pos, verdict.probability) == (Outcome.TIE, None, 0.5)
    assert (verdict.model, verdict.object_type) == ("lexical-1", "offline")


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS)
def test_order_changes_nothing(first: str, second: str) -> None:
    one, two = compare(first, second), compare(second, first)
    assert one.probability is not None
    assert two.probability is not None
    assert one.probability + two.probability == 1
    assert {one.winner_pos, two.winner_pos} in ({1, 2}, {None})
    assert (one.outcome is Outcome.TIE) == (lexical_score(first) == lexical_score(second))
    if one.winner_pos:
        assert (one.winner_pos == 1) == (one.probability >= 0.5)
    assert compare(first, second) == one


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_features_are_shares_and_no_words_is_lowest(text: str) -> None:
    features = lexical_features(text)
    assert all(0 <= value <= 1 for value in astuple(features))
    if lexical_score(text) != lexical_score(""):
        assert lexical_score(text) > lexical_score("")
    assert lexical_features(text) == features


def test_nothing_but_the_text_is_read() -> None:
    plain = compare(STRONG, WEAK)
    first = {"ID": "z", "text": STRONG, "quality_level": 1, "label": "worst"}
    second = {"ID": "y", "text": WEAK, "quality_level": 20}
    pair = JudgePair(first, second, uid="other", attempt=3)
    assert asyncio.run(LexicalJudge("organization").compare(pair)) == plain


@pytest.mark.parametrize("text", [None, 3, b"bytes"])
def test_a_sample_without_text_is_a_failure_not_an_exception(text: object) -> None:
    verdict = compare("fine", text)
    assert (verdict.outcome, verdict.error_code, verdict.failure) == (Outcome.ERROR, "judge_error", "question")
    assert "'b'" in (verdict.error_message or "")


# The features.

_BASE = "The town built a new park. People walk there every day. It has many trees."


@pytest.mark.parametrize(
    ("feature", "less", "more"),
    [
        ("length", _BASE, _BASE + " Children play near the water."),
        (
            "diversity",
            "The dog saw the dog and the dog saw the dog.",
            "The dog saw a cat, then ran home over one hill.",
        ),
        ("word_length", "The cat sat on a mat.", "Several travellers photographed mountains yesterday."),
        ("rare_words", "The big house is old.", "The dilapidated cottage is ancient."),
        ("academic_words", "The plan may work.", "The hypothesis may demonstrate validity."),
        ("vague_words", "The plan is cheap.", "The thing is really very good stuff."),
        (
            "sentence_length",
            "I ran. I fell. I cried.",
            "I ran down the long hill, fell near the gate and cried all day.",
        ),
        ("sentence_length", "word " * 80, "word " * 30),
        ("sentence_variety", "One two three. One two four.", "Stop. One two three four five six seven eight nine."),
        ("subordination", "He left. It rained.", "He left because it rained, which nobody expected."),
        (
            "connectives",
            "It rained. We left.",
            "It rained; therefore, we left. For example, I ran. However, she stayed.",
        ),
        ("connectives", "However, it rained. However, we left.", "However, it rained. Therefore, we left."),
        ("misspelling", "The students receive different books.", "The studnets recieve diffrent books."),
        ("misspelling", "I don't know; they're late.", "I dont know; theyre late."),
        ("misspelling", "The house is quiet.", "The zxqvk is pfffft."),
        ("mechanics", "It rains. I stay.", "it rains. I stay."),
        ("mechanics", "It rains and I stay.", "It rains and i stay."),
        ("mechanics", "It rains.", "It rains"),
        ("mechanics", "It rains!", "It rains!!!"),
        ("mechanics", "It rains, I stay.", "It rains ,I stay."),
        ("mechanics", "It rains all day.", "IT RAINS ALL DAY."),
        ("repetition", "The sun is warm. The sea is cold.", "The sun is warm. The sun is warm."),
        ("repetition", "We went to the sea and then on to the hill.", "We went to the sea and we went to the sea."),
        ("repetition", "It is the end.", "It is the the end."),
    ],
)
def test_a_feature_moves_as_documented(feature: str, less: str, more: str) -> None:
    assert getattr(lexical_features(less), feature) < getattr(lexical_features(more), feature)


def test_formulas_by_hand() -> None:
    features = lexical_features("It is good. It was very good, though I left.")
    assert features.length == pytest.approx(10 / 70)
    assert features.diversity == pytest.approx((8 + 0.9 * 15) / 25)
    assert features.word_length == pytest.approx(((32 + 40) / 20 - 3) / 4)
    assert features.vague_words == pytest.approx(1 - math.exp(-10 * 3 / 20))
    assert features.sentence_length == pytest.approx(5 / 20)
    assert features.sentence_variety == pytest.approx(2 / 7)
    assert features.subordination == pytest.approx(1 / 3)  # "though" and a comma, in two sentences
    assert features.connectives == pytest.approx(1 / 3)
    assert (features.rare_words, features.academic_words, features.misspelling) == (0, 0, 0)
    assert (features.mechanics, features.repetition) == (0, 0)


def test_abbreviations_and_decimals_end_no_sentence() -> None:
    features = lexical_features("Dr. Smith paid 3.50 for it, e.g. at J. Brown in town.")
    assert features.mechanics == 0
    assert features.sentence_variety == 0


def test_length_alone_saturates() -> None:
    short, long, longer = (lexical_features("word " * n).length for n in (10, 1000, 3000))
    assert long - short > 10 * (longer - long)


def test_windows_of_diversity_agree_with_a_plain_count() -> None:
    words = [f"{chr(97 + k * k % 7)}{chr(97 + k % 5)}" for k in range(90)]
    plain = [len(set(words[k : k + 25])) / 25 for k in range(len(words) - 24)]
    assert lexical_features(" ".join(words)).diversity == pytest.approx(sum(plain) / len(plain))


@pytest.mark.parametrize(
    "word", ["becuase", "teh", "importent", "diffrent", "beleive", "writting", "sooo", "grnd", "dont"]
)
def test_misspelt_words_look_misspelt(word: str) -> None:
    assert looks_misspelt(word)


@pytest.mark.parametrize(
    "word", ["because", "rhythm", "photosynthesis", "organise", "block", "sample", "county", "it's", "tv"]
)
def test_true_words_do_not(word: str) -> None:
    assert not looks_misspelt(word)


def test_no_listed_word_looks_misspelt() -> None:
    assert not lexicon.MISSPELT & (lexicon.COMMON | lexicon.SPELT_WELL)
    listed = lexicon.COMMON | lexicon.CONNECTIVES | lexicon.SPELT_WELL | lexicon.SUBORDINATORS
    assert not {word for word in listed if looks_misspelt(word)}


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
    assert all(0 <= value <= 1 for value in astuple(lexical_features(text)))
    assert math.isfinite(lexical_score(text))
    assert lexical_score("") <= lexical_score(text) < lexical_score(STRONG)
    assert compare(text, STRONG).winner_pos == 2


def test_wordless_texts_all_tie_at_the_bottom() -> None:
    assert len({lexical_score(text) for text in ("", " ", "\n", "?!", "42", "😀")}) == 1


def test_asking_for_the_answer_does_not_help() -> None:
    assert lexical_score(f"<BETTER_SAMPLE> <b> {STRONG} </BETTER_SAMPLE>") == lexical_score(STRONG)
    assert lexical_score("<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE> " * 40) < lexical_score(STRONG)
    assert lexical_score("Moreover, hypothesis demonstrates significance. " * 60) < lexical_score(STRONG)


@pytest.mark.parametrize("piece", [".", "<", "\n ", "a'", "a", "a.", "!?", "word ", "http", ". ", "e.g.", "<a", '."'])
def test_only_the_beginning_of_a_huge_text_is_read(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = lexical._sentence

    def counted(text: str, *, cut: bool = False) -> Any:
        seen.append(len(text))
        return plain(text, cut=cut)

    monkeypatch.setattr(lexical, "_sentence", counted)
    huge = piece * (5_000_000 // len(piece))
    score = lexical_score(huge)
    assert sum(seen) <= MAX_CHARS  # every character is looked at once, as part of one sentence
    assert score == lexical_score(huge[: MAX_CHARS + 1])


def test_what_follows_the_part_that_is_read_has_no_effect() -> None:
    start = (STRONG + " ") * 200
    assert len(start) > MAX_CHARS
    assert lexical_features(start + "zxqvk dont!!!") == lexical_features(start + "A fine ending.")


# The weights.


def test_weights_cover_the_features_and_cannot_be_changed() -> None:
    assert list(WEIGHTS) == [field.name for field in fields(LexicalFeatures)]
    with pytest.raises(TypeError):
        WEIGHTS["length"] = WEIGHTS["diversity"]  # type: ignore[index]
    worse = {"vague_words", "misspelling", "mechanics", "repetition"}
    assert {name for name, w in WEIGHTS.items() if w.weight < 0} == worse
    assert all(w.sd > 0 for w in WEIGHTS.values())
    assert WEIGHTS["length"].weight > 0  # or a text without words would not be the lowest


def test_weights_and_word_lists_are_pinned() -> None:
    lists = {name: sorted(words) for name, words in vars(lexicon).items() if isinstance(words, frozenset)}
    pins = (lexical.MODEL, LexicalJudge().condition.settings["weights"], fingerprint(lists))
    # Other weights or words are another judge: give it a new MODEL, then pin what it has.
    assert pins == PINS
    assert [round(lexical_score(text), 6) for text in (WEAK, STRONG)] == PINNED_SCORES


PINS = ("lexical-1", "351dd345640d53e7", "645552a4afe80c50")
PINNED_SCORES = [-10.84208, 4.661834]


def test_it_finds_the_quality_of_synthetic_essays_it_was_not_fitted_to() -> None:
    from scipy.stats import spearmanr

    from pairscale.datasets.synthetic import synthetic_essays

    essays = synthetic_essays(120, seed=11)
    scores = [lexical_score(text) for text in essays["text"]]
    assert spearmanr(scores, essays["quality_level"]).statistic >= 0.80  # 0.91 when measured


def test_it_orders_short_answers() -> None:
    best = (
        "Photosynthesis converts light into chemical energy: chlorophyll absorbs sunlight, which drives the synthesis "
        "of glucose from carbon dioxide and water. Consequently, plants sustain nearly every food web."
    )
    answers = [
        "plants eat sun",
        "Plants need sunlight to grow. They use it to make food.",
        "Plants use sunlight, water and air to make their own food, which is why they need light to grow well.",
        best,
    ]
    scores = [lexical_score(answer) for answer in answers]
    assert scores == sorted(scores)
