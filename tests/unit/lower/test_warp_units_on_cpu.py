"""What warps run together on a CPU and in the interpreter: matrix fragments, `mma`, `ldmatrix`; and asynchronous copies of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.codegen.ptx_matrix import MMA
from tensorexpr.errors import LoweringError
from tensorexpr.lower.device.on_cpu import with_barriers
from tensorexpr.script import from_source
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir import IRModule, PrimFunc
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tests.warp_programs import WMMA, Array, fetched_rows, fragment_arrays, fragment_product, numbers, register_product

DTYPES = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp32": "float32", "fp64": "float64"}


def built(functions: dict[str, PrimFunc], target: str = "llvm") -> Any:
    """One module of several functions."""
    return tvm.build(IRModule({name: func.with_attr("global_symbol", name) for name, func in functions.items()}), target=target)


def agree(functions: dict[str, PrimFunc]) -> None:
    """Each function, of inputs and then an output that is also an input, gives the same on a CPU and on the emulator."""
    here, there, rng = built(functions), built(functions, "cuda -arch=sm_80"), np.random.default_rng(2)
    for name, func in functions.items():
        buffers = [func.buffer_map[param] for param in func.params]
        arrays = [numbers(rng, [as_int(extent) or 1 for extent in buffer.shape], buffer.dtype) for buffer in buffers]
        device = emulator()
        copies = [tvm.nd.array(array, device) for array in arrays]
        there[name](*copies)
        here[name](*arrays)
        np.testing.assert_array_equal(arrays[-1], copies[-1].numpy(), name)


def test_products_of_fragments() -> None:
    module = built({f"f{number}": fragment_product(*row) for number, row in enumerate(WMMA)})
    for number, (dtype, out, shape, rows, cols) in enumerate(WMMA):
        left, right, wanted = fragment_arrays(dtype, shape, rows, cols)
        found = np.zeros(wanted.size, out)
        module[f"f{number}"](left, right, found)
        np.testing.assert_array_equal(found.reshape(wanted.T.shape).T, wanted)


@pytest.mark.parametrize("planned", [False, True])
def test_products_of_fragments_in_the_interpreter(planned: bool) -> None:
    dtype, out, shape, rows, cols = WMMA[2]
    func = fragment_product(*WMMA[2])
    left, right, wanted = fragment_arrays(dtype, shape, rows, cols)
    found = np.zeros(wanted.size, out)
    interpret(with_barriers(tvm.lower(func, upto=1))["main"] if planned else func, [left, right, found])
    np.testing.assert_array_equal(found.reshape(wanted.T.shape).T, wanted)


def test_registers_of_products_are_those_of_the_device() -> None:
    chosen = {(shape, a[-2:]): (shape, a, b, c) for shape, a, b, c in MMA}.values()  # one of each layout: bytes of any sign lie alike
    rows = [(shape, kinds, tuple(DTYPES.get(kind, kind) for kind in kinds)) for shape, *kinds in chosen]
    agree({f"f{number}": register_product(*row) for number, row in enumerate(rows)})  # type: ignore[arg-type]


def test_rows_of_matrices_reach_the_threads_of_the_device() -> None:
    cases = [(count, turned, "float16") for count in (1, 2, 4) for turned in (False, True)] + [(4, False, "int8")]
    agree({f"f{number}": fetched_rows(*case) for number, case in enumerate(cases)})


def test_products_and_rows_in_the_interpreter() -> None:
    for func in (
        register_product("m16n8k8", ("fp16", "fp16", "fp32"), ("float16", "float16", "float32")),
        fetched_rows(2, True, "float16"),
    ):
        rng = np.random.default_rng(4)
        arrays = [numbers(rng, [as_int(e) or 1 for e in func.buffer_map[p].shape], func.buffer_map[p].dtype) for p in func.params]
        made = [array.copy() for array in arrays]
        tvm.build(func, target="llvm")(*made)
        interpret(func, arrays)
        np.testing.assert_array_equal(arrays[-1], made[-1])


def test_sums_that_stay_at_the_limits_of_their_dtype() -> None:
    func = register_product("m16n8k16", ("int8", "int8", "int32"), ("int8", "int8", "int32"), saturate=True)
    a, b, c = np.full(256, 100, np.int8), np.full(128, 100, np.int8), np.full(128, 2**31 - 5, np.int32)
    tvm.build(func, target="llvm")(a, b, c)
    assert (c == 2**31 - 1).all()


def test_a_warp_in_a_block_of_several() -> None:
    """Warps along x and y have fragments of their own."""
    text = fragment_product(*WMMA[0]).script().replace('T.launch_thread("threadIdx.x", 32)', 'T.launch_thread("threadIdx.x", 64)')
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    left, right, wanted = fragment_arrays("float16", (16, 16, 16), "row_major", "row_major")
    with pytest.raises(InterpreterError, match=r"out of bounds"):  # twice the threads fetch twice as much
        interpret(func, [left, right, np.zeros(256, np.float32)])
    grid = 'ty = T.launch_thread("threadIdx.y", 2)\n    '
    two = from_source(
        fragment_product(*WMMA[0])
        .script()
        .replace("threadIdx_x = T.launch", grid + "threadIdx_x = T.launch")
        .replace("tx = T.launch", grid + "tx = T.launch")
    )
    assert isinstance(two, PrimFunc)
    found = np.zeros(256, np.float32)
    tvm.build(two, target="llvm")(left, right, found)
    np.testing.assert_array_equal(found.reshape(16, 16).T, wanted)


def test_parts_of_warps_are_refused() -> None:
    with pytest.raises(LoweringError, match=r"tir\.ptx_ldmatrix is run by warps of 32 threads, and a block has 48; launch whole warps"):
        tvm.build(fetched_rows(4, False, "float16", threads=48), target="llvm")
    func = from_source(fetched_rows(4, False, "float16").script().replace("T.ptx_ldmatrix", "if tx < 16:\n        T.ptx_ldmatrix"))
    assert isinstance(func, PrimFunc)
    with pytest.raises(InterpreterError, match=r"16 of the 32 threads of warp 0 come to"):
        interpret(func, [np.zeros(256, np.float16), np.zeros(256, np.float16)])


COPIES = """@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 8)
    s_data = T.allocate([64], "float32", "shared")
    s = T.Buffer((64,), data=s_data, scope="shared")
    T.ptx_cp_async("float32", s.data, tx * 4, A.data, bx * 32 + tx * 4, 16)
    T.ptx_commit_group()
    T.ptx_cp_async("float32", s.data, 32 + tx, A.data, tx, 4, tx < 5)
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    T.tvm_storage_sync("shared")
    for i in range(4):
        B[bx * 32 + tx * 4 + i] = s[31 - tx * 4 - i] + s[32 + (tx + 1) % 8]
