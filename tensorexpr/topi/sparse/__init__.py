"""Products of sparse and dense matrices. Sparse ones are compressed rows (CSR), or rows of blocks (BSR).

csr: data [nnz], indices [nnz] (columns), indptr [rows + 1]            bsr: data [nnz, block rows, block columns]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import DeclarationError
from ...te.declare import compute, reduce_axis
from ...te.reducer import sum as sum_of
from ...te.tensor import Tensor
from ...tir import arithmetic
from ...tir.arithmetic import const
from ...tir.buffer import Buffer
from ...tir.expr import PrimExpr
from ...tir.ir_builder import IRBuilder
from ..rows import in_loops
from ..transform import injective
from ..utils import need_equal, need_rank


def sparse_dense(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor, sparse_lhs: bool = False
) -> Tensor:
    """dense @ sparse.T, or with `sparse_lhs` sparse @ dense.T.

    Args:
        dense_data: [m, k].
        sparse_data: [nnz] of a CSR matrix [n, k], or [nnz, r, c] of a BSR matrix of n / r rows of blocks.
        sparse_indices: [nnz], int32.
        sparse_indptr: [n + 1], or [n / r + 1].
        sparse_lhs: the sparse matrix is the left operand.

    Returns:
        [m, n], or [n, m] with `sparse_lhs`.

    Raises:
        DeclarationError: for other ranks.
    """
    need_rank("sparse_dense", "dense_data", dense_data, 2)
    if sparse_data.ndim not in (1, 3):
        raise DeclarationError(f"sparse_dense: sparse_data has {sparse_data.ndim} dimensions; CSR has 1 and BSR 3")
    need_equal("sparse_dense", "the elements of sparse_data and sparse_indices", sparse_data.shape[0], sparse_indices.shape[0])
    m, rows = dense_data.shape[0], sparse_indptr.shape[0] - 1
    tag = f"sparse_dense_sp_{'lhs' if sparse_lhs else 'rhs'}_{'csrmm' if sparse_data.ndim == 1 else 'bsrmm'}"

    def along_row(row: PrimExpr, *r: PrimExpr, i: PrimExpr) -> PrimExpr:
        return _row_sum(sparse_data, sparse_indices, sparse_indptr, (row, *r), lambda column: dense_data(i, column))

    if sparse_data.ndim == 1:
        if sparse_lhs:
            return _declared((rows, m), lambda row, i: along_row(row, i=i), tag)
        return _declared((m, rows), lambda i, row: along_row(row, i=i), tag)
    height = sparse_data.shape[1]
    if sparse_lhs:
        block = _declared((rows, height, m), lambda nb_j, j, i: along_row(nb_j, j, i=i), f"{tag}_block")
        return _declared((rows * height, m), lambda m, n: block(*_split(m, height), n), tag)
    block = _declared((m, rows, height), lambda i, nb_j, j: along_row(nb_j, j, i=i), f"{tag}_block")
    return _declared((m, rows * height), lambda m, n: block(m, *_split(n, height)), tag)


def _declared(
    shape: tuple[PrimExpr, ...], body: Callable[..., PrimExpr], tag: str, name: str = "compute", names: list[str] | None = None
) -> Tensor:
    return compute(shape, body, name, tag, varargs_names=names)


def _split(index: PrimExpr, extent: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    return arithmetic.floordiv(index, extent), arithmetic.floormod(index, extent)


def _row_sum(
    data: Tensor, indices: Tensor, indptr: Tensor, place: tuple[PrimExpr, ...], element: Callable[[PrimExpr], PrimExpr]
) -> PrimExpr:
    """The sum along a sparse row of its elements times those of something dense in their columns.

    Args:
        place: the row, or the row of blocks and the row within them.
        element: column -> what it is multiplied with.
    """
    row, *within = place
    begin = indptr(row)
    elem_idx = reduce_axis((0, indptr(row + 1) - begin), "elem_idx")
    at = begin + elem_idx
    if not within:
        return sum_of(data(at) * element(indices(at)), axis=elem_idx)
    width = data.shape[2]
    c = reduce_axis((0, width), "c")
    total = sum_of(data(at, *within, c) * element(width * indices(at) + c), axis=[elem_idx, c])
    return total


def sparse_dense_sp_rhs(data: Tensor, weight_data: Tensor, weight_indices: Tensor, weight_indptr: Tensor) -> Tensor:
    """data @ weight.T with a sparse weight; see `sparse_dense`."""
    return sparse_dense(data, weight_data, weight_indices, weight_indptr)


def sparse_dense_sp_lhs(data_data: Tensor, data_indices: Tensor, data_indptr: Tensor, weight: Tensor) -> Tensor:
    """data @ weight.T with sparse data; see `sparse_dense`."""
    return sparse_dense(weight, data_data, data_indices, data_indptr, sparse_lhs=True)


def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> list[Tensor]:
    """The transpose of a square CSR matrix, as CSR: data [nnz], indices [nnz] and indptr [n + 1].

    Raises:
        DeclarationError: for data that isn't of one dimension.
    """
    need_rank("sparse_transpose", "sparse_data", sparse_data, 1)
    count, rows = sparse_data.shape[0], sparse_indptr.shape[0] - 1

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        values, columns, begins, new_values, new_columns, new_begins = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, rows + 1, "i") as i:
            new_begins[i] = 0
        with ib.for_range(0, count, "at") as at:
            # Counted one place further, so that the running sums below are begins and not ends.
            new_begins[columns[at] + 1] = new_begins[columns[at] + 1] + 1
        with ib.for_range(0, rows, "i") as i:
            new_begins[i + 1] = new_begins[i + 1] + new_begins[i]
        filled = ib.allocate(sparse_indptr.dtype, (rows,), "filled")
        with ib.for_range(0, rows, "i") as i:
            filled[i] = new_begins[i]
        with ib.for_range(0, rows, "i") as i, ib.for_range(begins[i], begins[i + 1], "at") as at:
            # Rows in order: so the columns of each new row ascend, as CSR has them.
            to = filled[columns[at]]
            new_values[to] = values[at]
            new_columns[to] = i.astype(sparse_indices.dtype)
            filled[columns[at]] = to + 1

    shapes = [sparse_data.shape, sparse_indices.shape, sparse_indptr.shape]
    dtypes = [sparse_data.dtype, sparse_indices.dtype, sparse_indptr.dtype]
    return in_loops(shapes, [sparse_data, sparse_indices, sparse_indptr], body, "sparse_transpose", dtypes)


def sparse_add(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> Tensor:
    """The sum of a dense matrix [m, n] and a CSR matrix of that shape."""
    need_rank("sparse_add", "dense_data", dense_data, 2)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        dense, values, columns, begins, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, dense_data.shape[0], "i", kind="parallel") as i:
            with ib.for_range(0, dense_data.shape[1], "j") as j:
                out[i, j] = dense[i, j]
            with ib.for_range(begins[i], begins[i + 1], "at") as at:
                # On top of what is there, so that an element that is stored twice is added twice.
                out[i, columns[at]] = out[i, columns[at]] + values[at]

    inputs = [dense_data, sparse_data, sparse_indices, sparse_indptr]
    return in_loops([dense_data.shape], inputs, body, "sparse_add", [dense_data.dtype])[0]


def sparse_conv2d(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor, layout: str = "NHWC", kernel_size: int = 1
) -> Tensor:
    """A convolution without padding whose weights are a BSR or CSR matrix [O, kernel * kernel * I].

    Args:
        dense_data: [N, H, W, I], or [N, I, H, W] for the layout "NCHW".
        sparse_data, sparse_indices, sparse_indptr: the weights, as for `sparse_dense`; columns count (kernel row, kernel column, channel).
        layout: "NHWC" or "NCHW".
        kernel_size: 1 or 3.

    Returns:
        [N, H', W', O] or [N, O, H', W'] with H' = H - kernel_size + 1.

    Raises:
        DeclarationError: for another layout or rank.
    """
    need_rank("sparse_conv2d", "dense_data", dense_data, 4)
    if layout not in ("NHWC", "NCHW"):
        raise DeclarationError(f'sparse_conv2d: layout is {layout!r}; it takes "NHWC" or "NCHW"')
    last = layout == "NHWC"
    n, h, w, channels = dense_data.shape if last else (dense_data.shape[0], *dense_data.shape[2:], dense_data.shape[1])
    k = kernel_size
    rows, cols = h - k + 1, w - k + 1

    blocks = sparse_data.ndim == 3
    counts = (sparse_indptr.shape[0] - 1, *sparse_data.shape[1:2])
    outputs = counts[0] * counts[1] if blocks else counts[0]
    tag = f"sparse_conv2d_sp_{'bsrmm' if blocks else 'csrmm'}"

    def at_pixel(i: PrimExpr, y: PrimExpr, x: PrimExpr, *place: PrimExpr) -> PrimExpr:
        def element(column: PrimExpr) -> PrimExpr:
            # Of a single tap a column is a channel, and nothing has to be divided.
            tap, channel = (0, column) if k == 1 else _split(column, channels)
            row, col = (y, x) if k == 1 else (y + arithmetic.floordiv(tap, k), x + arithmetic.floormod(tap, k))
            return dense_data(i, row, col, channel) if last else dense_data(i, channel, row, col)

        return _row_sum(sparse_data, sparse_indices, sparse_indptr, place, element)

    names = ["nb_j", "j"][: len(counts)]
    shape, letters = ((n, rows, cols, *counts), ["i", "h", "w", *names]) if last else ((n, *counts, rows, cols), ["i", *names, "h", "w"])

    def body(*axes: PrimExpr) -> PrimExpr:
        i, *rest = axes
        (y, x), place = (rest[:2], rest[2:]) if last else (rest[-2:], rest[:-2])
        return at_pixel(i, y, x, *place)

    if not blocks:
        return _declared(shape, body, tag, "sparse_conv2d", letters)
    block = _declared(shape, body, f"{tag}_block", names=letters)
    height = counts[1]
    if last:
        return _declared((n, rows, cols, outputs), lambda m, h, w, n: block(m, h, w, *_split(n, height)), tag, "sparse_conv2d")
    return _declared((n, outputs, rows, cols), lambda m, n, h, w: block(m, *_split(n, height), h, w), tag, "sparse_conv2d")


def csr_product(data: Tensor, indices: Tensor, indptr: Tensor, dense: Tensor) -> Tensor:
    """[rows, n]: a CSR matrix times a dense one [k, n]."""
    need_rank("csrmm", "the dense matrix", dense, 2)
    rows = indptr.shape[0] - 1

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        values, columns, begins, right, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            with ib.for_range(0, dense.shape[1], "j") as j:
                out[row, j] = const(0, dense.dtype)
            # Columns innermost: rows of the dense matrix and of the result are read in order.
            with ib.for_range(begins[row], begins[row + 1], "at") as at, ib.for_range(0, dense.shape[1], "j") as j:
                out[row, j] = out[row, j] + values[at] * right[columns[at], j]

    return in_loops([(rows, dense.shape[1])], [data, indices, indptr, dense], body, "csrmm", [dense.dtype])[0]


def _with_bias(product: Tensor, bias: Tensor | None, name: str) -> Tensor:
    if bias is None:
        return product
    need_rank(name, "the vector that is added", bias, 1)
    need_equal(name, "the columns of the result and the vector that is added", product.shape[1], bias.shape[0])
    return injective(product.shape, lambda i, j: product(i, j) + bias(j), name)


def csrmm(a: Any, b: Tensor, c: Tensor | None = None) -> Tensor:
    """A sparse matrix times a dense one, plus a vector.

    Args:
        a: [m, k], of `contrib.sparse.placeholder`.
        b: [k, n].
        c: [n], added to each row, if there is one.

    Returns:
        [m, n].

    Raises:
        DeclarationError: for other ranks.
    """
    return _with_bias(csr_product(a.data, a.indices, a.indptr, b), c, "csrmm")


def csrmv(a: Any, x: Tensor, y: Tensor | None = None) -> Tensor:
    """As `csrmm`, with x [k, 1] and y [1]: [m, 1]."""
    need_rank("csrmv", "x", x, 2)
    need_equal("csrmv", "the columns of x and 1", x.shape[1], 1)
    return _with_bias(csr_product(a.data, a.indices, a.indptr, x), y, "csrmv")


def dense(data: Any, weight: Any, bias: Tensor | None = None) -> Tensor:
    """data [m, k] times the transpose of weight [n, k], one of them of `contrib.sparse.placeholder`, plus bias [n] if there is one.

    Raises:
        DeclarationError: unless one of them is sparse and the other a tensor.
    """
    if hasattr(data, "indptr") and isinstance(weight, Tensor):
        return _with_bias(sparse_dense_sp_lhs(data.data, data.indices, data.indptr, weight), bias, "dense")
    if hasattr(weight, "indptr") and isinstance(data, Tensor):
        return _with_bias(sparse_dense_sp_rhs(data, weight.data, weight.indices, weight.indptr), bias, "dense")
    raise DeclarationError("sparse.dense: one of data and weight is a contrib.sparse.placeholder, the other a tensor")
