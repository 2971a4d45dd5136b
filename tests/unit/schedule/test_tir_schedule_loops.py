"""Loops and reductions of tir.Schedule: what may change its order, and reductions in two steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule.blocks.affine import why_not_affine
from tensorexpr.testing.check_func import assert_func_correct
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tests import loop_programs
from tests.placement_programs import function


def recurrence() -> tir.PrimFunc:
    """Each element from one of the row before and the column after."""
    return function("""
def main(C: T.Buffer((9, 9))):
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(C[vi, vj + 1])
            T.writes(C[vi + 1, vj])
            C[vi + 1, vj] = C[vi, vj + 1] * 2.0
""")


def triangle() -> tir.PrimFunc:
    """The elements on and below a diagonal."""
    return function("""
def main(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
    for i in range(8):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j)
                C[vi, vj] = A[vi, vj] * 2.0
""")


def diagonals() -> tir.PrimFunc:
    """Sums over diagonals, of which the last point's value is left."""
    return function("""
def main(A: T.Buffer((4, 5)), C: T.Buffer((8,))):
    for i, j in T.grid(4, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + vj] = A[vi, vj]
""")


def aslant() -> tir.PrimFunc:
    """C reads what B wrote in the row before, a column further on."""
    return function("""
def main(A: T.Buffer((8, 8)), B: T.Buffer((9, 8)), C: T.Buffer((8, 7))):
    for i, j in T.grid(8, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + 1, vj] = A[vi, vj]
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj + 1]
""")


def by_a_scratch() -> tir.PrimFunc:
    """An element at a time by way of one that each iteration has for itself."""
    return function("""
def main(A: T.Buffer((8, 7)), C: T.Buffer((8, 7))):
    one = T.alloc_buffer((1,))
    for i, j in T.grid(8, 7):
        with T.block("one"):
            vi, vj = T.axis.remap("SS", [i, j])
            one[0] = A[vi, vj] * 2.0
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = one[0]
""")


def test_reorder_of_iterations_that_have_memory_of_their_own() -> None:
    sch = tir.Schedule(by_a_scratch())
    i, j = sch.get_loops("C")
    sch.reorder(j, i)
    a, c = np.arange(56, dtype="float32").reshape(8, 7), np.zeros((8, 7), "float32")
    interpret(tensorexpr.lower(sch.mod, upto=2)["main"], [a, c])
    np.testing.assert_array_equal(c, 2 * a)


@pytest.mark.parametrize(
    "request_",
    [
        lambda sch: sch.reorder(*sch.get_loops("C")[::-1]),
        lambda sch: sch.transform_block_layout("C", lambda i, j: (j, i)),
    ],
)
def test_the_last_of_several_values_stays_the_last(request_: Callable[[tir.Schedule], object]) -> None:
    sch = tir.Schedule(diagonals(), error_render_level="fast")
    with pytest.raises(ScheduleError, match="may not change their order: C may write an element of C more than once"):
        request_(sch)


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (aslant, "reorder: C may read of B what B writes in another iteration of j or a loop around it"),
        (recurrence, "the iterations of C may not change their order: it reads C, which it writes"),
        (triangle, "the extent of j depends on i, which would stand inside"),
    ],
)
def test_reorder_refuses(func: object, message: str) -> None:
    assert callable(func)
    sch = tir.Schedule(func(), error_render_level="fast")
    i, j = sch.get_loops("C")
    with pytest.raises(ScheduleError) as error:
        sch.reorder(j, i)
    assert message in str(error.value)


def test_partial_results_are_counted_from_the_end_too() -> None:
    made = []
    for axis in (2, -1):
        sch = tir.Schedule(loop_programs.matmul)
        outer, _ = sch.split(sch.get_loops("C")[2], [None, 4])
        sch.rfactor(outer, axis)
        made.append(sch.mod)
    assert structural_equal(*made)
    partial = next(b for b in made[0]["main"].body.block.alloc_buffers if b.name == "C_rf")
    assert [int(extent.value) for extent in partial.shape] == [8, 16, 3]


