"""Orders: sort, argsort, topk, searchsorted. Sequential algorithms, in loops over rows that run in parallel; on GPUs `gpu_sort`.

Ties keep their order. NaN counts as larger than every number, as in NumPy and PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import DeclarationError
from ..target import Target
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .gpu_sort import sort_rows
from .launches import runs_on_gpu
from .row_sort import first_of_row, is_sorted_by_keys, sort_row, sort_values, sort_values_by_parts
from .rows import Rows, in_loops, product
from .utils import equal_const_int, extent_value, get_const_int, positive_axis

# Values that are searched at once: loads of 64 elements from anywhere hide each other's time.
_SEARCHES = 64
# Elements that are sorted in about a tenth of a millisecond, and those from which on sorting parts and merging them takes less time.
_ELEMENTS_OF_THREAD, _ELEMENTS_OF_PART = 1 << 13, 1 << 17
_RETURNED = ("both", "values", "indices")


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements of `data` in order along an axis; the shape and dtype are those of `data`.

    Args:
        data: [any shape], of any dtype.
        axis: counted from the end if negative.
        is_ascend: the smallest first.

    Raises:
        DeclarationError: for an axis that isn't there.
    """
    place = positive_axis("sort", axis, data.ndim)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        rows, out = Rows(ib, ins[0], place), Rows(ib, outs[0], place)
        if runs_on_gpu():
            sort_rows(ib, rows, lambda row: rows.length, is_ascend, lambda row, i, value, _: out.store(row, i, value))
            return
        parts = _parts_of_row(rows)
        if parts > 1:
            with ib.for_range(0, rows.count, "row") as r:
                sort_values_by_parts(ib, rows, r, parts, is_ascend, lambda i, value: out.store(r, i, value))
            return
        with rows.parallel() as r:
            sort_values(ib, rows, r, is_ascend, lambda i, value: out.store(r, i, value))

    return in_loops([data.shape], [data], body, "sort", [data.dtype])[0]


