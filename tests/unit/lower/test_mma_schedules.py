"""Products of bytes by `mma` with the registers of a warp filled, loaded by columns and stored by intrinsics, on a CPU and the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir.tensor_intrin import cuda

M, DEPTH = 16, 32


def scheduled() -> tir.Schedule:
    """A tile of 16 x 16 sums of 64 products, by one warp."""
    a, b, r = te.placeholder((M, 64), "int8", name="A"), te.placeholder((64, M), "int8", name="B"), te.reduce_axis((0, 64), name="r")
    c = te.compute((M, M), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), name="C")
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (i, i_in), (j, j_in), (k, k_in) = (sch.split(loop, [None, size]) for loop, size in ((i, M), (j, M), (k, DEPTH)))
    sch.reorder(i, j, k, i_in, j_in, k_in)
    outer = sch.blockize(i_in)
    sch.bind(sch.fuse(i, j), "blockIdx.x")
    names = cuda.get_mma_intrin_group("shared", "global", "int8", "int32", False, False, not_use_mma_store_intrinic=False)
    shared = [sch.cache_read(outer, number, "shared") for number in range(2)]
    held = [sch.cache_read(outer, number, "warp") for number in range(2)]
    sums = sch.cache_write(outer, 0, "warp")
    sch.reverse_compute_at(sums, sch.get_loops(outer)[0])
    shapes = ((M, DEPTH), (DEPTH, M))
    layouts: Any = (cuda.shared_16x32_to_ldmatrix_32x16_layout, cuda.shared_32x16_to_ldmatrix_32x16_layout)
    for copy, registers, shape, layout, role in zip(shared, held, shapes, layouts, "ab", strict=True):
        sch.compute_at(registers, k)
        sch.compute_at(copy, k)
        _, lane = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 32])
        sch.bind(lane, "threadIdx.x")
        _spread(sch, registers, ("write", 0), layout, shape)
        sch.tensorize(_tiled(sch, registers, shape), names[f"load_{role}"])
    _spread(sch, sums, ("read", 0), cuda.shared_16x16_to_ldmatrix_32x8_layout, (M, M))
    init = sch.decompose_reduction(outer, k)
    sch.tensorize(sch.get_loops(sch.get_child_blocks(init)[0])[-2], names["init"])
    sch.tensorize(outer, names["compute"])
    sch.tensorize(_tiled(sch, sums, (M, M)), names["store"])
    return sch


def _spread(sch: tir.Schedule, block: Any, side: tuple[str, int], layout: Any, shape: tuple[int, int]) -> None:
    """Registers of a warp for the tiles of a buffer."""
    rows, columns = shape
    sch.transform_layout(block, side, lambda i, j: (i // rows, j // columns, *layout(i % rows, j % columns)))


def _tiled(sch: tir.Schedule, block: Any, shape: tuple[int, int]) -> Any:
    (i, i_in), (j, j_in) = (sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops(block)[-2:], shape, strict=True))
    sch.reorder(i, j, i_in, j_in)
    return i_in


def test_bytes_by_columns() -> None:
    mod, rng = scheduled().mod, np.random.default_rng(0)
    x, y = rng.integers(-9, 9, (M, 64)).astype(np.int8), rng.integers(-9, 9, (64, M)).astype(np.int8)
    found = np.zeros((M, M), np.int32)
    tvm.build(mod, target="llvm")(x, y, found)
    np.testing.assert_array_equal(found, x.astype("int32") @ y.astype("int32"))
    device = emulator()
    result = tvm.nd.empty((M, M), "int32", device)
    tvm.build(mod, target="cuda -arch=sm_80")(tvm.nd.array(x, device), tvm.nd.array(y, device), result)
    np.testing.assert_array_equal(result.numpy(), found)
    assert device.counters.by_name["mma"] == 4
