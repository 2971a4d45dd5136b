"""Mutators: each changes what it is about, within its limits."""

from __future__ import annotations

from math import prod

import pytest

from tensorexpr import meta_schedule as ms
from tensorexpr import tir
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.schedule_rule.parallelize_vectorize_unroll import PARALLEL
from tensorexpr.target import Target
from tests import loop_programs


def tiled(decision: list[int], limit: int) -> tir.Schedule:
    """A matmul whose 16 columns are split by a sampled tiling."""
    sch = tir.Schedule(loop_programs.matmul, seed=1)
    column = sch.get_loops("C")[1]
    sch.split(column, sch.sample_perfect_tile(column, len(decision), max_innermost_factor=limit, decision=decision))
    return sch


def test_tilings_keep_their_product_and_the_innermost_its_limit() -> None:
    trace = tiled([4, 2, 2], 4).trace
    assert trace is not None
    found = set()
    for seed in range(60):
        made = ms.mutator.MutateTileSize().apply(trace, seed)
        assert made is not None
        (decision,) = made.decisions.values()
        assert prod(decision) == 16 and decision[-1] <= 4 and decision != [4, 2, 2]
        found.add(tuple(decision))
    assert {(2, 4, 2), (2, 2, 4), (8, 1, 2), (8, 2, 1)} <= found
    assert (1, 2, 8) not in found


def test_a_tiling_that_has_nothing_to_move_is_left() -> None:
    sch = tir.Schedule(loop_programs.matmul)
    sch.split(sch.get_loops("C")[1], [None, 4])
    assert sch.trace is not None
    assert ms.mutator.MutateTileSize().apply(sch.trace, 1) is None


def bounds(mutator: ms.mutator.MutateParallel, sch: tir.Schedule) -> set[int]:
    """The bounds that a mutator puts into a schedule, of 40 tries."""
    assert sch.trace is not None
    made = [mutator.apply(sch.trace, seed) for seed in range(40)]
    return {inst.inputs[1] for trace in made if trace is not None for inst in trace.insts if inst.kind == "Annotate"}


@pytest.mark.parametrize(("bound", "others"), [(1, {8, 16, 128}), (5, {4, 16, 128}), (16, {4, 8, 128})])
def test_another_bound_on_parallel_iterations_fuses_another_number_of_loops(bound: int, others: set[int]) -> None:
    mutator = ms.mutator.MutateParallel(16)
    sch = tir.Schedule(loop_programs.matmul)
    rows, columns, _ = sch.get_loops("C")
    outer, inner = sch.split(rows, [4, None])
    left, right = sch.split(columns, [2, None])
    sch.reorder(outer, left, inner, right)
    sch.annotate(sch.get_block("root"), PARALLEL, bound)
    space = ms.space_generator.PostOrderApply(sch_rules=[], postprocs=[], mutator_probs={mutator: 1.0})
    ms.TuneContext(loop_programs.matmul, target=Target("llvm -num-cores=8"), space_generator=space)
    assert bounds(mutator, sch) == others


def test_without_a_bound_there_is_no_other() -> None:
    assert ms.mutator.MutateParallel(8).apply(tiled([4, 4], 16).trace, 1) is None


def test_without_a_program_bounds_are_not_known() -> None:
    sch = tir.Schedule(loop_programs.matmul)
    sch.annotate(sch.get_block("root"), PARALLEL, 4)
    assert sch.trace is not None
    with pytest.raises(TuningError, match="works for a TuneContext"):
        ms.mutator.MutateParallel(8).apply(sch.trace, 1)
