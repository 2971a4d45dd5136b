"""Mutators: each changes what it is about, within its limits."""

from __future__ import annotations

from math import prod

from tensorexpr import meta_schedule as ms
from tensorexpr import tir
from tensorexpr.meta_schedule.schedule_rule.parallelize_vectorize_unroll import PARALLEL
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


def test_another_bound_on_parallel_iterations_is_another() -> None:
    sch = tir.Schedule(loop_programs.matmul)
    sch.annotate(sch.get_block("root"), PARALLEL, 4)
    mutator = ms.mutator.MutateParallel(8)
    assert sch.trace is not None
    found = set()
    for seed in range(40):
        made = mutator.apply(sch.trace, seed)
        assert made is not None
        found.add(next(inst.inputs[1] for inst in made.insts if inst.kind == "Annotate"))
    assert found == {1, 2, 8}
    assert ms.mutator.MutateParallel(8).apply(tiled([4, 4], 16).trace, 1) is None
