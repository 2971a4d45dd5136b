"""Numbers of few bits: floats by a scale and the number that stands for zero, of a tensor, of each channel or of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...te.declare import compute
from ...tir import intrin
from ...tir.arithmetic import as_int, cast, const, floordiv, maximum, minimum
from ...tir.dtype import to_numpy
from ..relations import same_extents
from ..struct_info import StructInfo
from .row import Expr, Operand, Pattern, operator, tensor

_WIDE = "float32"  # what scales are multiplied in


def _blocks(shape: Any, scale: Any, axis: int) -> Callable[..., tuple[Any, ...]]:
    """Which scale an element has: the only one, that of its place along the axis, or that of a block of the axis.

    Raises:
        DeclarationError: for scales of another shape.
    """
    ndim = len(shape)
    if len(scale) == 0:
        return lambda i: ()
    place = axis % ndim if ndim else 0
    one = as_int(scale[0]) if len(scale) == 1 else None
    if one == 1:
        return lambda i: (0,)
    extent = as_int(shape[place]) if ndim else None
    # Along the only axis of data fewer scales than elements are those of blocks.
    if len(scale) == 1 and ndim != 1:
        if extent is not None and one is not None and extent != one:
            raise DeclarationError(f"{one} scales for {extent} elements along axis {axis}")
        return lambda i: (i[place],)
    if len(scale) != ndim:
        raise DeclarationError(f"scales of {len(scale)} axes for data of {ndim}; one, one for each element of an axis, or for each block")
    count = as_int(scale[place])
    if extent is None or not count:
        if same_extents(scale[place], shape[place]):
            return lambda i: tuple(i)
        raise DeclarationError(f"blocks along axis {axis} of an extent that isn't known: {shape[place]}, with {scale[place]} scales")
    # The last block may be shorter: 10 elements with 4 scales are 3, 3, 3 and 1.
    block = -(-extent // count)
    if block == 1:
        return lambda i: tuple(i)
    return lambda i: tuple(floordiv(own, block) if n == place else own for n, own in enumerate(i))


def _spread(values: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Scales as they lie over data, with NumPy."""
    if values.size == 1:
        return values.reshape(())
    place = axis % len(shape)
    if values.ndim == 1 and len(shape) > 1:
        return values.reshape([-1 if n == place else 1 for n in range(len(shape))])
    if values.shape[place] == shape[place]:
        return values
    # Repeated blocks may go past the end, where the last one is shorter.
    return np.repeat(values, -(-shape[place] // values.shape[place]), place).take(range(shape[place]), place)


def _te_quantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    at, zero_at = _blocks(data.shape, scale.shape, axis), _blocks(data.shape, zero_point.shape, axis)
    limits = _limits(out_dtype)
    wide = "float64" if data.dtype == "float64" else _WIDE

    def element(*i: Any) -> Any:
        scaled, zero = cast(data(*i), wide) / cast(scale(*at(i)), wide), zero_point(*zero_at(i))
        return cast(scaled + cast(zero, wide), out_dtype) if limits is None else _whole(scaled, zero, limits, wide, out_dtype)

    return compute(data.shape, element, "quantized", tag="elemwise")


def _whole(value: Any, zero: Any, limits: tuple[int, int], wide: str, dtype: str) -> Any:
    """A number as an integer: the zero is added to what is rounded, so that halves go to the even number on either side of it.

    Integers of eight bits are made by the conversion that rounds, of numbers cut where any zero leaves them outside: sums and ends
    are integers then, of which vectors hold more.
    """
    if zero.dtype == dtype and dtype in ("int8", "uint8"):
        span = const(limits[1] - limits[0], wide)
        near = cast(intrin.nearbyint(minimum(maximum(value, -span), span)), "int32") + cast(zero, "int32")
        return cast(minimum(maximum(near, const(limits[0], "int32")), const(limits[1], "int32")), dtype)
    low, high = (const(limit, wide) for limit in limits)
    return cast(minimum(maximum(intrin.nearbyint(value) + cast(zero, wide), low), high), dtype)


def _te_requantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    at, zero_at, limits = _blocks(data.shape, scale.shape, axis), _blocks(data.shape, zero_point.shape, axis), _limits(out_dtype)
    assert limits is not None

    def element(*i: Any) -> Any:
        return _whole(cast(data(*i), _WIDE) * scale(*at(i)), zero_point(*zero_at(i)), limits, _WIDE, out_dtype)

    return compute(data.shape, element, "requantized", tag="elemwise")


def _np_requantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    limits = _limits(out_dtype)
    assert limits is not None
    scaled = np.rint(data.astype(np.float32) * _spread(scale, data.shape, axis).astype(np.float32))
    return np.clip(scaled + _spread(zero_point, data.shape, axis).astype(np.float32), *limits).astype(to_numpy(out_dtype))


def _limits(dtype: str) -> tuple[int, int] | None:
    """The least and the largest integer of a dtype; None for floats, which quantisation doesn't round."""
    own: Any = to_numpy(dtype)
    if own.kind not in "iu":
        return None
    info = np.iinfo(own)
    return int(info.min), int(info.max)


def _np_quantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    dtype = to_numpy(out_dtype)
    wide = np.float64 if data.dtype == np.float64 else np.float32
    scaled = data.astype(wide) / _spread(scale, data.shape, axis).astype(wide)
    zero = _spread(zero_point, data.shape, axis).astype(wide)
    limits = _limits(out_dtype)
    if limits is not None:
        return np.clip(np.rint(scaled) + zero, *limits).astype(dtype)
    return (scaled + zero).astype(dtype)


def _te_dequantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    at, zero_at = _blocks(data.shape, scale.shape, axis), _blocks(data.shape, zero_point.shape, axis)
    # A difference of two elements takes a bit more than they have.
    whole = _WIDE if data.dtype.startswith(("float", "bfloat")) else "int64" if data.dtype in ("uint32", "int64") else "int32"

    def element(*i: Any) -> Any:
        apart = cast(data(*i), whole) - cast(zero_point(*zero_at(i)), whole)
        return cast(cast(apart, scale.dtype) * scale(*at(i)), out_dtype)

    return compute(data.shape, element, "dequantized", tag="elemwise")


def _np_dequantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    zero = _spread(zero_point, data.shape, axis)
    apart = data.astype(np.int64) - zero.astype(np.int64) if data.dtype.kind in "iu" else data.astype(np.float32) - zero.astype(np.float32)
    return (apart.astype(scale.dtype) * _spread(scale, data.shape, axis)).astype(to_numpy(out_dtype))


def _checked(where: str, data: Operand, scale: Operand, zero_point: Operand, axis: int) -> None:
    if data.ndim > 0 and scale.ndim == 1 and scale.extents is not None and as_int(scale.extents[0]) != 1:
        data.axis(axis)
    if data.extents is None:
        return
    for one in (scale, zero_point):
        if one.extents is not None:
            try:
                _blocks(data.extents, one.extents, axis)
            except DeclarationError as error:
                raise DeclarationError(f"relax.op.{where}: {one.name} is {one.info}, data {data.info}: {error}") from None


@operator("quantize", Pattern.ELEMENTWISE, te=_te_quantize, numpy=_np_quantize)
def quantize(data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: str = "int8") -> StructInfo:
    """Floats as integers: round(data / scale) + zero_point, halves to even numbers, and as near as the dtype has it.

    One scale and zero, or as many as an axis has elements; or a tensor with fewer elements along the axis, one for each block of it.
    Where out_dtype is that of floats, nothing is rounded.
    """
    x, s, z = tensor(data, "data"), tensor(scale, "scale"), tensor(zero_point, "zero_point")
    _checked("quantize", x, s, z, axis)
    return x.like(x.info.shape, out_dtype, x.ndim)


@operator("requantize", Pattern.ELEMENTWISE, te=_te_requantize, numpy=_np_requantize)
def requantize(data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: str = "int8") -> StructInfo:
    """Sums of int32 as integers of few bits: round(data * scale) + zero_point, halves to even numbers, in float32.

    The scale is that of the sums by that of the result, so that nothing is divided where sums are made; else as `quantize`.
    """
    x, s, z = tensor(data, "data"), tensor(scale, "scale"), tensor(zero_point, "zero_point")
    if _limits(out_dtype) is None:
        raise DeclarationError(f"relax.op.requantize: results are integers, not {out_dtype}")
    _checked("requantize", x, s, z, axis)
    return x.like(x.info.shape, out_dtype, x.ndim)


@operator("dequantize", Pattern.ELEMENTWISE, te=_te_dequantize, numpy=_np_dequantize)
def dequantize(data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: str = "float32") -> StructInfo:
    """Integers as floats: (data - zero_point) * scale; see `quantize`."""
    x, s, z = tensor(data, "data"), tensor(scale, "scale"), tensor(zero_point, "zero_point")
    _checked("dequantize", x, s, z, axis)
    return x.like(x.info.shape, out_dtype, x.ndim)
