"""Quotients and remainders of split loops in one form, that of an outer index, whatever order they were split and fused in.

    (i*4 + j) // 32          ->  (i + j // 4) // 8
    (i*4 + j) % 16 // 4      ->  (i + j // 4) % 4
    i*4 + j < 32             ->  (i + j // 4) // 8 < 1

Where `j < 4`, what is left of it is then zero to whoever knows that.
"""

from __future__ import annotations

from ...arith.facts import Facts
from ...arith.laws.pattern import Law, laws
from ...tir.arithmetic import const
from ...tir.expr import GE, GT, LE, LT, FloorDiv, IntImm, PrimExpr
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import Stmt
from ..passes import Pass
from ..rebuild import map_stmt

_LAWS: tuple[Law, ...] = laws("""
(x*c1 + y) // c2 -> x*(c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
((x*c1 + y) + z) // c2 -> x*(c1 // c2) + (y + z) // c2 if c2 > 0 and c1 % c2 == 0
(x*c1 + y) // c2 -> (x + y // c1) // (c2 // c1) if c1 > 0 and c2 > c1 and c2 % c1 == 0
((x*c1 + y) + z) // c2 -> (x + (y + z) // c1) // (c2 // c1) if c1 > 0 and c2 > c1 and c2 % c1 == 0
(x % c1) // c2 -> (x // c2) % (c1 // c2) if c2 > 0 and c1 > 0 and c1 % c2 == 0
""")
_NOTHING = Facts()


def RenormalizeSplitPattern() -> Pass:
    """Floored quotients, and comparisons with constants, by the outermost index that decides them."""

    def expr(root: PrimExpr) -> PrimExpr:
        return post_order_rewrite(root, _renormalized)

    def stmt(root: Stmt) -> Stmt:
        return map_stmt(root, stmt, expr)

    return Pass("tir.RenormalizeSplitPattern", lambda func, ctx: func.with_body(stmt(func.body)))


def _renormalized(node: Node) -> Node | None:
    """The node in its new form, operands done already; None if it has that."""
    match node:
        case FloorDiv():
            found = _quotient(node.a, node.b)
            return None if found is node else found
        case LT(a, IntImm(_, limit) as b) if limit > 1:
            return LT(_quotient(a, b), const(1, a.dtype))
        case GE(a, IntImm(_, limit) as b) | LE(IntImm(_, limit) as b, a) if limit > 1:
            return LE(const(1, a.dtype), _quotient(a, b))
        case GT(IntImm(_, limit) as b, a) if limit > 1:
            return LT(_quotient(a, b), const(1, a.dtype))
    return None


def _quotient(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """`a // b` by the first law that applies, and so on inside."""
    node = FloorDiv(a, b)
    for law in _LAWS:
        found = law.apply(_NOTHING, node, lambda facts, condition: False)
        if found is not None:
            return post_order_rewrite(found, _renormalized)
    return node
