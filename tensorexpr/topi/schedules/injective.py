"""Schedules of operators without a reduction: outer axes in parallel, the innermost one in vectors."""

from __future__ import annotations

from ...schedule.te_schedule import Schedule
from ...target import Target
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ..utils import extent_value
from .machine import is_parallel, lanes_of, vector_factor

# Registers of one vector operation: enough to hide the latency of loads.
_REGISTERS = 4


def schedule_injective(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Schedule one stage that stays at the root."""
    op = tensor.op
    assert isinstance(op, ComputeOp)
    axes = list(op.axis)
    if not axes:
        return
    extents = [extent_value(axis.dom.extent) for axis in axes if axis.dom is not None]
    if not all(isinstance(extent, int) for extent in extents):
        _symbolic(s, tensor, target)
        return
    work = 1
    for extent in extents:
        work *= extent
    lanes = lanes_of(target, tensor.dtype)
    if extents[-1] < lanes and len(axes) > 1:  # short rows: whole blocks of rows make full vectors
        while len(axes) > 1:
            fused = s[tensor].fuse(axes[-2], axes[-1])
            axes[-2:] = [fused]
        extents = [work]
    outer, inner = s[tensor].split(axes[-1], factor=vector_factor(extents[-1], lanes, _REGISTERS))
    s[tensor].vectorize(inner)
    if is_parallel(target, work):
        s[tensor].parallel(s[tensor].fuse(*axes[:-1], outer))


def _symbolic(s: Schedule, tensor: Tensor, target: Target) -> None:
    op = tensor.op
    assert isinstance(op, ComputeOp)
    outer, inner = s[tensor].split(op.axis[-1], factor=lanes_of(target, tensor.dtype))
    s[tensor].vectorize(inner)
    s[tensor].parallel(s[tensor].fuse(*op.axis[:-1], outer) if len(op.axis) > 1 else outer)
