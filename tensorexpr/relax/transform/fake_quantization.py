"""FakeQuantizationToInteger: what is computed in floats between dequantised values and quantised ones becomes integer kernels.

    dequantize(a) @ dequantize(w)                  ->  dequantize(a @ w - corrections, scale of a * scale of w), sums in int32
    dequantize(sums, s) + b                        ->  dequantize(sums + b / s, s)          where b / s are integers
    quantize(dequantize(sums, s), t)               ->  requantize(sums, s / t)              one kernel with the product
    quantize(dequantize(x, s), s)                  ->  x
    quantize(reshape(y)), of concat, max_pool ...  ->  reshape(quantize(y)) ...             bytes move, not floats
    quantize(relu(y)), where 0 is the least        ->  quantize(y)                      and clips at 6 where bytes end there

Models come so from quantisation in training and from exporters that state scales by pairs of QuantizeLinear and DequantizeLinear
(Jacob et al. 2018; Krishnamoorthi 2018, 2.6). Sums are exact where the float computation rounds each of its steps, and scales are
multiplied into one factor, so a quantised result may differ by one step from that of floats where this is next to a half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ..expr import Call, Constant, Function, PrimValue, Tuple, const
from ..ops.elementwise import add
from ..ops.integer_products import integer_conv, integer_matmul
from ..ops.manipulate import concat
from ..ops.quantized import dequantize, quantize, requantize
from ..struct_info import ShapeExpr, TensorStructInfo
from ..visitor import walk
from . import reshapes, transposes
from .fold_scale import CONVOLUTIONS, along
from .passes import each_function
from .reshapes import RESHAPES
from .rewriting import Rewriter, Rules, joined, rewritten
from .simple import folded
from .transposes import PERMUTE, order_of

QUANTIZE, DEQUANTIZE, REQUANTIZE = "relax.quantize", "relax.dequantize", "relax.requantize"
_BYTES = ("int8", "uint8")
_WHOLE_MOVES = (*RESHAPES, PERMUTE, "relax.flip", "relax.tile", "relax.repeat", "relax.broadcast_to")
_MOVES = (*_WHOLE_MOVES, "relax.strided_slice", "relax.take")  # the last two leave elements out
_POOLS = tuple(f"relax.nn.max_pool{n}d" for n in (1, 2, 3))
_WHOLE = 1e-3, 2.0**-20  # how far from an integer a bias in units of sums may be, of itself: scales are rounded to 24 bits
_LARGEST_SUM = 1 << 31


@dataclass(frozen=True)
class Quantised:
    """Floats that are (data - zero) * scale.

    Args:
        data: of integers.
        scale: a number, or a vector along the axis.
        zero: the same.
        axis: from the front.
    """

    data: Any
    scale: Any
    zero: Any
    axis: int

    @property
    def info(self) -> TensorStructInfo:
        """Of the data."""
        info: TensorStructInfo = self.data.struct_info
        return info

    @property
    def is_plain(self) -> bool:
        """Whether all elements have one scale and one zero."""
        return bool(self.scale.size == 1 and self.zero.size == 1)

    @property
    def largest(self) -> int:
        """The largest distance of an element from its zero."""
        limits = np.iinfo(self.info.dtype)
        return int(max(limits.max - self.zero.min(), self.zero.max() - limits.min))


def constant_of(graph: Rewriter, expr: Any) -> Any:
    """The array that an operand is, computed if it is one of constants; None for others."""
    found = graph.value(expr)
    if isinstance(found, Call):
        args = []
        for arg in found.args:
            # At the first one that isn't known: with all of them, what branches share would be asked for again on each way to it.
            if (known := _computed(graph, arg)) is None:
                return None
            args.append(known)
        found = folded(Call(found.op, args, found.attrs, found.sinfo_args))
    return found.data.numpy() if isinstance(found, Constant) else None


def _computed(graph: Rewriter, arg: Any) -> Any:
    """An argument of a call as a constant; None for one that isn't known, shapes and numbers as they are."""
    if isinstance(arg, (ShapeExpr, PrimValue)):
        return arg
    values = constant_of(graph, arg)
    return None if values is None else const(values)


def _parts(graph: Rewriter, call: Call) -> Quantised | None:
    """What `dequantize` or `quantize` is given, if scales and zeros are constants, of the whole or along an axis."""
    scale, zero = (constant_of(graph, arg) for arg in call.args[1:3])
    info = call.args[0].struct_info
    if scale is None or zero is None or not isinstance(info, TensorStructInfo) or info.ndim == -1 or info.extents is None:
        return None
    # A negative scale would turn the order round, by which maxima and clips are moved.
    if scale.ndim > 1 or zero.ndim > 1 or not np.isfinite(scale).all() or (scale <= 0).any():
        return None
    axis = int(call.attrs["axis"]) % info.ndim if info.ndim else 0
    narrow = [one.reshape(()) if one.size == 1 else one for one in (scale, zero)]
    return Quantised(call.args[0], narrow[0], narrow[1].astype(np.int64), axis)


