"""Factors of small and large matrices: by LAPACK as SciPy wraps it, except where importing that takes longer."""

from __future__ import annotations

import numpy as np

from pairscale.core.arrays import WITHOUT_SCIPY, Floats

__all__ = ["cholesky", "cholesky_inverse", "cholesky_solve", "triangular_inverse"]


def cholesky(matrix: Floats) -> Floats | None:
    """The lower factor of a positive definite matrix; only its lower half is read, and it may be overwritten.

    Returns:
        None when the matrix is not positive definite.
    """
    if len(matrix) > WITHOUT_SCIPY:
        from scipy.linalg import lapack

        factor, failed = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
        return None if failed else factor
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def cholesky_solve(factor: Floats, right: Floats) -> Floats:
    """The solution of ``factor @ factor.T @ x = right``."""
    if len(factor) > WITHOUT_SCIPY:
        from scipy.linalg import lapack

        return np.asarray(lapack.dpotrs(factor, right, lower=1)[0], dtype=np.float64)
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, right)), dtype=np.float64)


def cholesky_inverse(factor: Floats) -> Floats:
    """The inverse of ``factor @ factor.T``; the factor may be overwritten."""
    if len(factor) > WITHOUT_SCIPY:
        from scipy.linalg import lapack

        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T, dtype=np.float64)  # only that half was written
    inverse = triangular_inverse(factor)
    return np.asarray(inverse.T @ inverse, dtype=np.float64)


def triangular_inverse(factor: Floats) -> Floats:
    """The inverse of a lower triangular matrix, which may be overwritten."""
    if len(factor) > WITHOUT_SCIPY:
        from scipy.linalg import lapack

        return np.asarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0], dtype=np.float64)
    return np.asarray(np.tril(np.linalg.inv(factor)), dtype=np.float64)
