"""Synthetic essays: reproducible, balanced, clean where they should be, and of overlapping quality."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import pairwise
from statistics import fmean

import polars as pl
import pytest
from scipy.stats import spearmanr

from pairscale.core.errors import InputError
from pairscale.datasets import _phrases
from pairscale.datasets._draws import RandomChoices
from pairscale.datasets.synthetic import PROMPT_ID, _essay, _writer, synthetic_essays

SHA_1000_2026 = "93d35d7bd62020f0a28e4a2869b2f87dca0231393ab8385405941eb0d0cb4738"
SKILLS = ("ideas", "organisation", "vocabulary", "sentences", "conventions", "focus")


@pytest.fixture(scope="module")
def essays() -> pl.DataFrame:
    return synthetic_essays(1000, seed=2026)


def phrases(value: object) -> list[str]:
    """Every phrase in a nest of lists and dicts."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [phrase for item in value for phrase in phrases(item)] if isinstance(value, list) else []


def all_phrases() -> list[str]:
    return phrases(_phrases._read("phrases.json"))


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower())


def test_columns_and_types(essays: pl.DataFrame) -> None:
    assert dict(essays.schema) == {
        "ID": pl.String,
        "text": pl.String,
        "quality_level": pl.Int64,
        "theta_true": pl.Float64,
        "prompt_id": pl.String,
        "model": pl.String,
        "created_at": pl.Datetime("us", "UTC"),
    }
    assert essays.columns[0] == "ID"
    assert essays["ID"][0] == "S0001"
    assert essays["ID"][-1] == "S1000"
    assert essays.null_count().sum_horizontal().item() == 0
    for column, value in (("prompt_id", PROMPT_ID), ("model", "pairscale-synthetic-1")):
        assert essays[column].unique().to_list() == [value]
    assert essays["created_at"].n_unique() == 1


