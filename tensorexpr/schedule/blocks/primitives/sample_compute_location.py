"""Sample compute location: where to compute a block; a decision that compute_at takes as its loop.

The decision is -1 for where it stands, -2 for inlining it, else the number of a loop around its first consumer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ....errors import ScheduleError
from ..dataflow import realized
from ..handles import LoopRef, NoLoop
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram
from ..scope import Scope
from .compute_at import compute_at
from .compute_inline import INLINE, compute_inline

STAY = -1


def can_compute_inline(program: BlockProgram, name: str) -> bool:
    """True if compute_inline is legal."""
    try:
        compute_inline(program, name)
    except ScheduleError:
        return False
    return True


def can_compute_at(program: BlockProgram, name: str, loop: LoopRef, preserve_unit_loops: bool = True) -> bool:
    """True if compute_at is legal."""
    try:
        compute_at(program, name, loop.var, preserve_unit_loops)
    except ScheduleError:
        return False
    return True


def compute_locations(program: BlockProgram, func: str, name: str) -> dict[int, LoopRef | NoLoop]:
    """All places where a block may be computed, by the decisions that stand for them, in their order."""
    found: dict[int, LoopRef | NoLoop] = {INLINE: NoLoop(INLINE)} if can_compute_inline(program, name) else {}
    found[STAY] = NoLoop(STAY)
    node = program.block_node(name)
    if node is program.root:
        return found
    consumers = Scope.around(program, node).consumers(realized(node).block)
    around = program.loops_above(program.node_of(consumers[0])) if consumers else []
    for number, loop in enumerate(around):
        ref = LoopRef(func, loop.loop_var)
        if can_compute_at(program, name, ref):
            found[number] = ref
    return found


class SampleComputeLocation(Primitive):
    """The instruction. A decision for a loop that isn't legal here becomes the legal one before it."""

    kind, method, output = "SampleComputeLocation", "sample_compute_location", "loop"
    inputs, is_pure, is_sampling = ("block",), True, True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        places = compute_locations(state.program_of(ref), ref.func, ref.name)
        known = sorted(places)
        if decision is None:
            decision = state.rng.choice(known)
        elif type(decision) is not int:
            raise ScheduleError(f"sample_compute_location: the decision is -2, -1 or the number of a loop, not {decision!r}")
        elif decision not in places:
            decision = known[bisect_right(known, decision) - 1] if decision > known[0] else STAY
        return Applied(state, (places[decision],), decision)
