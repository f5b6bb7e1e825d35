"""One sentence for every refused option, and plain Python for every accepted one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core import options
from pairscale.core.errors import InputError
from pairscale.judges.llm import LLMJudge

NO_NUMBERS = [True, False, np.True_, "3", b"3", "", None, [3], {}, object, 3j, math.nan, np.float32("nan"),
              Decimal("NaN"), Decimal("sNaN"), np.array([3])]  # fmt: skip
INFINITE = [math.inf, -math.inf, np.float64("inf"), Decimal("-Infinity")]
THREES = [3, 3.0, np.int8(3), np.uint64(3), np.float32(3), np.float64(3), Decimal(3), Decimal("3.0"), Fraction(3)]


@pytest.mark.parametrize("value", THREES, ids=repr)
def test_every_kind_of_number_becomes_a_plain_one(value: object) -> None:
    whole = options.require_int(value, "n", least=3, most=3)
    number = options.require_number(value, "x", least=3, most=3)
    assert (whole, type(whole)) == (3, int)
    assert (number, type(number)) == (3.0, float)


@pytest.mark.parametrize("value", [*NO_NUMBERS, *INFINITE], ids=repr)
def test_whatever_is_no_number_is_refused_with_the_same_sentence(value: object) -> None:
    with pytest.raises(InputError) as whole:
        options.require_int(value, "concurrency", least=1)
    with pytest.raises(InputError) as number:
        options.require_number(value, "max_cost", least=0)
    said = options.shown(value)
    assert str(whole.value) == f"concurrency must be a whole number of 1 or more, not {said}"
    assert str(number.value) == f"max_cost must be a number of 0 or more, not {said}"


@pytest.mark.parametrize("value", [0.5, np.float64(2.5), Decimal("1.1"), Fraction(1, 3)])
def test_a_whole_number_has_no_fraction(value: float) -> None:
    with pytest.raises(InputError) as error:
        options.require_int(value, "n")
    assert str(error.value) == f"n must be a whole number, not {options.shown(value)}"


@pytest.mark.parametrize(
    ("limits", "words", "inside", "outside"),
    [
        ({}, "a number", [-1e300, 0, 1e300], [math.inf]),
        ({"least": 0}, "a number of 0 or more", [0, 1e300], [-1e-300]),
        ({"above": 0}, "a number above 0", [1e-300], [0, -1]),
        ({"most": 2.5}, "a number of at most 2.5", [2.5, -9], [2.6]),
        ({"below": 1}, "a number below 1", [0.999, -9], [1]),
        ({"least": 0, "most": 10_000}, "a number from 0 to 10,000", [0, 10_000], [-1, 10_001]),
        ({"above": 0, "most": 0.5}, "a number above 0 and at most 0.5", [0.5, 1e-9], [0, 0.51]),
        ({"above": 0, "below": 1}, "a number above 0 and below 1", [0.5], [0, 1]),
        ({"least": 0.5, "below": 1}, "a number of 0.5 or more and below 1", [0.5], [0.4, 1]),
    ],
)
def test_the_sentence_gives_the_range_that_is_checked(limits, words, inside, outside) -> None:
    assert [options.require_number(value, "x", **limits) for value in inside] == inside
    for value in outside:
        with pytest.raises(InputError) as error:
            options.require_number(value, "x", **limits)
        assert str(error.value) == f"x must be {words}, not {value!r}"


@given(value=st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.decimals(allow_nan=False)))
def test_what_passes_is_within_its_range_and_of_its_kind(value: object) -> None:
    for require, kind in ((options.require_int, int), (options.require_number, float)):
        number = None if isinstance(value, bool | str) or math.isnan(value) else value
        fits = (
            number is not None
            and -5 <= (float(number) if kind is float else number) <= 10**6
            and (kind is float or int(number) == number)
        )
        if fits:
            taken = require(value, "x", least=-5, most=10**6)
            assert type(taken) is kind
            assert taken == pytest.approx(float(value))
        else:
            with pytest.raises(InputError) as error:
                require(value, "x", least=-5, most=10**6)
            assert str(error.value).startswith("x must be a ")
            assert str(error.value).endswith(f"number from -5 to 1,000,000, not {options.shown(value)}")


def test_probabilities_levels_and_seeds() -> None:
    assert [options.require_probability(value, "p") for value in (0, 1, np.float64(0.5))] == [0, 1, 0.5]
    assert options.require_level(Decimal("0.95")) == 0.95
    assert (options.require_seed(None), options.require_seed(np.int64(7))) == (None, 7)
    for call, said in (
        (lambda: options.require_probability(1.5, "p"), "p must be a number from 0 to 1, not 1.5"),
        (lambda: options.require_level(1), "level must be a number above 0 and below 1, not 1"),
        (lambda: options.require_level(95, "conf_level"), "conf_level must be a number above 0 and below 1, not 95"),
        (lambda: options.require_seed(-1), "seed must be a whole number of 0 or more, not -1"),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert str(error.value) == said


def test_choices(message_snapshot) -> None:
    assert options.require_choice("b", "by", ("a", "b")) == "b"
    assert options.require_choice(None, "by", ("a", None)) is None
    assert options.require_choice(np.str_("a"), "by", ("a", "b")) == "a"
    for value in ("c", "A", 0, True, math.nan, ["a"], None, np.array(["a"])):
        with pytest.raises(InputError) as error:
            options.require_choice(value, "by", ["a", "b"])
        assert str(error.value) == f"by must be 'a' or 'b', not {options.shown(value)}"
    with pytest.raises(InputError) as refused:
        options.require_choice("c", "by", ("a", "b", None))
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        options.require_choice("c", "by", ("a",))
    message_snapshot(refused)


def test_flags() -> None:
    for value in (True, np.True_):
        assert options.require_flag(value, "progress") is True
    assert options.require_flag(np.False_, "progress") is False
    for value in (1, 0, "yes", "", None, math.nan, [True]):
        with pytest.raises(InputError) as error:
            options.require_flag(value, "progress")
        assert str(error.value) == f"progress must be True or False, not {value!r}"


def test_texts_and_mappings(message_snapshot) -> None:
    assert options.require_text("a", "trait") == "a"
    assert options.require_text("", "trait", empty=True) == ""
    for value in ("", "  ", 3, None, b"a"):
        with pytest.raises(InputError) as refused:
            options.require_text(value, "trait")
        message_snapshot(refused)
    assert options.require_mapping({"a": 1}, "judge_args") == {"a": 1}
    for value in ("api_key=secret", [("api_key", "secret")], None):
        with pytest.raises(InputError) as error:
            options.require_mapping(value, "judge_args")
        assert str(error.value) == f"judge_args must be a mapping of settings by name, not {type(value).__name__}"
    with pytest.raises(InputError) as refused:
        options.require_mapping({1: "secret"}, "judge_args")
    message_snapshot(refused)


def test_files(message_snapshot) -> None:
    assert options.require_path("a/b.csv", "out") == Path("a/b.csv")
    assert options.require_path(Path("a"), "out") == Path("a")
    for value in ("", " ", 3, True, None, "a\0b", b"a"):
        with pytest.raises(InputError) as refused:
            options.require_path(value, "out")
        message_snapshot(refused)
    assert options.require_suffix("A.CSV", "out", (".csv",)) == Path("A.CSV")
    with pytest.raises(InputError) as refused:
        options.require_suffix("a.docx", "out", (".csv", ".html"))
    message_snapshot(refused)


def test_optional_lets_none_through_and_nothing_else(message_snapshot) -> None:
    assert options.optional(options.require_number, None, "max_cost", least=0) is None
    assert options.optional(options.require_number, 3, "max_cost", least=0) == 3.0
    with pytest.raises(InputError) as refused:
        options.optional(options.require_number, -1, "max_cost", least=0)
    message_snapshot(refused)


_ELSEWHERE: set[str] = set()
"""Modules that still write sentences of their own."""


def test_only_this_module_says_which_numbers_are_allowed() -> None:
    source = Path(options.__file__).parent
    sentence = re.compile(
        r"must be (?:a )?(?:whole |positive |finite )?number\b|must be (?:above|between) "
        r"|must be \d+ or more|be negative|must be \{what\} from"
    )
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if path.name != "options.py" and sentence.search(path.read_text("utf-8"))
    }
    assert found <= _ELSEWHERE


def test_a_text_of_the_wrong_kind_is_refused_by_name_and_a_key_is_not_shown() -> None:
    @options.checked
    def ask(question: str, *, api_key: str | None = None, criterion: str | Sequence[str] = ()) -> Any:
        return criterion

    assert list(ask("", criterion=iter(["a", "b"]))) == ["a", "b"]  # read once, by the function
    for wrong, message in (
        ({"question": 3}, "question must be a text, not 3"),
        ({"question": "", "api_key": b"sk-1"}, "api_key must be a text, not bytes"),
        ({"question": "", "criterion": 3}, "criterion must be a text or a list of texts, not 3"),
        ({"question": "", "criterion": ["a", 3]}, "each of criterion must be a text, not 3"),
    ):
        with pytest.raises(InputError, match=f"^{message}$"):
            ask(**wrong)


def test_the_judge_of_a_model_says_which_of_its_options_is_wrong() -> None:
    right = {"provider": "openai", "model": "gpt-4.1", "trait": "clarity", "template": "x", "template_id": "x"}
    for wrong, message in (
        ({"model": 3}, "model must be a text, not 3"),
        ({"trait": 3}, "trait must be the key of a built-in trait or what trait_description gives, not 3"),
        ({"api_key": 3}, "api_key must be a text, or a function that gives one, not int"),
        ({"base_url": 3}, "base_url must be a text, not 3"),
    ):
        with pytest.raises(InputError, match=f"^{message}$"):
            LLMJudge(**(right | {"api_key": "sk-1"} | wrong))
    assert LLMJudge(**right, api_key="sk-1").trait.name == "Clarity"


def test_the_order_of_an_annotation_does_not_matter(message_snapshot) -> None:
    @options.checked
    def show(name: None | str = None, *, names: Sequence[str] | str = ()) -> tuple[object, object]:  # noqa: RUF036
        return name, names

    assert show(None, names="x") == (None, "x")
    with pytest.raises(InputError) as refused:
        show(3)  # type: ignore[arg-type]
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        show(names=3)  # type: ignore[arg-type]
    message_snapshot(refused)
