"""How much a program computes."""

from __future__ import annotations

from ...errors import DeclarationError
from ..block import Block, BlockRealize
from ..dtype import parse_dtype
from ..expr import BinaryExpr, BufferLoad, Call, IntImm, PrimExpr, Select
from ..function import IRModule, PrimFunc
from ..rewriting import children
from ..scopes import parts
from ..stmt import BufferStore, For, IfThenElse, Stmt


def estimate_tir_flops(stmt_or_mod: Stmt | PrimFunc | IRModule) -> float:
    """The number of arithmetic operations on values: index arithmetic, comparisons and casts are free.

    Of two branches the costlier one counts. Calls count as their arguments.

    Raises:
        DeclarationError: if a loop's extent is not a constant.
    """
    if isinstance(stmt_or_mod, IRModule):
        return sum(estimate_tir_flops(func) for _, func in stmt_or_mod.functions_items())
    stmt = stmt_or_mod.body if isinstance(stmt_or_mod, PrimFunc) else stmt_or_mod
    results: list[float] = []
    stack: list[tuple[Stmt, bool]] = [(stmt, False)]
    while stack:
        current, done = stack.pop()
        bodies = parts(current).bodies
        if not done:
            stack.append((current, True))
            stack.extend((body, False) for body in bodies)
            continue
        # Popped last body first; sums and maxima don't mind.
        inner = [results.pop() for _ in bodies]
        results.append(_statement_flops(current, inner))
    return results[0]


def _statement_flops(stmt: Stmt, inner: list[float]) -> float:
    match stmt:
        case For():
            if not isinstance(stmt.extent, IntImm):
                raise DeclarationError(f"the operations of loop {stmt.loop_var.name} over {stmt.extent} can't be counted; bind the extent")
            return stmt.extent.value * sum(inner)
        case IfThenElse():
            return _value_flops(stmt.condition) + max(inner)
        case BufferStore():
            return _value_flops(stmt.value)
        case Block() | BlockRealize():  # their axes and regions are indices
            return sum(inner)
    return sum(inner) + sum(map(_value_flops, parts(stmt).exprs))


def _value_flops(expr: PrimExpr) -> float:
    """Operations of one evaluation, lanes counted one by one; shared subexpressions count as often as they occur."""
    costs: dict[PrimExpr, float] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        # Indices are free, so a load is a leaf.
        operands = [] if isinstance(node, BufferLoad) else [c for c in children(node) if isinstance(c, PrimExpr)]
        waiting = [operand for operand in operands if operand not in costs]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        costs[node] = _node_flops(node, [costs[operand] for operand in operands])
    return costs[expr]


def _node_flops(node: PrimExpr, operands: list[float]) -> float:
    if isinstance(node, Select) or (isinstance(node, Call) and node.op == "tir.if_then_else"):
        return operands[0] + max(operands[1:])
    return sum(operands) + (parse_dtype(node.dtype).lanes if isinstance(node, BinaryExpr) else 0)
