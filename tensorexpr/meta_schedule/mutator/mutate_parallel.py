"""`MutateParallel`: another bound on the iterations of parallel loops, so that more or fewer loops are fused."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ...schedule.blocks import Instruction, Trace
from ..schedule_rule.parallelize_vectorize_unroll import PARALLEL
from .mutator import PyMutator

if TYPE_CHECKING:
    from ..tune_context import TuneContext


class MutateParallel(PyMutator):
    """Replaces the bound in the root's annotation by another power of two, up to `max_jobs_per_core` for each core.

    Args:
        max_jobs_per_core: iterations for each core, at most.
    """

    def __init__(self, max_jobs_per_core: int) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self._cores = 1

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's number of cores."""
        self._cores = context.target.num_cores

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with another bound; None if there is none to replace."""
        rng = random.Random(None if rand_state < 0 else rand_state)
        kept = trace.kept(remove_postproc=True)
        asking = [place for place, inst in enumerate(kept) if inst.kind == "Annotate" and inst.attrs[0] == PARALLEL]
        if not asking:
            return None
        place = rng.choice(asking)
        old = kept[place]
        limits = [1 << n for n in range((self._cores * self.max_jobs_per_core).bit_length()) if 1 << n != old.inputs[1]]
        if not limits:
            return None
        new = Instruction(old.kind, (old.inputs[0], rng.choice(limits)), old.attrs, old.outputs)
        insts = [new if inst is old else inst for inst in kept]
        return Trace(insts, {inst: value for inst, value in trace.decisions.items() if inst in set(insts)})
