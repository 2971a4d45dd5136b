"""Operators on sparse matrices: CSR, or BSR's blocks, as data, indices and indptr."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import topi
from ...relax import op as graph_op
from ...relax.expr import const as constant
from .row import Computed, Expr, Exprs, Meaning, dtype, operator, shape
from .transform import _fields


@operator("nn.sparse_dense")
def _sparse_dense(dense_mat: Expr, weights: Exprs, sparse_lhs: bool = False) -> Meaning:
    dense_weights = _densified(weights, shape(dense_mat)[1])
    product = graph_op.matmul(dense_mat, graph_op.permute_dims(dense_weights, [1, 0]))
    return graph_op.permute_dims(product, [1, 0]) if sparse_lhs else product


def _densified(weights: Any, columns: Any) -> Any:
    """A matrix of CSR, or of BSR's blocks, with its zeros. Weights are constants most often, and this is then computed when it is built."""
    data, indices, starts = _fields(weights)
    count, rows = int(shape(data)[0]), int(shape(starts)[0]) - 1
    block = list(shape(data)[1:]) or [1, 1]
    # Element n belongs to the row in front of which n or fewer elements are: starts [0, 2, 3] put 0 and 1 into row 0, 2 into row 1.
    ends = graph_op.reshape(graph_op.strided_slice(starts, [0], [1], [rows + 1]), [1, rows])
    row = graph_op.sum(graph_op.astype(graph_op.less_equal(ends, constant(np.arange(count, dtype="int32")[:, None])), "int64"), [1])
    places = graph_op.concat((graph_op.expand_dims(row, 1), graph_op.expand_dims(graph_op.astype(indices, "int64"), 1)), 1)
    zeros = graph_op.zeros([rows, columns // block[1], *block], dtype(data))
    filled = graph_op.scatter_nd(zeros, places, graph_op.reshape(data, [count, *block]), "add")
    return graph_op.reshape(graph_op.permute_dims(filled, [0, 2, 1, 3]), [rows * block[0], columns])


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Any:
    """Rows times the rows of sparse weights: data, indices and indptr of CSR or BSR.

    Args:
        dense_mat: rows.
        sparse_mat: a tuple of expressions, or a matrix of scipy.
        sparse_lhs: whether the sparse one stands on the left.
    """
    return _sparse_dense(dense_mat, _csr(sparse_mat), sparse_lhs)


def _csr(matrix: Any) -> Any:
    from ..expr import const

    return tuple(const(getattr(matrix, one)) for one in ("data", "indices", "indptr")) if hasattr(matrix, "indptr") else matrix


@operator("nn.sparse_add")
def _sparse_add(dense_mat: Expr, weights: Exprs) -> Meaning:
    return Computed(topi.nn.sparse_add, (dense_mat, *weights.fields), {}, "sparse_add")


def sparse_add(dense_mat: Any, sparse_mat: Any) -> Any:
    """A matrix plus a sparse one."""
    return _sparse_add(dense_mat, _csr(sparse_mat))


@operator("nn.sparse_transpose", results=lambda **given: 3)
def _sparse_transpose(weights: Exprs) -> Meaning:
    return Computed(topi.nn.sparse_transpose, tuple(weights.fields), {}, "sparse_transpose")


def sparse_transpose(x: Any) -> Any:
    """A square sparse matrix transposed."""
    return _sparse_transpose(_csr(x))


@operator("sparse_fill_empty_rows", results=lambda **given: 3)
def _sparse_fill_empty_rows(sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr) -> Meaning:
    """A sparse tensor with a value in each row: places as rows, values, and whether each row was empty."""
    return graph_op.sparse_fill_empty_rows(sparse_indices, sparse_values, dense_shape, default_value)


def sparse_fill_empty_rows(sparse_indices: Any, sparse_values: Any, dense_shape: Any, default_value: Any) -> Any:
    """A sparse tensor with a value in each row, as a tuple: places as rows, values, and whether each row was empty."""
    from ..expr import Tuple

    found = _sparse_fill_empty_rows(sparse_indices, sparse_values, dense_shape, default_value)
    return Tuple([found[n] for n in range(3)])


@operator("sparse_reshape", results=lambda **given: 2)
def sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> Meaning:
    """The places of a sparse tensor's values in another shape, in which -1 is what is left, and that shape."""
    return graph_op.sparse_reshape(sparse_indices, prev_shape, new_shape)
