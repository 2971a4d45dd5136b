"""Reorder: loops of one nest in another order; loops that aren't named keep their places.

for i, j, k in T.grid(4, 8, 16)   -- reorder(k, i) ->   for k, j, i in T.grid(16, 8, 4)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ....errors import ScheduleError
from ....tir.expr import IterVar, Var
from ....tir.rewriting import variables
from ....tir.stmt import For
from ..affine import check_affine
from ..apart import is_private
from ..coverage import carried
from ..dataflow import check_unambiguous, why_ambiguous
from ..diagnostics import PrimitiveError, loop_name
from ..instruction import Applied, Primitive, State, loop_of
from ..nests import nested
from ..program import BlockProgram, Node, block_at, realized
from ..scope import Scope, is_update, written


def reorder(program: BlockProgram, names: Sequence[Var]) -> BlockProgram:
    """The program with loops in the order given."""
    if len(set(names)) != len(names):
        raise ScheduleError("reorder takes each loop once")
    chain = _chain(program, names)
    _check_blocks(program, chain)
    wanted = iter(names)
    order = [program.loop(next(wanted)) if loop.loop_var in set(names) else loop for loop in chain]
    bound: set[Var] = {loop.loop_var for loop in chain}
    for loop in order:
        bound.discard(loop.loop_var)
        # bound: the loops that are still to come, inside of this one
        late = (variables(loop.min) | variables(loop.extent)) & bound
        if late:
            raise PrimitiveError(
                f"reorder: the extent of {loop.loop_var.name} depends on {next(iter(late)).name}, which would stand inside", loop
            )
    return program.replace(chain[0], nested([replace(loop, body=chain[-1].body) for loop in order], chain[-1].body))


def _chain(program: BlockProgram, names: Sequence[Var]) -> list[For]:
    """The loops from the outermost to the innermost of those named, each directly in the one before."""
    deepest = max(names, key=lambda name: len(program.loops_above(program.loop_node(name))))
    node = program.loop_node(deepest)
    above = [*program.loops_above(node), program.loop(deepest)]
    places = [place for place, loop in enumerate(above) if loop.loop_var in set(names)]
    if len(places) != len(names):
        missing = next(name for name in names if all(loop.loop_var is not name for loop in above))
        away = loop_name(program, missing)
        raise PrimitiveError(f"reorder takes loops of one nest; {away} isn't around {deepest.name}", program.loop(missing))
    chain = above[places[0] :]
    for outer, inner in pairwise(chain):
        if outer.body is not inner:
            raise PrimitiveError(
                f"reorder: more than one statement stands in {outer.loop_var.name}, so what is inside can't go around it", outer
            )
    return chain


def _check_blocks(program: BlockProgram, chain: Sequence[For]) -> None:
    """The blocks below may run in any order, apart from axes that say they don't."""
    node = program.loop_node(chain[-1].loop_var)
    below_all = program.child_blocks(node)
    _check_carried(program, chain[-1], below_all)
    for below in below_all:
        realize = realized(below)
        odd = next((a for a in realize.block.iter_vars if a.iter_type not in (IterVar.DATA_PAR, IterVar.COMM_REDUCE)), None)
        if odd is not None or not realize.block.iter_vars:
            what = f"axis {odd.var.name} is neither spatial nor reduced" if odd is not None else "it has no axes"
            raise PrimitiveError(f"reorder: the iterations of {realize.block.name_hint} may not change their order: {what}", realize)
        scope = Scope.around(program, below)
        reason = scope.why_not_complete(realize.block)
        if reason is not None and not is_update(realize.block):
            raise PrimitiveError(f"reorder: the iterations of {realize.block.name_hint} may not change their order: {reason}", realize)
        if reason is not None:  # a complete block may be at a point twice: it writes the same again
            above = program.loops_above(below)
            check_affine(realize, above[above.index(chain[0]) :], "reorder")  # what is around all of them stays in order
        if why_ambiguous(realize.block) and not all(is_private(program, chain[-1], buffer) for buffer in written(realize.block)):
            check_unambiguous(realize, "reorder")


def _check_carried(program: BlockProgram, innermost: For, nodes: Sequence[Node]) -> None:
    """What a block reads of another one below was written in the same iteration."""
    for made, other, shared in carried(program, nodes):
        raise PrimitiveError(
            f"reorder: {block_at(other).name_hint} may read of {next(iter(shared)).name} what {block_at(made).name_hint} writes in "
            f"another iteration of {innermost.loop_var.name} or a loop around it, whose order matters so",
            innermost,
        )


class Reorder(Primitive):
    """The instruction."""

    kind, method, inputs = "Reorder", "reorder", ("*ordered_loops",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        refs = [loop_of(loop, "reorder") for loop in inputs]
        if not refs:  # as a list of loops that a program has made may be
            return Applied(state)
        program = reorder(state.program_of(refs[0]), [ref.var for ref in refs])
        return Applied(state.updated(refs[0].func, program))
