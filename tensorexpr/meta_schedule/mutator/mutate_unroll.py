"""`MutateUnroll`: another number of steps to unroll."""

from __future__ import annotations

import random

from ...schedule.blocks import Instruction, Trace
from ..schedule_rule.parallelize_vectorize_unroll import UNROLL_EXPLICIT, UNROLL_IMPLICIT
from .mutator import PyMutator


class MutateUnroll(PyMutator):
    """Draws the sampled number of steps anew, by its probabilities."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with another number; None if none is sampled, or there is no other."""
        rng = random.Random(None if rand_state < 0 else rand_state)
        made_by = {output: inst for inst in trace.insts if inst.kind == "SampleCategorical" for output in inst.outputs}
        samples = [
            made_by[inst.inputs[1]]
            for inst in trace.insts
            if inst.kind == "Annotate" and inst.attrs[0] in (UNROLL_EXPLICIT, UNROLL_IMPLICIT) and inst.inputs[1] in made_by
        ]
        if not samples:
            return None
        return redrawn(trace, rng.choice(samples), rng)


def redrawn(trace: Trace, inst: Instruction, rng: random.Random) -> Trace | None:
    """A trace with another choice of a categorical sample, drawn by its probabilities; None if there is no other."""
    _, probs = inst.attrs
    others = [place for place in range(len(probs)) if place != trace.decisions.get(inst) and probs[place] > 0]
    if not others:
        return None
    choice = rng.choices(others, [probs[place] for place in others])[0]
    return trace.with_decision(inst, choice, remove_postproc=True)