def quantised(graph: Rewriter, expr: Any, dtypes: tuple[str, ...] = _BYTES) -> Quantised | None:
    """An operand as integers, their scale and zero, looking through what only moves elements; None if it is no dequantised value.

    Example:
        permute_dims(reshape(dequantize(x, s, z))) is permute_dims(reshape(x)) with s and z.
    """
    call = graph.call(expr, DEQUANTIZE, *_MOVES)
    if call is None:
        return None
    if call.op == DEQUANTIZE:
        found = _parts(graph, call)
        is_float32 = isinstance(call.struct_info, TensorStructInfo) and call.struct_info.dtype == "float32"
        return found if found is not None and found.info.dtype in dtypes and is_float32 else None
    inner = quantised(graph, call.args[0], dtypes)
    if inner is None:
        return None
    axis = inner.axis
    if not inner.is_plain:
        # A vector of scales moves with its axis, which a transpose keeps whole; a reshape may split it.
        order = order_of(call) if call.op == PERMUTE else None
        if order is None:
            return None
        axis = order.index(axis)
    return Quantised(Call(call.op, (inner.data, *call.args[1:]), call.attrs), inner.scale, inner.zero, axis)


def _numbers(values: Any) -> Constant:
    """Numbers as a constant with an axis: what has none is part of a kernel's code, and layers of the same shape share kernels."""
    return const(values.reshape(-1))


def _zero_of(one: Quantised) -> Constant:
    return _numbers(one.zero.astype(np.int32))


def _sums(total: Any, scale: Any, axis: int) -> Call:
    """Sums of products of integers as floats."""
    return dequantize(total, _numbers(scale.astype(np.float32)), const(np.zeros(1, np.int32)), axis)


def _fits(a: Quantised, b: Quantised, depth: int) -> bool:
    """Whether sums of so many products are integers of 32 bits."""
    # uint8 by int8 with zeros at 0: 255 * 128 for each product, so up to 65793 of them.
    return depth * a.largest * b.largest < _LARGEST_SUM


def _is_float32(call: Call) -> bool:
    info = call.struct_info
    return isinstance(info, TensorStructInfo) and info.dtype == "float32"


def _product(graph: Rewriter, call: Call) -> Any:
    """`dequantize(a) @ dequantize(b)`."""
    a, b = quantised(graph, call.args[0]), quantised(graph, call.args[1])
    if a is None or b is None or not a.is_plain or not _is_float32(call) or min(a.info.ndim, b.info.ndim) < 2:
        return None
    depth = as_int((a.info.extents or ())[-1])
    # Scales of b go by columns: by rows each summand would have another one.
    if depth is None or not _fits(a, b, depth) or (not b.is_plain and (b.axis != b.info.ndim - 1 or b.info.ndim > 2)):
        return None
    # Instructions for dot products take signed bytes on the right: otherwise the product would subtract 128 from each again.
    b = _signed(graph, b)
    total = integer_matmul(graph.leaf(a.data), graph.leaf(b.data), _zero_of(a), _zero_of(b), graph.emit)
    return _sums(total, a.scale.astype(np.float32) * b.scale.astype(np.float32), -1)


def _signed(graph: Rewriter, one: Quantised) -> Quantised:
    """A right factor that is quantised where it is used alone is quantised to signed bytes at once."""
    made = _as_signed(graph, one.data) if one.info.dtype == "uint8" and one.is_plain else None
    return one if made is None else Quantised(made, one.scale, one.zero - 128, one.axis)


def _as_signed(graph: Rewriter, data: Any) -> Any:
    """Unsigned bytes less 128, made by what quantises; None if something else uses them, or they come from elsewhere."""
    call = data if isinstance(data, Call) else graph.only(data, QUANTIZE, REQUANTIZE, *_MOVES)
    if call is None:
        return None
    if call.op not in (QUANTIZE, REQUANTIZE):
        inner = _as_signed(graph, call.args[0])
        return None if inner is None else Call(call.op, (inner, *call.args[1:]), call.attrs)
    zero = constant_of(graph, call.args[2])
    if zero is None:
        return None
    # 0 to 255 less 128 is -128 to 127: no zero leaves int8.
    make = quantize if call.op == QUANTIZE else requantize
    return make(call.args[0], call.args[1], const((zero.astype(np.int32) - 128).astype(np.int8)), call.attrs["axis"], "int8")


