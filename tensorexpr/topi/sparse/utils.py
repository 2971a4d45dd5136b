"""Random sparse matrices of blocks, for tuning and tests; they need SciPy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...errors import DeclarationError


def random_bsr_matrix(M: int, N: int, BS_R: int, BS_C: int, density: float, dtype: str) -> Any:
    """A random `scipy.sparse.bsr_matrix` of shape (M, N), with indices of int32.

    Args:
        M, N: rows and columns.
        BS_R, BS_C: rows and columns of a block, which divide those of the matrix.
        density: which part of the elements lies in blocks that are there; the count of blocks is rounded up.
        dtype: of the values, which are drawn from a normal distribution.

    Raises:
        DeclarationError: for blocks that don't divide the matrix, or a density that isn't in 0...1.
        ImportError: without SciPy.
    """
    if BS_R < 1 or BS_C < 1 or M % BS_R or N % BS_C:
        raise DeclarationError(f"a matrix of {M} x {N} has no blocks of {BS_R} x {BS_C}: they have to divide it")
    if not 0 <= density <= 1:
        raise DeclarationError(f"the density of a matrix is a number in 0...1, not {density}")
    scipy_sparse = importlib.import_module("scipy.sparse")
    rows, columns = M // BS_R, N // BS_C
    random = np.random.default_rng(np.random.randint(2**31))  # so that np.random.seed decides here too
    count = int(np.ceil(rows * columns * density))
    places = np.sort(random.choice(rows * columns, count, replace=False))
    values = random.standard_normal((count, BS_R, BS_C)).astype(dtype)
    starts = np.searchsorted(places, np.arange(rows + 1) * columns).astype("int32")
    return scipy_sparse.bsr_matrix((values, (places % columns).astype("int32"), starts), shape=(M, N))
