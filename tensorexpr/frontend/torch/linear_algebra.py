"""Operators of linear algebra: factors, inverses and solutions of systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import relax
from ...errors import DeclarationError
from .complexes import Complex
from .table import Context, aten


def _elements(c: Context, value: Any, count: int) -> list[Any]:
    return [c.builder.emit(relax.TupleGetItem(value, n)) for n in range(count)]


def _turned(c: Context, value: Any) -> Any:
    """Matrices transposed."""
    rank = c.rank(value)
    return c.op("permute_dims", value, axes=[*range(rank - 2), rank - 1, rank - 2])


def _stacked(c: Context, value: Any, batch: Sequence[Any]) -> Any:
    """The matrices repeated over the axes in front that both operands broadcast to."""
    shape = [*batch, *c.shape_of(value)[-2:]]
    return value if c.shape_of(value) == shape else c.op("broadcast_to", value, relax.ShapeExpr(tuple(shape)))


def _no_errors(c: Context, input: Any) -> Any:
    """LAPACK's reports, all 0: what it would report is an error when it runs."""
    return c.op("zeros", relax.ShapeExpr(tuple(c.shape_of(input)[:-2])), "int32")


@aten("inverse", "linalg_inv")
def _inverse(c: Context, input: Any) -> Any:
    return c.op("linalg.inv", input)


@aten("linalg_inv_ex")
def _inverse_and_report(c: Context, input: Any, check_errors: bool = False) -> Any:
    return [_inverse(c, input), _no_errors(c, input)]


@aten("cholesky", "linalg_cholesky")
def _cholesky(c: Context, input: Any, upper: bool = False) -> Any:
    return c.op("linalg.cholesky", input, upper)


@aten("linalg_cholesky_ex")
def _cholesky_and_report(c: Context, input: Any, upper: bool = False, check_errors: bool = False) -> Any:
    return [_cholesky(c, input, upper), _no_errors(c, input)]


@aten("cholesky_inverse")
def _cholesky_inverse(c: Context, input: Any, upper: bool = False) -> Any:
    half = c.op("linalg.inv", c.op("triu" if upper else "tril", input))
    return c.op("matmul", half, _turned(c, half)) if upper else c.op("matmul", _turned(c, half), half)


@aten("linalg_solve")
def _solve(c: Context, a: Any, b: Any, left: bool = True) -> Any:
    # A vector is one right side; PyTorch takes b for a stack of vectors where it has the shape of a without its last axis.
    is_vector = c.rank(b) == 1 or (c.rank(b) == c.rank(a) - 1 and c.shape_of(b) == c.shape_of(a)[:-1])
    if is_vector:
        b = c.op("expand_dims", b, axis=-1)
    batch = c.sizes[:-1] if is_vector else c.sizes[:-2]
    a, b = _stacked(c, a, batch), _stacked(c, b, batch)
    if not left:
        return _turned(c, c.op("linalg.solve", _turned(c, a), _turned(c, b)))
    found = c.op("linalg.solve", a, b)
    return c.op("squeeze", found, axis=[-1]) if is_vector else found


@aten("_linalg_solve_ex")
def _solve_and_factors(c: Context, a: Any, b: Any, left: bool = True, check_errors: bool = False) -> Any:
    c.result = c.result[0]
    return [_solve(c, a, b, left), None, None, _no_errors(c, a)]  # the factors are for derivatives


