"""Selections, the calls that work like them, bindings, and the makers of vectors."""

from __future__ import annotations

from ...tir.expr import GE, GT, LE, LT, Broadcast, Call, IntImm, Let, Max, Min, Not, PrimExpr, Ramp, Select, Var
from ...tir.rewriting import substitute
from ..facts import Facts
from ..linear import is_scalar_int


def select(facts: Facts, node: Select) -> PrimExpr | None:
    """Rules of select(c, a, b); a vector's condition may be one bool for all lanes."""
    condition, a, b = node.condition, node.true_value, node.false_value
    if isinstance(condition, Broadcast):
        return Select(condition.value, a, b)  # select(broadcast(c), a, b) -> select(c, a, b)
    decided = _decided(condition, a, b)
    if decided is not None:
        return decided
    if isinstance(condition, Not):
        return Select(condition.a, b, a)  # select(not c, a, b) -> select(c, b, a)
    return _extremum(condition, a, b)


def _decided(condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """select(true, a, b) -> a; select(c, a, a) -> a; select(c, true, false) -> c."""
    if isinstance(condition, IntImm):
        return a if condition.value else b
    if a is b:
        return a
    if a.dtype == "bool" and isinstance(a, IntImm) and isinstance(b, IntImm):
        return condition if a.value else Not(condition)
    return None


def _extremum(condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """select(a < b, a, b) -> min(a, b) on integers."""
    if not isinstance(condition, (LT, LE, GT, GE)) or not is_scalar_int(a.dtype):
        return None
    lesser, greater = (condition.a, condition.b) if isinstance(condition, (LT, LE)) else (condition.b, condition.a)
    if lesser is a and greater is b:
        return Min(a, b)
    return Max(a, b) if lesser is b and greater is a else None


def call(facts: Facts, node: Call) -> PrimExpr | None:
    """if_then_else as select, one arm evaluated; likely(constant) -> constant, likely(likely(c)) -> likely(c)."""
    if node.op == "tir.if_then_else":
        return _decided(*node.args)
    if node.op == "tir.likely":
        inner = node.args[0]
        return inner if isinstance(inner, IntImm) or (isinstance(inner, Call) and inner.op == "tir.likely") else None
    return None


def let(facts: Facts, node: Let) -> PrimExpr | None:
    """let v = constant or variable in e -> e[v]."""
    if isinstance(node.value, (IntImm, Var)):
        return substitute(node.body, {node.var: node.value})
    return None


def ramp(facts: Facts, node: Ramp) -> PrimExpr | None:
    """ramp(b, 0, n) -> broadcast(b, n)."""
    if node.lanes == 1:
        return node.base
    return Broadcast(node.base, node.lanes) if isinstance(node.stride, IntImm) and node.stride.value == 0 else None


def broadcast(facts: Facts, node: Broadcast) -> PrimExpr | None:
    """broadcast(x, 1) -> x."""
    return node.value if node.lanes == 1 else None
