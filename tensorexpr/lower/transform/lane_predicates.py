"""Branches that differ between lanes as predicates of the loads and stores under them.

`if base + lane < limit: B[ramp] = A[ramp]` becomes accesses with `get_active_lane_mask(base, limit)`. That needs a
condition of this form, no else, and vector accesses only: whatever else happens would happen in lanes that are off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ...tir.expr import LT, Broadcast, BufferLoad, Call, PrimExpr, Ramp
from ...tir.rewriting import Node, post_order_rewrite, walk
from ...tir.stmt import BufferStore, IfThenElse, SeqStmt, Stmt
from .vector_lanes import is_vector, widened

if TYPE_CHECKING:
    from .vector_body import VectorBody


def predicated(body: VectorBody, stmt: IfThenElse, condition: PrimExpr, lanes: Any) -> Stmt | None:
    """The branch as predicated accesses, or None where that can't be. `condition` is that of `stmt`, as a vector."""
    if stmt.else_case is not None or not isinstance(condition, LT):
        return None
    ramp, limit = condition.a, condition.b
    if not isinstance(ramp, Ramp) or not isinstance(limit, Broadcast) or str(ramp.stride) not in ("1", "T.int64(1)"):
        return None
    if not all(isinstance(part, BufferStore) for part in _parts(stmt.then_case)):
        return None
    mask = Call(widened("bool", ramp.dtype), "tir.get_active_lane_mask", (ramp.base, limit.value))
    result = body.stmt(stmt.then_case)
    accesses = [node for node in walk(result) if isinstance(node, (BufferLoad, BufferStore))]
    if not all(is_vector(access.indices[-1]) and access.predicate is None for access in accesses):
        return None

    def masked(node: Node) -> Node | None:
        return cast(Node, replace(cast(Any, node), predicate=mask)) if isinstance(node, (BufferLoad, BufferStore)) else None

    return post_order_rewrite(result, masked)


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    return stmt.seq if isinstance(stmt, SeqStmt) else (stmt,)
