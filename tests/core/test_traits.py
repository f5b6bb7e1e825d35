"""Traits: the built-in ones, traits of one's own, and what is said when there is none."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import pytest

from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.traits import Trait, list_traits, trait_description

KEYS = [
    "overall_quality",
    "organization",
    "ideas",
    "voice",
    "word_choice",
    "sentence_fluency",
    "conventions",
    "clarity",
    "helpfulness",
    "accuracy",
    "conciseness",
]


def test_the_built_in_traits_come_in_their_order() -> None:
    assert [trait.key for trait in list_traits()] == KEYS
    assert isinstance(list_traits(), tuple)


def test_the_default_is_overall_quality() -> None:
    assert trait_description() == trait_description("overall_quality")
    assert trait_description().name == "Overall Quality"


@pytest.mark.parametrize("key", KEYS)
def test_a_built_in_trait_is_found_by_its_key(key: str) -> None:
    trait = trait_description(key)
    assert trait in list_traits()
    assert trait.key == key
    assert trait.name == " ".join(word.capitalize() for word in key.split("_"))


@pytest.mark.parametrize("trait", list_traits(), ids=lambda trait: str(trait.key))
def test_a_definition_is_one_to_three_sentences_that_a_judge_can_use(trait: Trait) -> None:
    sentences = re.findall(r"[.!?](?=\s|$)", trait.description)
    assert 1 <= len(sentences) <= 3
    assert trait.description.endswith(".")
    assert re.search(r"\b(not|no|nothing|nobody)\b", trait.description, re.IGNORECASE), "says what must not count"
    assert "  " not in trait.description
    assert "\n" not in trait.description
    assert "{" not in trait.description


def test_definitions_are_distinct() -> None:
    assert len({trait.description for trait in list_traits()}) == len(KEYS)


def test_a_trait_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        trait_description().name = "Other"  # type: ignore[misc]
    assert not hasattr(trait_description(), "__dict__")


def test_a_definition_of_ones_own_wins_over_the_name() -> None:
    trait = trait_description("organization", custom_name="Warmth", custom_description="How kind it is.")
    assert trait == Trait("Warmth", "How kind it is.", None)


def test_a_definition_of_ones_own_wins_over_a_name_that_does_not_exist() -> None:
    assert trait_description("nonsense", custom_description="How kind it is.").description == "How kind it is."


def test_a_trait_of_ones_own_without_a_name_is_called_custom_trait() -> None:
    assert trait_description(custom_description="How kind it is.").name == "Custom trait"


def test_a_custom_name_alone_is_an_error_that_says_what_to_do(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        trait_description(custom_name="Warmth")
    message_snapshot(refused)


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_definition_or_name_is_an_error(blank: str) -> None:
    with pytest.raises(InputError, match="custom_description is"):
        trait_description(custom_description=blank)
    with pytest.raises(InputError, match="custom_name is"):
        trait_description(custom_name=blank, custom_description="How kind it is.")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("organisation", "organization"), ("Overall Quality", "overall_quality"), ("word-choices", "word_choice")],
)
def test_an_unknown_name_lists_the_names_and_the_nearest(message_snapshot, asked: str, meant: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        trait_description(asked)
    message_snapshot(caught)
    assert all(key in str(caught.value) for key in KEYS)


@pytest.mark.parametrize("asked", ["zzz", ""])
def test_an_unknown_name_near_to_nothing_has_no_guess(asked: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        trait_description(asked)
    assert repr(asked) in str(caught.value)
    assert "Did you mean" not in str(caught.value)


def test_traits_do_not_need_polars() -> None:
    code = "import sys, pairscale.core.traits; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
