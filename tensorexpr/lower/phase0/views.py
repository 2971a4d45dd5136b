"""What bound inference finds and what loops a schedule makes, for people and tests. Names as TE has them."""

from __future__ import annotations

from collections.abc import Mapping

from ...arith.analyzer import Analyzer
from ...schedule.legality import check_tree
from ...schedule.te_schedule import Schedule
from ...te.dag import given_placeholders
from ...te.tensor_form import with_tensors
from ...tir.expr import IterVar, Range
from ...tir.stmt import Stmt
from .infer_bound import infer_bound
from .inline_stages import inline_stages
from .schedule_to_func import func_and_tensors


def InferBound(sch: Schedule) -> dict[IterVar, Range]:
    """The range of every axis of every stage that is computed.

    Root axes have the box that is computed per visit, which may depend on loops further out; loops count from 0.

    Raises:
        ScheduleError: if the schedule as a whole is illegal.
    """
    check_tree(sch.tree)
    found: dict[IterVar, Range] = {}
    for domain in infer_bound(sch.tree, inline_stages(sch.tree), Analyzer()).values():
        for number, axis in enumerate(domain.stage.axes):
            found[axis] = domain.region.get(number) or domain.loop_range(number)
    return found


def ScheduleOps(sch: Schedule, bounds: Mapping[IterVar, Range] | None = None, debug_keep_trivial_loop: bool = False) -> Stmt:
    """The loop nests of a schedule, as phase 0 makes them, as a statement that loads, stores and realizes tensors.

    Args:
        bounds: taken for the sake of programs that pass `InferBound`'s result; bounds are inferred again.
        debug_keep_trivial_loop: keep loops of extent 1.
    """
    inputs = [op.output(0) for op in given_placeholders([stage.op for stage in sch.stages])]
    outputs = [op.output(number) for op in sch.outputs for number in range(op.num_outputs)]
    func, tensors = func_and_tensors(sch, [*inputs, *outputs], keep_trivial_loops=debug_keep_trivial_loop)
    return with_tensors(func.body, tensors, outputs)
