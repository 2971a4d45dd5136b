"""Compute at, reverse compute at: a block inside a loop of those that read, or write, the same buffers.

for i, j in T.grid(128, 128): B: vi = i, vj = j            for i in range(128)
for i, j in T.grid(128, 128): C: vi = i, vj = j     ->         for ax0 in range(128): B: vi = i, vj = ax0
                                                               for j in range(128): C: vi = i, vj = j

Within one iteration of the loop, compute_at makes what the consumers there read; reverse_compute_at uses what the producers
there write. Where that passes the range of an axis, a predicate keeps the block from running.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....tir.expr import Var
from ..coverage import why_not_covered
from ..dataflow import why_beyond_domain, why_not_whole
from ..handles import INLINE, NoLoop
from ..instruction import Applied, Primitive, State, block_of, loop_of
from ..moving import LAST_PLACE, Move
from ..program import BlockProgram
from .compute_inline import check_no_output, compute_inline
from .reverse_compute_inline import reverse_compute_inline


def compute_at(program: BlockProgram, name: str, loop_var: Var, preserve_unit_loops: bool = False, index: int = LAST_PLACE) -> BlockProgram:
    """The program with a block computed in a loop of its consumers, for what they read there."""
    check_no_output(program, program.block_node(name), "compute_at")
    move = Move.of(program, name, loop_var, "compute_at", forward=True)
    # The new loops follow from the ranges of the axes alone: a point that a predicate leaves out would run there.
    reason = why_beyond_domain(move.realize, program.loops_above(move.node))
    if reason is not None:
        raise move.refused(reason)
    return move.done(index, preserve_unit_loops)


def reverse_compute_at(
    program: BlockProgram, name: str, loop_var: Var, preserve_unit_loops: bool = False, index: int = LAST_PLACE
) -> BlockProgram:
    """The program with a block computed in a loop of its producers, on what they write there."""
    move = Move.of(program, name, loop_var, "reverse_compute_at", forward=False)
    reduces = move.realize.block.init is not None
    reason = why_not_whole(move.realize, program.loops_above(move.node), once=reduces)
    if reason is not None:
        raise move.refused(f"it doesn't run at each point of its axes now ({reason})")
    for producer in move.partners:
        lacking = why_not_covered(program, program.node_of(producer), move.node)
        if lacking is not None:
            raise move.refused(f"where it runs isn't told by what is written: {lacking}")
    made = move.done(index, preserve_unit_loops)
    node = made.block_node(name)
    # a sum takes each term once; what else writes an element again writes the same
    again = why_not_whole(made.realize(name), made.loops_above(node), once=True) if reduces else None
    if again is not None:
        raise move.refused(f"it would reduce an element more than once ({again})")
    return made


class ComputeAt(Primitive):
    """The instruction."""

    kind, method = "ComputeAt", "compute_at"
    inputs, attrs = ("block", "loop"), ("preserve_unit_loops", "index")
    _move, _inline = staticmethod(compute_at), staticmethod(compute_inline)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The block at the loop, inlined for the place `inline`, and where it was for the root."""
        ref = block_of(state, inputs[0], self.method)
        program = state.program_of(ref)
        if isinstance(inputs[1], NoLoop):
            return Applied(state.updated(ref.func, self._inline(program, ref.name)) if inputs[1].place == INLINE else state)
        loop = loop_of(inputs[1], self.method, ref.func).var
        return Applied(state.updated(ref.func, self._move(program, ref.name, loop, bool(attrs[0]), int(attrs[1]))))


class ReverseComputeAt(ComputeAt):
    """The instruction; for the place `inline` the block goes into its producer."""

    kind, method = "ReverseComputeAt", "reverse_compute_at"
    _move, _inline = staticmethod(reverse_compute_at), staticmethod(reverse_compute_inline)
