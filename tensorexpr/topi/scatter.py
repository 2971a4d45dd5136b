"""Writing elements where a tensor says. Updates of one place happen in the order in which they stand, on GPUs too (`_by_owners`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .indexing import wide
from .launches import runs_on_gpu
from .rows import in_loops, product
from .sort import argsort
from .transform import injective, ravel, unravel
from .utils import extent_value, need_equal, need_rank, positive_axis

Combine = Callable[[PrimExpr, PrimExpr], PrimExpr]

_ENOUGH = 4096  # rows of which a thread each, in order, keeps a GPU busy

# How an update joins what is there.
REDUCTIONS: dict[str, Combine] = {
    "update": lambda _, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": arithmetic.minimum,
    "max": arithmetic.maximum,
    "mean": lambda old, new: arithmetic.div(old + new, 2),
}


def _combine(where: str, reduction: str) -> Combine:
    if reduction not in REDUCTIONS:
        raise DeclarationError(f"{where}: no reduction {reduction!r}; it takes {', '.join(REDUCTIONS)}")
    return REDUCTIONS[reduction]


def _nest(stack: ExitStack, ib: IRBuilder, extents: Sequence[Any], kind: str = "serial") -> list[PrimExpr]:
    """A loop for each extent; only the first may run in parallel."""
    return [stack.enter_context(ib.for_range(0, extent, f"i{dim}", kind="serial" if dim else kind)) for dim, extent in enumerate(extents)]


def _copy(ib: IRBuilder, source: BufferVar, target: BufferVar, size: PrimExpr) -> None:
    with ib.for_range(0, size, "i", kind="parallel") as i:
        target[i] = source[i]


def _counted(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """An index, from the end where it is negative."""
    index = wide(index)
    return intrin.select(index < 0, index + arithmetic.cast(extent, index.dtype), index)


def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update") -> Tensor:
    """`data` with updates[i0, ..., i, ...] at [i0, ..., indices[i0, ..., i, ...], ...], the index at `axis`.

    Args:
        data: of any shape.
        indices: of the rank of `data`, no larger but along `axis`; negative ones count from the end. Those out of range are left out.
        updates: of the shape of `indices`.
        axis: which index `indices` gives.
        reduction: how an update joins what is there: "update", "add", "mul", "min", "max", "mean" of the two.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        DeclarationError: for ranks that differ, an axis that isn't there or an unknown reduction.
    """
    place, combine = positive_axis("scatter_elements", axis, data.ndim), _combine("scatter_elements", reduction)
    if not data.ndim == indices.ndim == updates.ndim:
        raise DeclarationError(
            f"scatter_elements: data, indices and updates have {data.ndim}, {indices.ndim} and {updates.ndim} dimensions; "
            "they must be equal"
        )
    for dim, own in enumerate(indices.shape):
        need_equal("scatter_elements", f"extent {dim} of indices and updates", own, updates.shape[dim])
        room, count = extent_value(data.shape[dim]), extent_value(own)
        if dim != place and isinstance(room, int) and isinstance(count, int) and count > room:
            raise DeclarationError(f"scatter_elements: extent {dim} of indices is {count} and that of data {room}; it can't be larger")
    extent = data.shape[place]
    beside = arithmetic.as_int(product([e for dim, e in enumerate(indices.shape) if dim != place]))
    if runs_on_gpu() and (beside is None or beside < _ENOUGH):

        def element(n: PrimExpr) -> PrimExpr:
            at = unravel(n, indices.shape)
            index = _counted(indices(*at), extent)
            inside = arithmetic.all(index >= 0, index < arithmetic.cast(extent, index.dtype))
            return _if_inside(inside, [*at[:place], index, *at[place + 1 :]], data.shape)

        return _by_owners("scatter_elements", data, element, product(indices.shape), updates, 1, combine)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        source, where, new, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        _copy(ib, source, out, product(data.shape))
        others = [e for dim, e in enumerate(indices.shape) if dim != place]
        with ExitStack() as stack:
            # An index moves updates along `place` alone, so those of two threads never meet; along it they stay in order.
            at = _nest(stack, ib, others, "parallel")
            i = stack.enter_context(ib.for_range(0, indices.shape[place], "i"))
            from_ = (*at[:place], i, *at[place:])
            index = _counted(where[from_], extent)
            stack.enter_context(ib.if_scope(arithmetic.all(index >= 0, index < arithmetic.cast(extent, index.dtype))))
            to = (*at[:place], index, *at[place:])
            out[to] = combine(out[to], new[from_])

    return in_loops([data.shape], [data, indices, updates], body, "scatter_elements", [data.dtype])[0]


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    """`data` with elements or slices of `updates` at the index tuples in the columns of `indices`.

    Args:
        data: [s0, ..., s(n-1)].
        indices: [m, y0, ..., y(k-1)]: a tuple of m indices for each of the places y; negative ones count from the end.
        updates: [y0, ..., y(k-1), sm, ..., s(n-1)].
        mode: how an update joins what is there: "update", "add", "mul", "min", "max", "mean" of the two.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        DeclarationError: for shapes that don't fit together, or an unknown mode.
    """
    combine, count = _combine("scatter_nd", mode), extent_value(indices.shape[0])
    if not isinstance(count, int) or count > data.ndim:
        raise DeclarationError(f"scatter_nd: index tuples of length {count} for the {data.ndim} dimensions of {data.name}")
    points, rest = indices.shape[1:], data.shape[count:]
    if updates.ndim != len(points) + len(rest):
        raise DeclarationError(
            f"scatter_nd: updates has {updates.ndim} dimensions; {len(points)} of the places and {len(rest)} of a slice are wanted"
        )
    for dim, extent in enumerate((*points, *rest)):
        need_equal("scatter_nd", f"extent {dim} of updates and of the places and slices", updates.shape[dim], extent)

    if runs_on_gpu():

        def slice_(n: PrimExpr) -> PrimExpr:
            at = [_counted(indices(dim, *unravel(n, points)), data.shape[dim]) for dim in range(count)]
            inside = [index >= 0 for index in at]
            inside += [index < arithmetic.cast(data.shape[dim], index.dtype) for dim, index in enumerate(at)]
            return _if_inside(arithmetic.all(*inside), at, data.shape[:count])

        return _by_owners("scatter_nd", data, slice_, product(points), updates, product(rest), combine)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        source, where, new, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        _copy(ib, source, out, product(data.shape))
        with ExitStack() as stack:
            # One thread: two tuples may be equal, and then the later update has to come later.
            at = _nest(stack, ib, points)
            columns = [(dim, *at) for dim in range(count)]
            tuple_ = [_counted(where[column], data.shape[dim]) for dim, column in enumerate(columns)]
            inside = [index >= 0 for index in tuple_]
            inside += [index < arithmetic.cast(data.shape[dim], index.dtype) for dim, index in enumerate(tuple_)]
            stack.enter_context(ib.if_scope(arithmetic.all(*inside)))
            slice_ = [stack.enter_context(ib.for_range(0, extent, f"j{dim}")) for dim, extent in enumerate(rest)]
            to, from_ = (*tuple_, *slice_), (*at, *slice_)
            out[to] = combine(out[to], new[from_])

    return in_loops([data.shape], [data, indices, updates], body, "scatter_nd", [data.dtype])[0]


def _if_inside(inside: PrimExpr, at: Sequence[Any], shape: Sequence[Any]) -> PrimExpr:
    """The number of an element, or of none."""
    number = arithmetic.convert(ravel(at, shape))
    return intrin.select(inside, number, arithmetic.cast(product(shape), number.dtype))


def _by_owners(
    name: str, data: Tensor, place: Callable[[PrimExpr], PrimExpr], count: PrimExpr, updates: Tensor, width: Any, combine: Combine
) -> Tensor:
    """`data` with updates, those of one place made by one thread in the order in which they stand: a stable sort brings them together.

    Args:
        data: of any shape.
        place: which slice of `data` an update goes to; as many as there are for one that is left out.
        count: of updates.
        updates: [count slices of `width` elements], of any shape.
        combine: how an update joins what is there.
    """
    places = compute((count,), lambda n: place(n).astype("int32"), f"{name}_places")
    order = argsort(places, dtype="int32")

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        source, where, by_place, new, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        size = product(data.shape)
        _copy(ib, source, out, size)
        wide_ = arithmetic.convert(width)
        with ib.for_range(0, count * wide_, "n", kind="parallel") as n:
            first, j = arithmetic.floordiv(n, wide_), arithmetic.floormod(n, wide_)
            own = ib.let("own", where[by_place[first]])
            before = ib.let("before", where[by_place[arithmetic.maximum(first - 1, 0)]])
            is_owner = arithmetic.all(own * wide_ < size, arithmetic.any(arithmetic.convert(first == 0), before != own))
            with ib.if_scope(is_owner):
                state = ib.allocate("int32", (1,), "state", scope="local")
                joined = ib.allocate(data.dtype, (1,), "joined", scope="local")
                state[0], joined[0] = first, source[own * wide_ + j]
                last = count - 1
                follows = where[by_place[arithmetic.minimum(state[0], last)]] == own
                with ib.while_loop(arithmetic.all(state[0] < count, follows)):
                    joined[0] = combine(joined[0], new[by_place[state[0]] * wide_ + j])
                    state[0] = state[0] + 1
                out[own * wide_ + j] = joined[0]

    return in_loops([data.shape], [data, places, order, updates], body, name, [data.dtype])[0]


def sparse_to_dense(sparse_indices: Tensor, output_shape: Any, sparse_values: Tensor, default_value: Any = 0) -> Tensor:
    """A tensor that holds `sparse_values` at `sparse_indices` and `default_value` elsewhere.

    Args:
        sparse_indices: one index (rank 0), [n] for an output of one dimension, or [n, rank of the output].
        output_shape: extents of the output.
        sparse_values: one value for all places (rank 0), or [n].
        default_value: a number, or a tensor of rank 0.

    Returns:
        A tensor of `output_shape` and the dtype of the values.
    """
    shape = tuple(output_shape)
    if runs_on_gpu():
        return _sparse_by_owners(sparse_indices, shape, sparse_values, default_value)
    extra = [default_value] if isinstance(default_value, Tensor) else []

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        where, values, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        filler = ib.buffer_ptr(ins[2])[()] if extra else arithmetic.convert(default_value).astype(sparse_values.dtype)
        with ib.for_range(0, product(shape), "i") as i:
            out[i] = filler
        with ib.for_range(0, sparse_indices.shape[0] if sparse_indices.ndim else 1, "n") as n:
            at = [where[(n, dim)] for dim in range(len(shape))] if sparse_indices.ndim == 2 else [where[n if sparse_indices.ndim else ()]]
            out[tuple(at)] = values[n if sparse_values.ndim else ()]

    return in_loops([shape], [sparse_indices, sparse_values, *extra], body, "sparse_to_dense", [sparse_values.dtype])[0]


def _sparse_by_owners(where: Tensor, shape: tuple[Any, ...], values: Tensor, default: Any) -> Tensor:
    """`sparse_to_dense` as updates of a tensor of defaults."""
    made, count = values.dtype, where.shape[0] if where.ndim else arithmetic.const(1)
    filler = default() if isinstance(default, Tensor) else arithmetic.convert(default).astype(made)
    empty = compute(shape, lambda *_: filler, "sparse_default")
    given = compute((count,), lambda n: values(n) if values.ndim else values(), "sparse_updates")

    def place(n: PrimExpr) -> PrimExpr:
        at = [where(n, dim) for dim in range(len(shape))] if where.ndim == 2 else [where(n) if where.ndim else where()]
        return arithmetic.convert(ravel(at, shape))

    return _by_owners("sparse_to_dense", empty, place, count, given, 1, REDUCTIONS["update"])


def invert_permutation(data: Tensor) -> Tensor:
    """The permutation that takes another one back: result[data[i]] = i, for `data` of one dimension.

    Raises:
        DeclarationError: for another rank.
    """
    need_rank("invert_permutation", "data", data, 1)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, data.shape[0], "i", kind="parallel") as i:
            out[source[i]] = i.astype(data.dtype)

    return in_loops([data.shape], [data], body, "invert_permutation", [data.dtype])[0]


def within_index(b: Any, e: Any, s: Any, i: Any) -> PrimExpr:
    """Is index `i` one of b, b + s, b + 2 s, ... before e (for a negative step: after e)?"""
    step = arithmetic.convert(s)
    upwards = arithmetic.all(i >= b, i < e)
    downwards = arithmetic.all(i <= b, i > e)
    inside = intrin.select(step > 0, upwards, downwards)
    return arithmetic.all(inside, arithmetic.convert(arithmetic.floormod(i - b, step) == 0))


def make_idx(b: Any, e: Any, s: Any, z: Any, i: Any) -> PrimExpr:
    """The number of index `i` among b, b + s, ... before e, for an axis of `z` elements; b and e may count from the end."""
    start = arithmetic.minimum(arithmetic.maximum(intrin.select(b < 0, b + z, b), 0), z)
    del e
    return arithmetic.floordiv(i - start, s)


def strided_set(a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None) -> Tensor:
    """`a` with `v` in the places begin, begin + stride, ... before end of each axis.

    Args:
        a: of any shape.
        v: of the rank of `a`.
        begin, end, strides: tensors of one dimension, an element for each axis; negative begins and ends count from the end. Axes
            without an element are whole, and strides are 1 where there is none.

    Returns:
        A tensor of the shape and dtype of `a`.

    Raises:
        DeclarationError: for ranks that differ, or bounds that are no tensors of one dimension.
    """
    given = [t for t in (begin, end, strides) if t is not None]
    if a.ndim != v.ndim or any(t.ndim != 1 for t in given):
        raise DeclarationError("strided_set: a and v have one rank; begin, end and strides have one dimension")

    def bound(tensor: Tensor | None, dim: int, default: Any) -> PrimExpr:
        if tensor is None:
            return arithmetic.convert(default)
        known = extent_value(tensor.shape[0])
        return tensor(dim).astype("int32") if isinstance(known, int) and dim < known else arithmetic.convert(default)

    def body(*i: PrimExpr) -> PrimExpr:
        chosen, source = [], []
        for dim, index in enumerate(i):
            extent = a.shape[dim]
            step = bound(strides, dim, 1)
            first, last = (_counted(bound(t, dim, d), extent) for t, d in ((begin, 0), (end, extent)))
            # Backwards, the end may lie in front of the first element, which is -1 here.
            low = intrin.select(step > 0, const(0), const(-1))
            # Forwards, it may begin behind the last element, where nothing is set.
            high = intrin.select(step > 0, arithmetic.convert(extent), extent - 1)
            first = arithmetic.minimum(arithmetic.maximum(first, 0), high)
            last = arithmetic.minimum(arithmetic.maximum(last, low), extent)
            chosen.append(within_index(first, last, step, index))
            number = arithmetic.floordiv(index - first, step)
            source.append(arithmetic.minimum(arithmetic.maximum(number, 0), v.shape[dim] - 1))
        return intrin.if_then_else(arithmetic.all(*chosen), v(*source), a(*i))

    return injective(a.shape, body, "strided_set")
