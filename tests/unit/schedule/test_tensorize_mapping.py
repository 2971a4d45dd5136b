"""Intrinsics of devices by name, and bringing a block's axes and loops into the form of a description."""

from __future__ import annotations

import importlib

import pytest

from tensorexpr import te, tir
from tensorexpr.schedule.blocks.tensorize_mapping import get_auto_tensorize_mapping_info
from tensorexpr.schedule.blocks.transform import tile_with_tensor_intrin
from tensorexpr.tir.tensor_intrin import cuda, wmma

SYNC = cuda.WMMA_SYNC_16x16x16_f16f16f32_INTRIN


def product(n: int, m: int, k: int, dtype: str = "float16") -> tir.Schedule:
    """A product of matrices with the sum in 32 bits, and one more step after it."""
    a, b = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r].astype("float32") * b[r, j].astype("float32"), r), "C")
    d = te.compute((n, m), lambda i, j: c[i, j] + 1.0, "D")
    return tir.Schedule(te.create_prim_func([a, b, d]))


def test_programs_find_the_names_where_they_look() -> None:
    for module, name in (("analysis", "get_auto_tensorize_mapping_info"), ("transform", "tile_with_tensor_intrin")):
        assert callable(getattr(importlib.import_module(f"tensorexpr.tir.schedule.{module}"), name))


def test_constants_name_registered_intrinsics() -> None:
    names = [getattr(cuda, name) for name in dir(cuda) if name.endswith("_INTRIN")]
    assert {"wmma_load_16x16x16_f16_a_shared_dyn", "wmma_sync_16x16x16_s8s8s32_trans", "dp4a_u8u8u32"} <= set(names)
    assert cuda.WMMA_LOAD_16x16x16_F16_B_TRANS_DYN_INTRIN == "wmma_load_16x16x16_f16_b_trans_shared_dyn"
    for name in names:
        assert len(tir.TensorIntrin.get(name).desc.params) == len(tir.TensorIntrin.get(name).impl.params)


def test_the_group_of_a_product() -> None:
    group = cuda.get_wmma_intrin_group("shared.dyn", "global", "float16", "float32", trans_b=True)
    assert group["compute"] == "wmma_sync_16x16x16_f16f16f32_trans" and set(group.values()) <= set(wmma.NAMES)
    with pytest.raises(ValueError, match="tensor cores have no"):
        cuda.get_wmma_intrin_group("local", "global", "float16", "float32", trans_b=False)


def test_a_product_on_tensor_cores_prints() -> None:
    sch = product(32, 32, 32)
    block = sch.get_block("C")
    loop = tile_with_tensor_intrin(sch, block, SYNC)
    assert loop is not None
    for number, scope in enumerate(("wmma.matrix_a", "wmma.matrix_b")):
        sch.cache_read(block, number, scope)
    sch.cache_write(block, 0, "wmma.accumulator")
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    sch.tensorize(loop, SYNC)
    assert "T.tvm_mma_sync(" in sch.mod.script()


@pytest.mark.parametrize(("shape", "padding"), [((20, 16, 33), True), ((16, 16, 17), False)])
def test_padding_takes_in_who_comes_after(shape: tuple[int, int, int], padding: bool) -> None:
    sch = product(*shape)
    assert (tile_with_tensor_intrin(sch, sch.get_block("C"), SYNC, allow_padding=padding) is not None) is padding
    assert ("D[v0, v1] = C_pad[v0, v1] + T.float32(1.0)" in sch.mod.script()) is padding


def test_loops_before_the_tiles_stay_and_padding_lies_where_its_operand_does() -> None:
    sch = product(32, 32, 32)
    block = sch.get_block("C")
    assert tile_with_tensor_intrin(sch, block, SYNC) is not None
    assert len(sch.trace.insts[-1].inputs) == 5  # the outermost of six isn't reordered
    sch = product(20, 16, 32)
    block = sch.get_block("C")
    sch.cache_read(block, 0, "shared")
    sch.pad_einsum(block, [16, 16, 16])
    assert 'A_shared_pad = T.alloc_buffer((32, 32), "float16", scope="shared")' in sch.mod.script()
    with pytest.raises(TypeError, match="takes the name of a block, not int"):
        sch.get_block(5)


def test_axes_of_a_convolution_become_those_of_a_product() -> None:
    x, w = te.placeholder((2, 6, 6, 8), "float16", "X"), te.placeholder((3, 3, 8, 16), "float16", "W")
    rh, rw, rc = te.reduce_axis((0, 3), "rh"), te.reduce_axis((0, 3), "rw"), te.reduce_axis((0, 8), "rc")

    def output(n: tir.Var, h: tir.Var, wide: tir.Var, c: tir.Var) -> tir.PrimExpr:
        total: tir.PrimExpr = te.sum(
            x[n, h + rh, wide + rw, c // 16 * 8 + rc].astype("float32") * w[rh, rw, rc, c].astype("float32"), [rh, rw, rc]
        )
        return total

    sch = tir.Schedule(te.create_prim_func([x, w, te.compute((2, 4, 4, 16), output, "Y")]))
    info = get_auto_tensorize_mapping_info(sch, sch.get_block("Y"), tir.TensorIntrin.get(SYNC).desc)
    assert info is not None
    wanted = tir.IndexMap.from_func(lambda n, h, wide, c, a, b, r: (n * 16 + h * 4 + wide, c, a * 24 + b * 8 + r))
    assert wanted.is_equivalent_to(info.mappings[0])
    assert [buffer.name for buffer in info.lhs_buffer_map] == ["Y", "X", "W"] and len(info.rhs_iters) == 3


def test_another_computation_has_no_mapping() -> None:
    sch = product(16, 16, 16, "float32")
    assert get_auto_tensorize_mapping_info(sch, sch.get_block("C"), tir.TensorIntrin.get(SYNC).desc) is None
