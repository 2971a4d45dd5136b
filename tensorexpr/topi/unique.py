"""Which elements there are: unique values of a row of numbers, and the places where a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir import arithmetic
from ..tir.arithmetic import cast
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .launches import runs_on_gpu
from .rows import in_loops, product
from .scan import cumsum
from .sort import argsort
from .transform import unravel
from .utils import need_rank


def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """The different elements of a tensor of one dimension. Results have room for all elements; what is behind the last one is filled up.

    Args:
        data: [n].
        is_sorted: results in ascending order, or in that of the first occurrences.
        return_counts: also say how often each element occurs.

    Returns:
        The unique elements [n], then zeros; the place in `data` where each occurs first [n] (int32), then n; for each element of `data`
        the number of its unique element [n] (int32); how many unique elements there are [1] (int32); and with `return_counts` how often
        each occurs [n] (int32), then zeros.

    Raises:
        DeclarationError: for another rank.
    """
    need_rank("unique", "data", data, 1)
    order = argsort(data, dtype="int32")
    size = data.shape[0]
    shapes = [(size,), (size,), (size,), (1,), *([(size,)] if return_counts else [])]

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        values, sorted_places = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        made, first, inverse, count = (ib.buffer_ptr(out) for out in outs[:4])
        counts = ib.buffer_ptr(outs[4]) if return_counts else None
        with ib.for_range(0, size, "i") as i:
            # No place is as large as `size`, so the first occurrence is the least of all.
            made[i], first[i] = arithmetic.const(0, data.dtype), cast(size, "int32")
            if counts is not None:
                counts[i] = 0
        rank = ib.allocate("int32", (size,), "rank")  # of each element: that of its value among the sorted ones
        _rank_values(ib, values, sorted_places, rank, count, size)
        number = _first_come(ib, rank, size) if not is_sorted else rank
        with ib.for_range(0, size, "i") as i:
            inverse[i] = number[i]
            made[number[i]] = values[i]
            first[number[i]] = arithmetic.minimum(first[number[i]], cast(i, "int32"))
            if counts is not None:
                counts[number[i]] = counts[number[i]] + 1

    return in_loops(shapes, [data, order], body, "unique", [data.dtype, "int32", "int32", "int32", *(["int32"] if return_counts else [])])


def _rank_values(ib: IRBuilder, values: BufferVar, places: BufferVar, rank: BufferVar, count: BufferVar, size: PrimExpr) -> None:
    """Number the values in ascending order; equal ones have one number."""
    with ib.for_range(0, size, "i") as i:
        with ib.if_scope(i == 0):
            count[0] = 1
        with ib.else_scope(), ib.if_scope(values[places[i]] != values[places[i - 1]]):
            count[0] = count[0] + 1
        rank[places[i]] = count[0] - 1


def _first_come(ib: IRBuilder, rank: BufferVar, size: PrimExpr) -> BufferVar:
    """The same numbers in the order in which they occur first."""
    renumbered, number = (ib.allocate("int32", (size,), name) for name in ("renumbered", "number"))
    found = ib.allocate("int32", (1,), "found", scope="local")
    found[0] = 0
    with ib.for_range(0, size, "i") as i:
        renumbered[i] = -1
    with ib.for_range(0, size, "i") as i:
        with ib.if_scope(renumbered[rank[i]] < 0):
            renumbered[rank[i]] = found[0]
            found[0] = found[0] + 1
        number[i] = renumbered[rank[i]]
    return number


def argwhere(output_shape: Any, condition: Tensor) -> Tensor:
    """The indices of the elements that are not zero, row by row.

    Args:
        output_shape: [k, rank of the condition], as a tensor of that shape or as its extents: room for k rows.
        condition: of any dtype.

    Returns:
        int32 [k, rank]; elements beyond the k-th are left out, rows that no element fills are -1.

    Raises:
        DeclarationError: if a row of the output doesn't hold one index for each dimension.
    """
    shape = output_shape.shape if isinstance(output_shape, Tensor) else tuple(output_shape)
    if len(shape) != 2 or arithmetic.as_int(arithmetic.convert(shape[1])) not in (condition.ndim, None):
        raise DeclarationError(
            f"argwhere: the output is [rows, {condition.ndim}] for {condition.name}, which has {condition.ndim} dimensions"
        )

    if runs_on_gpu():
        return _argwhere_by_sums(condition, shape)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        given, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, shape[0], "row") as row:
            for dim in range(condition.ndim):
                out[row, dim] = -1
        found = ib.allocate("int32", (1,), "found", scope="local")
        found[0] = 0
        # One thread: where an element is written depends on how many came before it.
        elements = ib.for_range(0, product(condition.shape), "i")
        with elements as i, ib.if_scope(arithmetic.all(given[i].astype("bool"), found[0] < shape[0])):
            for dim, index in enumerate(unravel(i, condition.shape)):
                out[found[0], dim] = index
            found[0] = found[0] + 1

    return in_loops([shape], [condition], body, "argwhere", ["int32"])[0]


def _argwhere_by_sums(condition: Tensor, shape: tuple[Any, ...]) -> Tensor:
    """`argwhere` on GPUs: how many elements hold up to each one is a running sum, and says which row it writes."""
    size = product(condition.shape)
    holds = compute((size,), lambda i: condition(*unravel(i, condition.shape)).astype("bool").astype("int32"), "holds")
    numbers = cumsum(holds, 0)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        held, number, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, shape[0], "row", kind="parallel") as row:
            for dim in range(condition.ndim):
                out[row, dim] = -1
        with ib.for_range(0, size, "i", kind="parallel") as i:
            row = ib.let("row", number[i] - 1)
            with ib.if_scope(arithmetic.all(held[i] != 0, row < shape[0])):
                for dim, index in enumerate(unravel(i, condition.shape)):
                    out[row, dim] = index

    return in_loops([shape], [holds, numbers], body, "argwhere", ["int32"])[0]


def _argwhere_of_rank(rank: int) -> Callable[[Any, Tensor], Tensor]:
    def function(output_shape: Any, condition: Tensor) -> Tensor:
        need_rank(function.__name__, "condition", condition, rank)
        return argwhere(output_shape, condition)

    function.__name__ = function.__qualname__ = f"hybrid_argwhere_{rank}d"
    function.__doc__ = f"`argwhere` of a condition of {rank} dimension{'s' if rank > 1 else ''}."
    return function


hybrid_argwhere_1d = _argwhere_of_rank(1)
hybrid_argwhere_2d = _argwhere_of_rank(2)
hybrid_argwhere_3d = _argwhere_of_rank(3)
hybrid_argwhere_4d = _argwhere_of_rank(4)
hybrid_argwhere_5d = _argwhere_of_rank(5)
