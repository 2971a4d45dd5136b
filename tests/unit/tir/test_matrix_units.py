"""Intrinsics of matrix units by name: their descriptions, their layouts, and what the groups of a product take."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tensorexpr import te, tir
from tensorexpr.ir import assert_structural_equal
from tensorexpr.schedule.blocks.transform import tile_with_tensor_intrin
from tensorexpr.script import from_source
from tensorexpr.tir.tensor_intrin import cuda, metal, mfma, mma, rocm


@pytest.mark.parametrize("names", [mma.NAMES[::5], mfma.NAMES[::3], metal.NAMES[::5]], ids=["mma", "mfma", "simdgroup"])
def test_intrinsics_are_well_formed_and_read_back(names: tuple[str, ...]) -> None:
    for name in names:
        intrinsic = tir.TensorIntrin.get(name)
        for func in (intrinsic.desc, intrinsic.impl):
            assert tir.analysis.verify_well_formed(func, assert_mode=False), name
            assert_structural_equal(from_source(func.script()), func, map_free_vars=True)


@pytest.mark.parametrize(
    ("module", "constant", "name"),
    [
        (cuda, "LDMATRIX_f16_A_TRANS_DYN_INTRIN", "mma_ldmatrix_f16_a_trans_dyn"),
        (cuda, "MMA_f16f16f32_TRANS_A_TRANS_B_INTRIN", "mma_f16f16f32_trans_a_trans_b"),
        (cuda, "MMA_fill_16x16_i32_INTRIN", "mma_fill_16x16_i32"),
        (cuda, "MMA_store_16x16_f32_shared_dyn_INTRIN_SIMPLE", "mma_store_16x16_f32_shared_dyn_simple_"),
        (cuda, "MMA_store_16x16_f16_global_INTRIN", "mma_store_16x16_f16_global_"),
        (rocm, "ROCM_MFMA_LOAD_16x4_B_SHARED_f32_INTRIN", "rocm_mfma_load_b_16x4_shared_f32"),
        (rocm, "ROCM_MFMA_fill_16x16_i32_INTRIN", "ROCM_mfma_fill_16x16_i32"),
        (rocm, "ROCM_MFMA_s8s8s32_INTRIN", "rocm_mfma_s8s8s32"),
        (metal, "SIMDGROUP_MULTI_ACC_8x8x8_f16_INTRIN", "simdgroup_multiply_accumulate_8x8x8_f16"),
        (metal, "SIMDGROUP_FILLED_8x8x8_bf16_INTRIN", "simdgroup_fill_8x8x8_bf16"),
        (metal, "SIMDGROUP_LOAD_8x8x8_f16_SHARED_TRANS_INTRIN", "simdgroup_load_8x8x8_f16_shared_trans"),
    ],
)
def test_constants(module: ModuleType, constant: str, name: str) -> None:
    assert getattr(module, constant) == name and constant in dir(module) and tir.TensorIntrin.get(name)


Layout = Callable[[Any, Any], tuple[Any, Any]]


@pytest.mark.parametrize(
    ("shape", "place", "held"),
    [
        ((16, 16), cuda.shared_16x16_to_ldmatrix_32x8_layout, cuda.ldmatrix_32x8_to_shared_16x16_layout),
        ((16, 32), cuda.shared_16x32_to_ldmatrix_32x16_layout, None),
        ((32, 16), cuda.shared_32x16_to_ldmatrix_32x16_layout, None),
        ((16, 4), rocm.shared_16x4_to_local_64x1_layout_A, rocm.thread_id_shared_access_64x1_to_16x4_layout_A),
        ((4, 16), rocm.shared_4x16_to_local_64x1_layout_B, rocm.thread_id_shared_access_64x1_to_4x16_layout_B),
        ((16, 16), rocm.shared_16x16_to_local_64x4_layout_A, rocm.thread_id_shared_access_64x4_to_16x16_layout_A),
        ((16, 16), rocm.shared_16x16_to_local_64x4_layout_B, rocm.thread_id_shared_access_64x4_to_16x16_layout_B),
    ],
)
def test_each_element_has_a_register_of_its_own(shape: tuple[int, int], place: Layout, held: Layout | None) -> None:
    elements = list(itertools.product(*map(range, shape)))
    assert len({place(i, j) for i, j in elements}) == len(elements)
    assert held is None or [held(*place(i, j)) for i, j in elements] == elements


def test_groups_name_what_there_is() -> None:
    group = cuda.get_mma_intrin_group("shared.dyn", "shared.dyn", "float16", "float32", False, True, store_to_smem_dtype="float16")
    assert list(group.values()) == [
        *("mma_fill_16x16_f32", "mma_ldmatrix_f16_a_dyn", "mma_ldmatrix_f16_b_trans_dyn"),
        *("mma_f16f16f32_trans_b", "mma_store_16x16_f16_shared_dyn_simple_"),
    ]
    assert cuda.get_mma_intrin_group("shared", "global", "int8", "int32", False, True, False)["store"] == "mma_store_16x16_i32_global_"
    assert (
        metal.get_simdgroup_intrin_group("shared", "global", "float16", trans_b=True)["load_b"] == "simdgroup_load_8x8x8_f16_shared_trans"
    )
    with pytest.raises(ValueError, match="tensor cores have no mma_ldmatrix_f32_a"):
        cuda.get_mma_intrin_group("shared", "global", "float32", "float32", False, False)
    with pytest.raises(ValueError, match="tensor cores have no mma_ldmatrix_i8_a_trans"):
        cuda.get_mma_intrin_group("shared", "global", "int8", "int32", True, False)
    with pytest.raises(ValueError, match="simdgroups have no simdgroup_load_8x8x8_f16_local"):
        metal.get_simdgroup_intrin_group("local", "global", "float16")


def test_functions_make_what_the_names_give() -> None:
    desc, impl = cuda.get_mma_intrin(16, "float32", False, True)
    named = tir.TensorIntrin.get("mma_f16f16f32_trans_b")
    assert_structural_equal(desc, named.desc, map_free_vars=True)
    assert_structural_equal(impl, named.impl, map_free_vars=True)
    assert "strides" in cuda.get_ldmatrix_intrin(32, "int8", "B", True)[1].script()
    assert rocm.get_mfma_load_intrin(4, "float32", "shared", is_b=True, transposed=True)[0].buffer_map
    assert "llvm.amdgcn.mfma.i32.16x16x16i8" in rocm.get_mfma_intrin(16, "int8", "int32")[1].script()
    with pytest.raises(ValueError, match="16 products of float16 or 32 of int8"):
        cuda.get_ldmatrix_intrin(8, "float32", "A", False)
    with pytest.raises(ValueError, match="mma sums"):
        cuda.get_mma_intrin(16, "int32", False, False)
    with pytest.raises(ValueError, match="the matrix cores multiply"):
        rocm.get_mfma_intrin(8)
    with pytest.raises(ValueError, match="sum products of int8 as int32"):
        rocm.get_mfma_intrin(16, "int8", "float32")
    with pytest.raises(ValueError, match="32 threads hold 8"):
        cuda.get_mma_fill_intrin("float32", 4)


def product(n: int, dtype: str) -> tir.PrimFunc:
    a, b = te.placeholder((n, n), dtype, "A"), te.placeholder((n, n), dtype, "B")
    k = te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="C")])


def test_a_product_by_simdgroups() -> None:
    group = metal.get_simdgroup_intrin_group("shared", "global", "float16")
    sch = tir.Schedule(product(16, "float16"))
    block = sch.get_block("C")
    loop = tile_with_tensor_intrin(sch, block, group["compute"])
    assert loop is not None
    outer = sch.get_loops(block)[2]
    for number, step in enumerate(("load_a", "load_b")):
        register = sch.cache_read(block, number, "metal.simdgroup")
        sch.cache_read(register, 0, "shared")
        inner = [sch.split(axis, [None, 8])[1] for axis in sch.get_loops(register)]
        sch.reorder(sch.get_loops(register)[0], sch.get_loops(register)[2], *inner)
        sch.tensorize(inner[0], group[step])
    total = sch.cache_write(block, 0, "metal.simdgroup")
    inner = [sch.split(axis, [None, 8])[1] for axis in sch.get_loops(total)]
    sch.reorder(sch.get_loops(total)[0], sch.get_loops(total)[2], *inner)
    sch.tensorize(inner[0], group["store"])
    init = sch.decompose_reduction(block, outer)
    sch.tensorize(sch.get_loops(init)[2], group["init"])
    sch.tensorize(loop, group["compute"])
    text = sch.mod.script()
    assert all(f"T.{name}(" in text for name in ("make_filled_simdgroup_matrix", "simdgroup_load", "simdgroup_store"))
    assert "T.simdgroup_multiply_accumulate(" in text and tir.analysis.verify_well_formed(sch.mod)


def test_a_product_by_mma() -> None:
    group = cuda.get_mma_intrin_group("shared", "global", "float16", "float16", False, False, False)
    sch = tir.Schedule(product(32, "float16"))
    block = sch.get_block("C")
    loop = tile_with_tensor_intrin(sch, block, "wmma_sync_16x16x16_f16f16f16")
    assert loop is not None
    outer = sch.get_loops(block)[2]
    operands = []
    for number in (0, 1):
        shared = sch.cache_read(block, number, "shared")
        operands.append(sch.cache_read(block, number, "warp"))
        assert sch.get(shared).name_hint
    total = sch.cache_write(block, 0, "warp")

    def spread(i: tir.Var, j: tir.Var) -> tuple[tir.PrimExpr, ...]:
        return i // 16, j // 16, *cuda.shared_16x16_to_ldmatrix_32x8_layout(i % 16, j % 16)

    for number in (0, 1):
        sch.transform_layout(block, ("read", number), spread)
    sch.transform_layout(block, ("write", 0), spread)
    for copy, step in ((operands[0], "load_a"), (operands[1], "load_b"), (total, "store")):
        inner = [sch.split(axis, [None, 16])[1] for axis in sch.get_loops(copy)]
        sch.reorder(sch.get_loops(copy)[0], sch.get_loops(copy)[2], *inner)
        sch.tensorize(inner[0], group[step])
    init = sch.decompose_reduction(block, outer)
    sch.tensorize(sch.get_loops(init)[2], group["init"])
    sch.tensorize(loop, group["compute"])
    text = sch.mod.script()
    assert text.count("T.ptx_mma(") == 2 and text.count("T.ptx_ldmatrix(") == 2 and "T.mma_fill(" in text and "T.mma_store(" in text


def test_operands_by_name_keep_their_places() -> None:
    d: Any = tir.decl_buffer((64,), name="d")
    load: Any = tir.simdgroup_load(d.data, 0, d.data, 8, transpose_matrix=True)
    assert [int(arg) for arg in load.args[-3:]] == [8, 8, 1]
    filled: Any = tir.make_filled_simdgroup_matrix(d.data, 0, 0.0, row=4)
    assert [int(arg) for arg in filled.args[-2:]] == [8, 4]
