"""Branches that differ between lanes as predicates of the loads and stores under them.

`if base + lane < limit: B[ramp] = A[ramp]` becomes accesses with `get_active_lane_mask(base, limit)`. That needs a
condition of this form, no else, and accesses to neighbouring elements only: all else would happen in lanes that are off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ...tir.arithmetic import is_const_int
from ...tir.expr import LT, Broadcast, BufferLoad, Call, PrimExpr, Ramp
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import Node, post_order_rewrite, walk
from ...tir.stmt import BufferStore, IfThenElse, Stmt
from .vector_lanes import widened

if TYPE_CHECKING:
    from .vector_body import VectorBody


def predicated(body: VectorBody, stmt: IfThenElse, condition: PrimExpr, lanes: Any) -> Stmt | None:
    """The branch as predicated accesses, or None where that can't be. `condition` is that of `stmt`, as a vector."""
    if stmt.else_case is not None or not isinstance(condition, LT):
        return None
    ramp, limit = condition.a, condition.b
    if not isinstance(ramp, Ramp) or not isinstance(limit, Broadcast) or not is_const_int(ramp.stride, 1):
        return None
    mask = Call(widened("bool", ramp.dtype), "tir.get_active_lane_mask", (ramp.base, limit.value))
    result = body.stmt(stmt.then_case)
    accesses = [node for node in walk(result) if isinstance(node, (BufferLoad, BufferStore))]
    if not all(_is_run(access.indices[-1]) and access.predicate is None for access in accesses):
        return None
    if any(isinstance(node, Call) and not _is_pure(node.op) for node in walk(result)):
        return None

    def masked(node: Node) -> Node | None:
        return cast(Node, replace(cast(Any, node), predicate=mask)) if isinstance(node, (BufferLoad, BufferStore)) else None

    return post_order_rewrite(result, masked)


def _is_run(index: PrimExpr) -> bool:
    """True for neighbouring elements, which is what lanes that are on and off pick from."""
    return isinstance(index, Ramp) and is_const_int(index.stride, 1)


def _is_pure(op: str) -> bool:
    row = INTRINSICS.get(op)
    return row is not None and row.pure
