"""Planes rearranged: flatten, upsampling, and pixels traded against channels or batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, const, floordiv, floormod, maximum, minimum
from ...tir.expr import PrimExpr, Var
from ..transform import injective, reshape, strided_slice, transpose
from ..utils import extent_value, get_const_int, get_const_tuple, need_rank
from .padding import pad


def flatten(data: Tensor) -> Tensor:
    """All axes but the first as one."""
    rest: Any = 1
    for extent in data.shape[1:]:
        rest = extent_value(rest * extent)
    return reshape(data, (extent_value(data.shape[0]), rest))


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Channels become blocks of `block_size` x `block_size` pixels; mode "DCR" (blocks first) or "CRD" (channels first)."""
    _, c, h, w = _axes("depth_to_space", data, layout)
    if mode not in ("DCR", "CRD") or get_const_int(data.shape[c]) % block_size**2:
        raise DeclarationError(f"depth_to_space: mode {mode!r}, block {block_size}, {data.shape[c]} channels: they don't fit")
    channels = get_const_int(data.shape[c]) // block_size**2
    shape: list[Any] = [*data.shape]
    shape[c], shape[h], shape[w] = channels, data.shape[h] * block_size, data.shape[w] * block_size

    def body(*i: Var) -> PrimExpr:
        row, column = floormod(i[h], block_size), floormod(i[w], block_size)
        inside = row * block_size + column
        source: list[PrimExpr] = [*i]
        source[c] = inside * channels + i[c] if mode == "DCR" else i[c] * block_size**2 + inside
        source[h], source[w] = floordiv(i[h], block_size), floordiv(i[w], block_size)
        return data(*source)

    return injective(shape, body, "depth_to_space")


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of `block_size` x `block_size` pixels become channels; the inverse of depth_to_space in mode "DCR"."""
    _, c, h, w = _axes("space_to_depth", data, layout)
    channels = get_const_int(data.shape[c])
    shape: list[Any] = [*data.shape]
    shape[c] = channels * block_size**2
    shape[h], shape[w] = floordiv(data.shape[h], block_size), floordiv(data.shape[w], block_size)

    def body(*i: Var) -> PrimExpr:
        inside = floordiv(i[c], channels)
        source: list[PrimExpr] = [*i]
        source[c] = floormod(i[c], channels)
        source[h] = i[h] * block_size + floordiv(inside, block_size)
        source[w] = i[w] * block_size + floormod(inside, block_size)
        return data(*source)

    return injective(shape, body, "space_to_depth")


def _axes(where: str, data: Tensor, layout: str) -> tuple[int, int, int, int]:
    need_rank(where, "the data", data, 4)
    if sorted(layout) != sorted("NCHW"):
        raise DeclarationError(f"{where}: layout is {layout!r}; it takes an order of N, C, H, W")
    return layout.index("N"), layout.index("C"), layout.index("H"), layout.index("W")


def space_to_batch_nd(
    data: Tensor, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0.0
) -> Tensor:
    """Blocks of the axes behind the first become batches, as TensorFlow's operator of that name."""
    rest = data.ndim - 1 - len(block_shape)
    padded = pad(data, [0, *pad_before, *[0] * rest], [0, *pad_after, *[0] * rest], pad_value)
    shape = get_const_tuple(padded.shape)
    cut: list[Any] = [shape[0]]
    for extent, block in zip(shape[1:], block_shape, strict=False):
        if extent % block:
            raise DeclarationError(f"space_to_batch_nd: a padded extent of {extent} is no multiple of its block {block}")
        cut += [extent // block, block]
    count = len(block_shape)
    tail = list(range(1 + 2 * count, 1 + 2 * count + rest))
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *tail]
    moved = transpose(reshape(padded, [*cut, *shape[1 + count :]]), order)
    batch = shape[0]
    for block in block_shape:
        batch *= block
    return reshape(moved, [batch, *(extent // block for extent, block in zip(shape[1:], block_shape, strict=False)), *shape[1 + count :]])


def batch_to_space_nd(data: Tensor, block_shape: Sequence[int], crop_begin: Sequence[int], crop_end: Sequence[int]) -> Tensor:
    """Batches become blocks of the axes behind the first; the inverse of space_to_batch_nd."""
    shape = get_const_tuple(data.shape)
    count = len(block_shape)
    batch = shape[0]
    for block in block_shape:
        if batch % block:
            raise DeclarationError(f"batch_to_space_nd: {shape[0]} batches are no multiple of the blocks {tuple(block_shape)}")
        batch //= block
    cut = reshape(data, [*block_shape, batch, *shape[1:]])
    order = [count]
    for n in range(count):
        order += [count + 1 + n, n]
    moved = transpose(cut, [*order, *range(2 * count + 1, count + data.ndim)])
    grown = [extent * block for extent, block in zip(shape[1:], block_shape, strict=False)]
    whole = reshape(moved, [batch, *grown, *shape[1 + count :]])
    ends = [extent - crop for extent, crop in zip(grown, crop_end, strict=True)]
    return strided_slice(whole, [0, *crop_begin], [batch, *ends])


def upsampling(
    data: Tensor,
    scale_h: int,
    scale_w: int,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Any = None,
) -> Tensor:
    """Planes enlarged by whole numbers: the nearest pixel, or "bilinear" between pixel centres (or corners)."""
    _, _, h, w = _axes("upsampling", data, layout)
    if method not in ("nearest_neighbor", "bilinear") or scale_h != int(scale_h) or scale_w != int(scale_w):
        raise DeclarationError('upsampling: takes whole scales and the methods "nearest_neighbor" and "bilinear"')
    shape: list[Any] = [*data.shape]
    shape[h], shape[w] = data.shape[h] * int(scale_h), data.shape[w] * int(scale_w)

    def nearest(*i: Var) -> PrimExpr:
        source: list[PrimExpr] = [*i]
        source[h], source[w] = floordiv(i[h], int(scale_h)), floordiv(i[w], int(scale_w))
        return data(*source)

    def bilinear(*i: Var) -> PrimExpr:
        (y0, y1, fy), (x0, x1, fx) = (
            _between(i[place], data.shape[place], shape[place], scale, align_corners, data.dtype)
            for place, scale in ((h, int(scale_h)), (w, int(scale_w)))
        )

        def at(y: PrimExpr, x: PrimExpr) -> PrimExpr:
            source: list[PrimExpr] = [*i]
            source[h], source[w] = y, x
            return data(*source)

        top = at(y0, x0) + (at(y0, x1) - at(y0, x0)) * fx
        bottom = at(y1, x0) + (at(y1, x1) - at(y1, x0)) * fx
        return top + (bottom - top) * fy

    return injective(shape, nearest if method == "nearest_neighbor" else bilinear, "upsampling")


def _between(index: PrimExpr, extent: Any, out: Any, scale: int, align_corners: bool, dtype: str) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """The two source positions around an output position, and how far it is from the first."""
    if align_corners:
        numerator, denominator = index * (extent - 1), maximum(const(1), out - 1)
    else:  # (index + 0.5) / scale - 0.5, held inside the plane
        numerator, denominator = maximum(const(0), index * 2 + 1 - scale), const(2 * scale)
    low = minimum(floordiv(numerator, denominator), extent - 1)
    share = cast(numerator - low * denominator, dtype) / cast(denominator, dtype)
    return low, minimum(low + 1, extent - 1), share
