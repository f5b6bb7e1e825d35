"""Who meets whom: against a search that takes one step at a time."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairscale as ps
from pairscale.core.errors import TableError
from tests import strategies


def groups_by_search(ids: set[str], links: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The linked groups, largest first, then by their first id."""
    left, found = set(ids), []
    while left:
        group, frontier = set(), {min(left)}
        while frontier:
            group |= frontier
            frontier = {b for link in links for a, b in (link, link[::-1]) if a in frontier} - group
        found.append(tuple(sorted(group)))
        left -= group
    return sorted(found, key=lambda group: (-len(group), group[0]))


@pytest.mark.slow
@given(strategies.pairs(max_size=8), st.lists(strategies.ids(), max_size=4))
def test_summary_agrees_with_a_search(pairs, more):
    links = pairs.select("ID1", "ID2").rows()
    ids = {*pairs["ID1"], *pairs["ID2"], *more}
    if not ids:
        with pytest.raises(TableError, match="no rows"):
            ps.summarize_pairs(pairs, [])
        return
    summary = ps.summarize_pairs(pairs, [*ids, *ids])
    groups = groups_by_search(ids, links)
    assert summary.components == tuple(groups)
    assert summary.connected == (len(groups) == 1)
    assert (summary.n_items, summary.n_pairs) == (len(ids), len(links))
    assert summary.n_unordered == len({frozenset(link) for link in links})
    first, second = Counter(a for a, _ in links), Counter(b for _, b in links)
    number = {name: at for at, group in enumerate(groups, start=1) for name in group}
    assert summary.degrees.columns == ["ID", "degree", "pos_count_1", "pos_count_2", "component"]
    assert summary.degrees.rows() == [(i, first[i] + second[i], first[i], second[i], number[i]) for i in sorted(ids)]
    assert summary.unpaired == tuple(sorted(ids - {*first, *second}))


def test_without_ids_only_those_in_pairs_count():
    summary = ps.summarize_pairs([{"ID1": "b", "ID2": "a"}, {"ID1": "a", "ID2": "b"}, {"ID1": "c", "ID2": "a"}])
    assert (summary.n_items, summary.n_pairs, summary.n_unordered, summary.unpaired) == (3, 3, 2, ())
    assert str(summary) == "3 samples in 3 pairs, 1 to 3 each, all linked"


def test_results_and_ids_that_are_numbers_are_summarized_too():
    results = pl.DataFrame({"ID1": [1, 2], "ID2": [3.0, 4.0], "better_id": [1, 4]})
    summary = ps.summarize_pairs(results, ids=[1, 2, 3, 4, 5])
    assert summary.components == (("1", "3"), ("2", "4"), ("5",))
    assert str(summary) == "5 samples in 2 pairs, 0 to 1 each, 3 separate groups"


@pytest.mark.parametrize(
    ("pairs", "ids", "says"),
    [
        ([{"ID1": "a", "ID2": "b"}], ["a", "c"], r"pairs: 'b' not among the samples \(ids=\)"),
        ([{"ID1": "a", "ID2": "b"}, {"ID1": "c", "ID2": "c"}], None, "pairs: 'c' is compared with itself in row 2"),
        ([{"ID1": "a", "ID2": None}], None, "pairs: column 'ID2' is empty in row 1"),
        ([{"ID1": "a"}], None, "pairs: no column 'ID2'; it has 'ID1'"),
        ([{"ID1": "a", "ID2": "b"}], ["a", "b", None], "ids: column 'ID' is empty in row 3"),
    ],
)
def test_what_is_wrong_is_said(pairs, ids, says):
    with pytest.raises(TableError, match=says):
        ps.summarize_pairs(pairs, ids)


def test_groups_of_one_are_numbered_after_the_others_in_the_order_of_ids():
    # Many of them: comparing every group with every sample would be ten billion steps.
    ids = [f"{i:06d}" for i in range(100_000)]
    summary = ps.summarize_pairs([{"ID1": ids[7], "ID2": ids[5]}], ids)
    assert summary.components[0] == (ids[5], ids[7])
    assert summary.components[1:4] == ((ids[0],), (ids[1],), (ids[2],))
    assert len(summary.unpaired) == 99_998
