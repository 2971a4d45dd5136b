"""Add a unit loop: one more loop, of one iteration, around a block or loop.

with T.block("C"): ...   ->   for u in range(1):
                                  with T.block("C"): ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....tir.expr import IntImm, Var
from ....tir.stmt import For, ForKind
from ..diagnostics import PrimitiveError
from ..handles import LoopRef
from ..instruction import Applied, Primitive, State
from ..program import BlockProgram, Node
from .queries import place_of


def add_unit_loop(program: BlockProgram, node: Node) -> tuple[BlockProgram, Var]:
    """The program with a loop of one iteration around a loop or block, and its variable."""
    if node is program.root:
        raise PrimitiveError("add_unit_loop: no loop can stand around the root block; give a block or loop inside of it", node.stmt)
    var = Var("u", "int32")
    made = For(var, IntImm("int32", 0), IntImm("int32", 1), ForKind.SERIAL, node.stmt)
    return program.replace(node.stmt, made), var


class AddUnitLoop(Primitive):
    """The instruction."""

    kind, method, output, inputs = "AddUnitLoop", "add_unit_loop", "loop", ("block_or_loop",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref, node = place_of(state, inputs[0], self.method)
        program, var = add_unit_loop(state.program_of(ref), node)
        return Applied(state.updated(ref.func, program), (LoopRef(ref.func, var),))
