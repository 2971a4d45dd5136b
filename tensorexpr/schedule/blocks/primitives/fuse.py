"""Fuse: a nest of loops into one.

for i, j in T.grid(4, 8)   ->   for i_j_fused in range(32)
    B: vi = i, vj = j               B: vi = i_j_fused // 8, vj = i_j_fused % 8
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from ....errors import ScheduleError
from ....tir.arithmetic import floordiv, floormod, is_const_int
from ....tir.expr import IntImm, PrimExpr, Var
from ....tir.rewriting import variables
from ....tir.stmt import For, ForKind
from ..bindings import rebound
from ..diagnostics import PrimitiveError, loop_name
from ..handles import LoopRef
from ..instruction import Applied, Primitive, State, loop_of
from ..program import BlockProgram
from .split import check_plain


def fuse(program: BlockProgram, names: Sequence[Var], preserve_unit_iters: bool = True) -> tuple[BlockProgram, Var]:
    """The program with loops, each directly in the one before, fused into one; and its variable."""
    loops = [program.loop(name) for name in names]
    for loop in loops:
        check_plain(loop, "fuse")
    for outer, inner in pairwise(loops):
        if outer.body is not inner:
            names_of = [loop_name(program, loop.loop_var) for loop in (inner, outer)]
            raise PrimitiveError(
                f"fuse takes loops of which each stands directly in the one before; {names_of[0]} doesn't in {names_of[1]}", outer, inner
            )
        if outer.loop_var in variables(inner.extent):
            raise PrimitiveError(f"fuse: the extent of {inner.loop_var.name} depends on {outer.loop_var.name}", inner)
    dtype = names[0].dtype
    odd = next((loop for loop in loops if loop.loop_var.dtype != dtype), None)
    if odd is not None:
        was, is_now = f"{names[0].name} is {dtype}", f"{odd.loop_var.name} {odd.loop_var.dtype}"
        raise PrimitiveError(f"fuse takes loops of one type, but {was} and {is_now}; write one extent as the other, as T.int64(16)", odd)
    fused = Var("_".join(name.name for name in names) + "_fused", dtype)
    values: dict[Var, PrimExpr] = {}
    below: PrimExpr = IntImm(dtype, 1)
    # From the innermost loop on, whose values change fastest; the outermost needs no remainder, as nothing is above it.
    for loop in reversed(loops):
        whole = loop.extent * below
        values[loop.loop_var] = floordiv(fused if loop is loops[0] else floormod(fused, whole), below)
        below = whole
    extent: PrimExpr = reduce(lambda a, b: a * b, [loop.extent for loop in loops])
    if is_const_int(extent, 1):  # its only value; TVM's axes name no such loop either
        values = dict.fromkeys(values, IntImm(dtype, 0))
    made = For(fused, IntImm(dtype, 0), extent, ForKind.SERIAL, loops[-1].body)
    around = [*program.loops_above(program.loop_node(names[0])), made]
    body = rebound(loops[-1].body, values, around, unit_loops=preserve_unit_iters)
    return program.replace(loops[0], For(fused, made.min, extent, ForKind.SERIAL, body)), fused


class Fuse(Primitive):
    """The instruction."""

    kind, method, output, inputs, attrs = "Fuse", "fuse", "loop", ("*loops",), ("preserve_unit_iters",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        refs = [loop_of(loop, "fuse") for loop in inputs]
        if not refs:
            raise ScheduleError("fuse takes at least one loop")
        program, fused = fuse(state.program_of(refs[0]), [ref.var for ref in refs], bool(attrs[0]))
        return Applied(state.updated(refs[0].func, program), (LoopRef(refs[0].func, fused),))
