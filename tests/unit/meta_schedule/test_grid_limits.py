"""Tiles of grids are drawn within a device's limits, which are known before a program is made."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir, topi
from tensorexpr.lower import transform
from tensorexpr.meta_schedule.postproc.verify import _PASSES
from tensorexpr.meta_schedule.search_strategy.grid_limits import grid_limits, sampling
from tensorexpr.meta_schedule.search_strategy.population import Programs
from tensorexpr.target import Target
from tensorexpr.tir.analysis.gpu_code import _memory
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.rewriting import walk

TARGET = Target("nvidia/nvidia-a100")


def product(n: int, dtype: str = "float32") -> PrimFunc:
    a, b = (te.placeholder((n, n), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")
    return te.create_prim_func([a, b, c])


def convolution() -> PrimFunc:
    a, w = te.placeholder((1, 8, 14, 14), name="A"), te.placeholder((16, 8, 3, 3), name="W")
    return te.create_prim_func([a, w, topi.nn.conv2d_nchw(a, w, 1, 1, 1)])


def spaces(func: PrimFunc, kind: str = "cuda") -> tuple[Programs, list[tir.Schedule]]:
    """What draws programs, and the design spaces."""
    generator = ms.space_generator.PostOrderApply(sch_rules=kind, postprocs=kind, mutator_probs=kind)
    context = ms.TuneContext(mod=tir.IRModule({"main": func}), target=TARGET, space_generator=generator, num_threads=1, rand_state=5)
    return Programs(context), [space for space in context.generate_design_space() if isinstance(space, tir.Schedule)]


def shared_bytes(sch: tir.Schedule) -> int:
    """Shared memory of a program, each buffer as small as it can be."""
    mod = transform.Sequential([getattr(transform, name)() for name in _PASSES])(sch.mod)
    return sum(size for node in walk(mod["main"].body) for scope, size in _memory(node) if scope == "shared")


@pytest.mark.parametrize(
    ("func", "kind", "count"),
    [
        pytest.param(product(512), "cuda", 2, id="product"),
        pytest.param(convolution(), "cuda", 2, id="convolution"),
        pytest.param(product(512, "float16"), "cuda-tensorcore", 1, id="matrix units"),
    ],
)
def test_what_is_drawn_is_a_program_within_the_limits(func: PrimFunc, kind: str, count: int) -> None:
    programs, found = spaces(func, kind)
    space = found[-1]
    drawn = [programs.drawn(space) for _ in range(count)]
    assert None not in drawn and not programs.failures
    for individual in drawn:
        assert individual is not None
        limits, decided = individual.limits, individual.trace
        assert limits is not None
        tilings = {number: decided.decisions[inst] for number, inst in sampling(decided).items() if number in limits.tiles}
        counted = sum(copy.bytes(tilings) for kernel in limits.kernels for copy in kernel.copies.values())
        assert counted == shared_bytes(individual.sch) <= 49152


def test_a_tiling_beyond_the_limits_is_told() -> None:
    _, (space, *_) = spaces(product(1024))
    limits = grid_limits(space, TARGET)
    # 32 x 32 threads with 2 x 2 results each, and 16 terms of both operands
    good = {0: (16, 1, 32, 1, 2), 1: (16, 1, 32, 1, 2), 2: (64, 4, 4)}
    assert limits.allow(good)
    assert not limits.allow({**good, 0: (8, 1, 64, 1, 2)}), "2048 threads"
    assert not limits.allow({**good, 0: (128, 1, 2, 1, 4), 1: (128, 1, 2, 1, 4)}), "less than a warp"
    assert not limits.allow({**good, 0: (1, 16, 32, 1, 2)}), "16 virtual threads"
    assert not limits.allow({**good, 2: (8, 16, 8)}), "65536 bytes of shared memory"


def test_programs_without_threads_have_no_limits() -> None:
    context = ms.TuneContext(
        mod=tir.IRModule({"main": product(64)}), target=Target("llvm -num-cores=2"), space_generator="post-order-apply"
    )
    (space, *_) = [space for space in context.generate_design_space() if isinstance(space, tir.Schedule)]
    limits = grid_limits(space, context.target)
    assert limits.allow_trace(space.trace) and not limits.drawn(random.Random(0))


def test_copies_that_threads_do_not_divide_are_right() -> None:
    """Rows of 16 with their neighbours among any number of threads: the last of them have nothing to copy."""
    func = convolution()
    programs, (space, *_) = spaces(func)
    individual = programs.drawn(space)
    assert individual is not None
    random_numbers = np.random.default_rng(0)
    x, w = (random_numbers.standard_normal(shape).astype("float32") for shape in ((1, 8, 14, 14), (16, 8, 3, 3)))
    wanted, found = np.zeros((1, 16, 14, 14), "float32"), np.zeros((1, 16, 14, 14), "float32")
    tvm.build(func, target="llvm")(x, w, wanted)
    tvm.build(individual.sch.mod, target="llvm")(x, w, found)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
