"""Nests, reductions and memory changed by primitives compute the same, whatever the sizes; JSON and Python replay them."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule.blocks import Trace
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tests import loop_programs as programs
from tests.effort import share_of

SMALL = st.integers(1, 7)


def matmul(n: int, m: int, depth: int) -> tir.PrimFunc:
    """A product of integers, which is exact in any order."""
    a, b = te.placeholder((n, depth), "int32", name="A"), te.placeholder((depth, m), "int32", name="B")
    k = te.reduce_axis((0, depth), name="k")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def moved_reads(n: int, scale: int, shift: int) -> tir.PrimFunc:
    """B written in one nest, read in another at scale * i + shift, within its bounds."""
    a = te.placeholder((n,), "int32", name="A")
    b = te.compute((n,), lambda i: a[i] * 3, name="B")
    return te.create_prim_func([a, te.compute((n,), lambda i: b[te.max(te.min(i * scale + shift, n - 1), 0)] + 1, name="C")])


def results(func: tir.PrimFunc, compiled: bool = False) -> list[np.ndarray]:
    """What a function leaves in its arrays, of the same numbers each time, which are all different in an array."""
    rng = np.random.default_rng(0)
    buffers = [func.buffer_map[param] for param in func.params]
    shapes = [[as_int(extent) or 0 for extent in buffer.shape] for buffer in buffers]
    arrays = [rng.permutation(int(np.prod(shape))).reshape(shape).astype(b.dtype) for b, shape in zip(buffers, shapes, strict=True)]
    if compiled:
        given_arrays = [tvm.nd.array(array) for array in arrays]
        tvm.build(func, target="llvm")(*given_arrays)
        return [array.numpy() for array in given_arrays]
    interpret(func, arrays)
    return arrays


def check(sch: tir.Schedule, func: tir.PrimFunc, compiled: bool = False) -> None:
    """The schedule's function computes what `func` does, and its trace leads to it again."""
    made = next(iter(sch.mod.functions.values()))
    for before, after in zip(results(func), results(made), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-5)
    if compiled:
        for before, after in zip(results(func), results(made, compiled=True), strict=True):
            np.testing.assert_allclose(before, after, rtol=1e-5)
    assert sch.trace is not None
    again = tir.Schedule(func)
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(next(iter(again.mod.functions.values())), made)


@given(
    sizes=st.tuples(SMALL, SMALL, st.integers(1, 12)),
    factors=st.tuples(SMALL, SMALL, SMALL),
    order=st.permutations(range(6)),
    at=st.integers(0, 5),
)
@example(sizes=(4, 4, 12), factors=(2, 3, 5), order=[0, 4, 1, 2, 5, 3], at=0)
@settings(deadline=None, derandomize=True, max_examples=share_of(25))
def test_decompose_reduction(sizes: tuple[int, int, int], factors: tuple[int, int, int], order: list[int], at: int) -> None:
    func = matmul(*sizes)
    sch = tir.Schedule(func, error_render_level="fast")
    block = sch.get_block("C")
    loops = [part for loop, factor in zip(sch.get_loops(block), factors, strict=True) for part in sch.split(loop, [None, factor])]
    sch.reorder(*(loops[place] for place in order))
    try:
        sch.decompose_reduction(block, sch.get_loops(block)[at])
    except ScheduleError as error:
        assert "which is around" in str(error)
    check(sch, func)


@given(sizes=st.tuples(SMALL, SMALL, st.integers(1, 12)), factor=st.integers(1, 8), inner=st.booleans(), axis=st.integers(-3, 2))
@example(sizes=(2, 2, 12), factor=5, inner=False, axis=0)
@example(sizes=(2, 3, 7), factor=4, inner=True, axis=-1)
@settings(deadline=None, derandomize=True, max_examples=share_of(25))
def test_rfactor(sizes: tuple[int, int, int], factor: int, inner: bool, axis: int) -> None:
    func = matmul(*sizes)
    sch = tir.Schedule(func, error_render_level="fast")
    i, _, k = sch.get_loops("C")
    sch.split(i, [None, 3])
    try:
        sch.rfactor(sch.split(k, [None, factor])[inner], axis)
    except ScheduleError as error:
        assert "would have no value" in str(error) or "doesn't reduce over" in str(error)  # of a loop of one iteration
    check(sch, func)


@given(sizes=st.tuples(SMALL, SMALL, SMALL), factors=st.tuples(SMALL, SMALL, SMALL), at=st.integers(0, 5), then=st.booleans())
@example(sizes=(4, 6, 6), factors=(2, 3, 2), at=3, then=True)
@settings(deadline=None, derandomize=True, max_examples=share_of(25))
def test_blockize(sizes: tuple[int, int, int], factors: tuple[int, int, int], at: int, then: bool) -> None:
    func = matmul(*sizes)
    sch = tir.Schedule(func, error_render_level="fast")
    pairs = [sch.split(loop, [None, factor]) for loop, factor in zip(sch.get_loops("C"), factors, strict=True)]
    sch.reorder(*(pair[0] for pair in pairs), *(pair[1] for pair in pairs))
    try:
        outer = sch.blockize(sch.get_loops("C")[at])
        if then and sch.get_loops(outer):
            sch.decompose_reduction(outer, sch.get_loops(outer)[0])
    except ScheduleError as error:
        assert any(reason in str(error) for reason in ("inside and outside at once", "come apart", "about reduced and other loops at once"))
    check(sch, func)