def test_rfactor_of_reductions_that_share_a_loop() -> None:
    """Of the fused loops f0 alone makes the first axis, and f0 with f1 the second: both come apart."""
    a = te.placeholder((3, 4, 8), "int32", name="A")
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 8), name="r")
    func = te.create_prim_func([a, te.compute((3,), lambda i: te.sum(a[i, k, r], axis=[k, r]), name="C")])
    data = np.arange(96, dtype="int32").reshape(3, 4, 8)
    for place in (0, 1):
        sch = tir.Schedule(func)
        _, *reduced = sch.get_loops("C")
        parts = sch.split(sch.fuse(*reduced), [8, 4])
        partial = sch.rfactor(parts[place], 1)
        assert why_not_affine(sch.realization(partial), [sch.get(loop) for loop in sch.get_loops(partial)]) is None
        result = np.zeros(3, "int32")
        interpret(tensorexpr.lower(sch.mod, upto=2)["main"], [data, result])
        np.testing.assert_array_equal(result, data.sum((1, 2)))


def test_a_fused_loop_of_one_iteration_is_no_term() -> None:
    sch = tir.Schedule(loop_programs.matmul)
    i, j, _ = sch.get_loops("C")
    (i0, i1), (j0, j1) = sch.split(i, [1, 8]), sch.split(j, [1, 16])
    sch.reorder(i0, j0, i1, j1)
    sch.fuse(i0, j0)
    assert [str(value) for value in sch.realization(sch.get_block("C")).iter_values] == ["i_1", "j_1", "k"]


@pytest.mark.parametrize(("preserve", "outer"), [(True, ["i", "j_0", "k_0"]), (False, ["i", "0", "0"])])
def test_loops_of_one_iteration_around_a_new_block_are_its_axes(preserve: bool, outer: list[str]) -> None:
    sch = tir.Schedule(loop_programs.matmul)
    i, j, k = sch.get_loops("C")
    (j0, j1), (k0, k1) = sch.split(j, [1, 16]), sch.split(k, [1, 12])
    sch.reorder(i, j0, k0, j1, k1)
    block = sch.blockize(j1, preserve_unit_iters=preserve)
    assert [str(value) for value in sch.realization(block).iter_values] == outer


def product() -> tuple[tir.PrimFunc, list[te.Tensor]]:
    a, b, k = te.placeholder((19, 5), name="A"), te.placeholder((5, 8), name="B"), te.reduce_axis((0, 5), name="k")
    tensors = [a, b, te.compute((19, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]
    return te.create_prim_func(tensors), tensors


def test_balanced_tiles_differ_by_one_and_lower_to_a_body_for_each_size() -> None:
    func, tensors = product()
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    outer, inner = sch.split(i, [None, 4], balanced=True)
    assert [int(sch.get(loop).extent) for loop in (outer, inner)] == [5, 4]
    sch.reorder(outer, k, inner, j)
    sch.parallel(outer)
    sch.vectorize(j)
    sch.unroll(inner)
    sch.decompose_reduction(sch.get_block("C"), k)
    lowered = tensorexpr.lower(sch.mod).script()
    assert "T.allocate([4]" in lowered and "T.allocate([3]" in lowered  # registers of both sizes, no guard inside
    assert_func_correct(sch.mod["main"], tensors)
    assert sch.trace is not None and "balanced=True" in str(sch.trace)
    again = tir.Schedule(func)
    tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert structural_equal(again.mod, sch.mod)


def test_a_balanced_split_says_what_it_needs() -> None:
    sch = tir.Schedule(product()[0])
    i, *_ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError, match="makes two parts of a constant extent, got 3 parts"):
        sch.split(i, [2, None, 2], balanced=True)
    with pytest.raises(ScheduleError, match="takes one number"):
        sch.split(i, [5, 4], balanced=True)
    _, inner = sch.split(i, [None, 4])
    with pytest.raises(ScheduleError, match="split the loop before others"):
        sch.split(inner, [None, 3], balanced=True)
