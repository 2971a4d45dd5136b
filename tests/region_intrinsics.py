"""Intrinsics made to measure: what the innermost loop of a stage computes, described over inputs of just the elements it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensorexpr import te, tir
from tensorexpr.arith import linear_form
from tensorexpr.schedule.tree import ScheduleTree, SplitRelation, StageNode
from tensorexpr.te.operation import ComputeOp, loads
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.rewriting import Node, post_order_rewrite, variables
from tests.intrinsics import loop_intrin


def innermost(tree: ScheduleTree, stage: StageNode) -> tuple[int, int] | None:
    """The root axis that the innermost loop of a stage runs along, one element at a time, and how many it takes."""
    if not stage.leaf or not isinstance(stage.op, ComputeOp) or stage.is_reduction(stage.leaf[-1]):
        return None
    axis, extent = stage.leaf[-1], None
    while axis not in stage.spatial:
        relation = next((r for r in stage.relations if isinstance(r, SplitRelation) and r.parts[-1] == axis and not r.balanced), None)
        if relation is None or relation.factors[-1] is None:
            return None
        extent = extent if extent is not None else as_int(relation.factors[-1])
        axis = relation.parent
    dom = stage.axes[axis].dom
    extent = extent if extent is not None or dom is None else as_int(dom.extent)
    return None if extent is None or extent < 2 else (axis, extent)


def made_to_measure(stage: StageNode, root: int, extent: int) -> te.TensorIntrin | None:
    """The intrinsic of `extent` neighbours along a root axis, or None where the definition isn't that simple."""
    op, along = stage.compute, stage.axes[root].var
    if len(op.body) > 1:
        return None
    k = te.reduce_axis((0, 1), name="k")
    inputs: dict[Any, tuple[Tensor, tuple[Any, ...]]] = {}
    for load in loads(op):
        forms = [linear_form(index) for index in load.indices]
        moving = [along in variables(index) for index in load.indices]
        if not forms or any(
            m and (f.coefficient_of(along) != 1 or sum(along in variables(t) for t in f.terms) > 1)
            for m, f in zip(moving, forms, strict=True)
        ):
            return None
        first = moving.index(True) if any(moving) else len(moving) - 1
        shape = tuple(extent if m else 1 for m in moving[first:])
        inputs[load] = te.placeholder(shape, load.dtype, name=f"x{len(inputs)}"), tuple(moving[first:])

    def described(at: Any) -> Any:
        def rule(node: Node) -> Node | None:
            if node in inputs:
                tensor, moves = inputs[node]
                return tir.ProducerLoad(tensor, tuple(at.var if m else tir.IntImm("int32", 0) for m in moves))
            return None

        body = post_order_rewrite(op.body[0], rule)
        return replace(body, axis=(k,), init=()) if isinstance(body, tir.Reduce) else body

    own = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    body = described(te.reduce_axis((0, extent), name="i"))
    remaining = body.source[0] if isinstance(body, tir.Reduce) else body
    if variables(remaining) & own != set() or (isinstance(body, tir.Reduce) and variables(body.condition) & own):
        return None
    out = te.compute((extent,), lambda i: described(_Axis(i)), name="y")
    return loop_intrin(out, "made_to_measure", "body init update")


class _Axis:
    def __init__(self, var: Any) -> None:
        self.var = var


__all__ = ["innermost", "made_to_measure"]
