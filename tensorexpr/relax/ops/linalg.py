"""Operators of linear algebra on stacks of matrices: factors, inverses, solutions. They run on the host, by LAPACK as NumPy calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int, minimum
from ...tir.expr import IntImm, PrimExpr
from ..relations import same_extents
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .row import Expr, Operand, floats, operator, tensor


def _matrices(expr: Expr, name: str, is_square: bool = True) -> Operand:
    """An argument that is a stack of matrices in a precision that LAPACK has."""
    operand = floats(expr, name)
    if operand.dtype not in ("", "float32", "float64"):
        raise TypeMismatchError(f"{name} are float32 or float64, not {operand.info}; use astype first")
    if operand.ndim in (0, 1):
        raise DeclarationError(f"{name} is a matrix, or a stack of them along its last two axes, not {operand.info}")
    if is_square and operand.extents is not None and same_extents(*operand.extents[-2:]) is False:
        raise DeclarationError(f"{name} has as many rows as columns, where it is {operand.info}")
    return operand


def _outer(operand: Operand, *inner: PrimExpr | int) -> TensorStructInfo:
    """A tensor for each matrix of a stack."""
    known = None if operand.extents is None else [*operand.extents[:-2], *inner]
    return operand.like(known, ndim=-1 if operand.ndim == -1 else operand.ndim - 2 + len(inner))


def _sides(operand: Operand) -> tuple[PrimExpr | int, PrimExpr | int, PrimExpr | int]:
    """Rows, columns, and the smaller number; whatever where they aren't known."""
    if operand.extents is None:
        return 1, 1, 1
    rows, columns = operand.extents[-2:]
    a, b = as_int(rows), as_int(columns)
    return rows, columns, IntImm("int64", min(a, b)) if a is not None and b is not None else minimum(rows, columns)


def _in_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy whose results have the dtype of its first operand."""

    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        found = function(x, *args, **kwargs)
        return tuple(np.asarray(one, x.dtype) for one in found) if isinstance(found, tuple) else np.asarray(found, x.dtype)

    return run


def _np_cholesky(x: Any, upper: bool) -> Any:
    # NumPy reads the lower half alone.
    found = np.linalg.cholesky(np.swapaxes(x, -1, -2) if upper else x)
    return np.swapaxes(found, -1, -2) if upper else found


@operator("linalg.cholesky", numpy=_in_dtype(_np_cholesky))
def cholesky(x: Expr, upper: bool = False) -> StructInfo:
    """The triangular factor L of matrices L @ L.T, or its transpose if `upper`; only that half of x is read.

    A matrix that isn't positive definite is an error of NumPy's (`numpy.linalg.LinAlgError`) when it runs.
    """
    return _matrices(x, "x").info


@operator("linalg.inv", numpy=_in_dtype(np.linalg.inv))
def inv(x: Expr) -> StructInfo:
    """The inverses of matrices; a singular one is an error of NumPy's when it runs."""
    return _matrices(x, "x").info


def _solution(a: Expr, b: Expr) -> StructInfo:
    matrix, right = _matrices(a, "a"), _matrices(b, "b", is_square=False)
    if matrix.dtype != right.dtype or matrix.ndim != right.ndim:
        raise DeclarationError(f"a and b have one dtype and as many axes, where they are {matrix.info} and {right.info}")
    if matrix.extents is not None and right.extents is not None:
        pairs = [(matrix.extents[-1], right.extents[-2]), *zip(matrix.extents[:-2], right.extents[:-2], strict=True)]
        if any(same_extents(one, other) is False for one, other in pairs):
            raise DeclarationError(f"a @ x = b has no such shapes: a is {matrix.info}, b is {right.info}")
    return right.info


@operator("linalg.solve", numpy=_in_dtype(np.linalg.solve))
def solve(a: Expr, b: Expr) -> StructInfo:
    """The matrices x of a @ x = b; a singular a is an error of NumPy's when it runs."""
    return _solution(a, b)


