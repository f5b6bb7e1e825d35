"""One sentence for every refused option, and plain Python for every accepted one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core import options
from pairscale.core.errors import InputError

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


def test_optional_lets_none_through_and_nothing_else(message_snapshot) -> None:
    assert options.optional(options.require_number, None, "max_cost", least=0) is None
    assert options.optional(options.require_number, 3, "max_cost", least=0) == 3.0
    with pytest.raises(InputError) as refused:
        options.optional(options.require_number, -1, "max_cost", least=0)
    message_snapshot(refused)


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
