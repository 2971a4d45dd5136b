"""Axes of blocks are replaced by the values that they are bound to."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ...tir.block import Block, BlockRealize
from ...tir.expr import PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute as substitute_plain
from ...tir.stmt import Stmt
from ...tir.stmt_functor import substitute
from ..context import PassContext
from ..rebuild import map_stmt
from .blocks import has_blocks


def convert_blocks_to_opaque(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with blocks that have no axes; everything in them is in terms of the loops."""
    if not has_blocks(func):
        return func
    bound: dict[Var, PrimExpr] = {}

    def rewrite(stmt: Stmt) -> Stmt:
        """Blocks from the outside to the inside, so that a binding is in terms of loops when it is noted."""
        if not isinstance(stmt, BlockRealize):
            return map_stmt(stmt, rewrite)
        for axis, value in zip(stmt.block.iter_vars, stmt.iter_values, strict=True):
            bound[axis.var] = substitute_plain(value, bound)
        block = map_stmt(replace(stmt.block, iter_vars=()), rewrite)
        return BlockRealize((), stmt.predicate, cast(Block, block))

    opaque = rewrite(func.body)
    return func.with_body(substitute(opaque, bound))
