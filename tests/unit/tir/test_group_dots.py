"""Dot products of CPUs other than the one at hand: tensorized, printed, and interpreted by the table of what they compute."""

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.tensor_intrin import arm_cpu, hexagon, rocm
from tensorexpr.tir.tensor_intrin.group_dots import DOTS, GroupDot


def dense(dot: GroupDot) -> tir.Schedule:
    """Two groups of the reduction into one vector of outputs, as a schedule whose inner loops an intrinsic takes."""
    a = te.placeholder((2 * dot.group,), dot.left, name="A")
    b = te.placeholder((2, dot.outputs, dot.group), dot.right, name="B")
    k = te.reduce_axis((0, 2 * dot.group), name="k")
    c = te.compute(
        (dot.outputs,),
        lambda i: te.sum(a[k].astype(dot.result) * b[k // dot.group, i, k % dot.group].astype(dot.result), axis=k),
        name="C",
    )
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    i, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, dot.group])
    sch.reorder(outer, i, inner)
    sch.decompose_reduction("C", outer)
    return sch


@pytest.mark.parametrize("name", [name for name in DOTS if "vtcm" not in name])
def test_tensorized_sums_are_those_of_the_loops(name: str) -> None:
    dot = DOTS[name]
    sch = dense(dot)
    sch.tensorize(sch.get_loops("C_update")[1], name)
    assert "call_llvm_pure_intrin" in sch.mod.script()
    rng = np.random.default_rng(0)
    a = numbers(rng, (2 * dot.group,), dot.left)
    b = numbers(rng, (2, dot.outputs, dot.group), dot.right)
    found = np.zeros(dot.outputs, dot.result)
    interpret(sch.mod["main"], [a, b, found])
    wanted = (a.astype("int64").reshape(2, 1, dot.group) * b.astype("int64")).sum(axis=(0, 2))
    np.testing.assert_array_equal(found, wanted.astype(dot.result))


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Any bytes; of 16 bits those whose sums don't saturate."""
    low, high = (-(1 << 13), 1 << 13) if dtype == "int16" else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    return rng.integers(low, high, shape).astype(dtype)


def test_names_are_registered() -> None:
    names = [getattr(module, name) for module in (arm_cpu, hexagon, rocm) for name in vars(module) if name.endswith("_INTRIN")]
    assert {"sdot4", "dot_4x4_i8i8s32_sdot", "dot_32x4_u8i8i32_vtcm_vrmpy"} <= set(names)
    for name in [*names, hexagon.DMA_READ_128_u8, hexagon.DMA_READ_128_i8]:
        assert tir.TensorIntrin.get(name).impl.script()
    assert arm_cpu.neon_4x4_i8i8i32_impl is tir.TensorIntrin.get("dot_4x4_i8i8s32_neon").impl


def test_functions_by_their_types() -> None:
    assert arm_cpu.get_dotprod_intrin("uint8", "int32")[1] is tir.TensorIntrin.get("dot_4x4_u8u8i32_hdot").impl
    with pytest.raises(ValueError, match="no dot product of int8 is summed as float32"):
        arm_cpu.get_dotprod_intrin("int8", "float32")
    desc, impl = hexagon.generate_dot_product_32x4_u8u8i32("global.vtcm")
    assert all('scope="global.vtcm"' in func.script() for func in (desc, impl))
    assert "dma_copy" in hexagon.generate_dma_load_intrin(16, "int8")[1].script()
