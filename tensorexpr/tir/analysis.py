"""Questions about functions: what is undefined, how much is computed, how much is allocated."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import DeclarationError
from .dtype import parse_dtype
from .expr import BinaryExpr, BufferLoad, Call, IntImm, PrimExpr, Select, Var
from .function import IRModule, PrimFunc
from .rewriting import children
from .scopes import buffer_vars, parts, uses
from .stmt import Allocate, BufferRealize, BufferStore, For, IfThenElse, Stmt
from .verify import verify_ssa, verify_well_formed

__all__ = [
    "calculate_allocated_bytes",
    "estimate_tir_flops",
    "expr_deep_equal",
    "undefined_vars",
    "verify_ssa",
    "verify_well_formed",
]


def undefined_vars(node: Stmt | PrimExpr, defs: Iterable[Var] | None = None) -> list[Var]:
    """The variables that `node` uses outside the scope of a definition, each once, in order of use.

    Args:
        defs: variables that count as defined.
    """
    found: dict[Var, None] = {}
    live = dict.fromkeys(defs or (), 1)
    stack: list[Stmt | tuple[Var, ...]] = []

    def use(exprs: Iterable[PrimExpr]) -> None:
        for expr in exprs:
            variables, buffers = uses(expr)
            for buffer in buffers:
                variables += (buffer.data, *buffer_vars(buffer))
            found.update(dict.fromkeys(v for v in variables if not live.get(v)))

    if isinstance(node, PrimExpr):
        use((node,))
        return list(found)
    stack.append(node)
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            for var in current:
                live[var] -= 1
            continue
        own = parts(current)
        for buffer in own.buffers:
            used = buffer_vars(buffer) if buffer.data in own.defines else [buffer.data, *buffer_vars(buffer)]
            found.update(dict.fromkeys(v for v in used if not live.get(v)))
        use(own.exprs)
        for var in own.defines:
            live[var] = live.get(var, 0) + 1
        stack.append(own.defines)
        stack.extend(reversed(own.bodies))
    return list(found)


def expr_deep_equal(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """True if both are the same expression of the same variables."""
    return lhs is rhs


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
    return sum(inner) + sum(map(_value_flops, parts(stmt).exprs))


def _value_flops(expr: PrimExpr) -> float:
    """Operations of one evaluation, lanes counted one by one; shared subexpressions count as often as they occur."""
    costs: dict[PrimExpr, float] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
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


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """By function and storage scope, the most bytes that are allocated at one time; sizes that aren't constant are left out."""
    if isinstance(func_or_mod, IRModule):
        return {var.name_hint: _peaks(func.body) for var, func in func_or_mod.functions_items()}
    return {str(func_or_mod.attrs.get("global_symbol", "main")): _peaks(func_or_mod.body)}


def _peaks(body: Stmt) -> dict[str, int]:
    now: dict[str, int] = {}
    peak: dict[str, int] = {}
    stack: list[Stmt | tuple[str, int]] = [body]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            now[current[0]] -= current[1]
            continue
        if isinstance(current, (Allocate, BufferRealize)):
            scope, size = _allocation(current)
            now[scope] = now.get(scope, 0) + size
            peak[scope] = max(peak.get(scope, 0), now[scope])
            stack.append((scope, size))
        stack.extend(reversed(parts(current).bodies))
    return peak


def _allocation(stmt: Allocate | BufferRealize) -> tuple[str, int]:
    """Scope and bytes of one allocation."""
    if isinstance(stmt, Allocate):
        var, dtype, extents = stmt.buffer_var, parse_dtype(stmt.dtype), stmt.extents
    else:
        var, dtype, extents = stmt.buffer.data, parse_dtype(stmt.buffer.dtype), tuple(r.extent for r in stmt.bounds)
    size = dtype.itemsize * dtype.lanes
    for extent in extents:
        size *= extent.value if isinstance(extent, IntImm) else 0
    return (var.type_annotation.storage_scope if var.type_annotation else "global"), size
