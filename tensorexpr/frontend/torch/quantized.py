"""Numbers of few bits: the operators that PyTorch's exported programs have for them, `quantized_decomposed`."""

from __future__ import annotations

from typing import Any

from ... import relax
from .table import Context, aten, dtype_name


@aten("quantized_decomposed.quantize_per_tensor", "quantized_decomposed.quantize_per_channel")
def _quantize(c: Context, input: Any, scale: Any, zero: Any, *how: Any) -> Any:
    *axis, low, high, dtype = how
    name = dtype_name(dtype)
    made = c.op("quantize", c.cast(input, "float32"), *_numbers(c, scale, zero), axis=_axis(c, input, axis), out_dtype=name)
    bits = int(name.lstrip("uint"))
    whole = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return made if (low, high) == whole else c.op("clip", made, low, high)


@aten("quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel")
def _dequantize(c: Context, input: Any, scale: Any, zero: Any, *how: Any) -> Any:
    *axis, _, _, _, out_dtype = how
    dtype = "float32" if out_dtype is None else dtype_name(out_dtype)
    return c.op("dequantize", input, *_numbers(c, scale, zero), axis=_axis(c, input, axis), out_dtype=dtype)


@aten("quantized_decomposed.choose_qparams")
def _parameters(c: Context, input: Any, low: int, high: int, eps: float, dtype: Any) -> list[Any]:
    """A scale that the elements and 0 fit into the integers by, and the integer of 0."""
    least, most = (c.cast(c.op(name, input), "float64") for name in ("min", "max"))
    least, most = c.op("minimum", least, relax.const(0.0, "float64")), c.op("maximum", most, relax.const(0.0, "float64"))
    scale = c.op("divide", c.op("subtract", most, least), relax.const(float(high - low), "float64"))
    scale = c.op("maximum", scale, relax.const(eps, "float64"))
    zero = c.op("subtract", relax.const(float(low), "float64"), c.op("round", c.op("divide", least, scale)))
    zero = c.op("clip", zero, low, high)
    return [c.cast(c.reshape(one, c.sizes_of(like)), dtype_name(like.dtype)) for one, like in zip((scale, zero), c.result, strict=True)]


@aten("fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_tensor_affine")
def _rounded(c: Context, input: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    """What is left of floats as integers of few bits, and which of them were inside of their range."""
    dtype = c.dtype_of(input)
    scale, zero = c.cast(scale, dtype), c.cast(zero, dtype)
    whole = c.op("add", c.op("round", c.op("divide", input, scale)), zero)
    found = c.op("multiply", c.op("subtract", c.op("clip", whole, low, high), zero), scale)
    if not isinstance(c.result, (list, tuple)):
        return found
    inside = c.op("logical_and", c.op("greater_equal", whole, relax.const(low, dtype)), c.op("less_equal", whole, relax.const(high, dtype)))
    return [found, inside]


@aten("fake_quantize_per_channel_affine_cachemask", "fake_quantize_per_channel_affine")
def _rounded_by_channel(c: Context, input: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> Any:
    shape = [c.shape_of(input)[axis] if n == axis else 1 for n in range(c.rank(input))]
    return _rounded(c, input, c.reshape(scale, shape), c.reshape(zero, shape), low, high)


def _numbers(c: Context, scale: Any, zero: Any) -> tuple[Any, Any]:
    """Scales as floats, and zeros as integers; without zeros these are 0."""
    scales = c.cast(scale, "float32")
    if zero is None:
        return scales, c.op("zeros_like", scales, dtype="int32")
    return scales, c.cast(zero, "int32")


def _axis(c: Context, input: Any, axis: list[Any]) -> int:
    return c.axis(input, axis[0]) if axis else -1
