"""Mutators of one sampled decision: tile sizes, steps to unroll, numbers of threads, places."""

from __future__ import annotations

import random
from math import prod
from typing import Any

from ...schedule.blocks import Instruction, Trace
from ...schedule.tilings import divisors
from ..schedule_rule.parallelize_vectorize_unroll import UNROLL_EXPLICIT, UNROLL_IMPLICIT
from .mutator import PyMutator

_TILES = ("SamplePerfectTile", "SamplePartitionedTile")


class MutateTileSize(PyMutator):
    """Picks a tiling and moves a divisor of one of its factors to another; the innermost stays within its limit."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with one tiling changed; None if no tiling can be."""
        rng = random.Random(None if rand_state < 0 else rand_state)
        # a loop of one iteration has one tiling
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
        # but for 1, which moves nothing
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
