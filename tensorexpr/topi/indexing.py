"""Reading elements where a tensor says: take, gather, one_hot and masks along a sequence."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr, Var
from .transform import injective, unravel
from .utils import get_const_tuple, need_equal, positive_axis


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """Elements of `a` along `axis` at `indices` (of `a` flattened, without an axis).

    Args:
        batch_dims: that many leading axes are common to `a` and `indices`.
        mode: "clip" for the nearest element, "wrap" for indices modulo the extent, "fast" as clip.
    """
    if mode not in ("clip", "wrap", "fast"):
        raise DeclarationError(f'take: mode is {mode!r}; it takes "clip", "wrap" or "fast"')
    if axis is None:
        own = get_const_tuple(a.shape)
        total: Any = 1
        for extent in own:
            total = total * extent
        return injective(indices.shape, lambda *i: a(*unravel(_inside(indices(*i), total, mode), own)), "T_take")
    place = positive_axis("take", axis, a.ndim)
    batch = batch_dims % a.ndim if batch_dims else 0
    count = indices.ndim - batch
    shape = (*a.shape[:place], *indices.shape[batch:], *a.shape[place + 1 :])

    def body(*i: Var) -> PrimExpr:
        chosen = indices(*i[:batch], *i[place : place + count])
        return a(*i[:place], _inside(chosen, a.shape[place], mode), *i[place + count :])

    return injective(shape, body, "T_take")


def _inside(index: PrimExpr, extent: Any, mode: str) -> PrimExpr:
    """An index that is certainly within an extent."""
    index = wide(index)
    size = arithmetic.cast(extent, index.dtype)
    if mode == "wrap":
        return arithmetic.floormod(index, size)
    return arithmetic.minimum(arithmetic.maximum(index, const(0, index.dtype)), size - 1)


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """data[i0, ..., indices[i0, ...], ...] with the index at `axis`; negative indices count from the end.

    Args:
        data: [any shape], of any dtype.
        axis: counted from the end if negative.
        indices: integers, of the rank of `data`.

    Returns:
        A tensor of the shape of `indices` and the dtype of `data`, as ONNX's GatherElements.
    """
    place = positive_axis("gather", axis, data.ndim)
    if indices.ndim != data.ndim:
        raise DeclarationError(f"gather: {data.name} has {data.ndim} dimensions and {indices.name} {indices.ndim}; they must be equal")

    def body(*i: Var) -> PrimExpr:
        return data(*i[:place], _wrapped(indices(*i), data.shape[place]), *i[place + 1 :])

    return injective(indices.shape, body, "T_gather")


def wide(index: PrimExpr) -> PrimExpr:
    """An index in int32 where its own dtype may not hold the extent that it is compared with: 200 is -56 in int8."""
    return arithmetic.cast(index, "int32") if parse_dtype(index.dtype).bits < 32 else index


def _wrapped(index: PrimExpr, extent: Any) -> PrimExpr:
    index = wide(index)
    size = arithmetic.cast(extent, index.dtype)
    counted = intrin.select(index < 0, index + size, index)
    return _inside(counted, size, "clip")


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """Elements or slices of `a` at the index tuples in the columns of `indices`, of shape [m, ...].

    Args:
        a: [any shape], of any dtype.
        indices: integers [m, ...], for the first m axes; negative ones count from the end.
        batch_dims: so many leading axes of `a` are those of `indices` behind its first.

    Returns:
        [..., what m indices leave of `a`], of the dtype of `a`, as MXNet's operator.
    """
    count = get_const_tuple(indices.shape)[0]
    if not isinstance(count, int) or batch_dims + count > a.ndim:
        raise DeclarationError(f"gather_nd: {batch_dims} common axes, and index tuples of length {count}, for the {a.ndim} of {a.name}")
    points = indices.shape[1:]

    def body(*i: Var) -> PrimExpr:
        at, rest = i[: len(points)], i[len(points) :]
        chosen = (_wrapped(indices(n, *at), a.shape[batch_dims + n]) for n in range(count))
        return a(*at[:batch_dims], *chosen, *rest)

    return injective((*points, *a.shape[batch_dims + count :]), body, "T_gather_nd")


def one_hot(indices: Tensor, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> Tensor:
    """A new axis of `depth` at `axis`, which is `on_value` at the index and `off_value` elsewhere.

    Args:
        indices: integers [any shape].
        on_value, off_value: numbers or expressions.
        depth: the extent of the new axis; elsewhere than from 0 to depth - 1 an index is nowhere.
        axis: where the new axis stands; -1 for the last one.
        dtype: of the result.

    Returns:
        A tensor of one dimension more.
    """
    place = positive_axis("one_hot", axis, indices.ndim + 1)
    shape = (*indices.shape[:place], depth, *indices.shape[place:])

    def body(*i: Var) -> PrimExpr:
        index = wide(indices(*i[:place], *i[place + 1 :]))
        same = arithmetic.convert(index == arithmetic.cast(i[place], index.dtype))
        return intrin.select(same, arithmetic.cast(on_value, dtype), arithmetic.cast(off_value, dtype))

    return injective(shape, body, "T_one_hot")


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: Any = 0, axis: int = 0) -> Tensor:
    """`data` of layout [T, B, ...] (axis 0) or [B, T, ...] (axis 1), with `mask_value` from `valid_length[b]` on.

    Args:
        data: [T, B, ...] or [B, T, ...], of any dtype.
        valid_length: integers [B].
        mask_value: a number.
        axis: of the steps, 0 or 1.

    Returns:
        A tensor like `data`.
    """
    if axis not in (0, 1):
        raise DeclarationError(f"sequence_mask: axis is {axis}; the sequence is axis 0 or 1")
    if data.ndim < 2:
        raise DeclarationError(f"sequence_mask: {data.name} has {data.ndim} dimensions; it takes steps and a batch, two or more")

    def body(*i: Var) -> PrimExpr:
        step, batch = i[axis], i[1 - axis]
        length = wide(valid_length(batch))
        valid = arithmetic.cast(step, length.dtype) < length
        return intrin.select(valid, data(*i), const(mask_value, data.dtype))

    return injective(data.shape, body, "T_sequence_mask")


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """`a` with the first `seq_lengths[b]` elements along `seq_axis` backwards, for each b of `batch_axis`.

    Args:
        a: [any shape], of any dtype.
        seq_lengths: integers, as many as `batch_axis` has.
        seq_axis, batch_axis: two axes.

    Returns:
        A tensor like `a`.
    """
    along = positive_axis("reverse_sequence", seq_axis, a.ndim)
    batch = positive_axis("reverse_sequence", batch_axis, a.ndim)
    if along == batch:
        raise DeclarationError(f"reverse_sequence: seq_axis and batch_axis are both {along}; they are two axes")
    need_equal("reverse_sequence", f"the number of seq_lengths and the extent of axis {batch}", seq_lengths.shape[0], a.shape[batch])

    def body(*i: Var) -> PrimExpr:
        length = arithmetic.cast(seq_lengths(i[batch]), i[along].dtype)
        # Lengths beyond the axis are errors of the caller, but must not lead outside: hence `_inside`.
        backwards = intrin.select(i[along] < length, length - 1 - i[along], i[along])
        return a(*i[:along], _inside(backwards, a.shape[along], "clip"), *i[along + 1 :])

    return injective(a.shape, body, "T_reverse_sequence")
