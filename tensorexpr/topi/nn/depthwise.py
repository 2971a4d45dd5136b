"""Convolutions of each channel on its own: in blocks of channels, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from ..utils import get_const_int, get_const_tuple, need_rank, pad_pairs, spread
from .padding import blocked_windows, dilate_and_pad, needs_padding, pad


def depthwise_conv2d_NCHWc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of each channel, in blocks of channels.

    Args:
        Input: [N, C/c, H, W, c].
        Filter: [C*M/o, 1, KH, KW, 1, o]: M results of each channel.
        stride, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`.
        layout, out_layout: kept for programs that pass them; the blocks are those of the shapes.
        out_dtype: of the result and of the sums, default the dtype of `Input`.

    Returns:
        [N, C*M/o, H', W', o].

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    where = "depthwise_conv2d_NCHWc"
    need_rank(where, "the data", Input, 5)
    need_rank(where, "the filter", Filter, 6)
    block, out_block = get_const_int(Input.shape[4]), get_const_int(Filter.shape[5])
    channels, results = get_const_int(Input.shape[1]) * block, get_const_int(Filter.shape[0]) * out_block
    if results % channels:
        raise DeclarationError(f"{where}: {results} results for {channels} channels; each channel has equally many")
    multiplier = results // channels
    padded, strides, dilations, (height, width) = blocked_windows(where, Input, Filter.shape[2:4], stride, padding, dilation)
    kh, kw = te.reduce_axis((0, Filter.shape[2]), name="kh"), te.reduce_axis((0, Filter.shape[3]), name="kw")
    dtype = out_dtype or Input.dtype

    def body(n: Var, oc_chunk: Var, oh: Var, ow: Var, oc_block: Var) -> PrimExpr:
        chunk: PrimExpr = oc_chunk
        inner: PrimExpr = oc_block
        # Else chunk and lane of the result are those of the channel, and nothing has to be divided.
        if multiplier > 1 or block != out_block:
            channel = floordiv(oc_chunk * out_block + oc_block, multiplier)
            chunk, inner = floordiv(channel, block), floormod(channel, block)
        pixel = padded(n, chunk, oh * strides[0] + kh.var * dilations[0], ow * strides[1] + kw.var * dilations[1], inner)
        weight = Filter(oc_chunk, 0, kh.var, kw.var, 0, oc_block)
        return te.sum(cast(pixel, dtype) * cast(weight, dtype), axis=[kh, kw])

    return compute((Input.shape[0], Filter.shape[0], height, width, out_block), body, "DepthwiseConv2d", where)


def _geometry(where: str, stride: Any, padding: Any, taps: Sequence[int]) -> tuple[tuple[Any, ...], tuple[tuple[Any, Any], ...]]:
    return spread(where, "stride", stride, 2), pad_pairs(where, padding, taps)


def _of_gradient(
    where: str, what: str, other: Tensor, gradient: Tensor, filter_shape: Any, stride: Any, padding: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[tuple[Any, Any], ...]]:
    """The filter's extents [KH, KW, C, M], the strides and the padding of a convolution whose `gradient` goes back with `other`."""
    need_rank(where, f"the {what}", other, 4)
    need_rank(where, "the gradient", gradient, 4)
    extents = get_const_tuple(filter_shape)
    return (extents, *_geometry(where, stride, padding, extents[:2]))


def depthwise_conv2d_backward_input_nhwc(
    Filter: Tensor, Out_grad: Tensor, oshape: Sequence[int], ishape: Sequence[int], stride: Any, padding: Any
) -> Tensor:
    """The gradient of `depthwise_conv2d_nhwc` with respect to its data.

    Args:
        Filter: [KH, KW, C, M].
        Out_grad: [N, H', W', C*M], the gradient of the result.
        oshape, ishape: the shapes of result and data.
        stride: one number, or two.
        padding: of the convolution, see `topi.utils.pad_pairs`.

    Returns:
        [N, H, W, C], the shape `ishape`.

    Raises:
        DeclarationError: for other ranks.
    """
    where = "depthwise_conv2d_backward_input_nhwc"
    (tall, wide, channels, multiplier), steps, ((top, _), (left, _)) = _of_gradient(
        where, "filter", Filter, Out_grad, Filter.shape, stride, padding
    )
    batch, height, width, _ = get_const_tuple(ishape)
    rows, columns = get_const_tuple(Out_grad.shape)[1:3]
    before = (0, tall - 1 - top, wide - 1 - left, 0)
    after = tuple(
        extent + tap - 1 - ((count - 1) * step + 1) - low
        for extent, tap, count, step, low in zip((height, width), (tall, wide), (rows, columns), steps, before[1:3], strict=True)
    )
    # Padded until each element of the data has a window of gradients, those that no window reached too.
    padded = dilate_and_pad(Out_grad, (1, *steps, 1), before, (0, *after, 0), 0.0, "padded_out_grad")
    dh, dw, dc = (te.reduce_axis((0, extent), name=name) for name, extent in (("dh", tall), ("dw", wide), ("dc", multiplier)))

    def body(b: Var, h: Var, w: Var, c: Var) -> PrimExpr:
        weight = Filter(tall - 1 - dh.var, wide - 1 - dw.var, c, dc.var)
        return te.sum(padded(b, h + dh.var, w + dw.var, c * multiplier + dc.var) * weight, axis=[dh, dw, dc])

    return compute((batch, height, width, channels), body, "T_backward_input", where)


def depthwise_conv2d_backward_weight_nhwc(
    Input: Tensor, Out_grad: Tensor, oshape: Sequence[int], fshape: Sequence[int], stride: Any, padding: Any
) -> Tensor:
    """The gradient of `depthwise_conv2d_nhwc` with respect to its filter.

    Args:
        Input: [N, H, W, C].
        Out_grad: [N, H', W', C*M], the gradient of the result.
        oshape, fshape: the shapes of result and filter.
        stride: one number, or two.
        padding: of the convolution, see `topi.utils.pad_pairs`.

    Returns:
        [KH, KW, C, M], the shape `fshape`.

    Raises:
        DeclarationError: for other ranks.
    """
    where = "depthwise_conv2d_backward_weight_nhwc"
    (tall, wide, channels, multiplier), steps, ((top, bottom), (left, right)) = _of_gradient(
        where, "data", Input, Out_grad, fshape, stride, padding
    )
    before, after = (0, top, left, 0), (0, bottom, right, 0)
    padded = pad(Input, before, after, name="padded_in") if needs_padding(before, after) else Input
    batch, rows, columns = Out_grad.shape[:3]
    db, dh, dw = (te.reduce_axis((0, extent), name=name) for name, extent in (("db", batch), ("dh", rows), ("dw", columns)))

    def body(fh: Var, fw: Var, c: Var, m: Var) -> PrimExpr:
        pixel = padded(db.var, fh + dh.var * steps[0], fw + dw.var * steps[1], c)
        return te.sum(Out_grad(db.var, dh.var, dw.var, c * multiplier + m) * pixel, axis=[db, dh, dw])

    return compute((tall, wide, channels, multiplier), body, "T_backward_weight", where)
