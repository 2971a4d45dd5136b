"""FlattenAtrousConv: a convolution between `space_to_batch_nd` and `batch_to_space_nd` is one with dilation.

conv2d(space_to_batch_nd(x, block=[2, 2], paddings=[[2, 3], [2, 3]]), w), then batch_to_space_nd(block=[2, 2], crops=[[0, 1], [0, 1]])
conv2d(x, w, padding=[2, 2, 2, 2], dilation=[2, 2])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..relax import expr as graph
from ..tir.op_registry import Op
from .expr import Attrs, Call
from .visitor import ExprMutator, mutated, walk

_CONVOLUTIONS = ("nn.conv2d", "qnn.conv2d")


def _is(expr: Any, *names: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) in names


def _zero_point(conv: Any) -> Any:
    """What the convolution pads with; None where that isn't known."""
    if conv.op == "nn.conv2d":
        return 0
    given = conv.args[2]
    return given.data.numpy() if isinstance(given, graph.Constant) else None


def flattened(call: Any) -> Any:
    """The convolution with dilation; None for other calls, and where cropping takes more than the padding gives."""
    if (
        not _is(call, "nn.batch_to_space_nd")
        or not _is(call.args[0], *_CONVOLUTIONS)
        or not _is(call.args[0].args[0], "nn.space_to_batch_nd")
    ):
        return None
    conv = call.args[0]
    spread = conv.args[0]
    before, after, own = spread.attrs, call.attrs, conv.attrs
    blocks = [int(one) for one in before["block_shape"]]
    layout: str = own["data_layout"]
    zero = _zero_point(conv)
    if [int(one) for one in after["block_shape"]] != blocks or layout[:1] != "N" or len(layout) != 4 or not layout.isalpha():
        return None
    if any(int(one) != 1 for one in own["strides"]) or zero is None or np.any(zero != before["pad_value"]):
        return None
    axes = [layout.index(one) - 1 for one in "HW"]  # those behind the batch, which block shapes are of
    if any(size != 1 for axis, size in enumerate(blocks) if axis not in axes) or max(axes) >= len(blocks):
        return None
    if any(any(map(int, (*before["paddings"][n], *after["crops"][n]))) for n in range(len(blocks)) if n not in axes):
        return None
    padding = [int(one) for one in own["padding"]]
    top_left, bottom_right = (padding[:2], padding[2:]) if len(padding) == 4 else (padding * (2 // len(padding)),) * 2
    sides = [
        [int(before["paddings"][axis][side]) - int(after["crops"][axis][side]) + blocks[axis] * given[n] for n, axis in enumerate(axes)]
        for side, given in enumerate((top_left, bottom_right))
    ]
    if min(*sides[0], *sides[1]) < 0:
        return None
    dilation = tuple(int(one) * blocks[axis] for one, axis in zip(own["dilation"], axes, strict=True))
    attrs = Attrs({**own, "padding": (*sides[0], *sides[1]), "dilation": dilation})
    return Call(conv.op, (spread.args[0], *conv.args[1:]), attrs, span=call.span)


class _Flattened(ExprMutator):
    def visit_call(self, call: Any) -> Any:
        """The convolution in place of the three."""
        made = super().visit_call(call)
        found = flattened(made)
        return made if found is None else found


def with_dilation(func: Any) -> Any:
    """A function whose convolutions between those operators have dilation; itself without such operators."""
    return mutated(_Flattened(), func) if any(_is(node, "nn.batch_to_space_nd") for node in walk(func)) else func


__all__ = ["flattened", "with_dilation"]