def _convolution(graph: Rewriter, call: Call) -> Any:
    """A convolution of dequantised data with dequantised weights, which have a scale for each result at most."""
    x, w = quantised(graph, call.args[0]), quantised(graph, call.args[1])
    if x is None or w is None or not x.is_plain or not _is_float32(call):
        return None
    plane = "DHW"[-(x.info.ndim - 2) :]
    layouts = [str(call.attrs[name] or "NC" + plane) for name in ("data_layout", "kernel_layout", "out_layout")]
    extents = [as_int(extent) or 0 for extent in w.info.extents or ()]
    is_plain = layouts == ["NC" + plane, "OI" + plane, "NC" + plane] and (w.is_plain or w.axis == 0) and 0 not in extents
    # Windows that sum one channel each have nothing that an instruction for dot products could sum.
    if not is_plain or extents[1] == 1 or not _fits(x, w, int(np.prod(extents[1:], dtype=np.int64))):
        return None
    attrs = {name: call.attrs[name] for name in ("strides", "padding", "dilation", "groups")}
    total = integer_conv(graph.leaf(x.data), graph.leaf(w.data), attrs, _zero_of(x), _zero_of(w), graph.emit)
    return _sums(total, x.scale.astype(np.float32) * w.scale.astype(np.float32), 1)


def _as_sums(graph: Rewriter, expr: Any) -> Quantised | None:
    """An operand that is sums of int32 by a scale."""
    call = graph.only(expr, DEQUANTIZE)
    found = None if call is None else _parts(graph, call)
    return found if found is not None and found.info.dtype == "int32" and not found.zero.any() else None


def _largest(graph: Rewriter, expr: Any) -> int:
    """The largest distance of integers from 0, as far as the operators that compute them tell.

    Example:
        matmul of uint8 [m, 64] and int8 [64, n] less 3 is at most 64 * 255 * 128 + 3.
    """
    found = graph.value(expr)
    if isinstance(found, Constant):
        return int(np.abs(found.data.numpy().astype(np.int64)).max(initial=0))
    limits = np.iinfo(found.struct_info.dtype)
    by_dtype, name = max(-int(limits.min), int(limits.max)), str(found.op) if isinstance(found, Call) else ""
    if name in ("relax.add", "relax.subtract"):
        return min(by_dtype, sum(_largest(graph, arg) for arg in found.args))
    if name in ("relax.astype", *_WHOLE_MOVES):
        return min(by_dtype, _largest(graph, found.args[0]))
    terms = [as_int(extent) for extent in _summed(found, name)]
    if not terms or None in terms:
        return by_dtype
    factors = [_largest(graph, arg) for arg in found.args]
    return min(by_dtype, math.prod([*factors, *(term or 0 for term in terms)]))


def _summed(call: Any, name: str) -> Sequence[Any]:
    """The extents of the axes along which a call multiplies and adds, of products of elements 1; none for calls that do something else."""
    infos = [arg.struct_info for arg in getattr(call, "args", ())]
    if name == "relax.multiply":
        return [1]
    if name == "relax.matmul":
        return [(infos[0].extents or [-1])[-1]]
    if name in CONVOLUTIONS and str(call.attrs["kernel_layout"] or "OI").startswith("OI"):
        return (infos[1].extents or ())[1:]
    if name == "relax.sum" and infos[0].extents is not None:
        axes = call.attrs["axis"]
        return (
            infos[0].extents if axes is None else [infos[0].extents[axis] for axis in (axes if isinstance(axes, (list, tuple)) else [axes])]
        )
    return []


def _biased(graph: Rewriter, call: Call) -> Any:
    """`dequantize(sums) + b`, where `b` is a vector of integers in units of the sums."""
    for one, other in ((0, 1), (1, 0)):
        sums = _as_sums(graph, call.args[one])
        bias = None if sums is None else constant_of(graph, call.args[other])
        if sums is None or bias is None or call.struct_info != call.args[one].struct_info:
            continue
        vector = along(bias, sums.info.ndim, sums.axis)
        if vector is None or not np.isfinite(vector).all():
            return None
        units = vector.astype(np.float64) / sums.scale
        whole = np.rint(units)
        if (np.abs(whole - units) > _WHOLE[0] + _WHOLE[1] * np.abs(units)).any():
            return None
        # Floats would saturate softly where int32 wraps: 2^31 - 100 and a bias of 200 are a large negative number.
        if _largest(graph, sums.data) + np.abs(whole).max(initial=0) >= _LARGEST_SUM:
            return None
        shape = [-1 if n == sums.axis else 1 for n in range(sums.info.ndim)]
        return _sums(_plus(graph, sums.data, whole.astype(np.int32).reshape(shape)), sums.scale, sums.axis)
    return None


