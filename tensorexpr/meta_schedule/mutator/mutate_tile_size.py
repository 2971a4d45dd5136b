"""`MutateTileSize`: a factor moves from one level of a tiling to another."""

from __future__ import annotations

import random
from math import prod
from typing import Any

from ...schedule.blocks import Instruction, Trace
from ...schedule.tilings import divisors
from .mutator import PyMutator

_TILES = ("SamplePerfectTile", "SamplePartitionedTile")


class MutateTileSize(PyMutator):
    """Picks a tiling and moves a divisor of one of its factors to another; the innermost stays within its limit."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with one tiling changed; None if no tiling can be."""
        rng = random.Random(None if rand_state < 0 else rand_state)
        tilings = [inst for inst in trace.insts if inst.kind in _TILES and prod(trace.decisions.get(inst, [1])) > 1]
        rng.shuffle(tilings)
        for inst in tilings:
            moved = _moved(rng, list(trace.decisions[inst]), _limit(inst))
            if moved is not None:
                return trace.with_decision(inst, moved, remove_postproc=True)
        return None


def _limit(inst: Instruction) -> int:
    """The largest innermost factor; 0 for none."""
    return max(0, int(inst.attrs[1])) if inst.kind == "SamplePerfectTile" else 0


def _moved(rng: random.Random, factors: list[int], limit: int) -> Any:
    """The factors after a move; None if there is none within the limit."""
    moves = [
        (source, sink, divisor)
        for source, own in enumerate(factors)
        for divisor in divisors(own)[1:]
        for sink in range(len(factors))
        if sink != source and (sink != len(factors) - 1 or not limit or factors[sink] * divisor <= limit)
    ]
    if not moves:
        return None
    source, sink, divisor = rng.choice(moves)
    factors[source] //= divisor
    factors[sink] *= divisor
    return factors
