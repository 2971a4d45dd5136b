"""The loops of a scan: its first rows are copied from init, then a loop over time holds the stages that a step computes.

for t.init, i:  scan[t.init, i] = init[t.init, i]
for t:          (the step's stages; update stores into scan)
"""

from __future__ import annotations

from ...te.scan_op import ScanOp
from ...tir.arithmetic import is_const_int, minimum
from ...tir.buffer import Buffer
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import substitute
from ...tir.stmt import NOP, BufferStore, For, ForKind, Stmt, seq
from .loop_nest import LoopNest


def scan_nest(op: ScanOp, nest: LoopNest) -> Stmt:
    """The statements of a scan's stage.

    Args:
        op: the scan.
        nest: of its stage; the bodies are the elements of init, in terms of `op.init_axis` and the spatial axes.
    """
    rows = (
        _first_rows((_rows(op), *op.spatial_axes(i)), buffer, nest.bodies[i], nest.keep_trivial_loops)
        for i, buffer in enumerate(nest.buffers)
    )
    return seq(*rows, nest.wrap(NOP, nest.stage.leaf))


def _rows(op: ScanOp) -> IterVar:
    """The rows of init; a symbolic state may have fewer of them."""
    axis, end = op.init_axis, op.state_placeholder[0].shape[0]
    if axis.dom is None or (isinstance(axis.dom.extent, IntImm) and isinstance(end, IntImm)):
        return axis
    extent = minimum(axis.dom.extent, end)
    return IterVar(Range.from_min_extent(axis.dom.min, extent), axis.var, axis.iter_type)


def _first_rows(axes: tuple[IterVar, ...], buffer: Buffer, value: PrimExpr, keep_trivial_loops: bool) -> Stmt:
    fresh = {axis.var: Var(axis.name, axis.dtype) for axis in axes}
    values: dict[Var, PrimExpr] = {}
    for axis in axes:
        trivial = axis.dom is not None and is_const_int(axis.dom.extent, 1) and not keep_trivial_loops
        values[axis.var] = IntImm(axis.dtype, 0) if trivial else fresh[axis.var]
    stmt: Stmt = BufferStore(buffer, substitute(value, values), tuple(values[axis.var] for axis in axes))
    for axis in reversed(axes):
        if values[axis.var] is fresh[axis.var] and axis.dom is not None:
            stmt = For(fresh[axis.var], IntImm(axis.dtype, 0), axis.dom.extent, ForKind.SERIAL, stmt)
    return stmt
