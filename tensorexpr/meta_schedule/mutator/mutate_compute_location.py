"""`MutateComputeLocation`: another place for a block that was placed at random."""

from __future__ import annotations

import random

from ...schedule.blocks import Trace
from .mutator import PyMutator


class MutateComputeLocation(PyMutator):
    """Opens one sampled place again: the replay draws it among those that are legal there."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with one place open; None if none was sampled."""
        rng = random.Random(None if rand_state < 0 else rand_state)
        kept = trace.kept(remove_postproc=True)
        places = [inst for inst in kept if inst.kind == "SampleComputeLocation" and inst in trace.decisions]
        if not places:
            return None
        chosen = rng.choice(places)
        return Trace(kept, {inst: trace.decisions[inst] for inst in kept if inst in trace.decisions and inst is not chosen})
