"""What rules of searches ask of schedules: outputs, layouts for loops, loops for intrinsics; copies that threads share."""

# mypy: disable-error-code="valid-type, arg-type"

from __future__ import annotations

import pytest

from tensorexpr import te, tir
from tensorexpr.schedule.blocks.analysis import (
    TensorizeInfo,
    get_tensorize_loop_mapping,
    has_block,
    is_output_block,
    suggest_index_map,
)
from tensorexpr.script import tir as T
from tensorexpr.tir.tensor_intrin import x86


def loops(*extents: int) -> tuple[list[tir.Var], list[tir.For]]:
    names = [tir.Var(f"i{n}", "int32") for n in range(len(extents))]
    return names, [tir.For(var, 0, extent, tir.ForKind.SERIAL, tir.Evaluate(0)) for var, extent in zip(names, extents, strict=True)]


def test_a_layout_follows_the_loops() -> None:
    (i, j), nest = loops(32, 64)
    found = suggest_index_map(tir.decl_buffer((8, 256)), [i // 16 * 4 + j // 16, i % 16 * 16 + j % 16], nest, True)
    assert found is not None
    assert [str(index) for index in found.final_indices] == ["i0 // 4", "i1 // 16", "i0 % 4", "i1 % 16"]


def test_parts_of_a_loop_that_lie_together_stay_so() -> None:
    (i, j), nest = loops(2, 32)
    found = suggest_index_map(tir.decl_buffer((8,)), [j % 4 * 2 + i], nest, True)
    assert found is not None and [str(index) for index in found.final_indices] == ["i0 % 2", "i0 // 2"]


def test_no_layout_for_indices_that_overlap() -> None:
    (i, j), nest = loops(4, 4)
    assert suggest_index_map(tir.decl_buffer((8,)), [i + j], nest, True) is None
    assert suggest_index_map(tir.decl_buffer((4,)), [i], nest, i < j) is None


def dense(k: int = 64) -> tir.PrimFunc:
    a, b = te.placeholder((32, k), "uint8", name="A"), te.placeholder((64, k), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((32, 64), lambda i, j: te.sum(a[i, r].astype("int32") * b[j, r].astype("int32"), axis=r), name="C")
    return te.create_prim_func([a, b, te.compute((32, 64), lambda i, j: c[i, j] + 1, name="D")])


def test_the_loops_of_an_intrinsic_are_those_of_the_last_axes() -> None:
    sch = tir.Schedule(dense())
    block = sch.get_block("C")
    info = get_tensorize_loop_mapping(sch, block, x86.dot_product_16x4_u8i8i32_desc)
    assert isinstance(info, TensorizeInfo) and info.block_iter_paddings is None
    places = {loop.loop_var.name: sch.get(place).loop_var.name for place, loop in info.loop_map.items()}
    assert len(places) == 2 and set(places.values()) == {"j", "r"}
    assert sorted(info.desc_loop_indexer.values()) == [0, 1]


@pytest.mark.parametrize("allowed", [False, True])
def test_extents_that_are_no_multiples_need_padding(allowed: bool) -> None:
    sch = tir.Schedule(dense(62))
    info = get_tensorize_loop_mapping(sch, sch.get_block("C"), x86.dot_product_16x4_u8i8i32_desc, allow_padding=allowed)
    assert (info is not None and info.block_iter_paddings == [1, 1, 4]) if allowed else info is None


def test_outputs_and_names() -> None:
    sch = tir.Schedule(dense())
    assert is_output_block(sch, sch.get_block("D")) and not is_output_block(sch, sch.get_block("C"))
    before = str(sch.trace)
    assert has_block(sch, "C") and not has_block(sch, "E") and str(sch.trace) == before


@T.prim_func
def by_threads(A: T.Buffer((64, 64)), C: T.Buffer((64, 64))) -> None:
    for by in T.thread_binding(4, thread="blockIdx.y"):
        for ty in T.thread_binding(16, thread="threadIdx.y"):
            for k, i in T.grid(4, 16):
                with T.block("C"):
                    vi = T.axis.spatial(64, by * 16 + ty)
                    vj = T.axis.spatial(64, k * 16 + i)
                    C[vi, vj] = A[vi, vj] + 1.0


def test_threads_that_share_memory_share_the_copy() -> None:
    sch = tir.Schedule(by_threads)
    sch.read_at(sch.get_loops("C")[2], sch.get_block("C"), 0, "shared")
    text = sch.mod.script()
    assert "A[v0 * 16:v0 * 16 + 16, v1 * 16:v1 * 16 + 16]" in text and "[by, k]" in text
