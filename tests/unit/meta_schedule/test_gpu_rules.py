"""Rules, postprocessors and mutators for GPUs: programs become programs of grids, which are looked at as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.testing.space_generation import generate_design_space
from tensorexpr.runtime import cuda_driver
from tensorexpr.target import Target

GPU = "nvidia/geforce-rtx-3080"
OLD = "cuda -arch=sm_70 -max_threads_per_block=1024 -max_shared_memory_per_block=49152"


def elementwise(n: int, m: int) -> tir.PrimFunc:
    a = te.placeholder((n, m), name="A")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: a[i, j] + 1, name="B")])


def row_sums(n: int, m: int) -> tir.PrimFunc:
    """Sums of rows, and their roots."""
    a, k = te.placeholder((n, m), name="A"), te.reduce_axis((0, m), "k")
    c = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="C")
    return te.create_prim_func([a, te.compute((n,), lambda i: te.sqrt(c[i]), name="D")])


def product(n: int) -> tir.PrimFunc:
    a, b, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def spaces(func: tir.PrimFunc, *rules: ms.ScheduleRule, target: str = GPU) -> list[tir.Schedule]:
    return generate_design_space("cuda", tir.IRModule({"main": func}), Target(target), None, sch_rules=rules)


def bound(sch: tir.Schedule) -> list[tuple[str, int]]:
    """The loops of a program over a grid, and their extents."""
    found = re.findall(r"T\.thread_binding\((\d+), thread=\"(\w+\.\w)\"\)", sch.mod.script())
    return [(tag, int(extent)) for extent, tag in found]


@pytest.mark.parametrize(
    ("shape", "extents", "grid"),
    [
        ((8, 8), [32, 64, 128], None),
        ((8, 8), [64], [1, 64]),
        ((4, 4), [32], [1, 16]),
        ((1, 1), [], [1, 1]),
        ((8192, 64), [64], [256, 1024]),
    ],
)
def test_loops_of_data_become_blocks_and_threads(shape: tuple[int, int], extents: list[int], grid: list[int] | None) -> None:
    (sch,) = spaces(elementwise(*shape), ms.schedule_rule.AutoBind(thread_extents=extents))
    tags, found = zip(*bound(sch), strict=True)
    assert tags == ("blockIdx.x", "threadIdx.x")
    assert list(found) == grid if grid else found[0] * found[1] == 64


def total(n: int) -> tir.PrimFunc:
    a, k = te.placeholder((n,), name="A"), te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], axis=k), name="C")])


def test_a_reduction_alone_runs_in_one_thread() -> None:
    (sch,) = spaces(total(4), ms.schedule_rule.AutoBind())
    assert bound(sch) == [("blockIdx.x", 1), ("threadIdx.x", 1)]
    assert "in range(4)" in sch.mod.script()


def test_a_target_that_does_not_say_how_many_threads_is_refused() -> None:
    with pytest.raises(TuningError, match="AutoBind needs max_threads_per_block of the target cuda"):
        spaces(total(4), ms.schedule_rule.AutoBind(), target="cuda -arch=sm_70")


def test_threads_share_a_reduction_with_those_who_read_it() -> None:
    plain, shared = spaces(row_sums(4, 64), ms.schedule_rule.CrossThreadReduction([16]))
    assert bound(shared) == [("threadIdx.x", 16)] * 2 and not bound(plain)
    text = shared.mod.script()
    assert 'C_shared = T.alloc_buffer((4,), scope="shared")' in text and text.index('T.block("C")') < text.index('T.block("D")')
    assert ms.postproc.RewriteReductionBlock().apply(shared)
    assert "C_init" not in shared.mod.script()  # an init outside of the threads would be one for all of them


def test_who_reads_two_reductions_lends_both_its_threads() -> None:
    a, k, l = te.placeholder((4, 64), name="A"), te.reduce_axis((0, 64), "k"), te.reduce_axis((0, 64), "l")  # noqa: E741
    most = te.compute((4,), lambda i: te.max(a[i, k], axis=k), name="M")
    sums = te.compute((4,), lambda i: te.sum(a[i, l] - most[i], axis=l), name="S")
    func = te.create_prim_func([a, te.compute((4, 64), lambda i, j: a[i, j] / sums[i] - most[i], name="D")])
    found = {tuple(extent for _, extent in bound(sch)) for sch in spaces(func, ms.schedule_rule.CrossThreadReduction([8, 16]))}
    assert {8, 16} & {extents[0] for extents in found if len(extents) == 3}
    assert all(len(set(extents)) < 2 for extents in found)


def tiled(target: str, func: tir.PrimFunc | None = None) -> list[tir.Schedule]:
    return spaces(
        product(64) if func is None else func,
        ms.schedule_rule.MultiLevelTiling(
            "SSSRRSRS",
            tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"],
            max_innermost_factor=64,
            vector_load_lens=[1, 2, 3, 4, 8],
            reuse_read=ms.schedule_rule.ReuseType("must", [4], "shared"),
            reuse_write=ms.schedule_rule.ReuseType("must", [3], "local"),
        ),
        target=target,
    )


@pytest.mark.parametrize("levels", [[], [0], [9], [0, 4]])
def test_a_level_without_loops_holds_no_cache(levels: list[int]) -> None:
    """Level 0 is around all loops: there is no tile to read; without a level left the tiles stay, as caches that are written do."""
    made = spaces(
        product(64),
        ms.schedule_rule.MultiLevelTiling("SSRSRS", reuse_read=ms.schedule_rule.ReuseType("must", levels, "global")),
        target="llvm",
    )
    assert len(made) == 1
    assert ("A_global" in str(made[0].mod)) == (4 in levels or 9 in levels)


def test_tiles_are_bound_and_loads_are_marked() -> None:
    (sch,) = tiled(OLD)
    assert [tag for tag, _ in bound(sch)] == ["blockIdx.x", "vthread.x", "threadIdx.x"]
    notes = sch.get(sch.get_block("C")).annotations
    assert notes["meta_schedule.thread_extent_low_inclusive"] == 32 and notes["meta_schedule.thread_extent_high_inclusive"] == 1024
    for name in ("A_shared", "B_shared"):
        assert sch.get(sch.get_block(name)).annotations["meta_schedule.cooperative_fetch"] in (1, 2, 3, 4)  # 16 bytes at most


def test_where_loads_are_asynchronous_they_may_run_ahead() -> None:
    five, four, plain = (sch.mod.script() for sch in tiled(GPU))
    assert "software_pipeline" not in plain
    assert '"software_pipeline_stage": [0, 0, 2]' in four and '"software_pipeline_stage": [0, 0, 3]' in five


def test_marked_loads_are_shared_by_threads() -> None:
    sch = tir.Schedule(product(16))
    block = sch.get_block("C")
    sch.bind(sch.get_loops(block)[0], "threadIdx.x")
    cache = sch.cache_read(block, 0, "shared")
    sch.fuse(*sch.get_loops(cache))
    sch.annotate(cache, "meta_schedule.cooperative_fetch", 4)
    sch.enter_postproc()
    assert ms.postproc.RewriteCooperativeFetch().apply(sch)
    assert bound(sch)[0] == ("threadIdx.x", 16)
    assert "T.vectorized(4)" in sch.mod.script() and "cooperative" not in sch.mod.script()


def test_a_vector_that_does_not_divide_the_load_is_none() -> None:
    sch = tir.Schedule(product(15))
    block = sch.get_block("C")
    sch.bind(sch.get_loops(block)[0], "threadIdx.x")
    cache = sch.cache_read(block, 0, "shared")
    sch.fuse(*sch.get_loops(cache))
    sch.annotate(cache, "meta_schedule.cooperative_fetch", 2)
    assert ms.postproc.RewriteCooperativeFetch().apply(sch)
    assert bound(sch)[0] == ("threadIdx.x", 15) and "vectorized" not in sch.mod.script()


def adopted(part: ms.Postproc, func: tir.PrimFunc, target: str = GPU) -> ms.Postproc:
    """A postprocessor that was told of a task."""
    space = ms.space_generator.PostOrderApply(sch_rules=[], postprocs=[part], mutator_probs={})
    ms.TuneContext(func, target=Target(target), space_generator=space)
    return part


def test_blocks_that_no_rule_bound_are_bound_at_the_end() -> None:
    func = row_sums(4, 8)
    sch = tir.Schedule(func)
    assert adopted(ms.postproc.RewriteUnboundBlock(), func).apply(sch)
    assert bound(sch) == [("blockIdx.x", 1), ("threadIdx.x", 4)] * 2


def test_blocks_of_a_grid_without_threads_are_rejected() -> None:
    func = elementwise(4, 4)
    sch = tir.Schedule(func)
    sch.bind(sch.get_loops(sch.get_block("B"))[0], "blockIdx.x")
    assert not adopted(ms.postproc.RewriteUnboundBlock(), func).apply(sch)


@pytest.mark.parametrize(("fewest", "most", "fits"), [(4, 16, True), (17, 1024, False), (1, 8, False)])
def test_blocks_run_over_as_many_threads_as_they_ask_for(fewest: int, most: int, fits: bool) -> None:
    func = elementwise(4, 16)
    sch = tir.Schedule(func)
    block = sch.get_block("B")
    for loop, axis in zip(sch.get_loops(block), ("blockIdx.x", "threadIdx.x"), strict=True):
        sch.bind(loop, axis)
    sch.annotate(block, "meta_schedule.thread_extent_low_inclusive", fewest)
    sch.annotate(block, "meta_schedule.thread_extent_high_inclusive", most)
    assert adopted(ms.postproc.VerifyGPUCode(), func).apply(sch) is fits


def test_another_number_of_threads_is_another() -> None:
    sch = tir.Schedule(elementwise(8, 64))
    loop = sch.fuse(*sch.get_loops(sch.get_block("B")))
    _, inner = sch.split(loop, [None, sch.sample_categorical([16, 32, 64], [0.25, 0.25, 0.5], decision=1)])
    assert sch.trace is not None and ms.mutator.MutateThreadBinding().apply(sch.trace, 1) is None
    sch.bind(inner, "threadIdx.x")
    made = [ms.mutator.MutateThreadBinding().apply(sch.trace, seed) for seed in range(20)]
    assert {choice for trace in made if trace is not None for choice in trace.decisions.values()} == {0, 2}


def test_the_defaults_for_cuda_make_a_kernel_of_a_product() -> None:
    ctx = ms.TuneContext(product(64), target=Target(OLD), space_generator="post-order-apply", rand_state=1)
    (sch,) = ctx.generate_design_space()
    assert isinstance(sch, tir.Schedule) and ctx.space_generator is not None
    sch.enter_postproc()
    for postproc in ctx.space_generator.postprocs[:-1]:
        assert postproc.apply(sch), type(postproc).__name__
    assert {tag for tag, _ in bound(sch)} == {"blockIdx.x", "vthread.x", "threadIdx.x"}


def test_a_search_for_a_gpu_that_is_not_here_says_what_there_is_without_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda_driver, "_LIBRARY", "no such library")
    with pytest.raises(TuningError, match=r"are measured on a GPU, and .*\. Without one, space generators"):
        ms.tune_tir(product(64), OLD, str(tmp_path), max_trials_global=4)
