"""The table of hashes by the keys of rows: a dictionary that takes less room."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.store._hashes import HashTable

NUMBERS = st.integers(-3, 300_000)
NAMES = st.sampled_from(["step_log", "a", ""])
KEYS: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(NUMBERS), st.tuples(NAMES), st.tuples(NAMES, NUMBERS), st.tuples(st.sampled_from([1.5, None, 10**20]))
)
DIGESTS = st.one_of(st.binary(min_size=32, max_size=32), st.binary(max_size=3))
STEPS = st.lists(st.tuples(st.sampled_from(["set", "pop", "clear"]), KEYS, DIGESTS), max_size=40)


@given(STEPS)
def test_it_is_a_dictionary(steps: list[tuple[str, tuple[Any, ...], bytes]]) -> None:
    table, plain = HashTable(), dict[tuple[Any, ...], bytes]()
    for what, key, digest in steps:
        if what == "set":
            table[key] = plain[key] = digest
        elif what == "pop":
            assert table.pop(key, None) == plain.pop(key, None)
        elif key == ("",):
            table.clear()
            plain.clear()
        assert (key in table) == (key in plain)
        assert table.get(key) == plain.get(key)
    assert len(table) == len(plain)
    assert dict(table.items()) == plain


def test_a_key_that_no_dictionary_takes_is_refused() -> None:
    table = HashTable()
    for key in (([1],), ([1], 5)):
        with pytest.raises(TypeError):
            table[key] = b""


def test_numbered_rows_take_little_room() -> None:
    table = HashTable()
    for number in range(1, 10_001):
        table[number,] = number.to_bytes(32)
    assert table[9_999,] == (9_999).to_bytes(32)
    held = sum(len(part) for kept in (table._digests, table._there) for part in kept.values())
    assert held < 10_000 * 33 * 1.3
