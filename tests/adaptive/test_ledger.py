"""The ledger against slow and obvious versions of what it says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairscale.adaptive.selection.ledger import Ledger

N = 8
ITEMS = st.lists(st.integers(0, N - 1), unique=True).map(lambda items: np.array(items, dtype=np.int64))


@given(
    rested=st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] != pair[1])),
    left=ITEMS,
    right=ITEMS,
)
def test_which_pairs_rest(rested, left, right):
    ledger = Ledger(N, 10)
    for a, b in {tuple(sorted(pair)) for pair in rested}:
        ledger.open(a, b)
        ledger.reject(a, b, is_error=True, pair_limit=3, item_limit=3)
    resting = {frozenset(pair) for pair in rested}
    expected = [[frozenset((i, j)) in resting for j in right.tolist()] for i in left.tolist()]
    found = ledger.resting(left, right)
    assert found.shape == (len(left), len(right))
    assert found.tolist() == expected