def _plus(graph: Rewriter, sums: Any, bias: Any) -> Call:
    """Sums and a bias, which is one with the correction for the data's zero where that was subtracted before."""
    inner = graph.only(sums, "relax.subtract")
    known = None if inner is None else constant_of(graph, inner.args[1])
    if inner is not None and known is not None and known.shape == bias.shape:
        sums, bias = inner.args[0], bias - known
    made: Call = add(sums, const(bias))
    return made


def _requantised(graph: Rewriter, call: Call) -> Any:
    """`quantize(dequantize(x))`: nothing, or integers by another scale."""
    inner = graph.call(call.args[0], DEQUANTIZE)
    own, given = _parts(graph, call), None if inner is None else _parts(graph, inner)
    if own is None or given is None or not own.is_plain:
        return None
    dtype, alike = str(call.attrs["out_dtype"]), given.is_plain and own.scale == given.scale and own.zero == given.zero
    if alike and given.info.dtype == dtype:
        return given.data
    if given.info.dtype != "int32" or given.zero.any() or dtype not in (*_BYTES, "int16", "uint16"):
        return None
    factor = given.scale.astype(np.float32) / own.scale.astype(np.float32)
    return requantize(given.data, _numbers(factor), _numbers(own.zero.astype(dtype)), given.axis, dtype)


def _moved(graph: Rewriter, call: Call) -> Any:
    """`quantize(move(y))`: the same elements in other places, or the largest of some, are quantised before."""
    inner = graph.only(call.args[0], *_WHOLE_MOVES, *_POOLS, "relax.concat")
    own = None if inner is None else _parts(graph, call)
    if inner is None or own is None or not own.is_plain:
        return None

    def bytes_of(value: Any) -> Call:
        made: Call = quantize(value, call.args[1], call.args[2], -1, call.attrs["out_dtype"])
        return made

    if inner.op == "relax.concat":
        fields = inner.args[0].fields if isinstance(inner.args[0], Tuple) else ()
        return concat([bytes_of(field) for field in fields], inner.attrs["axis"]) if fields else None
    # Quantising never turns the order round, so the largest of some bytes is that of the largest float.
    return Call(inner.op, (bytes_of(inner.args[0]), *inner.args[1:]), inner.attrs)


def _clipped(graph: Rewriter, call: Call) -> Any:
    """`quantize(clip(y))`, where integers end no later than the clip does: what is beyond becomes the last one anyway."""
    inner, own = graph.call(call.args[0], "relax.nn.relu", "relax.clip"), _parts(graph, call)
    dtype = str(call.attrs["out_dtype"])
    if inner is None or own is None or not own.is_plain or dtype not in _BYTES:
        return None
    first, last = (0.0, math.inf) if inner.op == "relax.nn.relu" else (_end(inner.args[1]), _end(inner.args[2]))
    if first is None or last is None or first > last:
        return None
    # By the operator's own float32, in which the last step of a clip at 6 may be just below 255.
    low, high = (float(np.rint(np.float32(end) / np.float32(own.scale))) + float(own.zero) for end in (first, last))
    limits = np.iinfo(dtype)
    is_all = low <= limits.min and high >= limits.max
    return Call(call.op, (inner.args[0], *call.args[1:]), call.attrs) if is_all else None


def _end(arg: Any) -> float | None:
    """The number at which a clip ends; None for one that isn't known."""
    value = getattr(arg.value, "value", None) if isinstance(arg, PrimValue) else None
    return float(value) if isinstance(value, (int, float)) else None


def _with_an_axis(graph: Rewriter, call: Call) -> Any:
    """Scales and zeros of the whole as vectors of one, see `_numbers`."""
    own = _parts(graph, call)
    plain = [isinstance(graph.value(arg), Constant) and not graph.value(arg).data.shape for arg in call.args[1:3]]
    if own is None or not any(plain) or own.info.ndim == 0:
        return None
    args = [const(graph.value(arg).data.numpy().reshape(1)) if one else arg for arg, one in zip(call.args[1:3], plain, strict=True)]
    return Call(call.op, (call.args[0], *args), call.attrs)


RULES: Rules = {
    "relax.matmul": [_product],
    **{name: [_convolution] for name in CONVOLUTIONS},
    "relax.add": [_biased],
    QUANTIZE: [_requantised, _clipped, _moved, _with_an_axis],
    DEQUANTIZE: [_with_an_axis],
}


_WITH_MOVES = joined(RULES, reshapes.RULES, transposes.RULES)


def FakeQuantizationToInteger() -> ModulePass:
    """A pass: products, convolutions and moves between dequantised and quantised values work on integers; see the module.

    Functions without such values stay as they are; in others what only moves elements goes behind what computes them.
    """

    def run(func: Function, mod: Any) -> Function:
        is_quantised = any(isinstance(node, Call) and node.op == DEQUANTIZE for node in walk(func.body))
        return rewritten(func, _WITH_MOVES) if is_quantised else func

    return each_function("FakeQuantizationToInteger", run)
