"""Sparse tensors as TensorFlow has them: a row of indices and a value for each element that isn't zero, in ascending order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..te.tensor import Tensor
from ..tir import arithmetic
from ..tir.arithmetic import cast, const
from ..tir.buffer import Buffer
from ..tir.ir_builder import IRBuilder
from .rows import in_loops
from .utils import get_const_int, need_equal, need_rank


def sparse_fill_empty_rows(
    sparse_indices: Tensor,
    sparse_values: Tensor,
    dense_shape: Tensor,
    default_value: Tensor,
    new_sparse_indices_shape: Sequence[Any],
    new_sparse_values_shape: Sequence[Any],
    empty_row_indicator_shape: Sequence[Any],
) -> list[Tensor]:
    """A sparse tensor whose empty rows have an element of a given value in their first place.

    Args:
        sparse_indices: integers [n, rank], rows in ascending order.
        sparse_values: [n].
        dense_shape: [rank], the extents.
        default_value: [1].
        new_sparse_indices_shape: [m, rank], room for m elements: n and the number of rows are always enough.
        new_sparse_values_shape: [m].
        empty_row_indicator_shape: [rows].

    Returns:
        Indices [m, rank], values [m], both 0 behind the last element; and for each row whether it was empty [rows], 1 or 0, in the dtype of
        the indices. Elements beyond the m-th are left out.

    Raises:
        DeclarationError: for other ranks.
    """
    where = "sparse_fill_empty_rows"
    need_rank(where, "sparse_indices", sparse_indices, 2)
    need_rank(where, "sparse_values", sparse_values, 1)
    count, rank = sparse_indices.shape[0], get_const_int(sparse_indices.shape[1])
    room, rows, dtype = new_sparse_values_shape[0], empty_row_indicator_shape[0], sparse_indices.dtype

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        indices, values, _, default, new_indices, new_values, empty = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        state = ib.allocate("int32", (2,), "state", scope="local")  # the element that comes next, and how many are written
        state[0], state[1] = 0, 0

        def write(index: Any, value: Any) -> None:
            with ib.if_scope(state[1] < room):
                for dim in range(rank):
                    new_indices[state[1], dim] = index(dim)
                new_values[state[1]] = value
                state[1] = state[1] + 1

        with ib.for_range(0, room, "i") as i:
            new_values[i] = const(0, sparse_values.dtype)
            for dim in range(rank):
                new_indices[i, dim] = const(0, dtype)
        with ib.for_range(0, rows, "row") as row:
            own = cast(row, dtype)
            empty[row] = const(1, dtype)
            with ib.while_loop(arithmetic.all(state[0] < count, indices[arithmetic.minimum(state[0], count - 1), 0] <= own)):
                empty[row] = const(0, dtype)
                write(lambda dim: indices[state[0], dim], values[state[0]])
                state[0] = state[0] + 1
            with ib.if_scope(empty[row] == const(1, dtype)):
                write(lambda dim: const(0, dtype) if dim else own, default[0])

    inputs = [sparse_indices, sparse_values, dense_shape, default_value]
    shapes = [new_sparse_indices_shape, new_sparse_values_shape, empty_row_indicator_shape]
    return in_loops(shapes, inputs, body, where, [dtype, sparse_values.dtype, dtype])


def sparse_reshape(
    sparse_indices: Tensor, prev_shape: Tensor, new_shape: Tensor, new_sparse_indices_shape: Sequence[Any], new_shape_shape: Sequence[Any]
) -> list[Tensor]:
    """The indices of a sparse tensor in another shape.

    Args:
        sparse_indices: integers [n, old rank].
        prev_shape: [old rank], the extents.
        new_shape: [new rank], the new extents, of which one may be -1: it is what the others leave.
        new_sparse_indices_shape: [n, new rank].
        new_shape_shape: [new rank].

    Returns:
        Indices [n, new rank] and the new extents [new rank], in the dtype of the indices.

    Raises:
        DeclarationError: for other ranks.
    """
    where = "sparse_reshape"
    need_rank(where, "sparse_indices", sparse_indices, 2)
    old, new = get_const_int(prev_shape.shape[0]), get_const_int(new_shape.shape[0])
    need_equal(where, "the dimensions of sparse_indices and prev_shape", sparse_indices.shape[1], old)
    need_equal(where, "the dimensions of the result and new_shape", new_sparse_indices_shape[1], new)
    dtype = sparse_indices.dtype

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        indices, before, wanted, out, extents = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        left = ib.allocate(dtype, (1,), "left", scope="local")
        left[0] = const(1, dtype)
        for dim in range(old):
            left[0] = left[0] * cast(before[dim], dtype)
        for dim in range(new):
            with ib.if_scope(wanted[dim] != const(-1, new_shape.dtype)):
                left[0] = arithmetic.floordiv(left[0], cast(wanted[dim], dtype))
        for dim in range(new):
            with ib.if_scope(wanted[dim] == const(-1, new_shape.dtype)):
                extents[dim] = left[0]
            with ib.else_scope():
                extents[dim] = cast(wanted[dim], dtype)
        with ib.for_range(0, sparse_indices.shape[0], "i") as i:
            place = ib.allocate(dtype, (1,), "place", scope="local")
            place[0] = const(0, dtype)
            for dim in range(old):
                place[0] = place[0] * cast(before[dim], dtype) + indices[i, dim]
            for dim in reversed(range(new)):
                out[i, dim] = arithmetic.floormod(place[0], extents[dim]) if dim else place[0]
                place[0] = arithmetic.floordiv(place[0], extents[dim])

    shapes = [new_sparse_indices_shape, new_shape_shape]
    return in_loops(shapes, [sparse_indices, prev_shape, new_shape], body, where, [dtype, dtype])
