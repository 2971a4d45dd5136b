"""Sample compute location: where to compute a block; a decision that compute_at takes as its loop.

The decision is -1 for where it stands, -2 for inlining it, else the number of a loop around its first consumer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ....dataclass import dataclass
from ....errors import ScheduleError
from ..handles import INLINE, LoopRef, NoLoop
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram, realized
from ..scope import Scope
from .compute_at import compute_at
from .compute_inline import compute_inline

STAY = -1  # TVM's number of the decision in traces


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


@dataclass(frozen=True)
class Places:
    """Where a block may be computed, by decisions. Each is tried only when it is asked for."""

    program: BlockProgram
    func: str
    name: str

    @cached_property
    def loops(self) -> list[LoopRef]:
        """The loops around the first consumer, outermost first."""
        node = self.program.block_node(self.name)
        consumers = [] if node is self.program.root else Scope.around(self.program, node).consumers(realized(node).block)
        around = self.program.loops_above(self.program.node_of(consumers[0])) if consumers else []
        return [LoopRef(self.func, loop.loop_var) for loop in around]

    def is_legal(self, decision: int) -> bool:
        """True if the block may be computed there."""
        if decision in (STAY, INLINE):
            return decision == STAY or can_compute_inline(self.program, self.name)
        return 0 <= decision < len(self.loops) and can_compute_at(self.program, self.name, self.loops[decision])

    def at(self, decision: int) -> LoopRef | NoLoop:
        """What a decision stands for."""
        return NoLoop(decision) if decision in (STAY, INLINE) else self.loops[decision]

    def drawn(self, rng: random.Random) -> int:
        """A legal decision, each as likely as another."""
        left: list[int] = [INLINE, STAY, *range(len(self.loops))]
        # ends, as STAY is always legal
        while True:
            decision = rng.choice(left)
            if self.is_legal(decision):
                return decision
            left.remove(decision)

    def nearest(self, decision: int) -> int:
        """A decision if it is legal, else the nearest legal loop further out, else where the block stands."""
        if decision < 0:
            return decision if decision == INLINE and self.is_legal(decision) else STAY
        return next((n for n in range(min(decision, len(self.loops) - 1), -1, -1) if self.is_legal(n)), STAY)


class SampleComputeLocation(Primitive):
    """The instruction. A decision for a loop that isn't legal here becomes the legal one before it."""

    kind, method, output = "SampleComputeLocation", "sample_compute_location", "loop"
    inputs, is_pure, is_sampling = ("block",), True, True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """A handle of the loop drawn, or of the nearest legal one before that of the decision; the state stays.

        Raises:
            ScheduleError: for a decision that is no int.
        """
        ref = block_of(state, inputs[0], self.method)
        if decision is not None and type(decision) is not int:
            raise ScheduleError(f"sample_compute_location: the decision is -2, -1 or the number of a loop, not {decision!r}")
        places = Places(state.program_of(ref), ref.func, ref.name)
        decision = places.drawn(state.rng) if decision is None else places.nearest(decision)
        return Applied(state, (places.at(decision),), decision)