def _np_solve_triangular(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    half = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        half = half * (1 - np.eye(a.shape[-1], dtype=a.dtype)) + np.eye(a.shape[-1], dtype=a.dtype)
    return np.linalg.solve(half, b)


@operator("linalg.solve_triangular", numpy=_in_dtype(_np_solve_triangular))
def solve_triangular(a: Expr, b: Expr, upper: bool = False, unitriangular: bool = False) -> StructInfo:
    """As `solve`, of one half of a alone, with ones on its diagonal if `unitriangular`."""
    return _solution(a, b)


@operator("linalg.slogdet", numpy=_in_dtype(lambda x: tuple(np.linalg.slogdet(x))))
def slogdet(x: Expr) -> StructInfo:
    """The signs of determinants, and the logarithms of their absolute values."""
    one = _outer(_matrices(x, "x"))
    return TupleStructInfo((one, one))


@operator("linalg.eigh", numpy=_in_dtype(lambda x, upper: tuple(np.linalg.eigh(x, "U" if upper else "L"))))
def eigh(x: Expr, upper: bool = False) -> StructInfo:
    """Eigenvalues of symmetric matrices, the least first, and eigenvectors as columns; one half of x is read."""
    operand = _matrices(x, "x")
    return TupleStructInfo((_outer(operand, _sides(operand)[0]), operand.info))


@operator("linalg.svd", numpy=_in_dtype(lambda x, full_matrices: tuple(np.linalg.svd(x, full_matrices))))
def svd(x: Expr, full_matrices: bool = True) -> StructInfo:
    """U, the singular values S, the largest first, and V transposed, of matrices U @ diag(S) @ V.T.

    Without `full_matrices` U and V have no more columns than there are singular values.
    """
    operand = _matrices(x, "x", is_square=False)
    rows, columns, inner = _sides(operand)
    left, right = ((rows, rows), (columns, columns)) if full_matrices else ((rows, inner), (inner, columns))
    return TupleStructInfo((_outer(operand, *left), _outer(operand, inner), _outer(operand, *right)))


@operator("linalg.qr", numpy=_in_dtype(lambda x, complete: tuple(np.linalg.qr(x, "complete" if complete else "reduced"))))
def qr(x: Expr, complete: bool = False) -> StructInfo:
    """An orthogonal matrix Q and an upper triangular one R, of matrices Q @ R; all columns of Q if `complete`."""
    operand = _matrices(x, "x", is_square=False)
    rows, columns, inner = _sides(operand)
    middle = rows if complete else inner
    return TupleStructInfo((_outer(operand, rows, middle), _outer(operand, middle, columns)))


def _np_lu(x: Any, pivot: bool) -> tuple[Any, Any]:
    """Column by column, for all matrices at once (Golub and Van Loan, algorithm 3.4.1)."""
    rows, columns = x.shape[-2:]
    found = x.reshape(-1, rows, columns).astype(x.dtype, copy=True)
    count = min(rows, columns)
    pivots, stack = np.tile(np.arange(1, count + 1, dtype=np.int32), (len(found), 1)), np.arange(len(found))
    for n in range(count):
        if pivot:
            largest = n + np.argmax(np.abs(found[:, n:, n]), axis=1)
            pivots[:, n] = largest + 1
            found[stack, n], found[stack, largest] = found[stack, largest], found[stack, n].copy()
        # A column without a pivot is 0 below the diagonal already.
        divisor = np.where(found[:, n, n] == 0, x.dtype.type(1), found[:, n, n])
        found[:, n + 1 :, n] /= divisor[:, None]
        found[:, n + 1 :, n + 1 :] -= found[:, n + 1 :, n, None] * found[:, n, None, n + 1 :]
    return found.reshape(x.shape), pivots.reshape(*x.shape[:-2], count)


@operator("linalg.lu_factor", numpy=_np_lu)
def lu_factor(x: Expr, pivot: bool = True) -> StructInfo:
    """Matrices whose half above the diagonal is U, and whose rest is L without its diagonal of ones, of L @ U; and its pivots, int32.

    Row n of x is exchanged for row pivots[n] - 1, one after the other, so that the largest element of a column is divided by; without
    `pivot` none is.
    """
    operand = _matrices(x, "x", is_square=False)
    pivots = _outer(operand, _sides(operand)[2])
    return TupleStructInfo((operand.info, TensorStructInfo(pivots.shape, "int32", ndim=pivots.ndim)))


def _np_permutation(pivots: Any, rows: int) -> Any:
    flat = pivots.reshape(-1, pivots.shape[-1]).astype(np.int64) - 1
    found, stack = np.tile(np.arange(rows, dtype=np.int64), (len(flat), 1)), np.arange(len(flat))
    for n in range(flat.shape[1]):
        found[stack, n], found[stack, flat[:, n]] = found[stack, flat[:, n]], found[stack, n].copy()
    return found.reshape(*pivots.shape[:-1], rows)


@operator("linalg.lu_permutation", numpy=_np_permutation)
def lu_permutation(pivots: Expr, rows: int) -> StructInfo:
    """Which row of x each row of L @ U is, int64 [..., rows], by the pivots of `lu_factor`."""
    operand = tensor(pivots, "pivots")
    if operand.dtype not in ("", "int32", "int64") or operand.ndim == 0:
        raise TypeMismatchError(f"pivots are integers along a last axis, not {operand.info}")
    shape = None if operand.extents is None else [*operand.extents[:-1], rows]
    return operand.like(shape, "int64", operand.ndim)


def _np_matrix_exp(x: Any) -> Any:
    """By a quotient of polynomials of degree 13 of the matrix by a power of two, squared as often (Higham 2005)."""
    wide = x.astype(np.float64)
    size = np.abs(wide).sum(-2).max(-1, initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.ceil(np.log2(np.where(np.isfinite(size) & (size > 5.0), size / 5.0, 1.0))).astype(np.int64)
    y = wide / np.exp2(halvings)[..., None, None]
    term = np.broadcast_to(np.eye(x.shape[-1]), y.shape)
    above, below, weight = term, term, 1.0
    for n in range(1, 14):
        weight *= (14 - n) / (n * (27 - n))
        term = term @ y
        above, below = above + weight * term, below + weight * (-1) ** n * term
    found = np.linalg.solve(below, above)
    for n in range(int(halvings.max(initial=0))):
        found = np.where((halvings > n)[..., None, None], found @ found, found)
    return found.astype(x.dtype)


@operator("linalg.matrix_exp", numpy=_np_matrix_exp)
def matrix_exp(x: Expr) -> StructInfo:
    """The exponentials of matrices: the sum of x^n / n!."""
    return _matrices(x, "x").info


def _np_eig(x: Any) -> tuple[Any, ...]:
    values, vectors = np.linalg.eig(x)
    return tuple(np.asarray(part, x.dtype) for one in (values, vectors) for part in (one.real, one.imag))


@operator("linalg.eig", numpy=_np_eig)
def eig(x: Expr) -> StructInfo:
    """Eigenvalues of matrices and eigenvectors as columns, which are complex: real and imaginary parts of those, then of these."""
    operand = _matrices(x, "x")
    values = _outer(operand, _sides(operand)[0])
    return TupleStructInfo((values, values, operand.info, operand.info))
