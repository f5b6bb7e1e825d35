"""Small matrices, by NumPy, have the factors that large ones have by SciPy."""

import numpy as np
import pytest

from pairscale.models import _cholesky


@pytest.mark.parametrize("n", [1, 5, 64])
def test_small_matrices_are_factored_like_large_ones(n, monkeypatch):
    random = np.random.default_rng(n)
    half = random.normal(size=(n, n + 3))
    matrix, right = np.asfortranarray(half @ half.T), random.normal(size=(n, 2))

    def found():
        factor = _cholesky.cholesky(matrix.copy(order="F"))
        return [
            factor,
            _cholesky.cholesky_solve(factor, right),
            _cholesky.cholesky_inverse(factor.copy(order="F")),
            _cholesky.triangular_inverse(factor.copy(order="F")),
        ]

    small = found()
    monkeypatch.setattr(_cholesky, "WITHOUT_SCIPY", 0)
    for ours, theirs in zip(small, found(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(small[2] @ matrix, np.eye(n), atol=1e-9)


@pytest.mark.parametrize("limit", [0, 64])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(limit, monkeypatch):
    monkeypatch.setattr(_cholesky, "WITHOUT_SCIPY", limit)
    assert _cholesky.cholesky(np.asfortranarray(np.diag([1.0, -1.0]))) is None


@pytest.mark.parametrize("limit", [0, 64])
def test_only_the_lower_half_is_read(limit, monkeypatch):
    monkeypatch.setattr(_cholesky, "WITHOUT_SCIPY", limit)
    factor = _cholesky.cholesky(np.array([[4.0, 99.0], [2.0, 3.0]], order="F"))
    np.testing.assert_allclose(factor, [[2.0, 0.0], [1.0, np.sqrt(2.0)]])
