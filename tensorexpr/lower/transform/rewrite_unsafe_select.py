"""Selects whose arms may not both be evaluated, as `if_then_else`."""

from __future__ import annotations

from ...tir.expr import BufferLoad, Call, PrimExpr, Select
from ...tir.intrin import INTRINSICS, if_then_else
from ...tir.rewriting import Node, post_order_rewrite
from ..passes import Pass
from ..rebuild import operands


def RewriteUnsafeSelect() -> Pass:
    """`Select` of arms that may fault (loads, calls with effects) as `if_then_else`."""
    return Pass("tir.RewriteUnsafeSelect", lambda func, ctx: func.with_body(post_order_rewrite(func.body, _rule)))


def _rule(node: Node) -> Node | None:
    if not isinstance(node, Select) or node.condition.dtype != "bool":
        return None
    if not unsafe(node.true_value) and not unsafe(node.false_value):
        return None
    return if_then_else(node.condition, node.true_value, node.false_value)


def unsafe(expr: PrimExpr) -> bool:
    """True if evaluating `expr` where it isn't wanted may do harm."""
    if isinstance(expr, BufferLoad):
        return True
    if isinstance(expr, Call):
        if expr.op == "tir.if_then_else":
            return unsafe(expr.args[0])
        if expr.op == "tir.address_of":
            return False
        return not _pure(expr.op) or any(map(unsafe, expr.args))
    if isinstance(expr, Select):
        return unsafe(expr.condition)
    return any(map(unsafe, operands(expr)))


def _pure(op: str) -> bool:
    row = INTRINSICS.get(op)
    return row is not None and row.pure
