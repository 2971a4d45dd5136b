"""Loops around statements: given ones, new ones from 0, copies with variables of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tir.arithmetic import const
from ...tir.expr import PrimExpr, Var
from ...tir.rewriting import substitute
from ...tir.stmt import For, ForKind, Stmt


def nested(loops: Sequence[For], body: Stmt) -> Stmt:
    """Loops, outermost first, around a body."""
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def looped(variables: Sequence[Var], extents: Sequence[PrimExpr], body: Stmt) -> Stmt:
    """Serial loops from 0 around a body, outermost first."""
    for var, extent in reversed(list(zip(variables, extents, strict=True))):
        body = For(var, const(0, var.dtype), extent, ForKind.SERIAL, body)
    return body


def renewed_loops(loops: Sequence[For], suffix: str = "", plain: bool = False) -> tuple[list[For], dict[Var, PrimExpr]]:
    """Loops over the same ranges with variables of their own, and these by the old ones.

    Args:
        loops: a nest, outermost first.
        suffix: of the new names.
        plain: the new loops are serial, without annotations.
    """
    values: dict[Var, PrimExpr] = {}
    made: list[For] = []
    for loop in loops:
        var = Var(f"{loop.loop_var.name}{suffix}", loop.loop_var.dtype)
        # an extent may depend on a loop further out, which is a copy too
        low, extent = substitute(loop.min, values), substitute(loop.extent, values)
        made.append(For(var, low, extent, ForKind.SERIAL, loop.body) if plain else replace(loop, loop_var=var, min=low, extent=extent))
        values[loop.loop_var] = var
    return made, values
