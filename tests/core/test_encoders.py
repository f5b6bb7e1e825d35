import datetime as dt
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core import encoders
from pairscale.core.encoders import json_encoder

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner),
    max_leaves=20,
)
OPTIONS: list[dict[str, Any]] = [
    {"separators": (",", ":"), "default": repr},
    {"separators": (", ", ": "), "default": str},
    {"separators": (",", ":"), "default": str, "allow_nan": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@given(value=VALUES)
def test_it_writes_what_the_standard_library_writes(options: dict[str, Any], value: Any) -> None:
    try:
        expected = json.JSONEncoder(ensure_ascii=False, **options).encode(value)
    except ValueError:
        with pytest.raises(ValueError, match="Out of range float"):
            json_encoder(**options)(value)
        return
    assert json_encoder(**options)(value) == expected


@given(value=st.dictionaries(st.text(), st.integers()))
def test_names_are_sorted_on_demand(value: dict[str, int]) -> None:
    assert json_encoder(sort_keys=True)(value) == json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


def test_what_json_cannot_hold_is_refused() -> None:
    encode = json_encoder()
    with pytest.raises(TypeError, match="not JSON serializable"):
        encode([dt.date(2026, 1, 1)])
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(RecursionError):
        encode(itself)
    assert encode([1]) == "[1]"
    with pytest.raises(ValueError, match="Out of range float"):
        json_encoder(allow_nan=False)([math.nan])


def test_it_works_without_the_c_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders._encoder, "c_make_encoder", None)
    assert json_encoder(default=str)({"a": [1, "é", dt.date(2026, 1, 1)]}) == '{"a":[1,"é","2026-01-01"]}'