@aten("linalg_solve_triangular")
def _solve_triangular(c: Context, a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    batch = c.sizes[:-2]
    a, b = _stacked(c, a, batch), _stacked(c, b, batch)
    if left:
        return c.op("linalg.solve_triangular", a, b, upper, unitriangular)
    return _turned(c, c.op("linalg.solve_triangular", _turned(c, a), _turned(c, b), not upper, unitriangular))


@aten("triangular_solve")
def _solve_half(c: Context, b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    batch = c.sizes_of(c.result[0])[:-2]
    a, b = _stacked(c, a, batch), _stacked(c, b, batch)
    matrix, half = (_turned(c, a), not upper) if transpose else (a, upper)
    return [c.op("linalg.solve_triangular", matrix, b, half, unitriangular), a]


@aten("cholesky_solve")
def _solve_by_cholesky(c: Context, b: Any, factor: Any, upper: bool = False) -> Any:
    batch = c.sizes[:-2]
    b, lower = _stacked(c, b, batch), _stacked(c, _turned(c, factor) if upper else factor, batch)
    return c.op("linalg.solve_triangular", _turned(c, lower), c.op("linalg.solve_triangular", lower, b), True)


@aten("_linalg_slogdet")
def _slogdet(c: Context, a: Any) -> Any:
    return _elements(c, c.op("linalg.slogdet", a), 2)


@aten("slogdet", "linalg_slogdet")
def _slogdet_alone(c: Context, a: Any) -> Any:
    return _slogdet(c, a)


@aten("_linalg_eigh", "linalg_eigh")
def _eigh(c: Context, a: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    return _elements(c, c.op("linalg.eigh", a, uplo == "U"), 2)


@aten("_linalg_svd", "linalg_svd")
def _svd(c: Context, a: Any, full_matrices: bool = False, *rest: Any) -> Any:
    return _elements(c, c.op("linalg.svd", a, full_matrices), 3)


@aten("linalg_svdvals")
def _svdvals(c: Context, a: Any, *rest: Any) -> Any:
    return _svd(c, a)[1]


@aten("linalg_qr")
def _qr(c: Context, a: Any, mode: str = "reduced") -> Any:
    q, r = _elements(c, c.op("linalg.qr", a, mode == "complete"), 2)
    return [None if mode == "r" else q, r]


def _one_hot(c: Context, order: Any, dtype: str) -> Any:
    """Matrices with a one in each column, in the row that says `order`."""
    count = c.shape_of(order)[-1]
    rows = c.op("expand_dims", c.op("arange", 0, count, 1, dtype="int64"), axis=1)
    return c.cast(c.op("equal", rows, c.op("expand_dims", order, axis=-2)), dtype)


def _unpacked(c: Context, factors: Any, pivots: Any) -> list[Any]:
    """P, L and U of P @ L @ U."""
    rows, columns = c.shape_of(factors)[-2:]
    dtype, inner = c.dtype_of(factors), min(rows, columns)
    order = c.op("linalg.lu_permutation", pivots, rows)
    rank = c.rank(factors)
    lower = c.op("strided_slice", c.op("tril", factors, -1), [rank - 1], [0], [inner])
    upper = c.op("strided_slice", c.op("triu", factors), [rank - 2], [0], [inner])
    return [_one_hot(c, order, dtype), c.op("add", lower, relax.const(np.eye(rows, inner), dtype)), upper]


@aten("linalg_lu_factor_ex", "linalg_lu_factor")
def _lu_factor(c: Context, a: Any, pivot: bool = True, *rest: Any) -> Any:
    return [*_elements(c, c.op("linalg.lu_factor", a, pivot), 2), _no_errors(c, a)]


@aten("lu_unpack")
def _lu_unpack(c: Context, factors: Any, pivots: Any, *rest: Any) -> Any:
    return _unpacked(c, factors, pivots)


@aten("linalg_lu")
def _lu(c: Context, a: Any, pivot: bool = True) -> Any:
    return _unpacked(c, *_elements(c, c.op("linalg.lu_factor", a, pivot), 2))


@aten("linalg_lu_solve")
def _lu_solve(c: Context, factors: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    if not left or adjoint:
        raise DeclarationError("lu_solve is of a @ x = b here; take torch.linalg.solve for transposed matrices, and for those on the right")
    batch = c.sizes[:-2]
    moved, lower, upper = (_stacked(c, one, batch) for one in _unpacked(c, factors, pivots))
    right = c.op("matmul", _turned(c, moved), _stacked(c, b, batch))
    return c.op("linalg.solve_triangular", upper, c.op("linalg.solve_triangular", lower, right), True)


@aten("linalg_matrix_exp")
def _matrix_exp(c: Context, a: Any) -> Any:
    return c.op("linalg.matrix_exp", a)


@aten("linalg_eig")
def _eig(c: Context, a: Any) -> Any:
    parts = _elements(c, c.op("linalg.eig", a), 4)
    return [Complex(*parts[:2]), Complex(*parts[2:])]


@aten("linalg_eigvals", "_linalg_eigvals")
def _eigvals(c: Context, a: Any) -> Any:
    return _eig(c, a)[0]


@aten("linalg_householder_product")
def _householder(c: Context, a: Any, tau: Any) -> Any:
    """The first columns of the product of I - tau * v @ v.T, where a column of `a` below its diagonal of ones is v."""
    rows, columns = c.shape_of(a)[-2:]
    dtype, rank = c.dtype_of(a), c.rank(a)
    vectors = c.op("add", c.op("tril", a, -1), relax.const(np.eye(rows, columns), dtype))
    found = c.op("broadcast_to", relax.const(np.eye(rows, columns), dtype), relax.ShapeExpr((*c.shape_of(a)[:-2], rows, columns)))
    for n in reversed(range(c.shape_of(tau)[-1])):
        v = c.op("strided_slice", vectors, [rank - 1], [n], [n + 1])
        factor = c.op("expand_dims", c.op("strided_slice", tau, [rank - 2], [n], [n + 1]), axis=-1)
        found = c.op("subtract", found, c.op("multiply", factor, c.op("matmul", v, c.op("matmul", _turned(c, v), found))))
    return found


@aten("linalg_pinv", "linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def _pseudoinverse(c: Context, a: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """V / S @ U.T of the singular values that aren't nearly 0 beside the largest."""
    u, s, vh = _elements(c, c.op("linalg.svd", a, False), 3)
    dtype, (rows, columns) = c.dtype_of(a), c.shape_of(a)[-2:]
    largest = c.op("max", s, axis=[-1], keepdims=True)
    epsilon = 2.0**-52 if dtype == "float64" else 2.0**-23
    # PyTorch's default: only without an absolute tolerance is there a relative one.
    relative = rtol if rtol is not None else max(rows, columns) * epsilon if atol is None else 0.0
    bound = c.op("maximum", c.cast(0.0 if atol is None else atol, dtype), c.op("multiply", c.cast(relative, dtype), largest))
    is_kept = c.op("greater", s, bound)
    one = relax.const(1, dtype)
    inverse = c.op("where", is_kept, c.op("divide", one, c.op("where", is_kept, s, one)), relax.const(0, dtype))
    return c.op("matmul", c.op("multiply", _turned(c, vh), c.op("expand_dims", inverse, axis=-2)), _turned(c, u))
