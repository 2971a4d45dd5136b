"""Operators on the order of elements, on which of them there are, and on all of them up to each one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..dtypes import dtype_of
from ..registry import onnx_op

R = relax.op


@onnx_op("TopK")
def top_k(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The largest or smallest elements along an axis, and where they stand."""
    k = attrs.int("k") if ctx.opset < 10 else ctx.integer(1)
    if k < 0:
        ctx.fail(f"{k} elements")
    axis, largest = attrs.int("axis", -1), attrs.bool("largest", True)
    # R.topk takes 0 for all elements: one is taken, and cut off behind.
    found = ctx.emit(R.topk(inputs[0], max(k, 1), axis, "both", largest, "int64"))
    values = [relax.TupleGetItem(found, n) for n in range(2)]
    return values if k else [R.strided_slice(one, [axis], [0], [0]) for one in values]


@onnx_op("Unique")
def unique(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The different elements or parts, where they occur first, of which of them each is one, and how often they occur."""
    axis = attrs.int("axis", None)
    return R.unique(inputs[0], attrs.bool("sorted", True), True, True, True, axis)


@onnx_op("NonZero")
def non_zero(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The indices of elements that aren't zero."""
    return R.nonzero(inputs[0])


@onnx_op("Compress")
def compress(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The parts or elements where a condition holds."""
    return R.compress(inputs[0], inputs[1], attrs.int("axis", None))


@onnx_op("EyeLike")
def eye_like(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Ones on a diagonal."""
    number = attrs.int("dtype", None)
    return R.eye_like(inputs[0], attrs.int("k", 0), None if number is None else dtype_of(number, ctx.where))


def _scan(name: str, make: Callable[..., Any]) -> None:
    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        axis = ctx.integer(1)
        backwards, data = attrs.bool("reverse", False), inputs[0]
        found = make(R.flip(data, axis) if backwards else data, axis, None, attrs.bool("exclusive", False))
        return R.flip(found, axis) if backwards else found

    onnx_op(name)(convert)


_scan("CumSum", R.cumsum)
_scan("CumProd", R.cumprod)


@onnx_op("Einsum")
def einsum(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Einstein's sum of products."""
    return R.einsum(list(inputs), attrs.string("equation"))