def test_ids_grow_with_n(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairscale.datasets.synthetic._essay", lambda level, draws: f"An essay of level {level}.")
    assert synthetic_essays(10_000)["ID"][0] == "S00001"


def test_theta_is_the_level_standardised(essays: pl.DataFrame) -> None:
    assert essays["theta_true"].mean() == pytest.approx(0.0, abs=1e-12)
    assert essays["theta_true"].std(ddof=0) == pytest.approx(1.0)
    assert essays.filter(pl.col("quality_level") == 20)["theta_true"][0] == pytest.approx(9.5 / 33.25**0.5)


@pytest.mark.parametrize("n", [1, 7, 20, 33, 1000])
def test_levels_are_balanced(n: int) -> None:
    levels = synthetic_essays(n, seed=3)["quality_level"].to_list()
    counts = Counter(levels)
    assert len(levels) == n
    assert all(n // 20 <= counts[level] <= -(-n // 20) for level in range(1, 21))
    assert counts.keys() <= set(range(1, 21))


def test_levels_are_shuffled(essays: pl.DataFrame) -> None:
    assert abs(spearmanr(range(1000), essays["quality_level"]).statistic) < 0.1


def test_texts_are_the_same_everywhere(essays: pl.DataFrame) -> None:
    digest = hashlib.sha256("\n".join(essays["text"]).encode()).hexdigest()
    assert digest == SHA_1000_2026, "the texts have changed: published results made with them no longer hold"


def test_another_seed_gives_other_texts() -> None:
    assert synthetic_essays(40, seed=1).equals(synthetic_essays(40, seed=1))
    assert not set(synthetic_essays(40, seed=1)["text"]) & set(synthetic_essays(40, seed=2)["text"])


def test_an_essay_depends_on_its_level_and_number_alone(essays: pl.DataFrame) -> None:
    for number in (1, 17, 500, 1000):
        row = essays.row(number - 1, named=True)
        assert _essay(row["quality_level"], RandomChoices(f"2026:{number}")) == row["text"]


def test_texts_differ_and_no_sentence_dominates(essays: pl.DataFrame) -> None:
    assert essays["text"].n_unique() == 1000
    essays_with = Counter(
        sentence for text in essays["text"] for sentence in sorted(set(re.split(r"(?<=[.?])\s+", text)))
    )
    assert essays_with.most_common(1)[0][1] <= 30
    openings = Counter(" ".join(text.split()[:6]).lower() for text in essays["text"])
    assert openings.most_common(1)[0][1] <= 60


def test_phrases_are_well_formed() -> None:
    for phrase in all_phrases():
        depth = 0
        for character in phrase:
            depth += {"[": 1, "]": -1}.get(character, 0)
            assert 0 <= depth <= 2, phrase
            assert character != "|" or depth, phrase
        assert depth == 0, phrase
        assert set(re.findall(r"\{(\w+)\}", phrase)) <= _phrases.phrases("lexicon").keys(), phrase


@pytest.mark.parametrize("seed", [2026, 7])
def test_texts_are_tidy(seed: int) -> None:
    for text in synthetic_essays(1000, seed)["text"]:
        assert not re.search(r"  | \n|\n |\n{3}|[\[\]{}<>|_]| [,.;:?]|[,;:]\S*[,;:]|\.\.|\bNone\b|\t", text), text
        assert text == text.strip()
        assert not re.search(r"\b(about about|and and|the the|of of|to to|is is)\b", text, re.IGNORECASE), text
        assert 60 <= len(text.split()) <= 220


def test_strong_essays_are_punctuated(essays: pl.DataFrame) -> None:
    for text in essays.filter(pl.col("quality_level") >= 18)["text"]:
        for paragraph in text.split("\n\n"):
            assert re.fullmatch(r"[A-Z].*[.?]", paragraph), paragraph
            assert not re.search(r"[.?] [a-z]|\bi\b|\ba [aeio]", paragraph), paragraph


def test_length_tells_little(essays: pl.DataFrame) -> None:
    words = essays["text"].str.split(" ").list.len()
    assert 0.3 <= spearmanr(words, essays["quality_level"]).statistic <= 0.55
    middle = words.filter(essays["quality_level"].is_between(8, 13))
    assert 120 <= middle.median() <= 180


def test_spelling_improves_with_level(essays: pl.DataFrame) -> None:
    known = {word for phrase in all_phrases() for word in words_of(phrase.replace("|", " "))} | {"an"}
    wrong = [fmean(word not in known for word in words_of(text)) for text in essays["text"]]
    bands = (
        essays.with_columns(wrong=pl.Series(wrong), band=(pl.col("quality_level") - 1) // 4)
        .group_by("band")
        .agg(pl.col("wrong").mean())
        .sort("band")["wrong"]
        .to_list()
    )
    assert all(lower > higher for lower, higher in pairwise(bands))
    assert bands[0] > 0.04
    assert bands[-1] < 0.004
    assert spearmanr(wrong, essays["quality_level"]).statistic > -0.92


def mean_skill(level: int, number: int) -> float:
    writer = _writer(level, RandomChoices(f"overlap:{level}:{number}"))
    return fmean(getattr(writer, skill) for skill in SKILLS)


def test_neighbouring_levels_overlap_and_distant_ones_do_not() -> None:
    def wins(higher: int, lower: int) -> float:
        return fmean(mean_skill(higher, number) > mean_skill(lower, number) for number in range(400))

    assert 0.55 < wins(11, 10) < 0.8
    assert wins(13, 8) > 0.95
    assert wins(18, 5) == 1.0


def test_no_skill_gives_the_level_away() -> None:
    levels = [1 + number % 20 for number in range(1000)]
    writers = [_writer(level, RandomChoices(f"skills:{number}")) for number, level in enumerate(levels)]
    correlations = [spearmanr([getattr(w, skill) for w in writers], levels).statistic for skill in SKILLS]
    assert all(0.8 < correlation < 0.93 for correlation in correlations)
    assert spearmanr([w.words for w in writers], levels).statistic < min(correlations)


@pytest.mark.parametrize("n", [0, -3, 2.5, "20", None, True])
def test_a_wrong_number_is_refused(message_snapshot, n: object) -> None:
    with pytest.raises(InputError) as refused:
        synthetic_essays(n)  # type: ignore[arg-type]
    message_snapshot(refused)


def test_a_wrong_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed"):
        synthetic_essays(5, seed="x")  # type: ignore[arg-type]
