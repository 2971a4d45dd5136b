"""Products of small integers bit by bit: words that hold one bit of many elements each, joined by `and` or `xor`, and counted.

A bit plane of a tensor holds bit b of 8, 16, 32 or 64 neighbours in one word, the first in the highest bit.
"""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic, bitwise, intrin
from ...tir.arithmetic import cast, const
from ...tir.expr import PrimExpr, Var
from ..math import axis_names
from ..utils import extent_value, get_const_int, need_equal, need_rank, pad_pairs, positive_axis, spread
from .padding import needs_padding, pad

_WORDS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def _width(where: str, dtype: str) -> int:
    if dtype not in _WORDS:
        raise DeclarationError(f"{where}: bits are packed in {', '.join(_WORDS)}, not in {dtype}")
    return _WORDS[dtype]


def _words(where: str, data: Tensor, axis: int, width: int) -> list[Any]:
    """The shape of `data` with words along an axis."""
    shape: list[Any] = [extent_value(extent) for extent in data.shape]
    if get_const_int(shape[axis]) % width:
        raise DeclarationError(f"{where}: the extent {shape[axis]} of axis {axis} is no multiple of the {width} bits of a word")
    shape[axis] = get_const_int(shape[axis]) // width
    return shape


def bitpack(data: Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str, name: str = "QuantizeInput") -> Tensor:
    """The bit planes of integers.

    Args:
        data: integers of any shape.
        bits: how many of the lowest bits are kept.
        pack_axis: the axis whose neighbours share a word; its extent is a multiple of the word's bits.
        bit_axis: where the axis of planes stands in the result, the lowest bit first.
        pack_type: "uint8", "uint16", "uint32" or "uint64".
        name: of the operation.

    Returns:
        `pack_type`, of the shape of `data` with words along `pack_axis` and a new axis of extent `bits`.

    Raises:
        DeclarationError: for another dtype, or an extent that doesn't fill words.
    """
    width = _width("bitpack", pack_type)
    axis = positive_axis("bitpack", pack_axis, data.ndim)
    place = positive_axis("bitpack", bit_axis, data.ndim + 1)
    shape = _words("bitpack", data, axis, width)

    def body(*i: Var) -> PrimExpr:
        bit = cast(i[place], data.dtype)
        rest: list[PrimExpr] = [*i[:place], *i[place + 1 :]]
        word: PrimExpr = const(0, pack_type)
        for k in range(width):
            at = [*rest[:axis], rest[axis] * width + k, *rest[axis + 1 :]]
            one = cast(bitwise.bitwise_and(bitwise.shift_right(data(*at), bit), const(1, data.dtype)), pack_type)
            word = bitwise.bitwise_or(word, bitwise.shift_left(one, const(width - 1 - k, pack_type)))
        return word

    return compute([*shape[:place], bits, *shape[place:]], body, name, "bitpack", varargs_names=axis_names(data.ndim + 1))


def binarize_pack(data: Tensor, axis: int | None = None, name: str = "PackedInput") -> Tensor:
    """The signs of 32 neighbours in a word: 1 where an element is not negative.

    Args:
        data: of any shape; the extent of the axis is a multiple of 32.
        axis: along which neighbours are packed, default the last.
        name: of the operation.

    Returns:
        uint32, of the shape of `data` with a 32nd of the extent along the axis.

    Raises:
        DeclarationError: for another extent.
    """
    place = positive_axis("binarize_pack", data.ndim - 1 if axis is None else axis, data.ndim)
    shape = _words("binarize_pack", data, place, 32)

    def body(*i: Var) -> PrimExpr:
        word: PrimExpr = const(0, "uint32")
        for k in range(32):
            at = [*i[:place], i[place] * 32 + k, *i[place + 1 :]]
            sign = cast(data(*at) >= const(0, data.dtype), "uint32")
            word = bitwise.bitwise_or(word, bitwise.shift_left(sign, const(31 - k, "uint32")))
        return word

    return compute(shape, body, name, "binarize_pack", varargs_names=axis_names(data.ndim))


def binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """The products of rows of signs: elements that agree minus those that don't.

    Args:
        data: uint32 [M, words], of `binarize_pack`.
        weight: uint32 [N, words].

    Returns:
        float32 [M, N].

    Raises:
        DeclarationError: for other ranks, dtypes or numbers of words.
    """
    for tensor in (data, weight):
        need_rank("binary_dense", tensor.name, tensor, 2)
        if tensor.dtype != "uint32":
            raise DeclarationError(f"binary_dense: {tensor.name} is {tensor.dtype}; it takes uint32, see binarize_pack")
    need_equal("binary_dense", "the words of data and weight", data.shape[1], weight.shape[1])
    k = te.reduce_axis((0, data.shape[1]), name="k")
    differing = compute(
        (data.shape[0], weight.shape[0]),
        lambda i, j: te.sum(intrin.popcount(bitwise.bitwise_xor(data(i, k.var), weight(j, k.var))), axis=k),
        "binary_dense",
        "binary_dense",
    )
    count = cast(data.shape[1] * 32, "float32")
    # (K - d) - d for rows of K signs of which d differ.
    return compute(differing.shape, lambda i, j: count - 2.0 * cast(differing(i, j), "float32"), "T_binary_dense", "elemwise")


def _counted(activation: PrimExpr, weight: PrimExpr, unipolar: bool, shift: PrimExpr, out_dtype: str) -> PrimExpr:
    """What two words contribute: bits in both, less those that only the activation has where a weight of 0 means -1."""
    both = cast(intrin.popcount(bitwise.bitwise_and(activation, weight)), out_dtype)
    if unipolar:
        both = both - cast(intrin.popcount(bitwise.bitwise_and(activation, bitwise.bitwise_not(weight))), out_dtype)
    # Plane b of the one and plane c of the other weigh 2^(b + c) together.
    return bitwise.shift_left(both, cast(shift, out_dtype))


