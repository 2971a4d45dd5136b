"""Operators on signals: transforms as products with their matrices where these are small."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..dtypes import dtype_of, numpy_dtype
from ..registry import onnx_op

R = relax.op
_LARGEST_MATRIX = 1 << 20  # elements; above them the fast algorithm on the host is faster


def _part(x: Any, number: int, order: list[int]) -> Any:
    """Real or imaginary parts, with another order of axes."""
    return R.permute_dims(R.take(x, relax.const(number, "int64"), -1), order)


def _transformed(ctx: Context, x: Any, extents: list[Any], length: int, axis: int, inverse: bool, onesided: bool) -> Any:
    """The transform along an axis of a tensor whose last axis has the parts."""
    rank, parts = len(extents), extents[-1]
    real_result = onesided and inverse
    bins = length // 2 + 1
    taken = bins if real_result else length
    if not isinstance(extents[axis], int) or parts not in (1, 2) or taken * length > _LARGEST_MATRIX:
        return R.dft(x, length, axis, inverse, onesided)
    # Zeros behind a short signal add nothing: the matrix has rows only for what is there.
    rows, columns = min(extents[axis], taken), bins if onesided and not inverse else length
    # The modulo of integers is exact, and keeps the angles within a turn.
    angles = 2 * np.pi / length * (np.outer(np.arange(rows), np.arange(columns)) % length)
    cosines, sines = np.cos(angles), np.sin(angles) * (-1 if inverse else 1)
    if inverse:
        scale = np.full((rows, 1), 1 / length)
        if real_result:  # the other half of the frequencies is the mirrored one
            scale[1 : (length + 1) // 2] *= 2
        cosines, sines = cosines * scale, sines * scale
    order = [n for n in range(rank - 1) if n != axis] + [axis]
    back = [order.index(n) for n in range(rank - 1)]
    dtype = numpy_dtype(ctx.dtype(0))
    cosine, sine = (relax.const(one.astype(dtype)) for one in (cosines, sines))
    signal = [_part(x, n, order) for n in range(parts)]
    if rows < extents[axis]:
        signal = [R.strided_slice(one, [rank - 2], [0], [rows]) for one in signal]
    signal = [ctx.emit(one) for one in signal]
    real = R.matmul(signal[0], cosine)
    imaginary = R.negative(R.matmul(signal[0], sine))
    if parts == 2:
        real = R.add(real, R.matmul(signal[1], sine))
        imaginary = R.add(imaginary, R.matmul(signal[1], cosine))
    made = [real] if real_result else [real, imaginary]
    whole = [R.expand_dims(R.permute_dims(one, back), rank - 1) for one in made]
    return whole[0] if real_result else R.concat([ctx.emit(one) for one in whole], rank - 1)


@onnx_op("DFT", since=17)
def dft(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The discrete Fourier transform along an axis."""
    extents, inverse, onesided = ctx.extents(0), attrs.bool("inverse", False), attrs.bool("onesided", False)
    stated = attrs.int("axis", 1) if ctx.opset < 20 else ctx.integer(2) if ctx.has(2) else -2
    axis = ctx.axis(stated)
    if axis == len(extents) - 1:
        ctx.fail("the last axis has real and imaginary parts, and no signal")
    if ctx.has(1):
        length: Any = ctx.integer(1)
    else:
        length = 2 * (extents[axis] - 1) if inverse and onesided else extents[axis]
    if not isinstance(length, int):
        ctx.fail(f"a transform of length {length}: state dft_length, or the shape of the input")
    if length < 1:
        ctx.fail(f"a transform of length {length}")
    return _transformed(ctx, inputs[0], extents, length, axis, inverse, onesided)


@onnx_op("STFT", since=17)
def stft(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Transforms of windows of a signal."""
    extents, step = ctx.extents(0), ctx.integer(1)
    size: Any = ctx.integer(3) if ctx.has(3) else ctx.extents(2)[0] if ctx.has(2) else extents[1]
    if not isinstance(size, int) or not isinstance(extents[1], int) or len(extents) != 3:
        ctx.fail(f"windows of {size} samples of a signal of shape {extents}: [batch, samples, parts], of known numbers of samples")
    if step < 1 or not 0 < size <= extents[1]:
        ctx.fail(f"windows of {size} samples every {step} of {extents[1]}")
    starts = np.arange(0, extents[1] - size + 1, step)
    frames = R.take(inputs[0], relax.const(starts[:, None] + np.arange(size)), 1)
    if ctx.has(2):
        frames = R.multiply(frames, R.reshape(inputs[2], (size, 1)))
    onesided = attrs.bool("onesided", True) and extents[2] == 1
    return _transformed(ctx, ctx.emit(frames), [extents[0], len(starts), size, extents[2]], size, 2, False, onesided)


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Triangles over frequencies that are equally far apart on the mel scale."""
    bins, length, rate = (ctx.integer(n) for n in range(3))
    low, high = (2595 * np.log10(1 + float(ctx.number(n)) / 700) for n in (3, 4))
    mels = low + np.arange(bins + 2) * (high - low) / (bins + 2)
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(int)
    made = np.zeros((length // 2 + 1, bins))
    for n, (left, middle, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rising, falling = np.arange(left, middle + 1), np.arange(middle, right)
        made[rising, n] = (rising - left) / (middle - left) if middle > left else 1
        if right > middle:
            made[falling, n] = (right - falling) / (right - middle)
    return made.astype(numpy_dtype(dtype_of(attrs.int("output_datatype", 1), ctx.where)))


@onnx_op("Det")
def det(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Determinants of square matrices."""
    return R.det(inputs[0])


@onnx_op("BitCast")
def bit_cast(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The bits of elements as another dtype of the same width."""
    return R.bitcast(inputs[0], dtype_of(attrs.int("to"), ctx.where))
