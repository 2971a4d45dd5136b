"""Postprocessors: what they do to programs, and where they stop."""

from __future__ import annotations

import pytest

from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.meta_schedule.postproc.blocks import contiguous_loops
from tensorexpr.meta_schedule.schedule_rule.parallelize_vectorize_unroll import PARALLEL, VECTORIZE
from tensorexpr.schedule.blocks.thread_binding import dependent_loops
from tests import loop_programs


def rewritten(func: tir.PrimFunc, parallel: int, lanes: int) -> tir.Schedule:
    """A function after RewriteParallelVectorizeUnroll, with these bounds."""
    sch = tir.Schedule(func)
    root = sch.get_block("root")
    for key, value in ((PARALLEL, parallel), (VECTORIZE, lanes)):
        if value:
            sch.annotate(root, key, value)
    assert ms.postproc.RewriteParallelVectorizeUnroll().apply(sch)
    assert not sch.get(root).annotations
    return sch


def kinds(sch: tir.Schedule, block: str) -> list[tuple[int, str]]:
    """The extents and kinds of the loops around a block."""
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    return [(int(loop.extent.value), loop.kind.name) for loop in loops]


@pytest.mark.parametrize(
    ("parallel", "expected"),
    [(0, [(8, "SERIAL"), (16, "SERIAL"), (12, "SERIAL")]), (4, [(8, "PARALLEL"), (16, "SERIAL"), (12, "SERIAL")]),
     (100, [(128, "PARALLEL"), (12, "SERIAL")])],
)  # fmt: skip
def test_so_many_outer_loops_are_fused_as_are_needed(parallel: int, expected: list[tuple[int, str]]) -> None:
    assert kinds(rewritten(loop_programs.matmul, parallel, 0), "C") == expected


def test_a_loop_that_reduces_is_neither_parallel_nor_a_vector() -> None:
    assert kinds(rewritten(loop_programs.matmul, 10000, 64), "C") == [(128, "PARALLEL"), (12, "SERIAL")]
    sch = tir.Schedule(loop_programs.matmul)
    loops = sch.get_loops("C")
    assert dependent_loops(sch.get(loops[0])) == {sch.get(loops[2]).loop_var}


@pytest.mark.parametrize(("width", "count"), [(12, 2), (16, 1)])
def test_loops_are_contiguous_where_rows_are_whole(width: int, count: int) -> None:
    a = te.placeholder((8, width), name="A")
    sch = tir.Schedule(te.create_prim_func([a, te.compute((8, 12), lambda i, j: a[i, j] * 2.0, name="B")]))
    block = sch.get_block("B")
    assert contiguous_loops(sch.realization(block), [sch.get(loop) for loop in sch.get_loops(block)]) == count


def test_loops_whose_extents_only_a_run_knows_are_rejected() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    some = te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2.0, name="B")])
    assert not ms.postproc.DisallowDynamicLoop().apply(tir.Schedule(some))
    assert ms.postproc.DisallowDynamicLoop().apply(tir.Schedule(loop_programs.chain))


def test_reductions_start_before_their_first_loop_that_reduces() -> None:
    sch = tir.Schedule(loop_programs.matmul)
    _, j, k = sch.get_loops("C")
    sch.reorder(k, j)
    assert ms.postproc.RewriteReductionBlock().apply(sch)
    assert [extent for extent, _ in kinds(sch, "C_init")] == [8, 16]
    assert [extent for extent, _ in kinds(sch, "C_update")] == [8, 12, 16]


@pytest.mark.parametrize(("threads", "lanes", "fits"), [(64, 4, True), (2048, 4, False), (64, 8, False)])
def test_kernels_beyond_the_limits_of_their_gpu_are_rejected(threads: int, lanes: int, fits: bool) -> None:
    a = te.placeholder((4, 2048, 8), name="A")
    sch = tir.Schedule(te.create_prim_func([a, te.compute(a.shape, lambda *i: a(*i) + 1.0, name="B")]))
    blocks, rows, columns = sch.get_loops("B")
    outer, inner = sch.split(rows, [None, threads])
    vectors, lane = sch.split(columns, [None, lanes])
    sch.reorder(blocks, outer, vectors, inner, lane)
    sch.bind(blocks, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    sch.vectorize(lane)
    postproc = ms.postproc.VerifyGPUCode()
    postproc.initialize_with_tune_context(ms.TuneContext(mod=sch.mod, target="nvidia/geforce-rtx-3080"))
    assert postproc.apply(sch) is fits


@pytest.mark.parametrize(("width", "kept"), [(64, True), (32, False)])
def test_copies_that_nobody_waits_for_are_runs_of_memory(width: int, kept: bool) -> None:
    """Rows of a tile as wide as the array follow each other in memory, those of a narrower one don't."""
    a = te.placeholder((64, 64), name="A")
    sch = tir.Schedule(te.create_prim_func([a, te.compute((64, 64), lambda i, j: a[i, j] * 2.0, name="B")]))
    rows, columns = sch.get_loops("B")
    outer, inner = sch.split(rows, [None, 8])
    across, along = sch.split(columns, [None, width])
    sch.reorder(across, outer, inner, along)
    cache = sch.cache_read("B", 0, "shared")
    sch.compute_at(cache, outer)
    sch.annotate(outer, "software_pipeline_stage", [0, 1])
    sch.annotate(outer, "software_pipeline_order", [0, 1])
    sch.annotate(outer, "software_pipeline_async_stages", [0])
    assert ms.postproc.DisallowAsyncStridedMemCopy().apply(sch) is kept