@given(n=st.integers(2, 9), scale=st.sampled_from([-1, 0, 1, 2]), shift=st.integers(-3, 8))
@example(n=5, scale=1, shift=0)
@example(n=5, scale=-1, shift=4)
@settings(deadline=None, derandomize=True, max_examples=share_of(40))
def test_merge_keeps_what_later_nests_need(n: int, scale: int, shift: int) -> None:
    func = moved_reads(n, scale, shift)
    sch = tir.Schedule(func, error_render_level="fast")
    try:
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    except ScheduleError as error:
        needs = [max(min(i * scale + shift, n - 1), 0) > i for i in range(n)]
        assert "may need of B" in str(error) and (any(needs) or shift < 0 or scale != 1)
    check(sch, func)


@given(n=st.integers(2, 12), parts=st.lists(st.one_of(st.none(), st.integers(1, 6)), min_size=1, max_size=3), reduced=st.booleans())
@settings(deadline=None, derandomize=True, max_examples=share_of(25))
def test_loop_partition(n: int, parts: list[int | None], reduced: bool) -> None:
    func = matmul(3, 2, n) if reduced else matmul(n, 2, 3)
    sch = tir.Schedule(func, error_render_level="fast")
    try:
        sch.loop_partition(sch.get_loops("C")[2 if reduced else 0], parts)
    except ScheduleError as error:
        assert "leave nothing" in str(error) or "at most one is None" in str(error)
    check(sch, func)


def windows(n: int, taps: int) -> tir.PrimFunc:
    """Sums of windows of a computed row."""
    a = te.placeholder((n + taps - 1,), "int32", name="A")
    b = te.compute((n + taps - 1,), lambda i: a[i] * 3, name="B")
    k = te.reduce_axis((0, taps), name="k")
    return te.create_prim_func([a, te.compute((n,), lambda i: te.sum(b[i + k], axis=k), name="C")])


@given(tiles=st.integers(1, 4), factor=st.integers(1, 4), taps=st.integers(1, 4))
@example(tiles=3, factor=2, taps=3)
@settings(deadline=None, derandomize=True, max_examples=share_of(25))
def test_rolling_buffer(tiles: int, factor: int, taps: int) -> None:
    func = windows(tiles * factor, taps)
    sch = tir.Schedule(func, error_render_level="fast")
    outer, _ = sch.split(sch.get_loops("C")[0], [None, factor])
    sch.compute_at("B", outer, preserve_unit_loops=True)
    try:
        sch.rolling_buffer("B", 0)
        with pytest.raises(ScheduleError, match="needs the iterations of i_0 one after another"):
            sch.parallel(outer)
    except ScheduleError as error:
        assert "share elements" in str(error) and (tiles == 1 or taps == 1)
    check(sch, func, compiled=tiles == 3)


def intrinsic(sch: tir.Schedule) -> None:
    """Products of 4 x 4, some of them by an intrinsic."""
    pairs = [sch.split(loop, [None, 4]) for loop in sch.get_loops("C")]
    sch.reorder(*(pair[0] for pair in pairs), *(pair[1] for pair in pairs))
    sch.decompose_reduction("C", pairs[2][0])
    sch.tensorize(pairs[0][1], programs.register_dot())


def aligned(sch: tir.Schedule) -> None:
    """Rows of another stride, in memory of another scope."""
    sch.storage_align("B", 0, 0, 32, 3)
    sch.set_scope("B", 0, "local")


def parallel_after(sch: tir.Schedule) -> None:
    """First values and updates in iterations that run at once."""
    i, j, k = sch.get_loops("C")
    init = sch.decompose_reduction("C", j)
    sch.parallel(i)
    sch.vectorize(sch.get_loops(init)[-1])
    sch.reorder(k, j)
    sch.vectorize(j)


WHOLE: list[tuple[tir.PrimFunc, Callable[[tir.Schedule], object]]] = [
    (programs.matmul, intrinsic),
    (programs.matmul, parallel_after),
    (programs.chain, aligned),
    (programs.argmax, lambda sch: sch.rfactor(sch.split(sch.get_loops("P")[1], [None, 4])[1], 1)),
    (programs.biased, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[1])),
    (programs.tiles, lambda sch: sch.merge(sch.get_loops("B")[2], sch.get_loops("C")[2])),
    (programs.tiles, lambda sch: sch.blockize([sch.get_block("B"), sch.get_block("C")])),
    (programs.chain, lambda sch: sch.loop_partition(sch.get_loops("B")[1], [5, None, 2])),
]


@pytest.mark.parametrize(("func", "request_"), WHOLE)
def test_compiled(func: tir.PrimFunc, request_: Callable[[tir.Schedule], object]) -> None:
    sch = tir.Schedule(func)
    request_(sch)
    check(sch, func, compiled=True)


@pytest.mark.parametrize("name", ["dot_16x4_vnni", "dot_16x4_avx512"])
def test_bytes_by_instructions(name: str) -> None:
    a, b = te.placeholder((3, 8), "uint8", name="A"), te.placeholder((2, 2, 16, 4), "int8", name="B")
    k = te.reduce_axis((0, 8), name="k")
    product = te.compute(
        (3, 32), lambda i, j: te.sum(a[i, k].astype("int32") * b[j // 16, k // 4, j % 16, k % 4].astype("int32"), axis=k), name="C"
    )
    func = te.create_prim_func([a, b, product])
    sch = tir.Schedule(func)
    i, j, step = sch.get_loops("C")
    (j0, j1), (k0, k1) = sch.split(j, [None, 16]), sch.split(step, [None, 4])
    sch.reorder(i, j0, k0, j1, k1)
    sch.decompose_reduction("C", k0)
    sch.tensorize(j1, name)
    check(sch, func)