def _parts_of_row(rows: Rows) -> int:
    """In how many parts, a power of two, all threads sort each row; 1 where there are rows for all threads, or little to do for them."""
    count, length = arithmetic.as_int(rows.count), arithmetic.as_int(rows.length)
    cores = Target.target_or_current(None).num_cores
    if (
        count is None
        or length is None
        or count >= cores
        or length < cores * _ELEMENTS_OF_THREAD
        or not is_sorted_by_keys(rows.buffer.dtype)
    ):
        return 1
    return 1 << (max(cores, -(-length // _ELEMENTS_OF_PART)) - 1).bit_length()


def argsort(data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: bool = True, dtype: str = "float32") -> Tensor:
    """Where the elements of the sorted `data` stand in it, along an axis.

    Args:
        data: of any shape.
        valid_count: int32, of the shape of `data` without the axis: only so many elements of each row take part; the others stay in place.
        axis: to sort along.
        is_ascend: the smallest first, or the largest.
        dtype: of the result; TVM's default is a float.

    Returns:
        A tensor of the shape of `data`.

    Raises:
        DeclarationError: for an axis that isn't there.
    """
    place = positive_axis("argsort", axis, data.ndim)

    inputs = [data] if valid_count is None else [data, valid_count]

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        rows, out = Rows(ib, ins[0], place), Rows(ib, outs[0], place)

        def taking_part(r: PrimExpr) -> PrimExpr:
            return rows.length if valid_count is None else ib.buffer_ptr(ins[1])[r if valid_count.ndim else ()]

        if runs_on_gpu():
            sort_rows(ib, rows, taking_part, is_ascend, lambda r, i, _, index: out.store(r, i, index.astype(dtype)))
            return
        with rows.parallel() as r:
            length = taking_part(r)
            sort_row(ib, rows, r, length, is_ascend, lambda i, _, index: out.store(r, i, index.astype(dtype)))
            # Those that take no part say their own place, so that the result is a permutation.
            with ib.for_range(length, rows.length, "i") as i:
                out.store(r, i, i.astype(dtype))

    return in_loops([data.shape], inputs, body, "argsort", [dtype])[0]


def topk(
    data: Tensor, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int64"
) -> Tensor | list[Tensor]:
    """The first `k` of the sorted elements along an axis.

    Args:
        data: of any shape.
        k: how many; all of them if it is less than 1.
        axis: to sort along.
        ret_type: "both" for values and indices, "values" or "indices".
        is_ascend: the smallest first, or the largest.
        dtype: of the indices.

    Returns:
        One tensor, or the list of values and indices, of the shape of `data` with `k` elements along the axis.

    Raises:
        DeclarationError: for an axis or ret_type that isn't there.
    """
    place = positive_axis("topk", axis, data.ndim)
    if ret_type not in _RETURNED:
        raise DeclarationError(f"topk: ret_type is {ret_type!r}; it takes {', '.join(map(repr, _RETURNED))}")
    wanted: Any = k if isinstance(k, PrimExpr) and not hasattr(k, "value") else get_const_int(k)
    size = data.shape[place] if isinstance(wanted, int) and wanted < 1 else wanted
    shape = (*data.shape[:place], size, *data.shape[place + 1 :])

    dtypes = {"both": [data.dtype, dtype], "values": [data.dtype], "indices": [dtype]}[ret_type]

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        rows, made = Rows(ib, ins[0], place), [Rows(ib, out, place) for out in outs]

        def emit(r: PrimExpr, i: PrimExpr, value: PrimExpr, index: PrimExpr) -> None:
            if ret_type != "indices":
                made[0].store(r, i, value)
            if ret_type != "values":
                made[-1].store(r, i, index.astype(dtype))

        if runs_on_gpu():
            sort_rows(ib, rows, lambda r: rows.length, is_ascend, emit, arithmetic.convert(size))
            return
        with rows.parallel() as r:
            first_of_row(ib, rows, r, arithmetic.convert(size), is_ascend, lambda i, value, index: emit(r, i, value, index))

    found = in_loops([shape] * len(dtypes), [data], body, "topk", dtypes)
    return found if ret_type == "both" else found[0]


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64") -> Tensor:
    """Where `values` would have to be inserted to keep a sequence sorted.

    Args:
        sorted_sequence: [..., n], ascending along its last axis; or [n] for all of the values.
        values: [..., m], with the same leading extents, or of any shape if the sequence has one dimension.
        right: of several places the last one.
        out_dtype: of the result.

    Returns:
        Indices of the shape of `values`.

    Raises:
        DeclarationError: for leading extents that differ.
    """
    shared = sorted_sequence.ndim == 1
    if not shared and sorted_sequence.ndim != values.ndim:
        raise DeclarationError(
            f"searchsorted: {sorted_sequence.name} has {sorted_sequence.ndim} dimensions and {values.name} {values.ndim}; "
            "they have equal leading extents, or the sequence has one dimension"
        )
    length = sorted_sequence.shape[-1]
    # A row of values for each sequence: all of them are one row if there is one sequence.
    known = [extent_value(extent) for extent in (values.shape if shared else values.shape[-1:])]
    together = math.prod(known) if all(isinstance(extent, int) for extent in known) else 0

    def in_lockstep(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        rows = Rows(ib, ins[0], sorted_sequence.ndim - 1)
        wanted, out = ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        width = 1 if runs_on_gpu() else min(_SEARCHES, together)  # searches of other threads hide each other's time there
        blocks, count = -(-together // width), product(values.shape)
        with ib.for_range(0, arithmetic.floordiv(count, together) * blocks, "block", kind="parallel") as block:
            r = arithmetic.floordiv(block, blocks)
            # The last block ends with the row, so that all have one width; where it overlaps the one before both find the same.
            first = r * together + arithmetic.minimum(arithmetic.floormod(block, blocks) * width, together - width)
            places = search_rows(ib, lambda at: rows.load(0 if shared else r, at), length, lambda n: wanted[first + n], width, right)
            with ib.for_range(0, width, "n", kind="vectorize") as n:
                out[first + n] = places[n].astype(out_dtype)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        if together:
            in_lockstep(ib, ins, outs)
            return
        rows = Rows(ib, ins[0], sorted_sequence.ndim - 1)
        wanted, out = (Rows(ib, buffer, values.ndim - 1) for buffer in (ins[1], outs[0]))
        with wanted.parallel() as r, ib.for_range(0, wanted.length, "i") as i:
            place = binary_search_row(ib, lambda at: rows.load(0 if shared else r, at), length, wanted.load(r, i), right)
            out.store(r, i, place.astype(out_dtype))

    return in_loops([values.shape], [sorted_sequence, values], body, "searchsorted", [out_dtype])[0]


def search_rows(
    ib: IRBuilder, load: Callable[[PrimExpr], PrimExpr], length: Any, value: Callable[[PrimExpr], PrimExpr], width: int, right: bool
) -> BufferVar:
    """As `binary_search_row` for so many values at once, in vectors: each step halves the rest of all of them alike.

    for rest in n, n - n / 2, ...: for each value: if row[place + rest / 2 - 1] passes: place += rest / 2

    What is left of a row is as long for every value, so that only places differ, and loads of many values wait together.
    """
    places = ib.allocate("int32", (width,), "places", scope="local")
    rest = ib.allocate("int32", (1,), "rest", scope="local")
    with ib.for_range(0, width, "n", kind="vectorize") as n:
        places[n] = const(0, "int32")
    rest[0] = arithmetic.cast(length, "int32")
    if equal_const_int(length, 0):  # there is no element to look at, not even under a condition
        return places

    def step(half: PrimExpr) -> None:
        with ib.for_range(0, width, "n", kind="vectorize") as n:
            element = load(places[n] + half - 1)
            passed = element <= value(n) if right else element < value(n)
            places[n] = places[n] + intrin.select(passed, half, const(0, "int32"))

    with ib.while_loop(rest[0] > 1):
        step(arithmetic.floordiv(rest[0], 2))
        rest[0] = rest[0] - arithmetic.floordiv(rest[0], 2)
    # an empty row has no element to look at
    with ib.if_scope(arithmetic.convert(rest[0] == 1)):
        step(const(1, "int32"))
    return places


def binary_search_row(ib: IRBuilder, load: Callable[[PrimExpr], PrimExpr], length: Any, value: PrimExpr, right: bool) -> PrimExpr:
    """The first place of an ascending row whose element is not less than `value`; with `right`, that is greater."""
    bounds = ib.allocate("int32", (2,), "bounds", scope="local")
    bounds[0], bounds[1] = 0, arithmetic.cast(length, "int32")
    # All in front of bounds[0] have passed, and none from bounds[1] on.
    with ib.while_loop(bounds[0] < bounds[1]):
        middle = arithmetic.floordiv(bounds[0] + bounds[1], 2)
        passed = load(middle) <= value if right else load(middle) < value
        with ib.if_scope(passed):
            bounds[0] = middle + 1
        with ib.else_scope():
            bounds[1] = middle
    return bounds[0]


def binary_search(
    ib: IRBuilder, sequence_offset: Any, search_range: Any, sorted_sequence: Buffer, value: PrimExpr, right: bool, out_dtype: str
) -> PrimExpr:
    """Loops that search a value in an ascending part of a buffer.

    Args:
        ib: where the loops are built.
        sequence_offset: where the part begins, elements counted row by row.
        search_range: how many elements it has.
        sorted_sequence: the buffer, of any shape.
        value: what is searched.
        right: the place behind equal elements, not before them.
        out_dtype: of the result.

    Returns:
        The place in the part, from 0 to `search_range`.
    """
    elements = ib.buffer_ptr(sorted_sequence)
    return binary_search_row(ib, lambda at: elements[sequence_offset + at], search_range, value, right).astype(out_dtype)