"""


def both(text: str, **externs: Any) -> Array:
    """B of 64 float32 by compiled code, which the interpreter agrees with."""
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    data, seen, made = np.random.default_rng(0).random(64, np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    interpret(func, [data, seen], **externs)
    tvm.build(func, target="llvm")(data, made)
    np.testing.assert_array_equal(made, seen)
    return made


def test_asynchronous_copies_land() -> None:
    data = np.random.default_rng(0).random(64, np.float32)
    more = np.repeat(np.roll(np.where(np.arange(8) < 5, data[:8], 0), -1), 4)
    np.testing.assert_array_equal(both(COPIES).reshape(2, 32), data.reshape(2, 32)[:, ::-1] + more)


def test_barriers_are_planned_behind_copies() -> None:
    func = from_source(COPIES.replace('    T.tvm_storage_sync("shared")\n', ""))
    assert isinstance(func, PrimFunc)
    planned = with_barriers(tvm.lower(func, upto=1))["main"]
    assert "tvm_storage_sync" in planned.script()  # one is put where threads would race, as behind stores


def test_barriers_that_copies_arrive_at() -> None:
    made = both("""@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s_data = T.allocate([64], "float32", "shared")
    s = T.Buffer((64,), data=s_data, scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 64)
    T.tvm_storage_sync("shared")
    T.ptx_cp_async("float32", s.data, tx, A.data, tx, 4)
    T.ptx_cp_async_barrier(0)
    T.ptx_arrive_barrier(0)
    T.ptx_wait_barrier(0)
    B[tx] = s[63 - tx]
""")
    np.testing.assert_array_equal(made, np.random.default_rng(0).random(64, np.float32)[::-1])


def test_an_array_of_a_thread_is_passed_on_by_its_address() -> None:
    func = from_source("""@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    s_data = T.allocate([32], "float32", "shared")
    s = T.Buffer((32,), data=s_data, scope="shared")
    r_data = T.allocate([2], "float32", "local")
    r = T.Buffer((2,), data=r_data, scope="local")
    T.call_extern("handle", "memcpy", r.data, T.address_of(A[tx * 2]), T.uint64(8))
    s[tx] = r[0]
    T.tvm_storage_sync("shared")
    r[0] = s[31 - tx]
    T.call_extern("handle", "memcpy", T.address_of(B[tx * 2]), T.tvm_access_ptr(T.type_annotation("float32"), r.data, 0, 2, 1), T.uint64(8))
""")
    assert isinstance(func, PrimFunc)
    data, made = np.random.default_rng(0).random(64, np.float32), np.zeros(64, np.float32)
    tvm.build(func, target="llvm")(data, made)
    wanted = data.reshape(32, 2).copy()
    wanted[:, 0] = wanted[::-1, 0].copy()
    np.testing.assert_array_equal(made.reshape(32, 2), wanted)
