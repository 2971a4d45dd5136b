"""Which variables a program takes from outside."""

from __future__ import annotations

from collections.abc import Iterable

from ..expr import PrimExpr, Var
from ..scopes import buffer_vars, parts, uses
from ..stmt import Stmt


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
            # A statement that defines the pointer mentions the buffer before it has one.
            used = buffer_vars(buffer) if buffer.data in own.defines else [buffer.data, *buffer_vars(buffer)]
            found.update(dict.fromkeys(v for v in used if not live.get(v)))
        use(own.exprs)
        for var in own.defines:
            live[var] = live.get(var, 0) + 1
        for buffer in own.inner_buffers:
            found.update(dict.fromkeys(v for v in (buffer.data, *buffer_vars(buffer)) if not live.get(v)))
        use(own.inner_exprs)
        stack.append(own.defines)
        stack.extend(reversed(own.bodies))
    return list(found)


def expr_deep_equal(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """True if both are the same expression of the same variables."""
    return lhs is rhs
