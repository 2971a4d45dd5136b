"""Convolutions whose taps are moved by offsets that are computed (Dai et al. 2017)."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import cast, const, floordiv
from ...tir.expr import PrimExpr, Var
from ..utils import extent_value, get_const_int, need_equal, need_rank, pad_pairs, spread


def _deformable(
    where: str, data: Tensor, offset: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, deformable_groups: int,
    groups: int, out_dtype: str | None, last: bool, mask: Tensor | None = None, is_cut: bool = True
) -> Tensor:  # fmt: skip
    for name, tensor in (("the data", data), ("the offsets", offset), ("the kernel", kernel)):
        need_rank(where, name, tensor, 4)
    step, apart = spread(where, "strides", strides, 2), spread(where, "dilation", dilation, 2)
    n, height, width, channels = data.shape if last else (data.shape[0], *data.shape[2:], data.shape[1])
    tall, wide = (get_const_int(tap) for tap in (kernel.shape[:2] if last else kernel.shape[2:]))
    inputs, outputs = (kernel.shape[2], kernel.shape[3]) if last else (kernel.shape[1], kernel.shape[0])
    if groups < 1 or get_const_int(outputs) % groups:
        raise DeclarationError(f"{where}: {outputs} results can't be cut in {groups} groups")
    need_equal(where, "the channels of data and kernel", channels, get_const_int(inputs) * groups)
    if get_const_int(channels) % deformable_groups:
        raise DeclarationError(f"{where}: {channels} channels can't be cut in {deformable_groups} deformable_groups")
    per_group = get_const_int(channels) // deformable_groups
    rows, columns, moves = offset.shape[1:] if last else (*offset.shape[2:], offset.shape[1])
    need_equal(where, "the channels of offset and deformable_groups * taps * 2", moves, deformable_groups * tall * wide * 2)
    # The paddings behind only say how many results there are, and the offsets have an element for each.
    (top, _), (left, _) = pad_pairs(where, padding, [(tall - 1) * apart[0] + 1, (wide - 1) * apart[1] + 1])
    dtype = out_dtype or data.dtype

    def element(image: PrimExpr, c: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        """0 beyond the border."""
        inside = arithmetic.all(y >= 0, y < height, x >= 0, x < width)
        value = data(image, y, x, c) if last else data(image, c, y, x)
        return intrin.if_then_else(inside, value, const(0, data.dtype))

    def sampled(image: Var, c: Var, ky: Var, kx: Var, y: Var, x: Var) -> PrimExpr:
        tap = floordiv(c, per_group) * (tall * wide) + (ky * wide + kx)
        first = tap * 2
        moved = [offset(image, y, x, first + m) if last else offset(image, first + m, y, x) for m in range(2)]
        at_y = cast(y * step[0] - top + ky * apart[0], offset.dtype) + moved[0]
        at_x = cast(x * step[1] - left + kx * apart[1], offset.dtype) + moved[1]
        low_y, low_x = intrin.floor(at_y), intrin.floor(at_x)
        part_y, part_x = at_y - low_y, at_x - low_x
        y0, x0 = cast(low_y, "int32"), cast(low_x, "int32")
        upper = element(image, c, y0, x0) * (1.0 - part_x) + element(image, c, y0, x0 + 1) * part_x
        lower = element(image, c, y0 + 1, x0) * (1.0 - part_x) + element(image, c, y0 + 1, x0 + 1) * part_x
        value = upper * (1.0 - part_y) + lower * part_y
        if mask is not None:
            value = value * mask(image, tap, y, x)
        if not is_cut:
            return value
        zero = const(0, offset.dtype)
        outside = arithmetic.any(at_y < zero, at_x < zero, at_y >= cast(height, offset.dtype), at_x >= cast(width, offset.dtype))
        return intrin.if_then_else(outside, const(0, data.dtype), value)

    patches = compute((n, channels, tall, wide, rows, columns), sampled, "data_deform", "data_deform")
    rc, ry, rx = (te.reduce_axis((0, extent), name=name) for name, extent in (("rc", inputs), ("ry", tall), ("rx", wide)))
    per_result = get_const_int(outputs) // groups

    def body(*i: Var) -> PrimExpr:
        image, o, y, x = (i[0], i[3], i[1], i[2]) if last else i
        weight = kernel(ry.var, rx.var, rc.var, o) if last else kernel(o, rc.var, ry.var, rx.var)
        c = rc.var if groups == 1 else floordiv(o, per_result) * inputs + rc.var
        pixel = patches(image, c, ry.var, rx.var, y, x)
        return te.sum(cast(pixel, dtype) * cast(weight, dtype), axis=[rc, ry, rx])

    shape = [extent_value(extent) for extent in ((n, rows, columns, outputs) if last else (n, outputs, rows, columns))]
    return compute(shape, body, where, where, varargs_names=["n", "y", "x", "f"] if last else ["n", "f", "y", "x"])


def deformable_conv2d_nchw(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
) -> Tensor:
    """A convolution whose taps lie between pixels.

    Args:
        data: [N, C, H, W].
        offset: [N, deformable_groups * KH * KW * 2, H', W']: how far down and to the right each tap is moved, for each result.
        kernel: [O, C, KH, KW].
        strides, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`. What lies beyond the border is 0.
        deformable_groups: groups of channels with offsets of their own.
        groups: the channels in and out are cut in that many groups that don't see each other; the kernel is [O, C/groups, KH, KW].
        out_dtype: of the result and of the sums, default the dtype of `data`.

    Returns:
        [N, O, H', W'].

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    where = "deformable_conv2d_nchw"
    return _deformable(where, data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, last=False)


def modulated_conv2d_nchw(
    data: Tensor, offset: Tensor, kernel: Tensor, mask: Tensor | None, strides: Any, padding: Any, dilation: Any, deformable_groups: int,
    groups: int,
) -> Tensor:  # fmt: skip
    """As `deformable_conv2d_nchw`, with a factor for each tap (Zhu et al. 2019), and taps beside a border counted in part.

    Args:
        mask: [N, deformable_groups * KH * KW, H', W'], or None.
    """
    where = "modulated_conv2d_nchw"
    return _deformable(
        where, data, offset, kernel, strides, padding, dilation, deformable_groups, groups, None, last=False, mask=mask, is_cut=False
    )


def deformable_conv2d_nhwc(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
) -> Tensor:
    """As `deformable_conv2d_nchw`, with data [N, H, W, C], offset [N, H', W', moves], kernel [KH, KW, C, O] -> [N, H', W', O]."""
    where = "deformable_conv2d_nhwc"
    return _deformable(where, data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, last=True)
