"""Selections and the calls that work like them."""

from __future__ import annotations

from ...tir.expr import Call, IntImm, PrimExpr, Select


def select(facts: object, node: Select) -> PrimExpr | None:
    """select(c, x, x) -> x."""
    if isinstance(node.condition, IntImm):
        return node.true_value if node.condition.value else node.false_value
    return node.true_value if node.true_value is node.false_value else None


def call(facts: object, node: Call) -> PrimExpr | None:
    """if_then_else(c, x, x) -> x; likely(constant) -> constant."""
    if node.op == "tir.if_then_else":
        condition, true_value, false_value = node.args
        if isinstance(condition, IntImm):
            return true_value if condition.value else false_value
        return true_value if true_value is false_value else None
    if node.op == "tir.likely" and isinstance(node.args[0], IntImm):
        return node.args[0]
    return None
