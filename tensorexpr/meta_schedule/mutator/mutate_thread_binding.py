"""`MutateThreadBinding`: another number of threads."""

from __future__ import annotations

import random

from ...schedule.blocks import Instruction, Trace
from .mutate_unroll import redrawn
from .mutator import PyMutator


class MutateThreadBinding(PyMutator):
    """Draws a sampled number of threads anew, by its probabilities: one that a split took whose inner loop runs over threadIdx.x."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with another number; None if none is sampled, or there is no other."""
        rng = random.Random(None if rand_state < 0 else rand_state)
        samples = _thread_samples(trace)
        return redrawn(trace, rng.choice(samples), rng) if samples else None


def _thread_samples(trace: Trace) -> list[Instruction]:
    """The samples whose number is that of threads."""
    bound = {inst.inputs[0] for inst in trace.insts if inst.kind == "Bind" and inst.attrs[0] == "threadIdx.x"}
    made_by = {output: inst for inst in trace.insts if inst.kind == "SampleCategorical" for output in inst.outputs}
    factors = [
        factor
        for inst in trace.insts
        if inst.kind == "Split"
        for factor, loop in zip(inst.inputs[1:], inst.outputs, strict=False)
        if loop in bound and factor in made_by
    ]
    return [made_by[factor] for factor in dict.fromkeys(factors)]
