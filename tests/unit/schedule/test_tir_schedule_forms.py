"""The forms in which primitives leave programs: those of TVM, so that programs that compare them agree."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.script import from_source
from tensorexpr.script import tir as T
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.structural import structural_equal


def product(n: int = 128) -> tir.PrimFunc:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


@T.prim_func
def row_sums(A: T.Buffer((8, 32)), B: T.Buffer((8,))) -> None:
    for i, k in T.grid(8, 32):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(B[vi], A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


def split_fused(sch: tir.Schedule) -> None:
    sch.split(sch.fuse(*sch.get_loops("C")[:2]), [None, 64])


def split_twice(sch: tir.Schedule) -> None:
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 30])
    sch.split(outer, [None, 3])


def fused_parts(sch: tir.Schedule) -> None:
    sch.split(sch.get_loops("C")[0], [None, 30])
    sch.fuse(*sch.get_loops("C")[:2])


@pytest.mark.parametrize(
    ("request_", "lines"),
    [
        (split_fused, ["(i_j_fused_0 * 64 + i_j_fused_1) // 128)", "(i_j_fused_0 * 64 + i_j_fused_1) % 128)"]),
        (lambda s: s.fuse(*s.get_loops("C")), ["i_j_k_fused // 16384)", "i_j_k_fused % 16384 // 128)", "i_j_k_fused % 128)"]),
        (split_twice, ["T.where((i_0_0 * 3 + i_0_1) * 30 + i_1 < 128 and i_0_0 * 3 + i_0_1 < 5)"]),
        (fused_parts, ["v_i = T.axis.spatial(128, i_0_i_1_fused)", "T.where(i_0_i_1_fused // 30 * 30 + i_0_i_1_fused % 30 < 128)"]),
        (lambda s: s.annotate(s.get_block("C"), "flag", True), ['T.block_attr({"flag": 1})']),
    ],
)
def test_bindings_and_conditions_are_written_as_tvm_writes_them(request_: Callable[[tir.Schedule], object], lines: list[str]) -> None:
    sch = tir.Schedule(product())
    request_(sch)
    text = sch.mod.script()
    assert [line for line in lines if line not in text] == []


def test_threads_of_a_block_reduce_together() -> None:
    sch = tir.Schedule(row_sums)
    sch.bind(sch.get_loops("B")[1], "threadIdx.x")
    assert 'T.thread_binding(32, thread="threadIdx.x")' in sch.mod.script()
    with pytest.raises(ScheduleError, match="reduces over k"):
        _bound("blockIdx.x")


def _bound(tag: str) -> None:
    sch = tir.Schedule(row_sums)
    sch.bind(sch.get_loops("B")[1], tag)


def test_what_an_init_wrote_may_be_read_from_a_copy() -> None:
    sch = tir.Schedule(row_sums)
    sch.cache_write("B", 0, "local")
    assert "B_local[vi] = B_local[vi] + A[vi, vk]" in sch.mod.script()
    other = tir.Schedule(row_sums)
    other.reindex("B", "B")  # read and written: the name means what is written
    assert 'T.block("B_reindex")' in other.mod.script()


def test_separators_are_in_scripts_and_back() -> None:
    sch = tir.Schedule(row_sums)
    sch.set_axis_separator("B", ("read", 1), [1])
    func = sch.mod["main"]
    assert "axis_separators=[1]" in func.script()
    assert structural_equal(from_source(func.script()), func)


@T.prim_func
def windows(A: T.Buffer((14, 4)), B: T.Buffer((14, 4))) -> None:
    for a, b, c in T.grid(6, 4, 4):
        with T.block("B"):
            vi = T.axis.spatial(14, a * 2 + b)
            vj = T.axis.spatial(4, c)
            B[vi, vj] = A[vi, vj] + 1.0


@T.prim_func
def scanned(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))) -> None:
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.scan(4, j)
            B[vi, vj] = A[vi, vj] + 1.0


def test_points_that_come_twice_may_come_in_any_order() -> None:
    sch = tir.Schedule(windows)
    a, b, c = sch.get_loops("B")
    sch.reorder(a, c, b)
    assert "for a, c, b in T.grid(6, 4, 4):" in sch.mod.script()


def test_axes_of_another_kind_keep_their_order() -> None:
    sch = tir.Schedule(scanned)
    with pytest.raises(ScheduleError, match="axis vj is neither spatial nor reduced"):
        sch.reorder(*sch.get_loops("B")[::-1])


@T.prim_func
def first(A: T.Buffer((14,), "int32")) -> None:
    with T.block("root"):
        T.reads()
        T.writes()
        with T.block("first"):
            A[0] = 1


def test_padding_of_what_a_block_without_loops_writes() -> None:
    sch = tir.Schedule(first)
    sch.transform_layout("first", ("write", 0), lambda i: (i // 4, i % 4), pad_value=0)
    text = sch.mod.script()
    assert "A[0, 0] = 1" in text and "T.grid(4, 4)" in text


def test_padding_reads_no_other_buffer() -> None:
    other = tir.decl_buffer((1,), "int32", name="other")
    sch = tir.Schedule(first, error_render_level="fast")
    with pytest.raises(ScheduleError, match="pad_value reads other"):
        sch.transform_layout("first", ("write", 0), lambda i: (i // 4, i % 4), pad_value=lambda i, j: other[0])


@T.prim_func
def halves(A: T.Buffer((8,)), B: T.Buffer((8, 4))) -> None:
    H = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("H"):
            vi = T.axis.spatial(8, i)
            H[vi] = 0.5 * A[vi]
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = H[vi] + 1.0


def test_inlined_values_stay_as_they_were_written() -> None:
    sch = tir.Schedule(halves)
    sch.compute_inline("H")
    assert "B[vi, vj] = T.float32(0.5) * A[vi] + T.float32(1.0)" in sch.mod.script()


@T.prim_func
def boxes(A: T.Buffer((8, 4)), C: T.Buffer((8, 4))) -> None:
    B = T.alloc_buffer((8, 4))
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            S = T.match_buffer(B[vi, vj], [], offset_factor=1)
            S[()] = A[vi, vj]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi, 0:4])
            T.writes(C[vi, 0:4])
            R = T.match_buffer(B[vi, 0:4], [1, 4], offset_factor=1)
            for j in range(4):
                C[vi, j] = R[0, j]


def test_boxes_follow_their_buffer_to_another_scope() -> None:
    sch = tir.Schedule(boxes)
    sch.set_scope("B", 0, "shared")
    assert sch.mod.script().count('scope="shared"') == 3 and "S_shared[()] = " in sch.mod.script() and "R_shared[0, j]" in sch.mod.script()


def test_boxes_follow_their_buffer_into_groups_of_dimensions() -> None:
    sch = tir.Schedule(boxes)
    sch.set_axis_separator("B", ("write", 0), [1])
    found = {b.name: [as_int(cut) for cut in b.axis_separators] for b in buffers_in(sch.mod["main"])}
    assert found == {"A": [], "C": [], "B": [1], "S": [0], "R": [1]}


def buffers_in(func: tir.PrimFunc) -> set[tir.Buffer]:
    blocks = [node for node in walk(func.body) if isinstance(node, tir.Block)]
    views = {match.buffer for block in blocks for match in block.match_buffers}
    return views | {region.buffer for block in blocks for region in block.regions()}


@T.prim_func
def stated_whole(A: T.Buffer((8, 4)), B: T.Buffer((8, 4))) -> None:
    for i, j in T.grid(8, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[0:8, 0:4])
            A[vi, vj] = 1.0
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(B[0:8, 0:4])
            T.evaluate(T.tvm_fill_fragment(B.data, 8, 4, 4, 0, vi * 4 + vj, dtype="handle"))


@pytest.mark.parametrize("block", ["A", "B"])
def test_what_a_block_stores_to_counts_and_calls_are_taken_at_their_word(block: str) -> None:
    sch = tir.Schedule(stated_whole)
    i, j = sch.get_loops(block)
    sch.reorder(j, i)
    assert [sch.get(loop).extent.value for loop in sch.get_loops(block)] == [4, 8]


def test_overlapping_tiles_are_reordered_within_a_tile() -> None:
    n = 12
    x = te.placeholder((n + 4, n), name="x")
    k, m = te.reduce_axis((0, 3), name="k"), te.reduce_axis((0, 3), name="m")
    first = te.compute((n + 2, n), lambda i, j: te.sum(x[i + k, j], axis=k), name="first")
    second = te.compute((n, n), lambda i, j: te.sum(first[i + m, j], axis=m), name="second")
    sch = tir.Schedule(te.create_prim_func([x, second]))
    outer, _ = sch.split(sch.get_loops("second")[0], [None, 4])
    sch.compute_at("first", outer)
    _, row, column, _ = sch.get_loops("first")
    sch.reorder(column, row)
    assert [sch.get(loop).extent.value for loop in sch.get_loops("first")] == [3, n, 6, 3]


def padded_windows(n: int, pad: int) -> tir.PrimFunc:
    x = te.placeholder((n,), name="x")
    k = te.reduce_axis((0, 2 * pad + 1), name="k")
    inside = te.compute((n + 2 * pad,), lambda i: tir.if_then_else(tir.all(i >= pad, i < n + pad), x[i - pad], 0.0), name="P")
    return te.create_prim_func([x, te.compute((n,), lambda i: te.sum(inside[i + k], axis=k), name="W")])


@pytest.mark.parametrize(("factor", "loop"), [(4, 0), (4, 1), (5, 0), (5, 1)], ids=["lifted", "inside", "ragged_lifted", "ragged"])
def test_padding_of_tiles_is_decomposed(factor: int, loop: int) -> None:
    """Tiles overlap, other blocks stand in the loop over them, and where they aren't whole the padding has a condition."""
    func = padded_windows(12, 1)
    sch = tir.Schedule(func)
    outer, _ = sch.split(sch.get_loops("W")[0], [None, factor])
    sch.compute_at("P", outer)
    filling = sch.decompose_padding("P", sch.get_loops("P")[loop])
    assert len(sch.get_loops(filling)) == 2 and sch.get(filling).name_hint == "P_pad_const"
    assert (sch.get(sch.get_loops(filling)[0]) is sch.get(sch.get_loops("W")[0])) == (loop == 1)
    x = np.arange(1, 13, dtype="float32")
    wanted, found = np.zeros(12, "float32"), np.zeros(12, "float32")
    interpret(func, [x, wanted])
    interpret(sch.mod["main"], [x, found])
    np.testing.assert_array_equal(found, wanted)


