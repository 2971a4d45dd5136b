"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import relax
from ....tir.arithmetic import as_int
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from ..windows import Windows, letters, plane_of, stated_windows, windows

R = relax.op


def taps(ctx: Context, index: int = 1) -> list[int]:
    """The size of the windows of a convolution: that of its weights.

    Raises:
        ModelError: if it isn't known.
    """
    found = [as_int(one) for one in ctx.extents(index)[2:]]
    if None in found:
        ctx.fail(f"the extents of the weights have to be known, and are {ctx.extents(index)}")
    return [int(one) for one in found if one is not None]


def biased(result: Any, bias: Any, rank: int) -> Any:
    """The result of a convolution with a number added to each channel."""
    return result if bias is None else R.add(result, R.reshape(bias, [1, -1, *[1] * rank]))


def convolution(data: Any, weight: Any, own: Windows, groups: int, out_dtype: str | None = None) -> Any:
    """A call of the convolution over as many axes as the windows have."""
    function = (R.nn.conv1d, R.nn.conv2d, R.nn.conv3d)[own.rank - 1]
    return function(data, weight, own.strides, own.pads, own.dilations, groups, out_dtype=out_dtype)


@onnx_op("Conv")
def conv(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A convolution, with a bias."""
    own = windows(ctx, attrs, taps(ctx))
    letters(ctx, own.rank)
    return biased(convolution(inputs[0], inputs[1], own, attrs.int("group", 1)), inputs[2], own.rank)


@onnx_op("ConvTranspose")
def conv_transpose(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A transposed convolution, with a bias; its padding follows from the shape of the result where that is stated."""
    size = taps(ctx)
    rank = len(size)
    letters(ctx, rank)
    own = stated_windows(ctx, attrs, size)
    more, mode = attrs.ints("output_padding", [0] * rank), attrs.string("auto_pad", "NOTSET")
    if len(more) != rank:
        ctx.fail(f"output_padding has {len(more)} numbers for {rank} axes")
    pads = [0] * 2 * rank if mode == "VALID" else own.pads
    wanted = attrs.ints("output_shape", None)
    if wanted is not None or mode.startswith("SAME"):
        extents = [as_int(one) for one in plane_of(ctx, rank)]
        targets = [None] * rank if wanted is None else wanted[-rank:]
        if len(targets) != rank:
            ctx.fail(f"output_shape has {len(targets)} numbers for {rank} axes")
        pads = _paddings(ctx, extents, targets, own, more, mode)
    # What is added behind may be more than a stride: padding that is negative says the same.
    back = [pad - extra for pad, extra in zip(pads[rank:], more, strict=True)]
    function = (R.nn.conv1d_transpose, R.nn.conv2d_transpose, R.nn.conv3d_transpose)[rank - 1]
    made = function(inputs[0], inputs[1], own.strides, [*pads[:rank], *back], 0, own.dilations, attrs.int("group", 1))
    return biased(made, inputs[2], rank)


def _paddings(ctx: Context, extents: Sequence[Any], targets: Sequence[Any], own: Windows, more: Sequence[int], mode: str) -> list[int]:
    """Paddings that make a result of a stated shape, or one as many times as large as the strides say."""
    front, back = [], []
    for extent, target, tap, stride, dilation, extra in zip(extents, targets, own.size, own.strides, own.dilations, more, strict=True):
        if extent is None and target is not None:
            ctx.fail("output_shape of data whose shape isn't known")
        reach = (tap - 1) * dilation + 1 + extra
        total = reach - stride if target is None else (extent - 1) * stride + reach - target
        small, large = total // 2, total - total // 2
        front.append(small if mode == "SAME_UPPER" else large)
        back.append(large if mode == "SAME_UPPER" else small)
    return [*front, *back]


@onnx_op("Col2Im")
def col2im(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Columns of windows added up to an image: a transposed convolution whose weights pass each column to its place."""
    image, size = ctx.ints(1), ctx.ints(2)
    rank = len(size)
    if ctx.rank(0) != 3 or len(image) != rank:
        ctx.fail(f"an image of {len(image)} axes of windows of {rank}, from columns of {ctx.rank(0)} axes, which are 3")
    letters(ctx, rank)
    own = windows(ctx, attrs, size)
    front, back = own.pads[:rank], own.pads[rank:]
    given = zip(image, size, own.strides, own.dilations, front, back, strict=True)
    counts = [(n + low + high - (k - 1) * apart - 1) // step + 1 for n, k, step, apart, low, high in given]
    batch, columns, _ = ctx.extents(0)
    taps_of_window = int(np.prod(size))
    if not isinstance(columns, int) or columns % taps_of_window:
        ctx.fail(f"columns of {columns} elements, which have to be known, and as many times {taps_of_window} as there are channels")
    channels = columns // taps_of_window
    rest = [
        n + low + high - ((count - 1) * step + (k - 1) * apart + 1)
        for n, low, high, count, step, k, apart in zip(image, front, back, counts, own.strides, size, own.dilations, strict=True)
    ]
    # `rest` is what no window reaches; it belongs to the image, so that much less is cut off behind.
    eye = np.eye(taps_of_window, dtype=ctx.dtype(0)).reshape(taps_of_window, 1, *size)
    data = R.reshape(inputs[0], [batch, columns, *counts])
    function = (R.nn.conv1d_transpose, R.nn.conv2d_transpose, R.nn.conv3d_transpose)[rank - 1]
    pads = [*front, *(high - more for high, more in zip(back, rest, strict=True))]
    return function(data, relax.const(np.tile(eye, (channels, 1, *[1] * rank))), own.strides, pads, 0, own.dilations, channels)
