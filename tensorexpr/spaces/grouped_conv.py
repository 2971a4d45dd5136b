"""Convolutions of small numbers whose channels lie in blocks of 4 bytes: one dot product for a vector of channels of a pixel.

The innermost sum over a block of channels is the instruction's; the accumulators of several pixels and of one or two
blocks of outputs stay in registers over all other sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.expr import Add, Cast, IterVar, Mul, PrimExpr, ProducerLoad, Reduce
from ..tir.reduction_laws import operator_of
from ..tir.rewriting import variables
from .dot_products import instruction_for
from .machine import is_parallel
from .reduction import constant_extents
from .sizes import decided, several


@dataclass(frozen=True)
class GroupedConv:
    """What the rule found: the axes of the output blocks, of a row of pixels, of the lanes, and of the block of channels."""

    outputs: IterVar
    pixels: IterVar
    lanes: IterVar
    inner: IterVar
    intrinsic: TensorIntrin


def grouped_conv_of(op: ComputeOp, target: Target) -> GroupedConv | None:
    """The convolution that a stage is, if it is one that the target has an instruction for."""
    reads = _operands(op)
    if reads is None or len(op.axis) < 3 or len(op.reduce_axis) < 2:
        return None
    data, weight = reads
    dot = instruction_for(data.dtype, weight.dtype, op.output_dtype(0), target)
    lanes, inner = op.axis[-1], op.reduce_axis[-1]
    if dot is None or constant_extents((lanes, inner)) != [dot.outputs, dot.group]:
        return None
    if weight.indices[-2] is not lanes.var or weight.indices[-1] is not inner.var or data.indices[-1] is not inner.var:
        return None
    # The instruction steps through its lanes and terms itself, so no other index may move with them.
    elsewhere = {var for index in (*data.indices[:-1], *weight.indices[:-2]) for var in variables(index)}
    if lanes.var in elsewhere or inner.var in elsewhere:
        return None
    of_data = {var for index in data.indices for var in variables(index)}
    of_weight = {var for index in weight.indices for var in variables(index)}
    outputs = [axis for axis in op.axis[:-1] if axis.var in of_weight and axis.var not in of_data]
    pixels = [axis for axis in op.axis[:-1] if axis.var in of_data and axis.var not in of_weight]
    if not outputs or not pixels or len(outputs) + len(pixels) != len(op.axis) - 1:
        return None
    return GroupedConv(outputs[-1], pixels[-1], lanes, inner, TensorIntrin.get(dot.intrinsic))


def _operands(op: ComputeOp) -> tuple[ProducerLoad, ProducerLoad] | None:
    body = op.body[0] if len(op.body) == 1 else None
    if not isinstance(body, Reduce) or body.init or len(body.source) != 1 or not isinstance(body.source[0], Mul):
        return None
    if operator_of(body.combiner) is not Add:
        return None
    found = [_uncast(side) for side in (body.source[0].a, body.source[0].b)]
    first, second = found
    return (first, second) if isinstance(first, ProducerLoad) and isinstance(second, ProducerLoad) else None


def _uncast(expr: PrimExpr) -> PrimExpr:
    return expr.value if isinstance(expr, Cast) else expr


def schedule_grouped_convs(s: Schedule, target: Target) -> None:
    """Schedule every stage at the root that is such a convolution."""
    for stage in list(s.tree.in_order()):
        if isinstance(stage.op, ComputeOp) and stage.op.num_outputs == 1 and constant_extents((*stage.op.axis, *stage.op.reduce_axis)):
            found = grouped_conv_of(stage.op, target)
            if found is not None:
                _schedule(s, stage.origin.output(0), found, target)


def _schedule(s: Schedule, out: Tensor, conv: GroupedConv, target: Target) -> None:
    blocks, width = constant_extents((conv.outputs, conv.pixels)) or [1, 1]
    # Two vectors of weights share each broadcast pixel.
    vectors = 2 if blocks % 2 == 0 else 1
    most = target.machine.tile_rows(vectors)
    rows = max(count for count in range(1, most + 1) if width % count == 0)
    names = [axis.var for axis in s[out].op.axis]
    tile = s.cache_write(out, "local")
    outer_axes = list(s[out].op.axis)
    outputs, pixels, lane = (outer_axes[names.index(axis.var)] for axis in (conv.outputs, conv.pixels, conv.lanes))
    blocks_outer, blocks_inner = s[out].split(outputs, factor=decided(s[out], outputs, vectors, several))
    pixels_outer, pixels_inner = s[out].split(pixels, factor=decided(s[out], pixels, rows, several))
    others = [axis for axis in outer_axes if axis is not outputs and axis is not pixels and axis is not lane]
    s[out].reorder(*others, blocks_outer, pixels_outer, pixels_inner, blocks_inner, lane)
    s[out].vectorize(lane)
    place = s[out].fuse(*others, blocks_outer) if others else blocks_outer
    work = 2.0
    for extent in constant_extents((*s[tile].op.axis, *s[tile].op.reduce_axis)) or ():
        work *= extent
    if is_parallel(target, work):
        s[out].parallel(place)
    s[tile].compute_at(s[out], pixels_outer)
    axes = list(s[tile].op.axis)
    tile_outputs, tile_pixels, tile_lane = (axes[names.index(axis.var)] for axis in (conv.outputs, conv.pixels, conv.lanes))
    rest = [axis for axis in axes if axis is not tile_outputs and axis is not tile_pixels and axis is not tile_lane]
    *steps, inner = s[tile].op.reduce_axis
    s[tile].reorder(*rest, *steps, tile_pixels, tile_outputs, tile_lane, inner)
    s[tile].unroll(tile_pixels)
    s[tile].unroll(tile_outputs)
    s[tile].tensorize(tile_lane, conv.intrinsic)
