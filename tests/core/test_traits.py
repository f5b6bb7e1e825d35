"""Traits: the built-in ones, traits of one's own, and what is said when there is none."""

from __future__ import annotations

import pytest

from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.traits import list_traits, trait_description

KEYS = [
    "overall_quality", "organization", "ideas", "voice", "word_choice", "sentence_fluency", "conventions",
    "clarity", "helpfulness", "accuracy", "conciseness",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_built_in_trait_is_found_by_its_key(key: str) -> None:
    trait = trait_description(key)
    assert trait in list_traits()
    assert trait.key == key
    assert trait.name == " ".join(word.capitalize() for word in key.split("_"))


def test_a_custom_name_alone_is_an_error_that_says_what_to_do(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        trait_description(custom_name="Warmth")
    message_snapshot(refused)


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_definition_or_name_is_an_error(blank: str) -> None:
    with pytest.raises(InputError, match="custom_description"):
        trait_description(custom_description=blank)
    with pytest.raises(InputError, match="not blank"):
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
