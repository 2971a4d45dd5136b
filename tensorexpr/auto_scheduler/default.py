"""A good schedule without measuring anything: the plan, unless the analytic model finds much better among all sketches' programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..dataclass import dataclass
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..spaces.default import default_schedule as by_rules
from ..spaces.gpu import is_gpu
from ..target import Target, TargetLike
from ..te.extern import ExternOp
from ..te.operation import ComputeOp
from ..te.scan_op import ScanOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tune.cost_model import PriorModel
from ..tune.evolution import Candidate, EvolutionOptions, evolve, preferred
from ..tune.learning import Learner
from ..tune.space import Sketch
from ..tune.trial import TunerObserver
from .compute_dag import ComputeDAG
from .limits import least_cycles
from .sketch.generate import generate_sketches, planned_sketch
from .sketch.rule import RuleOptions

# Enough to see most tiles of each sketch, and a few moves away from the best; below a second for the operators of networks.
_SEARCH = EvolutionOptions(population=1024, generations=2)
_SEED = 0
# Each sketch takes 0.1 s to make and to count, and of several products there are hundreds: enough to see one that is much better.
_FEW_SKETCHES = 8
# Plans were measured, and the model is off by as much where terms are left out or rows share cache sets: what is to replace one
# has to promise more than that.
_WORTH_LEAVING_A_PLAN = 4.0
# Cycles below which a search of seconds is for plans alone that are far from the limit: of 170 programs drawn at random it left none that
# was within 16 times of the roofline, but one of 8 million cycles.
_SHORT, _FAR = 1e6, 16.0


@dataclass(frozen=True, eq=False)
class Ranked:
    """Programs of a computation, the most promising first, with what the analytic model says of each: the negative log of its cycles."""

    sketches: Sequence[Sketch]
    candidates: Sequence[Candidate]

    def trace(self, place: int) -> Trace:
        """The program at a place of the ranking."""
        candidate = self.candidates[place]
        return self.sketches[candidate.sketch].trace_of(candidate.row)


def default_schedule(dag: ComputeDAG | Sequence[Tensor], target: TargetLike | None = None) -> Schedule:
    """The plan that rules make, or what the analytic model likes much better, in a second as a rule. The same computation always
    gets the same one.

    What isn't searched (symbolic shapes, recurrences, statements written by hand) has the plan alone.

    Args:
        dag: the computation, or its tensors, inputs and outputs.
        target: what it will run on; by default the current target, or this machine.
    """
    chosen = Target.target_or_current(target)
    tensors = list(dag.tensors if isinstance(dag, ComputeDAG) else dag)
    # What the model says of a GPU was never measured on one. A DAG isn't made of recurrences, which it refuses.
    if is_gpu(chosen) or not _is_searchable(tensors):
        return by_rules(tensors, chosen)
    if not isinstance(dag, ComputeDAG):
        dag = ComputeDAG(tensors)
    near = _plan_near_the_limit(dag, chosen)
    if near is not None:
        return dag.schedule(near)[0]
    found = rank(dag, chosen, count=1)
    if not found.candidates:
        return dag.schedule()[0]
    best = found.candidates[0]
    for plan in preferred(found.sketches)[:1]:
        scores = Learner(found.sketches, chosen, PriorModel()).predicted([plan, best])
        # scores are logarithms of speed: a difference of log(4) promises four times as much
        best = plan if (scores[1] or 0.0) - (scores[0] or 0.0) < math.log(_WORTH_LEAVING_A_PLAN) else best
    return dag.schedule(found.sketches[best.sketch].trace_of(best.row))[0]


def _plan_near_the_limit(dag: ComputeDAG, target: Target) -> Trace | None:
    """The plan of the rules, if no program can be so much faster than it that it would be preferred; None elsewhere.

    Products are as a rule, so that nothing has to be made and counted of their many sketches: two of them 0.3 s instead of 4. Of what is
    done in a fraction of a millisecond programs of many stages are as well: causal attention over 12 x 48 x 16 0.4 s instead of 5.
    """
    plan = planned_sketch(dag.outputs, dag.initial_tree, target)
    row, least = plan.preferred_row, least_cycles(dag, target)
    if row is None or not least:
        return None
    (speed,) = Learner([plan], target, PriorModel()).predicted([Candidate(0, row)])
    # the model's speed is the negative logarithm of cycles
    is_short = speed is not None and -speed < math.log(_SHORT)
    is_near = speed is not None and -speed - math.log(least) < math.log(_FAR if is_short else _WORTH_LEAVING_A_PLAN)
    return plan.trace_of(row) if is_near else None


def rank(dag: ComputeDAG, target: Target, count: int) -> Ranked:
    """The programs that the analytic model likes best, at most `count` of each sketch."""
    sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target), most=_FEW_SKETCHES)
    score = Learner(sketches, target, PriorModel()).score
    found = evolve(sketches, score, {}, count, _SEARCH, np.random.default_rng(_SEED), TunerObserver())
    return Ranked(sketches, [candidate for _, candidate in found])


def _is_searchable(tensors: Sequence[Tensor]) -> bool:
    """True if all stages are computations of constant shape."""
    pending, seen = [tensor.op for tensor in tensors], set()
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        if isinstance(op, (ScanOp, ExternOp)):
            return False
        axes = (*op.axis, *op.reduce_axis) if isinstance(op, ComputeOp) else ()
        if any(axis.dom is None or as_int(axis.dom.extent) is None for axis in axes):
            return False
        pending.extend(tensor.op for tensor in op.input_tensors)
    return True