def _conv(
    where: str, data: Tensor, kernel: Tensor, stride: Any, padding: Any, bits: tuple[int, int], pack_dtype: str, out_dtype: str,
    unipolar: bool, last: bool
) -> Tensor:  # fmt: skip
    need_rank(where, "the data", data, 4)
    strides = spread(where, "stride", stride, 2)
    channel, rows = (3, 1) if last else (1, 2)
    packed = bitpack(data, bits[0], channel, 4 if last else 2, pack_dtype)
    weights = bitpack(kernel, bits[1], 2 if last else 1, 4, pack_dtype) if kernel.ndim == 4 else kernel
    need_rank(where, "the kernel", weights, 5)
    outputs, words, taps = (
        (weights.shape[3], weights.shape[2], weights.shape[:2]) if last else (weights.shape[0], weights.shape[1], weights.shape[2:4])
    )
    need_equal(where, "the words of channels of data and kernel", data.shape[channel] // _width(where, pack_dtype), words)
    pairs = pad_pairs(where, padding, [extent_value(tap) for tap in taps])
    # Packed NCHW data is [N, words, planes, H, W]: rows and columns stand one further behind than in the data.
    spatial = rows if last else 3
    before, after = [0] * 5, [0] * 5
    for n, (low, high) in enumerate(pairs):
        before[spatial + n], after[spatial + n] = low, high
    # Words of zeros add nothing even if weights are -1: both counts of `_counted` are masked by the activation.
    padded = pad(packed, before, after, const(0, pack_dtype), "pad_temp") if needs_padding(before, after) else packed
    height, width = (
        extent_value(arithmetic.floordiv(padded.shape[spatial + n] - taps[n], strides[n]) + 1) for n in range(2)
    )  # fmt: skip
    rc, ry, rx, b1, b2 = (
        te.reduce_axis((0, extent), name=name)
        for name, extent in (("rc", words), ("ry", taps[0]), ("rx", taps[1]), ("b1", bits[0]), ("b2", weights.shape[4]))
    )

    def body(*i: Var) -> PrimExpr:
        n, o, y, x = (i[0], i[3], i[1], i[2]) if last else i
        at_y, at_x = y * strides[0] + ry.var, x * strides[1] + rx.var
        pixel = padded(n, at_y, at_x, rc.var, b1.var) if last else padded(n, rc.var, b1.var, at_y, at_x)
        weight = weights(ry.var, rx.var, rc.var, o, b2.var) if last else weights(o, rc.var, ry.var, rx.var, b2.var)
        return te.sum(_counted(pixel, weight, unipolar, b1.var + b2.var, out_dtype), axis=[rc, ry, rx, b2, b1])

    shape = (data.shape[0], height, width, outputs) if last else (data.shape[0], outputs, height, width)
    names = ["nn", "yy", "xx", "ff"] if last else ["nn", "ff", "yy", "xx"]
    return compute(shape, body, "Conv2dOutput", where, varargs_names=names)


def bitserial_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """A convolution of unsigned integers of few bits.

    Args:
        data: integers [N, C, H, W]; C is a multiple of the bits of `pack_dtype`.
        kernel: integers [O, C, KH, KW], or packed words [O, C/bits, KH, KW, weight_bits].
        stride: one number, or two.
        padding: see `topi.utils.pad_pairs`; the border is 0.
        activation_bits, weight_bits: how many of the lowest bits count.
        pack_dtype: of the words.
        out_dtype: of the sums.
        unipolar: a bit of a weight that is 0 counts as -1.

    Returns:
        `out_dtype` [N, O, H', W'].

    Raises:
        DeclarationError: for shapes or dtypes that don't fit.
    """
    bits = (activation_bits, weight_bits)
    return _conv("bitserial_conv2d_nchw", data, kernel, stride, padding, bits, pack_dtype, out_dtype, unipolar, last=False)


def bitserial_conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """As `bitserial_conv2d_nchw` -> [N, H', W', O], with data [N, H, W, C] and kernel [KH, KW, C, O] or [KH, KW, words, O, weight_bits]."""
    bits = (activation_bits, weight_bits)
    return _conv("bitserial_conv2d_nhwc", data, kernel, stride, padding, bits, pack_dtype, out_dtype, unipolar, last=True)


def bitserial_dense(
    data: Tensor,
    weight: Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """The product of matrices of unsigned integers of few bits.

    Args:
        data: integers [M, K]; K is a multiple of the bits of `pack_dtype`.
        weight: integers [N, K], or packed words [N, weight_bits, K/bits].
        data_bits, weight_bits: how many of the lowest bits count.
        pack_dtype: of the words.
        out_dtype: of the sums.
        unipolar: a bit of a weight that is 0 counts as -1.

    Returns:
        `out_dtype` [M, N].

    Raises:
        DeclarationError: for shapes or dtypes that don't fit.
    """
    need_rank("bitserial_dense", "the data", data, 2)
    packed = bitpack(data, data_bits, 1, 1, pack_dtype)
    weights = bitpack(weight, weight_bits, 1, 1, pack_dtype) if weight.ndim == 2 else weight
    need_rank("bitserial_dense", "the weight", weights, 3)
    need_equal("bitserial_dense", "the words of rows of data and weight", packed.shape[2], weights.shape[2])
    db, wb, k = (
        te.reduce_axis((0, extent), name=name) for name, extent in (("db", data_bits), ("wb", weights.shape[1]), ("k", packed.shape[2]))
    )

    def body(i: Var, j: Var) -> PrimExpr:
        product = _counted(packed(i, db.var, k.var), weights(j, wb.var, k.var), unipolar, db.var + wb.var, out_dtype)
        return te.sum(product, axis=[wb, db, k])

    tag = "bitserial_dense_unipolar" if unipolar else "bitserial_dense"
    return compute((data.shape[0], weights.shape[0]), body, "T_bitserial_dense", tag)
