"""Operators of linear algebra as functions that make calls."""

from ..ops.linalg import (
    cholesky,
    eig,
    eigh,
    inv,
    lu_factor,
    lu_permutation,
    matrix_exp,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
)

__all__ = [
    "cholesky", "eig", "eigh", "inv", "lu_factor", "lu_permutation", "matrix_exp", "qr", "slogdet", "solve", "solve_triangular", "svd",
]  # fmt: skip
