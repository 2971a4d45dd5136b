"""Where the elements of a buffer stand in flat memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...dataclass import dataclass, replace
from ...errors import InternalError, LoweringError
from ...tir.arithmetic import binary, cast, floormod, is_const_int
from ...tir.buffer import Buffer
from ...tir.expr import Add, IntImm, Mul, PrimExpr, Sub
from ..lanes import lane_binary, lane_cast

_INT32_ELEMENTS = (1 << 31) - 1
# What the lanes of a vector past the end of a row are off by is far less than what is left to 2^31.
_SMALL_PART = 1 << 30


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a buffer are: `offset + sum((index - min) * stride)` in `flat`, computed in `dtype`.

    The last `small` indices are added up in int32 all the same: of X[n, 56, 56] those of a plane.
    """

    flat: Buffer
    mins: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    offset: PrimExpr
    dtype: str
    small: int = 0


def product(extents: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements, in int64 unless it is a constant that int32 holds."""
    if prod(extent.value for extent in extents if isinstance(extent, IntImm)) >= 1 << 63:
        raise LoweringError(f"a buffer with the extents {list(map(str, extents))} has 2**63 elements or more, which no memory holds")
    total: PrimExpr = IntImm("int64", 1)
    for extent in extents:
        total = binary(Mul, total, cast(extent, "int64"))
    if isinstance(total, IntImm) and total.value <= _INT32_ELEMENTS:
        return IntImm("int32", total.value)
    return cast(extents[0], extents[0].dtype) if len(extents) == 1 else total


def row_major(extents: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The strides of a compact box, last index fastest."""
    return tuple(product(extents[d + 1 :]) for d in range(len(extents)))


def aligned(extents: Sequence[PrimExpr], aligns: Sequence[tuple[int, int, int]]) -> tuple[tuple[PrimExpr, ...], PrimExpr]:
    """Strides and size of a box where `stride % factor == offset` for the dimensions in `aligns`, (dimension, factor, offset) each.

    From the last dimension out, each stride is the smallest that fits.
    """
    wanted = {dimension: (factor, offset) for dimension, factor, offset in aligns}
    strides: list[PrimExpr] = []
    stride: PrimExpr = IntImm("int64", 1)
    for dimension in reversed(range(len(extents))):
        if dimension in wanted:
            factor, offset = wanted[dimension]
            stride = stride + floormod(offset - stride, factor)
        strides.append(product([stride]))
        stride = stride * cast(extents[dimension], "int64")
    return tuple(reversed(strides)), product([stride])


def span(extents: Sequence[PrimExpr], strides: Sequence[PrimExpr]) -> PrimExpr:
    """How far the last element of a strided box is from the first, plus one."""
    total: PrimExpr = IntImm("int64", 1)
    for extent, stride in zip(extents, strides, strict=True):
        total = total + (cast(extent, "int64") - 1) * cast(stride, "int64")
    return IntImm("int32", total.value) if isinstance(total, IntImm) and total.value <= _INT32_ELEMENTS else total


def declared_layout(buffer: Buffer, offset: PrimExpr) -> Layout:
    """The layout that shape and strides declare. A parameter's data points to its first element, so its own offset is none."""
    mins = tuple(IntImm(extent.dtype, 0) for extent in buffer.shape)
    strides = buffer.strides or row_major(buffer.shape)
    size = span(buffer.shape, strides) if buffer.strides else product(buffer.shape)
    made = layout_over(buffer, size, mins, strides, offset)
    return made if made.dtype == "int32" else replace(made, small=_small_part(buffer.shape, strides))


def _small_part(extents: Sequence[PrimExpr], strides: Sequence[PrimExpr]) -> int:
    """How many of the last dimensions are known to span little; at least two, as a sum, else 0."""
    spanned = count = 0
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if not isinstance(extent, IntImm) or not isinstance(stride, IntImm):
            break
        spanned += (extent.value - 1) * abs(stride.value)
        if spanned >= _SMALL_PART:
            break
        count += 1
    return count if count > 1 else 0


def layout_over(buffer: Buffer, size: PrimExpr, mins: tuple[PrimExpr, ...], strides: tuple[PrimExpr, ...], offset: PrimExpr) -> Layout:
    """The layout of `size` elements of a buffer with these strides, `offset` elements behind its pointer."""
    unmoved = isinstance(offset, IntImm) and offset.value == 0
    small = isinstance(size, IntImm) and size.dtype == "int32"
    plain = len(strides) == 1 and isinstance(strides[0], IntImm) and strides[0].value == 1  # no product that could overflow
    one_axis = len(buffer.shape) == 1 and not buffer.strides and not buffer.axis_separators
    if unmoved and one_axis and is_const_int(buffer.elem_offset, 0) and size is buffer.shape[0]:
        return Layout(buffer, mins, strides, offset, "int32")
    total = size if unmoved else binary(Add, cast(size, "int64"), cast(offset, "int64"))
    flat = Buffer(buffer.data, buffer.dtype, (total,), (), IntImm("int32", 0), buffer.name, buffer.data_alignment, buffer.offset_factor)
    return Layout(flat, mins, strides, offset, "int32" if small or plain else "int64")


def flat_index(layout: Layout, indices: Sequence[PrimExpr]) -> PrimExpr:
    """The one index that stands for `indices`."""
    if len(indices) != len(layout.strides):
        raise InternalError(f"buffer {layout.flat.name} has {len(layout.strides)} dimensions, but is accessed with {len(indices)} indices")
    dtype = "int64" if layout.dtype == "int64" or any(i.dtype.startswith("int64") for i in indices) else "int32"
    parts = list(zip(indices, layout.mins, layout.strides, strict=True))
    small = layout.small if dtype == "int64" and not any(i.dtype.startswith("int64") for i in indices) else 0
    total = _sum(cast(layout.offset, dtype), parts[: len(parts) - small], dtype)
    return lane_binary(Add, total, lane_cast(_sum(IntImm("int32", 0), parts[-small:], "int32"), dtype)) if small else total


def _sum(total: PrimExpr, parts: Sequence[tuple[PrimExpr, PrimExpr, PrimExpr]], dtype: str) -> PrimExpr:
    for index, low, stride in parts:
        distance = lane_binary(Sub, lane_cast(index, dtype), cast(low, dtype))
        total = lane_binary(Add, total, lane_binary(Mul, distance, cast(stride, dtype)))
    return total
