"""Groups of items that pairs hold together are the same without SciPy as with it."""

import numpy as np
import pytest

from pairscale.pairing import table


def _members(label):
    return sorted(tuple(np.flatnonzero(label == group)) for group in np.unique(label))


@pytest.mark.parametrize("directed", [False, True])
def test_small_graphs_have_the_groups_that_large_ones_have(directed, monkeypatch):
    random = np.random.default_rng(7)
    graphs = [(n, *random.integers(0, n, (2, pairs))) for n in (1, 2, 5, 33, 64) for pairs in (0, n // 2, n, 2 * n)]
    chain = np.arange(63)  # the longest path that there can be
    graphs += [(64, chain, chain + 1), (64, np.append(chain, 63), np.append(chain + 1, 0))]
    small = [table.group_labels(first, second, n, directed=directed) for n, first, second in graphs]
    monkeypatch.setattr(table, "WITHOUT_SCIPY", 0)
    for (n, first, second), ours in zip(graphs, small, strict=True):
        assert _members(ours) == _members(table.group_labels(first, second, n, directed=directed)), (n, first, second)
    assert len(_members(small[-2])) == (64 if directed else 1)
    assert len(_members(small[-1])) == 1
