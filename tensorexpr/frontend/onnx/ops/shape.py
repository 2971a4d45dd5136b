"""Operators on shapes, and those that move elements."""

from __future__ import annotations

from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op


@onnx_op("Shape")
def shape(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The extents of a tensor of which not even the rank is known."""
    if "start" in attrs or "end" in attrs:
        ctx.fail("a part of the shape of a tensor of unknown rank")
    return R.shape_to_tensor(R.shape_of(inputs[0]))
