"""What the verbs refuse before anything is asked, by one sentence that names the option."""

from __future__ import annotations

from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError

TEXTS = [{"ID": name, "text": f"A text about {name}."} for name in ("rain", "snow", "wind", "hail")]
RESULTS = [
    {"ID1": first, "ID2": second, "better_id": better}
    for first, second, better in (("rain", "snow", "rain"), ("snow", "wind", "wind"), ("wind", "rain", "rain"))
]
NEEDED: dict[str, dict[str, Any]] = {
    "rank": {"data": TEXTS, "judge": "lexical", "progress": False},
    "judge": {"pairs": ps.make_pairs(TEXTS), "judge": "lexical", "progress": False},
    "fit": {"data": RESULTS},
    "plan": {"items": 10, "progress": False},
    "simulate": {"items": 4, "seeds": 1, "progress": False},
    "cost": {"pairs": ps.make_pairs(TEXTS), "judge": "openai:gpt-4.1"},
    "bias": {"forward": RESULTS},
    "agreement": {"labels": {"ann": ["a", "b"], "bob": ["a", "b"]}},
    "check_judge": {"data": TEXTS, "judge": "lexical", "progress": False},
    "ab": {"a": {"t1": "x"}, "b": {"t1": "y"}, "criterion": "better", "progress": False},
    "gate": {"a": {"t1": "x"}, "b": {"t1": "y"}, "criterion": "better", "progress": False},
}
NUMBERS = {
    "rank": "reliability max_comparisons max_cost max_minutes concurrency retries timeout seed",
    "judge": "max_cost concurrency retries timeout",
    "fit": "level bootstrap seed",
    "plan": "items reliability seed",
    "simulate": "items seeds per_item",
    "cost": "pilot quantile",
    "bias": "level",
    "agreement": "level n_boot seed",
    "check_judge": "n_pairs seed max_cost",
    "ab": "max_cost seed",
    "gate": "margin level max_errors max_cost",
}
WORDS = {
    "rank": "goal preset selector fit answer",
    "fit": "model engine ties answer judges",
    "ab": "failures",
    "gate": "fail_if failures missing",
}


@pytest.mark.parametrize("wrong", [float("nan"), -1, "many"])
@pytest.mark.parametrize(("verb", "option"), [(verb, one) for verb, names in NUMBERS.items() for one in names.split()])
def test_a_number_that_cannot_be_is_refused(verb: str, option: str, wrong: Any, clean_environment: None) -> None:
    with pytest.raises(InputError, match=option):
        getattr(ps, verb)(**{**NEEDED[verb], option: wrong})


@pytest.mark.parametrize("wrong", ["nonsense", 3])
@pytest.mark.parametrize(("verb", "option"), [(verb, name) for verb, names in WORDS.items() for name in names.split()])
def test_a_word_that_means_nothing_is_refused_by_name(verb: str, option: str, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"{option}|nonsense|3"):
        getattr(ps, verb)(**{**NEEDED[verb], option: wrong})


@pytest.mark.parametrize(
    ("config", "field", "wrong"),
    [
        ("adaptive_config", "ties", "x"),
        ("adaptive_config", "explore_rate", "3"),
        ("adaptive_config", "explore_rate", -1),
        ("btl_config", "refit_pairs_target", -1),
        ("btl_config", "eap_reliability_min", 2),
        ("btl_config", "nonsense", 2),
    ],
)
def test_a_field_of_a_configuration_is_checked(config: str, field: str, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"{config}.*{field}"):
        ps.rank(TEXTS, judge="lexical", progress=False, **{config: {field: wrong}})
