"""Numbers of few bits: the operators that PyTorch's exported programs have for them, `quantized_decomposed`."""

from __future__ import annotations

from typing import Any

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


def _numbers(c: Context, scale: Any, zero: Any) -> tuple[Any, Any]:
    """Scales as floats, and zeros as integers; without zeros these are 0."""
    scales = c.cast(scale, "float32")
    if zero is None:
        return scales, c.op("zeros_like", scales, dtype="int32")
    return scales, c.cast(zero, "int32")


def _axis(c: Context, input: Any, axis: list[Any]) -> int:
    return c.axis(input, axis[0]) if axis else -1
