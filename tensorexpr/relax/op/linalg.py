"""Operators of linear algebra as functions that make calls."""

from ..ops.linalg import cholesky, eigh, inv, qr, slogdet, solve, solve_triangular, svd

__all__ = ["cholesky", "eigh", "inv", "qr", "slogdet", "solve", "solve_triangular", "svd"]
