"""`MutateParallel`: another bound on the iterations of parallel loops, so that more or fewer loops are fused."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...errors import TuningError
from ...schedule.blocks import Instruction, Schedule, Trace
from ...tir.arithmetic import as_int
from ...tir.function import IRModule
from ..postproc.blocks import has_root
from ..postproc.rewrite_parallel_vectorize_unroll import parallel_products
from ..schedule_rule.parallelize_vectorize_unroll import PARALLEL
from ..tune_context import TuneContext
from .mutator import PyMutator


class MutateParallel(PyMutator):
    """Replaces the bound in the root's annotation by one that fuses another number of loops of some block.

    Bounds are numbers of iterations that outer loops of a block have when they are fused, up to `max_jobs_per_core` for each core.

    Args:
        max_jobs_per_core: iterations for each core, at most.
    """

    def __init__(self, max_jobs_per_core: int) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self._cores = 1
        self._mod: IRModule | None = None

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's program and number of cores."""
        self._cores = context.target.num_cores
        self._mod = context.mod

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with another bound; None if there is none to replace, or no other.

        Raises:
            TuningError: if it was told of no task: which bounds differ is a matter of the program.
        """
        rng = random.Random(None if rand_state < 0 else rand_state)
        kept = trace.kept(remove_postproc=True)
        asking = [inst for inst in kept if inst.kind == "Annotate" and inst.attrs[0] == PARALLEL]
        if not asking:
            return None
        old = rng.choice(asking)
        limits = self._other_limits(trace, as_int(old.inputs[1]) or 0)
        if not limits:
            return None
        new = Instruction(old.kind, (old.inputs[0], rng.choice(limits)), old.attrs, old.outputs)
        insts = [new if inst is old else inst for inst in kept]
        return Trace(insts, {inst: value for inst, value in trace.decisions.items() if inst in set(insts)})

    def _other_limits(self, trace: Trace, now: int) -> list[int]:
        """The bounds that make other plans than the present one, one for each plan."""
        if self._mod is None:
            raise TuningError("MutateParallel works for a TuneContext with a program; pass it in mutator_probs of its space_generator")
        sch = Schedule(self._mod)
        # postprocessing would take the annotation away and fuse the loops already
        trace.apply_to_schedule(sch, remove_postproc=True)
        products = _products(sch)
        most = self._cores * self.max_jobs_per_core
        plans = {_plan(products, now)}
        found = []
        for limit in sorted({product for block in products for product in block if product <= most}):
            if _plan(products, limit) not in plans:
                plans.add(_plan(products, limit))
                found.append(limit)
        return found


def _products(sch: Schedule) -> list[list[int]]:
    """For each block below a root, the iterations of its outer loops when one, two and more of them are fused."""
    roots = [sch.get_block("root", var.name_hint) for var in sch.mod.get_global_vars() if has_root(sch, var.name_hint)]
    return [parallel_products(sch, block) for root in roots for block in sch.get_child_blocks(root)]


def _plan(products: Sequence[Sequence[int]], limit: int) -> tuple[int, ...]:
    """How many loops of each block a bound fuses: up to the first that make as many iterations."""
    return tuple(min(len(block), 1 + sum(product < limit for product in block)) for block in products)
