"""Planes rearranged: flatten, upsampling, and pixels traded against channels or batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
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
    """Channels become blocks of `block_size` x `block_size` pixels; mode "DCR" (blocks first) or "CRD" (channels first).

    Args:
        data: [N, C * block_size^2, H, W], or in the layout "NHWC", of any dtype.
        block_size: a number.
        layout: "NCHW" or "NHWC".
        mode: "DCR" or "CRD", as ONNX's operator.

    Returns:
        [N, C, H * block_size, W * block_size], or "NHWC", of the dtype of `data`.
    """
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
    """Blocks of `block_size` x `block_size` pixels become channels; the inverse of depth_to_space in mode "DCR".

    Args:
        data: [N, C, H * block_size, W * block_size], or in the layout "NHWC", of any dtype.
        block_size: a number.
        layout: "NCHW" or "NHWC".

    Returns:
        [N, C * block_size^2, H, W], or "NHWC", of the dtype of `data`.
    """
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
    """Blocks of the axes behind the first become batches, as TensorFlow's operator of that name.

    Args:
        data: [N, spatial axes, ...], of any dtype.
        block_shape: a number for each spatial axis, which divides its padded extent.
        pad_before, pad_after: a number for each spatial axis.
        pad_value: of the border.

    Returns:
        [N * blocks, spatial axes / block_shape, ...], of the dtype of `data`.
    """
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
    # [N, H/b, b, W/b, b, ...] -> [b, b, N, H/b, W/b, ...]
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *tail]
    moved = transpose(reshape(padded, [*cut, *shape[1 + count :]]), order)
    batch = shape[0]
    for block in block_shape:
        batch *= block
    return reshape(moved, [batch, *(extent // block for extent, block in zip(shape[1:], block_shape, strict=False)), *shape[1 + count :]])


def batch_to_space_nd(data: Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]) -> Tensor:
    """Batches become blocks of the axes behind the first; the inverse of space_to_batch_nd.

    Args:
        data: [N * blocks, spatial axes, ...], of any dtype.
        block_shape: a number for each spatial axis.
        crop_begin_list, crop_end_list: what is cut off at either end of each spatial axis.

    Returns:
        [N, spatial axes * block_shape less what is cut off, ...], of the dtype of `data`.
    """
    shape = get_const_tuple(data.shape)
    count = len(block_shape)
    batch = shape[0]
    for block in block_shape:
        if batch % block:
            raise DeclarationError(f"batch_to_space_nd: {shape[0]} batches are no multiple of the blocks {tuple(block_shape)}")
        batch //= block
    cut = reshape(data, [*block_shape, batch, *shape[1:]])
    # [b, b, N, H, W, ...] -> [N, H, b, W, b, ...]
    order = [count]
    for n in range(count):
        order += [count + 1 + n, n]
    moved = transpose(cut, [*order, *range(2 * count + 1, count + data.ndim)])
    grown = [extent * block for extent, block in zip(shape[1:], block_shape, strict=False)]
    whole = reshape(moved, [batch, *grown, *shape[1 + count :]])
    ends = [extent - crop for extent, crop in zip(grown, crop_end_list, strict=True)]
    return strided_slice(whole, [0, *crop_begin_list], [batch, *ends])


def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Any = None,
) -> Tensor:
    """Planes enlarged.

    Args:
        data: of `layout`.
        scale_h, scale_w: how many times as high and as wide; extents are rounded.
        layout: "NCHW", "NHWC", "NCHW4c", ...
        method: "nearest_neighbor", "bilinear" or "bicubic".
        align_corners: the outermost pixels stay where they are; else the first one does, and steps are those of the scale.
        output_shape: the result's height and width, or its whole shape, where they aren't constants.

    Returns:
        A tensor of the layout and dtype of `data`.

    Raises:
        DeclarationError: for a layout or method that doesn't exist.
    """
    mode = "align_corners" if align_corners else "asymmetric"
    return _enlarged("upsampling", data, "HW", (scale_h, scale_w), layout, method, mode, output_shape)


def upsampling3d(
    data: Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Any = None,
) -> Tensor:
    """Volumes enlarged; see `upsampling`.

    Args:
        data: of `layout`, "NCDHW" or "NDHWC".
        scale_d, scale_h, scale_w: how many times as deep, high and wide; extents are rounded.
        method: "nearest_neighbor" or "trilinear".
        coordinate_transformation_mode: see `topi.image.resize2d`.
        output_shape: the result's depth, height and width, or its whole shape, where they aren't constants.

    Returns:
        A tensor of the layout and dtype of `data`.

    Raises:
        DeclarationError: for a layout, method or mode that doesn't exist.
    """
    scales = (scale_d, scale_h, scale_w)
    return _enlarged("upsampling3d", data, "DHW", scales, layout, method, coordinate_transformation_mode, output_shape)


def _enlarged(
    where: str, data: Tensor, letters: str, scales: Sequence[float], layout: str, method: str, mode: str, output_shape: Any
) -> Tensor:
    # Not at the top: image imports nn.padding, so it can't be complete while the package nn is loaded.
    from ..image import _resize, _spatial_axes

    places = _spatial_axes(where, layout, letters)
    if output_shape is None:
        sizes = [round(get_const_int(data.shape[place]) * float(scale)) for place, scale in zip(places, scales, strict=True)]
        return _resize(where, letters, data, None, sizes, layout, method, mode, "", -0.5, 0, 0.0, None, None)
    given = list(output_shape.shape if isinstance(output_shape, Tensor) else output_shape)
    if len(given) == len(letters):
        whole = list(data.shape)
        for place, extent in zip(places, given, strict=True):
            whole[place] = extent
        given = whole
    sizes = [given[place] for place in places]
    return _resize(where, letters, data, None, sizes, layout, method, mode, "", -0.5, 0, 0.0, None, given)


def unpack_NCHWc_to_nchw(packed_out: Tensor, out_dtype: str) -> Tensor:
    """[N, C/c, H, W, c] as [N, C, H, W], in another dtype.

    Raises:
        DeclarationError: for another rank.
    """
    need_rank("unpack_NCHWc_to_nchw", "packed_out", packed_out, 5)
    n, chunks, height, width, block = packed_out.shape

    def body(b: Var, c: Var, h: Var, w: Var) -> PrimExpr:
        return cast(packed_out(b, floordiv(c, block), h, w, floormod(c, block)), out_dtype)

    return injective((n, extent_value(chunks * block), height, width), body, "output_unpack")
