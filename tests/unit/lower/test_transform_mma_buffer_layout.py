"""Matrices of scopes m16n8k8.* become registers: schedules on a CPU and the emulator, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import LoweringError
from tensorexpr.lower import transform
from tensorexpr.script import from_source
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir import PrimFunc
from tensorexpr.tir.tensor_intrin import cuda
from tests.warp_programs import numbers

N = 64


def scheduled(by_copy: bool) -> tir.Schedule:
    """A product of halves: 2 x 2 blocks of a warp, sums stored by write_at or by an intrinsic."""
    a, b, r = te.placeholder((N, N), "float16", name="A"), te.placeholder((N, N), "float16", name="B"), te.reduce_axis((0, N), name="r")
    c = te.compute((N, N), lambda i, j: te.sum(a[i, r].astype("float32") * b[r, j].astype("float32"), axis=r), name="C")
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (i, i_warp, i_tile), (j, j_warp, j_tile), (k, k_step, k_tile) = (
        sch.split(loop, [None, *sizes]) for loop, sizes in ((i, (2, 16)), (j, (4, 8)), (k, (4, 8)))
    )
    sch.reorder(i, j, k, k_step, i_warp, j_warp, i_tile, j_tile, k_tile)
    outer = sch.blockize(i_tile)
    sch.bind(sch.fuse(i, j), "blockIdx.x")
    grid = sch.get_loops(outer)[0]
    if by_copy:
        sch.write_at(grid, outer, 0, "m16n8k8.matrixC")
    else:
        sums = sch.cache_write(outer, 0, "m16n8k8.matrixC")
        sch.reverse_compute_at(sums, grid)
        sch.tensorize(_tiled(sch, sums, (16, 8)), "mma_store_m16n8k8_f32_global")
    for number, side in enumerate("AB"):
        copy = sch.read_at(k, outer, number, "shared.dyn")
        sch.annotate(copy, "vector_bytes", 16)
        sch.annotate(copy, "permuted_layout", f"g2s_{side}")
    for number, (side, tile) in enumerate((("A", (32, 8)), ("B", (8, 32)))):
        held = sch.cache_read(outer, number, f"m16n8k8.matrix{side}")
        sch.compute_at(held, k_step)
        part = sch.blockize(_tiled(sch, held, tile))
        sch.annotate(part, "permuted_layout", f"s2l_{side}")
        sch.tensorize(part, f"mma_load_m16n8k8_f16_{side}_shared_dyn")
    init = sch.decompose_reduction(outer, k)
    sch.tensorize(sch.get_loops(sch.get_child_blocks(init)[0])[-2], "mma_init_m16n8k8_f32")
    sch.tensorize(outer, "mma_sync_m16n8k8_f16f16f32")
    return sch


def _tiled(sch: tir.Schedule, block: Any, tile: tuple[int, int]) -> Any:
    """The loop over a tile of a block."""
    (i, i_in), (j, j_in) = (sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops(block)[-2:], tile, strict=True))
    sch.reorder(i, j, i_in, j_in)
    return i_in


@pytest.mark.parametrize("by_copy", [True, False])
def test_products_of_tiles(by_copy: bool) -> None:
    mod, rng = scheduled(by_copy).mod, np.random.default_rng(1)
    x, y = numbers(rng, (N, N), "float16"), numbers(rng, (N, N), "float16")
    found = np.zeros((N, N), np.float32)
    tvm.build(mod, target="llvm")(x, y, found)
    np.testing.assert_array_equal(found, x.astype("float32") @ y.astype("float32"))
    device = emulator()
    result = tvm.nd.empty((N, N), "float32", device)
    tvm.build(mod, target="cuda -arch=sm_80")(tvm.nd.array(x, device), tvm.nd.array(y, device), result)
    np.testing.assert_array_equal(result.numpy(), found)
    assert device.counters.by_name["mma"] == 4 * 8 * 8 and device.counters.bank_conflicts == 0


def lowered(scope: str, shape: tuple[int, int], body: str) -> PrimFunc:
    """A block with one matrix, on which `body` runs in 32 threads."""
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    with T.block("root"):
        M = T.alloc_buffer({shape}, scope="{scope}")
        for tx in T.thread_binding(32, "threadIdx.x"):
            {body}
""")
    assert isinstance(func, PrimFunc)
    made = transform.TransformMmaBufferLayout()(tvm.IRModule({"main": func}))["main"]
    assert isinstance(made, PrimFunc)
    return made


def test_a_thread_holds_four_sums_of_a_tile() -> None:
    text = lowered("m16n8k8.matrixC", (32, 16), "M[24 + tx // 4, 8 + tx % 4 * 2] = A[tx]").script()
    assert 'M = T.alloc_buffer((2, 2, 2, 2), scope="local")' in text and "M[1, 1, 1, 0] = A[tx]" in text


@pytest.mark.parametrize(
    "scope, shape, body, message",
    [
        (
            "m16n8k8.matrixC",
            (16, 8),
            "M[tx // 4, tx % 4] = A[tx]",
            r"isn't held by the thread that accesses it: thread t of a warp has rows",
        ),
        ("m16n8k8.matrixC", (16, 12), "M[tx // 4, tx % 4 * 2] = A[tx]", r"is 16 x 12, not a multiple of 16 x 8; give warps larger tiles"),
        ("m16n8k8.matrixA", (32, 8), "M[tx, 0] = A[tx]", r"are for ldmatrix and mma alone; tensorize what accesses them by mma_load"),
    ],
)
def test_what_no_thread_holds_is_refused(scope: str, shape: tuple[int, int], body: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lowered(scope, shape, body)


def test_pairs_of_tiles_by_their_shape() -> None:
    desc, impl = cuda.get_mma_load_intrin(32, 32, 8, "float16", "shared.dyn", True, False)
    assert "ptx_ldmatrix" in impl.script() and "ptx_ldmatrix" not in desc.script()
    for pair in (
        cuda.get_mma_init_intrin(16, 8, 8, "float32"),
        cuda.get_mma_sync_intrin(16, 8, 8, "float16", "float32", False),
        cuda.get_mma_store_dummy_intrin(16, 8, 8, "float16"),
    ):
        assert len(pair) == 2
    with pytest.raises(ValueError, match="tiles of 16 x 8 x 8 as float16 or float32, not 16 x 16 x 16 as float32"):
        cuda.get_mma_init_intrin(16, 16, 16, "float32")
    with pytest.raises(ValueError, match="by float16 that stands by rows"):
        cuda.get_mma_sync_intrin(16, 8, 8, "float16", "float32", True)
    with pytest.raises(ValueError, match="32 x 8 and 8 x 32 float16 by rows"):
        cuda.get_mma_load_intrin(16, 16, 8, "float16", "shared", False, False)