@T.prim_func
def end_of_a_row(A: T.Buffer((4,)), C: T.Buffer((8,))) -> None:
    X = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] + 1.0
    for _u, i in T.grid(1, 8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.if_then_else(vi >= 6, X[vi - 6], 0.0)


def test_a_part_that_ends_outside_is_made_as_far_as_it_exists() -> None:
    sch = tir.Schedule(end_of_a_row)
    sch.compute_at("X", sch.get_loops("C")[0])
    assert sch.get(sch.get_loops("X")[-1]).extent.value == 2 and "T.where" not in sch.mod.script()


def test_reductions_of_symbolic_size_move_into_fused_loops_that_keep_unit_loops() -> None:
    n = te.var("n")
    a, b = te.placeholder((4, 8), name="a"), te.placeholder((4, n, 8), name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((4, n), lambda i, j: te.sum(a[i, k] * b[i, j, k], axis=k), name="c")
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    i, j, k = sch.get_loops("c")
    fused = sch.fuse(i, j)
    partial = sch.rfactor(k, 0)
    sch.reverse_compute_at("c", sch.get_loops(partial)[0], preserve_unit_loops=True)
    assert fused and sch.get(sch.get_loops("c")[0]) is sch.get(sch.get_loops(partial)[0])


def test_places_that_calls_tell_are_all_places() -> None:
    x = te.placeholder((8, 8), name="x")
    y = te.compute((8, 4), lambda i, j: x[i, tir.floor(j * 2 + 0.5).astype("int32")], name="y")
    sch = tir.Schedule(te.create_prim_func([x, y]))
    (region,) = sch.get(sch.get_block("y")).reads
    assert [as_int(r.extent) for r in region.region] == [1, 8]


def test_index_maps_of_copies_are_simplified() -> None:
    sch = tir.Schedule(product(8))
    sch.reindex_cache_read("C", 0, "local", lambda i, j, k: (i * 2 * 4 + k,))
    assert "A_local[v_i * 8 + v_k] = A[v_i, v_k]" in sch.mod.script()
